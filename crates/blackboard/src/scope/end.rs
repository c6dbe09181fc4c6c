//! Scopes that end with a session or with a work item.
//!
//! A bookkeeping row lists the scopes of a session or an item. The commit that ends it renames the row, and marks the policies
//! of these scopes as ended: they accept no writes, and their policies apply to their history (`past.rs`).
//! Then the entries are deleted, a batch in a commit, and at last an event says so: the first batches by the call that ended it, the
//! others by sweeps. A scope is deleted only if its policies still say that it ends with that session or item.

use std::borrow::Cow;

use serde::Serialize;

use super::past::list_past;
use super::{ScopePolicies, Visibility};
use crate::board::Board;
use crate::entry::{Actor, EntryEditor};
use crate::error::{Code, Error, Result};
use crate::event::{EventType, NewEvent, TargetType};
use crate::memory::{Level, drain_session};
use crate::revision::{Pending, Revision};
use crate::store::{BookkeepingRow, Changes, Key, OnBusy, Prefetch, Range, Tx};

/// How many entries of a scope one commit deletes.
pub(super) const BATCH: usize = 500;

/// How many scopes end with one session or item: the row that lists them stays small.
const MOST_SCOPES: usize = 100;

/// How many commits a call that ends a session or an item makes for its scopes, while its caller waits.
const COMMITS: usize = 4;

/// How many lists an automatic sweep reads.
const LISTS: usize = 100;

/// How the names of rows begin that list scopes of sessions and items.
const LINKED: &str = "scopes:";

/// How the names of rows begin that list scopes whose session or item has ended.
const ENDED: &str = "ended-scopes:";

/// What a scope ends with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EndsWith<'a> {
    /// The session that created a local scope.
    Session(&'a str),
    /// A work item.
    Item(&'a str),
    /// The working memory of a session: its levels stay, and its records leave them.
    Memory(&'a str),
}

impl EndsWith<'_> {
    fn name(self, prefix: &str) -> String {
        match self {
            EndsWith::Session(id) => format!("{prefix}session:{id}"),
            EndsWith::Item(id) => format!("{prefix}work:{id}"),
            EndsWith::Memory(session) => format!("{prefix}memory:{session}"),
        }
    }

    /// Announces what the end of a session or an item reads.
    pub(crate) fn prefetch(self) -> Prefetch<'static> {
        Prefetch::Row(key(&self.name(LINKED)))
    }

    /// From now on, a scope ends with it.
    pub(crate) fn add(self, tx: &dyn Tx, scope: &str, changes: &mut Changes) -> Result<()> {
        let name = self.name(LINKED);
        let mut scopes = scopes_in(tx, &name)?;
        if scopes.iter().any(|known| known == scope) {
            return Ok(());
        }
        if scopes.len() >= MOST_SCOPES {
            let whose = match self {
                EndsWith::Session(_) => "a session has at most",
                EndsWith::Item(_) => "a work item has at most",
                EndsWith::Memory(_) => "a session remembers in at most",
            };
            let message = format!("{whose} {MOST_SCOPES} scopes that end with it: delete one of them first");
            return Err(Error::invalid(message));
        }
        scopes.push(scope.to_owned());
        put(&name, &scopes, changes);
        Ok(())
    }

    /// A scope does not end with it any more: it is deleted, or its name is given to another one.
    pub(super) fn remove(self, tx: &dyn Tx, scope: &str, changes: &mut Changes) -> Result<()> {
        let names = [self.name(LINKED), self.name(ENDED)];
        tx.prefetch(&names.each_ref().map(|name| Prefetch::Row(key(name))))?;
        for name in names {
            let scopes = scopes_in(tx, &name)?;
            if scopes.iter().any(|known| known == scope) {
                without(&name, scopes, scope, changes);
            }
        }
        Ok(())
    }

    /// It ends: its scopes are deleted by later commits, and accept no writes from now on. Returns whether it has any.
    pub(crate) fn end(self, tx: &dyn Tx, changes: &mut Changes) -> Result<bool> {
        let name = self.name(LINKED);
        let scopes = scopes_in(tx, &name)?;
        if scopes.is_empty() {
            return Ok(false);
        }
        let ended = self.name(ENDED);
        tx.prefetch(&[Prefetch::Row(key(&ended))])?;
        let mut all = scopes_in(tx, &ended)?;
        if !matches!(self, EndsWith::Memory(_)) {
            self.mark(tx, &scopes, changes)?;
        }
        all.extend(scopes);
        changes.remove(key(&name));
        put(&ended, &all, changes);
        Ok(true)
    }

    /// Whether the policies of a scope say that it ends with it.
    pub(super) fn ends(self, row: &ScopePolicies) -> bool {
        match self {
            EndsWith::Session(id) => {
                row.policies.visibility == Visibility::Local && row.policies.owner.as_deref() == Some(id)
            }
            EndsWith::Item(id) => row.policies.work_item.as_deref() == Some(id),
            EndsWith::Memory(_) => row.is_live() && row.policies.level.is_some(),
        }
    }

    /// Who has ended, from the name of the row.
    fn parse(name: &str) -> Option<EndsWith<'_>> {
        let rest = name.strip_prefix(ENDED)?;
        let session = rest.strip_prefix("session:").map(EndsWith::Session);
        let memory = || rest.strip_prefix("memory:").map(EndsWith::Memory);
        session.or_else(|| rest.strip_prefix("work:").map(EndsWith::Item)).or_else(memory)
    }

    fn summary(self, scope: &str) -> String {
        match self {
            EndsWith::Session(_) | EndsWith::Memory(_) => format!("Scope \"{scope}\" ended with its session"),
            EndsWith::Item(id) => format!("Scope \"{scope}\" ended with work item {id}"),
        }
    }
}

