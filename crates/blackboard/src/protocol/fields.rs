//! Keys that are made from names and values, without a template: `agent_id:worker-1:my_request:7`.

use super::escape::{Colons, escape, unescape};
use super::template::is_word;
use crate::entry::{check_key, check_pattern};
use crate::error::{Error, Result};
use crate::text::shown;

/// The key of these names and values, in this order. Names are words; values may be any text and are escaped.
///
/// ```
/// use blackboard::protocol::format_key;
///
/// let key = format_key(&[("agent_id", "worker-1"), ("my_request", "a:b")])?;
/// assert_eq!(key, "agent_id:worker-1:my_request:a%3Ab");
/// # Ok::<(), blackboard::Error>(())
/// ```
pub fn format_key(fields: &[(&str, &str)]) -> Result<String> {
    let key = join(fields.iter().map(|(name, value)| (*name, Some(*value))))?;
    check_key("", &key)?;
    Ok(key)
}

/// The pattern of all keys with these names and values. A value of `None` may be anything.
///
/// A pattern may match keys with other names, because `*` also matches colons; [`parse_key`] decides.
///
/// ```
/// use blackboard::protocol::pattern_key;
///
/// let pattern = pattern_key(&[("agent_id", None), ("my_request", Some("7"))])?;
/// assert_eq!(pattern, "agent_id:*:my_request:7");
/// # Ok::<(), blackboard::Error>(())
/// ```
pub fn pattern_key(fields: &[(&str, Option<&str>)]) -> Result<String> {
    let pattern = join(fields.iter().copied())?;
    check_pattern("", &pattern)?;
    Ok(pattern)
}

/// The names and values of a key that [`format_key`] makes; `None` if it makes no such key.
///
/// ```
/// use blackboard::protocol::parse_key;
///
/// let fields = parse_key("agent_id:worker-1:my_request:a%3Ab").unwrap();
/// assert_eq!(fields[1], ("my_request".to_owned(), "a:b".to_owned()));
/// assert_eq!(parse_key("a:b:c"), None);
/// ```
pub fn parse_key(key: &str) -> Option<Vec<(String, String)>> {
    let parts: Vec<_> = key.split(':').collect();
    let (pairs, rest) = parts.as_chunks::<2>();
    if !rest.is_empty() {
        return None;
    }
    let field = |[name, value]: &[&str; 2]| {
        is_word(name).then_some(())?;
        Some(((*name).to_owned(), unescape(value, Colons::Escape)?))
    };
    pairs.iter().map(field).collect()
}

fn join<'a>(fields: impl Iterator<Item = (&'a str, Option<&'a str>)>) -> Result<String> {
    let mut parts = Vec::new();
    for (name, value) in fields {
        if !is_word(name) {
            let message = format!("the name of a field cannot be part of a key: \"{}\"", shown(name));
            return Err(Error::invalid(message));
        }
        parts.push(name.to_owned());
        parts.push(value.map_or_else(|| "*".to_owned(), |value| escape(value, Colons::Escape)));
    }
    Ok(parts.join(":"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_that_are_no_words_and_keys_without_fields_are_refused() {
        for fields in [&[][..], &[("", "x")], &[("a:b", "x")], &[("a*", "x")], &[("polymathera", "x")]] {
            assert!(format_key(fields).is_err(), "{fields:?}");
        }
        assert!(pattern_key(&[("a:b", None)]).is_err());
        for key in ["", "a", "a:b:c", "a*:b", "a:50%"] {
            assert_eq!(parse_key(key), None, "{key}");
        }
    }

    proptest! {
        #[test]
        fn every_value_can_be_read_back(values in prop::collection::vec(any::<String>(), 1..4)) {
            testkit::limit_test();
            let names = ["agent_id", "request", "type"];
            let fields: Vec<_> = names.into_iter().zip(values.iter().map(String::as_str)).collect();
            // Random text may be long; then the key is refused.
            if let Ok(key) = format_key(&fields) {
                let parsed = parse_key(&key).unwrap();
                let parsed: Vec<_> = parsed.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
                prop_assert_eq!(parsed, fields);
            }
        }
    }
}
