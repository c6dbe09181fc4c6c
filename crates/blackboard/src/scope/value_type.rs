//! Which values are allowed under which keys.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::entry::{Glob, Value};
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

/// A rule: the values under the keys that match have this type.
///
/// ```
/// use blackboard::scope::{ValueRule, ValueType};
///
/// let rule: ValueRule = "config.*=dict".parse()?;
/// assert_eq!((rule.keys.as_str(), rule.value_type), ("config.*", ValueType::Object));
/// # Ok::<(), blackboard::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ValueRule {
    /// A pattern of keys; see [`Glob`].
    pub keys: String,
    /// The type that their values have.
    #[serde(rename = "type")]
    pub value_type: ValueType,
}

impl fmt::Display for ValueRule {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}={}", self.keys, self.value_type)
    }
}

impl FromStr for ValueRule {
    type Err = Error;

    /// A pattern may contain `=`, a type does not.
    fn from_str(text: &str) -> Result<ValueRule> {
        let (keys, value_type) = text.rsplit_once('=').ok_or_else(|| {
            Error::invalid(format!("\"{}\" is not PATTERN=TYPE", escape_for_terminal(text)))
        })?;
        Ok(ValueRule { keys: keys.to_owned(), value_type: value_type.parse()? })
    }
}

/// The rules of a scope. Every rule whose pattern matches has to hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ValueRules(Vec<ValueRule>);

impl ValueRules {
    /// These rules.
    pub fn new(rules: Vec<ValueRule>) -> ValueRules {
        ValueRules(rules)
    }

    /// The rules, in their order.
    pub fn as_slice(&self) -> &[ValueRule] {
        &self.0
    }

    /// The first rule that the value of a key breaks.
    pub(super) fn broken_by(&self, key: &str, value: &Value) -> Option<&ValueRule> {
        let found = ValueType::of(value);
        let mut broken = self.0.iter().filter(|rule| !rule.value_type.includes(found));
        broken.find(|rule| Glob::new(&rule.keys).matches(key))
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

    #[test]
    fn every_matching_rule_has_to_hold() {
        let rules =
            |texts: &[&str]| ValueRules::new(texts.iter().map(|text| text.parse().unwrap()).collect());
        let config = rules(&["config.*=dict", "count.*=int", "count.rate=number", "a=b=str"]);
        for (key, json, broken) in [
            ("config.a", "{}", None),
            ("config.a", "[]", Some("config.*=object")),
            ("count.runs", "3", None),
            ("count.runs", "3.5", Some("count.*=integer")),
            ("count.runs", "true", Some("count.*=integer")),
            ("count.rate", "3", None),
            ("count.rate", "\"3\"", Some("count.*=integer")),
            ("a=b", "\"x\"", None),
            ("a=b", "1", Some("a=b=string")),
            ("other", "null", None),
        ] {
            let value = Value::parse(json, 64).unwrap();
            let found = config.broken_by(key, &value).map(ToString::to_string);
            assert_eq!(found.as_deref(), broken, "{key}: {json}");
        }
    }
}
