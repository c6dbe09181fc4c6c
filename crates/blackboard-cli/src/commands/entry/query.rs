//! `blackboard query`

use blackboard::Result;
use blackboard::entry::{DEFAULT_LIMIT, Order, Query as Asked};

use super::Matching;
use crate::commands::Run;
use crate::commands::arguments::{ScopeOption, at_least_one};
use crate::context::Context;
use crate::open::Access;
use crate::outcome::Outcome;
use crate::output::entry::EntryList;

/// Find entries by pattern, prefix, tags, author and time
///
/// A page of them, what was written last first. If there is more, the answer says with which --after the next page goes
/// on. By key nothing is missed or seen twice, whatever others write in between; newest first, what is written in
/// between comes to the front.
///
/// Examples:
///   blackboard query 'agent:*:results' --tag analysis --limit 50
///   blackboard query --prefix task: --order key --after task:analyze_q4
///   blackboard query --author analyst --since 1h --json
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Query {
    /// Keys that fit this pattern: * is any characters, ? is one, [abc] is one of these
    pattern: Option<String>,

    #[command(flatten)]
    which: Matching,

    /// No more than this many
    #[arg(long, value_name = "N", value_parser = at_least_one, default_value_t = DEFAULT_LIMIT)]
    limit: usize,

    /// Leave out this many first
    #[arg(long, value_name = "N", default_value_t = 0)]
    offset: usize,

    /// In which order: newest or key
    #[arg(long, value_parser = order, default_value = "newest")]
    order: Order,

    /// Go on after a page, where it said
    #[arg(long, value_name = "TOKEN")]
    after: Option<String>,

    #[command(flatten)]
    scope: ScopeOption,
}

impl Run for Query {
    fn run(self, context: &Context) -> Result<Outcome> {
        let name = context.scope(&self.scope)?;
        let query = Asked {
            order: self.order,
            limit: Some(self.limit),
            offset: self.offset,
            after: self.after,
            ..self.which.query(self.pattern)?
        };
        let page = context.open(Access::read())?.scope(&name).query(&query)?;
        let (entries, next, revision) = (page.entries, page.next, page.revision);
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
