//! Access rules and members: who may read, write and delete which entries.
//!
//! [`refusal`] is the rule, a pure function of the policies of a scope and the names of a caller. `guard.rs` applies it to one
//! state of the board, and `caller.rs` says who calls.

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Policies, ScopePolicies, Visibility};
use crate::entry::{Glob, check_pattern};
use crate::error::{Code, Error, Refusal, Result};
use crate::hint::Hint;
use crate::names::impl_names;
use crate::text::{escape_for_terminal, forges};

/// How many access rules a scope may have: every operation on its entries compares the caller and the key with them.
pub const MAX_ACCESS_RULES: usize = 100;

/// How many members a scope may have.
pub const MAX_MEMBERS: usize = 100;

/// How long the name of a member, or the pattern of a rule for callers, may be.
const MAX_NAME_BYTES: usize = 256;

/// What a caller does with an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AccessOperation {
    /// It gets the value, the key or an event about it.
    Read,
    /// It writes the value.
    Write,
    /// It deletes or purges the entry.
    Delete,
}

impl AccessOperation {
    /// All of them.
    pub const ALL: &'static [AccessOperation] =
        &[AccessOperation::Read, AccessOperation::Write, AccessOperation::Delete];

    /// The name.
    pub fn as_str(self) -> &'static str {
        match self {
            AccessOperation::Read => "read",
            AccessOperation::Write => "write",
            AccessOperation::Delete => "delete",
        }
    }
}

impl_names!(AccessOperation, "kind of access");

/// What a rule does with the operations that it names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Effect {
    /// It allows them, and no other caller has them unless another rule allows it.
    Allow,
    /// It denies them, whatever other rules allow.
    Deny,
}

impl Effect {
    /// The name.
    pub fn as_str(self) -> &'static str {
        match self {
            Effect::Allow => "allow",
            Effect::Deny => "deny",
        }
    }
}

/// A rule for some callers, operations and keys.
///
/// ```
/// use blackboard::scope::{AccessOperation, AccessRule, Effect};
///
/// let rule = AccessRule::parse(Effect::Allow, "analyst:read,write:result:*")?;
/// assert_eq!((&*rule.who, &*rule.keys), ("analyst", "result:*"));
/// assert_eq!(rule.operations, [AccessOperation::Read, AccessOperation::Write]);
/// # Ok::<(), blackboard::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AccessRule {
    /// What it does.
    pub effect: Effect,
    /// A pattern of authors, agent names and session ids; see [`Glob`].
    pub who: String,
    /// The operations, each once.
    pub operations: Vec<AccessOperation>,
    /// A pattern of keys.
    pub keys: String,
}

impl AccessRule {
    /// Parses `WHO:OPERATIONS` or `WHO:OPERATIONS:KEYS`. The operations are separated by commas; `*` means all of them. Without
    /// keys, the rule is about all. Only the keys may contain a colon: in a name, `?` matches it.
    pub fn parse(effect: Effect, text: &str) -> Result<AccessRule> {
        let wrong = || {
            let text = escape_for_terminal(text);
            Error::invalid(format!(
                "\"{text}\" is not WHO:OPERATIONS[:KEYS], for example \"analyst:read,write:result:*\""
            ))
        };
        let (who, rest) = text.split_once(':').ok_or_else(wrong)?;
        let (operations, keys) = rest.split_once(':').unwrap_or((rest, "*"));
        let operations: BTreeSet<AccessOperation> = match operations.trim() {
            "*" => AccessOperation::ALL.iter().copied().collect(),
            list => list.split(',').map(|name| name.trim().parse()).collect::<Result<_>>()?,
        };
        Ok(AccessRule {
            effect,
            who: who.to_owned(),
            operations: operations.into_iter().collect(),
            keys: keys.to_owned(),
        })
    }

    /// Whether it is about this operation of one of these names on a key.
    fn matches(&self, names: &[String], operation: AccessOperation, key: &str) -> bool {
        let who = || Glob::new(&self.who);
        self.operations.contains(&operation)
            && (self.who == "*" || names.iter().any(|name| who().matches(name)))
            && (self.keys == "*" || Glob::new(&self.keys).matches(key))
    }
}

impl fmt::Display for AccessRule {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let operations: Vec<_> = self.operations.iter().map(|operation| operation.as_str()).collect();
        write!(formatter, "{} {}:{}:{}", self.effect.as_str(), self.who, operations.join(","), self.keys)
    }
}

/// The access rules of a scope. Their order does not matter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AccessRules(Vec<AccessRule>);

impl AccessRules {
    /// These rules.
    pub fn new(rules: Vec<AccessRule>) -> AccessRules {
        AccessRules(rules)
    }

    /// The rules as they are stored: sorted, each once, so that the same ones are equal.
    pub(super) fn stored(&self) -> AccessRules {
        let mut rules = self.0.clone();
        rules.sort_by_key(ToString::to_string);
        rules.dedup();
        AccessRules(rules)
    }

