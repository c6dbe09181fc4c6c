//! Escapes stored text for a terminal.

use std::borrow::Cow;
use std::fmt::Write;

use super::control::{characters, is_plain};

/// Makes every character visible that would move the cursor, change colors, change the direction or hide.
///
/// Line breaks are escaped as well, because a row of a table is one line. The joiners and variation selectors of ordinary
/// words and emoji stay. The result is for reading and cannot be parsed back.
///
/// ```
/// use blackboard::text::escape_for_terminal;
///
/// assert_eq!(escape_for_terminal("done\n\u{1b}[2J"), r"done\n\u{1b}[2J");
/// assert_eq!(escape_for_terminal("käse 🧀"), "käse 🧀");
/// ```
pub fn escape_for_terminal(text: &str) -> Cow<'_, str> {
    let first = if is_plain(text) { None } else { characters(text).position(|(_, hidden)| hidden) };
    let Some(first) = first else { return Cow::Borrowed(text) };
    let mut escaped = String::with_capacity(text.len() + 16);
    escaped.extend(text.chars().take(first));
    for (character, hidden) in characters(text).skip(first) {
        if hidden {
            escaped.extend(character.escape_default());
        } else {
            escaped.push(character);
        }
    }
    Cow::Owned(escaped)
}

/// The same JSON on one line, with its hidden characters escaped as JSON escapes them. They can only be in strings, where
/// an escape means the same; line breaks can only be white space.
///
/// ```
/// use blackboard::text::escape_json_for_terminal;
///
/// assert_eq!(escape_json_for_terminal("[1,\n\"\u{202e}\"]"), r#"[1, "\u202e"]"#);
/// ```
pub fn escape_json_for_terminal(text: &str) -> Cow<'_, str> {
    if is_plain(text) || !characters(text).any(|(_, hidden)| hidden) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    for (character, hidden) in characters(text) {
        match character {
            '\n' | '\r' | '\t' => escaped.push(' '),
            _ if hidden => {
                for unit in character.encode_utf16(&mut [0; 2]) {
                    // Writing to a `String` cannot fail.
                    let _ = write!(escaped, "\\u{unit:04x}");
                }
            }
            _ => escaped.push(character),
        }
    }
    Cow::Owned(escaped)
}

/// The text as one word of a command line, for hints that users copy.
///
/// ```
/// assert_eq!(blackboard::text::shell_word("write the docs"), "'write the docs'");
/// ```
pub fn shell_word(text: &str) -> Cow<'_, str> {
    let is_plain = |character: char| character.is_ascii_alphanumeric() || "-_.:/@%+,".contains(character);
    if !text.is_empty() && text.chars().all(is_plain) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(format!("'{}'", text.replace('\'', r"'\''")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_of_a_command_line_stays_one_word() {
        for (text, word) in [
            ("task:1", "task:1"),
            ("", "''"),
            ("write the docs", "'write the docs'"),
            ("it's $HOME", r"'it'\''s $HOME'"),
            ("käse", "'käse'"),
        ] {
            assert_eq!(shell_word(text), word);
        }
    }
}
