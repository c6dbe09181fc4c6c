//! `blackboard append`

use blackboard::Result;

use super::input::ValueInput;
use crate::commands::Run;
use crate::commands::arguments::{ScopeOption, WriteOptions};
use crate::context::Context;
use crate::open::Access;
use crate::outcome::Outcome;
use crate::output::entry::WrittenEntry;

/// Add a value at the end of the array under a key
///
/// Nobody has to read the array first, so that many can append at once and nothing is lost. If there is no such key, an
/// array is started. Tags, metadata and the time to live stay as they are. A repeated append counts twice, unless both
/// have the same --op.
///
/// Examples:
///   blackboard append trace:a1b2 '{"action":"delegate_task","status":"running"}'
///   blackboard append notes "the tests are slow" --op note-7
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Append {
    /// The key
    key: String,

    #[command(flatten)]
    given: ValueInput,

    #[command(flatten)]
    scope: ScopeOption,

    #[command(flatten)]
    acting: WriteOptions,
}

impl Run for Append {
    fn run(self, context: &Context) -> Result<Outcome> {
        let scope = context.scope(&self.scope)?;
        let item = self.given.value("append", context.max_value_bytes()?)?;
        let (board, session) = context.open(Access::write(self.acting.session.named()))?;
        let by = self.acting.by(session)?;
        Ok(Outcome::new(WrittenEntry(board.scope(&scope).acting_as(by).append(&self.key, &item)?)))
    }
}
