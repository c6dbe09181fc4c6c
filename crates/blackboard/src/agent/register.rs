//! `agent register`: registers a session, or resumes it.

use std::collections::BTreeSet;

use serde::Serialize;

use super::{Agent, AgentStatus, Agents, existing};
use crate::board::Board;
use crate::clock::Timestamp;
use crate::error::{Code, Error, Refusal, Result};
use crate::event::{EventType, NewEvent, TargetType};
use crate::hint::Hint;
use crate::id::session_id_from_hint;
use crate::metadata::Metadata;
use crate::process::{Liveness, ProcessIdentity};
use crate::revision::{Pending, Revision};
use crate::store::{Changes, Key, Prefetch, Range, Tx};
use crate::sweep::ClockReading;
use crate::text::{Cleaner, Kind, TextChanges};
use crate::unreadable::if_readable;

/// The fewest characters of a session id in a generated name.
const NAME_SUFFIX: usize = 4;

/// A registration.
#[derive(Clone, Debug, Default)]
pub struct Register {
    /// The name of the agent, unchanged. Without it the name is generated: see `name_base`.
    pub name: Option<String>,
    /// The beginning of a generated name: `claude` gives `claude-84a6`, with the first characters of the session id. A
    /// delegate without it is called `<parent> (delegate)`. A generated name is unique among active and idle agents, and a
    /// session that is resumed keeps its name.
    pub name_base: Option<String>,
    /// The name that the user configured for every session: the name of this one, unless another live agent has it. That is
    /// then the beginning of a generated name, for example `Ivy-84a6`. A session that is resumed keeps such a name.
    pub configured_name: Option<String>,
    /// Its project. A delegate inherits it.
    pub project: Option<String>,
    /// Its current work.
    pub work: Option<String>,
    /// Its parent session.
    pub parent: Option<String>,
    /// A text that stays the same when the session is resumed. The same session hint means the same session.
    pub session_hint: Option<String>,
    /// The long-lived process that it runs in.
    pub pid: Option<u32>,
    /// Whether that process hosts other sessions too.
    pub shares_process: bool,
    /// Metadata to store with the session.
    pub metadata: Option<Metadata>,
}

impl Register {
    /// A session with this name only.
    pub fn named(name: &str) -> Register {
        Register { name: Some(name.to_owned()), ..Register::default() }
    }
}

/// A session that has registered.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Registered {
    /// The session.
    #[serde(flatten)]
    pub agent: Agent,
    /// The name of its parent.
    pub parent_name: Option<String>,
    /// Whether the session existed before.
    pub resumed: bool,
    /// The changes to its text.
    #[serde(flatten)]
    pub text: TextChanges,
}

impl Pending for Registered {
    fn resolve(&mut self, first: Revision) {
        self.agent.resolve(first);
    }
}

impl Agents<'_> {
    /// Registers a session.
    ///
    /// ```
    /// # use blackboard::{Board, agent::Register};
    /// let board = Board::memory();
    /// let first = board.agents().register(&Register {
    ///     session_hint: Some("terminal-1".to_owned()),
    ///     ..Register::named("Ivy")
    /// })?;
    /// assert!(!first.resumed);
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn register(&self, request: &Register) -> Result<Registered> {
        let registration = self.registration(request)?;
        let registered = self.board.commit("agent register", &registration.prefetch(self.board), |tx| {
            registration.changes(self.board, tx)
        });
        // The session may be active now: the caller needs its id to use or to end it.
        registered.map_err(|error| match error.code() {
            Code::OutcomeUnknown => error.followed_by(&format!("; the session is {}", registration.session)),
            _ => error,
        })
    }

    /// A registration that has not been committed, for a verb that registers a session in its own commit.
    pub(crate) fn registration(self, request: &Register) -> Result<Registration> {
        let (request, text) = self.cleaned(request)?;
        let session = match &request.session_hint {
            Some(hint) => session_id_from_hint(hint),
            None => self.board.ids().session(),
        };
        let process = request.pid.and_then(|pid| self.board.processes().mark(pid));
        // A process with an identity runs, so this check costs nothing for it.
        if let (Some(pid), None) = (request.pid, &process)
            && self.board.processes().liveness(pid, None) == Liveness::Dead
        {
            return Err(no_process(pid));
        }
        Ok(Registration { request, text, session, process })
    }

    fn cleaned(self, request: &Register) -> Result<(Register, TextChanges)> {
        let rules = &self.board.settings().text;
        let mut texts = Cleaner::new(rules);
        rules.check_json(request.metadata.iter().map(Metadata::as_str))?;
        let mut cleaned = request.clone();
        cleaned.name = request.name.as_ref().map(|name| texts.agent_name(name)).transpose()?;
        cleaned.name_base = request.name_base.as_ref().map(|base| texts.agent_name(base)).transpose()?;
        let configured = request.configured_name.as_ref();
        cleaned.configured_name = configured.map(|name| texts.agent_name(name)).transpose()?;
        let project = texts.maybe("project", Kind::Field, request.project.as_ref())?;
        cleaned.project = project.filter(|project| !project.is_empty());
        let work = texts.maybe("work", Kind::Field, request.work.as_ref())?;
        cleaned.work = work.filter(|work| !work.is_empty());
        if let Some(hint) = &request.session_hint {
            crate::text::check_id("session hint", hint)?;
        }
        let named = cleaned.name.as_ref().or(cleaned.configured_name.as_ref());
        match (named.or(cleaned.name_base.as_ref()), &cleaned.parent) {
            (Some(name), _) if name.is_empty() => Err(Error::invalid("the name of an agent cannot be empty")),
            (None, None) => {
                Err(Refusal::new(Code::InvalidValue, "an agent needs a name").hint(Hint::PassName).into())
            }
            _ => Ok((cleaned, texts.changes())),
        }
    }
}