/// The scopes that a row lists. One that another program damaged lists none, and is replaced.
fn scopes_in(tx: &dyn Tx, name: &str) -> Result<Vec<String>> {
    let row = tx.row::<BookkeepingRow>(&key(name))?;
    Ok(row.and_then(|row| serde_json::from_str(&row.value).ok()).unwrap_or_default())
}

fn put(name: &str, scopes: &[String], changes: &mut Changes) {
    let value = serde_json::to_string(scopes).unwrap_or_default();
    changes.put(BookkeepingRow { name: Cow::Owned(name.to_owned()), value });
}

fn key(name: &str) -> Key {
    Key::BookkeepingRow(Cow::Owned(name.to_owned()))
}

/// The lists of scopes whose session or item has ended.
pub(crate) fn ended_lists() -> Range {
    Range::bookkeeping_rows(ENDED)
}

/// A scope whose session or item has ended, and that a sweep cannot delete, because a row cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SkippedScope {
    /// Its name; empty if that cannot be read either.
    pub scope: String,
    /// What cannot be read.
    pub error: String,
}

impl SkippedScope {
    fn new(scope: &str, error: &Error) -> SkippedScope {
        SkippedScope { scope: scope.to_owned(), error: error.to_string() }
    }
}

/// What happened to scopes whose session or item has ended.
#[derive(Debug, Default)]
pub(crate) struct EndedScopes {
    /// Those of which nothing is left.
    pub(crate) deleted: Vec<String>,
    pub(crate) skipped: Vec<SkippedScope>,
}

/// What one commit did to a scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Batch {
    /// It deleted entries, and there may be more.
    Entries,
    /// It deleted the scope.
    Scope,
    /// The scope is not one that ends, or not any more.
    Nothing,
}

impl Pending for Batch {
    fn resolve(&mut self, _first: Revision) {}
}

/// A place in a list.
struct Listed {
    list: Cow<'static, str>,
    /// `None` if the list is empty.
    scope: Option<String>,
}

