//! `agent show`, and resolving the session that a caller names.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::{Agent, AgentStatus, Agents, ShortIds, existing, not_found};
use crate::board::Board;
use crate::entry::{Actor, Entry, Lease};
use crate::error::{Code, Error, Refusal, Result};
use crate::hint::Hint;
use crate::id::session_id_from_hint;
use crate::process::Liveness;
use crate::scope::Guard;
use crate::store::{Key, Prefetch, Range, Tx};
use crate::unreadable::if_readable;
use crate::work::{ListedItem, WorkItem, with_blockers};

/// The shortest accepted prefix of a session id.
const MIN_PREFIX: usize = 6;

/// How many candidates a refusal lists if more than one session matches.
const MAX_SHOWN: usize = 5;

/// How a session was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResolvedBy {
    /// By its complete id.
    Id,
    /// By a prefix of its id.
    Prefix,
    /// By the session hint that it registered with.
    Hint,
    /// By the name of its agent.
    Name,
}

/// Everything about one agent.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ShownAgent {
    /// The session.
    #[serde(flatten)]
    pub agent: Agent,
    /// The name of its parent.
    pub parent_name: Option<String>,
    /// The state of its process: `alive`, `dead`, or `unknown`.
    pub process: &'static str,
    /// The work items that it holds.
    pub work_items: Vec<ListedItem>,
    /// Its other holdings: locks, file reservations, leased entries.
    pub leases: Vec<Lease>,
    /// Its delegates.
    pub delegates: Vec<Agent>,
}

