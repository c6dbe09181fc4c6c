//! Any text as a part of a key, and back.
//!
//! A text is escaped as in a URL: `%3A` is a colon. Only what a key cannot contain, or what would change its meaning, is
//! escaped, so ordinary names stay readable. Each text has exactly one escaped form, and only that form is read back:
//! otherwise two keys would mean the same, and the writer of one would never meet the reader of the other.

use std::fmt::Write as _;

use unicode_normalization::is_nfc;

use crate::text::forges;

/// The escaped form of the empty text. A key cannot have an empty part at its end, and no other text is escaped to it.
const EMPTY: &str = "%";

/// How colons in a text are handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Colons {
    /// The text is one part of a key, so they are escaped.
    Escape,
    /// The text is the rest of a key. Only those at its ends are escaped, because a key cannot begin or end with one.
    Keep,
}

/// The text in a form that a key can contain.
pub(super) fn escape(text: &str, colons: Colons) -> String {
    if text.is_empty() {
        return EMPTY.to_owned();
    }
    let escaped = escape_where(text, colons, |_| false);
    // A key has its letters in composed form. This looks at the escaped text, because an accent behind an escape such
    // as `%8E` would join its last letter.
    if is_nfc(&escaped) { escaped } else { escape_where(text, colons, |character| !character.is_ascii()) }
}

/// The text of an escaped form; `None` if [`escape`] makes no such form.
pub(super) fn unescape(escaped: &str, colons: Colons) -> Option<String> {
    if escaped == EMPTY {
        return Some(String::new());
    }
    let mut bytes = Vec::with_capacity(escaped.len());
    let mut rest = escaped.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => hex_digit(rest.next()?)? << 4 | hex_digit(rest.next()?)?,
            byte => byte,
        });
    }
    let text = String::from_utf8(bytes).ok()?;
    (escape(&text, colons) == escaped).then_some(text)
}

fn escape_where(text: &str, colons: Colons, more: fn(char) -> bool) -> String {
    let mut escaped = String::with_capacity(text.len());
    let mut bytes = [0; 4];
    for (start, character) in text.char_indices() {
        let is_at_end = start == 0 || start + character.len_utf8() == text.len();
        let is_escaped = match character {
            '%' | '*' | '?' | '[' | ']' => true,
            ':' => colons == Colons::Escape || is_at_end,
            ' ' => is_at_end,
            _ => forges(character) || character.is_whitespace() || more(character),
        };
        if is_escaped {
            for byte in character.encode_utf8(&mut bytes).bytes() {
                // Writing to a `String` cannot fail.
                let _ = write!(escaped, "%{byte:02X}");
            }
        } else {
            escaped.push(character);
        }
    }
    escaped
}

fn hex_digit(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'A'..=b'F' => Some(byte - b'A' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped_only_where_a_key_needs_it() {
        testkit::limit_test();
        for (text, part, rest) in [
            ("req_abc123", "req_abc123", "req_abc123"),
            ("", "%", "%"),
            ("%", "%25", "%25"),
            ("a:b", "a%3Ab", "a:b"),
            (":a::", "%3Aa%3A%3A", "%3Aa:%3A"),
            ("*?[x]", "%2A%3F%5Bx%5D", "%2A%3F%5Bx%5D"),
            ("two words", "two words", "two words"),
            (" at the ends ", "%20at the ends%20", "%20at the ends%20"),
            ("line\nbreak", "line%0Abreak", "line%0Abreak"),
            ("no\u{a0}break", "no%C2%A0break", "no%C2%A0break"),
            ("in\u{200b}visible", "in%E2%80%8Bvisible", "in%E2%80%8Bvisible"),
            ("käse", "käse", "käse"),
            ("ka\u{308}se", "ka%CC%88se", "ka%CC%88se"),
            ("ka\u{308}se ä", "ka%CC%88se %C3%A4", "ka%CC%88se %C3%A4"),
            ("\u{202e}\u{301}", "%E2%80%AE%CC%81", "%E2%80%AE%CC%81"),
        ] {
            for (colons, expected) in [(Colons::Escape, part), (Colons::Keep, rest)] {
                assert_eq!(escape(text, colons), expected);
                assert_eq!(unescape(expected, colons).as_deref(), Some(text));
            }
        }
    }

    #[test]
    fn other_forms_of_a_text_are_not_read() {
        testkit::limit_test();
        for form in ["", "%4", "%3a", "%41", "50%", "a*", "%FF", "%%", " a", "a%", "ka\u{308}se"] {
            assert_eq!(unescape(form, Colons::Escape), None, "{form}");
        }
        assert_eq!(unescape("a%3Ab", Colons::Keep), None);
        assert_eq!(unescape("a:b", Colons::Escape), None);
    }
}
