//! Which values are allowed under which keys.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::ValueType;
use crate::entry::{Glob, Value};
use crate::error::{Error, Result};
use crate::protocol::{Message, Mismatch, Schema, built_in, message_of, prefetch_protocol};
use crate::store::{Key, Prefetch, Tx};
use crate::text::escape_for_terminal;

/// A rule: the values under the keys that match are of this kind.
///
/// ```
/// use blackboard::protocol::Schema;
/// use blackboard::scope::{AllowedValues, ValueRule, ValueType};
///
/// let rule: ValueRule = "config.*=dict".parse()?;
/// assert_eq!((rule.keys.as_str(), &rule.values), ("config.*", &AllowedValues::Type(ValueType::Object)));
/// let score = ValueRule::schema("score:*", Schema::parse(r#"{"type": "number", "minimum": 0}"#)?);
/// let task = ValueRule::protocol("task:*", "Task");
/// assert_eq!([score.to_string(), task.to_string()], ["score:*=schema", "task:*=protocol Task"]);
/// # Ok::<(), blackboard::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "StoredRule", into = "StoredRule")]
pub struct ValueRule {
    /// A pattern of keys; see [`Glob`].
    pub keys: String,
    /// Their values.
    pub values: AllowedValues,
}

/// The values that a rule allows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AllowedValues {
    /// Those of a type.
    Type(ValueType),
    /// Those that match a JSON Schema.
    Schema(Schema),
    /// Those that match the schema of a message of a protocol, which is read when a value is written: `Task`, or
    /// `AgentRun.request` if the protocol has several messages.
    Protocol(String),
}

/// The JSON form of a rule, in which one member besides `keys` has a value.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredRule {
    keys: String,
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    value_type: Option<ValueType>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    schema: Option<Schema>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    protocol: Option<String>,
}

impl From<ValueRule> for StoredRule {
    fn from(ValueRule { keys, values }: ValueRule) -> StoredRule {
        let mut stored = StoredRule { keys, value_type: None, schema: None, protocol: None };
        match values {
            AllowedValues::Type(value_type) => stored.value_type = Some(value_type),
            AllowedValues::Schema(schema) => stored.schema = Some(schema),
            AllowedValues::Protocol(protocol) => stored.protocol = Some(protocol),
        }
        stored
    }
}

impl TryFrom<StoredRule> for ValueRule {
    type Error = &'static str;

    fn try_from(stored: StoredRule) -> Result<ValueRule, &'static str> {
        let StoredRule { keys, value_type, schema, protocol } = stored;
        let values = match (value_type, schema, protocol) {
            (Some(value_type), None, None) => AllowedValues::Type(value_type),
            (None, Some(schema), None) => AllowedValues::Schema(schema),
            (None, None, Some(protocol)) => AllowedValues::Protocol(protocol),
            _ => return Err("a rule for values has a type, a schema or a protocol"),
        };
        Ok(ValueRule { keys, values })
    }
}

impl ValueRule {
    /// Values under these keys match a JSON Schema.
    pub fn schema(keys: &str, schema: Schema) -> ValueRule {
        ValueRule { keys: keys.to_owned(), values: AllowedValues::Schema(schema) }
    }

    /// Values under these keys match the schema of a protocol.
    pub fn protocol(keys: &str, protocol: &str) -> ValueRule {
        ValueRule { keys: keys.to_owned(), values: AllowedValues::Protocol(protocol.to_owned()) }
    }

    /// Why it does not allow a value, if it does not.
    fn problem(&self, value: &Value, found: ValueType, protocols: &RuleProtocols) -> Result<Option<Problem>> {
        let mismatches = match &self.values {
            AllowedValues::Type(allowed) if allowed.includes(found) => return Ok(None),
            AllowedValues::Type(_) => return Ok(Some(Problem::Type(found))),
            AllowedValues::Schema(schema) => schema.mismatches(value)?,
            AllowedValues::Protocol(reference) => match protocols.get(reference) {
                None => return Ok(Some(Problem::NoProtocol(reference.clone()))),
                // A protocol without a schema describes every value.
                Some(message) => {
                    let schema = message.value_schema.as_ref();
                    schema.map_or_else(|| Ok(Vec::new()), |schema| schema.mismatches(value))?
                }
            },
        };
        Ok((!mismatches.is_empty()).then_some(Problem::Mismatches(mismatches)))
    }
}

