//! `blackboard read`

use blackboard::{Code, Result, Revision};

use crate::commands::Run;
use crate::commands::arguments::{ReadAs, ScopeOption, revision};
use crate::context::Context;
use crate::open::Access;
use crate::outcome::Outcome;
use crate::output::entry::{BareValue, Missing, RawText, ReadEntry};

/// Read an entry
///
/// Prints the entry, or `null` with exit code 3 if the key does not exist. --value prints the value only; --raw also
/// removes the quotes of a string.
///
/// Examples:
///   blackboard read task:q4
///   blackboard read task:q4 --value | jq .status
///   blackboard read result:log --raw
///   blackboard read task:q4 --as analyst
///   revision=$(blackboard read counter --json | jq .revision)
///   blackboard read counter --as-of "$revision"
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Read {
    /// Key
    #[arg(value_name = "KEY")]
    key: String,

    /// Print the value only, unchanged
    #[arg(long)]
    value: bool,

    /// Print the value only, and a string without its quotes
    #[arg(short = 'r', long, conflicts_with = "value")]
    raw: bool,

    /// Show the entry as of this revision
    #[arg(long, value_name = "REVISION", value_parser = revision)]
    as_of: Option<Revision>,

    #[command(flatten)]
    reader: ReadAs,

    #[command(flatten)]
    scope: ScopeOption,
}

impl Run for Read {
    fn run(self, context: &Context) -> Result<Outcome> {
        let name = context.scope(&self.scope)?;
        let board = self.reader.apply(context.open(Access::read())?)?;
        let scope = board.scope(&name);
        let found = match self.as_of {
            Some(revision) => scope.entry_as_of(&self.key, revision)?,
            None => scope.entry(&self.key)?,
        };
        Ok(match found {
            None => Outcome::new(Missing).that_means(Code::EntryNotFound),
            Some(entry) if self.raw => Outcome::new(RawText(entry.value)),
            Some(entry) if self.value => Outcome::new(BareValue(entry.value)),
            Some(entry) => Outcome::new(ReadEntry(entry)),
        })
    }
}
