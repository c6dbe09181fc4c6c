//! The scenes of the demo and their narration.

use std::time::{Duration, Instant};

use blackboard::duration::human;
use blackboard::event::{Event, EventType};
use blackboard::follow::Follow;
use blackboard::sweep::Sweep;
use blackboard::work::{Complete, Status, WorkFilter};
use blackboard::{Code, Error, Fault, Refusal, Result, Revision};
use serde::Serialize;

use super::plan::{AGENTS, TASKS, VICTIM, VICTIM_ITEM};
use super::stage::Stage;
use crate::child::Signals;
use crate::hints;
use crate::output;

/// How often the agents are checked while nothing happens.
const TICK: Duration = Duration::from_millis(100);

/// For how many of these intervals a signal may still arrive after the agents have ended.
const TICKS_FOR_SIGNAL: usize = 10;

/// How many events are shown at once.
const BATCH: usize = 1000;

/// A line of the narration.
pub enum Narration<'a> {
    /// An explanation.
    Chapter(&'a str),
    /// An event of the board.
    Event(&'a Event),
    /// The equivalent command.
    Command(&'a str),
}

/// The result of a demo.
#[derive(Clone, Debug, Serialize)]
pub struct Ended {
    /// How many agents worked.
    pub agents: usize,
    /// How many completions the event log has.
    pub completed: usize,
    /// How many work items there were.
    pub items: usize,
    /// How many events the board has.
    pub events: u64,
    /// The item that another agent took over after its agent was killed.
    pub rescued: Option<String>,
    /// Whether it was interrupted.
    pub interrupted: bool,
}

/// The current scene.
enum Scene {
    /// The agent that is going to be killed claims its item.
    Start,
    /// All agents work.
    Work,
    /// One was killed and what it held is released; another agent has to claim this item.
    Rescue { item: String, fence: Option<Revision>, session: String },
    /// The others complete everything.
    Rest,
}

impl Scene {
    /// What this scene waits for.
    fn awaited(&self) -> String {
        match self {
            Scene::Start => format!("{VICTIM} to claim {VICTIM_ITEM}"),
            Scene::Work => format!("{VICTIM} to report progress"),
            Scene::Rescue { item, .. } => format!("another agent to claim {item}"),
            Scene::Rest => "the agents to complete all work items and to end".to_owned(),
        }
    }
}

/// The refusal if nothing happened for too long.
fn timed_out(scene: &Scene, limit: Duration) -> Error {
    let message =
        format!("nothing happened for {} while the demo waited for {}", human(limit), scene.awaited());
    Refusal::new(Code::TimedOut, message)
        .hint(hints::command("its agents were ended and its board was removed; run it again: ", "demo"))
        .into()
}

/// The fault if the agents ended before the story did.
fn incomplete(scene: &Scene, completed: usize) -> Error {
    let items = TASKS.len();
    let message = format!(
        "the agents of the demo ended after {completed} of {items} work items, while it waited for {}",
        scene.awaited()
    );
    Fault::new(Code::Internal, message)
        .hint("its board was removed; if no other program ended the agents, report a bug")
        .into()
}

/// Whether a signal asks this process to end. Waits a moment for it, because Ctrl-C may reach the agents first.
fn is_interrupted(signals: &Signals) -> bool {
    for _ in 0..TICKS_FOR_SIGNAL {
        if signals.asked_to_end().is_some() {
            return true;
        }
        std::thread::sleep(TICK);
    }
    signals.asked_to_end().is_some()
}

/// Plays the demo to its end, or until a signal ends it. Fails if nothing happens on the board for `limit`, or if the agents
/// end too early.
pub fn tell(
    stage: &mut Stage,
    signals: &Signals,
    limit: Duration,
    mut say: impl FnMut(Narration<'_>) -> output::Result,
) -> output::Result<Ended> {
    let mut follower = stage.board.follow(&Follow::default())?;
    say(Narration::Chapter(&format!(
        "{} agents start, each in its own process. Each claims an available work item; no two get the same one.",
        AGENTS.len()
    )))?;
    stage.start(VICTIM)?;
    let mut scene = Scene::Start;
    let (mut rescued, mut completed) = (None, 0);
    let mut last_event = Instant::now();
    loop {
        if signals.asked_to_end().is_some() {
            break;
        }
        let running = stage.count_running()?;
        let batch = follower.next_batch(BATCH, TICK)?;
        let events = batch.map(|batch| batch.events).unwrap_or_default();
        if signals.asked_to_end().is_some() || (running == 0 && events.is_empty()) {
            break;
        }
        if !events.is_empty() {
            last_event = Instant::now();
        } else if last_event.elapsed() >= limit {
            return Err(timed_out(&scene, limit).into());
        }
        for event in &events {
            completed += usize::from(event.event_type == EventType::WorkCompleted);
            if is_worth_telling(event) {
                say(Narration::Event(event))?;
            }
            scene = match scene {
                Scene::Start
                    if event.event_type == EventType::WorkClaimed
                        && event.target_id.as_deref() == Some(VICTIM_ITEM) =>
                {
                    for name in AGENTS.iter().filter(|name| **name != VICTIM) {
                        stage.start(name)?;
                    }
                    Scene::Work
                }
                Scene::Work if is_progress_of_victim(stage, event)? => kill(stage, event, &mut say)?,
                Scene::Rescue { item, fence, session }
                    if event.event_type == EventType::WorkClaimed
                        && event.target_id.as_deref() == Some(&item) =>
                {
                    too_late(stage, &item, fence, &session, &mut say)?;
                    rescued = Some(item);
                    Scene::Rest
                }
                scene => scene,
            };
        }
    }
    let is_complete = completed == TASKS.len() && rescued.is_some();
    if !is_complete && !is_interrupted(signals) {
        return Err(incomplete(&scene, completed).into());
    }
    Ok(Ended {
        agents: AGENTS.len(),
        completed,
        items: TASKS.len(),
        events: stage.board.status()?.events_kept,
        rescued,
        interrupted: signals.asked_to_end().is_some(),
    })
}

/// Leaves out progress notes and file reservations, which are too many to read.
fn is_worth_telling(event: &Event) -> bool {
    let lease = event.entry.as_ref().is_some_and(|change| change.scope == blackboard::entry::FILES);
    let quiet = [EventType::HeartbeatReceived, EventType::AgentUpdated, EventType::WorkBlocked];
    !lease && !quiet.contains(&event.event_type)
}

/// Whether the agent that is going to be killed is in the middle of its work: it holds an item and has reported progress.
fn is_progress_of_victim(stage: &Stage, event: &Event) -> Result<bool> {
    if event.event_type != EventType::HeartbeatReceived {
        return Ok(false);
    }
    let Some(session) = &event.actor_id else { return Ok(false) };
    Ok(stage.board.agents().get(session)?.is_some_and(|agent| agent.agent_name == VICTIM))
}

/// Kills the agent, and sweeps so that its holdings are released.
fn kill(
    stage: &mut Stage,
    event: &Event,
    say: &mut impl FnMut(Narration<'_>) -> output::Result,
) -> output::Result<Scene> {
    let session = event.actor_id.clone().unwrap_or_default();
    let held = WorkFilter { statuses: vec![Status::Claimed], ..WorkFilter::default() };
    let held = stage.board.work().list(&held)?;
    let held = held.into_iter().map(|listed| listed.item).find(|item| item.is_held_by(&session));
    let Some(item) = held else { return Ok(Scene::Rest) };
    say(Narration::Chapter(&format!(
        "{VICTIM} is killed in the middle of its work, and cannot release anything."
    )))?;
    if let Some(pid) = stage.pid_of(VICTIM) {
        say(Narration::Command(&format!("kill -9 {pid}")))?;
    }
    stage.kill(VICTIM);
    say(Narration::Chapter(
        "A sweep finds that its process is gone, and releases what it held. Commands sweep \
         automatically after 5 minutes; this one sweeps now.",
    ))?;
    say(Narration::Command("blackboard sweep --threshold 0"))?;
    stage.board.sweep(&Sweep { threshold: Some(Duration::ZERO), ..Sweep::default() })?;
    Ok(Scene::Rescue { fence: item.fence, item: item.item_id, session })
}

/// Completes the item with the old fence token, as the killed agent would if it came back. This is refused.
fn too_late(
    stage: &Stage,
    item: &str,
    fence: Option<Revision>,
    session: &str,
    say: &mut impl FnMut(Narration<'_>) -> output::Result,
) -> output::Result {
    let late = stage.board.work().complete(&Complete { fence, ..Complete::of(item, session) });
    if let Err(error) = late {
        say(Narration::Chapter(&format!(
            "Another agent holds the item now. {VICTIM}'s late attempt to complete it is refused: {error}."
        )))?;
    }
    Ok(())
}
