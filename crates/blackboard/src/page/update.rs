//! `update`: the fold, which brings the stored pages of a scope up to date.
//!
//! It decides on one state of the board, without a lock. The commit applies that decision if the row of the map is
//! still the one that it was made for. So two folds at the same time do the work of one, and writers wait only for rows
//! to be stored, never for packing.

use serde::Serialize;

use super::repack::{Counts, Plan};
use super::state::{PageState, prefetch_state};
use super::{PageMap, Pages, not_mapped};
use crate::entry::check_known_scope;
use crate::error::{Code, Result};
use crate::revision::{Pending, Revision};
use crate::store::{Changes, OnBusy, Prefetch};
use crate::unreadable::if_readable;

/// The result of an update.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct UpdatedPages {
    /// The scope.
    pub scope: String,
    /// How many pages were added.
    pub added: u64,
    /// How many pages were replaced.
    pub replaced: u64,
    /// How many pages were removed, because no entry is left in them.
    pub invalidated: u64,
    /// How many changed entries are not in the stored pages yet. A further update packs more of them.
    pub behind: u64,
    /// Whether another process was writing, so that nothing was stored.
    pub busy: bool,
}

impl Pending for Counts {
    fn resolve(&mut self, _first: Revision) {}
}

impl Pages<'_> {
    /// Brings the stored pages of a mapped scope up to date, as far as one call may: 1,000 changed entries. Never waits:
    /// if another process is writing, nothing is stored. [`list`](Pages::list) and [`show`](Pages::show) do not need
    /// it, because they pack in memory what is not stored yet; it saves them that work, and followers get the events.
    ///
    /// ```
    /// # use blackboard::{Board, entry::{Value, Write}, page::MapScope};
    /// # let board = Board::memory();
    /// board.pages().map(&MapScope::of("team-1"))?;
    /// board.scope("team-1").write(&Write::new("a", Value::of(&1)?))?;
    /// let updated = board.pages().update("team-1")?;
    /// assert_eq!((updated.added, updated.behind), (1, 0));
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn update(&self, scope: &str) -> Result<UpdatedPages> {
        check_known_scope(scope)?;
        self.update_with(scope, OnBusy::Fail)
    }

    /// Updates until nothing is missing. Waits for other writers.
    pub(crate) fn update_all(self, scope: &str) -> Result<UpdatedPages> {
        let mut all = UpdatedPages { scope: scope.to_owned(), ..UpdatedPages::default() };
        loop {
            let next = self.update_with(scope, OnBusy::Wait)?;
            all.added += next.added;
            all.replaced += next.replaced;
            all.invalidated += next.invalidated;
            let progress = all.behind == 0 || next.behind < all.behind;
            all.behind = next.behind;
            // A writer that is faster than the fold keeps it from its end; readers continue it.
            if all.behind == 0 || !progress {
                return Ok(all);
            }
        }
    }

    /// After a purge: the pages no longer have the tags of the purged entry, by which they may be grouped.
    pub(crate) fn forget_purged(self, scope: &str) -> Result<()> {
        match self.update_all(scope) {
            Err(error) if error.code() == Code::NotMapped => Ok(()),
            updated => updated.map(drop),
        }
    }

    fn update_with(self, scope: &str, on_busy: OnBusy) -> Result<UpdatedPages> {
        let state = self.state(scope)?.ok_or_else(|| not_mapped(scope))?;
        let mut updated =
            UpdatedPages { scope: scope.to_owned(), behind: state.behind, ..UpdatedPages::default() };
        if !state.plan.is_worth_a_commit {
            return Ok(updated);
        }
        match self.apply(&state.plan, on_busy) {
            Err(error) if on_busy == OnBusy::Fail && error.code() == Code::Busy => updated.busy = true,
            counts => {
                let Counts { added, replaced, invalidated } = counts?.unwrap_or_default();
                updated = UpdatedPages { added, replaced, invalidated, ..updated };
            }
        }
        Ok(updated)
    }

    /// The pages of a scope, if it is mapped.
    pub(super) fn state(self, scope: &str) -> Result<Option<PageState>> {
        self.board.read(&[Prefetch::Row(PageMap::key_of(scope))], |tx| {
            let Some(map) = PageMap::read(self.board, tx, scope)? else { return Ok(None) };
            tx.prefetch(&prefetch_state(&map))?;
            PageState::read(tx, map).map(Some)
        })
    }

    /// Commits what a fold decided; `None` if the pages have changed since.
    pub(super) fn apply(self, plan: &Plan, on_busy: OnBusy) -> Result<Option<Counts>> {
        let map = PageMap::key_of(&plan.before.scope);
        let keys = plan.keys();
        let rows = [&map].into_iter().chain(&keys).cloned();
        let prefetch: Vec<_> = rows.map(Prefetch::Row).collect();
        self.board.commit_with_on_busy(on_busy, "page update", &prefetch, |tx| {
            if PageMap::read(self.board, tx, &plan.before.scope)?.as_ref() != Some(&plan.before) {
                return Ok((Changes::new(), None));
            }
            for key in &keys {
                // A row has to be read before it is written.
                if_readable(tx.get(key))?;
            }
            let (changes, counts) = plan.clone().decide();
            Ok((changes, Some(counts)))
        })
    }
}
