//! `blackboard search`

use blackboard::Result;
use blackboard::clock::{Clock, SystemClock};
use blackboard::duration::parse_since;
use blackboard::search::{Kind, Query};

use crate::commands::Run;
use crate::commands::arguments::{ReadAs, at_least_one, trimmed};
use crate::context::Context;
use crate::open::Access;
use crate::outcome::Outcome;
use crate::output::search::SearchAnswer;

/// Search entries, work items, progress and events
///
/// Finds what has one of the words, the best first. Endings of words do not matter, and a word finds identifiers that
/// have it as a part. Words of a question that say nothing about its subject are ignored.
///
/// Examples:
///   blackboard search login retry
///   blackboard search 'why do migrations lock the table?' --kind entry
///   blackboard search deploy --tag decision --since 7d --json
///   blackboard search login --tokens 800
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Search {
    /// Words to look for; auth* finds words that begin with auth
    #[arg(value_name = "WORDS", required = true)]
    words: Vec<String>,

    /// Only entries of this scope; repeatable
    #[arg(short = 'S', long = "scope", value_name = "NAME")]
    scopes: Vec<String>,

    /// Only what has this tag or label; repeatable, all must match
    #[arg(long = "tag", value_name = "TAG", value_delimiter = ',', value_parser = trimmed::<String>)]
    tags: Vec<String>,

    /// Only entries last written by this author, and work items of this agent
    #[arg(long, value_name = "NAME")]
    author: Option<String>,

    /// Only what is newer: 90s, 15m, 1h, 2d, or an ISO 8601 time
    #[arg(long, value_name = "WHEN", allow_hyphen_values = true)]
    since: Option<String>,

    /// Only this kind: entry, work or event; repeatable
    #[arg(long = "kind", value_name = "KIND", value_delimiter = ',', value_parser = trimmed::<Kind>)]
    kinds: Vec<Kind>,

    /// Maximum number of results [default: 10]
    #[arg(short = 'n', long, value_name = "N", value_parser = at_least_one)]
    limit: Option<usize>,

    /// Print the best texts that fit into N tokens, quoted for a model
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    tokens: Option<usize>,

    #[command(flatten)]
    reader: ReadAs,
}

impl Run for Search {
    fn run(self, context: &Context) -> Result<Outcome> {
        let since = self.since.map(|since| parse_since(&since, SystemClock.now())).transpose()?;
        let board = self.reader.apply(context.open(Access::read())?)?;
        let default = if self.tokens.is_some() { RESULTS_TO_PACK } else { Query::DEFAULT_LIMIT };
        let query = Query {
            scopes: (!self.scopes.is_empty()).then_some(self.scopes),
            kinds: self.kinds,
            tags: self.tags,
            author: self.author,
            since,
            limit: self.limit.unwrap_or(default),
            with_text: self.tokens.is_some(),
            ..Query::new(&self.words.join(" "))
        };
        let found = board.search(&query, &context.search_index()?)?;
        if let Some(behind) = found.behind {
            let missing = if behind.building {
                "the search index is new and not complete yet".to_owned()
            } else {
                format!("the search index misses the last {} events", behind.events)
            };
            context.note(&format!("{missing}; search again to continue"));
        }
        if let Some(reason) = &found.not_stored {
            context.note(&format!("the search index cannot be stored: {reason}"));
        }
        Ok(Outcome::new(SearchAnswer::new(found, self.tokens)))
    }
}

/// How many results are considered for a number of tokens.
const RESULTS_TO_PACK: usize = 50;
