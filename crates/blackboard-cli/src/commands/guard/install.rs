//! `blackboard guard install`

use blackboard::Result;

use super::hook::{HookPaths, Mode};
use crate::commands::Run;
use crate::context::Context;
use crate::location;
use crate::outcome::Outcome;
use crate::output::guard::InstalledHook;

/// Install the commit guard for this repository
///
/// Installs a pre-commit hook that refuses commits of files that another session has reserved. An existing hook is
/// kept and runs first. If the board cannot be read, commits are allowed. Commits are also allowed if no board is
/// found, or with `git commit --no-verify`.
///
/// Examples:
///   blackboard guard install
///   blackboard guard install --warn
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Install {
    /// Report reserved files, and allow the commit
    #[arg(long)]
    warn: bool,
}

impl Run for Install {
    fn run(self, context: &Context) -> Result<Outcome> {
        let mode = if self.warn { Mode::Warn } else { Mode::Refuse };
        let place = HookPaths::to_install()?;
        let installed = place.install(mode)?;
        Ok(Outcome::new(InstalledHook {
            hook: place.hook.display().to_string(),
            warn: self.warn,
            installed: installed.changed,
            chained: installed.chained,
            note: board_of_hook(context)?,
        }))
    }
}

/// What to know about the board of the hook, if this call names a board: git starts the hook without `--db`, and often
/// without the variables of this shell.
fn board_of_hook(context: &Context) -> Result<Option<String>> {
    let mut request = context.request();
    if request.db.take().or(request.environment.database.take()).is_none() {
        return Ok(None);
    }
    let (given, board) =
        (&context.resolve()?.engine, context.resolve_at(&location::find(&request)?, |_| {})?);
    let (given, found) = (given.name(), board.engine.name());
    Ok((given != found).then(|| {
        format!(
            "the hook finds the board as any command does: {found}, unless BLACKBOARD_DB is set for git. \
             Set it to check commits against {given}"
        )
    }))
}
