//! Scopes that end with a session or with a work item.
//!
//! A bookkeeping row lists the scopes of a session or an item. The commit that ends it renames the row, and reads no other.
//! Then the entries are deleted, a batch in a commit, and at last the policies. If the process is killed before, the next
//! sweep continues. A scope is deleted only if its policies still say that it ends with that session or item.

use std::borrow::Cow;

use super::{ScopePolicies, Visibility};
use crate::board::Board;
use crate::entry::{Actor, EntryEditor};
use crate::error::{Code, Result};
use crate::event::{EventType, NewEvent, TargetType};
use crate::store::{BookkeepingRow, Changes, Key, OnBusy, Prefetch, Range, Tx};

/// How many entries one commit deletes.
const BATCH: usize = 500;

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
}

impl EndsWith<'_> {
    fn name(self, prefix: &str) -> String {
        match self {
            EndsWith::Session(id) => format!("{prefix}session:{id}"),
            EndsWith::Item(id) => format!("{prefix}work:{id}"),
        }
    }

    /// Announces what the end of a session or an item reads.
    pub(crate) fn prefetch(self) -> Prefetch<'static> {
        Prefetch::Row(key(&self.name(LINKED)))
    }

    /// From now on, a scope ends with it.
    pub(super) fn add(self, tx: &dyn Tx, scope: &str, changes: &mut Changes) -> Result<()> {
        let name = self.name(LINKED);
        let mut scopes = scopes_in(tx, &name)?;
        if !scopes.iter().any(|known| known == scope) {
            scopes.push(scope.to_owned());
        }
        put(&name, &scopes, changes);
        Ok(())
    }

    /// It ends: its scopes are deleted by later commits. Returns whether it has any.
    pub(crate) fn end(self, tx: &dyn Tx, changes: &mut Changes) -> Result<bool> {
        let name = self.name(LINKED);
        let scopes = scopes_in(tx, &name)?;
        if scopes.is_empty() {
            return Ok(false);
        }
        let ended = self.name(ENDED);
        tx.prefetch(&[Prefetch::Row(key(&ended))])?;
        let mut all = scopes_in(tx, &ended)?;
        all.extend(scopes);
        changes.remove(key(&name));
        put(&ended, &all, changes);
        Ok(true)
    }

    /// Whether the policies of a scope say that it ends with it.
    fn ends(self, row: &ScopePolicies) -> bool {
        match self {
            EndsWith::Session(id) => {
                row.policies.visibility == Visibility::Local && row.policies.owner.as_deref() == Some(id)
            }
            EndsWith::Item(id) => row.policies.work_item.as_deref() == Some(id),
        }
    }

    /// Who has ended, from the name of the row.
    fn parse(name: &str) -> Option<EndsWith<'_>> {
        let rest = name.strip_prefix(ENDED)?;
        let session = rest.strip_prefix("session:").map(EndsWith::Session);
        session.or_else(|| rest.strip_prefix("work:").map(EndsWith::Item))
    }

    fn summary(self, scope: &str) -> String {
        match self {
            EndsWith::Session(_) => format!("Scope \"{scope}\" ended with its session"),
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

impl Board {
    /// Deletes the scopes whose session or item has ended, a batch of their entries in a commit. What another process deletes
    /// meanwhile, or what fails here, is left to the next sweep.
    pub(crate) fn end_scopes(&self, on_busy: OnBusy) {
        loop {
            match self.end_batch(on_busy) {
                Ok(true) => {}
                Ok(false) | Err(_) => return,
            }
        }
    }

    /// Deletes a batch, and returns whether there may be more.
    fn end_batch(&self, on_busy: OnBusy) -> Result<bool> {
        let range = Range::bookkeeping_rows(ENDED);
        let first = self.read(&[Prefetch::Keys(range.clone(), 1)], |tx| {
            let Some(Ok(Key::BookkeepingRow(name))) = tx.keys(&range, 1)?.into_iter().next() else {
                return Ok(None);
            };
            tx.prefetch(&[Prefetch::Row(key(&name))])?;
            let scope = scopes_in(tx, &name)?.into_iter().next();
            Ok(Some((name, scope)))
        })?;
        let Some((name, scope)) = first else { return Ok(false) };
        let list = key(&name);
        let Some(scope) = scope else {
            return self.commit_with_on_busy(on_busy, "scope end", &[Prefetch::Row(list.clone())], |tx| {
                let mut changes = Changes::new();
                if tx.get(&list)?.is_some() && scopes_in(tx, &name)?.is_empty() {
                    changes.remove(list.clone());
                }
                Ok((changes, true))
            });
        };
        let (policies, entries) = (Key::ScopePolicies(scope.clone()), Range::entries(&scope, ""));
        let prefetch =
            [Prefetch::Row(list), Prefetch::Row(policies.clone()), Prefetch::Heads(entries.clone(), BATCH)];
        self.commit_with_on_busy(on_busy, "scope end", &prefetch, |tx| {
            let mut editor = EntryEditor::new(self, tx, &Actor::default())?;
            let mut scopes = scopes_in(tx, &name)?;
            let is_first = scopes.first() == Some(&scope);
            let row = tx.row::<ScopePolicies>(&policies)?;
            let by = EndsWith::parse(&name).filter(|by| row.as_ref().is_some_and(|row| by.ends(row)));
            let heads = tx.heads(&entries, BATCH)?;
            match by {
                _ if !is_first => {}
                // The name may have been given to another scope.
                None => next(&name, &mut scopes, &mut editor.changes),
                Some(by) if heads.is_empty() => {
                    next(&name, &mut scopes, &mut editor.changes);
                    editor.changes.remove(policies.clone());
                    let summary = by.summary(&scope);
                    editor.changes.event(NewEvent::new(
                        EventType::ScopeDeleted,
                        TargetType::Scope,
                        &scope,
                        summary,
                    ));
                }
                Some(_) => {
                    editor.prefetch_entries(&scope, heads.iter().map(|head| &head.key))?;
                    for head in &heads {
                        // The next batch deletes the rest.
                        if editor.is_full() {
                            break;
                        }
                        editor.remove_with_scope(&scope, &head.key)?;
                    }
                }
            }
            Ok((editor.finish()?, true))
        })
    }
}

/// Goes on with the next scope of a list.
fn next(name: &str, scopes: &mut Vec<String>, changes: &mut Changes) {
    scopes.remove(0);
    if scopes.is_empty() {
        changes.remove(key(name));
    } else {
        put(name, scopes, changes);
    }
}

/// The refusal of a local scope without a session.
pub(super) fn no_session_for_scope() -> crate::Error {
    crate::error::Refusal::new(Code::NoSession, "a local scope requires a session, with which it ends")
        .hint(crate::hint::Hint::PassSession)
        .into()
}
