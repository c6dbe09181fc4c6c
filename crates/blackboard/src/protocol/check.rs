//! `protocol check`: finds the protocols of a key, and checks a value.

use serde::Serialize;

use super::{Level, Protocols, RecommendedTtl, Template, Values};
use crate::entry::{Value, check_key, check_not_a_lock};
use crate::error::Result;
use crate::hint::Hint;

/// The protocols of a key.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CheckedKey {
    /// The key.
    pub key: String,
    /// The protocols that it belongs to, the most specific one first: the one whose template has the most words.
    pub protocols: Vec<KeyMatch>,
    /// The first of them that describes values, if a value was checked: the value matches its schema.
    pub value_checked_by: Option<String>,
}

/// A protocol that a key belongs to.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct KeyMatch {
    /// The protocol.
    pub protocol: String,
    /// The message.
    pub message: String,
    /// Which agents share its entries.
    pub level: Level,
    /// The form of its keys.
    pub template: Template,
    /// The values of the key, by their names.
    pub values: Values,
    /// Whether it describes values.
    pub has_value_schema: bool,
    /// For how long its entries should live.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recommended_ttl: Option<RecommendedTtl>,
}

impl Protocols<'_> {
    /// The protocols that a key belongs to. If a value is given, and the first protocol that describes values does not
    /// describe it, the call is refused with [`Code::ProtocolMismatch`](crate::Code::ProtocolMismatch). So is a value under a key
    /// of locks, which no entry has.
    ///
    /// ```
    /// # use blackboard::{Board, Code, entry::Value};
    /// # let board = Board::memory();
    /// let checked = board.protocols().check("task:q4", None)?;
    /// assert_eq!((checked.protocols[0].protocol.as_str(), checked.protocols.len()), ("Task", 1));
    /// let error = board.protocols().check("task:q4", Some(&Value::of("done")?)).unwrap_err();
    /// assert_eq!(error.code(), Code::ProtocolMismatch);
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn check(&self, key: &str, value: Option<&Value>) -> Result<CheckedKey> {
        check_key("", key)?;
        if value.is_some() {
            // No write stores it, whatever its value is.
            check_not_a_lock("", key)?;
        }
        let all = self.list()?;
        let mut found = Vec::new();
        for protocol in &all {
            for message in &protocol.messages {
                found.extend(message.template.parse(key).map(|values| (protocol, message, values)));
            }
        }
        // Stable, so that built-in protocols are before others with an equal template.
        found.sort_by_key(|(_, message, _)| message.template.vagueness());
        let described = found.iter().find(|(_, message, _)| message.value_schema.is_some());
        let mut value_checked_by = None;
        if let (Some(value), Some((protocol, message, _))) = (value, described) {
            let hint = || Hint::ShowProtocol(protocol.name.clone());
            message.check_value(value).map_err(|error| error.with_hint(hint()))?;
            value_checked_by = Some(protocol.reference(message));
        }
        let protocols = found.into_iter().map(|(protocol, message, values)| KeyMatch {
            protocol: protocol.name.clone(),
            message: message.name.clone(),
            level: protocol.level,
            template: message.template.clone(),
            values,
            has_value_schema: message.value_schema.is_some(),
            recommended_ttl: message.recommended_ttl,
        });
        Ok(CheckedKey { key: key.to_owned(), protocols: protocols.collect(), value_checked_by })
    }
}
