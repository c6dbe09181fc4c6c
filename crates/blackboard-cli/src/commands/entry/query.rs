//! `blackboard query`

use blackboard::Result;
use blackboard::entry::{DEFAULT_LIMIT, Order, Query as Asked};

use super::{Matching, note_unclosed_class};
use crate::commands::Run;
use crate::commands::arguments::{ReadAs, ScopeOption, at_least_one};
use crate::context::Context;
use crate::open::Access;
use crate::outcome::Outcome;
use crate::output::ListPage;
use crate::output::entry::EntryList;

/// Find entries by pattern, tag, author or time
///
/// Prints one page of matching entries, last written first. If there are more, the last line gives the --after option
/// for the next page.
///
/// Examples:
///   blackboard query 'task:*' --tag finance --limit 50
///   blackboard query --prefix task: --order key --after task:q3
///   blackboard query --author cli --since 1h --json
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Query {
    /// Pattern of the keys: * any characters, ? one, [abc] one of these
    #[arg(value_name = "PATTERN")]
    pattern: Option<String>,

    #[command(flatten)]
    which: Matching,

    /// Maximum number of results
    #[arg(short = 'n', long, value_name = "N", value_parser = at_least_one, default_value_t = DEFAULT_LIMIT)]
    limit: usize,

    /// Number of results to skip
    #[arg(long, value_name = "N", default_value_t = 0)]
    offset: usize,

    /// Order of the results: newest or key
    #[arg(long, value_parser = order, default_value = "newest", value_name = "ORDER")]
    order: Order,

    /// Page token printed with the previous page
    #[arg(long, value_name = "TOKEN")]
    after: Option<String>,

    #[command(flatten)]
    reader: ReadAs,

    #[command(flatten)]
    scope: ScopeOption,
}

impl Run for Query {
    fn run(self, context: &Context) -> Result<Outcome> {
        let name = context.scope(&self.scope)?;
        note_unclosed_class(context, self.pattern.as_deref());
        let query = Asked {
            order: self.order,
            limit: Some(self.limit),
            offset: self.offset,
            after: self.after,
            ..self.which.query(self.pattern)?
        };
        let board = self.reader.apply(context.open(Access::read())?)?;
        let page = board.scope(&name).query(&query)?;
        let (next, revision) = (page.next, page.revision);
        let entries = ListPage::first(page.entries, None);
        Ok(Outcome::new(EntryList { entries, next, revision }))
    }
}

fn order(text: &str) -> Result<Order, String> {
    match text {
        "newest" => Ok(Order::Newest),
        "key" => Ok(Order::Key),
        _ => Err("allowed: newest, key".to_owned()),
    }
}