/// Why a rule does not allow a value.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Problem {
    /// It has this type.
    Type(ValueType),
    /// It does not match a schema.
    Mismatches(Vec<Mismatch>),
    /// The board has no such protocol.
    NoProtocol(String),
}

impl fmt::Display for ValueRule {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keys = &self.keys;
        match &self.values {
            AllowedValues::Type(value_type) => write!(formatter, "{keys}={value_type}"),
            AllowedValues::Schema(_) => write!(formatter, "{keys}=schema"),
            AllowedValues::Protocol(protocol) => write!(formatter, "{keys}=protocol {protocol}"),
        }
    }
}

impl FromStr for ValueRule {
    type Err = Error;

    /// A pattern may contain `=`, a type does not.
    fn from_str(text: &str) -> Result<ValueRule> {
        let (keys, value_type) = text.rsplit_once('=').ok_or_else(|| {
            Error::invalid(format!("\"{}\" is not PATTERN=TYPE", escape_for_terminal(text)))
        })?;
        Ok(ValueRule { keys: keys.to_owned(), values: AllowedValues::Type(value_type.parse()?) })
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

    /// The schemas, in their order.
    pub(super) fn schemas(&self) -> impl Iterator<Item = &Schema> {
        self.0.iter().filter_map(|rule| match &rule.values {
            AllowedValues::Schema(schema) => Some(schema),
            AllowedValues::Type(_) | AllowedValues::Protocol(_) => None,
        })
    }

    /// The protocols that rules name, each once.
    pub(crate) fn protocols(&self) -> impl Iterator<Item = &str> {
        let names = self.0.iter().filter_map(|rule| match &rule.values {
            AllowedValues::Protocol(reference) => Some(reference.as_str()),
            AllowedValues::Type(_) | AllowedValues::Schema(_) => None,
        });
        names.collect::<BTreeSet<_>>().into_iter()
    }

    /// Whether a rule names this protocol of the board.
    pub(crate) fn name_protocol(&self, name: &str) -> bool {
        let is_named = |reference| match prefetch_protocol(reference) {
            Some(Prefetch::Row(Key::CustomProtocol(named))) => named == name,
            _ => false,
        };
        self.protocols().any(is_named)
    }

    /// The protocols that they name, of the built-in ones.
    pub(super) fn built_in_protocols(&self) -> RuleProtocols {
        let messages =
            self.protocols().filter_map(|name| Some((name.to_owned(), built_in(name).ok()?.clone())));
        RuleProtocols(messages.collect())
    }

    /// The rules as they are stored: schemas without white space, so that the same ones are equal.
    pub(super) fn stored(&self) -> ValueRules {
        let stored = self.0.iter().map(|rule| match &rule.values {
            AllowedValues::Schema(schema) => ValueRule::schema(&rule.keys, schema.without_white_space()),
            AllowedValues::Type(_) | AllowedValues::Protocol(_) => rule.clone(),
        });
        ValueRules(stored.collect())
    }

    /// The first rule that the value of a key breaks, and why.
    pub(super) fn broken_by(
        &self,
        key: &str,
        value: &Value,
        protocols: &RuleProtocols,
    ) -> Result<Option<(&ValueRule, Problem)>> {
        let found = ValueType::of(value);
        for rule in self.0.iter().filter(|rule| Glob::new(&rule.keys).matches(key)) {
            if let Some(problem) = rule.problem(value, found, protocols)? {
                return Ok(Some((rule, problem)));
            }
        }
        Ok(None)
    }
}

/// The messages of the protocols that rules name. One that does not exist is missing.
#[derive(Debug, Default)]
pub(crate) struct RuleProtocols(BTreeMap<String, Message>);

impl RuleProtocols {
    /// Announces what [`RuleProtocols::of`] reads.
    pub(super) fn prefetch(rules: &ValueRules) -> impl Iterator<Item = Prefetch<'static>> {
        rules.protocols().filter_map(prefetch_protocol).collect::<Vec<_>>().into_iter()
    }

