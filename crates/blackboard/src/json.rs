//! JSON text that is stored unchanged: its checks, and its form in an answer.
//!
//! Nothing here builds values, so numbers of any size, `1.0` and the order of keys stay unchanged.

use std::borrow::Cow;
use std::ops::Deref;

use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

/// All white space characters of JSON.
pub(crate) const WHITE_SPACE: [char; 4] = [' ', '\t', '\n', '\r'];

/// The text without the white space around it.
pub(crate) fn trim(text: &str) -> &str {
    text.trim_matches(WHITE_SPACE)
}

/// Whether the text is one JSON value. It takes no stack, however deep the value is.
pub(crate) fn check_syntax(text: &str) -> serde_json::Result<&RawValue> {
    serde_json::from_str(text)
}

/// The bytes of a text whose syntax was checked, without the white space between its parts.
pub(crate) fn without_white_space(text: &str) -> impl Iterator<Item = u8> + '_ {
    let (mut in_string, mut escaped) = (false, false);
    text.bytes().filter(move |byte| {
        let keeps = in_string || !matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
        match byte {
            b'"' if !escaped => in_string = !in_string,
            _ => {}
        }
        escaped = in_string && !escaped && *byte == b'\\';
        keeps
    })
}

/// Properties of a JSON text that the syntax check does not report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    /// How deep arrays and objects are nested: 0 for `1`, 2 for `[{}]`.
    pub(crate) depth: usize,
    /// Whether an escape names half of a character, such as `\ud800` alone, which many parsers refuse.
    pub(crate) has_lone_surrogate: bool,
}

impl Shape {
    /// The shape of a text whose syntax was checked.
    pub(crate) fn of(text: &str) -> Shape {
        let bytes = text.as_bytes();
        let (mut depth, mut deepest, mut has_lone_surrogate) = (0_usize, 0, false);
        let (mut at, mut in_string) = (0, false);
        while let Some(&byte) = bytes.get(at) {
            at += 1;
            match byte {
                b'"' => in_string = !in_string,
                b'\\' => {
                    // The escaped character, or the `u` of a number that ends in plain digits.
                    let rest = &bytes[at..];
                    at += 1;
                    match (code_unit(rest), code_unit(rest.get(6..).unwrap_or_default())) {
                        (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) if rest.get(5) == Some(&b'\\') => {
                            at += 10;
                        }
                        (Some(0xd800..=0xdfff), _) => has_lone_surrogate = true,
                        _ => {}
                    }
                }
                b'[' | b'{' if !in_string => {
                    depth += 1;
                    deepest = deepest.max(depth);
                }
                b']' | b'}' if !in_string => depth = depth.saturating_sub(1),
                _ => {}
            }
        }
        Shape { depth: deepest, has_lone_surrogate }
    }
}

/// The number of `u0041`, if the escape has this form.
fn code_unit(escape: &[u8]) -> Option<u16> {
    let digits = escape.strip_prefix(b"u")?.get(..4)?;
    u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

/// Serializes the text unchanged, but on one line: an answer is a line, and in JSON a raw line break is only white
/// space.
pub(crate) fn serialize_on_one_line<R, S>(text: &R, serializer: S) -> Result<S::Ok, S::Error>
where
    R: Deref<Target = RawValue>,
    S: Serializer,
{
    on_one_line(text).map_err(serde::ser::Error::custom)?.serialize(serializer)
}

fn on_one_line(text: &RawValue) -> serde_json::Result<Cow<'_, RawValue>> {
    // `contains` of bytes is a `memchr`; values of a megabyte pass here.
    let bytes = text.get().as_bytes();
    if !bytes.contains(&b'\n') && !bytes.contains(&b'\r') {
        return Ok(Cow::Borrowed(text));
    }
    RawValue::from_string(text.get().replace(['\n', '\r'], " ")).map(Cow::Owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depth_counts_nesting_and_ignores_strings() {
        testkit::limit_test();
        for (text, depth) in [
            ("1", 0),
            ("[]", 1),
            ("[{}]", 2),
            ("[[],[],{\"a\":[1]}]", 3),
            (r#""[[[""#, 0),
            (r#"["\"[[", "\\", "[[\\\""]"#, 1),
            (r#"{"[": "{"}"#, 1),
        ] {
            check_syntax(text).unwrap();
            assert_eq!(Shape::of(text).depth, depth, "{text}");
        }
    }

    #[test]
    fn raw_line_breaks_become_spaces_and_escaped_ones_stay() {
        for (text, expected) in [
            ("[1,\n2]", "[1, 2]"),
            ("[1,\r2]", "[1, 2]"),
            ("[1,\r\n2]", "[1,  2]"),
            ("[1,\t2]", "[1,\t2]"),
            (r#"["\n\r"]"#, r#"["\n\r"]"#),
        ] {
            assert_eq!(on_one_line(check_syntax(text).unwrap()).unwrap().get(), expected);
        }
    }

    #[test]
    fn lone_surrogate_is_found_and_a_pair_is_not() {
        testkit::limit_test();
        for (text, lone) in [
            (r#""\ud83d\ude00""#, false),
            (r#""\uD83D\uDE00\ud83d\ude00""#, false),
            (r#""\u0041\u00e4""#, false),
            (r#""\\ud800""#, false),
            (r#""\"\\\\ud800\\""#, false),
            (r#""\ud800""#, true),
            (r#""\udc00""#, true),
            (r#""\ude00\ud83d""#, true),
            (r#""\ud83d\\ude00""#, true),
            (r#""\ud83dxude00""#, true),
            (r#""\ud83d\ud83d\ude00""#, true),
            (r#"{"\ud800":1}"#, true),
            (r#""\\\ud800""#, true),
        ] {
            check_syntax(text).unwrap();
            assert_eq!(Shape::of(text).has_lone_surrogate, lone, "{text}");
            // The result is the same as that of a parser that builds the string.
            assert_eq!(serde_json::from_str::<serde_json::Value>(text).is_err(), lone, "{text}");
        }
    }
}
