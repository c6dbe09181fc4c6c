//! `scope create`: gives a scope policies.

use serde::Serialize;

use super::end::{EndsWith, no_session_for_scope};
use super::restrict::check_restriction;
use super::rules::{check_policies, check_protocols};
use super::size::{count, prefetch_count};
use super::{
    Policies, RuleProtocols, ScopeDetails, ScopePolicies, ScopeStatus, Scopes, ValueRules, Visibility,
    whole_milliseconds,
};
use crate::agent::prefetch_agent;
use crate::entry::{Actor, EntryEditor, check_not_reserved, check_scope};
use crate::error::{Code, Error, Refusal, Result};
use crate::event::{EventType, NewEvent, TargetType};
use crate::hint::Hint;
use crate::protocol::Schema;
use crate::revision::{Pending, Revision};
use crate::store::{Changes, Key, Prefetch, Range, Tx};
use crate::text::TextRules;
use crate::work::{Status, existing as existing_item};

/// Policies to create.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CreateScope {
    /// The name of the scope.
    pub name: String,
    /// Its policies.
    pub policies: Policies,
    /// The session that acts.
    pub session: Option<String>,
}

impl CreateScope {
    /// A scope with these policies.
    pub fn new(name: &str, policies: Policies) -> CreateScope {
        CreateScope { name: name.to_owned(), policies, session: None }
    }
}

/// The result of a creation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CreatedScope {
    /// The scope.
    #[serde(flatten)]
    pub scope: ScopeDetails,
    /// Whether this call created the policies. `false` if the scope had the same ones.
    pub created: bool,
}

impl Pending for CreatedScope {
    fn resolve(&mut self, first: Revision) {
        self.scope.revision.resolve(first);
    }
}

impl Scopes<'_> {
    /// Gives a scope policies. It may have entries already: they stay as they are. A scope that has other policies is
    /// refused; the same ones change nothing.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use blackboard::{Board, Code, entry::{Value, Write}, scope::{CreateScope, Policies}};
    /// # let board = Board::memory();
    /// let day = Some(Duration::from_hours(24));
    /// board.scopes().create(&CreateScope::new("cache", Policies { ttl: day, ..Policies::default() }))?;
    /// let written = board.scope("cache").write(&Write::new("a", Value::of(&1)?))?;
    /// assert!(written.expires_at.is_some());
    ///
    /// let other = CreateScope::new("cache", Policies::default());
    /// assert_eq!(board.scopes().create(&other).unwrap_err().code(), Code::AlreadyExists);
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn create(&self, request: &CreateScope) -> Result<CreatedScope> {
        let CreateScope { name, policies, session } = request;
        check_scope(name)?;
        check_not_reserved(name)?;
        check_policies(name, policies)?;
        let policies = &Policies {
            ttl: policies.ttl.map(whole_milliseconds),
            validation: policies.validation.stored(),
            status: ScopeStatus::Live,
            hidden_until: None,
            ..policies.owned_by(session.as_deref())
        };
        let names = policies.access_texts().chain([name.as_str()]);
        self.board.settings().text.check_unaltered(names)?;
        check_text(&policies.validation, &self.board.settings().text)?;
        let key = Key::ScopePolicies(name.clone());
        let ends_with = policies.ends_with();
        if policies.visibility == Visibility::Local && policies.owner.is_none() {
            return Err(no_session_for_scope());
        }
        let item = policies.work_item.clone().map(Key::WorkItem);
        // Only a limit needs a number that the commit validates.
        let (has_limit, whole) = (policies.max_entries.is_some(), Range::entries(name, ""));
        let size = if has_limit { prefetch_count(name) } else { Prefetch::Count(whole.clone()) };
        let mut prefetch = vec![Prefetch::Row(key.clone()), size];
        prefetch.extend(prefetch_agent(session.as_deref()));
        prefetch.extend(RuleProtocols::prefetch(&policies.validation));
        prefetch.extend(item.iter().cloned().map(Prefetch::Row));
        prefetch.extend(ends_with.iter().map(|with| with.prefetch()));
        let ends = !ends_with.is_empty();
        prefetch.extend(ends.then(|| Prefetch::Heads(whole.clone(), 1)));
        let actor = Actor { session: session.clone(), ..Actor::default() };
        self.board.commit_as(session.as_deref().as_slice(), "scope create", &prefetch, |tx| {
            let mut editor = EntryEditor::new(self.board, tx, &actor)?;
            check_protocols(&policies.validation, &RuleProtocols::of(tx, &policies.validation)?)?;
            let (before, past) = match tx.row::<ScopePolicies>(&key)? {
                Some(row) if row.is_live() => (Some(row), None),
                past => (None, past),
            };
            if let Some(before) = &before {
                editor.check_member(before)?;
            }
            if before.is_none() && ends && !tx.heads(&whole, 1)?.is_empty() {
                return Err(has_entries(name));
            }
            let entries = match before.as_ref().and_then(|before| before.entries) {
                Some(entries) => entries,
                None if has_limit => count(tx, name)?,
                None => tx.count(&whole)?,
            };
            let hidden_until = match &past {
                Some(past) => replace_past(tx, past, entries, &mut editor.changes)?,
                None => before.as_ref().and_then(|before| before.policies.hidden_until),
            };
            let policies = &Policies { hidden_until, ..policies.clone() };
            let event = |event: NewEvent| event.by(session.as_deref());
            let new = NewPolicies { name, policies, author: &editor.author, now: tx.now() };
            let created = new.decide(before, entries, event, &mut editor.changes)?;
            if created.created {
                check_restriction(tx, &editor, name, None, policies)?;
                if let Some(id) = &policies.work_item {
                    check_open(tx, id)?;
                }
                if policies.visibility == Visibility::Local {
                    editor.session()?.must_be_live()?;
                }
                for with in &ends_with {
                    with.add(tx, name, &mut editor.changes)?;
                }
            }
            Ok((editor.finish()?, created))
        })
    }
}

