//! `scope delete`: deletes the policies of a scope, and perhaps its entries.

use serde::Serialize;

use super::end::BATCH;
use super::past::list_past;
use super::{ScopePolicies, Scopes, no_policies, not_found};
use crate::agent::prefetch_agent;
use crate::entry::{Actor, EntryEditor, RepeatedAnswer, check_known_scope, check_not_reserved};
use crate::error::Result;
use crate::event::{EventType, NewEvent, TargetType};
use crate::hint::Hint;
use crate::revision::{Pending, Revision};
use crate::store::{Changes, Key, Prefetch, Range};

/// A scope to delete.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeleteScope {
    /// The name of the scope.
    pub name: String,
    /// Whether its entries are deleted, too.
    pub entries: bool,
    /// The session that acts.
    pub session: Option<String>,
}

/// The result of a deletion.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DeletedScope {
    /// The name of the scope.
    pub scope: String,
    /// How many entries were deleted.
    pub deleted_entries: u64,
    /// How many entries are kept, in a scope without policies that is open to every caller.
    pub kept_entries: u64,
    /// The event of the deletion.
    pub revision: Revision,
}

impl Pending for DeletedScope {
    fn resolve(&mut self, first: Revision) {
        self.revision.resolve(first);
    }
}

/// How many entries a batch deleted.
impl RepeatedAnswer for u64 {}

impl Scopes<'_> {
    /// Deletes the policies of a scope: it is then like a scope that never had any. With `entries`, deletes its entries first,
    /// in commits of a limited size. If another session leases one of them, the call is refused: what it deleted before
    /// stays deleted.
    ///
    /// ```
    /// # use blackboard::{Board, entry::{Value, Write}, scope::{CreateScope, DeleteScope, Policies}};
    /// # let board = Board::memory();
    /// board.scopes().create(&CreateScope::new("cache", Policies::default()))?;
    /// board.scope("cache").write(&Write::new("a", Value::of(&1)?))?;
    /// let all = DeleteScope { name: "cache".to_owned(), entries: true, session: None };
    /// assert_eq!(board.scopes().delete(&all)?.deleted_entries, 1);
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn delete(&self, request: &DeleteScope) -> Result<DeletedScope> {
        let DeleteScope { name, entries, session } = request;
        check_known_scope(name)?;
        check_not_reserved(name)?;
        let mut deleted_entries = 0;
        loop {
            if *entries {
                deleted_entries += self.delete_entries(name, session.as_deref())?;
            }
            if let Some(deleted) = self.delete_policies(request, deleted_entries)? {
                return Ok(deleted);
            }
        }
    }

    /// Deletes the policies. `None` if the entries have to be deleted, and there are some again.
    fn delete_policies(self, request: &DeleteScope, deleted_entries: u64) -> Result<Option<DeletedScope>> {
        let DeleteScope { name, entries, session } = request;
        let whole = Range::entries(name, "");
        let key = Key::ScopePolicies(name.clone());
        let mut prefetch = vec![Prefetch::Row(key.clone())];
        prefetch.push(if *entries {
            Prefetch::Heads(whole.clone(), 1)
        } else {
            Prefetch::Count(whole.clone())
        });
        prefetch.extend(prefetch_agent(session.as_deref()));
        let actor = Actor { session: session.clone(), ..Actor::default() };
        self.board.commit_as(session.as_deref().as_slice(), "scope delete", &prefetch, |tx| {
            let mut editor = EntryEditor::new(self.board, tx, &actor)?;
            if *entries && !tx.heads(&whole, 1)?.is_empty() {
                return Ok((Changes::new(), None));
            }
            let kept_entries = if *entries { 0 } else { tx.count(&whole)? };
            let row = tx.row::<ScopePolicies>(&key)?;
            row.iter().try_for_each(|row| editor.check_owner(row))?;
            let row = row.filter(ScopePolicies::is_live);
            match &row {
                Some(row) => {
                    for with in row.policies.ends_with() {
                        with.remove(tx, name, &mut editor.changes)?;
                    }
                }
                None if deleted_entries > 0 => {}
                None if *entries => return Err(not_found(name)),
                None if kept_entries > 0 => {
                    return Err(no_policies(name).with_hint(Hint::DeleteEntriesOf(name.clone())));
                }
                None => return Err(no_policies(name)),
            }
            let summary = format!("Agent \"{}\" deleted scope \"{name}\"", editor.author);
            let revision = editor.changes.event(
                NewEvent::new(EventType::ScopeDeleted, TargetType::Scope, name, summary)
                    .by(session.as_deref())
                    .with("deleted_entries", deleted_entries),
            );
            match row.map(|row| row.deleted(tx.now(), revision)) {
                // The past of an earlier scope with this name stays hidden.
                Some(Some(kept)) => {
                    editor.changes.put(kept);
                    list_past(tx, name, &mut editor.changes)?;
                }
                Some(None) => editor.changes.remove(key.clone()),
                None => {}
            }
            let deleted = DeletedScope { scope: name.clone(), deleted_entries, kept_entries, revision };
            Ok((editor.finish()?, Some(deleted)))
        })
    }

    /// Deletes all entries, and returns how many.
    fn delete_entries(self, name: &str, session: Option<&str>) -> Result<u64> {
        let mut deleted = 0;
        loop {
            match self.delete_batch(name, session)? {
                0 => return Ok(deleted),
                count => deleted += count,
            }
        }
    }

    /// Deletes some entries, and returns how many.
    fn delete_batch(self, name: &str, session: Option<&str>) -> Result<u64> {
        let first = Range::entries(name, "");
        let scope = self.board.scope(name).acting_as(session.map(Actor::session).unwrap_or_default());
        let prefetch = [Prefetch::Heads(first.clone(), BATCH)];
        scope.commit(
            "scope delete",
            |asked| asked,
            &prefetch,
            |editor| {
                editor.check_owner_of(name)?;
                let keys: Vec<_> = editor.heads(&first, BATCH)?.into_iter().map(|head| head.key).collect();
                let mut count = 0;
                // The next batch deletes the rest.
                editor.until_full(name, &keys, |editor, key| {
                    let is_gone = editor.expire(name, key)? || editor.delete_of_scope(name, key)?;
                    count += u64::from(is_gone);
                    Ok(())
                })?;
                Ok(count)
            },
        )
    }
}