/// A session that is about to register.
pub(crate) struct Registration {
    request: Register,
    text: TextChanges,
    session: String,
    process: Option<ProcessIdentity>,
}

impl Registration {
    /// The session that it registers.
    pub(crate) fn session(&self) -> &str {
        &self.session
    }

    /// The sessions that registering proves to be alive: itself, and its parent, without which it would be refused.
    pub(crate) fn callers(&self) -> Vec<&str> {
        [Some(&*self.session), self.request.parent.as_deref()].into_iter().flatten().collect()
    }

    /// What the registration will read.
    pub(crate) fn prefetch(&self, board: &Board) -> Vec<Prefetch<'static>> {
        let mut prefetch = vec![Prefetch::Row(Key::Agent(self.session.clone()))];
        prefetch.extend(ClockReading::prefetch(board));
        prefetch.extend(self.request.parent.iter().map(|parent| Prefetch::Row(Key::Agent(parent.clone()))));
        if self.request.name.is_none() {
            prefetch.push(Prefetch::Range(similar_names(&self.request, &self.session)));
            // Two sessions that start at once would otherwise both get the configured name.
            prefetch.push(match &self.request.configured_name {
                Some(_) => Prefetch::Range(Range::live_agents()),
                None => Prefetch::Candidates(Range::live_agents(), usize::MAX),
            });
        }
        prefetch
    }

    /// What the registration changes.
    pub(crate) fn changes(&self, board: &Board, tx: &dyn Tx) -> Result<(Changes, Registered)> {
        let Registration { request, text, session, process } = self;
        let known = tx.row::<Agent>(&Key::Agent(session.clone()))?;
        let parent = request.parent.as_deref().map(|parent| existing(tx, parent)).transpose()?;
        if let (Some(_), Some(parent)) = (&known, &parent) {
            refuse_circle(tx, session, parent)?;
        }
        let name = match &request.name {
            Some(name) => name.clone(),
            None => generated_name(tx, request, session, known.as_ref(), parent.as_ref())?,
        };
        let (mut changes, mut registered) =
            decide(request, name, session, process.as_ref(), known, parent.as_ref(), tx.now())?;
        registered.text.clone_from(text);
        ClockReading::note(board, tx, &mut changes)?;
        Ok((changes, registered))
    }
}

/// The sessions whose generated names may be the same as the one of this session: all others differ in the characters of
/// their ids, or in their parents.
fn similar_names(request: &Register, session: &str) -> Range {
    if let (None, None, Some(parent)) = (&request.configured_name, &request.name_base, &request.parent) {
        return Range::delegates_of(parent);
    }
    let end = session.char_indices().nth(NAME_SUFFIX).map_or(session.len(), |(end, _)| end);
    Range::agents_with_prefix(&session[..end])
}

