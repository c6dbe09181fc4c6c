//! `work complete --force`: completes an item, whatever its holder, status and blockers.

use serde::Serialize;

use super::complete::Completed;
use super::dependencies::{Dependent, dependents_of, update_dependents};
use super::{Holder, Status, Work, WorkItem, existing};
use crate::agent::{Agent, existing as existing_agent, prefetch_agent};
use crate::clock::Timestamp;
use crate::error::Result;
use crate::event::{EventType, NewEvent, TargetType};
use crate::scope::EndsWith;
use crate::store::{Changes, Key, OnBusy, Prefetch, Range};
use crate::text::{Cleaner, IN_A_SENTENCE, Kind, TextChanges, excerpt};

/// The item to complete.
#[derive(Clone, Debug)]
pub struct ForceComplete {
    /// The item.
    pub id: String,
    /// The session that completes it; none if an operator does.
    pub session: Option<String>,
    /// The result.
    pub summary: Option<String>,
}

/// The open items of a project, which were completed one after the other.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct CompletedProject {
    /// The project.
    pub project_id: String,
    /// How many items this call completed.
    pub completed_count: usize,
    /// How many it could not complete.
    pub failed_count: usize,
    /// All of them.
    pub items: Vec<CompletedOne>,
}

/// An item of a project, and whether it was completed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CompletedOne {
    /// The item.
    pub item_id: String,
    /// Whether it was completed.
    pub success: bool,
    /// Why not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl Work<'_> {
    /// Completes an item, whatever its holder, status and blockers. Completing it again changes nothing.
    ///
    /// ```
    /// # use blackboard::{Board, work::{Create, ForceComplete, Status}};
    /// # let board = Board::memory();
    /// # board.work().create(&Create::new("fix-tests", "Fix the tests"))?;
    /// let force = ForceComplete { id: "fix-tests".to_owned(), session: None, summary: None };
    /// assert_eq!(board.work().force_complete(&force)?.item.status, Status::Completed);
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn force_complete(&self, complete: &ForceComplete) -> Result<Completed> {
        let mut cleaner = Cleaner::new(&self.board.settings().text);
        let summary = cleaner.maybe("summary", Kind::Summary, complete.summary.as_ref())?;
        let summary = summary.filter(|summary| !summary.is_empty());
        let complete = ForceComplete { summary, ..complete.clone() };
        let text = cleaner.changes();
        let session = complete.session.as_deref();
        let mut prefetch = vec![
            Prefetch::Row(Key::WorkItem(complete.id.clone())),
            Prefetch::Range(Range::dependents_of(&complete.id)),
            EndsWith::Item(&complete.id).prefetch(),
        ];
        prefetch.extend(prefetch_agent(session));
        let mut ends_scopes = false;
        let completed = self.board.commit_as(session.as_slice(), "work complete", &prefetch, |tx| {
            ends_scopes = false;
            let item = existing(tx, &complete.id)?;
            let agent = session.map(|session| existing_agent(tx, session)).transpose()?;
            let dependents = dependents_of(tx, &complete.id, false)?;
            let holder = Holder::of(tx, &item)?;
            let (mut changes, mut completed) =
                decide(&complete, agent.as_ref(), item, holder.as_ref(), dependents, tx.now());
            if !completed.already_completed {
                completed.text.clone_from(&text);
                ends_scopes = EndsWith::Item(&complete.id).end(tx, &mut changes)?;
            }
            if let Some(agent) = &agent {
                self.board.agents().record_activity(agent, tx.now(), &mut changes);
            }
            Ok((changes, completed))
        })?;
        if ends_scopes {
            // What fails here is left to the next sweep.
            let _ = self.board.end_scopes(OnBusy::Wait);
        }
        Ok(completed)
    }

    /// Completes all open items of a project, each in its own commit.
    ///
    /// ```
    /// # use blackboard::{Board, project::RegisterProject, work::Create};
    /// # let board = Board::memory();
    /// # board.projects().register(&RegisterProject::new("pai", "PAI"))?;
    /// let project = Some("pai".to_owned());
    /// board.work().create(&Create { project, ..Create::new("fix-tests", "Fix the tests") })?;
    /// assert_eq!(board.work().complete_project("pai", None)?.completed_count, 1);
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn complete_project(&self, project: &str, session: Option<&str>) -> Result<CompletedProject> {
        let filter = super::WorkFilter { project: Some(project.to_owned()), ..super::WorkFilter::default() };
        let mut outcome = CompletedProject { project_id: project.to_owned(), ..CompletedProject::default() };
        for listed in self.list(&filter)? {
            let id = listed.item.item_id;
            let session = session.map(str::to_owned);
            let completed = self.force_complete(&ForceComplete { id: id.clone(), session, summary: None });
            let error = completed.err().map(|error| error.to_string());
            match error {
                Some(_) => outcome.failed_count += 1,
                None => outcome.completed_count += 1,
            }
            outcome.items.push(CompletedOne { item_id: id, success: error.is_none(), error });
        }
        Ok(outcome)
    }
}

