//! Agents that ended long ago, with their cursors, heartbeats, edits, and their sessions on finished items. The local scopes of
//! a stale session end with it.

use super::heartbeats::remove_heartbeats;
use super::{BATCH, Pruned};
use crate::agent::{Agent, AgentStatus};
use crate::board::Board;
use crate::clock::Timestamp;
use crate::error::Result;
use crate::file::Edit;
use crate::scope::EndsWith;
use crate::store::{Changes, Cursor, Key, Prefetch, Range, Tx};
use crate::sweep::{Candidate, SkippedAgent};
use crate::work::{Status, WorkItem};

/// How many agents one transaction removes: each with its cursors, and with its finished items and heartbeats as far
/// as the batch allows.
const AGENT_BATCH: usize = 20;

/// How many ended agents are checked: stale ones are kept longer, and are sorted before others.
const LOOKED_AT: usize = 1000;

/// Agents that retention removes.
#[derive(Default)]
pub(super) struct AgentBatch {
    /// Their sessions, one more than one batch removes.
    pub(super) due: Vec<String>,
    /// The agents that stay because one of their rows cannot be read.
    pub(super) skipped: Vec<SkippedAgent>,
}

impl Board {
    /// The agents that stay because one of their rows cannot be read, though they ended long ago.
    pub(crate) fn agents_that_cannot_be_pruned(&self) -> Result<Vec<SkippedAgent>> {
        Ok(self.read(&[], |tx| self.agents_to_remove(tx))?.skipped)
    }

