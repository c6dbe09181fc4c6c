//! The upgrade of a board, as human and JSON output.

use blackboard::store::sqlite::Upgraded;
use serde::Serialize;

use super::{Result, Screen, escape};
use crate::envelope::Answer;
use crate::outcome::Render;

/// How many dependencies that were left out are shown.
const SHOWN: usize = 20;

/// The answer of `upgrade`.
#[derive(Serialize)]
pub struct UpgradedBoard {
    /// Where the board is.
    pub database: String,
    /// Whether this call has upgraded it.
    pub upgraded: bool,
    /// Whether the user declined.
    #[serde(skip)]
    pub declined: bool,
    /// What was upgraded.
    #[serde(flatten)]
    pub result: Option<Upgraded>,
}

impl Render for UpgradedBoard {
    fn json(&self, answer: &mut Answer<'_>) -> Result {
        answer.object(self)
    }

    fn human(&self, screen: &mut Screen<'_>) -> Result {
        let database = escape(&self.database);
        let Some(upgraded) = &self.result else {
            let verb = if self.declined { "Not upgraded" } else { "Board is up to date" };
            return screen.line(format_args!("{verb}: {database}"));
        };
        screen.line(format_args!("Upgraded board: {database} ({})", escape(&facts(upgraded))))?;
        if !upgraded.kept_in_metadata.is_empty() {
            let kept = upgraded.kept_in_metadata.iter().map(|kept| format!("{} ({})", kept.what, kept.rows));
            screen
                .line(format_args!("Kept in metadata: {}", escape(&kept.collect::<Vec<_>>().join(", "))))?;
        }
        let left_out = upgraded.left_out.iter().map(|one| format!("{} by {}", one.item_id, one.blocked_by));
        let left_out: Vec<_> = left_out.collect();
        if left_out.is_empty() {
            return Ok(());
        }
        let shown = left_out.len().min(SHOWN);
        let more = if left_out.len() > shown {
            format!(", and {} more", left_out.len() - shown)
        } else {
            String::new()
        };
        let left_out = left_out[..shown].join(", ");
        screen.line(format_args!(
            "Not blocked any more, because of a dependency cycle: {}{more}",
            escape(&left_out)
        ))
    }
}

/// The note of a command that has upgraded the board on its way.
pub fn upgrade_note(database: &str, upgraded: &Upgraded) -> String {
    format!("upgraded {database} ({})", facts(upgraded))
}

fn facts(upgraded: &Upgraded) -> String {
    let rows = &upgraded.rows;
    let counted = [
        (rows.agents, "agent", "agents"),
        (rows.projects, "project", "projects"),
        (rows.work_items, "work item", "work items"),
        (rows.heartbeats, "heartbeat", "heartbeats"),
        (rows.events, "event", "events"),
    ];
    let counted =
        counted.map(|(count, one, many)| format!("{count} {}", if count == 1 { one } else { many }));
    let (version, copy) = (upgraded.from_version, upgraded.copy.display());
    format!("from version {version}: {}; copy: {copy}", counted.join(", "))
}
