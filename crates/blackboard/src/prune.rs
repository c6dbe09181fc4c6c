//! Retention: what is old enough goes, in small batches.
//!
//! A writing command removes at most 2,000 rows, after its output is out, in transactions so short that a claim that
//! meets one hardly notices; when nothing is due, nobody looks again for an hour. The newest event always stays, so ids
//! never start again.

use std::borrow::Cow;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::agent::{Agent, AgentStatus};
use crate::board::Board;
use crate::clock::Timestamp;
use crate::entry::Tombstone;
use crate::error::Result;
use crate::event::{Event, TargetType};
use crate::file::{EDITS_KEPT, Edit};
use crate::revision::{Pending, Revision};
use crate::store::{Changes, Cursor, Key, Mark, Operation, Page, Prefetch, Range, Tx, VersionHead};
use crate::work::{Status, WorkItem};

/// How many rows go in one transaction.
const BATCH: usize = 650;

/// How many transactions one command makes.
const BATCHES_IN_PASSING: usize = 3;

/// How many agents go in one transaction: each takes its cursors along, and its finished items and heartbeats as far as
/// the batch goes.
const AGENT_BATCH: usize = 20;

/// How many ended agents are looked at for that: those that were found dead are kept longer, and stand before others.
const LOOKED_AT: usize = 1000;

/// How many heartbeats of a session are kept, however recent they are.
const HEARTBEATS_KEPT: u64 = 1000;

/// How many events are looked at in each of three places of the log, to know how large events are.
const SAMPLE: usize = 16;

/// What the version of an entry takes besides its value.
const VERSION_BYTES: usize = 200;

/// How many bytes go in one transaction, about: large values take as long to remove as many rows.
const BATCH_BYTES: u64 = 4 * 1024 * 1024;

/// How long nobody looks again once nothing is due.
const REST: Duration = Duration::from_hours(1);

/// How long the answer of a named operation is remembered.
const REMEMBER_OPERATIONS: Duration = Duration::from_hours(24);

const KEY: Key = Key::Mark(Cow::Borrowed("prune"));

