//! What one caller may do, in one state of the board. No other module decides that.
//!
//! Every entry that a path shows, every event about an entry and every change of an entry passes a [`Guard`]. It asks the policies
//! of the program first (`custom.rs`), then the stored ones (`access.rs`).
//!
//! The rows of policies are announced with what a path reads first. The row of the session is read only if the policies of
//! a scope depend on the caller, so a plain scope costs no more than its row.

use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use super::access::{AccessOperation, AccessRules, Denial, refusal};
use super::caller::{Identity, says_nothing};
use super::custom::CallerPolicies;
use super::size::{policies_of, prefetch_policies};
use super::{Policies, ScopePolicies, Visibility};
use crate::agent::Agent;
use crate::board::Board;
use crate::entry::{Actor, Entry};
use crate::error::{Code, Error, Refusal, Result};
use crate::event::{Event, EventType, TargetType};
use crate::hint::Hint;
use crate::metadata::Metadata;
use crate::revision::Revision;
use crate::store::{Key, Prefetch, Tx};

/// What one caller may do, in one state of the board.
pub(crate) struct Guard<'a> {
    board: &'a Board,
    tx: &'a dyn Tx,
    actor: Actor,
    /// The policies of the program that embeds the library.
    custom: CallerPolicies,
    caller: OnceCell<Identity>,
    rows: RefCell<BTreeMap<String, Option<Rc<ScopePolicies>>>>,
}

