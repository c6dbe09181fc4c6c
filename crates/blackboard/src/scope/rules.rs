//! The rules of policies, each a pure function.

use super::access::check_access;
use super::value_rules::Problem;
use super::{Eviction, Policies, RuleProtocols, ScopePolicies, ValueRules, Visibility};
use crate::entry::{ACCESS_COUNT, Entry, Value, check_pattern, check_ttl};
use crate::error::{Code, Error, Refusal, Result};
use crate::hint::Hint;
use crate::protocol::{as_details, not_found as protocol_not_found};
use crate::text::shown;

/// How many rules for values a scope may have: every write compares its key with their patterns.
pub const MAX_VALUE_RULES: usize = 100;

/// The largest limit of entries, the largest number that every engine stores.
const MAX_LIMIT: u64 = i64::MAX.unsigned_abs();

/// How many bytes the schemas of all rules of a scope may have: every write into the scope reads them.
pub const MAX_RULE_SCHEMA_BYTES: usize = 32 * 1024;

/// Refuses policies that contradict each other, or that no write could satisfy.
pub(super) fn check_policies(scope: &str, policies: &Policies) -> Result<()> {
    let Policies { visibility, ttl, max_entries, eviction, validation, .. } = policies;
    check_access(scope, policies)?;
    check_ttl(*ttl)?;
    if *max_entries == Some(0) {
        return Err(Error::invalid("a scope that may have no entries cannot be used; the least is 1"));
    }
    if let Some(limit) = max_entries.filter(|limit| *limit > MAX_LIMIT) {
        return Err(Error::invalid(format!(
            "a limit of {limit} entries is too large; the largest is {MAX_LIMIT}"
        )));
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
    let bytes: usize = validation.schemas().map(|schema| schema.as_str().len()).sum();
    if bytes > MAX_RULE_SCHEMA_BYTES {
        let message = format!(
            "the schemas of the rules for values have {bytes} bytes; {MAX_RULE_SCHEMA_BYTES} are allowed"
        );
        return Err(Refusal::new(Code::InvalidValue, message)
            .hint("define a protocol with the schema, and name it in the rule")
            .into());
    }
    validation.as_slice().iter().try_for_each(|rule| check_pattern(scope, &rule.keys))
}

/// Refuses a rule whose protocol does not exist, or describes no values.
pub(super) fn check_protocols(rules: &ValueRules, protocols: &RuleProtocols) -> Result<()> {
    for reference in rules.protocols() {
        let message = protocols.get(reference).ok_or_else(|| protocol_not_found(reference))?;
        if message.value_schema.is_none() {
            let message = format!("protocol {} has no schema for values", shown(reference));
            return Err(Refusal::new(Code::InvalidValue, message).hint(Hint::ListProtocols).into());
        }
    }
    Ok(())
}

/// Refuses a value that a rule of its scope does not allow. A rule whose protocol was removed allows none.
pub(crate) fn check_value(row: &ScopePolicies, protocols: &RuleProtocols, entry: &Entry) -> Result<()> {
    check_value_of(&row.scope, &row.policies.validation, protocols, &entry.key, &entry.value)
}

/// The same for any rules.
pub(super) fn check_value_of(
    scope: &str,
    rules: &ValueRules,
    protocols: &RuleProtocols,
    key: &str,
    value: &Value,
) -> Result<()> {
    let Some((rule, problem)) = rules.broken_by(key, value, protocols)? else { return Ok(()) };
    let message = match &problem {
        Problem::Type(found) => format!("scope {scope} allows no {found} under {key}: its rule is {rule}"),
        Problem::Mismatches(mismatches) => {
            let first = mismatches.first().map(ToString::to_string).unwrap_or_default();
            format!("the value of {key} does not match the rule {rule} of scope {scope}: {first}")
        }
        Problem::NoProtocol(reference) => {
            format!(
                "scope {scope} allows no value under {key}: its rule is {rule}, and protocol {} does not exist",
                shown(reference)
            )
        }
    };
    let mut refusal = Refusal::new(Code::InvalidValue, message)
        .hint(Hint::ShowScope(scope.to_owned()))
        .detail("scope", scope)
        .detail("key", key)
        .detail("rule", rule.to_string());
    refusal = match problem {
        Problem::Type(found) => refusal.detail("found", found.as_str()),
        Problem::Mismatches(mismatches) => refusal.detail("mismatches", as_details(&mismatches)),
        Problem::NoProtocol(reference) => refusal.detail("protocol", reference),
    };
    Err(refusal.into())
}

/// Refuses an entry without an access count in a scope that evicts by it.
pub(crate) fn check_counted(row: &ScopePolicies, entry: &Entry) -> Result<()> {
    let ScopePolicies { scope, policies: Policies { max_entries, eviction, .. }, .. } = row;
    let needs_count = *eviction == Eviction::Lfu && max_entries.is_some() && entry.session_id.is_none();
    if !needs_count || entry.access_count().is_some() {
        return Ok(());
    }
    let message = format!(
        "scope {scope} evicts the least frequently used entry: the metadata of {} needs {ACCESS_COUNT}, a whole number from 0 to {}",
        entry.key,
        i64::MAX
    );
    let hint = Hint::CountUses { scope: scope.clone(), key: entry.key.clone() };
    Err(Refusal::new(Code::InvalidValue, message).hint(hint).into())
}

impl Policies {
    /// Whether a full scope refuses new keys.
    pub(crate) fn evicts_nothing(&self) -> bool {
        self.visibility == Visibility::Persistent || self.eviction == Eviction::Refuse
    }
}

/// The refusal of a write that would exceed the limit of its scope.
pub(crate) fn scope_full(scope: &str, limit: u64, evicts: bool) -> Error {
    let entries = if limit == 1 { "entry" } else { "entries" };
    let why = if evicts { "each is leased, or written by this call" } else { "it evicts none" };
    Refusal::new(Code::ScopeFull, format!("scope {scope} is full: it has {limit} {entries}, and {why}"))
        .hint(Hint::FreeSpaceIn(scope.to_owned()))
        .detail("scope", scope)
        .detail("max_entries", limit)
        .into()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::protocol::Schema;
    use crate::scope::ValueRule;

    #[test]
    fn policies_must_not_contradict_each_other() {
        testkit::limit_test();
        let day = Some(Duration::from_hours(24));
        let rules = |keys: &str, count| {
            let rule = format!("{keys}=int").parse().unwrap();
            ValueRules::new(vec![rule; count])
        };
        let long = format!(r#"{{"title": "{}"}}"#, "x".repeat(MAX_RULE_SCHEMA_BYTES / 3));
        let schema = ValueRule::schema("a.*", Schema::parse(&long).unwrap());
        let schemas = |count| ValueRules::new(vec![schema.clone(); count]);
        let persistent = || Policies { visibility: Visibility::Persistent, ..Policies::default() };
        for (policies, allowed) in [
            (Policies::default(), true),
            (Policies { ttl: day, max_entries: Some(1), ..Policies::default() }, true),
            (Policies { ttl: Some(Duration::ZERO), ..Policies::default() }, false),
            (Policies { max_entries: Some(MAX_LIMIT), ..Policies::default() }, true),
            (Policies { max_entries: Some(MAX_LIMIT + 1), ..Policies::default() }, false),
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
            (Policies { validation: schemas(1), ..Policies::default() }, true),
            (Policies { validation: schemas(3), ..Policies::default() }, false),
        ] {
            assert_eq!(check_policies("team", &policies).is_ok(), allowed, "{policies:?}");
        }
    }
}
