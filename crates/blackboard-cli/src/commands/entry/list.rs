//! `blackboard list`

use blackboard::Result;
use blackboard::entry::{Order, Query};

use super::Matching;
use crate::commands::Run;
use crate::commands::arguments::{ScopeOption, at_least_one};
use crate::context::Context;
use crate::open::Access;
use crate::outcome::Outcome;
use crate::output::entry::{EntryList, KeyList};

/// List keys
///
/// All of them, sorted, with the seconds that are left to those with a time to live. With --json it is an array of keys.
///
/// Examples:
///   blackboard list --prefix task: --tag urgent
///   blackboard list --pattern 'agent:*:results' --long
///   blackboard list --author analyst --since 1h --json
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct List {
    #[command(flatten)]
    which: Matching,

    /// Keys that fit this pattern: * is any characters, ? is one, [abc] is one of these
    #[arg(long, value_name = "GLOB")]
    pattern: Option<String>,

    /// With value, author, version, age, tags
    #[arg(long)]
    long: bool,

    /// No more than this many
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    limit: Option<usize>,

    #[command(flatten)]
    scope: ScopeOption,
}

impl Run for List {
    fn run(self, context: &Context) -> Result<Outcome> {
        let name = context.scope(&self.scope)?;
        let query = self.which.query(self.pattern)?;
        let board = context.open(Access::read())?;
        let scope = board.scope(&name);
        let query = Query { order: Order::Key, limit: self.limit, ..query };
        Ok(match (self.long, self.limit) {
            (true, Some(_)) => {
                let page = scope.query(&query)?;
                Outcome::new(EntryList { entries: page.entries, next: None, revision: page.revision })
            }
            (true, None) => {
                let snapshot = scope.snapshot(&query)?;
                Outcome::new(EntryList { entries: snapshot.entries, next: None, revision: snapshot.revision })
            }
            (false, _) => Outcome::new(KeyList(scope.list(&query)?)),
        })
    }
}
