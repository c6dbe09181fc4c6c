//! What a platform writes about its usage: the common form of all platforms.
//!
//! A platform has a [`UsageFormat`] (`platforms/`), which reads one line at a time. A line has conversation in it. A format
//! parses ids, model, numbers and time of it, and nothing else is ever kept.

use std::path::{Path, PathBuf};

use blackboard::clock::Timestamp;
use blackboard::quota::{Record, Usage};
use serde::{Deserialize, Serialize};

use crate::hooks::request::Names;

/// Where a platform writes its usage, and how.
pub struct UsageFormat {
    /// The field of a hook's input with the file of the session.
    pub transcript: Names,
    /// The field with the file of the subagent.
    pub delegate_transcript: Names,
    /// The field with a list of messages, of a platform that writes no file.
    pub messages: Names,
    /// The directory with the files of subagents, from the file of their session.
    pub delegates: Option<fn(&Path) -> PathBuf>,
    /// The file of a session in the directory of the platform, if not every hook names it.
    pub usual_transcript: Option<fn(&str) -> PathBuf>,
    /// Reads a line, or a message.
    pub read: fn(&str, &mut Reading),
}

impl UsageFormat {
    /// A file of lines that hooks name.
    pub const fn lines(read: fn(&str, &mut Reading)) -> UsageFormat {
        UsageFormat {
            transcript: &["transcript_path"],
            delegate_transcript: &["agent_transcript_path"],
            messages: &[],
            delegates: None,
            usual_transcript: None,
            read,
        }
    }
}

/// What was read of some lines.
#[derive(Default)]
pub struct Reading {
    /// What the reader knows from earlier lines.
    pub context: ReadingContext,
    /// The messages in the order of their lines, each id once: the last line of a call has its newest numbers. The ledger counts the
    /// largest ones of all calls.
    pub messages: Vec<MessageUsage>,
    /// The limits that the platform reports.
    pub limits: Vec<LimitReport>,
    /// How many messages were ignored because of their numbers.
    pub ignored: u64,
}

/// What a reader knows from earlier lines of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReadingContext {
    /// The model of the following messages, if their lines do not have it.
    pub model: Option<String>,
    /// The platform's own id of the file.
    pub thread: Option<String>,
    /// Whether the file has the better of two kinds of line, so that the other kind is not counted.
    pub has_records: bool,
}

/// The usage of a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessageUsage {
    /// The platform and its own id of the message.
    pub id: String,
    /// The model; empty if it is not known.
    pub model: String,
    /// When it ended, in milliseconds.
    pub at: i64,
    /// What it used.
    pub usage: Usage,
}

/// A limit that a platform reports, of the account that a model belongs to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LimitReport {
    /// The model; empty if it is not known.
    pub model: String,
    /// The length of the window, in minutes.
    pub window_minutes: u64,
    /// How much of it is used, in percent.
    pub used_percent: f64,
    /// When it resets, in milliseconds.
    pub resets_at: i64,
    /// When it was reported, in milliseconds.
    pub at: i64,
}

impl Reading {
    /// The same with what is known from earlier lines.
    pub fn after(context: ReadingContext) -> Reading {
        Reading { context, ..Reading::default() }
    }

    /// Whether nothing was found.
    pub fn is_empty(&self) -> bool {
        self.messages.is_empty() && self.limits.is_empty()
    }

    /// Adds a message. One without a usable id or time, without usage or with numbers that no message has is ignored.
    pub fn add(&mut self, id: String, model: Option<&str>, at: Option<Timestamp>, usage: Usage) {
        let Some(at) = at else { return };
        let model = model.unwrap_or_default();
        // The provider is found later, and any name is usable here.
        let record = Record { model: model.to_owned(), ..Record::new(id, "any", at, usage) };
        if usage.total() == 0 {
            return;
        }
        if record.check().is_err() {
            self.ignored += u64::from(Record::new("any", "any", at, usage).check().is_err());
            return;
        }
        let message = MessageUsage { id: record.id, model: record.model, at: at.millis(), usage };
        // A message with several parts has a line for each of them, one after another.
        let known = self.messages.iter_mut().rev().take(MOST_PARTS).find(|known| known.id == message.id);
        match known {
            Some(known) => *known = message,
            None => self.messages.push(message),
        }
    }
}

/// How many messages are compared with a new one. The ledger compares all.
const MOST_PARTS: usize = 16;

/// The moment in an ISO 8601 text.
pub fn moment(text: Option<&str>) -> Option<Timestamp> {
    text.filter(|text| text.len() <= 64).and_then(|text| text.parse().ok())
}
