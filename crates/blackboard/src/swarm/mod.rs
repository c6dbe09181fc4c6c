//! `swarm-blackboard.md`: a Markdown file with entries, as other programs write it and people read it.
//!
//! The board is never in this file. [`parse`] reads entries from a file, and [`render`] writes a file from a [`SwarmView`] of
//! the board. Both are pure: text in, values out, and the other way round. Nothing here reads or writes files.
//!
//! Three dialects of the file exist ([`Dialect`]). All have the same sections, and an entry is a heading with its key and a
//! JSON object below it. [`parse`] reads all of them, also mixed in one file.
//!
//! A rendered file has markers in each section. The text between them belongs to the board and is replaced by the next
//! render. All other text belongs to the people who wrote it, and stays byte for byte.
//!
//! | File | What it is about |
//! |---|---|
//! | `parse.rs`, `render.rs` | from text, to text |
//! | `document.rs`, `fence.rs` | lines, headings, markers and code blocks, which both use |
//! | `fields.rs` | the JSON of one entry |
//! | `view.rs` | what a render shows of the board |

mod document;
mod fence;
mod fields;
mod parse;
mod render;
mod view;

#[cfg(test)]
mod tests;

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::Serialize;

pub(crate) use self::fields::{IMPORTED, Known, read_entry, time_of_entry};
pub use self::parse::parse;
pub use self::render::{LeftEntry, LeftReason, Rendered, render};
pub use self::view::SwarmView;
use crate::clock::Timestamp;
use crate::entry::Value;
use crate::error::Error;
use crate::metadata::Metadata;

/// The most bytes of a file that is read.
pub const MAX_FILE_BYTES: usize = 256 * 1024 * 1024;

/// The most entries of a file that are read.
pub const MAX_ENTRIES: usize = 1_000_000;

/// How many problems and how many notes of a file are reported. The rest is counted.
pub const MAX_REPORTED: usize = 1000;

/// A form of the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub enum Dialect {
    /// JSON directly below the heading, `source_agent`, times with microseconds and `+00:00`.
    #[default]
    A,
    /// As A, with `sourceAgent`, and times with milliseconds and `Z`.
    B,
    /// A `Content Hash:` line, each entry in a fenced block, with its `version`.
    C,
}

impl Dialect {
    /// All of them.
    pub const ALL: [Dialect; 3] = [Dialect::A, Dialect::B, Dialect::C];

    /// Its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Dialect::A => "A",
            Dialect::B => "B",
            Dialect::C => "C",
        }
    }
}

impl fmt::Display for Dialect {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl FromStr for Dialect {
    type Err = Error;

    fn from_str(text: &str) -> Result<Dialect, Error> {
        Dialect::ALL
            .into_iter()
            .find(|dialect| dialect.as_str().eq_ignore_ascii_case(text))
            .ok_or_else(|| Error::invalid("the dialect is A, B or C"))
    }
}

/// An entry in a file: of the Markdown, of a snapshot, or of an export.
#[derive(Clone, Debug, PartialEq)]
pub struct FileEntry {
    /// Its scope, if the file names one.
    pub scope: Option<String>,
    /// Its key. It may be one that a board refuses.
    pub key: String,
    /// Its value.
    pub value: Value,
    /// Its author.
    pub author: Option<String>,
    /// When it was written.
    pub timestamp: Option<Timestamp>,
    /// Its time to live, which starts at `timestamp`.
    pub ttl: Option<Duration>,
    /// Its version.
    pub version: Option<u64>,
    /// Its tags, if the file has them.
    pub tags: Option<Vec<String>>,
    /// Its metadata, if the file has it.
    pub metadata: Option<Metadata>,
    /// Whether a session held it.
    pub is_leased: bool,
    /// The members of the entry that have no meaning here.
    pub others: Option<Metadata>,
    /// The line on which it starts; 1 in a file of one line.
    pub line: usize,
}

impl FileEntry {
    /// An entry with nothing but its key and its value.
    pub fn new(key: &str, value: Value) -> FileEntry {
        FileEntry {
            scope: None,
            key: key.to_owned(),
            value,
            author: None,
            timestamp: None,
            ttl: None,
            version: None,
            tags: None,
            metadata: None,
            is_leased: false,
            others: None,
            line: 1,
        }
    }
}

/// What is wrong with a part of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// The line.
    pub line: usize,
    /// What is wrong.
    pub problem: String,
}

/// Text in a file that is no part of an entry and was not rendered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Note {
    /// The heading of its section; empty before the first one.
    pub section: String,
    /// Its first line.
    pub line: usize,
    /// How many lines it has.
    pub lines: usize,
    /// Its beginning.
    pub text: String,
}

/// The content of a file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Parsed {
    /// Whether it has the title or a section of a `swarm-blackboard.md`.
    pub is_swarm_blackboard: bool,
    /// Its dialect.
    pub dialect: Dialect,
    /// Its entries, in the order of the file. A key may occur more than once.
    pub entries: Vec<FileEntry>,
    /// What is wrong with it.
    pub problems: Vec<Problem>,
    /// How many entries cannot be read.
    pub unread: usize,
    /// What people wrote in it.
    pub notes: Vec<Note>,
    /// How many more problems and notes there are.
    pub unreported: usize,
}

impl Parsed {
    /// Adds the problem of an entry that cannot be read.
    pub(crate) fn add_unread(&mut self, line: usize, problem: impl Into<String>) {
        self.unread += 1;
        self.add_problem(line, problem);
    }

    pub(crate) fn add_problem(&mut self, line: usize, problem: impl Into<String>) {
        if self.problems.len() < MAX_REPORTED {
            self.problems.push(Problem { line, problem: problem.into() });
        } else {
            self.unreported += 1;
        }
    }

    pub(crate) fn add_note(&mut self, note: Note) {
        if self.notes.len() < MAX_REPORTED {
            self.notes.push(note);
        } else {
            self.unreported += 1;
        }
    }
}
