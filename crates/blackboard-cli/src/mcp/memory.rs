//! Memory: recall what agents remembered.

use blackboard::clock::{Clock, SystemClock};
use blackboard::memory::Recall as Asked;
use blackboard::{Result, Revision};
use rmcp::schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::reply::Reply;
use super::tools::{Arguments, Call, Tool};
use crate::hooks::messages::quoted_records;
use crate::output::time;

/// The default and the maximum number of tokens of an answer.
const TOKENS: u64 = 1_000;
const MOST: u64 = 8_000;

/// The most records of an answer.
const LIMIT: usize = 50;

/// Recall decisions, traps and commands that agents remembered, best first.
#[derive(Clone, Deserialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
#[serde(deny_unknown_fields)]
pub struct Recall {
    words: Option<String>,
    level: Option<String>,
    /// Has all of these tags
    #[serde(default)]
    tags: Vec<String>,
    /// At most 8000; default 1000
    tokens: Option<u64>,
}

impl Arguments for Recall {
    const NAME: &'static str = "recall";
    const READS: bool = true;
}

#[derive(Serialize)]
struct RecallReply {
    total: usize,
    tokens: u64,
    keys: Vec<String>,
    /// The records in a quote block.
    text: String,
    revision: Revision,
}

impl Tool for Recall {
    fn call(self, call: &Call) -> Result<Reply> {
        let (board, _) = call.reading()?;
        let words = self.words.filter(|words| !words.trim().is_empty());
        let recalled = board.memories().recall(
            &Asked {
                words,
                levels: self.level.into_iter().collect(),
                all_tags: self.tags,
                limit: Some(LIMIT),
                tokens: Some(self.tokens.unwrap_or(TOKENS).min(MOST)),
                ..Asked::default()
            },
            &call.state.search_index(),
        )?;
        let now = SystemClock.now();
        let lines = recalled.records.iter().map(|record| {
            let age = time::age(now.since(record.remembered_at));
            (record.text.as_str(), format!("{}, {age} ago by {}", record.key, record.remembered_by))
        });
        let says = format!("{} of {} records.", recalled.records.len(), recalled.total);
        Reply::new(&RecallReply {
            total: recalled.total,
            tokens: recalled.tokens,
            text: quoted_records(&says, lines),
            keys: recalled.records.iter().map(|record| record.key.clone()).collect(),
            revision: recalled.revision,
        })
    }
}