impl Board {
    /// Deletes the scopes whose session or item has ended, a batch of their entries in a commit. A scope with a row that cannot
    /// be read is skipped, and the others are still deleted. If it may not wait, it makes one commit at most, and the next
    /// sweep continues.
    pub(crate) fn end_scopes(&self, on_busy: OnBusy) -> Result<EndedScopes> {
        let (most_lists, most_commits) = match on_busy {
            OnBusy::Fail => (LISTS, 1),
            OnBusy::Wait => (usize::MAX, usize::MAX),
        };
        let range = ended_lists();
        let (listed, skipped) = self.read(&[Prefetch::Keys(range.clone(), most_lists)], |tx| {
            let (mut names, mut skipped) = (Vec::new(), Vec::new());
            for key in tx.keys(&range, most_lists)? {
                match key {
                    Ok(Key::BookkeepingRow(name)) => names.push(name),
                    Ok(_) => {}
                    Err(error) if error.is_unreadable_row() => skipped.push(SkippedScope::new("", &error)),
                    Err(error) => return Err(error),
                }
            }
            listed_scopes(tx, names, skipped)
        })?;
        self.end_listed(listed, EndedScopes { skipped, ..EndedScopes::default() }, on_busy, most_commits)
    }

    /// Deletes the scopes of sessions or items that the caller has ended, with a few commits: sweeps delete the rest. What fails
    /// is left to them, too.
    pub(crate) fn end_scopes_of<'e>(&self, ended: impl IntoIterator<Item = EndsWith<'e>>) {
        let lists: Vec<_> = ended.into_iter().map(|ended| Cow::Owned(ended.name(ENDED))).collect();
        if lists.is_empty() {
            return;
        }
        let listed = self.read(&[], |tx| listed_scopes(tx, lists.clone(), Vec::new()));
        let _ = listed.and_then(|(listed, skipped)| {
            let ended = EndedScopes { skipped, ..EndedScopes::default() };
            self.end_listed(listed, ended, OnBusy::Wait, COMMITS)
        });
    }

    fn end_listed(
        &self,
        listed: Vec<Listed>,
        mut ended: EndedScopes,
        on_busy: OnBusy,
        most_commits: usize,
    ) -> Result<EndedScopes> {
        let mut commits = 0;
        for Listed { list, scope } in listed {
            let mut is_done = false;
            while !is_done {
                if commits == most_commits {
                    return Ok(ended);
                }
                commits += 1;
                let Some(scope) = &scope else {
                    self.remove_empty_list(&list, on_busy)?;
                    break;
                };
                is_done = match self.end_batch(&list, scope, on_busy) {
                    Ok(Batch::Entries) => false,
                    Ok(Batch::Scope) => {
                        ended.deleted.push(scope.clone());
                        true
                    }
                    Ok(Batch::Nothing) => true,
                    Err(error) if error.is_unreadable_row() => {
                        ended.skipped.push(SkippedScope::new(scope, &error));
                        // It cost no commit.
                        commits -= 1;
                        true
                    }
                    Err(error) => return Err(error),
                };
            }
        }
        Ok(ended)
    }

    /// Removes a list that another program damaged.
    fn remove_empty_list(&self, list: &str, on_busy: OnBusy) -> Result<()> {
        self.commit_with_on_busy(on_busy, "scope end", &[Prefetch::Row(key(list))], |tx| {
            let mut changes = Changes::new();
            if tx.get(&key(list))?.is_some() && scopes_in(tx, list)?.is_empty() {
                changes.remove(key(list));
            }
            Ok((changes, ()))
        })
    }

    /// Deletes a batch of entries, or the scope if it has none.
    fn end_batch(&self, list: &str, scope: &str, on_busy: OnBusy) -> Result<Batch> {
        let (policies, entries) = (Key::ScopePolicies(scope.to_owned()), Range::entries(scope, ""));
        let prefetch = [
            Prefetch::Row(key(list)),
            Prefetch::Row(policies.clone()),
            Prefetch::Heads(entries.clone(), BATCH),
        ];
        // What ends asks no caller.
        let board = &self.with_caller(Actor::default());
        let decide = |tx: &dyn Tx| {
            let mut editor = EntryEditor::new(board, tx, &Actor::default())?;
            let scopes = scopes_in(tx, list)?;
            let row = tx.row::<ScopePolicies>(&policies)?;
            let by = EndsWith::parse(list).zip(row).filter(|(by, row)| by.ends(row));
            if let Some((EndsWith::Memory(session), row)) = &by {
                let batch = leave_memory(&mut editor, (list, scopes), row, session)?;
                return Ok((editor.finish()?, batch));
            }
            let heads = tx.heads(&entries, BATCH)?;
            let batch = match by {
                // Another process was faster.
                _ if !scopes.iter().any(|listed| listed == scope) => Batch::Nothing,
                // The scope may have been deleted.
                None => {
                    without(list, scopes, scope, &mut editor.changes);
                    Batch::Nothing
                }
                Some((by, row)) if heads.is_empty() => {
                    without(list, scopes, scope, &mut editor.changes);
                    let summary = by.summary(scope);
                    let event = NewEvent::new(EventType::ScopeDeleted, TargetType::Scope, scope, summary);
                    let revision = editor.changes.event(event);
                    // Its history is as private as it was.
                    editor.changes.put(ScopePolicies { revision, ..row.ended(tx.now()) });
                    list_past(tx, scope, &mut editor.changes)?;
                    Batch::Scope
                }
                Some((_, row)) => {
                    if row.is_live() {
                        editor.changes.put(row.ended(tx.now()));
                    }
                    let keys: Vec<_> = heads.into_iter().map(|head| head.key).collect();
                    // The next batch deletes the rest.
                    editor.until_full(scope, &keys, |editor, key| editor.remove_with_scope(scope, key))?;
                    Batch::Entries
                }
            };
            Ok((editor.finish()?, batch))
        };
        if on_busy == OnBusy::Fail {
            // Without the write lock: rows that cannot be read would otherwise cost every other writer that lock, at every
            // sweep.
            self.read(&prefetch, |tx| decide(tx).map(|_| ()))?;
        }
        self.commit_with_on_busy(on_busy, "scope end", &prefetch, decide)
    }
}

