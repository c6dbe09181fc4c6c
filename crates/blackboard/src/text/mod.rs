//! The rules for text on a board, and how stored text is displayed.
//!
//! Agents read each other's text, so all text is untrusted until it has passed [`TextRules`]. Then it cannot forge a
//! line of a terminal, and contains no markup, template markers or well-known credentials. Ordinary text stays
//! unchanged, including `a < b` and `Vec<String>`. The filter is a second line of defense: each output still escapes
//! text for its own format.
//!
//! Ids and keys are never altered: [`check_id`] refuses those that cannot be displayed, [`escape_for_terminal`]
//! displays the rest. Changes to a text are reported in [`TextChanges`]: nothing is shortened or removed silently.

mod changes;
mod control;
mod display;
mod filter;
mod secret;
mod unicode;

pub(crate) use changes::{Cleaner, Kind};
pub use changes::{ShortenedText, StoredText, TextChanges};
pub use control::characters;
pub(crate) use control::{forges, forges_in_every_version, hides};
pub use display::shell_word;
pub use display::{escape_for_terminal, escape_json_for_terminal};

use unicode_normalization::{UnicodeNormalization, is_nfc};

use crate::error::{Code, Error, Refusal, Result};
use crate::hint::Hint;
use control::Lines;
use filter::Cleaned;

/// How many characters an id may have.
const MAX_ID_LENGTH: usize = 200;

/// How many characters of a longer text an event summary has; the event's metadata has all of it.
pub(crate) const IN_A_SENTENCE: usize = 500;

/// How many times its limit of a text is read; the rest is ignored. Markup that is removed may precede the text that
/// stays, but a text of a megabyte must not cost much more than a page.
const READ_AHEAD: usize = 16;

/// How often JSON in strings of JSON is unescaped to look for credentials.
const UNESCAPING_ROUNDS: usize = 4;

/// What is removed from text before it is stored.
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
    /// How many characters a field keeps: a name, a title, a note.
    pub max_field_length: usize,
    /// How many characters a summary, a progress note or a reason keeps.
    pub max_summary_length: usize,
    /// How many characters a description keeps.
    pub max_description_length: usize,
    /// Whether fenced code blocks become `[code block removed]` in fields.
    pub strip_code_blocks: bool,
    /// Whether HTML tags and comments are removed from fields.
    pub strip_html_tags: bool,
    /// Whether text that looks like a credential is stored anyway.
    pub allow_secret_looking: bool,
}

impl Default for TextRules {
    fn default() -> TextRules {
        TextRules {
            max_field_length: 500,
            max_summary_length: 4_000,
            max_description_length: 64_000,
            strip_code_blocks: true,
            strip_html_tags: true,
            allow_secret_looking: false,
        }
    }
}

impl TextRules {
    /// One line of clean text: a name, a title, a note.
    ///
    /// Filtering filtered text again changes nothing. A text that is only markup becomes empty.
    pub fn field(&self, text: &str) -> Result<String> {
        self.cleaned(Kind::Field, text).map(|cleaned| cleaned.text)
    }

    /// One longer line of clean text: progress, a summary, a reason.
    pub fn summary(&self, text: &str) -> Result<String> {
        self.cleaned(Kind::Summary, text).map(|cleaned| cleaned.text)
    }

    /// A text of several lines, which loses only the characters that forge its display.
    pub fn description(&self, text: &str) -> Result<String> {
        self.cleaned(Kind::Description, text).map(|cleaned| cleaned.text)
    }

    fn limit(&self, kind: Kind) -> usize {
        match kind {
            Kind::Field => self.max_field_length,
            Kind::Summary => self.max_summary_length.max(self.max_field_length),
            Kind::Description => self.max_description_length,
        }
    }

    fn cleaned(&self, kind: Kind, text: &str) -> Result<Cleaned> {
        let limit = self.limit(kind);
        let read = beginning(text, limit);
        let lines = if kind == Kind::Description { Lines::Keep } else { Lines::Join };
        let visible = control::remove(read, lines);
        // Before the text is cut, because the cut could keep most of a credential.
        self.refuse_secret(&visible)?;
        let mut cleaned = match kind {
            Kind::Description => {
                let mut text = visible.clone();
                let shortened = cut_to(&mut text, limit);
                Cleaned { text, filtered: false, shortened }
            }
            Kind::Field | Kind::Summary => filter::clean(&visible, self, limit),
        };
        if cleaned.text != visible {
            // If markup between two halves of a credential was removed, the halves are joined now.
            self.refuse_secret(&cleaned.text)?;
        }
        cleaned.filtered |= visible.len() < read.len() && without_spaces(&visible) < without_spaces(read);
        cleaned.shortened |= read.len() < text.len();
        Ok(cleaned)
    }

