//! [`Usage`]: the numbers of a message; [`Record`]: a message that used them.

use serde::{Deserialize, Serialize};

use super::config::Config;
use crate::clock::Timestamp;
use crate::error::{Error, Result};
use crate::text::{escape_for_terminal, grouped, shown};

/// The most tokens of a message. More is an error of the program that reports it: models accept a few million.
const MOST_TOKENS: u64 = 20_000_000;
const LONGEST_ID: usize = 500;
const LONGEST_NAME: usize = 200;
const LONGEST_BOARD: usize = 4096;

/// Tokens of one or more messages. No number contains another one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Usage {
    /// Input that was neither read from a cache nor written to it.
    pub input: u64,
    /// Input that was written to a cache.
    pub cache_write: u64,
    /// Input that was read from a cache.
    pub cache_read: u64,
    /// Output without reasoning.
    pub output: u64,
    /// Reasoning.
    pub reasoning: u64,
}

/// A message of a model, and its usage.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// The id of the message. A second record with the same id is not counted.
    pub id: String,
    /// The provider, as the configuration names it.
    pub provider: String,
    /// The model; empty if it is not known.
    pub model: String,
    /// The board of the session.
    pub board: Option<String>,
    /// The session.
    pub session: Option<String>,
    /// The name of the agent.
    pub agent: Option<String>,
    /// The work item.
    pub item: Option<String>,
    /// When the message ended.
    pub at: Timestamp,
    /// What it used.
    pub usage: Usage,
}

impl Usage {
    /// The numbers in the order of the columns.
    pub(super) fn numbers(&self) -> [u64; 5] {
        [self.input, self.cache_write, self.cache_read, self.output, self.reasoning]
    }

    /// All tokens, each counted as one.
    pub fn total(&self) -> u64 {
        self.numbers().into_iter().fold(0, u64::saturating_add)
    }

    /// What counts against a budget: caches count with their factors.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "numbers of tokens are far below 2^52, and factors are not negative"
    )]
    pub fn counted(&self, config: &Config) -> u64 {
        let cached = |tokens: u64, factor: f64| (tokens as f64 * factor).ceil() as u64;
        self.input
            .saturating_add(cached(self.cache_write, config.cache_write_factor()))
            .saturating_add(cached(self.cache_read, config.cache_read_factor()))
            .saturating_add(self.output)
            .saturating_add(self.reasoning)
    }

    /// Adds another usage.
    pub fn add(&mut self, other: &Usage) {
        self.input = self.input.saturating_add(other.input);
        self.cache_write = self.cache_write.saturating_add(other.cache_write);
        self.cache_read = self.cache_read.saturating_add(other.cache_read);
        self.output = self.output.saturating_add(other.output);
        self.reasoning = self.reasoning.saturating_add(other.reasoning);
    }

    /// The larger number of each kind.
    pub(super) fn largest(&self, other: &Usage) -> Usage {
        Usage {
            input: self.input.max(other.input),
            cache_write: self.cache_write.max(other.cache_write),
            cache_read: self.cache_read.max(other.cache_read),
            output: self.output.max(other.output),
            reasoning: self.reasoning.max(other.reasoning),
        }
    }

    /// What is left without a part of it.
    pub(super) fn without(&self, part: &Usage) -> Usage {
        Usage {
            input: self.input.saturating_sub(part.input),
            cache_write: self.cache_write.saturating_sub(part.cache_write),
            cache_read: self.cache_read.saturating_sub(part.cache_read),
            output: self.output.saturating_sub(part.output),
            reasoning: self.reasoning.saturating_sub(part.reasoning),
        }
    }

    /// The numbers of a row that has them from this column on.
    pub(super) fn of_row(row: &rusqlite::Row<'_>, first: usize) -> rusqlite::Result<Usage> {
        let number = |column: usize| -> rusqlite::Result<u64> {
            let number: i64 = row.get(first + column)?;
            u64::try_from(number)
                .map_err(|_| rusqlite::Error::IntegralValueOutOfRange(first + column, number))
        };
        Ok(Usage {
            input: number(0)?,
            cache_write: number(1)?,
            cache_read: number(2)?,
            output: number(3)?,
            reasoning: number(4)?,
        })
    }
}

impl Record {
    /// A record without model, session and work item.
    pub fn new(id: impl Into<String>, provider: impl Into<String>, at: Timestamp, usage: Usage) -> Record {
        Record {
            id: id.into(),
            provider: provider.into(),
            model: String::new(),
            board: None,
            session: None,
            agent: None,
            item: None,
            at,
            usage,
        }
    }

    /// Refuses what no platform reports. [`Ledger::record`](super::Ledger::record) does the same, for all of its records.
    pub fn check(&self) -> Result<()> {
        check_text("id", &self.id, LONGEST_ID)?;
        check_text("provider", &self.provider, LONGEST_NAME)?;
        if !self.model.is_empty() {
            check_text("model", &self.model, LONGEST_NAME)?;
        }
        check_origin(
            self.board.as_deref(),
            self.session.as_deref(),
            self.agent.as_deref(),
            self.item.as_deref(),
        )?;
        let total = self.usage.total();
        if total > MOST_TOKENS {
            let (total, most) = (grouped(total), grouped(MOST_TOKENS));
            return Err(Error::invalid(format!(
                "a message has at most {most} tokens, and this one has {total}"
            )));
        }
        Ok(())
    }
}

/// Refuses names that cannot be shown.
pub(super) fn check_origin(
    board: Option<&str>,
    session: Option<&str>,
    agent: Option<&str>,
    item: Option<&str>,
) -> Result<()> {
    let named =
        |what, text: Option<&str>, longest| text.map_or(Ok(()), |text| check_text(what, text, longest));
    named("board", board, LONGEST_BOARD)?;
    named("session", session, LONGEST_NAME)?;
    named("agent name", agent, LONGEST_NAME)?;
    named("work item", item, LONGEST_NAME)
}

/// Refuses an empty or long text, and one with characters that cannot be seen.
pub(super) fn check_text(what: &str, text: &str, longest: usize) -> Result<()> {
    if text.is_empty() {
        return Err(Error::invalid(format!("the {what} is empty")));
    }
    if text.len() > longest {
        return Err(Error::invalid(format!("the {what} is longer than {longest} bytes")));
    }
    if escape_for_terminal(text) != text {
        let problem = "has a character that is invisible or controls a terminal";
        return Err(Error::invalid(format!("the {what} {problem}: \"{}\"", shown(text))));
    }
    Ok(())
}
