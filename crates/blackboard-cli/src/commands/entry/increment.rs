//! `blackboard increment`

use blackboard::{Code, Result};

use crate::commands::Run;
use crate::commands::arguments::{ScopeOption, WriteOptions};
use crate::context::Context;
use crate::open::Access;
use crate::outcome::Outcome;
use crate::output::entry::CountedEntry;

/// Count up the number under a key
///
/// Nobody has to read the number first, so that many can count at once and every one counts. If there is no such key, it
/// starts at zero. Tags, metadata and the time to live stay as they are. A repeated increment counts twice, unless both
/// have the same --op.
///
/// Examples:
///   blackboard increment tests:run
///   blackboard increment budget:calls --by -3 --op call-17
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Increment {
    /// The key
    key: String,

    /// How much, which may be negative
    #[arg(long, value_name = "N", default_value_t = 1, allow_negative_numbers = true)]
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
