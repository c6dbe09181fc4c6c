//! Counts events whose ids may have gaps, without reading them.
//!
//! An event has an *ordinal*: its number among all events that the board ever had, including pruned ones. Without a
//! gap it is the id. The table `event_gaps` has the id and the ordinal of the first event after each gap; from there
//! to the next gap, ids and ordinals grow together. See docs/decisions/0017.

use rusqlite::params;

use super::tx::SqliteTx;
use crate::error::Result;
use crate::revision::Revision;
use crate::store::record::checked_revision;

const ANY: &str = "SELECT 1 FROM event_gaps LIMIT 1";
pub(super) const LAST_BEFORE: &str =
    "SELECT first_id, ordinal FROM event_gaps WHERE first_id <= ?1 ORDER BY first_id DESC LIMIT 1";
pub(super) const FIRST_AFTER: &str =
    "SELECT first_id, ordinal FROM event_gaps WHERE first_id > ?1 ORDER BY first_id LIMIT 1";
pub(super) const OF_ORDINAL: &str =
    "SELECT first_id, ordinal FROM event_gaps WHERE ordinal <= ?1 ORDER BY ordinal DESC LIMIT 1";

/// The first event after a gap.
#[derive(Clone, Copy, Default)]
struct Gap {
    first_id: i64,
    ordinal: i64,
}

impl SqliteTx<'_> {
    /// The ordinal of the last event up to and including a revision. The revision is neither below the last pruned
    /// one nor after the last event.
    pub(super) fn ordinal(&self, revision: Revision) -> Result<i64> {
        let id = revision.get();
        if !self.has_gaps()? {
            return Ok(id);
        }
        let before = self.gap(LAST_BEFORE, id)?.unwrap_or_default();
        let ordinal = before.ordinal.saturating_add(id.saturating_sub(before.first_id));
        // The revision may be inside the next gap.
        let next = self.gap(FIRST_AFTER, id)?;
        Ok(next.map_or(ordinal, |next| ordinal.min(next.ordinal.saturating_sub(1))))
    }

    /// The revision after this many of the kept events.
    pub(super) fn revision_after_kept(&self, events: u64) -> Result<Revision> {
        let floor = self.floor_revision()?;
        if events == 0 {
            return Ok(floor);
        }
        let ordinal = self.ordinal(floor)?.saturating_add(i64::try_from(events).unwrap_or(i64::MAX));
        if !self.has_gaps()? {
            return Ok(Revision::new(ordinal));
        }
        let before = self.gap(OF_ORDINAL, ordinal)?.unwrap_or_default();
        Ok(Revision::new(before.first_id.saturating_add(ordinal.saturating_sub(before.ordinal))))
    }

    /// How many events there are between two revisions, for both of which [`SqliteTx::ordinal`] is defined.
    pub(super) fn count_between(&self, after: Revision, until: Revision) -> Result<u64> {
        if after >= until {
            return Ok(0);
        }
        let events = self.ordinal(until)?.saturating_sub(self.ordinal(after)?);
        Ok(u64::try_from(events).unwrap_or(0))
    }

    /// Stores that the event after `last` has the id `first`, if ids were skipped.
    pub(super) fn store_gap(&self, last: Revision, first: Revision) -> Result<()> {
        const STORE: &str = "INSERT INTO event_gaps (first_id, ordinal) VALUES (?1, ?2)";
        if first == last.next() {
            return Ok(());
        }
        let ordinal = self.ordinal(last)?.saturating_add(1);
        self.execute(STORE, params![first.get(), ordinal]).map(drop)
    }

    /// Stores the last pruned revision, and removes the gaps that no ordinal needs any more.
    pub(super) fn store_floor(&self, floor: Revision) -> Result<()> {
        const STORE: &str = "INSERT OR REPLACE INTO marks (name, value) VALUES ('floor', ?1)";
        const FORGET: &str = "DELETE FROM event_gaps \
            WHERE first_id < (SELECT max(first_id) FROM event_gaps WHERE first_id <= ?1)";
        self.execute(STORE, params![floor.get()])?;
        self.execute(FORGET, params![floor.get()]).map(drop)
    }

    /// The last pruned revision. The oldest event follows it, unless there is a gap between them; then it is read.
    pub(super) fn floor_revision(&self) -> Result<Revision> {
        const OLDEST: &str = "SELECT min(id) FROM events";
        if let Some(&known) = self.floor.get() {
            return Ok(known);
        }
        let oldest: Option<Option<i64>> = self.query_one(OLDEST, [], |row| row.get(0))?;
        let floor = match oldest.flatten().and_then(checked_revision) {
            Some(oldest) if self.is_behind_gap(oldest)? => self.stored_floor()?.min(oldest.previous()),
            Some(oldest) => oldest.previous(),
            None => self.stored_floor()?,
        };
        Ok(*self.floor.get_or_init(|| floor))
    }

    fn stored_floor(&self) -> Result<Revision> {
        const STORED: &str = "SELECT value FROM marks WHERE name = 'floor'";
        let stored: Option<Option<String>> = self.query_one(STORED, [], |row| Ok(row.get(0).ok()))?;
        let stored = stored.flatten().and_then(|stored| checked_revision(stored.parse().ok()?));
        Ok(stored.unwrap_or_default())
    }

    fn is_behind_gap(&self, revision: Revision) -> Result<bool> {
        let id = revision.get();
        Ok(self.has_gaps()? && self.gap(LAST_BEFORE, id)?.is_some_and(|gap| gap.first_id == id))
    }

    fn has_gaps(&self) -> Result<bool> {
        if let Some(&known) = self.has_gaps.get() {
            return Ok(known);
        }
        let found = self.query_one(ANY, [], |_| Ok(()))?.is_some();
        Ok(*self.has_gaps.get_or_init(|| found))
    }

    fn gap(&self, sql: &str, parameter: i64) -> Result<Option<Gap>> {
        self.query_one(sql, params![parameter], |row| Ok(Gap { first_id: row.get(0)?, ordinal: row.get(1)? }))
    }
}