/// Heartbeats that retention removes.
struct HeartbeatBatch {
    due: Vec<Key>,
    /// Whether more of them may follow.
    is_full: bool,
}

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
    /// The pruning that comes after a command: a few batches, and none if another writer is at work.
    pub fn prune_in_passing(&self) {
        for _ in 0..BATCHES_IN_PASSING {
            // Whoever writes next tries again.
            if !self.prune().is_ok_and(|pruned| pruned.more) {
                return;
            }
        }
    }

    /// Removes one batch of what is due, if anything is. Never waits for another writer.
    ///
    /// ```
    /// # use blackboard::Board;
    /// assert_eq!(Board::memory().prune()?.events, 0);
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn prune(&self) -> Result<Pruned> {
        // The search for rows takes no lock; each one that was found is looked at again under it.
        let found = self.read(&[Prefetch::Row(KEY)], |tx| {
            if !is_due(tx)? {
                return Ok(None);
            }
            Ok(Some((self.agents_to_forget(tx)?, self.heartbeats_to_prune(tx)?, self.cursors_to_forget(tx)?)))
        })?;
        let Some((ended, heartbeats, abandoned)) = found else { return Ok(Pruned::default()) };
        let rows = ended.iter().map(|session| Key::Agent(session.clone()));
        let rows = rows.chain(heartbeats.due.iter().cloned()).chain(abandoned.iter().cloned());
        let mut prefetch = vec![Prefetch::Row(KEY), Prefetch::Revision];
        prefetch.extend(rows.map(Prefetch::Row));
        self.try_commit("prune", &prefetch, |tx| {
            if !is_due(tx)? {
                return Ok((Changes::new(), Pruned::default()));
            }
            let mut changes = Changes::new();
            let mut pruned = Pruned::default();
            self.prune_agents(tx, &ended, &mut changes, &mut pruned)?;
            if !pruned.more {
                self.prune_events(tx, &mut changes, &mut pruned)?;
            }
            if !pruned.more {
                remove_heartbeats(tx, &heartbeats.due, &mut changes)?;
                pruned.more = heartbeats.is_full;
            }
            self.prune_cursors(tx, &abandoned, &mut changes, &mut pruned)?;
            prune_operations(tx, &mut changes, &mut pruned)?;
            prune_edits(tx, &mut changes, &mut pruned)?;
            if !pruned.more {
                let due = PruneMark { due_at: tx.now().plus(REST) };
                changes.put(Mark {
                    name: Cow::Borrowed("prune"),
                    value: serde_json::to_string(&due).unwrap_or_default(),
                });
            }
            Ok((changes, pruned))
        })
    }

    /// Removes all heartbeats that are too old, batch by batch, and returns how many.
    pub(crate) fn prune_heartbeats(&self) -> Result<u64> {
        let mut pruned = 0;
        loop {
            let old = self.old_heartbeats(self.clock().now());
            let due =
                self.read(&[Prefetch::Keys(old.clone(), BATCH)], |tx| readable(tx.keys(&old, BATCH)?))?;
            if due.is_empty() {
                return Ok(pruned);
            }
            let prefetch: Vec<_> = due.iter().cloned().map(Prefetch::Row).collect();
            let removed = self.commit("prune heartbeats", &prefetch, |tx| {
                let mut changes = Changes::new();
                remove_heartbeats(tx, &due, &mut changes)?;
                let removed = changes.remove.len() as u64;
                Ok((changes, removed))
            })?;
            pruned += removed;
            if removed == 0 {
                return Ok(pruned);
            }
        }
    }

    /// How many heartbeats are too old.
    pub(crate) fn count_old_heartbeats(&self) -> Result<u64> {
        let old = self.old_heartbeats(self.clock().now());
        self.read(&[Prefetch::Count(old.clone())], |tx| tx.count(&old))
    }

    /// Heartbeats that are too old. One that is dated in the future is none of them.
    fn old_heartbeats(&self, now: Timestamp) -> Range {
        Range::heartbeats_before(now.minus(self.settings().keep_heartbeats))
    }

    /// Heartbeats that are too old or too many for their session, as many as go at once.
    fn heartbeats_to_prune(&self, tx: &dyn Tx) -> Result<HeartbeatBatch> {
        let (old, live) = (self.old_heartbeats(tx.now()), Range::live_agents());
        tx.prefetch(&[Prefetch::Keys(old.clone(), BATCH), Prefetch::Keys(live.clone(), usize::MAX)])?;
        let mut due = readable(tx.keys(&old, BATCH)?)?;
        let mut own = Vec::new();
        for key in readable(tx.keys(&live, usize::MAX)?)? {
            if let Key::Agent(session) = key {
                own.push(Range::heartbeats_of(&session));
            }
        }
        tx.prefetch(&own.iter().cloned().map(Prefetch::Count).collect::<Vec<_>>())?;
        for own in own {
            let room = (BATCH - due.len()) as u64;
            let too_many = tx.count(&own)?.saturating_sub(HEARTBEATS_KEPT).min(room);
            if too_many > 0 {
                let too_many = usize::try_from(too_many).unwrap_or(BATCH);
                tx.prefetch(&[Prefetch::Keys(own.clone(), too_many)])?;
                due.extend(readable(tx.keys(&own, too_many)?)?);
            }
        }
        // Old heartbeats are also the first of those that are too many: some keys are here twice.
        let is_full = due.len() >= BATCH;
        due.sort_unstable();
        due.dedup();
        Ok(HeartbeatBatch { due, is_full })
    }

    fn prune_events(&self, tx: &dyn Tx, changes: &mut Changes, pruned: &mut Pruned) -> Result<()> {
        let floor = tx.floor()?;
        let newest = tx.revision()?;
        let too_old = tx.revision_before(tx.now().minus(self.settings().keep_events))?;
        let average = average_bytes(tx, floor, newest)?;
        // Up to where the event log has to be removed so that it takes no more space than it may.
        let too_much = tx.revision_back(newest, self.settings().max_log_bytes / average)?;
        let due = too_old.max(too_much).min(tx.revision_back(newest, 1)?);
        let batch = (BATCH_BYTES / average).clamp(1, BATCH as u64);
        let beyond_batch = tx.count_events(floor, due)?.saturating_sub(batch);
        let until = match tx.revision_back(due, beyond_batch)? {
            until if until > floor => end_of_commit(tx, until, newest)?,
            _ => return Ok(()),
        };
        if until <= floor {
            return Ok(());
        }
        cut_log(tx, until, changes)?;
        pruned.events = tx.count_events(floor, until)?;
        pruned.more = until < due;
        Ok(())
    }

    /// The sessions of agents that are due, one more than go at once.
    fn agents_to_forget(&self, tx: &dyn Tx) -> Result<Vec<String>> {
        let shortest = self.settings().keep_completed_agents.min(self.settings().keep_stale_agents);
        let range = Range::agents_ended_before(tx.now().minus(shortest));
        let mut due = Vec::new();
        for agent in tx.candidate_rows::<Agent>(&range, LOOKED_AT)? {
            if due.len() <= AGENT_BATCH && self.is_over(&agent, tx.now()) && !has_delegates(tx, &agent)? {
                due.push(agent.session_id);
            }
        }
        Ok(due)
    }

    /// Named cursors that are due, as many as go at once.
    fn cursors_to_forget(&self, tx: &dyn Tx) -> Result<Vec<Key>> {
        let floor = tx.floor()?;
        let named = tx.rows::<Cursor>(&Range::cursors_of(Cursor::OWNERLESS))?;
        let due = named.into_iter().filter(|cursor| self.is_abandoned(cursor, floor, tx.now()));
        Ok(due.map(|cursor| Key::Cursor(cursor.owner, cursor.reader)).take(BATCH).collect())
    }

    /// Whether nobody comes back to a cursor any more: it has not moved for so long that events would have gone in the
    /// meantime, and some that it had not read did go.
    fn is_abandoned(&self, cursor: &Cursor, floor: Revision, now: Timestamp) -> bool {
        cursor.revision < floor && now.since(cursor.updated_at) >= self.settings().keep_events
    }

    fn prune_cursors(
        &self,
        tx: &dyn Tx,
        due: &[Key],
        changes: &mut Changes,
        pruned: &mut Pruned,
    ) -> Result<()> {
        let floor = tx.floor()?;
        for key in due {
            let cursor = tx.row::<Cursor>(key)?;
            if cursor.is_some_and(|cursor| self.is_abandoned(&cursor, floor, tx.now())) {
                changes.remove(key.clone());
            }
        }
        pruned.more |= due.len() == BATCH;
        Ok(())
    }

    /// Whether an agent ended long enough ago.
    fn is_over(&self, agent: &Agent, now: Timestamp) -> bool {
        let keep = match agent.status {
            AgentStatus::Completed => self.settings().keep_completed_agents,
            AgentStatus::Stale => self.settings().keep_stale_agents,
            AgentStatus::Active | AgentStatus::Idle => return false,
        };
        agent.ended_at.is_some_and(|ended| now.since(ended) >= keep)
    }

    fn prune_agents(
        &self,
        tx: &dyn Tx,
        due: &[String],
        changes: &mut Changes,
        pruned: &mut Pruned,
    ) -> Result<()> {
        let mut room = BATCH;
        for (place, session) in due.iter().enumerate() {
            if place == AGENT_BATCH {
                // If none of them could go, looking again at once would find the same ones.
                pruned.more = pruned.agents > 0;
                break;
            }
            let agent = tx.row::<Agent>(&Key::Agent(session.clone()))?;
            let Some(agent) = agent.filter(|agent| self.is_over(agent, tx.now())) else { continue };
            if has_delegates(tx, &agent)? {
                continue;
            }
            match forget(tx, session, &mut room, changes)? {
                Forgotten::Everything => pruned.agents += 1,
                Forgotten::Nothing => {}
                // What was too much for this batch goes with the next one.
                Forgotten::Part => {
                    pruned.more = true;
                    break;
                }
            }
        }
        Ok(())
    }
}

