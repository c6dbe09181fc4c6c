//! The types of JSON values.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::entry::Value;
use crate::error::{Error, Result};
use crate::text::escape_for_terminal;

/// A type of JSON values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ValueType {
    /// An object; also `dict`.
    Object,
    /// An array; also `list`.
    Array,
    /// A string; also `str`.
    String,
    /// A number; also `float`.
    Number,
    /// A number without a fraction and without an exponent; also `int`.
    Integer,
    /// `true` or `false`; also `bool`.
    Boolean,
    /// `null`.
    Null,
}

impl ValueType {
    /// All of them, each with its other name.
    const NAMES: [(ValueType, &'static str, Option<&'static str>); 7] = [
        (ValueType::Object, "object", Some("dict")),
        (ValueType::Array, "array", Some("list")),
        (ValueType::String, "string", Some("str")),
        (ValueType::Number, "number", Some("float")),
        (ValueType::Integer, "integer", Some("int")),
        (ValueType::Boolean, "boolean", Some("bool")),
        (ValueType::Null, "null", None),
    ];

    /// The type of a value: the most specific one.
    ///
    /// ```
    /// use blackboard::entry::Value;
    /// use blackboard::scope::ValueType;
    ///
    /// assert_eq!(ValueType::of(&Value::of(&7)?), ValueType::Integer);
    /// assert_eq!(ValueType::of(&Value::of("7")?), ValueType::String);
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn of(value: &Value) -> ValueType {
        let text = value.as_str();
        match text.as_bytes().first() {
            Some(b'{') => ValueType::Object,
            Some(b'[') => ValueType::Array,
            Some(b'"') => ValueType::String,
            Some(b't' | b'f') => ValueType::Boolean,
            Some(b'n') => ValueType::Null,
            _ if text.contains(['.', 'e', 'E']) => ValueType::Number,
            _ => ValueType::Integer,
        }
    }

    /// Whether values of the type `found` are values of this type.
    pub(super) fn includes(self, found: ValueType) -> bool {
        self == found || (self == ValueType::Number && found == ValueType::Integer)
    }

    /// The name.
    pub fn as_str(self) -> &'static str {
        let names = ValueType::NAMES.into_iter();
        names.filter(|(known, ..)| *known == self).map(|(_, name, _)| name).next().unwrap_or_default()
    }
}

impl fmt::Display for ValueType {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.as_str())
    }
}

impl FromStr for ValueType {
    type Err = Error;

    fn from_str(text: &str) -> Result<ValueType> {
        let mut names = ValueType::NAMES.into_iter();
        let found = names.find(|(_, name, other)| *name == text || *other == Some(text));
        found.map(|(known, ..)| known).ok_or_else(|| {
            let allowed = ValueType::NAMES.map(|(_, name, other)| match other {
                Some(other) => format!("{name} ({other})"),
                None => name.to_owned(),
            });
            let text = escape_for_terminal(text);
            Error::invalid(format!("\"{text}\" is not a type of values; allowed: {}", allowed.join(", ")))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_has_the_type_of_its_text() {
        for (json, expected) in [
            ("{}", ValueType::Object),
            ("[1]", ValueType::Array),
            ("\"1\"", ValueType::String),
            ("-1", ValueType::Integer),
            ("1.0", ValueType::Number),
            ("1e3", ValueType::Number),
            ("true", ValueType::Boolean),
            ("false", ValueType::Boolean),
            ("null", ValueType::Null),
        ] {
            assert_eq!(ValueType::of(&Value::parse(json, 64).unwrap()), expected, "{json}");
        }
    }

    #[test]
    fn a_type_has_a_json_name_and_a_python_name() {
        for (name, expected) in [
            ("dict", "object"),
            ("list", "array"),
            ("str", "string"),
            ("float", "number"),
            ("int", "integer"),
            ("bool", "boolean"),
            ("null", "null"),
        ] {
            let found: ValueType = name.parse().unwrap();
            assert_eq!(found.as_str(), expected);
            assert_eq!(expected.parse::<ValueType>().unwrap(), found);
        }
        assert!("tuple".parse::<ValueType>().is_err());
    }
}
