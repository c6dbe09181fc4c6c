//! Retention: removes old rows in small batches.
//!
//! A writing command removes at most 2,000 rows after its output is printed, in transactions so short that they
//! hardly delay a claim. When nothing is due, no command checks again for an hour. The newest event always stays, so
//! ids never start again.
//!
//! The search takes no lock. The commit reads each found row again. A row that cannot be read is skipped, its agent
//! is reported, and the other rows are still removed.
//!
//! | File | What it is about |
//! |---|---|
//! | `agents.rs` | agents that ended long ago, and their rows |
//! | `heartbeats.rs` | heartbeats that are too old or too many |
//! | `events.rs` | the event log, by age and by size |
//! | `clocks.rs` | clock readings of machines that do not use the board any more |
//! | `scopes.rs` | policies that only hide the history of a scope |

mod agents;
mod clocks;
mod events;
mod heartbeats;
mod scopes;

use std::borrow::Cow;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use self::agents::AgentBatch;
use self::clocks::ClockBatch;
#[cfg(any(test, feature = "conformance"))]
pub(crate) use self::events::cut_log;
use self::heartbeats::{HeartbeatBatch, remove_heartbeats};
use crate::board::Board;
use crate::clock::Timestamp;
use crate::error::Result;
use crate::file::{EDITS_KEPT, Edit};
use crate::revision::{Pending, Revision};
use crate::scope::prefetch_past;
use crate::store::{BookkeepingRow, Changes, Cursor, Key, Prefetch, Range, RememberedCall, Row, Tx};
use crate::sweep::{ClockReading, SkippedAgent, Swept};
use crate::unreadable::if_readable;

/// How many rows one transaction removes.
const BATCH: usize = 650;

/// How many transactions one command makes.
const AUTOMATIC_BATCHES: usize = 3;

/// How many heartbeats of a session are kept, however recent they are.
const HEARTBEATS_KEPT: u64 = 1000;

/// How long no command checks again once nothing is due.
const REST: Duration = Duration::from_hours(1);

/// How long the answer of a call with an idempotency key is remembered.
const REMEMBER_OPERATIONS: Duration = Duration::from_hours(24);

const KEY: Key = Key::BookkeepingRow(Cow::Borrowed("prune"));

#[derive(Serialize, Deserialize)]
struct PruneState {
    due_at: Timestamp,
    /// After which clock reading the next search begins; at the first one if it is empty.
    #[serde(default)]
    clocks_after: String,
}

/// What one batch removed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pruned {
    /// Events.
    pub events: u64,
    /// Agents that ended long ago.
    pub agents: u64,
    /// Whether more rows are due.
    pub more: bool,
    /// Agents that are due or have due heartbeats, but have a row that cannot be read.
    pub skipped_agents: Vec<SkippedAgent>,
}

impl Pending for Pruned {
    fn resolve(&mut self, _first: Revision) {}
}

/// The rows that the search has found, as many as one batch removes.
struct Due {
    agents: AgentBatch,
    heartbeats: HeartbeatBatch,
    /// The last pruned revision at the time of the search.
    floor: Revision,
    /// The revision up to which the event log may be removed, and whether more of it is due.
    events: Option<(Revision, bool)>,
    /// Cursors, operations and edits, by their keys.
    cursors: Vec<Key>,
    operations: Vec<Key>,
    edits: Vec<Key>,
    clocks: ClockBatch,
    /// The lists of policies that hide nothing any more.
    scopes: Vec<Key>,
}

impl Due {
    /// The known part of what the commit reads.
    fn prefetch(&self) -> Vec<Prefetch<'static>> {
        let keys = [&self.heartbeats.due, &self.cursors, &self.operations, &self.edits, &self.clocks.due];
        let agents = self.agents.due.iter().map(|session| Key::Agent(session.clone()));
        let rows = agents.chain(keys.into_iter().flatten().cloned()).chain([KEY]).map(Prefetch::Row);
        let rows = rows.chain(self.scopes.iter().cloned().map(Prefetch::Row));
        let rows = rows.chain(self.scopes.iter().flat_map(prefetch_past));
        let cut = self.events.iter().flat_map(|(until, _)| events::prefetch_cut(self.floor, *until));
        rows.chain(cut).chain([Prefetch::Revision]).collect()
    }
}