    /// The rules.
    pub fn as_slice(&self) -> &[AccessRule] {
        &self.0
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether callers with these names may do this: no rule that matches denies it, and if rules allow the operation at all,
    /// one of them matches.
    fn allow(&self, names: &[String], operation: AccessOperation, key: &str) -> bool {
        let matches = |rule: &AccessRule| rule.matches(names, operation, key);
        let has = |effect, rule: &AccessRule| rule.effect == effect;
        let denied = self.0.iter().any(|rule| has(Effect::Deny, rule) && matches(rule));
        let mut allowing = self
            .0
            .iter()
            .filter(|rule| has(Effect::Allow, rule) && rule.operations.contains(&operation))
            .peekable();
        !denied && (allowing.peek().is_none() || allowing.any(matches))
    }
}

/// Refuses members and access rules that are too many, or that cannot match.
pub(super) fn check_access(scope: &str, policies: &Policies) -> Result<()> {
    let Policies { visibility, members, access, .. } = policies;
    let has_members = !members.is_empty();
    if *visibility == Visibility::Shared && !has_members {
        return Err(Refusal::new(Code::InvalidValue, "a shared scope needs members")
            .hint(Hint::NameMembers)
            .into());
    }
    if *visibility != Visibility::Shared && has_members {
        return Err(Error::invalid("only a shared scope has members"));
    }
    if members.len() > MAX_MEMBERS {
        let count = members.len();
        return Err(Error::invalid(format!("{count} members are too many; {MAX_MEMBERS} are allowed")));
    }
    members.iter().try_for_each(|member| check_name("member", member))?;
    let rules = access.as_slice();
    if rules.len() > MAX_ACCESS_RULES {
        let count = rules.len();
        let message = format!("{count} access rules are too many; {MAX_ACCESS_RULES} are allowed");
        return Err(Error::invalid(message));
    }
    for rule in rules {
        check_name("caller in an access rule", &rule.who)?;
        check_pattern(scope, &rule.keys)?;
        if rule.operations.is_empty() {
            return Err(Error::invalid("an access rule names no operation"));
        }
    }
    Ok(())
}

/// Names as they are stored: sorted, each once.
pub(super) fn sorted(names: &[String]) -> Vec<String> {
    names.iter().cloned().collect::<BTreeSet<_>>().into_iter().collect()
}

fn check_name(what: &str, name: &str) -> Result<()> {
    let problem = if name.trim().is_empty() {
        "is empty"
    } else if name.len() > MAX_NAME_BYTES {
        "is too long"
    } else if name.contains(forges) {
        "contains control or invisible characters"
    } else {
        return Ok(());
    };
    Err(Error::invalid(format!("the name of a {what} {problem}")))
}

impl Policies {
    /// The same policies with their owner, which only policies have that restrict their callers.
    pub(super) fn owned_by(&self, session: Option<&str>) -> Policies {
        let owner = session.filter(|_| self.restrict_callers()).map(str::to_owned);
        let members = sorted(&self.members);
        Policies { owner, members, access: self.access.stored(), ..self.clone() }
    }

    /// Whether it matters who uses the entries.
    pub(super) fn restrict_callers(&self) -> bool {
        let by_visibility = match self.visibility {
            Visibility::Global | Visibility::Persistent => false,
            Visibility::Shared | Visibility::Local => true,
        };
        by_visibility || !self.access.is_empty()
    }

    /// The texts of access rules and members, which callers write.
    pub(super) fn access_texts(&self) -> impl Iterator<Item = &str> {
        let rules = self.access.as_slice().iter().flat_map(|rule| [rule.who.as_str(), rule.keys.as_str()]);
        rules.chain(self.members.iter().map(String::as_str))
    }
}

impl ScopePolicies {
    /// Whether it matters who uses the entries.
    pub(crate) fn is_restricted(&self) -> bool {
        self.policies.restrict_callers()
    }

    pub(super) fn is_owner(&self, session: Option<&str>) -> bool {
        self.policies.owner.is_some() && self.policies.owner.as_deref() == session
    }
}

/// Why a scope refuses a caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Denial {
    /// It is not a member.
    NotMember,
    /// The access rules do not allow it.
    Rules,
}

