//! Invariants of every board after every step.

use std::collections::HashMap;
use std::fmt::Debug;

use blackboard::Revision;
use blackboard::agent::Agent;
use blackboard::entry::Entry;
use blackboard::event::Event;
use blackboard::export::Exported;
use blackboard::protocol::CustomProtocol;
use blackboard::work::{Status, WorkItem};

use crate::step::Step;

/// Checks the board after a step, and the step against the board before it.
pub fn check(step: &Step, before: &Exported, after: &Exported) -> Result<(), String> {
    for item in &after.work_items {
        check_item(item, after)?;
    }
    if after.revision < before.revision {
        return Err("the revision went back".to_owned());
    }
    if matches!(step, Step::Prune) {
        return if after.revision == before.revision && after.entries == before.entries {
            Ok(())
        } else {
            Err("retention has an event, or changed an entry".to_owned())
        };
    }
    changes_are_told("agent", &agents(before), &agents(after), before.revision)?;
    changes_are_told("project", &projects(before), &projects(after), before.revision)?;
    changes_are_told("protocol", &protocols(before), &protocols(after), before.revision)?;
    changes_are_told("work item", &items(before), &items(after), before.revision)?;
    changes_are_told("entry", &entries(before), &entries(after), before.revision)?;
    if after.entries.len() < before.entries.len() && before.revision == after.revision {
        return Err("entries went without an event".to_owned());
    }
    if before.work_dependencies != after.work_dependencies && before.revision == after.revision {
        return Err("dependencies changed without an event".to_owned());
    }
    Ok(())
}

/// Checks that ids have no gaps, and that commits are complete and in order.
pub fn check_log(log: &[Event]) -> Result<(), String> {
    for pair in log.windows(2) {
        let [first, second] = pair else { continue };
        let follows = second.id == first.id.next();
        let commits_in_order = second.commit_id == first.commit_id || second.commit_id == second.id;
        if !follows || !commits_in_order {
            return Err(format!("{first:?} is followed by {second:?}"));
        }
    }
    match log.first() {
        Some(first) if first.commit_id != first.id => Err("the log begins within a commit".to_owned()),
        _ => Ok(()),
    }
}

fn check_item(item: &WorkItem, board: &Exported) -> Result<(), String> {
    let wrong = |what: &str| Err(format!("{what}: {item:?}"));
    let open: Vec<_> = board
        .work_dependencies
        .iter()
        .filter(|dependency| dependency.item_id == item.item_id)
        .map(|dependency| &dependency.blocked_by)
        .filter(|blocker| {
            let blocker = board.work_items.iter().find(|item| item.item_id == **blocker);
            blocker.is_none_or(|blocker| blocker.status != Status::Completed)
        })
        .collect();
    let is_on_hold = item.hold().on_hold.is_some();
    match item.status {
        Status::Blocked if open.is_empty() && !is_on_hold => return wrong("it waits for nothing"),
        Status::Blocked if item.blocked_by.as_ref() != open.first().copied() => {
            return wrong("it shows another blocker");
        }
        Status::Available | Status::Claimed if is_on_hold => {
            return wrong("it is on hold and not blocked");
        }
        Status::Available | Status::Claimed if !open.is_empty() => {
            return wrong("it waits and is not blocked");
        }
        Status::Available if item.claimed_by.is_some() => return wrong("it is held and available"),
        Status::Claimed if item.claimed_by.is_none() => return wrong("no session holds it"),
        _ => {}
    }
    if item.status != Status::Blocked && item.blocked_by.is_some() {
        return wrong("it shows a blocker and is not blocked");
    }
    if (item.status == Status::Completed) != item.completed_at.is_some() {
        return wrong("it was completed and is not, or the other way round");
    }
    if item.status != Status::Completed {
        if item.fence.is_some() != item.claimed_by.is_some() {
            return wrong("a fence without a holder, or the other way round");
        }
        if let Some(holder) = &item.claimed_by {
            let holder = board.agents.iter().find(|agent| agent.session_id == *holder);
            if !holder.is_some_and(|agent| agent.status.is_live()) {
                return wrong("the dead hold it");
            }
        }
    }
    Ok(())
}

type Rows<T> = HashMap<String, (T, Revision)>;

/// A new or changed row has the revision of an event of this step, and a removed row had an event.
fn changes_are_told<T: PartialEq + Debug>(
    what: &str,
    before: &Rows<T>,
    after: &Rows<T>,
    last: Revision,
) -> Result<(), String> {
    for (id, (row, revision)) in after {
        let same = before.get(id).is_some_and(|(known, _)| known == row);
        if !same && *revision <= last {
            return Err(format!("{what} {id} changed without an event: {:?} became {row:?}", before.get(id)));
        }
    }
    Ok(())
}

/// Agents without the fields that have no events: signs of life.
fn agents(board: &Exported) -> Rows<Agent> {
    let told = |agent: &Agent| {
        let mut told = agent.clone();
        told.last_seen_at = told.started_at;
        told.last_beat_at = told.started_at;
        told.revision = Revision::ZERO;
        told
    };
    board.agents.iter().map(|agent| (agent.session_id.clone(), (told(agent), agent.revision))).collect()
}

fn projects(board: &Exported) -> Rows<String> {
    let told = |project: &blackboard::project::Project| {
        format!("{:?}", blackboard::project::Project { revision: Revision::ZERO, ..project.clone() })
    };
    board
        .projects
        .iter()
        .map(|project| (project.project_id.clone(), (told(project), project.revision)))
        .collect()
}

fn protocols(board: &Exported) -> Rows<String> {
    let told = |stored: &CustomProtocol| {
        format!("{:?}", CustomProtocol { revision: Revision::ZERO, ..stored.clone() })
    };
    board.protocols.iter().map(|stored| (stored.name.clone(), (told(stored), stored.revision))).collect()
}

fn items(board: &Exported) -> Rows<WorkItem> {
    let told = |item: &WorkItem| WorkItem { revision: Revision::ZERO, ..item.clone() };
    board.work_items.iter().map(|item| (item.item_id.clone(), (told(item), item.revision))).collect()
}

fn entries(board: &Exported) -> Rows<Entry> {
    board
        .entries
        .iter()
        .map(|entry| (format!("{}\n{}", entry.scope, entry.key), (entry.clone(), entry.revision)))
        .collect()
}
