//! The key `quota`: an object that the library parses ([`quota::Config`]).

use blackboard::quota;
use jsonc_parser::JsonValue;
use serde_json::Value;

use super::Config;
use super::file::Origin;

/// A quota that is not valid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct InvalidQuota {
    /// What is wrong with it.
    pub(crate) reason: String,
    /// Whether it says that claims are refused.
    pub(crate) denies: bool,
}

/// Applies the value, and returns warnings about what is ignored.
pub(super) fn apply(value: JsonValue<'_>, origin: Origin, config: &mut Config) -> Vec<String> {
    if !matches!(value, JsonValue::Object(_)) {
        return vec!["quota must be an object (default none), so this value is ignored".to_owned()];
    }
    let value = to_json(value);
    let denies = value.get("enforce").is_some_and(|enforce| enforce == "deny");
    let parsed = match quota::Config::from_json(value) {
        Ok(parsed) => parsed,
        Err(error) => {
            if origin == Origin::Home {
                config.invalid_quota = Some(InvalidQuota { reason: error.to_string(), denies });
            }
            return vec![format!("quota is ignored: {error}")];
        }
    };
    match (origin, &mut config.quota) {
        (Origin::Home, quota) => {
            *quota = Some(Box::new(parsed));
            Vec::new()
        }
        // A clone must not cause that a ledger is created.
        (Origin::Project, None) => {
            vec!["quota has no effect: the home configuration does not have it".to_owned()]
        }
        (Origin::Project, Some(home)) => {
            let reasons = home.restrict(&parsed).into_iter();
            reasons.map(|reason| format!("quota.{reason}, so it is ignored here")).collect()
        }
    }
}

/// The same value for another parser. The depth of a value is limited by its own one.
pub(crate) fn to_json(value: JsonValue<'_>) -> Value {
    match value {
        JsonValue::String(text) => Value::String(text.into_owned()),
        JsonValue::Number(digits) => serde_json::from_str(digits).unwrap_or(Value::Null),
        JsonValue::Boolean(on) => Value::Bool(on),
        JsonValue::Null => Value::Null,
        JsonValue::Array(items) => items.into_iter().map(to_json).collect(),
        JsonValue::Object(members) => {
            members.into_iter().map(|(name, value)| (name.into_owned(), to_json(value))).collect()
        }
    }
}