/// What a session leases and the caller may read.
fn readable_leases(board: &Board, tx: &dyn Tx, session: &str) -> Result<Vec<Lease>> {
    let mut entries = tx.rows::<Entry>(&Range::leased_by(session))?;
    entries.retain(|entry| !entry.is_expired(tx.now()));
    Ok(Guard::of_board(board, tx).readable(entries)?.iter().map(Lease::of).collect())
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
            let leases = readable_leases(self.board, tx, session)?;
            Ok(ShownAgent {
                parent_name: parent.map(|parent| parent.agent_name),
                process: self.process_of(&agent).as_str(),
                work_items: with_blockers(tx, held)?,
                leases,
                delegates: tx.rows::<Agent>(&Range::delegates_of(session))?,
                agent,
            })
        })
    }

    /// Only the session with this id, if it exists. The cost does not depend on its holdings.
    ///
    /// ```
    /// # use blackboard::{Board, agent::Register};
    /// # let board = Board::memory();
    /// let ivy = board.agents().register(&Register::named("Ivy"))?.agent;
    /// assert_eq!(board.agents().get(&ivy.session_id)?, Some(ivy));
    /// assert_eq!(board.agents().get("unknown")?, None);
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn get(&self, session: &str) -> Result<Option<Agent>> {
        let key = Key::Agent(session.to_owned());
        self.board.read(&[Prefetch::Row(key.clone())], |tx| tx.row::<Agent>(&key))
    }

    /// The names and sessions of the active and idle agents.
    ///
    /// ```
    /// # use blackboard::{Board, agent::Register};
    /// # let board = Board::memory();
    /// let ivy = board.agents().register(&Register::named("Ivy"))?.agent.session_id;
    /// assert_eq!(board.agents().active_names()?, [("Ivy".to_owned(), ivy)]);
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn active_names(&self) -> Result<Vec<(String, String)>> {
        let live = Range::live_agents();
        self.board.read(&[Prefetch::Candidates(live.clone(), usize::MAX)], |tx| {
            let agents = tx.candidate_rows::<Agent>(&live, usize::MAX)?;
            Ok(agents.into_iter().map(|agent| (agent.agent_name, agent.session_id)).collect())
        })
    }

    /// The names of agents by their session id, in one read. A session that does not exist has none, and neither has one
    /// whose row cannot be read: a list of events is complete without names.
    ///
    /// ```
    /// # use blackboard::{Board, agent::Register};
    /// # let board = Board::memory();
    /// let ivy = board.agents().register(&Register::named("Ivy"))?.agent.session_id;
    /// let names = board.agents().names_of([ivy.as_str(), "gone"])?;
    /// assert_eq!((names.len(), names[&ivy].as_str()), (1, "Ivy"));
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn names_of<'s>(
        &self,
        sessions: impl IntoIterator<Item = &'s str>,
    ) -> Result<BTreeMap<String, String>> {
        let sessions: BTreeSet<&str> = sessions.into_iter().collect();
        let keys: Vec<Key> = sessions.into_iter().map(|session| Key::Agent(session.to_owned())).collect();
        if keys.is_empty() {
            return Ok(BTreeMap::new());
        }
        let prefetch: Vec<_> = keys.iter().cloned().map(Prefetch::Row).collect();
        self.board.read(&prefetch, |tx| {
            let mut names = BTreeMap::new();
            for key in &keys {
                if let Some(agent) = if_readable(tx.peek_row::<Agent>(key))? {
                    names.insert(agent.session_id, agent.agent_name);
                }
            }
            Ok(names)
        })
    }

    /// The id of the session that `text` names. The text is a session id, a session hint, the agent name of a single
    /// live session, or an unambiguous prefix of at least six characters. If nothing of this matches, it is the agent name
    /// of stale or ended sessions, and means the one that was seen last.
    pub fn resolve(&self, text: &str) -> Result<(String, ResolvedBy)> {
        self.find(text).map(|(agent, by)| (agent.session_id, by))
    }

    /// The session of [`Agents::resolve`], for a caller that acts for it: refuses one that has ended.
    ///
    /// ```
    /// # use blackboard::{Board, Code, agent::Register};
    /// # let board = Board::memory();
    /// let ivy = board.agents().register(&Register::named("Ivy"))?.agent.session_id;
    /// assert_eq!(board.agents().resolve_to_act(&ivy[..8])?.session_id, ivy);
    /// board.agents().deregister(&ivy)?;
    /// assert_eq!(board.agents().resolve_to_act(&ivy).unwrap_err().code(), Code::SessionEnded);
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn resolve_to_act(&self, text: &str) -> Result<Agent> {
        let (agent, _) = self.find(text)?;
        match agent.status {
            AgentStatus::Completed => Err(agent.has_ended()),
            AgentStatus::Active | AgentStatus::Idle | AgentStatus::Stale => Ok(agent),
        }
    }

    /// For whom a caller reads that names `text`: for the session of [`Agents::resolve`], or for the author of this name, under
    /// which it may also write. An author is meant if the agent has no session that lasts, or several. An id of a session that has
    /// ended or does not exist is refused.
    ///
    /// ```
    /// # use blackboard::{Board, Code, agent::Register, entry::Actor};
    /// # let board = Board::memory();
    /// let ivy = board.agents().register(&Register::named("Ivy"))?.agent.session_id;
    /// assert_eq!(board.agents().reader("Ivy")?, Actor::session(&ivy));
    /// assert_eq!(board.agents().reader("analyst")?, Actor::author("analyst"));
    /// let unknown = board.agents().reader("00000000-0000-4000-8000-000000000000").unwrap_err();
    /// assert_eq!(unknown.code(), Code::AgentNotFound);
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn reader(&self, text: &str) -> Result<Actor> {
        let refused = match self.find(text) {
            Ok((agent, _)) if agent.status != AgentStatus::Completed => {
                return Ok(Actor::session(&agent.session_id));
            }
            Ok((agent, _)) if agent.agent_name != text => return Err(agent.has_ended()),
            Ok((agent, _)) => agent.has_ended(),
            Err(error) if error.code() == Code::AgentNotFound => error,
            Err(error) if error.code() == Code::AmbiguousSession => {
                if !self.active_names()?.iter().any(|(name, _)| name == text) {
                    return Err(error);
                }
                error
            }
            Err(error) => return Err(error),
        };
        // What looks like the id of a session is the name of no author.
        match crate::text::check_name(text) {
            Ok(()) => Ok(Actor::author(text)),
            Err(_) => Err(refused),
        }
    }

    fn find(self, text: &str) -> Result<(Agent, ResolvedBy)> {
        crate::text::check_known_id("session", text)?;
        let hinted = session_id_from_hint(text);
        let prefetch =
            [Prefetch::Row(Key::Agent(text.to_owned())), Prefetch::Row(Key::Agent(hinted.clone()))];
        self.board.read_list(&prefetch, |tx| {
            if let Some(agent) = tx.row::<Agent>(&Key::Agent(text.to_owned()))? {
                return Ok((agent, ResolvedBy::Id));
            }
            let hinted = tx.row::<Agent>(&Key::Agent(hinted.clone()))?;
            let has_ended = |agent: &Agent| agent.status == AgentStatus::Completed;
            // A live agent may have the hint of a session that has ended as its name.
            if let Some(agent) = hinted.as_ref().filter(|agent| !has_ended(agent)) {
                return Ok((agent.clone(), ResolvedBy::Hint));
            }
            let (named, prefixed) = (Range::live_agents(), Range::agents_with_prefix(text));
            let is_prefix = text.chars().count() >= MIN_PREFIX;
            let candidates = is_prefix.then(|| Prefetch::Candidates(prefixed.clone(), MAX_SHOWN + 1));
            let wanted: Vec<_> = [Prefetch::Range(named.clone())].into_iter().chain(candidates).collect();
            tx.prefetch(&wanted)?;
            let mut found = tx.rows::<Agent>(&named)?;
            found.retain(|agent| agent.agent_name == text);
            if let Some(agent) = hinted.filter(|_| found.is_empty()) {
                return Ok((agent, ResolvedBy::Hint));
            }
            let by = if found.is_empty() { ResolvedBy::Prefix } else { ResolvedBy::Name };
            let mut is_capped = false;
            if is_prefix {
                let prefixed = tx.candidate_rows::<Agent>(&prefixed, MAX_SHOWN + 1)?;
                is_capped = prefixed.len() > MAX_SHOWN;
                let is_new = |agent: &Agent| found.iter().all(|known| known.session_id != agent.session_id);
                let prefixed: Vec<_> = prefixed.into_iter().filter(is_new).collect();
                found.extend(prefixed);
            }
            match &found[..] {
                [] => {
                    crate::text::check_id("session", text)?;
                    // Every agent is read only where the answer would be that there is none.
                    let all = Range::agents();
                    tx.prefetch(&[Prefetch::Range(all.clone())])?;
                    let named = tx.rows::<Agent>(&all)?.into_iter().filter(|agent| agent.agent_name == text);
                    let newest = named.max_by_key(|agent| (agent.last_seen_at, agent.joined));
                    newest.map(|agent| (agent, ResolvedBy::Name)).ok_or_else(|| not_found(text))
                }
                [agent] => Ok((agent.clone(), by)),
                several => {
                    let advice = match by {
                        ResolvedBy::Name => Hint::UseSessionId,
                        ResolvedBy::Id | ResolvedBy::Prefix | ResolvedBy::Hint => {
                            Hint::from("use more characters")
                        }
                    };
                    Err(ambiguous(text, several, is_capped, advice))
                }
            }
        })
    }

    /// The live sessions of one process.
    pub fn of_process(&self, pid: u32) -> Result<Vec<Agent>> {
        self.of_first_process(&[pid])
    }

    /// The live sessions of the first of these processes that has any, in one read.
    pub fn of_first_process(&self, pids: &[u32]) -> Result<Vec<Agent>> {
        let range = Range::live_agents();
        let agents: Vec<Agent> = self.board.read_list(&[Prefetch::Range(range.clone())], |tx| {
            // The automatic sweep of the same call runs the same query, so this prepares no statement of its own.
            // Many boards have entries and no agents.
            if !tx.any(&range)? {
                return Ok(Vec::new());
            }
            tx.rows(&range)
        })?;
        let sessions_of = |pid: &u32| -> Vec<Agent> {
            let its_own = agents.iter().filter(|agent| agent.pid == Some(*pid));
            its_own.filter(|agent| self.process_of(agent) == Liveness::Alive).cloned().collect()
        };
        Ok(pids.iter().map(sessions_of).find(|sessions| !sessions.is_empty()).unwrap_or_default())
    }
}