/// The name of a session that was given none: its name of before, or the first one that no other agent has.
fn generated_name(
    tx: &dyn Tx,
    request: &Register,
    session: &str,
    known: Option<&Agent>,
    parent: Option<&Agent>,
) -> Result<String> {
    let configured = request.configured_name.as_deref();
    let id: Vec<char> = session.chars().filter(|character| character.is_alphanumeric()).collect();
    let with_id =
        |base: &str, length: usize| format!("{base}-{}", id.iter().take(length).collect::<String>());
    // A name of before that is not made from the configured one is given up for it.
    let known = known.filter(|agent| {
        configured.is_none_or(|configured| {
            let is_name = |length| agent.agent_name == with_id(configured, length);
            agent.agent_name == configured || (NAME_SUFFIX..=id.len()).any(is_name)
        })
    });
    if let Some(agent) = known.filter(|agent| agent.status.is_live()) {
        return Ok(agent.agent_name.clone());
    }
    let (live, similar) = (Range::live_agents(), similar_names(request, session));
    // Names that are given can be the same at any time, so that these are read without validation.
    let found = match configured {
        Some(_) => tx.rows::<Agent>(&live),
        None => tx.candidate_rows::<Agent>(&live, usize::MAX),
    };
    let mut others = or_readable(tx, &live, found)?;
    others.extend(or_readable(tx, &similar, tx.rows::<Agent>(&similar))?);
    others.retain(|other| other.status.is_live() && other.session_id != session);
    let taken: BTreeSet<_> = others.into_iter().map(|other| other.agent_name).collect();
    let is_free = |name: &String| !taken.contains(name);
    let before = known.map(|agent| agent.agent_name.clone());
    if let Some(name) = before.filter(is_free) {
        return Ok(name);
    }
    if let Some(name) = configured.map(str::to_owned).filter(is_free) {
        return Ok(name);
    }
    let name = match (configured.or(request.name_base.as_deref()), parent) {
        (None, Some(parent)) => {
            let numbered = |number| match number {
                1 => format!("{} (delegate)", parent.agent_name),
                _ => format!("{} (delegate {number})", parent.agent_name),
            };
            // One of so many numbers is free.
            (1..=taken.len() + 1).map(numbered).find(is_free)
        }
        (base, _) => {
            let with_id = |length| with_id(base.unwrap_or_default(), length);
            (NAME_SUFFIX..id.len()).map(with_id).find(is_free).or_else(|| Some(with_id(id.len())))
        }
    };
    Ok(name.unwrap_or_default())
}

/// The agents of a range, or those that can be read: one that cannot keeps no session from registering, and only its own
/// name counts as not taken. The failed read is validated, and so are these: two sessions that start at once would otherwise
/// both get the same name.
fn or_readable(tx: &dyn Tx, range: &Range, agents: Result<Vec<Agent>>) -> Result<Vec<Agent>> {
    match agents {
        Err(error) if error.is_unreadable_row() => {}
        agents => return agents,
    }
    tx.prefetch(&[Prefetch::Keys(range.clone(), usize::MAX)])?;
    let mut keys = Vec::new();
    for key in tx.keys(range, usize::MAX)? {
        keys.extend(if_readable(key.map(Some))?);
    }
    tx.prefetch(&keys.iter().cloned().map(Prefetch::Row).collect::<Vec<_>>())?;
    let mut readable = Vec::new();
    for key in keys {
        readable.extend(if_readable(tx.row::<Agent>(&key))?);
    }
    Ok(readable)
}

fn no_process(pid: u32) -> Error {
    Refusal::new(Code::InvalidValue, format!("process {pid} not found"))
        .hint("pass the PID of a process that runs as long as the session, or omit it and send heartbeats")
        .detail("pid", pid)
        .into()
}

/// Refuses a parent that would make a known session its own ancestor: ending it would never finish.
fn refuse_circle(tx: &dyn Tx, session: &str, parent: &Agent) -> Result<()> {
    let mut seen = BTreeSet::new();
    let mut ancestor = Some(parent.session_id.clone());
    while let Some(id) = ancestor {
        if id == session {
            return Err(Error::invalid("a session cannot be the delegate of itself or of its own delegates"));
        }
        let key = Key::Agent(id.clone());
        tx.prefetch(&[Prefetch::Row(key.clone())])?;
        ancestor = match tx.row::<Agent>(&key)? {
            Some(agent) if seen.insert(id) => agent.parent_id,
            _ => None,
        };
    }
    Ok(())
}