/// Gives the name of a scope that is gone to a new one. Returns up to which revision the new one hides its past.
fn replace_past(
    tx: &dyn Tx,
    past: &ScopePolicies,
    entries: u64,
    changes: &mut Changes,
) -> Result<Option<Revision>> {
    if past.policies.status == ScopeStatus::Ended && entries > 0 {
        return Err(past.has_ended().with_hint("a sweep deletes the rest of it: try again soon".into()));
    }
    for with in past.policies.ends_with() {
        with.remove(tx, &past.scope, changes)?;
    }
    tx.prefetch(&[Prefetch::Revision])?;
    Ok(past.hides_for_successor(tx.revision()?))
}

impl Policies {
    /// What the scope ends with.
    pub(super) fn ends_with(&self) -> Vec<EndsWith<'_>> {
        let session = self.owner.as_deref().filter(|_| self.visibility == Visibility::Local);
        let session = session.map(EndsWith::Session);
        session.into_iter().chain(self.work_item.as_deref().map(EndsWith::Item)).collect()
    }
}

/// Refuses a work item that does not exist or is completed: the scope would never end.
fn check_open(tx: &dyn Tx, id: &str) -> Result<()> {
    let item = existing_item(tx, id)?;
    if item.status == Status::Completed {
        let message = format!("work item {id} is completed: a scope that ends with it would not begin");
        return Err(Refusal::new(Code::AlreadyCompleted, message).hint(Hint::ShowItem(id.to_owned())).into());
    }
    Ok(())
}

/// Policies for a scope, with their author.
struct NewPolicies<'a> {
    name: &'a str,
    policies: &'a Policies,
    author: &'a str,
    now: crate::clock::Timestamp,
}