    /// Refuses a credential in text that is stored unchanged: ids, keys, paths, addresses.
    pub(crate) fn check_unaltered<'text>(&self, texts: impl IntoIterator<Item = &'text str>) -> Result<()> {
        texts.into_iter().try_for_each(|text| self.refuse_secret(text))
    }

    /// Refuses a credential in JSON that is stored unchanged, also with escaped letters.
    pub(crate) fn check_json<'text>(&self, texts: impl IntoIterator<Item = &'text str>) -> Result<()> {
        if self.allow_secret_looking {
            return Ok(());
        }
        texts.into_iter().try_for_each(|text| {
            self.refuse_secret(text)?;
            let mut unescaped = secret::unescape(text);
            // JSON may be in a string of other JSON.
            for _ in 0..UNESCAPING_ROUNDS {
                let Some(text) = unescaped else { break };
                self.refuse_secret(&text)?;
                unescaped = secret::unescape(&text);
            }
            Ok(())
        })
    }

    /// Checks an id that may be in a list of ids: no comma, and no credential. The id may exist; a new one also has
    /// to pass [`check_id`].
    pub(crate) fn check_listed_id(&self, what: &str, id: &str) -> Result<()> {
        check_known_id(what, id)?;
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
        let message = format!("the text seems to contain {kind}, and every agent can read the board");
        Err(Refusal::new(Code::SecretLooking, message).hint(Hint::AllowSecret).detail("kind", kind).into())
    }
}

/// Refuses an id or key that is empty, too long, or that a reader could confuse with another one.
///
/// ```
/// use blackboard::text::check_id;
///
/// assert!(check_id("work item", "gh:owner/repo#78").is_ok());
/// assert!(check_id("work item", "two\nlines").is_err());
/// ```
pub fn check_id(what: &str, id: &str) -> Result<()> {
    check_id_without(what, id, control::forges)?;
    let Some(Ambiguity { problem, plain }) = ambiguity(id) else { return Ok(()) };
    let (id, plain) = (shown(id), shown(&plain));
    Err(Refusal::new(Code::InvalidValue, format!("the id of the {what} {problem}: \"{id}\""))
        .hint(format!("write \"{plain}\""))
        .into())
}

/// As [`check_id`], for an id that may exist already: refuses only what no version of a board has accepted.
pub(crate) fn check_known_id(what: &str, id: &str) -> Result<()> {
    check_id_without(what, id, control::forges_in_every_version)
}

fn check_id_without(what: &str, id: &str, forges: fn(char) -> bool) -> Result<()> {
    let problem = if id.is_empty() {
        return Err(Error::invalid(format!("the id of the {what} is empty")));
    } else if first_characters(id, MAX_ID_LENGTH).len() < id.len() {
        format!("is longer than {MAX_ID_LENGTH} characters")
    } else if id.contains(forges) {
        "contains control or invisible characters".to_owned()
    } else if id.trim() != id {
        "begins or ends with white space".to_owned()
    } else {
        return Ok(());
    };
    let shown = reveal(first_characters(id, MAX_ID_LENGTH));
    Err(Error::invalid(format!("the id of the {what} {problem}: \"{shown}\"")))
}

/// Why a name looks like another one.
pub(crate) struct Ambiguity {
    /// What is wrong, after "the key".
    pub(crate) problem: &'static str,
    /// The name that a reader takes it for. Empty if nothing of it is visible.
    pub(crate) plain: String,
}

/// Checks whether a name without invisible characters looks like another one: white space at its ends, another
/// space than U+0020, or a letter and its accent as two characters. File names may have all of them.
pub(crate) fn ambiguity(name: &str) -> Option<Ambiguity> {
    let trimmed = name.trim();
    if name.is_ascii() && trimmed.len() == name.len() {
        return None;
    }
    let has_other_space = |text: &str| text.contains(|each: char| each != ' ' && each.is_whitespace());
    let problem = if trimmed.len() < name.len() {
        "begins or ends with white space"
    } else if has_other_space(name) {
        "contains white space that is not a plain space"
    } else if is_nfc(name) {
        return None;
    } else {
        "contains a character that looks like another one"
    };
    let plain = trimmed.nfc().map(|each| if each.is_whitespace() { ' ' } else { each });
    Some(Ambiguity { problem, plain: plain.collect() })
}

