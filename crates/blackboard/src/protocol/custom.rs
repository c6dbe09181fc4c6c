//! [`CustomProtocol`]: a protocol that is stored on a board.

use serde::Serialize;

use super::{Level, Message, ONLY_MESSAGE, Protocol, Schema, Template};
use crate::clock::Timestamp;
use crate::error::{Code, Refusal, Result};
use crate::revision::Revision;
use crate::store::Range;
use crate::store::record::record;
use crate::text::shown;

/// The most protocols that a board has, not counting the built-in ones.
pub const MAX_PROTOCOLS: usize = 256;
/// The most bytes of a name.
const MAX_NAME_BYTES: usize = 64;

/// A protocol that is stored on a board.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CustomProtocol {
    /// Its name.
    pub name: String,
    /// The form of its keys.
    pub template: Template,
    /// Which agents share its entries.
    pub level: Level,
    /// What it is for.
    pub summary: String,
    /// Describes its values.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value_schema: Option<Schema>,
    /// When it was defined.
    pub defined_at: Timestamp,
    /// The event that defined it.
    pub revision: Revision,
}

record! {
    CustomProtocol in "protocols", generation 0 {
        key { name }
        columns { template, level, summary, value_schema, defined_at, revision }
    }
    indexes {
        /// All protocols, by name.
        ALL: by (name);
    }
}

impl Range {
    /// All protocols that are stored on the board.
    pub fn protocols() -> Range {
        Range::all(CustomProtocol::ALL)
    }
}

impl From<CustomProtocol> for Protocol {
    fn from(stored: CustomProtocol) -> Protocol {
        let CustomProtocol { name, template, level, summary, value_schema, defined_at, revision } = stored;
        let message =
            Message { name: ONLY_MESSAGE.to_owned(), template, value_schema, recommended_ttl: None };
        Protocol {
            name,
            level,
            scope_template: level.scope_template(),
            summary,
            built_in: false,
            messages: vec![message],
            defined_at: Some(defined_at),
            revision: Some(revision),
        }
    }
}

/// Refuses a text that cannot be the name of a protocol: it is a word of commands and of references.
pub(super) fn check_name(name: &str) -> Result<()> {
    let is_allowed = |each: char| each.is_ascii_alphanumeric() || each == '_' || each == '-';
    let problem = if name.is_empty() {
        "is empty".to_owned()
    } else if name.len() > MAX_NAME_BYTES {
        format!("has more than {MAX_NAME_BYTES} bytes")
    } else if !name.chars().all(is_allowed) || !name.starts_with(|first: char| first.is_ascii_alphanumeric())
    {
        "has other characters than letters, digits, - and _".to_owned()
    } else {
        return Ok(());
    };
    let message = format!("the name of the protocol {problem}: \"{}\"", shown(name));
    Err(Refusal::new(Code::InvalidValue, message).hint("write a name such as \"review-task\"").into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_words_of_a_command() {
        testkit::limit_test();
        for name in ["review", "Review_2", "review-task", "2"] {
            check_name(name).unwrap();
        }
        let long = "x".repeat(MAX_NAME_BYTES + 1);
        for name in ["", "-x", "a.b", "a b", "a:b", "ä", "a\n", &long] {
            assert_eq!(check_name(name).unwrap_err().code(), Code::InvalidValue, "{name}");
        }
    }
}