/// The refusal of a text that more than one session matches. `is_capped` means that there may be further candidates.
fn ambiguous(text: &str, candidates: &[Agent], is_capped: bool, advice: Hint) -> Error {
    let ids = ShortIds::of(candidates.iter().map(|agent| agent.session_id.as_str()));
    let shown: Vec<_> = candidates.iter().take(MAX_SHOWN).map(|agent| described(agent, ids)).collect();
    let count = if is_capped { format!("more than {MAX_SHOWN}") } else { candidates.len().to_string() };
    let more = if candidates.len() > MAX_SHOWN { "; …" } else { "" };
    let message = format!("\"{text}\" matches {count} sessions: {}{more}", shown.join("; "));
    let ids: Vec<_> = candidates.iter().map(|agent| agent.session_id.clone()).collect();
    Refusal::new(Code::AmbiguousSession, message).hint(advice).detail("sessions", ids).into()
}

/// A candidate: `Ivy (84a674b5), active, project pai-collab`.
fn described(agent: &Agent, ids: ShortIds) -> String {
    let project = agent.project.as_ref().map(|project| format!(", project {project}")).unwrap_or_default();
    format!("{}, {}{project}", ids.label(&agent.agent_name, &agent.session_id), agent.status)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::conformance::an_agent;

    #[test]
    fn refusal_of_an_ambiguous_text_lists_the_candidates() {
        let agent = |name: &str, session: &str, project: Option<&str>| Agent {
            agent_name: name.to_owned(),
            project: project.map(str::to_owned),
            ..an_agent(session)
        };
        let two = [
            agent("Ivy", "84a674b5-9206", Some("pai")),
            Agent { status: AgentStatus::Stale, ..agent("Oak", "84a674b5-9417", None) },
        ];
        assert_eq!(
            ambiguous("84a674", &two, false, "use more characters".into()).to_string(),
            "\"84a674\" matches 2 sessions: Ivy (84a674b5-92), active, project pai; Oak (84a674b5-94), stale"
        );
        let many: Vec<_> =
            (0..=MAX_SHOWN).map(|one| agent("Ivy", &format!("{one}4a674b5-9206"), None)).collect();
        for (is_capped, expected) in
            [(true, "matches more than 5 sessions: "), (false, "matches 6 sessions: ")]
        {
            let refused = ambiguous("Ivy", &many, is_capped, Hint::UseSessionId).to_string();
            assert!(
                refused.contains(expected) && refused.ends_with("Ivy (44a674b5), active; …"),
                "{refused}"
            );
        }
    }
}