impl<'a> Guard<'a> {
    /// For an actor; for the caller of the board if the actor says neither an author nor a session.
    pub(crate) fn new(board: &'a Board, tx: &'a dyn Tx, actor: &Actor) -> Guard<'a> {
        let actor =
            Actor { author: actor.author.clone(), session: actor.session.clone(), ..Actor::default() };
        let known = board.caller().filter(|_| says_nothing(&actor)).and_then(|source| source.known.get());
        let custom = board.policies_for(known.unwrap_or(&actor));
        Guard { board, tx, actor, custom, caller: OnceCell::new(), rows: RefCell::default() }
    }

    /// For the caller of the board.
    pub(crate) fn of_board(board: &'a Board, tx: &'a dyn Tx) -> Guard<'a> {
        Guard::new(board, tx, &Actor::default())
    }

    /// Announces what a check of entries of these scopes reads: nothing for the operator.
    pub(crate) fn prefetch<'s>(
        board: &Board,
        actor: &Actor,
        scopes: impl IntoIterator<Item = &'s str>,
    ) -> Vec<Prefetch<'static>> {
        if is_operator(board, actor) {
            return Vec::new();
        }
        let scopes: BTreeSet<_> = scopes.into_iter().collect();
        scopes.into_iter().filter_map(prefetch_policies).collect()
    }

    /// The same for the caller of this guard.
    pub(crate) fn prefetch_of<'s>(
        &self,
        scopes: impl IntoIterator<Item = &'s str>,
    ) -> Vec<Prefetch<'static>> {
        Guard::prefetch(self.board, &self.actor, scopes)
    }

    /// The policies of the program for this caller.
    pub(crate) fn custom(&self) -> &CallerPolicies {
        &self.custom
    }

    /// Refuses the operation on an entry, if the access policy of the program does not allow it.
    pub(crate) fn check_custom(&self, operation: AccessOperation, scope: &str, key: &str) -> Result<()> {
        self.custom.refusal(operation, scope, key).map_or(Ok(()), Err)
    }

    /// Whether every caller may read everything: no policy of the program, and the operator calls.
    fn allows_everything(&self) -> bool {
        self.is_operator() && !self.custom.is_any()
    }

    /// Whether the caller is the operator, who may do everything that the program allows.
    pub(crate) fn is_operator(&self) -> bool {
        is_operator(self.board, &self.actor)
    }

    /// Refuses the operation on an entry, if the policies of its scope do not allow it.
    pub(crate) fn check(&self, operation: AccessOperation, scope: &str, key: &str) -> Result<()> {
        self.refused(scope, Some((operation, key)))?.map_or(Ok(()), Err)
    }

    /// Refuses to use a scope of which the caller is not a member.
    pub(crate) fn check_scope(&self, scope: &str) -> Result<()> {
        self.refused(scope, None)?.map_or(Ok(()), Err)
    }

    /// Whether the policies of its scope let the caller read an entry. Lists leave out the others. A session that has ended or
    /// does not exist is refused.
    pub(crate) fn may_read(&self, scope: &str, key: &str) -> Result<bool> {
        Ok(self.refused(scope, Some((AccessOperation::Read, key)))?.is_none())
    }

    /// Whether the caller may read all entries of a scope, or none; `None` if that depends on the keys.
    pub(crate) fn reads_all_of(&self, scope: &str) -> Result<Option<bool>> {
        if self.custom.is_any() {
            return Ok(None);
        }
        if self.is_operator() {
            return Ok(Some(true));
        }
        let Some(row) = self.row(scope)?.filter(|row| row.is_restricted()) else { return Ok(Some(true)) };
        if self.refused_by(&row, None)?.is_some() {
            return Ok(Some(false));
        }
        Ok((row.policies.access == AccessRules::default()).then_some(true))
    }

    /// Whether the caller sees a scope.
    pub(crate) fn may_see(&self, scope: &str) -> Result<bool> {
        Ok(self.refused(scope, None)?.is_none())
    }

    /// Whether the caller sees a scope whose policies are known.
    pub(crate) fn may_see_row(&self, row: &ScopePolicies) -> Result<bool> {
        Ok(self.refused_by(row, None)?.is_none())
    }

    /// Refuses to use a scope whose policies are known, if the caller is not a member.
    pub(crate) fn check_member(&self, row: &ScopePolicies) -> Result<()> {
        self.refused_by(row, None)?.map_or(Ok(()), Err)
    }

    /// The entries that the caller may read. Their policies need not be announced.
    pub(crate) fn readable(&self, entries: Vec<Entry>) -> Result<Vec<Entry>> {
        if self.allows_everything() {
            return Ok(entries);
        }
        let next = self.prefetch_of(entries.iter().map(|entry| entry.scope.as_str()));
        if !next.is_empty() {
            self.tx.prefetch(&next)?;
        }
        let mut readable = Vec::with_capacity(entries.len());
        for entry in entries {
            if self.may_read(&entry.scope, &entry.key)? {
                readable.push(entry);
            }
        }
        Ok(readable)
    }

    /// Removes the events about entries and scopes that the caller may not read. Their policies need not be announced.
    pub(crate) fn retain_readable(&self, events: &mut Vec<Event>) -> Result<()> {
        let mut hidden = self.hidden(events)?.into_iter();
        if hidden.len() > 0 {
            events.retain(|_| !hidden.next().unwrap_or(false));
        }
        Ok(())
    }

    /// For each event, whether it is about an entry or a scope that the caller may not read. Empty if all may be read.
    pub(crate) fn hidden(&self, events: &[Event]) -> Result<Vec<bool>> {
        if self.allows_everything() {
            return Ok(Vec::new());
        }
        let subjects: Vec<_> = events.iter().map(Subject::of).collect();
        let ids = events.iter().map(|event| event.id);
        if subjects.iter().all(|subject| matches!(subject, Subject::Other)) {
            return Ok(Vec::new());
        }
        let next = self.prefetch_of(subjects.iter().filter_map(Subject::scope));
        if !next.is_empty() {
            self.tx.prefetch(&next)?;
        }
        let is_hidden = |(subject, id)| match self.hides(subject, id) {
            // Policies that cannot be read allow no caller anything, and stop no reader.
            Err(error) if error.is_unreadable_row() => Ok(true),
            hidden => hidden,
        };
        subjects.into_iter().zip(ids).map(is_hidden).collect()
    }

    /// Whether the caller does not see an event.
    fn hides(&self, subject: Subject, id: Revision) -> Result<bool> {
        let (scope, is_shown) = match subject {
            Subject::Entry { scope, key } => {
                let may_read = self.may_read(&scope, &key)?;
                (scope, may_read)
            }
            Subject::Scope(scope) => {
                let may_see = self.may_see(&scope)?;
                (scope, may_see)
            }
            // It may be of a scope that the caller may not read.
            Subject::Unreadable => return Ok(!self.is_operator()),
            Subject::Other => return Ok(false),
        };
        Ok(!is_shown || Some(id) <= self.hidden_until(&scope)?)
    }

    /// The revision up to which the caller does not see what happened in a scope: it was another one with the same name, which
    /// restricted its callers.
    pub(crate) fn hidden_until(&self, scope: &str) -> Result<Option<Revision>> {
        if self.is_operator() {
            return Ok(None);
        }
        Ok(self.row(scope)?.and_then(|row| row.policies.hidden_until))
    }

    /// Refuses to show what happened in a scope at a revision, if the caller does not see that.
    pub(crate) fn check_shown(&self, scope: &str, revision: Revision) -> Result<()> {
        if Some(revision) > self.hidden_until(scope)? {
            return Ok(());
        }
        let message =
            format!("revision {revision} is of an earlier scope {scope}, which restricted its callers");
        Err(Refusal::new(Code::NotAllowed, message).detail("scope", scope).into())
    }

    /// The caller is this agent, which need not be read again.
    pub(crate) fn know(&self, agent: Option<&Agent>) {
        if let Some(agent) = agent.filter(|agent| self.actor.session.as_ref() == Some(&agent.session_id)) {
            self.caller.get_or_init(|| Identity::of(&self.actor, Some(agent.clone())));
        }
    }

    /// Refuses a caller whose session has ended or does not exist.
    pub(crate) fn check_caller(&self) -> Result<()> {
        self.caller()?.unusable().map_or(Ok(()), Err)
    }

    /// Refuses the operation on an entry of a scope whose policies are known.
    pub(crate) fn check_row(&self, row: &ScopePolicies, operation: AccessOperation, key: &str) -> Result<()> {
        self.refused_by(row, Some((operation, key)))?.map_or(Ok(()), Err)
    }

    /// Whether the operator calls, after a search for the caller if that is needed.
    pub(crate) fn is_called_by_operator(&self) -> Result<bool> {
        if self.is_operator() {
            return Ok(true);
        }
        let caller = self.caller()?;
        caller.unusable().map_or(Ok(matches!(caller, Identity::Operator)), Err)
    }

    /// Refuses to change the policies of a scope that restricts its callers, unless the caller is its owner or the operator.
    pub(crate) fn check_owner(&self, row: &ScopePolicies) -> Result<()> {
        if !row.is_restricted() {
            return Ok(());
        }
        let caller = self.caller()?;
        match caller {
            Identity::Operator => Ok(()),
            Identity::Named { session, .. } if row.is_owner(session.as_deref()) => Ok(()),
            Identity::Named { .. } => {
                let message = format!(
                    "only the session that created scope {} and the operator may change its policies",
                    row.scope
                );
                Err(Refusal::new(Code::NotAllowed, message).detail("scope", row.scope.clone()).into())
            }
            Identity::Ended(_) | Identity::Unknown(_) => caller.unusable().map_or(Ok(()), Err),
        }
    }

    /// Why the caller may not do this, if it may not. Fails for a session that cannot be used.
    fn refused(&self, scope: &str, what: Option<(AccessOperation, &str)>) -> Result<Option<Error>> {
        let custom = what.and_then(|(operation, key)| self.custom.refusal(operation, scope, key));
        if custom.is_some() {
            return Ok(custom);
        }
        if self.is_operator() {
            return Ok(None);
        }
        let row = self.row(scope)?;
        row.map_or(Ok(None), |row| self.refused_by(&row, what))
    }

    fn refused_by(
        &self,
        row: &ScopePolicies,
        what: Option<(AccessOperation, &str)>,
    ) -> Result<Option<Error>> {
        if self.is_operator() || !row.is_restricted() {
            return Ok(None);
        }
        let caller = self.caller()?;
        match caller {
            Identity::Operator => Ok(None),
            Identity::Named { names, session } => Ok(refusal(row, (names, session.as_deref()), what)
                .map(|denial| not_allowed(row, caller.label(), what, denial))),
            // Also for a list: one without what it may not show would look complete.
            Identity::Ended(_) | Identity::Unknown(_) => caller.unusable().map_or(Ok(None), Err),
        }
    }

    fn row(&self, scope: &str) -> Result<Option<Rc<ScopePolicies>>> {
        if let Some(row) = self.rows.borrow().get(scope) {
            return Ok(row.clone());
        }
        let row = policies_of(self.tx, scope)?.map(Rc::new);
        self.rows.borrow_mut().insert(scope.to_owned(), row.clone());
        Ok(row)
    }

    /// The caller, which is looked up once.
    fn caller(&self) -> Result<&Identity> {
        if let Some(caller) = self.caller.get() {
            return Ok(caller);
        }
        let actor = match self.board.caller() {
            Some(source) if says_nothing(&self.actor) => source.actor()?,
            _ => self.actor.clone(),
        };
        let agent = match &actor.session {
            Some(session) => {
                let key = Key::Agent(session.clone());
                self.tx.prefetch(&[Prefetch::Row(key.clone())])?;
                self.tx.row::<Agent>(&key)?
            }
            None => None,
        };
        Ok(self.caller.get_or_init(|| Identity::of(&actor, agent)))
    }
}

