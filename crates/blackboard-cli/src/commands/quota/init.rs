//! `blackboard quota init`

use blackboard::{Code, Refusal, Result};

use super::{edit, home_config};
use crate::commands::Run;
use crate::config::printable;
use crate::context::Context;
use crate::outcome::Outcome;
use crate::output::quota::{ConfiguredQuota, SetQuota};

/// The commented example. `docs/quota.md` has the same text.
pub const EXAMPLE: &str = include_str!("example.jsonc");

/// Write an example of a token quota to your configuration
///
/// Adds `quota`, with comments, to config.json in the home directory of blackboard, and keeps everything else there. If it
/// has a quota already, it is not changed (exit 4). Edit the budgets afterward.
///
/// Examples:
///   blackboard quota init
///   blackboard quota init --json
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Init {}

impl Run for Init {
    fn run(self, context: &Context) -> Result<Outcome> {
        let file = home_config(context)?;
        let _lock = edit::lock(&file)?;
        let before = edit::read(&file)?;
        let Some(text) = edit::with_example(&file, &before, EXAMPLE)? else {
            let message = format!("{} has a quota already", printable(&file));
            if let Err(error) = edit::quota_in(&before) {
                return Err(Refusal::new(
                    Code::AlreadyExists,
                    format!("{message}, which is not valid: {error}"),
                )
                .hint("correct it by hand, or remove it")
                .into());
            }
            return Err(Refusal::new(Code::AlreadyExists, message)
                .hint("change a value: blackboard quota set KEY VALUE")
                .into());
        };
        let quota = edit::quota_in(&text)?;
        edit::write(&file, &text)?;
        Ok(Outcome::new(ConfiguredQuota(SetQuota { file: printable(&file), key: None, quota })))
    }
}
