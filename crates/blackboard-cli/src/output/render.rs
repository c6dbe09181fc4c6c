//! What `render` wrote, as human and JSON output.

use blackboard::Revision;
use blackboard::swarm::{Dialect, LeftEntry, LeftReason};
use serde::Serialize;

use super::{Result, Screen, escape};
use crate::envelope::Answer;
use crate::hints::{argument, in_scope};
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
    /// The scope that it shows.
    #[serde(skip)]
    pub scope: String,
}

/// How many entries a note names.
const NAMED: usize = 5;

impl RenderedFile {
    /// What a person should know about entries that are only in the file, with a command if an import adds them. `command` makes
    /// one from its words.
    pub fn note(&self, command: impl Fn(String) -> String) -> Option<String> {
        if self.left.is_empty() {
            return None;
        }
        let what = match self.left.len() {
            1 => "1 entry of the file is".to_owned(),
            count => format!("{count} entries of the file are"),
        };
        let named = self.left.iter().take(NAMED).map(|LeftEntry { key, line, reason }| {
            format!("{} (line {line}: {})", escape(key), in_words(*reason))
        });
        let named: Vec<_> = named.collect();
        let more = match self.left.len().saturating_sub(NAMED) {
            0 => String::new(),
            more => format!(", and {more} more"),
        };
        let has = |reason| self.left.iter().any(|left| left.reason == reason);
        let mut steps = Vec::new();
        for (reason, advice, option) in [
            (LeftReason::Missing, "to add what the board does not have", ""),
            (LeftReason::Different, "to take the values of the file", " --keep theirs"),
            (LeftReason::RefusedKey, "to add it under an escaped key", " --escape-keys"),
        ] {
            if has(reason) {
                let (scope, file) = (in_scope(&self.scope), argument(&self.file));
                steps.push(format!("{advice}: {}", command(format!("import{option}{scope} {file}"))));
            }
        }
        if has(LeftReason::Repeated) {
            steps.push("delete what the file has twice, beside the markers".to_owned());
        }
        if has(LeftReason::Lock) || has(LeftReason::Expired) || has(LeftReason::Unreadable) {
            steps.push("what cannot be imported stays until you delete it".to_owned());
        }
        let is_repeated = self.left.iter().all(|left| left.reason == LeftReason::Repeated);
        let how = if is_repeated { "in it twice" } else { "not on the board like this" };
        Some(format!("{what} {how}: {}{more}; {}", named.join(", "), steps.join("; ")))
    }
}

fn in_words(reason: LeftReason) -> &'static str {
    match reason {
        LeftReason::Missing => "not on the board",
        LeftReason::Different => "the board has another value",
        LeftReason::RefusedKey => "the board refuses the key",
        LeftReason::Lock => "a lock, not an entry",
        LeftReason::Expired => "expired",
        LeftReason::Unreadable => "not readable",
        LeftReason::Repeated => "also between the markers",
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
