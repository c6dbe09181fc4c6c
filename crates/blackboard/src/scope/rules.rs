//! The rules of policies, each a pure function.

use super::{Eviction, Policies, ScopePolicies, ValueType, Visibility};
use crate::entry::{ACCESS_COUNT, Entry, Value, check_pattern, check_ttl};
use crate::error::{Code, Error, Refusal, Result};
use crate::hint::Hint;

/// How many rules for values a scope may have: every write compares its key with their patterns.
pub const MAX_VALUE_RULES: usize = 100;

/// Refuses policies that contradict each other, or that no write could satisfy.
pub(super) fn check_policies(scope: &str, policies: &Policies) -> Result<()> {
    let Policies { visibility, ttl, max_entries, eviction, validation } = policies;
    check_ttl(*ttl)?;
    if *max_entries == Some(0) {
        return Err(Error::invalid("a scope that may have no entries cannot be used; the least is 1"));
    }
    if *visibility == Visibility::Persistent {
        if ttl.is_some() {
            return Err(Error::invalid("entries of a persistent scope have no default TTL"));
        }
        if max_entries.is_some() && *eviction != Eviction::Refuse {
            let message = "entries of a persistent scope are never evicted: a limit has to refuse writes";
            return Err(Refusal::new(Code::InvalidValue, message).hint(Hint::RefuseWhenFull).into());
        }
    }
    if validation.as_slice().len() > MAX_VALUE_RULES {
        let count = validation.as_slice().len();
        let message = format!("{count} rules for values are too many; {MAX_VALUE_RULES} are allowed");
        return Err(Error::invalid(message));
    }
    validation.as_slice().iter().try_for_each(|rule| check_pattern(scope, &rule.keys))
}

/// Refuses a value that a rule of its scope does not allow.
pub(crate) fn check_value(row: &ScopePolicies, key: &str, value: &Value) -> Result<()> {
    let Some(rule) = row.policies.validation.broken_by(key, value) else { return Ok(()) };
    let (scope, found) = (&row.scope, ValueType::of(value));
    let message = format!("scope {scope} allows no {found} under {key}: its rule is {rule}");
    Err(Refusal::new(Code::InvalidValue, message)
        .hint(Hint::ShowScope(scope.clone()))
        .detail("scope", scope.clone())
        .detail("key", key)
        .detail("rule", rule.to_string())
        .detail("found", found.as_str())
        .into())
}

/// Refuses an entry without an access count in a scope that evicts by it.
pub(crate) fn check_counted(row: &ScopePolicies, entry: &Entry) -> Result<()> {
    let ScopePolicies { scope, policies: Policies { max_entries, eviction, .. }, .. } = row;
    let needs_count = *eviction == Eviction::Lfu && max_entries.is_some() && entry.session_id.is_none();
    if !needs_count || entry.access_count().is_some() {
        return Ok(());
    }
    let message = format!(
        "scope {scope} evicts the least frequently used entry: the metadata of {} needs {ACCESS_COUNT}, a number from 0 on",
        entry.key
    );
    let hint = Hint::CountUses { scope: scope.clone(), key: entry.key.clone() };
    Err(Refusal::new(Code::InvalidValue, message).hint(hint).into())
}

/// The refusal of a write that would exceed the limit of its scope.
pub(crate) fn scope_full(row: &ScopePolicies) -> Error {
    let ScopePolicies { scope, policies: Policies { max_entries, eviction, .. }, .. } = row;
    let limit = max_entries.unwrap_or_default();
    let entries = if limit == 1 { "entry" } else { "entries" };
    let why = match eviction {
        Eviction::Refuse => "it evicts none",
        Eviction::Lru | Eviction::Lfu => "each is leased, or written by this call",
    };
    Refusal::new(Code::ScopeFull, format!("scope {scope} is full: it has {limit} {entries}, and {why}"))
        .hint(Hint::MakeRoomIn(scope.clone()))
        .detail("scope", scope.clone())
        .detail("max_entries", limit)
        .into()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::scope::ValueRules;

    #[test]
    fn policies_must_not_contradict_each_other() {
        let day = Some(Duration::from_hours(24));
        let rules = |keys: &str, count| {
            let rule = format!("{keys}=int").parse().unwrap();
            ValueRules::new(vec![rule; count])
        };
        let persistent = || Policies { visibility: Visibility::Persistent, ..Policies::default() };
        for (policies, allowed) in [
            (Policies::default(), true),
            (Policies { ttl: day, max_entries: Some(1), ..Policies::default() }, true),
            (Policies { ttl: Some(Duration::ZERO), ..Policies::default() }, false),
            (Policies { max_entries: Some(0), ..Policies::default() }, false),
            (persistent(), true),
            (Policies { ttl: day, ..persistent() }, false),
            (Policies { max_entries: Some(9), ..persistent() }, false),
            (Policies { max_entries: Some(9), eviction: Eviction::Lfu, ..persistent() }, false),
            (Policies { max_entries: Some(9), eviction: Eviction::Refuse, ..persistent() }, true),
            (Policies { validation: rules("count.*", MAX_VALUE_RULES), ..Policies::default() }, true),
            (Policies { validation: rules("count.*", MAX_VALUE_RULES + 1), ..Policies::default() }, false),
            (Policies { validation: rules("", 1), ..Policies::default() }, false),
            (Policies { validation: rules("team:*", 1), ..Policies::default() }, false),
        ] {
            assert_eq!(check_policies("team", &policies).is_ok(), allowed, "{policies:?}");
        }
    }
}
