//! `blackboard list`

use blackboard::Result;
use blackboard::entry::{CountedEntries, CountedKeys, Order, Query, QueryPage};

use super::{Matching, note_unclosed_class};
use crate::commands::Run;
use crate::commands::arguments::{ReadAs, ScopeOption, at_least_one};
use crate::context::Context;
use crate::open::Access;
use crate::outcome::Outcome;
use crate::output::entry::{EntryList, KeyList};
use crate::output::{ListPage, row_limit};

/// List keys
///
/// Lists the keys of a scope in order, with the TTL that is left. --json prints an array of keys; --long adds values
/// and metadata.
///
/// Examples:
///   blackboard list --prefix task:
///   blackboard list --pattern 'task:*' --long
///   blackboard list --tag finance --since 1h --json
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct List {
    #[command(flatten)]
    which: Matching,

    /// Pattern of the keys: * any characters, ? one, [abc] one of these
    #[arg(long, value_name = "PATTERN")]
    pattern: Option<String>,

    /// Show values, authors, versions, ages and tags
    #[arg(short = 'l', long)]
    long: bool,

    /// Maximum number of results [default: 50 on a terminal, else all]
    #[arg(short = 'n', long, value_name = "N", value_parser = at_least_one)]
    limit: Option<usize>,

    #[command(flatten)]
    reader: ReadAs,

    #[command(flatten)]
    scope: ScopeOption,
}

impl Run for List {
    fn run(self, context: &Context) -> Result<Outcome> {
        let name = context.scope(&self.scope)?;
        note_unclosed_class(context, self.pattern.as_deref());
        let query = self.which.query(self.pattern)?;
        let board = self.reader.apply(context.open(Access::read())?)?;
        let scope = board.scope(&name);
        let limit = row_limit(self.limit, context.json());
        let query = Query { order: Order::Key, limit, ..query };
        // JSON output has the next page instead of the number of all entries, which costs a walk over all of them.
        Ok(match (self.long, limit) {
            (true, Some(_)) if context.json() => {
                let QueryPage { entries, next, revision } = scope.query(&query)?;
                Outcome::new(EntryList { entries: ListPage::first(entries, None), next, revision })
            }
            (true, Some(_)) => {
                let CountedEntries { page: QueryPage { entries, next, revision }, total } =
                    scope.query_counted(&query)?;
                Outcome::new(EntryList { entries: ListPage::of(entries, total), next, revision })
            }
            (true, None) => {
                let snapshot = scope.snapshot(&query)?;
                let entries = ListPage::first(snapshot.entries, None);
                Outcome::new(EntryList { entries, next: None, revision: snapshot.revision })
            }
            (false, _) if context.json() => Outcome::new(KeyList(ListPage::first(scope.list(&query)?, None))),
            (false, _) => {
                let CountedKeys { keys, total } = scope.list_counted(&query)?;
                Outcome::new(KeyList(ListPage::of(keys, total)))
            }
        })
    }
}
