//! `page unmap`: ends the mapping of a scope.

use serde::{Deserialize, Serialize};

use super::{ContextPage, PageMap, Pages};
use crate::agent::prefetch_agent;
use crate::entry::{Actor, EntryEditor, check_known_scope};
use crate::error::Result;
use crate::event::{EventType, NewEvent, TargetType};
use crate::revision::{Pending, Revision};
use crate::scope::prefetch_policies;
use crate::store::{Changes, Key, Prefetch, Range};
use crate::unreadable::if_readable;

/// How many pages one commit removes.
const BATCH: usize = 1_000;

/// What a call to unmap a scope did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UnmapOutcome {
    /// The scope has no pages any more.
    Unmapped,
    /// It was not mapped. Nothing was changed.
    NotMapped,
}

/// The result of a call to unmap a scope.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Unmapped {
    /// What the call did.
    pub outcome: UnmapOutcome,
    /// The scope.
    pub scope: String,
    /// How many stored pages were removed.
    pub pages: u64,
    /// The event, if the call changed something.
    pub revision: Option<Revision>,
}

impl Pending for Unmapped {
    fn resolve(&mut self, first: Revision) {
        self.revision.resolve(first);
    }
}

impl Pages<'_> {
    /// Ends the mapping of a scope and removes its pages. Its entries stay.
    ///
    /// ```
    /// # use blackboard::{Board, page::{MapScope, UnmapOutcome}};
    /// # let board = Board::memory();
    /// board.pages().map(&MapScope::of("team-1"))?;
    /// assert_eq!(board.pages().unmap("team-1", None)?.outcome, UnmapOutcome::Unmapped);
    /// assert_eq!(board.pages().unmap("team-1", None)?.outcome, UnmapOutcome::NotMapped);
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn unmap(&self, scope: &str, session: Option<&str>) -> Result<Unmapped> {
        check_known_scope(scope)?;
        let mut unmapped = self.unmap_first(scope, session)?;
        if unmapped.outcome == UnmapOutcome::Unmapped && unmapped.pages == BATCH as u64 {
            // Rows without a map count as no pages, so the rest may go later.
            loop {
                match self.remove_pages(scope)? {
                    0 => break,
                    count => unmapped.pages += count,
                }
            }
        }
        Ok(unmapped)
    }

    fn unmap_first(self, scope: &str, session: Option<&str>) -> Result<Unmapped> {
        let (key, range) = (PageMap::key_of(scope), Range::pages_of(scope));
        let mut prefetch = vec![Prefetch::Row(key.clone()), Prefetch::Keys(range.clone(), BATCH)];
        prefetch.extend(prefetch_agent(session));
        prefetch.extend(prefetch_policies(scope));
        let actor = Actor { session: session.map(str::to_owned), ..Actor::default() };
        self.board.commit_as(session.as_slice(), "page unmap", &prefetch, |tx| {
            let mut editor = EntryEditor::new(self.board, tx, &actor)?;
            editor.check_member_of(scope)?;
            let is_mapped = if_readable(tx.get(&key))?.is_some();
            let pages = page_keys(tx, &range)?;
            let (changes, unmapped) = decide(scope, is_mapped, pages, &editor.author, session);
            editor.changes = changes;
            Ok((editor.finish()?, unmapped))
        })
    }

    /// Removes some pages that are left over, unless the scope is mapped again. Returns how many.
    fn remove_pages(self, scope: &str) -> Result<u64> {
        let (key, range) = (PageMap::key_of(scope), Range::pages_of(scope));
        let prefetch = [Prefetch::Row(key.clone()), Prefetch::Keys(range.clone(), BATCH)];
        self.board.commit("page unmap", &prefetch, |tx| {
            let mut changes = Changes::new();
            if if_readable(tx.get(&key))?.is_some() {
                return Ok((changes, 0));
            }
            let pages = page_keys(tx, &range)?;
            let count = pages.len() as u64;
            changes.remove.extend(pages);
            Ok((changes, count))
        })
    }
}

/// The keys of the first pages, each read so that it can be removed.
fn page_keys(tx: &dyn crate::store::Tx, range: &Range) -> Result<Vec<Key>> {
    let mut keys = Vec::new();
    for key in tx.keys(range, BATCH)? {
        keys.extend(if_readable(key.map(Some))?);
    }
    tx.prefetch(&keys.iter().cloned().map(Prefetch::Row).collect::<Vec<_>>())?;
    let mut found = Vec::with_capacity(keys.len());
    for key in keys {
        match tx.row::<ContextPage>(&key) {
            Ok(None) => {}
            Err(error) if !error.is_unreadable_row() => return Err(error),
            Ok(Some(_)) | Err(_) => found.push(key),
        }
    }
    Ok(found)
}

fn decide(
    scope: &str,
    is_mapped: bool,
    pages: Vec<Key>,
    author: &str,
    session: Option<&str>,
) -> (Changes, Unmapped) {
    let mut changes = Changes::new();
    let scope = scope.to_owned();
    if !is_mapped {
        return (changes, Unmapped { outcome: UnmapOutcome::NotMapped, scope, pages: 0, revision: None });
    }
    let count = pages.len() as u64;
    let summary = format!("Agent \"{author}\" unmapped scope \"{scope}\" from pages");
    let event = NewEvent::new(EventType::ScopeUnmapped, TargetType::Scope, &scope, summary).by(session);
    let revision = Some(changes.event(event));
    changes.remove(PageMap::key_of(&scope));
    changes.remove.extend(pages);
    (changes, Unmapped { outcome: UnmapOutcome::Unmapped, scope, pages: count, revision })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_mapped_scope_is_unmapped() {
        let page = || Key::ContextPage("s".into(), "g".into(), "h".into());
        for (is_mapped, pages, expected) in [
            (false, vec![], (UnmapOutcome::NotMapped, 0, 0)),
            (false, vec![page()], (UnmapOutcome::NotMapped, 0, 0)),
            (true, vec![], (UnmapOutcome::Unmapped, 1, 1)),
            (true, vec![page()], (UnmapOutcome::Unmapped, 1, 2)),
        ] {
            let (changes, unmapped) = decide("s", is_mapped, pages, "Ivy", None);
            assert_eq!((unmapped.outcome, changes.events.len(), changes.remove.len()), expected);
            assert_eq!(unmapped.revision.is_some(), is_mapped);
        }
    }
}
