//! `blackboard completions`

use blackboard::Result;
use clap_complete::Shell;
use serde::Serialize;

use super::Run;
use crate::context::Context;
use crate::envelope::Answer;
use crate::outcome::{Outcome, Render};
use crate::output::{self, Screen};
use crate::tree::tree_without_aliases;

/// Print a shell completion script
///
/// Prints a script that completes commands and options in bash, zsh, fish or PowerShell.
///
/// Examples:
///   blackboard completions bash > ~/.blackboard.bash
///   mkdir -p ~/.zfunc
///   blackboard completions zsh > ~/.zfunc/_blackboard
///   mkdir -p ~/.config/fish/completions
///   blackboard completions fish > ~/.config/fish/completions/blackboard.fish
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Completions {
    /// Shell to complete in
    #[arg(value_parser = shells(), value_name = "SHELL")]
    shell: Shell,
}

impl Run for Completions {
    fn run(self, _context: &Context) -> Result<Outcome> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut tree_without_aliases(), "blackboard", &mut script);
        let script = String::from_utf8_lossy(&script).into_owned();
        Ok(Outcome::new(Script { shell: self.shell.to_string(), script }))
    }
}

/// The shells whose scripts are tested here.
fn shells() -> clap::builder::ValueParser {
    use clap::builder::TypedValueParser;
    clap::builder::PossibleValuesParser::new(["bash", "zsh", "fish", "powershell"])
        .try_map(|name| name.parse::<Shell>())
        .into()
}

#[derive(Serialize)]
struct Script {
    shell: String,
    script: String,
}

impl Render for Script {
    fn json(&self, answer: &mut Answer<'_>) -> output::Result {
        answer.object(self)
    }

    fn human(&self, screen: &mut Screen<'_>) -> output::Result {
        screen.verbatim(&self.script)
    }
}