fn decide(
    complete: &ForceComplete,
    agent: Option<&Agent>,
    mut item: WorkItem,
    holder: Option<&Holder>,
    dependents: Vec<Dependent>,
    now: Timestamp,
) -> (Changes, Completed) {
    let mut changes = Changes::new();
    let since = item.claimed_at.unwrap_or(now);
    let held_seconds = item.completed_at.unwrap_or(now).since(since).as_secs();
    let (unblocked, text) = (Vec::new(), TextChanges::default());
    let mut completed = Completed {
        item: item.clone(),
        completed: true,
        already_completed: true,
        held_seconds,
        unblocked,
        text,
    };
    if item.status == Status::Completed {
        return (changes, completed);
    }
    let session = agent.map(|agent| agent.session_id.as_str());
    let is_own = session.is_some_and(|session| item.is_held_by(session));
    if !is_own && let Some(held_by) = item.claimed_by.clone() {
        // The holder has lost the item, and sees that in the event log.
        let summary = format!("\"{}\" was taken from {} and completed", item.title, item.holder());
        let released = NewEvent::new(EventType::WorkReleased, TargetType::WorkItem, &item.item_id, summary);
        item.revision = changes.event(released.by(session).with("held_by", held_by));
    }
    if let Some(agent) = agent.filter(|_| !is_own) {
        item.set_free();
        item.claimed_by = Some(agent.session_id.clone());
        item.claimed_by_name = Some(agent.agent_name.clone());
        item.claimed_at = Some(now);
    }
    item.status = Status::Completed;
    item.completed_at = Some(now);
    item.blocked_by = None;
    item.summary.clone_from(&complete.summary);
    item.revision = changes.event(completion(&item, agent, complete.summary.as_deref()));
    changes.put(item.clone());
    if let Some(agent) = holder.and_then(|holder| holder.without(&item)) {
        changes.put(agent);
    }
    completed.unblocked = update_dependents(dependents, session, &mut changes);
    completed.already_completed = false;
    completed.item = item;
    (changes, completed)
}

fn completion(item: &WorkItem, agent: Option<&Agent>, outcome: Option<&str>) -> NewEvent {
    let who = agent.map_or("An operator".to_owned(), |agent| format!("Agent \"{}\"", agent.agent_name));
    let what = outcome.map(|outcome| format!(": {}", excerpt(outcome, IN_A_SENTENCE))).unwrap_or_default();
    let summary = format!("{who} completed \"{}\"{what}", item.title);
    let event = NewEvent::new(EventType::WorkCompleted, TargetType::WorkItem, &item.item_id, summary)
        .by(agent.map(|agent| agent.session_id.as_str()))
        .with("forced", true);
    match outcome {
        Some(outcome) => event.with("summary", outcome),
        None => event,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::conformance::{an_agent, an_item};

    #[test]
    fn item_is_completed_whatever_its_holder_and_status() {
        use EventType::{WorkCompleted, WorkReleased};
        use Status::{Available, Blocked, Claimed, Completed};
        for (status, holder, session, by, expected) in [
            (Available, None, None, None, &[WorkCompleted][..]),
            (Available, None, Some("me"), Some("me"), &[WorkCompleted]),
            (Claimed, Some("me"), Some("me"), Some("me"), &[WorkCompleted]),
            (Claimed, Some("other"), Some("me"), Some("me"), &[WorkReleased, WorkCompleted]),
            (Claimed, Some("other"), None, Some("other"), &[WorkReleased, WorkCompleted]),
            (Blocked, None, None, None, &[WorkCompleted]),
            (Completed, Some("other"), Some("me"), Some("other"), &[]),
        ] {
            let force =
                ForceComplete { id: "x".to_owned(), session: session.map(str::to_owned), summary: None };
            let me = session.map(an_agent);
            let item = WorkItem { status, claimed_by: holder.map(str::to_owned), ..an_item("x") };
            let (changes, completed) = decide(&force, me.as_ref(), item, None, Vec::new(), Timestamp::EPOCH);
            let events: Vec<_> = changes.events.into_iter().map(|event| event.event_type).collect();
            assert_eq!(events, expected, "{status} item of {holder:?}, by {session:?}");
            assert_eq!(completed.item.status, Completed);
            assert_eq!(completed.item.claimed_by.as_deref(), by, "{status} item of {holder:?}");
        }
    }
}
