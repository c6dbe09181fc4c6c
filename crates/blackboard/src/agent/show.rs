//! `agent show`, and finding the session that a caller means.

use serde::Serialize;

use super::{Agent, AgentStatus, Agents, existing, not_found};
use crate::entry::{Entry, Lease};
use crate::error::{Code, Error, Refusal, Result};
use crate::id::session_of_hint;
use crate::process::Liveness;
use crate::store::{Key, Prefetch, Range};
use crate::work::{ListedItem, WorkItem, with_blockers};

/// The shortest prefix of a session id that may stand for it.
const MIN_PREFIX: usize = 6;

/// How a session was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResolvedBy {
    /// By its whole id.
    Id,
    /// By the beginning of its id.
    Prefix,
    /// By the hint that it registered with.
    Hint,
}

/// Everything about one agent.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ShownAgent {
    /// The session.
    #[serde(flatten)]
    pub agent: Agent,
    /// The name of its parent.
    pub parent_name: Option<String>,
    /// What is known of its process: `alive`, `dead`, or `unknown`.
    pub process: &'static str,
    /// The work items that it holds.
    pub work_items: Vec<ListedItem>,
    /// What else hangs on it: locks, file reservations, leased entries.
    pub leases: Vec<Lease>,
    /// Its delegates.
    pub delegates: Vec<Agent>,
}

impl Agents<'_> {
    /// Everything about one agent.
    ///
    /// ```
    /// # use blackboard::{Board, agent::Register};
    /// # let board = Board::memory();
    /// let ivy = board.agents().register(&Register::named("Ivy"))?.agent.session_id;
    /// assert_eq!(board.agents().show(&ivy)?.agent.agent_name, "Ivy");
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn show(&self, session: &str) -> Result<ShownAgent> {
        let prefetch = [
            Prefetch::Row(Key::Agent(session.to_owned())),
            Prefetch::Range(Range::claimed_by(session)),
            Prefetch::Range(Range::leased_by(session)),
            Prefetch::Range(Range::delegates_of(session)),
        ];
        self.board.read_list(&prefetch, |tx| {
            let agent = existing(tx, session)?;
            let parent = match &agent.parent_id {
                Some(parent) => {
                    let parent = Key::Agent(parent.clone());
                    tx.prefetch(&[Prefetch::Row(parent.clone())])?;
                    tx.row::<Agent>(&parent)?
                }
                None => None,
            };
            let mut held = tx.rows::<WorkItem>(&Range::claimed_by(session))?;
            held.retain(|item| item.is_held_by(session));
            Ok(ShownAgent {
                parent_name: parent.map(|parent| parent.agent_name),
                process: self.process_of(&agent).as_str(),
                work_items: with_blockers(tx, held)?,
                leases: tx
                    .rows::<Entry>(&Range::leased_by(session))?
                    .iter()
                    .filter(|entry| !entry.is_expired(tx.now()))
                    .map(Lease::of)
                    .collect(),
                delegates: tx.rows::<Agent>(&Range::delegates_of(session))?,
                agent,
            })
        })
    }

    /// The session with this id alone, if there is one. However much it holds, this costs the same.
    ///
    /// ```
    /// # use blackboard::{Board, agent::Register};
    /// # let board = Board::memory();
    /// let ivy = board.agents().register(&Register::named("Ivy"))?.agent;
    /// assert_eq!(board.agents().get(&ivy.session_id)?, Some(ivy));
    /// assert_eq!(board.agents().get("nobody")?, None);
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn get(&self, session: &str) -> Result<Option<Agent>> {
        let key = Key::Agent(session.to_owned());
        self.board.read(&[Prefetch::Row(key.clone())], |tx| tx.row::<Agent>(&key))
    }

    /// The id of the session that `text` names: its id, a prefix of at least six characters that fits one session
    /// only, or the hint that it registered with.
    pub fn resolve(&self, text: &str) -> Result<(String, ResolvedBy)> {
        self.find(text).map(|(agent, by)| (agent.session_id, by))
    }

    /// As [`Agents::resolve`], for a caller that wants to act for the session: refuses one that has ended.
    ///
    /// ```
    /// # use blackboard::{Board, Code, agent::Register};
    /// # let board = Board::memory();
    /// let ivy = board.agents().register(&Register::named("Ivy"))?.agent.session_id;
    /// assert_eq!(board.agents().resolve_to_act(&ivy[..8])?, ivy);
    /// board.agents().deregister(&ivy)?;
    /// assert_eq!(board.agents().resolve_to_act(&ivy).unwrap_err().code(), Code::SessionEnded);
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn resolve_to_act(&self, text: &str) -> Result<String> {
        let (agent, _) = self.find(text)?;
        match agent.status {
            AgentStatus::Completed => Err(agent.has_ended()),
            _ => Ok(agent.session_id),
        }
    }

    fn find(self, text: &str) -> Result<(Agent, ResolvedBy)> {
        crate::text::check_known_id("session", text)?;
        let hinted = session_of_hint(text);
        let prefetch =
            [Prefetch::Row(Key::Agent(text.to_owned())), Prefetch::Row(Key::Agent(hinted.clone()))];
        self.board.read(&prefetch, |tx| {
            if let Some(agent) = tx.row::<Agent>(&Key::Agent(text.to_owned()))? {
                return Ok((agent, ResolvedBy::Id));
            }
            if let Some(agent) = tx.row::<Agent>(&Key::Agent(hinted.clone()))? {
                return Ok((agent, ResolvedBy::Hint));
            }
            if text.chars().count() < MIN_PREFIX {
                crate::text::check_id("session", text)?;
                return Err(too_short(text));
            }
            let range = Range::agents_with_prefix(text);
            tx.prefetch(&[Prefetch::Candidates(range.clone(), 2)])?;
            let fitting = tx.candidate_rows::<Agent>(&range, 2)?;
            match &fitting[..] {
                [] => {
                    crate::text::check_id("session", text)?;
                    Err(not_found(text))
                }
                [agent] => Ok((agent.clone(), ResolvedBy::Prefix)),
                _ => Err(Refusal::new(
                    Code::AmbiguousSession,
                    format!("more than one session id starts with {text}"),
                )
                .hint("give more of the id: blackboard agent list --all")
                .into()),
            }
        })
    }

    /// The live sessions of one process.
    pub fn of_process(&self, pid: u32) -> Result<Vec<Agent>> {
        let range = Range::live_agents();
        let agents: Vec<Agent> = self.board.read_list(&[Prefetch::Range(range.clone())], |tx| {
            // The automatic sweep of the same call asks in the same way, so this prepares no statement of its own. Many
            // boards have entries and no agents.
            if !tx.any(&range)? {
                return Ok(Vec::new());
            }
            tx.rows(&range)
        })?;
        let is_its_own = |agent: &Agent| agent.pid == Some(pid) && self.process_of(agent) == Liveness::Alive;
        Ok(agents.into_iter().filter(is_its_own).collect())
    }
}

/// It may well be the beginning of an id, but not enough of it to go by.
fn too_short(text: &str) -> Error {
    Refusal::new(Code::AgentNotFound, format!("there is no session {text}"))
        .hint(format!("give at least {MIN_PREFIX} characters of the id: blackboard agent list --all"))
        .into()
}
