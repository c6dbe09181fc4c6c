//! Heartbeats that are too old, or too many for their session. The search goes session by session, because they are
//! indexed so.

use super::{BATCH, HEARTBEATS_KEPT};
use crate::agent::Agent;
use crate::board::Board;
use crate::clock::Timestamp;
use crate::error::{Error, Result};
use crate::store::{Changes, Key, Prefetch, Range, Tx};
use crate::sweep::SkippedAgent;

/// Heartbeats that retention removes.
#[derive(Default)]
pub(super) struct HeartbeatBatch {
    pub(super) due: Vec<Key>,
    /// The sessions with a due heartbeat that cannot be read. It stays.
    pub(super) skipped: Vec<SkippedAgent>,
}

impl HeartbeatBatch {
    /// Whether more of them may follow.
    pub(super) fn is_full(&self) -> bool {
        self.due.len() >= BATCH
    }

    fn add(&mut self, tx: &dyn Tx, session: &str, keys: Vec<Result<Key>>) -> Result<()> {
        let mut unreadable = None;
        for key in keys {
            match key {
                Ok(key) => self.due.push(key),
                Err(error) if error.is_unreadable_row() => unreadable = Some(error),
                Err(error) => return Err(error),
            }
        }
        if let Some(error) = unreadable {
            self.skipped.push(skipped(tx, session, &error)?);
        }
        Ok(())
    }
}

/// The result of pruning old heartbeats.
pub(crate) struct OldHeartbeats {
    /// How many were removed, or would have been.
    pub(crate) count: u64,
    /// The sessions with a heartbeat that cannot be read.
    pub(crate) skipped: Vec<SkippedAgent>,
}

impl Board {
    /// Removes all heartbeats that are too old, batch by batch.
    pub(crate) fn prune_old_heartbeats(&self) -> Result<OldHeartbeats> {
        let mut count = 0;
        loop {
            let HeartbeatBatch { due, skipped } = self.read(&[], |tx| self.old_heartbeats(tx, BATCH))?;
            if due.is_empty() {
                return Ok(OldHeartbeats { count, skipped });
            }
            let prefetch: Vec<_> = due.iter().cloned().map(Prefetch::Row).collect();
            let removed = self.commit("prune heartbeats", &prefetch, |tx| {
                let mut changes = Changes::new();
                remove_heartbeats(tx, &due, &mut changes)?;
                let removed = changes.remove.len() as u64;
                Ok((changes, removed))
            })?;
            count += removed;
            if removed == 0 {
                return Ok(OldHeartbeats { count, skipped });
            }
        }
    }

    /// How many heartbeats are too old.
    pub(crate) fn count_old_heartbeats(&self) -> Result<OldHeartbeats> {
        let HeartbeatBatch { due, skipped } = self.read(&[], |tx| self.old_heartbeats(tx, usize::MAX))?;
        Ok(OldHeartbeats { count: due.len() as u64, skipped })
    }

    /// The heartbeats of all sessions that are too old, at most `limit`.
    fn old_heartbeats(&self, tx: &dyn Tx, limit: usize) -> Result<HeartbeatBatch> {
        let sessions = sessions(tx)?;
        let old = |session: &String| self.too_old(session, tx.now());
        tx.prefetch(&sessions.iter().map(|one| Prefetch::Keys(old(one), limit)).collect::<Vec<_>>())?;
        let mut batch = HeartbeatBatch::default();
        for session in &sessions {
            let room = limit - batch.due.len();
            batch.add(tx, session, tx.keys(&old(session), room)?)?;
        }
        Ok(batch)
    }

    /// The heartbeats of all sessions that are too old or too many, as many as one batch removes.
    pub(super) fn heartbeats_to_prune(&self, tx: &dyn Tx) -> Result<HeartbeatBatch> {
        let sessions = sessions(tx)?;
        let mut prefetch = Vec::with_capacity(2 * sessions.len());
        for session in &sessions {
            prefetch.push(Prefetch::Keys(self.too_old(session, tx.now()), BATCH));
            prefetch.push(Prefetch::Count(Range::heartbeats_of(session)));
        }
        tx.prefetch(&prefetch)?;
        let mut batch = HeartbeatBatch::default();
        for session in &sessions {
            let (own, room) = (Range::heartbeats_of(session), BATCH - batch.due.len());
            let mut keys = tx.keys(&self.too_old(session, tx.now()), room)?;
            let too_many = usize::try_from(tx.count(&own)?.saturating_sub(HEARTBEATS_KEPT)).unwrap_or(room);
            let too_many = too_many.min(room);
            // Both lists begin with the first heartbeats of the session: the longer one contains the shorter one.
            if too_many > keys.len() {
                tx.prefetch(&[Prefetch::Keys(own.clone(), too_many)])?;
                keys = tx.keys(&own, too_many)?;
            }
            batch.add(tx, session, keys)?;
        }
        Ok(batch)
    }

    /// Heartbeats of a session that are too old. One that is dated in the future is not among them.
    fn too_old(&self, session: &str, now: Timestamp) -> Range {
        Range::heartbeats_of(session).before(now.minus(self.settings().keep_heartbeats))
    }
}

/// Every session, including ended ones: their heartbeats are not kept longer than others.
fn sessions(tx: &dyn Tx) -> Result<Vec<String>> {
    let agents = Range::agents();
    tx.prefetch(&[Prefetch::Keys(agents.clone(), usize::MAX)])?;
    let mut sessions = Vec::new();
    for key in tx.keys(&agents, usize::MAX)? {
        match key {
            Ok(Key::Agent(session)) => sessions.push(session),
            Ok(_) => {}
            // No verb finds the heartbeats of a session without a readable id.
            Err(error) if error.is_unreadable_row() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(sessions)
}

/// Removes heartbeats, unless they were removed meanwhile. A heartbeat that cannot be read is removed by its key.
pub(super) fn remove_heartbeats(tx: &dyn Tx, due: &[Key], changes: &mut Changes) -> Result<()> {
    let removed_before = changes.remove.len();
    for key in due {
        let exists = match tx.get(key) {
            Ok(row) => row.is_some(),
            Err(error) if error.is_unreadable_row() => true,
            Err(error) => return Err(error),
        };
        // This commit may already remove it with its session.
        if exists && !changes.remove[..removed_before].contains(key) {
            changes.remove(key.clone());
        }
    }
    Ok(())
}

/// Reports a session with a heartbeat that cannot be read.
fn skipped(tx: &dyn Tx, session: &str, error: &Error) -> Result<SkippedAgent> {
    let key = Key::Agent(session.to_owned());
    tx.prefetch(&[Prefetch::Row(key.clone())])?;
    let agent_name = tx.peek_row::<Agent>(&key).ok().flatten().map(|agent| agent.agent_name);
    Ok(SkippedAgent::new(session, agent_name, error))
}