fn decide(
    request: &Register,
    name: String,
    session: &str,
    process: Option<&ProcessIdentity>,
    known: Option<Agent>,
    parent: Option<&Agent>,
    now: Timestamp,
) -> Result<(Changes, Registered)> {
    if let Some(parent) = parent {
        parent.must_be_live()?;
    }
    let before = known.clone();
    let mut agent = known.unwrap_or_else(|| newcomer(session, now));
    agent.agent_name = name;
    if let Some(parent) = parent {
        agent.parent_id = Some(parent.session_id.clone());
        agent.project = agent.project.or_else(|| parent.project.clone());
    }
    agent.project = request.project.clone().or(agent.project);
    agent.current_work = request.work.clone().or(agent.current_work);
    agent.own_work = request.work.clone().or(agent.own_work);
    agent.metadata = request.metadata.clone().or(agent.metadata);
    if request.pid.is_some() {
        agent.pid = request.pid;
        agent.process = process.cloned();
        let with_parent =
            parent.is_some_and(|parent| parent.pid == request.pid && parent.process.as_ref() == process);
        agent.shares_process = request.shares_process || with_parent;
    } else if request.shares_process {
        agent.shares_process = true;
    }
    agent.status = AgentStatus::Active;
    agent.last_seen_at = now;
    agent.last_beat_at = now;
    agent.ended_at = None;

    let mut changes = Changes::new();
    if let Some(event) = announcement(before.as_ref(), &agent) {
        let starts_again = event.event_type == EventType::AgentRegistered;
        agent.revision = changes.event(event);
        if starts_again {
            agent.started_at = now;
            agent.joined = agent.revision;
        }
    }
    changes.put(agent.clone());
    let registered = Registered {
        agent,
        parent_name: parent.map(|parent| parent.agent_name.clone()),
        resumed: before.is_some(),
        text: TextChanges::default(),
    };
    Ok((changes, registered))
}

/// The event for other agents: registered, recovered, or updated.
fn announcement(before: Option<&Agent>, agent: &Agent) -> Option<NewEvent> {
    let (event_type, summary) = match before.map(|before| before.status) {
        None | Some(AgentStatus::Completed) => (
            EventType::AgentRegistered,
            format!(
                "Agent \"{}\" registered on project \"{}\"",
                agent.agent_name,
                agent.project.as_deref().unwrap_or("none")
            ),
        ),
        Some(AgentStatus::Stale) => {
            (EventType::AgentRecovered, format!("Agent \"{}\" recovered", agent.agent_name))
        }
        Some(AgentStatus::Active | AgentStatus::Idle) => {
            // A changed time of life is no event. Every other change is.
            let (last_seen_at, last_beat_at) = (agent.last_seen_at, agent.last_beat_at);
            let same =
                before.is_some_and(|before| Agent { last_seen_at, last_beat_at, ..before.clone() } == *agent);
            if same {
                return None;
            }
            (EventType::AgentUpdated, format!("Agent \"{}\" registered again", agent.agent_name))
        }
    };
    let event = NewEvent::new(event_type, TargetType::Agent, &agent.session_id, summary);
    Some(event.by(Some(&agent.session_id)))
}

/// A session of which only the id is known.
pub(crate) fn newcomer(session: &str, now: Timestamp) -> Agent {
    Agent {
        session_id: session.to_owned(),
        agent_name: String::new(),
        pid: None,
        parent_id: None,
        project: None,
        current_work: None,
        own_work: None,
        status: AgentStatus::Active,
        started_at: now,
        last_seen_at: now,
        last_beat_at: now,
        ended_at: None,
        progress: None,
        metadata: None,
        revision: Revision::ZERO,
        joined: Revision::ZERO,
        process: None,
        shares_process: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::conformance::an_agent;

    #[test]
    fn registration_event_reports_what_changed() {
        let change_event = |before: Option<AgentStatus>, change: fn(&mut Agent)| {
            let before = before.map(|status| Agent { status, ..an_agent("a") });
            let mut after = an_agent("a");
            change(&mut after);
            announcement(before.as_ref(), &after).map(|event| event.event_type)
        };
        let nothing = |_: &mut Agent| {};
        assert_eq!(change_event(None, nothing), Some(EventType::AgentRegistered));
        assert_eq!(change_event(Some(AgentStatus::Completed), nothing), Some(EventType::AgentRegistered));
        assert_eq!(change_event(Some(AgentStatus::Stale), nothing), Some(EventType::AgentRecovered));
        assert_eq!(change_event(Some(AgentStatus::Idle), nothing), Some(EventType::AgentUpdated));
        assert_eq!(change_event(Some(AgentStatus::Active), nothing), None);
        let changes: [fn(&mut Agent); 5] = [
            |agent| agent.agent_name.push('!'),
            |agent| agent.project = Some("p".to_owned()),
            |agent| agent.current_work = Some("w".to_owned()),
            |agent| agent.pid = Some(1),
            |agent| agent.parent_id = Some("b".to_owned()),
        ];
        for change in changes {
            assert_eq!(change_event(Some(AgentStatus::Active), change), Some(EventType::AgentUpdated));
        }
        let life = |agent: &mut Agent| {
            agent.last_seen_at = agent.last_seen_at.plus(std::time::Duration::from_secs(9));
            agent.last_beat_at = agent.last_seen_at;
        };
        assert_eq!(change_event(Some(AgentStatus::Active), life), None);
    }
}