fn is_operator(board: &Board, actor: &Actor) -> bool {
    says_nothing(actor) && board.caller().is_none_or(|source| source.known.get().is_some_and(says_nothing))
}

/// What an event is about.
enum Subject {
    /// An entry.
    Entry { scope: String, key: String },
    /// A scope.
    Scope(String),
    /// An entry or a scope that another program has made unreadable.
    Unreadable,
    /// Something that every caller may see.
    Other,
}

impl Subject {
    fn of(event: &Event) -> Subject {
        let target = event.target_id.clone();
        match event.target_type {
            Some(TargetType::Scope) => target.map_or(Subject::Unreadable, Subject::Scope),
            Some(TargetType::Entry) => {
                let metadata = event.metadata.as_ref().map(Metadata::to_map).unwrap_or_default();
                match (metadata.get("scope").and_then(|scope| scope.as_str()), target) {
                    (Some(scope), Some(key)) => Subject::Entry { scope: scope.to_owned(), key },
                    _ => Subject::Unreadable,
                }
            }
            Some(TargetType::Agent | TargetType::WorkItem | TargetType::Project | TargetType::Protocol) => {
                Subject::Other
            }
            None if is_about_entries(&event.event_type) => Subject::Unreadable,
            None => Subject::Other,
        }
    }