/// Whether a delegate refers to an agent, which then stays.
fn has_delegates(tx: &dyn Tx, agent: &Agent) -> Result<bool> {
    let range = Range::delegates_of(&agent.session_id);
    // A look that finds nothing is not validated; reading the range is.
    Ok(tx.any(&range)? || !tx.rows::<Agent>(&range)?.is_empty())
}

/// How much of an agent went.
enum Forgotten {
    Everything,
    Part,
    Nothing,
}

/// Removes an agent and what hangs on it, as far as there is room. What it did keeps its name.
fn forget(tx: &dyn Tx, session: &str, room: &mut usize, changes: &mut Changes) -> Result<Forgotten> {
    let claimed = Range::claimed_by(session);
    let mut items = tx.candidate_rows::<WorkItem>(&claimed, *room + 1)?;
    let all_items_go = items.len() <= *room;
    if all_items_go {
        items = tx.rows(&claimed)?;
    } else {
        items.truncate(*room);
    }
    if items.iter().any(|item| item.status != Status::Completed) {
        // No verb leaves open work with an agent that has ended, and nobody is to lose work without an event.
        return Ok(Forgotten::Nothing);
    }
    for item in items {
        let key = Key::WorkItem(item.item_id);
        if let Some(item) =
            tx.row::<WorkItem>(&key)?.filter(|item| item.claimed_by.as_deref() == Some(session))
        {
            changes.put(WorkItem { claimed_by: None, ..item });
            *room -= 1;
        }
    }
    let own = Range::heartbeats_of(session);
    tx.prefetch(&[Prefetch::Keys(own.clone(), *room + 1)])?;
    let heartbeats = tx.keys(&own, *room + 1)?;
    let all_heartbeats_go = heartbeats.len() <= *room;
    let count = heartbeats.len().min(*room);
    let heartbeats = readable(heartbeats.into_iter().take(count).collect())?;
    tx.prefetch(&heartbeats.iter().cloned().map(Prefetch::Row).collect::<Vec<_>>())?;
    if !remove_heartbeats(tx, &heartbeats, changes)? || heartbeats.len() < count {
        // A heartbeat that cannot be read refers to the agent, which stays with it.
        return Ok(Forgotten::Nothing);
    }
    *room -= count;
    if !all_items_go || !all_heartbeats_go {
        return Ok(Forgotten::Part);
    }
    let edits = tx.candidate_rows::<Edit>(&Range::edits_of_session(session), *room + 1)?;
    let all_edits_go = edits.len() <= *room;
    for edit in edits.into_iter().take(*room) {
        let key = Key::Edit(edit.worktree, edit.path, edit.session_id);
        if tx.row::<Edit>(&key)?.is_some() {
            changes.remove(key);
            *room -= 1;
        }
    }
    if !all_edits_go {
        return Ok(Forgotten::Part);
    }
    for cursor in tx.rows::<Cursor>(&Range::cursors_of(session))? {
        changes.remove(Key::Cursor(cursor.owner, cursor.reader));
    }
    changes.remove(Key::Agent(session.to_owned()));
    Ok(Forgotten::Everything)
}

