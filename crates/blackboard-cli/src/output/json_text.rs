//! JSON text for people: the same JSON, without what moves a cursor, and no more of it than there is space for.

use std::borrow::Cow;

pub use blackboard::text::escape_json_for_terminal as harmless_json;

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