/// Moves a batch of the records of a session out of a level, or removes the level from its list if none is left.
fn leave_memory(
    editor: &mut EntryEditor<'_>,
    (list, scopes): (&str, Vec<String>),
    row: &ScopePolicies,
    session: &str,
) -> Result<Batch> {
    if !scopes.contains(&row.scope) {
        return Ok(Batch::Nothing);
    }
    if let Some(level) = Level::of(row)
        && drain_session(editor, &level, session)?
    {
        return Ok(Batch::Entries);
    }
    without(list, scopes, &row.scope, &mut editor.changes);
    Ok(Batch::Nothing)
}

/// Removes a scope from a list.
fn without(list: &str, mut scopes: Vec<String>, scope: &str, changes: &mut Changes) {
    scopes.retain(|listed| listed != scope);
    if scopes.is_empty() {
        changes.remove(key(list));
    } else {
        put(list, &scopes, changes);
    }
}

/// The scopes of these lists, and what cannot be read of them besides what is already skipped.
fn listed_scopes(
    tx: &dyn Tx,
    lists: Vec<Cow<'static, str>>,
    mut skipped: Vec<SkippedScope>,
) -> Result<(Vec<Listed>, Vec<SkippedScope>)> {
    let mut listed = Vec::new();
    if lists.is_empty() {
        return Ok((listed, skipped));
    }
    tx.prefetch(&lists.iter().map(|list| Prefetch::Row(key(list))).collect::<Vec<_>>())?;
    for list in lists {
        match scopes_in(tx, &list) {
            Ok(scopes) if scopes.is_empty() => listed.push(Listed { list, scope: None }),
            Ok(scopes) => listed
                .extend(scopes.into_iter().map(|scope| Listed { list: list.clone(), scope: Some(scope) })),
            Err(error) if error.is_unreadable_row() => skipped.push(SkippedScope::new("", &error)),
            Err(error) => return Err(error),
        }
    }
    Ok((listed, skipped))
}

/// The refusal of a local scope without a session.
pub(super) fn no_session_for_scope() -> crate::Error {
    crate::error::Refusal::new(Code::NoSession, "a local scope requires a session, with which it ends")
        .hint(crate::hint::Hint::PassSession)
        .into()
}
