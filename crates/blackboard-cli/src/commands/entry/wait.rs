//! `blackboard wait`

use blackboard::entry::{Actor, WaitFor};
use blackboard::{Result, Revision};

use crate::commands::Run;
use crate::commands::arguments::{ReadAs, ScopeOption, length, limit, revision};
use crate::context::Context;
use crate::open::Access;
use crate::outcome::Outcome;
use crate::output::entry::{BareValue, RawText, ReadEntry};

/// Wait for a key to be written
///
/// Returns at once if the key exists; otherwise waits until any process writes it, then prints the entry. --after
/// waits for a write after that revision. Exits with 6 when --timeout expires; without it, waits indefinitely.
///
/// Examples:
///   blackboard wait task:q4 --timeout 10m
///   blackboard wait result:log --raw
///   revision=$(blackboard read counter --json | jq .revision)
///   blackboard wait counter --after "$revision" --timeout 1s
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Wait {
    /// Key
    #[arg(value_name = "KEY")]
    key: String,

    /// Print the value only, unchanged
    #[arg(long)]
    value: bool,

    /// Print the value only, and a string without its quotes
    #[arg(short = 'r', long, conflicts_with = "value")]
    raw: bool,

    /// Give up after this long
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true)]
    timeout: Option<String>,

    /// Wait for a write after this revision
    #[arg(long, value_name = "REVISION", value_parser = revision)]
    after: Option<Revision>,

    #[command(flatten)]
    reader: ReadAs,

    #[command(flatten)]
    scope: ScopeOption,
}

impl Run for Wait {
    fn run(self, context: &Context) -> Result<Outcome> {
        let timeout = length(self.timeout.as_deref())?;
        let _limit = limit(timeout);
        let scope = context.scope(&self.scope)?;
        let (board, session) = context.open(Access::follow(None))?;
        let board = self.reader.apply(board)?;
        let session = session.filter(|_| !self.reader.is_given());
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