    fn scope(&self) -> Option<&str> {
        match self {
            Subject::Entry { scope, .. } | Subject::Scope(scope) => Some(scope),
            Subject::Unreadable | Subject::Other => None,
        }
    }
}

/// Whether events of this type are about entries or scopes.
fn is_about_entries(event_type: &EventType) -> bool {
    use EventType::{
        EntriesCleared, EntryDeleted, EntryEvicted, EntryExpired, EntryPurged, EntryWritten, ScopeCreated,
        ScopeDeleted, ScopeUpdated,
    };
    matches!(
        event_type,
        EntryWritten
            | EntryDeleted
            | EntryExpired
            | EntryEvicted
            | EntryPurged
            | EntriesCleared
            | ScopeCreated
            | ScopeUpdated
            | ScopeDeleted
    )
}

/// The refusal of a caller.
fn not_allowed(
    ScopePolicies { scope, policies: Policies { visibility, .. }, .. }: &ScopePolicies,
    caller: &str,
    what: Option<(AccessOperation, &str)>,
    denial: Denial,
) -> Error {
    let refusal = match (denial, what) {
        (Denial::Rules, Some((operation, key))) => {
            let message = format!("scope {scope} does not allow {caller} to {operation} {key}");
            Refusal::new(Code::NotAllowed, message)
                .hint(Hint::ShowScope(scope.clone()))
                .detail("operation", operation.as_str())
                .detail("key", key)
        }
        (Denial::Rules | Denial::NotMember, _) if *visibility == Visibility::Local => {
            Refusal::new(Code::NotAllowed, format!("scope {scope} is local to another session"))
        }
        (Denial::Rules | Denial::NotMember, _) => Refusal::new(
            Code::NotAllowed,
            format!("scope {scope} is shared with other agents, not with {caller}"),
        ),
    };
    refusal.detail("scope", scope.clone()).detail("caller", caller).into()
}
