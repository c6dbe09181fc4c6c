//! The sweep, as human and JSON output.

use std::time::Duration;

use blackboard::agent::{Agent, ShortIds};
use blackboard::entry::SkippedEntry;
use blackboard::scope::SkippedScope;
use blackboard::sweep::{SkippedAgent, StaleAgent, Swept};
use serde::Serialize;

use super::entry::counted_leases;
use super::{Result, Screen, escape, time};
use crate::envelope::Answer;
use crate::hints::GivenOptions;
use crate::outcome::Render;

/// The answer of `sweep`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SweptBoard {
    /// What happened, or would have.
    #[serde(flatten)]
    pub swept: Swept,
    /// Whether it only would have.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
    /// How long heartbeats are kept.
    #[serde(skip)]
    pub keep_heartbeats: Duration,
    /// The agents that it keeps although their process has ended. Only human output has them.
    #[serde(skip)]
    pub gone: Option<GoneAgents>,
}

/// What JSON output has: the sweep, and the agents that a dry run found under the name that other programs read.
#[derive(Serialize)]
struct WithCandidates<'a> {
    #[serde(flatten)]
    swept: &'a SweptBoard,
    #[serde(skip_serializing_if = "Option::is_none")]
    candidates: Option<&'a [StaleAgent]>,
}

/// Agents whose process has ended, and whose last heartbeat is younger than the threshold.
pub struct GoneAgents {
    /// The agents.
    pub agents: Vec<Agent>,
    /// The command that releases what they hold.
    pub command: String,
}

impl Render for SweptBoard {
    fn json(&self, answer: &mut Answer<'_>) -> Result {
        let candidates = self.dry_run.then_some(&*self.swept.stale_agents);
        answer.object(&WithCandidates { swept: self, candidates })
    }

    fn human(&self, screen: &mut Screen<'_>) -> Result {
        let Swept { stale_agents, pids_verified, heartbeats_pruned, entries_expired, deleted_scopes, .. } =
            &self.swept;
        let is_changed = *heartbeats_pruned > 0 || *entries_expired > 0 || !deleted_scopes.is_empty();
        if stale_agents.is_empty() && !is_changed {
            screen.line(format_args!("No stale agents detected."))?;
            verified(pids_verified, screen)?;
            self.gone.as_ref().map_or(Ok(()), |gone| gone.show(screen))?;
            return self.skipped(screen);
        }
        screen.line(format_args!(
            "Stale detection sweep{}:",
            if self.dry_run { " (dry run, nothing is changed)" } else { "" }
        ))?;
        let count = stale_agents.len();
        let agents = if count == 1 { "agent" } else { "agents" };
        let ids = ShortIds::of(stale_agents.iter().map(|agent| agent.session_id.as_str()));
        let who: Vec<_> = stale_agents.iter().map(|agent| described(agent, ids)).collect();
        let who = if who.is_empty() { String::new() } else { format!(" ({})", who.join("; ")) };
        let [mark, release] =
            if self.dry_run { ["Would mark stale", "Would release"] } else { ["Marked stale", "Released"] };
        screen.line(format_args!("  {mark}: {count} {agents}{}", escape(&who)))?;
        let released: usize = stale_agents.iter().map(|agent| agent.released_items.len()).sum();
        let items = if released == 1 { "item" } else { "items" };
        screen.line(format_args!("  {release}: {released} work {items} from stale agents"))?;
        if let Some(leases) = counted_leases(stale_agents.iter().flat_map(|agent| &agent.released_leases)) {
            screen.line(format_args!("  {release}: {leases}"))?;
        }
        if *entries_expired > 0 {
            let entries = if *entries_expired == 1 { "entry" } else { "entries" };
            let expire = if self.dry_run { "Would expire" } else { "Expired" };
            screen.line(format_args!("  {expire}: {entries_expired} {entries}"))?;
        }
        if !deleted_scopes.is_empty() {
            let scopes = if deleted_scopes.len() == 1 { "scope" } else { "scopes" };
            let names = deleted_scopes.join(", ");
            screen.line(format_args!("  Deleted: {} {scopes} ({})", deleted_scopes.len(), escape(&names)))?;
        }
        let prune = if self.dry_run { "Would prune" } else { "Pruned" };
        screen.line(format_args!(
            "  {prune}: {heartbeats_pruned} heartbeat records older than {}",
            time::length(self.keep_heartbeats)
        ))?;
        verified(pids_verified, screen)?;
        self.gone.as_ref().map_or(Ok(()), |gone| gone.show(screen))?;
        self.skipped(screen)
    }
}