impl NewPolicies<'_> {
    fn decide(
        &self,
        before: Option<ScopePolicies>,
        entries: u64,
        event: impl FnOnce(NewEvent) -> NewEvent,
        changes: &mut Changes,
    ) -> Result<CreatedScope> {
        let NewPolicies { name, policies, author, now } = *self;
        if let Some(before) = before {
            // Another member may name the same policies.
            if before.policies != (Policies { owner: before.policies.owner.clone(), ..policies.clone() }) {
                let message = format!("scope {name} has other policies already");
                let hint = Hint::SetScope(name.to_owned());
                return Err(Refusal::new(Code::AlreadyExists, message).hint(hint).into());
            }
            let scope = ScopeDetails::of(name.to_owned(), entries, Some(&before));
            return Ok(CreatedScope { scope, created: false });
        }
        check_fits(name, policies.max_entries, entries)?;
        let summary = format!("Agent \"{author}\" created scope \"{name}\"");
        let revision = changes.event(
            event(NewEvent::new(EventType::ScopeCreated, TargetType::Scope, name, summary))
                .with_all(described(policies)),
        );
        let row = ScopePolicies {
            scope: name.to_owned(),
            policies: policies.clone(),
            entries: policies.max_entries.map(|_| entries),
            created_at: now,
            created_by: author.to_owned(),
            updated_at: now,
            updated_by: author.to_owned(),
            revision,
            evicting_since: revision,
        };
        changes.put(row.clone());
        let scope = ScopeDetails::of(name.to_owned(), entries, Some(&row));
        Ok(CreatedScope { scope, created: true })
    }
}

/// The refusal to let entries end with a session or an item that others wrote before.
fn has_entries(scope: &str) -> Error {
    let message = format!("scope {scope} has entries, which would be deleted when it ends");
    Refusal::new(Code::InUse, message)
        .hint("choose the name of a scope without entries")
        .detail("scope", scope)
        .into()
}

/// The policies as the metadata of an event.
pub(crate) fn described(policies: &Policies) -> serde_json::Map<String, serde_json::Value> {
    match serde_json::to_value(policies) {
        Ok(serde_json::Value::Object(map)) => map,
        _ => serde_json::Map::new(),
    }
}

/// Refuses a credential in patterns and schemas.
pub(super) fn check_text(rules: &ValueRules, text: &TextRules) -> Result<()> {
    text.check_unaltered(rules.as_slice().iter().map(|rule| rule.keys.as_str()))?;
    text.check_unaltered(rules.protocols())?;
    text.check_json(rules.schemas().map(Schema::as_str))
}

/// Refuses a limit that the scope exceeds already: to evict many entries at once would be a surprise.
pub(super) fn check_fits(scope: &str, max_entries: Option<u64>, entries: u64) -> Result<()> {
    match max_entries {
        Some(limit) if entries > limit => {
            let message = format!("scope {scope} has {entries} entries, more than {limit}");
            Err(Refusal::new(Code::ScopeFull, message)
                .hint(Hint::FreeSpaceIn(scope.to_owned()))
                .detail("scope", scope)
                .detail("max_entries", limit)
                .into())
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Timestamp;

    #[test]
    fn a_scope_is_created_once_and_only_if_its_entries_fit() {
        let limited = |limit| Policies { max_entries: Some(limit), ..Policies::default() };
        let create = |policies: &Policies, before: Option<ScopePolicies>, entries| {
            let mut changes = Changes::new();
            let new = NewPolicies { name: "team", policies, author: "Ivy", now: Timestamp::EPOCH };
            let created = new.decide(before, entries, |event| event, &mut changes);
            created.map(|created| (created.created, changes)).map_err(|error| error.code())
        };
        let (_, changes) = create(&limited(5), None, 3).unwrap();
        let Some(crate::store::Row::ScopePolicies(row)) = changes.put.first().cloned() else {
            panic!("no row")
        };
        assert_eq!((row.entries, changes.events.len()), (Some(3), 1));
        for (policies, before, entries, expected) in [
            (Policies::default(), None, 3, Ok(true)),
            (limited(3), None, 3, Ok(true)),
            (limited(2), None, 3, Err(Code::ScopeFull)),
            (limited(5), Some(row.clone()), 3, Ok(false)),
            (limited(6), Some(row.clone()), 3, Err(Code::AlreadyExists)),
            (Policies::default(), Some(row), 3, Err(Code::AlreadyExists)),
        ] {
            let outcome = create(&policies, before, entries).map(|(created, changes)| {
                assert_eq!(changes.is_empty(), !created);
                created
            });
            assert_eq!(outcome, expected, "{policies:?} with {entries} entries");
        }
    }
}
