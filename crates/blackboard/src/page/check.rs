//! For tests: the stored pages of a scope are those that a new board with the same entries would store.

use std::collections::{BTreeMap, BTreeSet};

use super::pack::{PackedPage, pack};
use super::repack::Plan;
use super::tokens::tokens_of_entry;
use super::{ContextPage, PackedEntry, PageMap, Pages};
use crate::board::Board;
use crate::entry::Entry;
use crate::error::Result;
use crate::store::{OnBusy, Prefetch, Range};

/// A page, by its group, its hash, its tokens and its keys.
type Checked = (String, String, u64, Vec<String>);

/// The stored pages of a mapped scope.
pub(crate) fn stored_pages(board: &Board, scope: &str) -> Result<Vec<Checked>> {
    let (key, pages) = (PageMap::key_of(scope), Range::pages_of(scope));
    let prefetch = [Prefetch::Row(key), Prefetch::Range(pages.clone())];
    board.read(&prefetch, |tx| {
        let map = PageMap::read(board, tx, scope)?.ok_or_else(|| super::not_mapped(scope))?;
        let rows =
            tx.rows::<ContextPage>(&pages)?.into_iter().filter(|page| page.content.mapping == map.mapping);
        let checked = rows.map(|page| {
            let page = PackedPage::from(page);
            (page.locality, page.hash, page.tokens, keys_of(page.entries))
        });
        Ok(checked.collect())
    })
}

fn keys_of(entries: Vec<PackedEntry>) -> Vec<String> {
    entries.into_iter().map(|entry| entry.key).collect()
}

/// The pages that a new board would store.
pub(crate) fn fresh_pages(board: &Board, scope: &str) -> Result<Vec<Checked>> {
    let (key, entries) = (PageMap::key_of(scope), Range::entries(scope, ""));
    let prefetch = [Prefetch::Row(key), Prefetch::Range(entries.clone())];
    board.read(&prefetch, |tx| {
        let map = PageMap::read(board, tx, scope)?.ok_or_else(|| super::not_mapped(scope))?;
        let mut groups: BTreeMap<String, Vec<PackedEntry>> = BTreeMap::new();
        for entry in tx.rows::<Entry>(&entries)? {
            groups.entry(map.by.locality(&entry)).or_default().push(PackedEntry {
                tokens: tokens_of_entry(&entry),
                revision: entry.revision,
                key: entry.key,
            });
        }
        let mut pages = BTreeSet::new();
        for (locality, entries) in groups {
            for page in pack(scope, &locality, map.max_tokens, entries) {
                pages.insert((page.locality, page.hash, page.tokens, keys_of(page.entries)));
            }
        }
        Ok(pages.into_iter().collect())
    })
}

/// What a fold decided, to apply later: as if its process had slept in between.
pub(crate) struct Planned(Plan);

impl Pages<'_> {
    pub(crate) fn planned(self, scope: &str) -> Result<Planned> {
        let state = self.state(scope)?.ok_or_else(|| super::not_mapped(scope))?;
        Ok(Planned(state.plan))
    }

    /// Whether it was applied.
    pub(crate) fn apply_planned(self, planned: &Planned) -> Result<bool> {
        self.apply(&planned.0, OnBusy::Wait).map(|counts| counts.is_some())
    }
}

/// Fails unless the stored pages are those of a fresh build, and each entry is in exactly one of them.
#[track_caller]
pub(crate) fn assert_fresh(board: &Board, scope: &str) {
    #[expect(clippy::unwrap_used, reason = "this is a check of tests")]
    let (stored, fresh) = (stored_pages(board, scope).unwrap(), fresh_pages(board, scope).unwrap());
    assert_eq!(stored, fresh, "stored pages and those of a fresh build");
    let mut keys: Vec<_> = stored.into_iter().flat_map(|(_, _, _, keys)| keys).collect();
    keys.sort_unstable();
    let count = keys.len();
    keys.dedup();
    assert_eq!(keys.len(), count, "an entry is in two pages");
}
