//! Agents, as human and JSON output.

use std::cell;
use std::time::Duration;

use blackboard::Error;
use blackboard::agent::{
    Deregistered, HeartbeatRecorded, ListedAgent, Registered, ShortIds, ShownAgent, short_id,
};
use blackboard::work::{ListedItem, list_blockers};
use serde::Serialize;

use super::entry::{counted_leases, leased};
use super::{Cell, Column, ListPage, Screen, Table, escape, render_list, render_object, time};
use crate::envelope::Answer;
use crate::outcome::Render;
use crate::output::Result;

render_object! {
    /// The answer of `agent heartbeat`.
    RecordedHeartbeat(HeartbeatRecorded) = heartbeat;
    /// The answer of `agent show`.
    AgentDetails(ShownAgent) = details;
    /// The answer of `agent deregister`.
    DeregisteredAgent(Deregistered) = deregistered;
}

render_list! {
    /// The answer of `agent list`, which hides stale and completed agents by default.
    AgentList(ListedAgent) = agents;
}

/// How to let the board watch a process that it did not find.
pub const NAME_A_PROCESS: &str = "name the process to watch: --pid PID (in a shell script: --pid $$)";

/// The answer of `agent register`.
#[derive(Serialize)]
pub struct RegisteredAgent {
    #[serde(flatten)]
    registered: Registered,
    /// Whether the end of a process ends the session; if not, only heartbeats keep it active.
    process_watched: bool,
    /// What to do if not.
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<&'static str>,
}

impl RegisteredAgent {
    /// The answer about a session that was registered.
    pub fn new(registered: Registered) -> RegisteredAgent {
        let process_watched = registered.agent.pid.is_some();
        let hint = (!process_watched).then_some(NAME_A_PROCESS);
        RegisteredAgent { registered, process_watched, hint }
    }
}

impl Render for RegisteredAgent {
    fn json(&self, answer: &mut Answer<'_>) -> Result {
        answer.object(self)
    }

    fn human(&self, screen: &mut Screen<'_>) -> Result {
        let Registered { agent, parent_name, resumed, .. } = &self.registered;
        let kind = if agent.parent_id.is_some() { "delegate" } else { "agent" };
        let verb = if *resumed { "Resumed" } else { "Registered" };
        screen.line(format_args!("{verb} {kind} session {}", escape(&agent.session_id)))?;
        let parent = agent.parent_id.as_ref().map(|parent| match parent_name {
            Some(name) => format!("{parent} ({name})"),
            None => parent.clone(),
        });
        screen.fields([
            ("Name", Some(agent.agent_name.clone())),
            ("Parent", parent),
            ("Project", agent.project.clone()),
            ("Work", agent.current_work.clone()),
            (
                "PID",
                Some(agent.pid.map_or_else(
                    || "none (alive only by heartbeat; pass --pid to watch a process)".to_owned(),
                    |pid| pid.to_string(),
                )),
            ),
            ("Started", Some(time::local(agent.started_at))),
        ])
    }
}

/// The answer of `agent register --shell`.
#[derive(Serialize)]
pub struct ExportLine {
    /// The session.
    pub session_id: String,
}

impl Render for ExportLine {
    fn json(&self, answer: &mut Answer<'_>) -> Result {
        answer.object(self)
    }

    fn human(&self, screen: &mut Screen<'_>) -> Result {
        // A session id is a UUID: nothing in it means anything to a shell.
        screen.line(format_args!("export BLACKBOARD_SESSION_ID={}", self.session_id))
    }
}

/// The answer of `agent register --shell` when it failed: `eval` goes by what it runs, not by the exit code of what
/// printed it, and a script under `set -e` must not go on without a session.
pub struct FailingLine(pub cell::Cell<Option<Error>>);

impl Render for FailingLine {
    fn json(&self, _answer: &mut Answer<'_>) -> Result {
        self.0.take().map_or(Ok(()), |error| Err(error.into()))
    }

    fn human(&self, screen: &mut Screen<'_>) -> Result {
        screen.line(format_args!("{FAILS_IN_A_SHELL}"))?;
        // What is not flushed is dropped when an answer fails.
        screen.writer().flush()?;
        self.0.take().map_or(Ok(()), |error| Err(error.into()))
    }
}

/// A line for `eval` that fails and does nothing else.
pub const FAILS_IN_A_SHELL: &str = "false";

fn heartbeat(beat: &HeartbeatRecorded, screen: &mut Screen<'_>) -> Result {
    screen.line(format_args!(
        "Heartbeat recorded for {} ({})",
        escape(short_id(&beat.session_id)),
        escape(&beat.agent_name)
    ))?;
    // An age: a heartbeat is too frequent to read the time zone.
    screen.line(format_args!("Last seen: {}", time::ago(screen.now().since(beat.last_seen_at))))?;
    if let Some(progress) = &beat.progress {
        screen.line(format_args!("Progress: {}", escape(progress)))?;
    }
    if beat.recovered {
        screen.line(format_args!("Session was stale and is {} again", beat.status))?;
        let items = beat.lost.iter().map(|item| format!("work item {item}"));
        let lost: Vec<String> = items.chain(beat.lost_leases.iter().map(leased)).collect();
        if !lost.is_empty() {
            screen.line(format_args!("Lost: {}", escape(&lost.join(", "))))?;
        }
    }
    Ok(())
}

