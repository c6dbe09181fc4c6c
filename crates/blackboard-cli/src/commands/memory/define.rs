//! `blackboard memory define`

use blackboard::memory::{Define as Asked, LevelRules, Relevance};
use blackboard::{Code, Refusal, Result};

use super::relevance;
use crate::commands::Run;
use crate::commands::arguments::{Session, length, trimmed};
use crate::context::Context;
use crate::open::Access;
use crate::outcome::Outcome;
use crate::output::memory::DefinedLevels;

/// Define a level of memory, or create the usual levels
///
/// Without a name, creates the levels working, short-term, episodic, semantic, procedural and collective, as far as they
/// do not exist. With a name, sets all rules of that level: rules that are not given are removed. Rules that would form a
/// cycle are refused (exit 4).
///
/// Examples:
///   blackboard memory define
///   blackboard memory define traps --half-life 30d --max-tokens 4000
///   blackboard memory define notes --ttl 1h --next semantic --at-end collective
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Define {
    /// Name of the level [default: the usual levels]
    #[arg(value_name = "LEVEL")]
    level: Option<String>,

    /// Pattern of the keys that belong to the level; repeatable [default: all keys]
    #[arg(long = "pattern", value_name = "PATTERN")]
    patterns: Vec<String>,

    /// Records belong to the session that remembers them, and leave the level when it ends
    #[arg(long)]
    per_session: bool,

    /// Time after which records move to a next level, or expire if there is none: 90s, 15m, 1h, 2d
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true)]
    ttl: Option<String>,

    /// Number of records above which they move on, or are offered for a summary
    #[arg(long, value_name = "N")]
    max_entries: Option<u64>,

    /// Number of tokens of which records are offered for a summary from 90 % on
    #[arg(long, value_name = "N")]
    max_tokens: Option<u64>,

    /// Time after which the relevance of a record counts half
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true)]
    half_life: Option<String>,

    /// Least relevance of records that other levels pass on: 0 to 1
    #[arg(long, value_name = "R", value_parser = relevance)]
    min_relevance: Option<Relevance>,

    /// Tag of records that the level does not take from others; repeatable
    #[arg(long = "without-tag", value_name = "TAG", value_delimiter = ',', value_parser = trimmed::<String>)]
    without_tags: Vec<String>,

    /// Takes records when another level has this many new ones
    #[arg(long, value_name = "N")]
    takes_at: Option<u64>,

    /// Takes records when the oldest new one of another level has this age
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true)]
    takes_after: Option<String>,

    /// Takes summaries from other levels, not records
    #[arg(long)]
    by_summary: bool,

    /// Level to which records move; repeatable, the first that takes a record gets it
    #[arg(long = "next", value_name = "LEVEL", value_delimiter = ',', value_parser = trimmed::<String>)]
    next: Vec<String>,

    /// Level that is first offered the records of a session that ends
    #[arg(long, value_name = "LEVEL")]
    at_end: Option<String>,

    #[command(flatten)]
    session: Session,
}

impl Run for Define {
    fn run(self, context: &Context) -> Result<Outcome> {
        let rules = LevelRules {
            patterns: self.patterns,
            session: self.per_session,
            ttl: length(self.ttl.as_deref())?,
            max_entries: self.max_entries,
            tokens: self.max_tokens,
            half_life: length(self.half_life.as_deref())?,
            min_relevance: self.min_relevance,
            without_tags: self.without_tags,
            takes_at: self.takes_at,
            takes_after: length(self.takes_after.as_deref())?,
            by_summary: self.by_summary,
            next: self.next,
            at_end: self.at_end,
        };
        if self.level.is_none() && rules != LevelRules::default() {
            let message = "rules require the name of a level";
            return Err(Refusal::new(Code::Usage, message).hint("write LEVEL before the options").into());
        }
        let (board, session) = context.open(Access::write(self.session.named()))?;
        let defined = match self.level {
            Some(name) => board.memories().define(&Asked { name, rules, session })?,
            None => board.memories().define_seed(session.as_deref())?,
        };
        Ok(Outcome::new(DefinedLevels(defined)))
    }
}
