//! Retention: what is old enough goes, in small batches.
//!
//! A writing command removes at most one batch, after its output is out; when nothing is due, nobody looks again for
//! an hour. The newest event always stays, so ids never start again.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::agent::{Agent, AgentStatus};
use crate::board::Board;
use crate::clock::Timestamp;
use crate::error::Result;
use crate::revision::{Pending, Revision};
use crate::store::{Changes, Cursor, Key, Mark, Operation, Page, Range, Tx, Wanted};
use crate::work::{Status, WorkItem};

/// How many rows go in one transaction.
const BATCH: usize = 2000;

/// How many agents go in one transaction: each takes its cursors along, and its heartbeats as far as the batch goes.
const AGENT_BATCH: u64 = 20;

/// How long nobody looks again once nothing is due.
const REST: Duration = Duration::from_hours(1);

/// How long the answer of a named operation is remembered.
const REMEMBER_OPERATIONS: Duration = Duration::from_hours(24);

const KEY: Key = Key::Mark("prune");

#[derive(Serialize, Deserialize)]
struct PruneMark {
    due_at: Timestamp,
}

/// What one batch removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pruned {
    /// Events.
    pub events: u64,
    /// Agents that ended long ago.
    pub agents: u64,
    /// Whether more is due.
    pub more: bool,
}

impl Pending for Pruned {
    fn resolve(&mut self, _first: Revision) {}
}

impl Board {
    /// Removes one batch of what is due, if anything is. Never waits for another writer.
    ///
    /// ```
    /// # use blackboard::Board;
    /// assert_eq!(Board::memory().prune()?.events, 0);
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn prune(&self) -> Result<Pruned> {
        if !self.read(&[Wanted::Row(KEY)], is_due)? {
            return Ok(Pruned::default());
        }
        self.try_commit("prune", &[Wanted::Row(KEY)], |tx| {
            if !is_due(tx)? {
                return Ok((Changes::new(), Pruned::default()));
            }
            let mut changes = Changes::new();
            let mut pruned = Pruned::default();
            self.prune_agents(tx, &mut changes, &mut pruned)?;
            if !pruned.more {
                self.prune_events(tx, &mut changes, &mut pruned)?;
            }
            if !pruned.more {
                let heartbeats_before = tx.now().minus(self.settings().keep_heartbeats);
                if tx.oldest_heartbeat()?.is_some_and(|oldest| oldest < heartbeats_before) {
                    changes.trim_heartbeats = Some((heartbeats_before, BATCH));
                    pruned.more = true;
                }
            }
            prune_operations(tx, &mut changes, &mut pruned)?;
            if !pruned.more {
                let due = PruneMark { due_at: tx.now().plus(REST) };
                changes.put(Mark { name: "prune", value: serde_json::to_string(&due).unwrap_or_default() });
            }
            Ok((changes, pruned))
        })
    }

    /// Removes all heartbeats that are due, batch by batch, and says how many.
    pub(crate) fn prune_heartbeats(&self) -> Result<u64> {
        let mut pruned = 0;
        loop {
            let now = self.clock().now();
            let before = now.minus(self.settings().keep_heartbeats);
            let oldest = self.read(&[], |tx| tx.oldest_heartbeat())?;
            if oldest.is_none_or(|oldest| oldest >= before) {
                return Ok(pruned);
            }
            let trimmed = self.trim_heartbeats(before, BATCH)?;
            if trimmed == 0 {
                return Ok(pruned);
            }
            pruned += trimmed;
        }
    }

    fn prune_events(&self, tx: &dyn Tx, changes: &mut Changes, pruned: &mut Pruned) -> Result<()> {
        let floor = tx.floor()?;
        let newest = tx.revision()?;
        let too_old = tx.revision_before(tx.now().minus(self.settings().keep_events))?;
        let due = too_old.max(self.over_the_limit(tx, floor, newest)?).min(newest.previous());
        let batch_end = Revision::new(floor.get() + i64::try_from(BATCH).unwrap_or(i64::MAX));
        let until = match due.min(batch_end) {
            until if until > floor => end_of_commit(tx, until, newest)?,
            _ => return Ok(()),
        };
        if until <= floor {
            return Ok(());
        }
        changes.trim_events = Some(until);
        pruned.events = until.since(floor);
        pruned.more = until < due;
        Ok(())
    }