fn agents(page: &ListPage<ListedAgent>, screen: &mut Screen<'_>) -> Result {
    let agents = &page.rows;
    if agents.is_empty() && page.hides_some {
        return screen.line(format_args!("No active agents. Use --all to include stale and completed ones."));
    }
    if agents.is_empty() {
        return screen.line(format_args!("No agents."));
    }
    let mut table = Table::new([
        Column::typed("SESSION"),
        Column::name("NAME").importance(6),
        Column::detail("PROJECT").importance(2).if_different(),
        Column::fixed("STATUS").importance(5),
        Column::fixed("LAST SEEN").importance(3),
        Column::fixed("PID").importance(1),
        Column::text("WORK").importance(4),
    ]);
    let ids = ShortIds::of(agents.iter().map(|listed| listed.agent.session_id.as_str()));
    for ListedAgent { agent, depth, process } in agents {
        let indent = match depth {
            0 => String::new(),
            depth => format!("{}└ ", "  ".repeat(depth - 1)),
        };
        table.row([
            Cell::new(ids.shorten(&agent.session_id)),
            Cell::new(format!("{indent}{}", agent.agent_name)),
            Cell::optional(agent.project.as_ref()),
            Cell::word(agent.status.as_str()),
            Cell::new(time::ago(screen.now().since(agent.last_seen_at))),
            Cell::optional(agent.pid.map(|pid| pid_of(pid, process))),
            Cell::optional(agent.current_work.as_ref()),
        ]);
    }
    screen.table(&table)?;
    page.note_more(screen)
}

/// What is known of a process that has ended.
const GONE: &str = "dead";

/// A PID, and whether its process is gone.
fn pid_of(pid: u32, process: &str) -> String {
    if process == GONE { format!("{pid} gone") } else { pid.to_string() }
}

fn details(details: &ShownAgent, screen: &mut Screen<'_>) -> Result {
    let ShownAgent { agent, parent_name, process, work_items, leases, delegates } = details;
    let seen = |moment| time::detailed(moment, screen.now());
    let (started, last_seen) = (seen(agent.started_at), seen(agent.last_seen_at));
    let ended = agent.ended_at.map(seen);
    screen.fields([
        ("Session", Some(agent.session_id.clone())),
        ("Name", Some(agent.agent_name.clone())),
        (
            "Parent",
            agent.parent_id.as_ref().map(|parent| match parent_name {
                Some(name) => format!("{name} ({parent})"),
                None => parent.clone(),
            }),
        ),
        ("Project", agent.project.clone()),
        ("Status", Some(agent.status.to_string())),
        ("Work", agent.current_work.clone()),
        ("Progress", agent.progress.clone()),
        (
            "PID",
            agent.pid.map(|pid| match *process {
                GONE => format!("{pid} (gone)"),
                other => format!("{pid} ({other})"),
            }),
        ),
        ("Started", Some(started)),
        ("Last seen", Some(last_seen)),
        ("Ended", ended),
        ("Metadata", agent.metadata.as_ref().map(|metadata| metadata.as_str().to_owned())),
    ])?;
    if !work_items.is_empty() || !leases.is_empty() {
        screen.gap()?;
        screen.heading("Holds:")?;
        for ListedItem { item, open_blockers, missing_blockers } in work_items {
            let fence = item.fence.map(|fence| format!(", fence {fence}")).unwrap_or_default();
            let blockers = match open_blockers.len() {
                0 => String::new(),
                _ => format!(" (blocked by: {})", list_blockers(open_blockers, missing_blockers)),
            };
            screen.line(format_args!(
                "  {}  {}{fence}{}",
                escape(&item.item_id),
                escape(&item.title),
                escape(&blockers)
            ))?;
        }
        for lease in leases {
            screen.line(format_args!("  {}", escape(&leased(lease))))?;
        }
    }
    if !delegates.is_empty() {
        screen.gap()?;
        screen.heading("Delegates:")?;
        for delegate in delegates {
            screen.line(format_args!(
                "  {} ({}) -- {}",
                escape(&delegate.agent_name),
                escape(&delegate.session_id),
                delegate.status
            ))?;
        }
    }
    Ok(())
}

fn deregistered(ended: &Deregistered, screen: &mut Screen<'_>) -> Result {
    let (session, name) = (escape(short_id(&ended.agent.session_id)), escape(&ended.agent.agent_name));
    if ended.already_ended {
        return screen.line(format_args!("Already ended: {name} ({session})"));
    }
    screen.line(format_args!("Deregistered {session} ({name})"))?;
    if !ended.delegates.is_empty() {
        let count = ended.delegates.len();
        let delegates = if count == 1 { "delegate" } else { "delegates" };
        screen.line(format_args!("Ended {count} {delegates} of the same process"))?;
    }
    screen.line(format_args!("Released {} claimed work item(s)", ended.released.len()))?;
    if let Some(leases) = counted_leases(ended.leases.iter()) {
        screen.line(format_args!("Released: {leases}"))?;
    }
    let duration = Duration::from_secs(ended.duration_seconds);
    screen.line(format_args!("Session duration: {}", time::length(duration)))
}