/// Refuses an agent name that could not be distinguished from another name.
///
/// ```
/// use blackboard::text::check_name;
///
/// assert!(check_name("Ivy (delegate)").is_ok());
/// assert!(check_name("I\u{200b}vy").is_err());
/// assert!(check_name("877c3f2b").is_err());
/// ```
pub fn check_name(name: &str) -> Result<()> {
    let (problem, hint) = if name.contains(control::forges) {
        ("contains control or invisible characters", "write it without them".to_owned())
    } else if let Some(Ambiguity { problem, plain }) = ambiguity(name.trim()) {
        (problem, format!("write \"{}\"", shown(&plain)))
    } else if looks_like_session_id(name.trim()) {
        ("looks like the id of a session", "choose a name with other letters".to_owned())
    } else {
        return Ok(());
    };
    let message = format!("the name of the agent {problem}: \"{}\"", shown(name));
    Err(Refusal::new(Code::InvalidValue, message).hint(hint).into())
}

/// Whether a name could be the id of a session, or the beginning of one that commands accept.
fn looks_like_session_id(name: &str) -> bool {
    let digits = name.chars().filter(char::is_ascii_digit).count();
    let is_id = |character: char| character.is_ascii_hexdigit() || character == '-';
    name.len() >= SHORTEST_ID && digits > 0 && name.chars().all(is_id)
}

/// The length of the ids that commands print.
const SHORTEST_ID: usize = 8;

/// A number with commas, as in `442,000`.
///
/// ```
/// assert_eq!(blackboard::text::grouped(1_234_567), "1,234,567");
/// ```
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// The text as a name that looks like no other one, for names from text of other programs: without characters that
/// would not be displayed, with plain spaces, and with accents that are part of their letters.
///
/// ```
/// assert_eq!(blackboard::text::visible("I\u{200b}vy\n"), "Ivy");
/// assert_eq!(blackboard::text::visible("Zoe\u{308}\u{a0}2"), "Zoë 2");
/// ```
pub fn visible(text: &str) -> String {
    let shown = text.nfc().filter(|&character| !control::forges(character));
    shown.map(|each| if each.is_whitespace() { ' ' } else { each }).collect()
}

/// The beginning of any text for a message, with its invisible characters made visible.
pub(crate) fn shown(text: &str) -> String {
    const CHARACTERS: usize = 120;
    let beginning = first_characters(text, CHARACTERS);
    let more = if beginning.len() < text.len() { "…" } else { "" };
    reveal(beginning) + more
}

/// Makes every invisible character visible. This includes those that belong to letters and emoji, because the refusal may
/// be about one of them.
fn reveal(text: &str) -> String {
    let mut revealed = String::with_capacity(text.len());
    for character in text.chars() {
        if control::forges(character) {
            revealed.extend(character.escape_default());
        } else {
            revealed.push(character);
        }
    }
    revealed
}

/// The part of a text that is read.
fn beginning(text: &str, limit: usize) -> &str {
    first_characters(text, limit.saturating_mul(READ_AHEAD))
}

/// How many characters of a text are not white space.
fn without_spaces(text: &str) -> usize {
    text.chars().filter(|character| !character.is_whitespace()).count()
}

/// Cuts a text after `limit` characters, and returns whether there were more.
fn cut_to(text: &mut String, limit: usize) -> bool {
    let length = first_characters(text, limit).len();
    if length == text.len() {
        return false;
    }
    text.truncate(length);
    control::trim_after_cut(text);
    true
}

/// At most `count` characters of a text for a sentence, with an ellipsis if the text is longer.
pub(crate) fn excerpt(text: &str, count: usize) -> std::borrow::Cow<'_, str> {
    let beginning = first_characters(text, count.saturating_sub(1));
    if first_characters(text, count).len() == text.len() {
        return text.into();
    }
    let mut excerpt = beginning.to_owned();
    control::trim_after_cut(&mut excerpt);
    excerpt.push('…');
    excerpt.into()
}

/// The first `count` characters.
fn first_characters(text: &str, count: usize) -> &str {
    match text.char_indices().nth(count) {
        Some((end, _)) => &text[..end],
        None => text,
    }
}

#[cfg(test)]
mod tests;
