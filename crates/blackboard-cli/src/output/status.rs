//! The whole board, as human and JSON output.

use blackboard::agent::ShortIds;
use blackboard::quota;
use blackboard::status::{BoardStatus, EntryCounts, SpaceUsage};
use blackboard::work::{ListedItem, list_blockers};
use serde::Serialize;

use super::quota::show_briefly;
use super::work::{holder_among, holders};
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
    /// Where its copy is, if it is sealed; empty if that is not known.
    #[serde(skip_serializing_if = "Option::is_none", rename = "moved_to")]
    pub sealed: Option<String>,
    /// From which size on a person should know.
    #[serde(skip)]
    pub warn_size_bytes: u64,
    /// What takes the space, if the board is more than that.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub room: Vec<SpaceUsage>,
    /// The token quota, if it is configured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quota: Option<quota::Status>,
    /// Why it cannot be shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quota_error: Option<String>,
    /// What is on it.
    #[serde(flatten)]
    pub status: BoardStatus,
}

/// What JSON output has: the overview, and the claimed work items that a status alone does not serialize.
#[derive(Serialize)]
struct WithClaimedWork<'a> {
    #[serde(flatten)]
    overview: &'a BoardOverview,
    /// The size for human readers, under the name that other programs read.
    database_size: String,
    claimed_work: &'a [ListedItem],
}

impl Render for BoardOverview {
    fn is_about_board(&self) -> bool {
        true
    }

    fn json(&self, answer: &mut Answer<'_>) -> Result {
        answer.object(&WithClaimedWork {
            overview: self,
            database_size: with_tenths(self.status.database_size_bytes),
            claimed_work: &self.status.claimed_work,
        })
    }

    fn human(&self, screen: &mut Screen<'_>) -> Result {
        let BoardStatus { agents, projects, work_items, active_agents, claimed_work, .. } = &self.status;
        let size = self.status.database_size_bytes;
        screen.heading("Local Blackboard Status")?;
        let created = if self.exists { "" } else { " (not created yet)" };
        screen.line(format_args!("Database: {}{created}", escape(&self.database)))?;
        // A user of a server need not have the right to know it.
        let size = if size == 0 && self.exists { "unknown".to_owned() } else { bytes(size) };
        screen.line(format_args!("Size:     {size}"))?;
        if let Some(copy) = &self.sealed {
            let copy = if copy.is_empty() { "another board" } else { copy };
            screen
                .line(format_args!("Sealed:   it was copied to {}, and accepts no changes", escape(copy)))?;
        }
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
        let missing = &self.status.missing_blockers;
        if !missing.is_empty() {
            let more = if self.status.more_missing_blockers { ", and more" } else { "" };
            let missing = list_blockers(missing, missing);
            screen.line(format_args!("           blocked by {}{more}", escape(&missing)))?;
        }
        let entries = &self.status.entries;
        if *entries != EntryCounts::default() {
            screen.line(format_args!(
                "Entries:   {}, {}, {}",
                counted(entries.shared, "entry", "entries"),
                counted(entries.locks, "lock", "locks"),
                counted(entries.files, "file reservation", "file reservations")
            ))?;
        }
        screen.line(format_args!("Events:    {} (last 24h)", self.status.events_24h))?;
        if let Some(quota) = &self.quota {
            show_briefly(quota, screen)?;
        }
        if !active_agents.is_empty() {
            screen.gap()?;
            screen.heading("Active Agents:")?;
        }
        let ids = ShortIds::of(active_agents.iter().map(|listed| listed.agent.session_id.as_str()));
        for listed in active_agents.iter().take(ROWS_SHOWN) {
            let agent = &listed.agent;
            let work = agent.current_work.as_deref().map(|work| format!(" -- {}", escape(work)));
            let facts = format!(
                " -- {} -- {} {}{}{}",
                escape(agent.project.as_deref().unwrap_or("no project")),
                time::age(screen.now().since(agent.started_at)),
                agent.status,
                if listed.is_gone() { ", process gone" } else { "" },
                work.unwrap_or_default()
            );
            let label = ids.label(&screen.name(&agent.agent_name), &agent.session_id);
            screen.fitted_line(&format!("  {}", escape(&label)), &facts, "")?;
        }
        and_more(active_agents.len(), screen)?;
        if !claimed_work.is_empty() {
            screen.gap()?;
            screen.heading("Claimed Work:")?;
        }
        let active = screen.active_agents();
        let names = holders(claimed_work, &active);
        for ListedItem { item, .. } in claimed_work.iter().take(ROWS_SHOWN) {
            let before = format!("  [{}] {} -- ", item.priority, escape(&item.item_id));
            let holder = holder_among(item, &names).unwrap_or_else(|| "--".to_owned());
            let holder = escape(&holder);
            let holder = screen.name(&holder);
            let age = time::age(screen.now().since(item.claimed_at.unwrap_or(item.created_at)));
            screen.fitted_line(&before, &escape(&item.title), &format!(" ({holder}, {age})"))?;
        }
        and_more(usize::try_from(work_items.claimed).unwrap_or(usize::MAX), screen)?;
        if self.room.is_empty() {
            return Ok(());
        }
        screen.gap()?;
        let warning = screen.styles().paint(Tone::Caution, "warning:");
        let limit = bytes(self.warn_size_bytes);
        screen.line(format_args!("{warning} the database is larger than {limit} (database.warnSizeMb)"))?;
        for part in &self.room {
            screen.line(format_args!("  {:>8}  {}", bytes(part.bytes), escape(&part.what)))?;
        }
        screen.line(format_args!("{KEEPING}"))?;
        Ok(())
    }
}

/// How many rows of a section are shown; `agent list` and `work list` have all of them.
const ROWS_SHOWN: usize = 20;

/// How many more rows a section has.
fn and_more(total: usize, screen: &mut Screen<'_>) -> Result {
    match total.checked_sub(ROWS_SHOWN).filter(|more| *more > 0) {
        Some(more) => screen.line(format_args!("  … and {more} more")),
        None => Ok(()),
    }
}

fn counted(count: u64, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// What a person can do about a large database.
const KEEPING: &str = "What is kept: sweep.pruneEventsAfterDays, sweep.pruneHeartbeatsAfterDays, database.maxLogMb \
                       (see docs/configuration.md)";

/// A size with one decimal, for example `128.0 KB`.
fn with_tenths(count: u64) -> String {
    let (unit, name) = match count {
        0..1024 => return format!("{count} B"),
        1024..1_048_576 => (1024, "KB"),
        1_048_576..1_073_741_824 => (1_048_576, "MB"),
        _ => (1_073_741_824, "GB"),
    };
    let tenths = (count * 10 + unit / 2) / unit;
    format!("{}.{} {name}", tenths / 10, tenths % 10)
}

fn bytes(count: u64) -> String {
    match count {
        0..1024 => format!("{count} bytes"),
        1024..1_048_576 => format!("{} KB", count / 1024),
        _ => format!("{} MB", count / 1_048_576),
    }
}