/// The rule: why a caller with these names may not do this, if it may not. Without a key, it is about the scope itself.
pub(super) fn refusal(
    row: &ScopePolicies,
    (names, session): (&[String], Option<&str>),
    what: Option<(AccessOperation, &str)>,
) -> Option<Denial> {
    let Policies { visibility, members, access, .. } = &row.policies;
    let is_visible = match visibility {
        Visibility::Global | Visibility::Persistent => true,
        Visibility::Shared => row.is_owner(session) || members.iter().any(|member| names.contains(member)),
        Visibility::Local => row.is_owner(session),
    };
    match what {
        _ if !is_visible => Some(Denial::NotMember),
        Some((operation, key)) if !access.allow(names, operation, key) => Some(Denial::Rules),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Timestamp;
    use crate::revision::Revision;

    fn rules(texts: &[&str]) -> AccessRules {
        let parse = |text: &&str| match text.strip_prefix('!') {
            Some(denied) => AccessRule::parse(Effect::Deny, denied),
            None => AccessRule::parse(Effect::Allow, text),
        };
        AccessRules::new(texts.iter().map(parse).collect::<Result<_>>().unwrap())
    }

    fn row(policies: Policies) -> ScopePolicies {
        ScopePolicies {
            scope: "team".to_owned(),
            policies,
            entries: None,
            created_at: Timestamp::EPOCH,
            created_by: "Ivy".to_owned(),
            updated_at: Timestamp::EPOCH,
            updated_by: "Ivy".to_owned(),
            revision: Revision::new(1),
            evicting_since: Revision::new(1),
        }
    }

    #[test]
    fn a_rule_has_three_parts_and_only_keys_contain_colons() {
        for (text, expected) in [
            ("analyst:read,write:result:*", Ok("allow analyst:read,write:result:*")),
            ("*:delete", Ok("allow *:delete:*")),
            ("a*:*:k", Ok("allow a*:read,write,delete:k")),
            ("ivy:write, read , write:*", Ok("allow ivy:read,write:*")),
            ("ivy", Err(Code::InvalidValue)),
            ("ivy:", Err(Code::InvalidValue)),
            ("ivy:own:*", Err(Code::InvalidValue)),
        ] {
            let parsed = AccessRule::parse(Effect::Allow, text).map(|rule| rule.to_string());
            assert_eq!(parsed.map_err(|error| error.code()), expected.map(str::to_owned), "{text}");
        }
    }

    #[test]
    fn a_denial_wins_and_an_allowed_operation_is_refused_to_others() {
        use AccessOperation::{Delete, Read, Write};
        for (texts, names, operation, key, expected) in [
            (&[][..], &["ivy"][..], Write, "a", true),
            (&["ivy:write:a*"], &["ivy"], Write, "a1", true),
            (&["ivy:write:a*"], &["ivy"], Write, "b", false),
            (&["ivy:write:a*"], &["oak"], Write, "a1", false),
            // No rule allows reads to some callers only.
            (&["ivy:write:a*"], &["oak"], Read, "a1", true),
            (&["i*:read"], &["oak", "ivy-1"], Read, "x", true),
            (&["ivy:read", "oak:read"], &["oak"], Read, "x", true),
            (&["!oak:*"], &["oak"], Delete, "x", false),
            (&["!oak:*"], &["ivy"], Delete, "x", true),
            (&["*:read", "!oak:read:secret:*"], &["oak"], Read, "secret:1", false),
            (&["!oak:read:secret:*", "*:read"], &["oak"], Read, "secret:1", false),
            (&["!oak:read:secret:*", "*:read"], &["oak"], Read, "note", true),
        ] {
            let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
            let allowed = rules(texts).allow(&names, operation, key);
            assert_eq!(allowed, expected, "{texts:?}: {names:?} {operation} {key}");
        }
    }

    #[test]
    fn a_shared_scope_is_for_its_owner_and_its_members() {
        let shared = Policies {
            visibility: Visibility::Shared,
            members: vec!["Oak".to_owned(), "session-3".to_owned()],
            owner: Some("session-1".to_owned()),
            access: rules(&["!Oak:delete"]),
            ..Policies::default()
        };
        let row = row(shared);
        for (names, session, what, expected) in [
            (&["Ivy", "session-1"][..], Some("session-1"), None, None),
            (&["Oak", "session-2"], Some("session-2"), None, None),
            (&["Oak"], None, None, None),
            (&["Elm", "session-3"], Some("session-3"), None, None),
            (&["Elm", "session-4"], Some("session-4"), None, Some(Denial::NotMember)),
            (&["Oak"], None, Some((AccessOperation::Read, "a")), None),
            (&["Oak"], None, Some((AccessOperation::Delete, "a")), Some(Denial::Rules)),
            (&["Elm"], None, Some((AccessOperation::Read, "a")), Some(Denial::NotMember)),
        ] {
            let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
            assert_eq!(refusal(&row, (&names, session), what), expected, "{names:?} {what:?}");
        }
    }

    #[test]
    fn members_belong_to_a_shared_scope_and_rules_are_limited() {
        let shared = |members: &[&str]| Policies {
            visibility: Visibility::Shared,
            members: members.iter().map(|name| (*name).to_owned()).collect(),
            ..Policies::default()
        };
        let many = |count| AccessRules::new(rules(&["a:read"]).0.into_iter().cycle().take(count).collect());
        for (policies, allowed) in [
            (shared(&["Oak"]), true),
            (shared(&[]), false),
            (shared(&["Oak", " "]), false),
            (Policies { visibility: Visibility::Global, ..shared(&["Oak"]) }, false),
            (Policies { access: many(MAX_ACCESS_RULES), ..Policies::default() }, true),
            (Policies { access: many(MAX_ACCESS_RULES + 1), ..Policies::default() }, false),
            (Policies { access: rules(&[":read"]), ..Policies::default() }, false),
            (Policies { access: rules(&["a:read:team:*"]), ..Policies::default() }, false),
        ] {
            assert_eq!(check_access("team", &policies).is_ok(), allowed, "{policies:?}");
        }
    }
}
