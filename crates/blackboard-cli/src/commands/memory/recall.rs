//! `blackboard memory recall`

use blackboard::Result;
use blackboard::clock::{Clock, SystemClock};
use blackboard::duration::parse_since;
use blackboard::memory::{Lens, Recall as Asked, Relevance};

use super::relevance;
use crate::commands::Run;
use crate::commands::arguments::{ReadAs, at_least_one, trimmed};
use crate::context::Context;
use crate::open::Access;
use crate::outcome::Outcome;
use crate::output::memory::{RecalledForModel, RecalledRecords};

/// Recall what is remembered
///
/// Finds records by words, tags, time and key, the best first. The score combines the words, the relevance that age has
/// left, and the ratings of `memory feedback`. With --tokens, prints as many records as the budget allows, marked as data
/// for a model.
///
/// Examples:
///   blackboard memory recall login tests
///   blackboard memory recall --tag trap --not-tag old --since 7d
///   blackboard memory recall release --tokens 500
///   blackboard memory recall --lens skills
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Recall {
    /// Words, of which a record has at least one
    #[arg(value_name = "WORDS")]
    words: Vec<String>,

    /// Level; repeatable [default: all]
    #[arg(long = "level", value_name = "LEVEL", value_delimiter = ',', value_parser = trimmed::<String>)]
    levels: Vec<String>,

    /// Tag; repeatable, all must match
    #[arg(long = "tag", value_name = "TAG", value_delimiter = ',', value_parser = trimmed::<String>)]
    tags: Vec<String>,

    /// Tag; repeatable, one must match
    #[arg(long = "any-tag", value_name = "TAG", value_delimiter = ',', value_parser = trimmed::<String>)]
    any_tags: Vec<String>,

    /// Tag; repeatable, none may match
    #[arg(long = "not-tag", value_name = "TAG", value_delimiter = ',', value_parser = trimmed::<String>)]
    no_tags: Vec<String>,

    /// Only what was remembered since then: 90s, 15m, 1h, 2d, or an ISO 8601 time
    #[arg(long, value_name = "WHEN", allow_hyphen_values = true)]
    since: Option<String>,

    /// Only what was remembered before then: 90s, 15m, 1h, 2d ago, or an ISO 8601 time
    #[arg(long, value_name = "WHEN", allow_hyphen_values = true)]
    until: Option<String>,

    /// Pattern of the keys: * any characters, ? one, [abc] one of these
    #[arg(long, value_name = "PATTERN")]
    pattern: Option<String>,

    /// Least relevance that age has left: 0 to 1
    #[arg(long, value_name = "R", value_parser = relevance)]
    min_relevance: Option<Relevance>,

    /// Levels, time and number for a purpose: planning, reflection or skills
    #[arg(long, value_name = "LENS")]
    lens: Option<Lens>,

    /// Maximum number of results [default: 10, or that of the lens]
    #[arg(short = 'n', long, value_name = "N", value_parser = at_least_one)]
    limit: Option<usize>,

    /// Maximum number of tokens of the results
    #[arg(long, value_name = "N")]
    tokens: Option<u64>,

    #[command(flatten)]
    reader: ReadAs,
}

impl Run for Recall {
    fn run(self, context: &Context) -> Result<Outcome> {
        let moment =
            |text: Option<String>| text.map(|text| parse_since(&text, SystemClock.now())).transpose();
        let words = self.words.join(" ");
        let budget = self.tokens;
        let recall = Asked {
            words: (!words.trim().is_empty()).then_some(words),
            levels: self.levels,
            all_tags: self.tags,
            any_tags: self.any_tags,
            no_tags: self.no_tags,
            since: moment(self.since)?,
            until: moment(self.until)?,
            pattern: self.pattern,
            min_relevance: self.min_relevance,
            lens: self.lens,
            limit: self.limit,
            tokens: budget,
            catch_up: None,
        };
        let board = self.reader.apply(context.open(Access::read())?)?;
        let recalled = board.memories().recall(&recall, &context.search_index()?)?;
        Ok(match budget {
            Some(_) => Outcome::new(RecalledForModel(recalled)),
            None => Outcome::new(RecalledRecords(recalled)),
        })
    }
}
