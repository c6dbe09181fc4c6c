//! `blackboard read`

use blackboard::{Code, Result, Revision};

use crate::commands::Run;
use crate::commands::arguments::{ScopeOption, revision};
use crate::context::Context;
use crate::open::Access;
use crate::outcome::Outcome;
use crate::output::entry::{BareValue, Missing, RawText, ReadEntry};

/// Show the value under a key
///
/// If there is no such key it prints null, exactly that, and ends with exit code 3. With --json it is the entry itself.
///
/// Examples:
///   blackboard read cache:monthly_metrics
///   blackboard read cache:monthly_metrics --value | jq .revenue
///   blackboard read result:diff --raw
///   blackboard read counter --as-of 41 --json
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Read {
    /// The key
    key: String,

    /// The value alone, as it came
    #[arg(long)]
    value: bool,

    /// The value alone, and a string without its quotation marks
    #[arg(long, conflicts_with = "value")]
    raw: bool,

    /// As it was at this revision of the board
    #[arg(long, value_name = "REVISION", value_parser = revision)]
    as_of: Option<Revision>,

    #[command(flatten)]
    scope: ScopeOption,
}

impl Run for Read {
    fn run(self, context: &Context) -> Result<Outcome> {
        let name = context.scope(&self.scope)?;
        let board = context.open(Access::read())?;
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
