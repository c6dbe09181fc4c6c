//! The whole board, for people and programs.

use blackboard::status::BoardStatus;
use serde::Serialize;

use super::{Result, Screen, Tone, escape, time};
use crate::envelope::Answer;
use crate::outcome::Render;

/// The answer of `status`.
#[derive(Serialize)]
pub struct BoardOverview {
    /// Where the board is.
    pub database: String,
    /// Whether it has been created.
    #[serde(skip)]
    pub exists: bool,
    /// From which size on a person should know.
    #[serde(skip)]
    pub warn_size_bytes: u64,
    /// What is on it.
    #[serde(flatten)]
    pub status: BoardStatus,
}

impl Render for BoardOverview {
    fn json(&self, answer: &mut Answer<'_>) -> Result {
        answer.object(self)
    }

    fn human(&self, screen: &mut Screen<'_>) -> Result {
        let BoardStatus { agents, projects, work_items, active_agents, .. } = &self.status;
        let size = self.status.database_size_bytes;
        screen.heading("Local Blackboard Status")?;
        let created = if self.exists { "" } else { " (not created yet)" };
        screen.line(format_args!("Database: {}{created}", escape(&self.database)))?;
        screen.line(format_args!("Size:     {}", bytes(size)))?;
        screen.gap()?;
        screen.line(format_args!(
            "Agents:    {} active, {} idle, {} stale, {} completed (today)",
            agents.active, agents.idle, agents.stale, agents.completed_today
        ))?;
        screen.line(format_args!("Projects:  {} registered", projects.registered))?;
        screen.line(format_args!(
            "Work:      {} claimed, {} available, {} blocked, {} completed (today)",
            work_items.claimed, work_items.available, work_items.blocked, work_items.completed_today
        ))?;
        screen.line(format_args!("Events:    {} (last 24h)", self.status.events_24h))?;
        if !active_agents.is_empty() {
            screen.gap()?;
            screen.heading("Active Agents:")?;
        }
        for agent in active_agents {
            screen.line(format_args!(
                "  {} ({}) -- {} -- {} {}",
                escape(&agent.agent_name),
                agent.session_id,
                escape(agent.project.as_deref().unwrap_or("no project")),
                time::age(screen.now().since(agent.started_at)),
                agent.status
            ))?;
        }
        if size > self.warn_size_bytes {
            screen.gap()?;
            let styles = screen.styles();
            screen.line(format_args!(
                "{} the database is larger than {}: {} events are kept (sweep.pruneEventsAfterDays, database.maxLogMb)",
                styles.paint(Tone::Caution, "warning:"),
                bytes(self.warn_size_bytes),
                self.status.events_kept
            ))?;
        }
        Ok(())
    }
}

fn bytes(count: u64) -> String {
    match count {
        0..1024 => format!("{count} bytes"),
        1024..1_048_576 => format!("{} KB", count / 1024),
        _ => format!("{} MB", count / 1_048_576),
    }
}
