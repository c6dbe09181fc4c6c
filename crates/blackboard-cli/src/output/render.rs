//! What `render` wrote, as human and JSON output.

use blackboard::Revision;
use blackboard::swarm::{Dialect, LeftEntry};
use serde::Serialize;

use super::{Result, Screen, escape};
use crate::envelope::Answer;
use crate::outcome::Render;

/// The answer of `render`.
#[derive(Serialize)]
pub struct RenderedFile {
    /// The file.
    pub file: String,
    /// Its dialect.
    pub dialect: Dialect,
    /// The revision that it shows.
    pub revision: Revision,
    /// How many entries it shows.
    pub entries: usize,
    /// Whether the file is another one than before.
    pub changed: bool,
    /// Entries of the file that the board does not have like this.
    pub left: Vec<LeftEntry>,
}

impl RenderedFile {
    /// What a person should know about entries that are only in the file.
    pub fn note(&self) -> Option<String> {
        let first = self.left.first()?;
        let what = match self.left.len() {
            1 => "1 entry of the file is".to_owned(),
            count => format!("{count} entries of the file are"),
        };
        let (key, line) = (escape(&first.key), first.line);
        Some(format!("{what} not on the board like this: {key} (line {line}). Import the file to keep them"))
    }
}

impl Render for RenderedFile {
    fn json(&self, answer: &mut Answer<'_>) -> Result {
        answer.object(self)
    }

    fn human(&self, screen: &mut Screen<'_>) -> Result {
        let entries = match self.entries {
            1 => "1 entry".to_owned(),
            count => format!("{count} entries"),
        };
        let what = if self.changed { "Rendered" } else { "Unchanged" };
        screen.line(format_args!("{what}: {} ({entries}, revision {})", escape(&self.file), self.revision))
    }
}
