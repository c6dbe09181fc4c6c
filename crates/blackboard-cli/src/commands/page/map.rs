//! `blackboard page map`

use blackboard::Result;
use blackboard::page::{DEFAULT_TOKENS, Grouping, MapScope};

use crate::commands::Run;
use crate::commands::arguments::Session;
use crate::context::Context;
use crate::open::Access;
use crate::outcome::Outcome;
use crate::output::page::MappedScope;

/// Map a scope into pages of bounded size
///
/// Packs the entries of a scope into pages for the context of a model, now and after every change. Entries that belong
/// together are in the same page. A scope that is mapped already stays as it is.
///
/// Examples:
///   blackboard page map default
///   blackboard page map lessons --by prefix --max-tokens 2000
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Map {
    /// Name of the scope
    #[arg(value_name = "SCOPE")]
    scope: String,

    /// What groups entries: tag (the first three), time (five minutes) or prefix (of the key) [default: tag]
    #[arg(long, value_name = "GROUPING")]
    by: Option<Grouping>,

    /// Maximum number of tokens of a page, estimated [default: 4096]
    #[arg(long, value_name = "N")]
    max_tokens: Option<u64>,

    #[command(flatten)]
    session: Session,
}

const _: () = assert!(DEFAULT_TOKENS == 4096, "the help of --max-tokens names it");

impl Run for Map {
    fn run(self, context: &Context) -> Result<Outcome> {
        let (board, session) = context.open(Access::write(self.session.named()))?;
        let Map { scope, by, max_tokens, .. } = self;
        let mapped = board.pages().map(&MapScope { scope, grouping: by, max_tokens, session })?;
        Ok(Outcome::new(MappedScope(mapped)))
    }
}