    /// The agents that are due. An agent that has to stay is not among them, so the others are still removed.
    pub(super) fn agents_to_remove(&self, tx: &dyn Tx) -> Result<AgentBatch> {
        let shortest = self.settings().keep_completed_agents.min(self.settings().keep_stale_agents);
        let range = Range::agents_ended_before(tx.now().minus(shortest));
        let mut batch = AgentBatch::default();
        for candidate in Candidate::all(tx, &range, LOOKED_AT)? {
            if batch.due.len() > AGENT_BATCH {
                break;
            }
            let agent = match &candidate.row {
                Ok(agent) => agent,
                Err(error) => {
                    batch.skipped.push(candidate.skipped(error));
                    continue;
                }
            };
            if !self.is_over(agent, tx.now()) {
                continue;
            }
            match remove(tx, agent, BATCH) {
                Ok((PruneExtent::Everything | PruneExtent::Part, _)) => batch.due.push(candidate.session_id),
                Ok((PruneExtent::Nothing, _)) => {}
                Err(error) if error.is_unreadable_row() => batch.skipped.push(candidate.skipped(&error)),
                Err(error) => return Err(error),
            }
        }
        Ok(batch)
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

    pub(super) fn prune_agents(
        &self,
        tx: &dyn Tx,
        batch: &AgentBatch,
        changes: &mut Changes,
        pruned: &mut Pruned,
    ) -> Result<()> {
        let mut budget = BATCH;
        for (place, session) in batch.due.iter().enumerate() {
            if place == AGENT_BATCH {
                // If none of them could be removed, checking again at once would find the same ones.
                pruned.more = pruned.agents > 0;
                break;
            }
            let agent = tx.row::<Agent>(&Key::Agent(session.clone()))?;
            let Some(agent) = agent.filter(|agent| self.is_over(agent, tx.now())) else { continue };
            let (forgotten, with_it) = match remove(tx, &agent, budget) {
                // It was readable a moment ago: the next search skips it.
                Err(error) if error.is_unreadable_row() => continue,
                forgotten => forgotten?,
            };
            budget = budget.saturating_sub(with_it.put.len() + with_it.remove.len());
            changes.put.extend(with_it.put);
            changes.remove.extend(with_it.remove);
            match forgotten {
                PruneExtent::Everything => pruned.agents += 1,
                PruneExtent::Nothing => {}
                // The next batch removes the rest.
                PruneExtent::Part => {
                    pruned.more = true;
                    break;
                }
            }
        }
        Ok(())
    }
}

/// How much of an agent was removed.
enum PruneExtent {
    Everything,
    Part,
    Nothing,
}

/// Removes an agent and its rows, as far as the batch allows. Its past actions keep its name.
fn remove(tx: &dyn Tx, agent: &Agent, mut budget: usize) -> Result<(PruneExtent, Changes)> {
    let session = &agent.session_id;
    let (delegates, claimed) = (Range::delegates_of(session), Range::claimed_by(session));
    let (own, edits) = (Range::heartbeats_of(session), Range::edits_of_session(session));
    let cursors = Range::cursors_of(session);
    tx.prefetch(&[
        Prefetch::Range(delegates.clone()),
        Prefetch::Candidates(claimed.clone(), budget + 1),
        Prefetch::Keys(own.clone(), budget + 1),
        Prefetch::Candidates(edits.clone(), budget + 1),
        Prefetch::Range(cursors.clone()),
        EndsWith::Session(session).prefetch(),
    ])?;
    let mut changes = Changes::new();
    // An agent stays while a delegate refers to it.
    if !tx.rows::<Agent>(&delegates)?.is_empty() {
        return Ok((PruneExtent::Nothing, changes));
    }
    let mut items = tx.candidate_rows::<WorkItem>(&claimed, budget + 1)?;
    let all_items_go = items.len() <= budget;
    if all_items_go {
        tx.prefetch(&[Prefetch::Range(claimed.clone())])?;
        items = tx.rows(&claimed)?;
    } else {
        items.truncate(budget);
        let keys = items.iter().map(|item| Prefetch::Row(Key::WorkItem(item.item_id.clone())));
        tx.prefetch(&keys.collect::<Vec<_>>())?;
    }
    if items.iter().any(|item| item.status != Status::Completed) {
        // No verb leaves open work with an agent that has ended, and no agent loses work without an event.
        return Ok((PruneExtent::Nothing, changes));
    }
    for item in items {
        let key = Key::WorkItem(item.item_id);
        if let Some(item) = tx.row::<WorkItem>(&key)?.filter(|item| item.claimed_by.as_ref() == Some(session))
        {
            changes.put(WorkItem { claimed_by: None, ..item });
            budget -= 1;
        }
    }
    let heartbeats = tx.keys(&own, budget + 1)?;
    let all_heartbeats_go = heartbeats.len() <= budget;
    // A heartbeat whose key cannot be read refers to the agent, so the agent stays.
    let heartbeats = heartbeats.into_iter().take(budget).collect::<Result<Vec<_>>>()?;
    tx.prefetch(&heartbeats.iter().cloned().map(Prefetch::Row).collect::<Vec<_>>())?;
    remove_heartbeats(tx, &heartbeats, &mut changes)?;
    budget -= heartbeats.len();
    if !all_items_go || !all_heartbeats_go {
        return Ok((PruneExtent::Part, changes));
    }
    let edits = tx.candidate_rows::<Edit>(&edits, budget + 1)?;
    let all_edits_go = edits.len() <= budget;
    let edits =
        edits.into_iter().take(budget).map(|edit| Key::Edit(edit.worktree, edit.path, edit.session_id));
    let edits: Vec<_> = edits.collect();
    tx.prefetch(&edits.iter().cloned().map(Prefetch::Row).collect::<Vec<_>>())?;
    for key in edits {
        if tx.row::<Edit>(&key)?.is_some() {
            changes.remove(key);
        }
    }
    if !all_edits_go {
        return Ok((PruneExtent::Part, changes));
    }
    for cursor in tx.rows::<Cursor>(&cursors)? {
        changes.remove(Key::Cursor(cursor.owner, cursor.reader));
    }
    // Those of a stale session: one that ended normally has none.
    EndsWith::Session(session).end(tx, &mut changes)?;
    changes.remove(Key::Agent(session.to_owned()));
    Ok((PruneExtent::Everything, changes))
}
