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

use super::access::{AccessOperation, Denial, refusal};
use super::caller::{Identity, says_nothing};
use super::custom::CallerPolicies;
use super::size::{policies_of, prefetch_policies};
use super::{Policies, ScopePolicies, Visibility};
use crate::agent::Agent;
use crate::board::Board;
use crate::entry::{Actor, Entry};
use crate::error::{Code, Error, Refusal, Result};
use crate::event::{Event, TargetType};
use crate::hint::Hint;
use crate::metadata::Metadata;
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

    /// Whether the policies of its scope let the caller read an entry. Lists leave out the others.
    pub(crate) fn may_read(&self, scope: &str, key: &str) -> Result<bool> {
        Ok(self.refused(scope, Some((AccessOperation::Read, key)))?.is_none())
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
        let scopes = subjects.iter().flatten().map(|subject| subject.scope.as_str());
        let next = self.prefetch_of(scopes);
        if next.is_empty() && !self.custom.is_any() {
            return Ok(Vec::new());
        }
        self.tx.prefetch(&next)?;
        let is_hidden = |subject: Option<Subject>| match subject {
            Some(Subject { scope, key: Some(key) }) => self.may_read(&scope, &key).map(|may| !may),
            Some(Subject { scope, key: None }) => self.may_see(&scope).map(|may| !may),
            None => Ok(false),
        };
        let is_hidden = |subject| match is_hidden(subject) {
            // Policies that cannot be read allow no caller anything, and stop no reader.
            Err(error) if error.is_unreadable_row() => Ok(true),
            hidden => hidden,
        };
        subjects.into_iter().map(is_hidden).collect()
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
        Ok(match caller {
            Identity::Operator => None,
            Identity::Named { names, session } => refusal(row, (names, session.as_deref()), what)
                .map(|denial| not_allowed(row, caller.label(), what, denial)),
            Identity::Ended(_) | Identity::Unknown(_) => caller.unusable(),
        })
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

/// The entry or the scope that an event is about.
struct Subject {
    scope: String,
    /// The key of an entry.
    key: Option<String>,
}

impl Subject {
    fn of(event: &Event) -> Option<Subject> {
        let target = event.target_id.clone()?;
        match event.target_type? {
            TargetType::Scope => Some(Subject { scope: target, key: None }),
            TargetType::Entry => {
                let mut metadata = event.metadata.as_ref().map(Metadata::to_map)?;
                let scope = metadata.remove("scope")?.as_str()?.to_owned();
                Some(Subject { scope, key: Some(target) })
            }
            TargetType::Agent | TargetType::WorkItem | TargetType::Project | TargetType::Protocol => None,
        }
    }
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
