//! `blackboard snapshot`

use blackboard::Result;

use super::{Matching, note_unclosed_class};
use crate::commands::Run;
use crate::commands::arguments::{ReadAs, ScopeOption};
use crate::context::Context;
use crate::open::Access;
use crate::outcome::Outcome;
use crate::output::entry::WholeScope;

/// Print all entries of a scope as one JSON object
///
/// Prints every entry by key, all as of one revision. The output is always JSON; --json prints it on one line.
///
/// Examples:
///   blackboard snapshot > entries.json
///   blackboard snapshot --prefix task: | jq '.[].value.status'
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Snapshot {
    #[command(flatten)]
    which: Matching,

    /// Pattern of the keys: * any characters, ? one, [abc] one of these
    #[arg(long, value_name = "PATTERN")]
    pattern: Option<String>,

    #[command(flatten)]
    reader: ReadAs,

    #[command(flatten)]
    scope: ScopeOption,
}

impl Run for Snapshot {
    fn run(self, context: &Context) -> Result<Outcome> {
        let name = context.scope(&self.scope)?;
        note_unclosed_class(context, self.pattern.as_deref());
        let query = self.which.query(self.pattern)?;
        let board = self.reader.apply(context.open(Access::read())?)?;
        Ok(Outcome::new(WholeScope(board.scope(&name).snapshot(&query)?.entries)))
    }
}