/// Removes heartbeats, unless they are gone already. Returns whether all could be read: one that cannot stays.
fn remove_heartbeats(tx: &dyn Tx, due: &[Key], changes: &mut Changes) -> Result<bool> {
    let mut all = true;
    let removed_before = changes.remove.len();
    for key in due {
        match tx.get(key) {
            // It may be removed with its session by this very commit.
            Ok(Some(_)) if !changes.remove[..removed_before].contains(key) => changes.remove(key.clone()),
            Ok(_) => {}
            Err(error) if error.is_unreadable_row() => all = false,
            Err(error) => return Err(error),
        }
    }
    Ok(all)
}

/// The keys that can be read. A row whose key cannot be read stays, and keeps no other from being removed.
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

/// Forgets the answers of operations that nobody will repeat any more.
fn prune_operations(tx: &dyn Tx, changes: &mut Changes, pruned: &mut Pruned) -> Result<()> {
    let old = Range::operations_before(tx.now().minus(REMEMBER_OPERATIONS));
    let batch = tx.candidate_rows::<Operation>(&old, BATCH)?;
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

/// Forgets who edited what long ago.
fn prune_edits(tx: &dyn Tx, changes: &mut Changes, pruned: &mut Pruned) -> Result<()> {
    let batch = tx.candidate_rows::<Edit>(&Range::edits_before(tx.now().minus(EDITS_KEPT)), BATCH)?;
    pruned.more |= batch.len() == BATCH;
    for old in batch {
        let noted_at = old.noted_at();
        let key = Key::Edit(old.worktree, old.path, old.session_id);
        let is_the_same = |edit: &Edit| edit.noted_at() == noted_at;
        // It may go with its session in this very commit, or have been made anew.
        if !changes.remove.contains(&key) && tx.row::<Edit>(&key)?.as_ref().is_some_and(is_the_same) {
            changes.remove(key);
        }
    }
    Ok(())
}

fn is_due(tx: &dyn Tx) -> Result<bool> {
    let mark = tx.row::<Mark>(&KEY)?;
    let mark = mark.and_then(|mark| serde_json::from_str::<PruneMark>(&mark.value).ok());
    // A due time further away than the rest was written under another clock.
    Ok(mark.is_none_or(|mark| tx.now() >= mark.due_at || mark.due_at > tx.now().plus(REST)))
}

/// Removes the event log up to and including `until`, with what only this part of it needed: the versions of entries that
/// were superseded in it, the removals, and their tombstones. This is the rule for every engine.
pub(crate) fn cut_log(tx: &dyn Tx, until: Revision, changes: &mut Changes) -> Result<()> {
    for VersionHead { revision, previous, removed } in tx.version_heads(tx.floor()?, until)? {
        changes.remove_versions.extend(previous);
        let Some((scope, key)) = removed else { continue };
        changes.remove_versions.push(revision);
        let key = Key::Tombstone(scope, key);
        let tombstone = match tx.row::<Tombstone>(&key) {
            // It stays; no key can be used that has it.
            Err(error) if error.is_unreadable_row() => None,
            tombstone => tombstone?,
        };
        if tombstone.is_some_and(|tombstone| tombstone.revision == revision) {
            changes.remove(key);
        }
    }
    changes.trim_events = Some(until);
    Ok(())
}

/// The end of the commit at `revision`, or of the one before if it is the newest: what is removed ends with a whole
/// commit, as a page does, and the newest one stays.
fn end_of_commit(tx: &dyn Tx, revision: Revision, newest: Revision) -> Result<Revision> {
    let page = tx.events(&Page::after(revision.previous(), 1))?;
    Ok(match page.last() {
        Some(last) if last.id >= newest => tx.revision_back(last.commit_id.previous(), 0)?,
        Some(last) => last.id,
        None => revision,
    })
}

/// How many bytes an event takes with the version of its entry, by a few of them.
fn average_bytes(tx: &dyn Tx, floor: Revision, newest: Revision) -> Result<u64> {
    let kept = tx.count_events(floor, newest)?;
    let middle = tx.revision_back(newest, kept - kept / 2)?;
    let end = tx.revision_back(newest, SAMPLE as u64)?;
    let (mut bytes, mut count) = (0, 0);
    for start in [floor, middle, end] {
        // A commit of thousands of entries is not read for the sake of a guess.
        for event in tx.events(&Page::after(start, SAMPLE))?.iter().take(SAMPLE) {
            bytes += approximate_bytes(event);
            if event.target_type == Some(TargetType::Entry) {
                let version = tx.version(event.id)?;
                bytes += version.map_or(0, |version| VERSION_BYTES + version.entry.value.as_str().len());
            }
            count += 1;
        }
    }
    Ok((bytes / count.max(1)).max(1) as u64)
}

fn approximate_bytes(event: &Event) -> usize {
    let text = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    60 + event.summary.len()
        + text(&event.actor_id)
        + text(&event.target_id)
        + event.metadata.as_ref().map_or(0, |metadata| metadata.as_str().len())
}