impl Board {
    /// The pruning after a command: a few batches, and none if another session writes. Skipped agents go to the
    /// observer of [`Board::with_sweep_observer`].
    pub fn try_prune(&self) {
        for _ in 0..AUTOMATIC_BATCHES {
            // The next command that writes tries again.
            let Ok(Pruned { more, skipped_agents, .. }) = self.prune() else { return };
            self.report_sweep(&Swept { skipped_agents, ..Swept::default() });
            if !more {
                return;
            }
        }
    }

    /// Removes one batch of the rows that are due. Never waits for another writer.
    ///
    /// ```
    /// # use blackboard::Board;
    /// assert_eq!(Board::memory().prune()?.events, 0);
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn prune(&self) -> Result<Pruned> {
        let found = self.read(&[Prefetch::Row(KEY), Prefetch::Revision], |tx| {
            if is_due(tx)? { self.rows_to_prune(tx).map(Some) } else { Ok(None) }
        })?;
        let Some(due) = found else { return Ok(Pruned::default()) };
        let mut skipped_agents = due.agents.skipped.clone();
        skipped_agents.extend(due.heartbeats.skipped.iter().cloned());
        let pruned = self.try_commit("prune", &due.prefetch(), |tx| {
            if !is_due(tx)? {
                return Ok((Changes::new(), Pruned::default()));
            }
            let mut changes = Changes::new();
            let mut pruned = Pruned::default();
            self.prune_agents(tx, &due.agents, &mut changes, &mut pruned)?;
            if let Some((until, more)) = due.events.filter(|_| !pruned.more) {
                pruned.events = events::prune_events(tx, until, &mut changes)?;
                pruned.more = more;
            }
            if !pruned.more {
                remove_heartbeats(tx, &due.heartbeats.due, &mut changes)?;
                pruned.more = due.heartbeats.is_full();
            }
            let floor = tx.floor()?;
            let is_abandoned = |cursor: &Cursor| self.is_abandoned(cursor, floor, tx.now());
            prune_rows(tx, &due.cursors, is_abandoned, &mut changes, &mut pruned)?;
            let is_old = |operation: &RememberedCall| operation.created_at < oldest_operation(tx);
            prune_rows(tx, &due.operations, is_old, &mut changes, &mut pruned)?;
            // A session may have edited the file again meanwhile.
            let is_old = |edit: &Edit| edit.noted_at() < oldest_edit(tx);
            prune_rows(tx, &due.edits, is_old, &mut changes, &mut pruned)?;
            // The machine may have registered a session meanwhile.
            let is_old = |row: &BookkeepingRow| ClockReading::is_abandoned(self, row, tx.now());
            prune_rows(tx, &due.clocks.due, is_old, &mut changes, &mut pruned)?;
            scopes::prune_scopes(tx, &due.scopes, &mut changes, &mut pruned)?;
            if !pruned.more {
                let due =
                    PruneState { due_at: tx.now().plus(REST), clocks_after: due.clocks.position.clone() };
                changes.put(BookkeepingRow {
                    name: Cow::Borrowed("prune"),
                    value: serde_json::to_string(&due).unwrap_or_default(),
                });
            }
            Ok((changes, pruned))
        })?;
        Ok(Pruned { skipped_agents, ..pruned })
    }

