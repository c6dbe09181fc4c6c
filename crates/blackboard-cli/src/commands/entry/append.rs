//! `blackboard append`

use blackboard::Result;

use super::input::ValueInput;
use crate::commands::Run;
use crate::commands::arguments::{ScopeOption, WriteOptions};
use crate::context::Context;
use crate::open::Access;
use crate::outcome::Outcome;
use crate::output::entry::WrittenEntry;

/// Append a value to an array
///
/// Appends atomically, so concurrent calls lose nothing; a missing key becomes a new array. A retry appends twice
/// unless it repeats the same --op.
///
/// Examples:
///   blackboard append trace:a1 '{"action":"build"}'
///   blackboard append notes "The tests are slow" --op note-7
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Append {
    /// Key
    #[arg(value_name = "KEY")]
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
