//! `scope set`: changes policies of a scope.

use std::time::Duration;

use serde::Serialize;

use super::create::{check_fits, check_text, described};
use super::restrict::check_restriction;
use super::rules::{check_policies, check_protocols};
use super::size::{count, prefetch_count};
use super::{
    AccessRules, Effect, Eviction, Policies, RuleProtocols, ScopeDetails, ScopePolicies, Scopes, ValueRules,
    Visibility, no_policies, whole_milliseconds,
};
use crate::agent::prefetch_agent;
use crate::clock::Timestamp;
use crate::entry::{Actor, EntryEditor, check_known_scope, check_not_reserved};
use crate::error::{Error, Result};
use crate::event::{EventType, NewEvent, TargetType};
use crate::revision::{Pending, Revision};
use crate::store::{Changes, Key, Prefetch, Range};

/// Policies to change. What is `None` stays.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SetScope {
    /// The name of the scope.
    pub name: String,
    /// The visibility.
    pub visibility: Option<Visibility>,
    /// The members of a shared scope, in place of all earlier ones.
    pub members: Option<Vec<String>>,
    /// The rules that allow, in place of all earlier ones that do. Those that deny stay.
    pub allow: Option<AccessRules>,
    /// The rules that deny, in place of all earlier ones that do. Those that allow stay.
    pub deny: Option<AccessRules>,
    /// The default time to live; `Some(None)` for none.
    pub ttl: Option<Option<Duration>>,
    /// The most entries; `Some(None)` for no limit.
    pub max_entries: Option<Option<u64>>,
    /// What happens to a write that would exceed it.
    pub eviction: Option<Eviction>,
    /// The rules for values, in place of all earlier ones.
    pub validation: Option<ValueRules>,
    /// The session that acts.
    pub session: Option<String>,
}

impl SetScope {
    /// No change of this scope.
    pub fn of(name: &str) -> SetScope {
        SetScope { name: name.to_owned(), ..SetScope::default() }
    }

    /// The access rules after this change of `old` ones.
    fn new_access(&self, old: &AccessRules) -> Result<AccessRules> {
        let mut rules = Vec::new();
        for (effect, given) in [(Effect::Allow, &self.allow), (Effect::Deny, &self.deny)] {
            let new = given.as_ref().unwrap_or(old).as_slice().iter();
            match given {
                Some(given) if given.as_slice().iter().any(|rule| rule.effect != effect) => {
                    let effect = effect.as_str();
                    return Err(Error::invalid(format!(
                        "a rule of another effect is among those that {effect}"
                    )));
                }
                _ => rules.extend(new.filter(|rule| rule.effect == effect).cloned()),
            }
        }
        Ok(AccessRules::new(rules))
    }
}

/// The result of a change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ScopeUpdated {
    /// The scope.
    #[serde(flatten)]
    pub scope: ScopeDetails,
    /// Whether this call changed it.
    pub updated: bool,
}

impl Pending for ScopeUpdated {
    fn resolve(&mut self, first: Revision) {
        self.scope.revision.resolve(first);
    }
}

