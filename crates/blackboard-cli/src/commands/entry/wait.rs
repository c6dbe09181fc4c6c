//! `blackboard wait`

use blackboard::entry::{Actor, WaitFor};
use blackboard::{Result, Revision};

use crate::commands::Run;
use crate::commands::arguments::{ScopeOption, revision};
use crate::context::Context;
use crate::open::Access;
use crate::outcome::Outcome;
use crate::output::entry::{BareValue, RawText, ReadEntry};

/// Wait until a key is there, and print it
///
/// It ends at once if the key is there already, and else as soon as somebody writes it, from whatever process, and
/// prints what `read` prints. With --after it waits for a write after that revision, such as the one that was read
/// before. When the time is over it ends with exit code 6; without --timeout it waits for ever.
///
/// Examples:
///   blackboard wait result:q4 --timeout 10m
///   blackboard wait signal:ready --value | jq .host
///   blackboard wait config --after 41 --json
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Wait {
    /// The key
    key: String,

    /// The value alone, as it came
    #[arg(long)]
    value: bool,

    /// The value alone, and a string without its quotation marks
    #[arg(long, conflicts_with = "value")]
    raw: bool,

    /// How long, such as 500ms, 30s or 10m
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true)]
    timeout: Option<String>,

    /// Only an entry that was written after this revision
    #[arg(long, value_name = "REVISION", value_parser = revision)]
    after: Option<Revision>,

    #[command(flatten)]
    scope: ScopeOption,
}

impl Run for Wait {
    fn run(self, context: &Context) -> Result<Outcome> {
        let timeout = self.timeout.as_deref().map(blackboard::duration::parse).transpose()?;
        let scope = context.scope(&self.scope)?;
        let (board, session) = context.open(Access::follow(None))?;
        let by = Actor { session, ..Actor::default() };
        let entry =
            board.scope(&scope).acting_as(by).wait(&self.key, &WaitFor { timeout, after: self.after })?;
        Ok(match entry {
            entry if self.raw => Outcome::new(RawText(entry.value)),
            entry if self.value => Outcome::new(BareValue(entry.value)),
            entry => Outcome::new(ReadEntry(entry)),
        })
    }
}
