//! What may be written into a board as text, and how stored text is shown.
//!
//! Agents read each other's words, so every word is hostile until it went through [`TextRules`]: it can't forge a
//! row of a terminal, can't carry markup or template markers, and can't bring a well-known credential with it.
//! Ordinary text stays as it is, `a < b` and `Vec<String>` included. The filter is a second line of defence: whoever
//! shows text still escapes it for the place where it is shown.
//!
//! Ids and keys are never altered: [`check_id`] refuses what can't be shown, [`escape_for_terminal`] shows the rest.

mod control;
mod display;
mod filter;
mod secret;

pub(crate) use control::forges;
pub use display::escape_for_terminal;
pub(crate) use display::shell_word;

use crate::error::{Code, Error, Refusal, Result};

/// How many characters an id may have.
const MAX_ID_LENGTH: usize = 200;

/// How much longer than its limit a text may be before the rest is not even looked at: what will be removed may take
/// room in front of what stays, but a megabyte must not cost more than a page.
const READ_AHEAD: usize = 16;

/// What is taken out of text before it is stored.
///
/// ```
/// use blackboard::text::TextRules;
///
/// let rules = TextRules::default();
/// assert_eq!(rules.field("Fix <b>Vec<String></b>\nwhen a < b")?, "Fix Vec<String> when a < b");
/// assert_eq!(rules.description("first line\nsecond \u{1b}[31mline")?, "first line\nsecond line");
/// # Ok::<(), blackboard::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextRules {
    /// How many characters a field keeps.
    pub max_field_length: usize,
    /// How many characters a description keeps.
    pub max_description_length: usize,
    /// Whether fenced code blocks become `[code block removed]` in fields.
    pub strip_code_blocks: bool,
    /// Whether HTML tags and comments go from fields.
    pub strip_html_tags: bool,
    /// Whether text that looks like a credential is stored all the same.
    pub allow_secret_looking: bool,
}

impl Default for TextRules {
    fn default() -> TextRules {
        TextRules {
            max_field_length: 500,
            max_description_length: 64_000,
            strip_code_blocks: true,
            strip_html_tags: true,
            allow_secret_looking: false,
        }
    }
}

impl TextRules {
    /// One line of clean text: a name, a title, progress, a summary, a reason, a note.
    ///
    /// Filtering what was filtered before changes nothing. A text of nothing but markup becomes empty.
    pub fn field(&self, text: &str) -> Result<String> {
        let text = control::remove(beginning(text, self.max_field_length), control::Lines::Join);
        self.refuse_secret(&text)?;
        let clean = filter::clean(&text, self);
        if clean != text {
            // Removing what stood between two halves may have joined a credential.
            self.refuse_secret(&clean)?;
        }
        Ok(clean)
    }

    /// A text of many lines, which loses only the characters that forge what a reader sees.
    pub fn description(&self, text: &str) -> Result<String> {
        let mut clean = control::remove(beginning(text, self.max_description_length), control::Lines::Keep);
        // Before the cut, which could leave the better half of a credential.
        self.refuse_secret(&clean)?;
        clean.truncate(first_characters(&clean, self.max_description_length).len());
        Ok(clean)
    }

    /// Looks through what is stored as it came (metadata, paths, addresses) for a credential.
    pub(crate) fn check_unaltered<'text>(&self, texts: impl IntoIterator<Item = &'text str>) -> Result<()> {
        texts.into_iter().try_for_each(|text| self.refuse_secret(text))
    }

    /// Checks an id that may stand in a list of ids: no comma, and no credential.
    pub(crate) fn check_listed_id(&self, what: &str, id: &str) -> Result<()> {
        check_id(what, id)?;
        if id.contains(',') {
            let shown = escape_for_terminal(id);
            return Err(Error::invalid(format!(
                "the id of the {what} contains a comma, which separates ids in a list: \"{shown}\""
            )));
        }
        self.check_unaltered([id])
    }

    fn refuse_secret(&self, text: &str) -> Result<()> {
        if self.allow_secret_looking {
            return Ok(());
        }
        let Some(kind) = secret::find(text) else { return Ok(()) };
        let message = format!("the text carries what looks like {kind}, and every agent reads the board");
        Err(Refusal::new(Code::SecretLooking, message)
            .hint("take it out, or repeat the command with --allow-secret-looking if it is no secret")
            .detail("kind", kind)
            .into())
    }
}

/// Refuses an id or key that is empty, too long, or that a reader could mistake for another one.
///
/// ```
/// use blackboard::text::check_id;
///
/// assert!(check_id("work item", "gh:owner/repo#78").is_ok());
/// assert!(check_id("work item", "two\nlines").is_err());
/// ```
pub fn check_id(what: &str, id: &str) -> Result<()> {
    let problem = if id.is_empty() {
        return Err(Error::invalid(format!("the id of the {what} is empty")));
    } else if first_characters(id, MAX_ID_LENGTH).len() < id.len() {
        format!("is longer than {MAX_ID_LENGTH} characters")
    } else if id.contains(control::forges) {
        "contains control or invisible characters".to_owned()
    } else if id.trim() != id {
        "begins or ends with white space".to_owned()
    } else {
        return Ok(());
    };
    let shown = escape_for_terminal(first_characters(id, MAX_ID_LENGTH));
    Err(Error::invalid(format!("the id of the {what} {problem}: \"{shown}\"")))
}

/// A text of any length and kind inside a message: its beginning, with everything visible.
pub(crate) fn shown(text: &str) -> String {
    const CHARACTERS: usize = 120;
    let beginning = first_characters(text, CHARACTERS);
    let more = if beginning.len() < text.len() { "…" } else { "" };
    escape_for_terminal(beginning).into_owned() + more
}

/// As much of a text as is looked at.
fn beginning(text: &str, limit: usize) -> &str {
    first_characters(text, limit.saturating_mul(READ_AHEAD))
}

/// The first `count` characters, never half of one.
fn first_characters(text: &str, count: usize) -> &str {
    match text.char_indices().nth(count) {
        Some((end, _)) => &text[..end],
        None => text,
    }
}

#[cfg(test)]
mod tests;