impl SweptBoard {
    /// What could not be swept, one line each.
    fn skipped(&self, screen: &mut Screen<'_>) -> Result {
        let skipped = &self.swept.skipped_agents;
        let ids = ShortIds::of(skipped.iter().map(|agent| agent.session_id.as_str()));
        for SkippedAgent { session_id, agent_name, error, hint } in skipped {
            let agent = match agent_name {
                Some(name) => ids.label(name, session_id),
                None => format!("session {}", ids.shorten(session_id)),
            };
            let skipped = format!("{agent}: {error}");
            screen.line(format_args!("  Skipped: {}", escape(&skipped)))?;
            if let Some(hint) = hint {
                screen.line(format_args!("           {}", escape(hint)))?;
            }
        }
        for SkippedEntry { scope, key, error } in &self.swept.skipped_entries {
            let skipped = format!("entry {key} in scope {scope}: {error}");
            screen.line(format_args!("  Skipped: {}", escape(&skipped)))?;
        }
        for SkippedScope { scope, error } in &self.swept.skipped_scopes {
            let skipped = format!("scope {scope}: {error}");
            screen.line(format_args!("  Skipped: {}", escape(&skipped)))?;
        }
        Ok(())
    }
}

impl GoneAgents {
    fn show(&self, screen: &mut Screen<'_>) -> Result {
        let ids = ShortIds::of(self.agents.iter().map(|agent| agent.session_id.as_str()));
        let described: Vec<_> = self
            .agents
            .iter()
            .map(|agent| {
                let age = time::age(screen.now().since(agent.last_seen_at));
                format!("{}, no heartbeat for {age}", ids.label(&agent.agent_name, &agent.session_id))
            })
            .collect();
        let (agents, whose, they) = match self.agents.len() {
            0 => return Ok(()),
            1 => ("agent", "whose process has", "it holds"),
            _ => ("agents", "whose processes have", "they hold"),
        };
        let (count, described) = (self.agents.len(), described.join("; "));
        screen.line(format_args!("  Gone: {count} {agents} {whose} ended ({})", escape(&described)))?;
        screen.line(format_args!("        To release what {they} now: {}", escape(&self.command)))
    }
}

fn verified(sessions: &[String], screen: &mut Screen<'_>) -> Result {
    match sessions.len() {
        0 => Ok(()),
        count => {
            let ids = ShortIds::of(sessions.iter().map(String::as_str));
            let short: Vec<_> = sessions.iter().map(|session| ids.shorten(session)).collect();
            let (agents, whose) =
                if count == 1 { ("agent", "whose process is") } else { ("agents", "whose processes are") };
            screen.line(format_args!(
                "  Kept: {count} {agents} without a heartbeat {whose} running ({})",
                escape(&short.join(", "))
            ))
        }
    }
}

fn described(agent: &StaleAgent, ids: ShortIds) -> String {
    let (name, session) = (&agent.agent_name, ids.shorten(&agent.session_id));
    format!("{name}, session {session}, {}", agent.process)
}

/// The note about an automatic sweep that marked agents stale.
pub fn marked_stale(stale_agents: &[StaleAgent]) -> String {
    let ids = ShortIds::of(stale_agents.iter().map(|agent| agent.session_id.as_str()));
    let names: Vec<_> =
        stale_agents.iter().map(|agent| ids.label(&agent.agent_name, &agent.session_id)).collect();
    let items: usize = stale_agents.iter().map(|agent| agent.released_items.len()).sum();
    let items = match items {
        0 => None,
        1 => Some("1 work item".to_owned()),
        _ => Some(format!("{items} work items")),
    };
    let leases = counted_leases(stale_agents.iter().flat_map(|agent| &agent.released_leases));
    let released: Vec<_> = items.into_iter().chain(leases).collect();
    let released =
        if released.is_empty() { String::new() } else { format!(", released {}", released.join(", ")) };
    format!("marked {} stale{released}", names.join(", "))
}

/// The note about an automatic sweep that could not read some agents.
pub fn skipped(count: usize, given: &GivenOptions<'_>) -> String {
    let (agents, whose) = if count == 1 { ("agent", "its") } else { ("agents", "their") };
    let sweep = given.command("sweep");
    format!("{count} stale {agents} cannot be swept: {whose} rows cannot be read; see: {sweep}")
}
