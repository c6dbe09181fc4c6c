//! Stored text as one harmless line.

use std::borrow::Cow;
use std::fmt::Write;

/// Replaces what moves a cursor, breaks a line, reverses the order of letters or hides text by its code, as in
/// `\u{1b}`; everything else stays as it is.
pub fn escape(text: &str) -> Cow<'_, str> {
    if !text.contains(is_harmful) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        match character {
            '\n' => escaped.push_str("\\n"),
            '\r' => escaped.push_str("\\r"),
            '\t' => escaped.push_str("\\t"),
            _ if is_harmful(character) => {
                // Writing to a `String` can't fail.
                let _ = write!(escaped, "\\u{{{:x}}}", u32::from(character));
            }
            _ => escaped.push(character),
        }
    }
    Cow::Owned(escaped)
}

/// Joiners and variation selectors stay: scripts and emoji need them, and they forge nothing.
pub(super) fn is_harmful(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{61c}'                          // Arabic letter mark
            | '\u{200b}'                       // zero width space
            | '\u{200e}'..='\u{200f}'          // directional marks
            | '\u{2028}'..='\u{202e}'          // separators, embeddings and overrides
            | '\u{2060}'..='\u{206f}'          // invisible operators, isolates
            | '\u{feff}'                       // byte order mark
            | '\u{fff9}'..='\u{fffb}'          // interlinear annotation
            | '\u{e0000}'..='\u{e007f}'        // tags: text that no one sees; `table` marks colours with them
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_text_stays_as_it_is() {
        for text in ["", "if a < b && c > d { Vec<String> }", "Zoë 👩‍👩‍👧 ❤️ नमस्ते می‌خواهم", "a\\nb"]
        {
            assert!(matches!(escape(text), Cow::Borrowed(same) if same == text), "{text}");
        }
    }

    #[test]
    fn what_forges_rows_becomes_visible() {
        for (text, expected) in [
            ("a\nSESSION b", "a\\nSESSION b"),
            ("\r\t", "\\r\\t"),
            ("\u{1b}[31mred\u{9b}0m\u{7f}", "\\u{1b}[31mred\\u{9b}0m\\u{7f}"),
            ("\u{202e}txt\u{2066}", "\\u{202e}txt\\u{2066}"),
            ("\u{2028}\u{200b}\u{e0041}\0", "\\u{2028}\\u{200b}\\u{e0041}\\u{0}"),
        ] {
            assert_eq!(escape(text), expected);
        }
    }
}