    /// Up to where the log has to go so that it takes no more room than it may.
    fn over_the_limit(&self, tx: &dyn Tx, floor: Revision, newest: Revision) -> Result<Revision> {
        let sample = tx.events(&Page::after(floor, 100))?;
        let bytes: usize = sample.iter().map(approximate_bytes).sum();
        let average = (bytes / sample.len().max(1)).max(1) as u64;
        let allowed = i64::try_from(self.settings().max_log_bytes / average).unwrap_or(i64::MAX);
        Ok(Revision::new((newest.get() - allowed).max(floor.get())))
    }

    fn prune_agents(&self, tx: &dyn Tx, changes: &mut Changes, pruned: &mut Pruned) -> Result<()> {
        let now = tx.now();
        let shortest = self.settings().keep_completed_agents.min(self.settings().keep_stale_agents);
        let ended = tx.rows::<Agent>(&Range::agents_ended_before(now.minus(shortest)))?;
        let due = ended.into_iter().filter(|agent| {
            let keep = match agent.status {
                AgentStatus::Completed => self.settings().keep_completed_agents,
                AgentStatus::Stale => self.settings().keep_stale_agents,
                AgentStatus::Active | AgentStatus::Idle => return false,
            };
            agent.ended_at.is_some_and(|ended| now.since(ended) >= keep)
        });
        let mut room = BATCH as u64;
        for agent in due {
            // A parent stays as long as a delegate refers to it.
            if !tx.rows::<Agent>(&Range::delegates_of(&agent.session_id))?.is_empty() {
                continue;
            }
            let heartbeats = tx.heartbeats_of(&agent.session_id)?;
            let goes = pruned.agents < AGENT_BATCH && heartbeats <= room;
            changes.forget_heartbeats_of.push((agent.session_id.clone(), heartbeats.min(room)));
            if !goes {
                // What was too much for this batch goes with the next one.
                pruned.more = true;
                break;
            }
            forget(tx, &agent, changes)?;
            room -= heartbeats;
            pruned.agents += 1;
        }
        Ok(())
    }
}

/// Forgets the answers of operations that nobody will repeat any more.
fn prune_operations(tx: &dyn Tx, changes: &mut Changes, pruned: &mut Pruned) -> Result<()> {
    let old = Range::operations_before(tx.now().minus(REMEMBER_OPERATIONS));
    let batch = tx.hints::<Operation>(&old, BATCH)?;
    pruned.more |= batch.len() == BATCH;
    for operation in batch {
        let key = Key::Operation(operation.operation_id);
        // Once written, an operation is never changed, so that only its absence would make a difference.
        if tx.row::<Operation>(&key)?.is_some() {
            changes.remove(key);
        }
    }
    Ok(())
}

/// Removes an agent and what hangs on it. What it did keeps its name.
fn forget(tx: &dyn Tx, agent: &Agent, changes: &mut Changes) -> Result<()> {
    let session = &agent.session_id;
    for mut item in tx.rows::<WorkItem>(&Range::claimed_by(session))? {
        if item.status != Status::Completed {
            item.set_free();
        }
        item.claimed_by = None;
        changes.put(item);
    }
    for cursor in tx.rows::<Cursor>(&Range::cursors_of(session))? {
        changes.remove(Key::Cursor(cursor.owner, cursor.reader));
    }
    changes.remove(Key::Agent(session.clone()));
    Ok(())
}

fn is_due(tx: &dyn Tx) -> Result<bool> {
    let mark = tx.row::<Mark>(&KEY)?;
    let mark = mark.and_then(|mark| serde_json::from_str::<PruneMark>(&mark.value).ok());
    // A due time further away than the rest was written under another clock.
    Ok(mark.is_none_or(|mark| tx.now() >= mark.due_at || mark.due_at > tx.now().plus(REST)))
}

/// The end of the commit at `revision`, or of the one before if it is the newest: what is removed ends behind a whole
/// commit, as a page does, and the newest one stays.
fn end_of_commit(tx: &dyn Tx, revision: Revision, newest: Revision) -> Result<Revision> {
    let page = tx.events(&Page::after(revision.previous(), 1))?;
    Ok(match page.last() {
        Some(last) if last.id >= newest => last.commit_id.previous(),
        Some(last) => last.id,
        None => revision,
    })
}

fn approximate_bytes(event: &crate::event::Event) -> usize {
    let text = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    60 + event.summary.len()
        + text(&event.actor_id)
        + text(&event.target_id)
        + event.metadata.as_ref().map_or(0, |metadata| metadata.as_str().len())
}