    fn rows_to_prune(&self, tx: &dyn Tx) -> Result<Due> {
        let (operations, edits) =
            (Range::operations_before(oldest_operation(tx)), Range::edits_before(oldest_edit(tx)));
        let cursors = Range::cursors_of(Cursor::OWNERLESS);
        let clocks_after = prune_state(tx)?.map(|state| state.clocks_after).unwrap_or_default();
        tx.prefetch(&[
            clocks::prefetch(&clocks_after),
            Prefetch::Keys(operations.clone(), BATCH),
            Prefetch::Keys(edits.clone(), BATCH),
            Prefetch::Range(cursors.clone()),
            scopes::prefetch(),
        ])?;
        let floor = tx.floor()?;
        let named = readable_rows::<Cursor>(tx, &cursors)?.into_iter();
        let abandoned = named.filter(|cursor| self.is_abandoned(cursor, floor, tx.now()));
        let agents = self.agents_to_remove(tx)?;
        let events = self.events_to_prune(tx)?;
        // The search for heartbeats asks about every session. A batch after which more events are due removes none.
        let more_events = events.is_some_and(|(_, more)| more);
        let heartbeats = if more_events { HeartbeatBatch::default() } else { self.heartbeats_to_prune(tx)? };
        Ok(Due {
            agents,
            heartbeats,
            floor,
            events,
            cursors: abandoned.map(|cursor| Key::Cursor(cursor.owner, cursor.reader)).take(BATCH).collect(),
            operations: readable(tx.keys(&operations, BATCH)?)?,
            edits: readable(tx.keys(&edits, BATCH)?)?,
            clocks: self.clocks_to_prune(tx, &clocks_after)?,
            scopes: scopes::scopes_to_prune(tx)?,
        })
    }

    /// Whether a cursor is abandoned: it has not moved for as long as events are kept, and events that it had not
    /// read were pruned.
    fn is_abandoned(&self, cursor: &Cursor, floor: Revision, now: Timestamp) -> bool {
        cursor.revision < floor && now.since(cursor.updated_at) >= self.settings().keep_events
    }
}

/// Remembered calls before this moment are removed: no caller retries them now.
fn oldest_operation(tx: &dyn Tx) -> Timestamp {
    tx.now().minus(REMEMBER_OPERATIONS)
}

/// Edits before this moment are removed.
fn oldest_edit(tx: &dyn Tx) -> Timestamp {
    tx.now().minus(EDITS_KEPT)
}

/// Removes the rows that are still due. A row that cannot be read stays.
fn prune_rows<T: TryFrom<Row>>(
    tx: &dyn Tx,
    due: &[Key],
    is_still_due: impl Fn(&T) -> bool,
    changes: &mut Changes,
    pruned: &mut Pruned,
) -> Result<()> {
    pruned.more |= due.len() == BATCH;
    for key in due {
        let row = if_readable(tx.row::<T>(key))?;
        // This commit may already remove it with its session.
        if row.is_some_and(|row| is_still_due(&row)) && !changes.remove.contains(key) {
            changes.remove(key.clone());
        }
    }
    Ok(())
}

/// The keys that can be read. A row whose key cannot be read stays, and the others are still removed.
fn readable(keys: Vec<Result<Key>>) -> Result<Vec<Key>> {
    let mut found = Vec::with_capacity(keys.len());
    for key in keys {
        match key {
            Err(error) if error.is_unreadable_row() => {}
            key => found.push(key?),
        }
    }
    Ok(found)
}

/// The rows of a range that can be read.
fn readable_rows<T: TryFrom<Row>>(tx: &dyn Tx, range: &Range) -> Result<Vec<T>> {
    match tx.rows::<T>(range) {
        Err(error) if error.is_unreadable_row() => {}
        rows => return rows,
    }
    tx.prefetch(&[Prefetch::Keys(range.clone(), usize::MAX)])?;
    let keys = readable(tx.keys(range, usize::MAX)?)?;
    tx.prefetch(&keys.iter().cloned().map(Prefetch::Row).collect::<Vec<_>>())?;
    keys.iter().filter_map(|key| if_readable(tx.row(key)).transpose()).collect()
}

fn is_due(tx: &dyn Tx) -> Result<bool> {
    let mark = prune_state(tx)?;
    // A due time further away than the interval was written under another clock.
    Ok(mark.is_none_or(|mark| tx.now() >= mark.due_at || mark.due_at > tx.now().plus(REST)))
}

/// The state of the last batch. If it cannot be read, the next batch replaces it.
fn prune_state(tx: &dyn Tx) -> Result<Option<PruneState>> {
    let row = if_readable(tx.row::<BookkeepingRow>(&KEY))?;
    Ok(row.and_then(|row| serde_json::from_str(&row.value).ok()))
}