impl Scopes<'_> {
    /// Changes the given policies of a scope that has some. Entries stay as they are: a new time to live applies to later
    /// writes, and a limit below the number of entries is refused.
    ///
    /// ```
    /// # use blackboard::{Board, scope::{CreateScope, Eviction, Policies, SetScope}};
    /// # let board = Board::memory();
    /// board.scopes().create(&CreateScope::new("cache", Policies::default()))?;
    /// let limit = SetScope { max_entries: Some(Some(100)), ..SetScope::of("cache") };
    /// assert!(board.scopes().set(&limit)?.updated);
    /// assert!(!board.scopes().set(&limit)?.updated);
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn set(&self, request: &SetScope) -> Result<ScopeUpdated> {
        let SetScope { name, session, .. } = request;
        check_known_scope(name)?;
        check_not_reserved(name)?;
        let request =
            &SetScope { validation: request.validation.as_ref().map(ValueRules::stored), ..request.clone() };
        // Only new rules are checked: a protocol of the others may have been removed.
        let no_rules = ValueRules::default();
        let rules = request.validation.as_ref().unwrap_or(&no_rules);
        check_text(rules, &self.board.settings().text)?;
        let callers = Policies {
            members: request.members.clone().unwrap_or_default(),
            access: request.new_access(&AccessRules::default())?,
            ..Policies::default()
        };
        self.board.settings().text.check_unaltered(callers.access_texts())?;
        let key = Key::ScopePolicies(name.clone());
        let whole = Range::entries(name, "");
        let mut prefetch = vec![Prefetch::Row(key.clone()), Prefetch::Count(whole.clone())];
        prefetch.extend(prefetch_agent(session.as_deref()));
        prefetch.extend(RuleProtocols::prefetch(rules));
        let actor = Actor { session: session.clone(), ..Actor::default() };
        self.board.commit_as(session.as_deref().as_slice(), "scope set", &prefetch, |tx| {
            let mut editor = EntryEditor::new(self.board, tx, &actor)?;
            let before = tx.row::<ScopePolicies>(&key)?.ok_or_else(|| no_policies(name))?;
            check_protocols(rules, &RuleProtocols::of(tx, rules)?)?;
            editor.check_owner(&before)?;
            before.check_not_ended()?;
            if !before.is_live() {
                return Err(no_policies(name));
            }
            let gets_limit = before.entries.is_none() && matches!(request.max_entries, Some(Some(_)));
            let entries = if gets_limit {
                tx.prefetch(&[prefetch_count(name)])?;
                count(tx, name)?
            } else {
                before.entries.map_or_else(|| tx.count(&whole), Ok)?
            };
            let (author, now) = (editor.author.clone(), tx.now());
            let by = |event: NewEvent| event.by(session.as_deref());
            let old = before.clone();
            let updated = decide(request, before, entries, (&author, now), by, &mut editor.changes)?;
            check_restriction(tx, &editor, name, Some(&old), &updated.scope.policies)?;
            Ok((editor.finish()?, updated))
        })
    }
}

