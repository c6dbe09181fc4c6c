//! Tasks that an agent is about to give to delegates.
//!
//! A platform names the task before it starts a delegate, and the delegate's kind when it starts it. Meanwhile the
//! task is stored here. It is not shared state: like a remembered answer, it has no event and is pruned after a day.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Agents;
use crate::clock::Timestamp;
use crate::error::{Code, Fault, Refusal, Result};
use crate::revision::Revision;
use crate::store::{Changes, Key, Prefetch, RememberedCall};

/// The most stored tasks of one session.
const MOST: usize = 16;

/// How long a task is kept. A delegate that has not started by then will not start.
const WAITS: Duration = Duration::from_mins(10);

/// The verb under which they are stored.
const VERB: &str = "delegate task";

/// A task whose delegate has not started yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::struct_field_names, reason = "it is stored under this name")]
struct Task {
    kind: String,
    task: String,
    since: Timestamp,
}

impl Agents<'_> {
    /// Stores a task that a session is about to give to a delegate of this kind.
    ///
    /// ```
    /// # use blackboard::{Board, agent::Register};
    /// let board = Board::memory();
    /// let ivy = board.agents().register(&Register::named("Ivy"))?.agent.session_id;
    /// board.agents().announce_task(&ivy, "Explore", "Find the callers of claim()")?;
    /// let task = board.agents().take_task(&ivy, "Explore")?;
    /// assert_eq!(task.as_deref(), Some("Find the callers of claim()"));
    /// assert_eq!(board.agents().take_task(&ivy, "Explore")?, None);
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn announce_task(&self, session: &str, kind: &str, task: &str) -> Result<()> {
        let rules = &self.board.settings().text;
        let (kind, task) = (rules.field(kind)?, rules.field(task)?);
        if task.is_empty() {
            return Ok(());
        }
        let key = key_of(session);
        self.board.commit("agent task", &[Prefetch::Row(key.clone())], |tx| {
            let waiting = tx.row::<RememberedCall>(&key)?.map(|row| tasks_in(&row)).unwrap_or_default();
            let task = Task { kind: kind.clone(), task: task.clone(), since: tx.now() };
            Ok((put(session, &announce(waiting, task, tx.now()), tx.now())?, ()))
        })
    }

    /// The task of a delegate of this kind that starts now: the oldest one that is stored.
    pub fn take_task(&self, session: &str, kind: &str) -> Result<Option<String>> {
        let key = key_of(session);
        let prefetch = [Prefetch::Row(key.clone())];
        // Most platforms announce no task. Then nothing is written.
        if self.board.read(&prefetch, |tx| tx.row::<RememberedCall>(&key))?.is_none() {
            return Ok(None);
        }
        let kind = self.board.settings().text.field(kind)?;
        let mut taken = None;
        self.board.commit("agent task", &prefetch, |tx| {
            let waiting = tx.row::<RememberedCall>(&key)?.map(|row| tasks_in(&row)).unwrap_or_default();
            let (task, rest) = take(waiting, &kind, tx.now());
            taken = task;
            Ok((put(session, &rest, tx.now())?, ()))
        })?;
        Ok(taken)
    }
}

fn key_of(session: &str) -> Key {
    Key::RememberedCall(format!("{VERB}:{session}"))
}

/// Refuses an operation name under which tasks are stored: its caller could read or replace them.
pub(crate) fn refuse_name_of_tasks(operation: &str) -> Result<()> {
    if operation.strip_prefix(VERB).is_some_and(|rest| rest.starts_with(':')) {
        let message = format!("the id of the operation begins with \"{VERB}:\", which is reserved");
        return Err(Refusal::new(Code::InvalidValue, message).hint("choose another id").into());
    }
    Ok(())
}

fn put(session: &str, tasks: &[Task], now: Timestamp) -> Result<Changes> {
    let mut changes = Changes::new();
    if tasks.is_empty() {
        changes.remove(key_of(session));
        return Ok(changes);
    }
    let answer = serde_json::to_string(tasks)
        .map_err(|error| Fault::new(Code::Internal, "a task is not JSON").because(error))?;
    changes.put(RememberedCall {
        operation_id: format!("{VERB}:{session}"),
        verb: VERB.to_owned(),
        answer,
        revision: Revision::ZERO,
        created_at: now,
    });
    Ok(changes)
}

/// An unreadable row counts as absent: the delegate then has no task but its kind.
fn tasks_in(row: &RememberedCall) -> Vec<Task> {
    serde_json::from_str(&row.answer).unwrap_or_default()
}

fn announce(waiting: Vec<Task>, task: Task, now: Timestamp) -> Vec<Task> {
    let mut tasks = still_waiting(waiting, now);
    tasks.push(task);
    let too_many = tasks.len().saturating_sub(MOST);
    tasks.split_off(too_many)
}

fn take(waiting: Vec<Task>, kind: &str, now: Timestamp) -> (Option<String>, Vec<Task>) {
    let mut tasks = still_waiting(waiting, now);
    let place = tasks.iter().position(|task| task.kind == kind);
    let task = place.map(|place| tasks.remove(place).task);
    (task, tasks)
}

fn still_waiting(tasks: Vec<Task>, now: Timestamp) -> Vec<Task> {
    tasks.into_iter().filter(|task| now.since(task.since) < WAITS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(kind: &str, number: usize, since: Timestamp) -> Task {
        Task { kind: kind.to_owned(), task: format!("task {number}"), since }
    }

    #[test]
    fn idempotency_key_of_stored_tasks_is_refused() {
        testkit::limit_test();
        let board = crate::Board::memory();
        let session =
            board.agents().register(&crate::agent::Register::named("Ivy")).unwrap().agent.session_id;
        let by = crate::entry::Actor {
            operation: Some(format!("{VERB}:{session}")),
            ..crate::entry::Actor::session(&session)
        };
        let write = crate::entry::Write::new("a", crate::entry::Value::null());
        let refused = board.scope("team").acting_as(by).write(&write).unwrap_err();
        assert_eq!(refused.code(), Code::InvalidValue);
        board.agents().announce_task(&session, "Explore", "Read").unwrap();
        assert_eq!(board.agents().take_task(&session, "Explore").unwrap().as_deref(), Some("Read"));
    }

    #[test]
    fn delegates_of_one_kind_get_their_tasks_in_order() {
        let now = Timestamp::EPOCH.plus(Duration::from_hours(1));
        let mut waiting = Vec::new();
        for (number, kind) in ["Explore", "Plan", "Explore"].into_iter().enumerate() {
            waiting = announce(waiting, task(kind, number, now), now);
        }
        let mut taken = Vec::new();
        for kind in ["Explore", "Explore", "Explore", "Plan", "Other"] {
            let (task, rest) = take(waiting, kind, now);
            waiting = rest;
            taken.push(task);
        }
        let expected = [Some("task 0"), Some("task 2"), None, Some("task 1"), None];
        assert_eq!(taken.iter().map(Option::as_deref).collect::<Vec<_>>(), expected);
        assert!(waiting.is_empty());
    }

    #[test]
    fn tasks_are_bounded_in_number_and_time() {
        let now = Timestamp::EPOCH.plus(Duration::from_hours(1));
        let waiting =
            (0..100).fold(Vec::new(), |waiting, number| announce(waiting, task("x", number, now), now));
        assert_eq!(waiting.len(), MOST);
        assert_eq!(take(waiting.clone(), "x", now).0.as_deref(), Some("task 84"), "the newest are kept");
        assert_eq!(take(waiting, "x", now.plus(WAITS)).0, None, "a task that waited too long is dropped");
    }
}
