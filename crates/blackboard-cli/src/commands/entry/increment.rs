//! `blackboard increment`

use blackboard::{Code, Result};

use crate::commands::Run;
use crate::commands::arguments::{ScopeOption, WriteOptions};
use crate::context::Context;
use crate::open::Access;
use crate::outcome::Outcome;
use crate::output::entry::CountedEntry;

/// Increment a number
///
/// Adds atomically, so concurrent calls all count; a missing key starts at 0. --by may be negative. A retry counts
/// twice unless it repeats the same --op. Prints the new value; with --json as `value`.
///
/// Examples:
///   blackboard increment tests:run
///   blackboard increment budget:calls --by -3 --op call-17
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Increment {
    /// Key
    #[arg(value_name = "KEY")]
    key: String,

    /// Number to add; may be negative
    #[arg(long, value_name = "N", default_value_t = 1, allow_negative_numbers = true, value_parser = whole_number)]
    by: i64,

    #[command(flatten)]
    scope: ScopeOption,

    #[command(flatten)]
    acting: WriteOptions,
}

impl Run for Increment {
    fn run(self, context: &Context) -> Result<Outcome> {
        let scope = context.scope(&self.scope)?;
        let (board, session) = context.open(Access::write(self.acting.session.named()))?;
        let by = self.acting.by(session)?;
        let scope = board.scope(&scope).acting_as(by);
        let written = scope.increment(&self.key, self.by)?;
        // What this call made of it, whatever others have made of it since.
        let value = match scope.entry_as_of(&self.key, written.revision) {
            Ok(entry) => entry.map(|entry| entry.value),
            // A repeated call may be older than what is kept.
            Err(error) if error.code() == Code::Compacted => None,
            Err(error) => return Err(error),
        };
        Ok(Outcome::new(CountedEntry { written, value }))
    }
}

fn whole_number(text: &str) -> std::result::Result<i64, String> {
    text.parse().map_err(|_| format!("expected a whole number from {} to {}", i64::MIN, i64::MAX))
}
