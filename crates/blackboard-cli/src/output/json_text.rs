//! JSON text for people: the same JSON, without what moves a cursor, and no more of it than there is room for.

use std::borrow::Cow;
use std::fmt::Write;

use blackboard::text::characters;

/// The same JSON on one line, with its hidden characters escaped as JSON escapes them. They can only be in strings,
/// where an escape means the same; line breaks can only be white space.
pub fn harmless_json(text: &str) -> Cow<'_, str> {
    if !characters(text).any(|(_, hidden)| hidden) {
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

/// The beginning of a text, at most this many characters of it.
pub fn shortened(text: &str, characters: usize) -> Cow<'_, str> {
    match text.char_indices().nth(characters) {
        Some((end, _)) => Cow::Owned(format!("{}…", &text[..end])),
        None => Cow::Borrowed(text),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn ordinary_json_stays_as_it_is() {
        for text in ["null", r#"{"a": 1.0, "b": ["Zoë", "\u001b"]}"#] {
            assert!(matches!(harmless_json(text), Cow::Borrowed(same) if same == text), "{text}");
        }
    }

    #[test]
    fn escaped_json_has_the_same_value() {
        for (text, expected) in [
            ("{\n\t\"a\":\r\n1}", r#"{  "a":  1}"#),
            ("\"\u{9b}31m\u{7f}\"", r#""\u009b31m\u007f""#),
            ("\"\u{202e}\u{e0041}\"", r#""\u202e\udb40\udc41""#),
            ("\"a\u{ad}\u{fe0f} ❤\u{fe0f}\"", "\"a\\u00ad\\ufe0f ❤\u{fe0f}\""),
        ] {
            let harmless = harmless_json(text);
            assert_eq!(harmless, expected);
            let parse = |text: &str| serde_json::from_str::<Value>(text).unwrap();
            assert_eq!(parse(&harmless), parse(text));
        }
    }

    #[test]
    fn shortened_json_is_marked() {
        assert_eq!(shortened("漢字かな", 4), "漢字かな");
        assert_eq!(shortened("漢字かな", 3), "漢字か…");
        assert_eq!(shortened("", 0), "");
    }
}
