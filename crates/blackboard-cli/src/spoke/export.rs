//! Puts a status together, from what the board, git, test reports and the last status say.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use blackboard::agent::{Agent, AgentStatus};
use blackboard::clock::Timestamp;
use blackboard::project::Activity;
use blackboard::work::WorkItem;

use super::Phase;
use super::outgoing::{Outgoing, Redaction};
use super::status::{
    AgentActivity, ClaimedItem, CurrentWork, GitStatus, ProjectName, StatusFile, TestResults, whole_seconds,
};

/// How many agents and items are listed. The counts have their number.
const MOST_LISTED: usize = 50;

/// How many progress notes are listed.
const MOST_NOTES: usize = 10;

/// Replaces the name of a branch that is left out: the protocol requires a name.
const BRANCH: &str = "redacted";

/// What a status is made of.
pub struct Sources<'a> {
    /// This moment.
    pub now: Timestamp,
    /// The name of the project.
    pub project: &'a str,
    /// The phase.
    pub phase: Phase,
    /// What git says, if there is a repository.
    pub git: Option<GitStatus>,
    /// The results of tests, if there are any.
    pub tests: Option<TestResults>,
    /// What agents do, if there is a board.
    pub activity: Option<&'a Activity>,
}

/// Puts a status together. Every text in it is filtered.
pub fn status(sources: Sources<'_>, outgoing: &Outgoing, redaction: Redaction) -> StatusFile {
    let Sources { now, project, phase, git, tests, activity } = sources;
    StatusFile {
        generated_by: Some(concat!("blackboard ", env!("CARGO_PKG_VERSION")).to_owned()),
        phase: Some(phase),
        project: Some(ProjectName { name: outgoing.name(project), phase: Some(phase) }),
        git: git.map(|git| GitStatus {
            branch: if redaction.branch { BRANCH.to_owned() } else { outgoing.name(&git.branch) },
            ..git
        }),
        // The protocol requires them. No test is run to find out.
        tests: Some(tests.unwrap_or_default()),
        agent_activity: activity.map(|activity| agent_activity(activity, outgoing, redaction)),
        recent_progress: match activity {
            Some(activity) if !redaction.progress => recent_progress(activity, outgoing),
            _ => Vec::new(),
        },
        ..StatusFile::new(now)
    }
}

fn agent_activity(activity: &Activity, outgoing: &Outgoing, redaction: Redaction) -> AgentActivity {
    let names = AgentNames::of(&activity.live_agents, outgoing, redaction);
    let with_status =
        |status| activity.live_agents.iter().filter(|agent| agent.status == status).count() as u64;
    let of_agent = |agent: &Agent| {
        let task = outgoing.text(agent.current_work.as_deref()?);
        let project = agent.project.as_deref().map(|project| outgoing.name(project));
        (!task.is_empty()).then(|| CurrentWork { agent: names.of_session(&agent.session_id), task, project })
    };
    let of_item = |item: &WorkItem| {
        let (id, title) = (outgoing.name(&item.item_id), outgoing.text(&item.title));
        let agent = item.claimed_by.as_deref().map(|session| names.of_holder(session, item, outgoing));
        let title = if title.is_empty() { id.clone() } else { title };
        ClaimedItem { item: id, title, agent, since: item.claimed_at.map(whole_seconds) }
    };
    let shown = if redaction.work { 0 } else { MOST_LISTED };
    AgentActivity {
        active_agents: with_status(AgentStatus::Active),
        idle_agents: with_status(AgentStatus::Idle),
        stale_agents: activity.stale_agents,
        last_activity: activity.last_activity.map(whole_seconds),
        claimed_items: activity.claimed.len() as u64,
        available_items: activity.available,
        blocked_items: activity.blocked,
        completed_items: activity.completed.len() as u64,
        current_work: activity.live_agents.iter().filter_map(of_agent).take(shown).collect(),
        claimed: activity.claimed.iter().map(of_item).take(shown).collect(),
    }
}

/// Progress notes and completed items, the newest first, none of them twice.
fn recent_progress(activity: &Activity, outgoing: &Outgoing) -> Vec<String> {
    let notes = activity.progress.iter().map(|note| ((note.at, note.revision), outgoing.text(&note.text)));
    let completed = activity.completed.iter().filter_map(|item| {
        let text = item.summary.as_deref().map(|summary| outgoing.text(summary));
        let text = text.filter(|text| !text.is_empty());
        Some((
            (item.completed_at?, item.revision),
            text.unwrap_or_else(|| {
                format!("Completed: {}", outgoing.text(&item.title)).trim_end().to_owned()
            }),
        ))
    });
    let mut texts: Vec<_> = notes.take(MOST_NOTES * 10).chain(completed.take(MOST_NOTES)).collect();
    texts.sort_by_key(|(moment, _)| Reverse(*moment));
    let mut known = HashSet::new();
    let mut shown: Vec<String> = texts.into_iter().map(|(_, text)| text).collect();
    shown.retain(|text| !text.is_empty() && known.insert(text.clone()));
    shown.truncate(MOST_NOTES);
    shown
}

/// Replaces the name of an agent that has none.
const AGENT: &str = "agent";

/// The names of agents, or numbers in their place.
struct AgentNames {
    names: HashMap<String, String>,
    are_hidden: bool,
}

impl AgentNames {
    fn of(agents: &[Agent], outgoing: &Outgoing, redaction: Redaction) -> AgentNames {
        let name = |(number, agent): (usize, &Agent)| {
            let hidden = || format!("{AGENT} {}", number + 1);
            let name = if redaction.agents { hidden() } else { shown(&agent.agent_name, outgoing) };
            (agent.session_id.clone(), name)
        };
        AgentNames { names: agents.iter().enumerate().map(name).collect(), are_hidden: redaction.agents }
    }

    fn of_session(&self, session: &str) -> String {
        self.names.get(session).map_or(AGENT, String::as_str).to_owned()
    }

    /// The name of a holder, who may be an agent of another project.
    fn of_holder(&self, session: &str, item: &WorkItem, outgoing: &Outgoing) -> String {
        match &item.claimed_by_name {
            Some(name) if !self.are_hidden && !self.names.contains_key(session) => shown(name, outgoing),
            _ => self.of_session(session),
        }
    }
}

/// The name of an agent without markup.
fn shown(name: &str, outgoing: &Outgoing) -> String {
    let name = outgoing.text(name);
    if name.is_empty() { AGENT.to_owned() } else { name }
}

#[cfg(test)]
mod tests;