fn decide(
    request: &SetScope,
    before: ScopePolicies,
    entries: u64,
    (author, now): (&str, Timestamp),
    by: impl FnOnce(NewEvent) -> NewEvent,
    changes: &mut Changes,
) -> Result<ScopeUpdated> {
    let old = &before.policies;
    let new = Policies {
        visibility: request.visibility.unwrap_or(old.visibility),
        members: match (&request.members, request.visibility) {
            (Some(members), _) => members.clone(),
            // Only a shared scope has members.
            (None, Some(visibility)) if visibility != Visibility::Shared => Vec::new(),
            (None, _) => old.members.clone(),
        },
        owner: old.owner.clone(),
        work_item: old.work_item.clone(),
        access: request.new_access(&old.access)?,
        ttl: request.ttl.map_or(old.ttl, |ttl| ttl.map(whole_milliseconds)),
        max_entries: request.max_entries.unwrap_or(old.max_entries),
        eviction: request.eviction.unwrap_or(old.eviction),
        validation: request.validation.clone().unwrap_or_else(|| old.validation.clone()),
        level: old.level.clone(),
        status: old.status,
        hidden_until: old.hidden_until,
    };
    let new = new.owned_by(old.owner.as_deref().or(request.session.as_deref()));
    let name = before.scope.clone();
    if new == *old {
        return Ok(ScopeUpdated { scope: ScopeDetails::of(name, entries, Some(&before)), updated: false });
    }
    match (old.visibility == Visibility::Local, new.visibility == Visibility::Local) {
        (true, false) => return Err(Error::invalid("cannot change the visibility of a local scope")),
        (false, true) => return Err(Error::invalid("cannot make an existing scope local")),
        (true, true) | (false, false) => {}
    }
    check_policies(&name, &new)?;
    check_fits(&name, new.max_entries, entries)?;
    let summary = format!("Agent \"{author}\" changed the policies of scope \"{name}\"");
    let event = NewEvent::new(EventType::ScopeUpdated, TargetType::Scope, &name, summary);
    let revision = changes.event(by(event).with_all(described(&new)));
    let evicts_as_before =
        old.max_entries.is_some() && new.max_entries.is_some() && old.eviction == new.eviction;
    let row = ScopePolicies {
        entries: new.max_entries.map(|_| entries),
        policies: new,
        updated_at: now,
        updated_by: author.to_owned(),
        revision,
        evicting_since: if evicts_as_before { before.evicting_since } else { revision },
        ..before
    };
    changes.put(row.clone());
    Ok(ScopeUpdated { scope: ScopeDetails::of(name, entries, Some(&row)), updated: true })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Code;
    use crate::scope::AccessRule;
    use crate::store::Row;

    fn limited() -> ScopePolicies {
        ScopePolicies {
            scope: "team".to_owned(),
            policies: Policies {
                ttl: Some(Duration::from_secs(1)),
                max_entries: Some(5),
                ..Policies::default()
            },
            entries: Some(3),
            created_at: Timestamp::EPOCH,
            created_by: "Ivy".to_owned(),
            updated_at: Timestamp::EPOCH,
            updated_by: "Ivy".to_owned(),
            revision: Revision::new(7),
            evicting_since: Revision::new(7),
        }
    }

    #[test]
    fn rules_that_allow_stay_if_only_those_that_deny_change_and_the_other_way_round() {
        let rules = |effect, texts: &[&str]| {
            let parsed = texts.iter().map(|text| AccessRule::parse(effect, text).unwrap());
            AccessRules::new(parsed.collect())
        };
        let allow = |texts: &[&str]| Some(rules(Effect::Allow, texts));
        let deny = |texts: &[&str]| Some(rules(Effect::Deny, texts));
        let old = [allow(&["ivy:read"]), deny(&["elm:read"])].map(|rules| rules.unwrap().as_slice().to_vec());
        let before = AccessRules::new(old.concat());
        for (given, expected) in [
            ((None, None), Ok(&["allow ivy:read:*", "deny elm:read:*"][..])),
            ((None, deny(&["oak:delete"])), Ok(&["allow ivy:read:*", "deny oak:delete:*"])),
            ((allow(&["oak:write"]), None), Ok(&["allow oak:write:*", "deny elm:read:*"])),
            ((allow(&["oak:write"]), deny(&[])), Ok(&["allow oak:write:*"])),
            ((allow(&[]), deny(&[])), Ok(&[])),
            ((deny(&["oak:write"]), None), Err(Code::InvalidValue)),
        ] {
            let (allow, deny) = given;
            let set = SetScope { allow, deny, ..SetScope::of("team") };
            let access = set.new_access(&before).map_err(|error| error.code());
            let texts =
                access.map(|rules| rules.as_slice().iter().map(ToString::to_string).collect::<Vec<_>>());
            let expected: Result<Vec<_>, _> =
                expected.map(|texts| texts.iter().map(|text| (*text).to_owned()).collect());
            assert_eq!(texts, expected, "{set:?}");
        }
    }

    #[test]
    fn only_given_policies_change_and_the_number_of_entries_belongs_to_a_limit() {
        let set = || SetScope::of("team");
        let second = Some(Duration::from_secs(1));
        let (kept, new) = (Revision::new(7), Revision::of_event(0));
        for (request, expected) in [
            (set(), Ok(None)),
            (SetScope { max_entries: Some(Some(5)), ..set() }, Ok(None)),
            (SetScope { ttl: Some(None), ..set() }, Ok(Some((None, Some(3), kept)))),
            (SetScope { max_entries: Some(Some(3)), ..set() }, Ok(Some((second, Some(3), kept)))),
            (SetScope { max_entries: Some(Some(2)), ..set() }, Err(Code::ScopeFull)),
            (SetScope { max_entries: Some(None), ..set() }, Ok(Some((second, None, new)))),
            (SetScope { eviction: Some(Eviction::Lfu), ..set() }, Ok(Some((second, Some(3), new)))),
            (SetScope { visibility: Some(Visibility::Persistent), ..set() }, Err(Code::InvalidValue)),
        ] {
            let mut changes = Changes::new();
            let by = |event| event;
            let outcome = decide(&request, limited(), 3, ("Oak", Timestamp::EPOCH), by, &mut changes);
            let outcome = outcome.map(|_| match changes.put.pop() {
                Some(Row::ScopePolicies(row)) => Some((row.policies.ttl, row.entries, row.evicting_since)),
                _ => None,
            });
            assert_eq!(outcome.map_err(|error| error.code()), expected, "{request:?}");
        }
    }
}
