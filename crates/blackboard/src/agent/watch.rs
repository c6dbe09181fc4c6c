//! Watches another process for a session whose own is gone.

use super::{Agent, Agents};
use crate::clock::Timestamp;
use crate::error::Result;
use crate::event::{EventType, NewEvent, TargetType};
use crate::process::ProcessIdentity;
use crate::store::{Changes, Key, Prefetch};

impl Agents<'_> {
    /// Watches a process for a session from now on, if it runs and the process of the session is provably gone. Returns
    /// whether that is so. For a caller that acts for the session: its call proves that the session is alive, and that
    /// another process registered it than the one it runs in.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use blackboard::{Board, agent::Register, process::FakeProcesses};
    /// let processes = Arc::new(FakeProcesses::default());
    /// let board = Board::memory().with_processes(processes.clone());
    /// processes.start(10);
    /// processes.start(11);
    /// let ivy = board.agents().register(&Register { pid: Some(10), ..Register::named("Ivy") })?.agent.session_id;
    /// assert!(!board.agents().watch_instead(&ivy, 11)?);
    /// processes.end(10);
    /// assert!(board.agents().watch_instead(&ivy, 11)?);
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn watch_instead(&self, session: &str, pid: u32) -> Result<bool> {
        let Some(process) = self.board.processes().mark(pid) else { return Ok(false) };
        let key = Key::Agent(session.to_owned());
        self.board.commit("agent watch", &[Prefetch::Row(key.clone())], |tx| {
            let agent = tx.row::<Agent>(&key)?;
            // A delegate ends with the process that it shares.
            let is_orphan = |agent: &Agent| {
                agent.status.is_live() && !agent.shares_process && self.board.is_provably_gone(agent)
            };
            match agent.filter(is_orphan) {
                Some(agent) => Ok((decide(agent, pid, &process, tx.now()), true)),
                None => Ok((Changes::new(), false)),
            }
        })
    }
}

fn decide(mut agent: Agent, pid: u32, process: &ProcessIdentity, now: Timestamp) -> Changes {
    let mut changes = Changes::new();
    let summary = format!("Agent \"{}\" is now watched by PID {pid}", agent.agent_name);
    let event = NewEvent::new(EventType::AgentUpdated, TargetType::Agent, &agent.session_id, summary);
    agent.revision = changes.event(event.by(Some(&agent.session_id)).with("status", agent.status.as_str()));
    (agent.pid, agent.process) = (Some(pid), Some(process.clone()));
    (agent.last_seen_at, agent.last_beat_at) = (now, now);
    changes.put(agent);
    changes
}
