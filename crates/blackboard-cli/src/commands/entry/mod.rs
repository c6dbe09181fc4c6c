//! Commands on entries: facts that agents share, each a JSON value under a key of a scope.

pub mod append;
pub mod clear;
pub mod delete;
pub mod history;
pub mod increment;
pub mod input;
pub mod list;
pub mod purge;
pub mod query;
pub mod read;
pub mod snapshot;
pub mod txn;
pub mod wait;
pub mod write;

use blackboard::Result;
use blackboard::clock::{Clock, SystemClock};
use blackboard::duration::parse_since;
use blackboard::entry::{Glob, Query};

use crate::commands::arguments::trimmed;
use crate::context::Context;

/// Which entries, beside the pattern that their keys fit. Every condition has to hold.
#[derive(clap::Args, Debug)]
pub struct Matching {
    /// Only keys that start with this text
    #[arg(long, value_name = "TEXT")]
    prefix: Option<String>,

    /// Tag; repeatable, all must match
    #[arg(long = "tag", value_name = "TAG", value_delimiter = ',', value_parser = trimmed::<String>)]
    tags: Vec<String>,

    /// Only entries last written by this author (agent name, not a session id)
    #[arg(long, value_name = "NAME")]
    author: Option<String>,

    /// Only what is newer: 90s, 15m, 1h, 2d, or an ISO 8601 time
    #[arg(long, value_name = "WHEN", allow_hyphen_values = true)]
    since: Option<String>,
}

/// Notes that a pattern has a `[` that is not closed: it is no error, and no key that a command writes has one.
fn note_unclosed_class(context: &Context, pattern: Option<&str>) {
    if pattern.is_some_and(|pattern| Glob::new(pattern).has_unclosed_class()) {
        context.note("the [ in the pattern is not closed, so it matches itself");
    }
}

impl Matching {
    fn query(self, pattern: Option<String>) -> Result<Query> {
        let since = self.since.map(|since| parse_since(&since, SystemClock.now())).transpose()?;
        let Matching { prefix, tags, author, .. } = self;
        Ok(Query { pattern, prefix, tags, author, updated_since: since, ..Query::default() })
    }
}
