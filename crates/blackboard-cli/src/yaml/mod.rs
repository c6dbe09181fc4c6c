//! Reads and writes YAML: the files of a spoke and a hub, imported tasks, exports.
//!
//! What is read was written by others. [`tree`] accepts a limited number of bytes, levels and nodes, where a node that
//! an alias repeats counts each time, and so do the bytes of its text. It refuses a second document, keys that occur
//! twice and merge keys (`<<`), which readers interpret differently. An error has a line and a column.
//!
//! What is written means the same to readers of YAML 1.1 and 1.2: every text is quoted, so that none of them reads a
//! number, a date or a boolean (`no`, `1e3`, `12:30`) where a text was written.

mod tree;

use std::fmt;

use blackboard::text::escape_for_terminal;
use serde::Serialize;

pub use self::tree::{Node, tree, tree_within};

/// How much YAML is read.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The bytes of the text. Anchors and aliases may copy as many again.
    pub bytes: usize,
    /// The levels of nested lists and mappings.
    pub depth: usize,
    /// The scalars, lists, mappings and keys.
    pub nodes: usize,
}

impl Limits {
    /// For a file about one project: far more than any needs.
    pub const FILE: Limits = Limits { bytes: 1024 * 1024, depth: 32, nodes: 50_000 };
    /// For a list of work items.
    pub const LIST: Limits = Limits { bytes: 64 * 1024 * 1024, depth: 32, nodes: 2_000_000 };
}

/// Why a text cannot be read, and where.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct YamlError {
    /// The line, from 1. It is 0 if the error concerns the complete file.
    pub line: usize,
    /// The column in characters, from 1. It is 0 if the error concerns the complete file.
    pub column: usize,
    /// What is wrong, without characters that a terminal would interpret.
    pub message: String,
}

impl YamlError {
    /// An error at a line and a column. The message may quote the file: it is shortened and escaped.
    pub fn new(line: usize, column: usize, message: &str) -> YamlError {
        const CHARACTERS: usize = 300;
        let mut message = message.trim();
        let mut more = "";
        if let Some((end, _)) = message.char_indices().nth(CHARACTERS) {
            (message, more) = (&message[..end], "…");
        }
        YamlError { line, column, message: format!("{}{more}", escape_for_terminal(message)) }
    }
}

impl fmt::Display for YamlError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line > 0 {
            write!(formatter, "line {}, column {}: ", self.line, self.column)?;
        }
        formatter.write_str(&self.message)
    }
}

impl std::error::Error for YamlError {}

/// The value as YAML. Fields are in the order of their declaration; a mapping with keys of others has to be sorted.
///
/// It fails only if a value refuses to be serialized, or if a mapping has a list or a mapping as a key.
pub fn write<T: Serialize>(value: &T) -> Result<String, YamlError> {
    let options = serde_saphyr::ser_options! { quote_all: true, compact_list_indent: false };
    serde_saphyr::to_string_with_options(value, options)
        .map_err(|error| YamlError::new(0, 0, &error.to_string()))
}

#[cfg(test)]
mod tests;