    /// The protocols of rules that were read before; most rules name none. The commit validates the rows of those that the
    /// board defines.
    pub(crate) fn announced(tx: &dyn Tx, rules: &ValueRules) -> Result<RuleProtocols> {
        let prefetch: Vec<_> = RuleProtocols::prefetch(rules).collect();
        if !prefetch.is_empty() {
            tx.prefetch(&prefetch)?;
        }
        RuleProtocols::of(tx, rules)
    }

    /// The protocols of rules that were announced.
    pub(super) fn of(tx: &dyn Tx, rules: &ValueRules) -> Result<RuleProtocols> {
        let mut messages = BTreeMap::new();
        for reference in rules.protocols() {
            messages.extend(message_of(tx, reference)?.map(|message| (reference.to_owned(), message)));
        }
        Ok(RuleProtocols(messages))
    }

    /// The message of a protocol.
    pub(super) fn get(&self, reference: &str) -> Option<&Message> {
        self.0.get(reference)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(json: &str) -> Value {
        Value::parse(json, 1024).unwrap()
    }

    #[test]
    fn every_matching_rule_has_to_hold() {
        let schema = Schema::parse(r#"{"properties": {"score": {"maximum": 1}}}"#).unwrap();
        let types = ["config.*=dict", "count.*=int", "count.rate=number", "a=b=str"];
        let mut rules: Vec<_> = types.map(|text| text.parse().unwrap()).into();
        rules.push(ValueRule::schema("config.score.*", schema));
        rules.push(ValueRule::protocol("task:*", "Task"));
        rules.push(ValueRule::protocol("review:*", "review"));
        let rules = ValueRules::new(rules);
        let task = built_in("Task").unwrap().clone();
        let protocols = RuleProtocols(BTreeMap::from([("Task".to_owned(), task)]));
        for (key, json, broken) in [
            ("config.a", "{}", None),
            ("config.a", "[]", Some("config.*=object")),
            ("config.score.a", "[]", Some("config.*=object")),
            ("config.score.a", r#"{"score": 1}"#, None),
            ("config.score.a", r#"{"score": 2}"#, Some("config.score.*=schema")),
            ("count.runs", "3", None),
            ("count.runs", "3.5", Some("count.*=integer")),
            ("count.runs", "true", Some("count.*=integer")),
            ("count.rate", "3", None),
            ("count.rate", "\"3\"", Some("count.*=integer")),
            ("a=b", "\"x\"", None),
            ("a=b", "1", Some("a=b=string")),
            ("task:1", "1", Some("task:*=protocol Task")),
            ("review:1", "1", Some("review:*=protocol review")),
            ("other", "null", None),
        ] {
            let found = rules.broken_by(key, &value(json), &protocols).unwrap();
            let found = found.map(|(rule, _)| rule.to_string());
            assert_eq!(found.as_deref(), broken, "{key}: {json}");
        }
    }

    #[test]
    fn a_rule_is_stored_with_exactly_one_kind_of_values() {
        let schema = Schema::parse("{ \"type\":\n\"string\" }").unwrap();
        let rules = vec![
            "a.*=dict".parse().unwrap(),
            ValueRule::schema("b", schema),
            ValueRule::protocol("c", "AgentRun.request"),
        ];
        let stored = ValueRules::new(rules).stored();
        let json = serde_json::to_string(&stored).unwrap();
        assert_eq!(
            json,
            r#"[{"keys":"a.*","type":"object"},{"keys":"b","schema":{"type":"string"}},{"keys":"c","protocol":"AgentRun.request"}]"#
        );
        assert_eq!(serde_json::from_str::<ValueRules>(&json).unwrap(), stored);
        for damaged in [
            r#"[{"keys": "a"}]"#,
            r#"[{"keys": "a", "type": "object", "protocol": "Task"}]"#,
            r#"[{"keys": "a", "pattern": "^a"}]"#,
            r#"[{"keys": "a", "schema": {"pattern": "^a"}}]"#,
        ] {
            assert!(serde_json::from_str::<ValueRules>(damaged).is_err(), "{damaged}");
        }
    }
}
