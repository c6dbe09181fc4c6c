//! `work block` and `work unblock`: one item waits for another.

use std::collections::BTreeSet;

use serde::Serialize;

use super::{Dependency, Status, Work, WorkItem, existing, is_open, open_among, open_blockers};
use crate::error::{Code, Error, Refusal, Result};
use crate::event::{EventType, NewEvent, TargetType};
use crate::revision::{Pending, Revision};
use crate::store::{Changes, Key, Range, Tx, Wanted};
use crate::text::check_id;

/// How many items a chain of dependencies may have.
const MAX_CHAIN: usize = 10_000;

/// Which item has to wait, and for what.
#[derive(Clone, Debug, Default)]
pub struct Block {
    /// The item that waits.
    pub id: String,
    /// What it waits for.
    pub blocked_by: Vec<String>,
    /// Why.
    pub reason: Option<String>,
    /// The session that says so.
    pub session: Option<String>,
}

/// An item that waits.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Blocked {
    /// The item.
    #[serde(flatten)]
    pub item: WorkItem,
    /// Everything that it waits for.
    pub open_blockers: Vec<String>,
    /// What it waits for that does not exist yet.
    pub missing_blockers: Vec<String>,
}

/// An item that waits for less.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Unblocked {
    /// The item.
    #[serde(flatten)]
    pub item: WorkItem,
    /// What it still waits for.
    pub open_blockers: Vec<String>,
    /// Whether it waits for nothing since this call.
    pub unblocked: bool,
}

impl Pending for Blocked {
    fn resolve(&mut self, first: Revision) {
        self.item.resolve(first);
    }
}

impl Pending for Unblocked {
    fn resolve(&mut self, first: Revision) {
        self.item.resolve(first);
    }
}

impl Work<'_> {
    /// Makes an item wait for others, which may not exist yet. Whoever holds it keeps it.
    ///
    /// ```
    /// # use blackboard::{Board, work::{Block, Create, Status}};
    /// # let board = Board::memory();
    /// board.work().create(&Create::new("ship", "Ship it"))?;
    /// board.work().create(&Create::new("test", "Test it"))?;
    /// let blocked = board.work().block(&Block {
    ///     id: "ship".to_owned(),
    ///     blocked_by: vec!["test".to_owned()],
    ///     ..Block::default()
    /// })?;
    /// assert_eq!(blocked.item.status, Status::Blocked);
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn block(&self, block: &Block) -> Result<Blocked> {
        let rules = &self.board.settings().text;
        let reason = block.reason.as_deref().map(|text| rules.field(text)).transpose()?;
        for blocker in &block.blocked_by {
            check_id("blocking work item", blocker)?;
        }
        let mut wanted =
            vec![Wanted::Row(Key::WorkItem(block.id.clone())), Wanted::Range(Range::blockers_of(&block.id))];
        wanted.extend(block.blocked_by.iter().map(|blocker| Wanted::Row(Key::WorkItem(blocker.clone()))));
        self.board.commit("work block", &wanted, |tx| {
            let (mut changes, blocked) = decide_block(tx, block, reason.as_deref())?;
            self.board.agents().saw_session(tx, block.session.as_deref(), &mut changes)?;
            Ok((changes, blocked))
        })
    }

    /// Makes an item wait for less: for nothing, or no longer for what is named.
    ///
    /// ```
    /// # use blackboard::{Board, work::{Create, Status}};
    /// # let board = Board::memory();
    /// board.work().create(&Create { blocked_by: vec!["later".to_owned()], ..Create::new("ship", "Ship it") })?;
    /// let unblocked = board.work().unblock("ship", &[], None)?;
    /// assert_eq!(unblocked.item.status, Status::Available);
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn unblock(&self, id: &str, blocked_by: &[String], session: Option<&str>) -> Result<Unblocked> {
        let wanted = [Wanted::Row(Key::WorkItem(id.to_owned())), Wanted::Range(Range::blockers_of(id))];
        self.board.commit("work unblock", &wanted, |tx| {
            let mut item = existing(tx, id)?;
            let mut changes = Changes::new();
            let mut open = Vec::new();
            for dependency in tx.rows::<Dependency>(&Range::blockers_of(id))? {
                if blocked_by.is_empty() || blocked_by.contains(&dependency.blocked_by) {
                    changes.remove(Key::Dependency(dependency.item_id, dependency.blocked_by));
                } else if is_open(tx, &dependency.blocked_by)? {
                    open.push(dependency.blocked_by);
                }
            }
            let was_blocked = item.status == Status::Blocked;
            if !changes.is_empty() {
                tell(&mut item, &open, session, &mut changes);
            }
            let unblocked = was_blocked && item.status != Status::Blocked;
            self.board.agents().saw_session(tx, session, &mut changes)?;
            Ok((changes, Unblocked { item, open_blockers: open, unblocked }))
        })
    }
}

fn decide_block(tx: &dyn Tx, block: &Block, reason: Option<&str>) -> Result<(Changes, Blocked)> {
    let mut item = existing(tx, &block.id)?;
    if item.status == Status::Completed {
        return Err(item.is_completed());
    }
    let mut changes = Changes::new();
    let mut missing_blockers = Vec::new();
    let mut added = Vec::new();
    let mut dependencies = tx.rows::<Dependency>(&Range::blockers_of(&block.id))?;
    for blocker in &block.blocked_by {
        match tx.row::<WorkItem>(&Key::WorkItem(blocker.clone()))? {
            Some(blocker) if blocker.status == Status::Completed => return Err(blocker.is_completed()),
            Some(_) => {}
            None => missing_blockers.push(blocker.clone()),
        }
        refuse_cycle(tx, &block.id, blocker)?;
        let key = Key::Dependency(block.id.clone(), blocker.clone());
        if tx.get(&key)?.is_none() && !added.contains(blocker) {
            let dependency =
                Dependency { item_id: block.id.clone(), blocked_by: blocker.clone(), created_at: tx.now() };
            changes.put(dependency.clone());
            dependencies.push(dependency);
            added.push(blocker.clone());
        }
    }
    // As the index will have them, so that the first one stays the first.
    dependencies.sort_by(|a, b| (a.created_at, &a.blocked_by).cmp(&(b.created_at, &b.blocked_by)));
    let open = open_among(tx, dependencies)?;
    // A blocker that was completed and reset blocks again only when somebody says so.
    let waits_again = item.status != Status::Blocked && !open.is_empty();
    if !added.is_empty() || waits_again {
        item.status = Status::Blocked;
        item.blocked_by = open.first().cloned();
        let new = if added.is_empty() { &open } else { &added };
        item.revision = changes.event(blocked_event(&item, new, reason, block.session.as_deref()));
        changes.put(item.clone());
    }
    Ok((changes, Blocked { item, open_blockers: open, missing_blockers }))
}

pub(super) fn blocked_event(
    item: &WorkItem,
    blockers: &[String],
    reason: Option<&str>,
    session: Option<&str>,
) -> NewEvent {
    let why = reason.map(|reason| format!(" ({reason})")).unwrap_or_default();
    let summary = format!("\"{}\" is blocked by {}{why}", item.title, blockers.join(", "));
    NewEvent::new(EventType::WorkBlocked, TargetType::WorkItem, &item.item_id, summary)
        .by(session)
        .with("blocked_by", blockers.to_vec())
}

/// Refuses if `blocker` waits, directly or through others, for `item`.
pub(super) fn refuse_cycle(tx: &dyn Tx, item: &str, blocker: &str) -> Result<()> {
    let mut seen = BTreeSet::new();
    let mut waiting = vec![blocker.to_owned()];
    while let Some(next) = waiting.pop() {
        if next == item {
            return Err(cycle(item, blocker));
        }
        if seen.len() > MAX_CHAIN {
            return Err(Error::invalid(format!(
                "the items behind {blocker} wait for more than {MAX_CHAIN} others"
            )));
        }
        if seen.insert(next.clone()) {
            let dependencies = tx.rows::<Dependency>(&Range::blockers_of(&next))?;
            waiting.extend(dependencies.into_iter().map(|dependency| dependency.blocked_by));
        }
    }
    Ok(())
}

fn cycle(item: &str, blocker: &str) -> Error {
    if item == blocker {
        return Refusal::new(Code::DependencyCycle, format!("work item {item} can't wait for itself"))
            .hint("name another one with --blocked-by")
            .into();
    }
    Refusal::new(Code::DependencyCycle, format!("work item {blocker} waits for {item} already"))
        .hint("neither could ever be done: remove the other dependency first with work unblock")
        .into()
}

/// `item` is completed or gone: what waited for it last may begin. Returns those ids.
pub(super) fn free_dependents(
    tx: &dyn Tx,
    item: &str,
    session: Option<&str>,
    changes: &mut Changes,
) -> Result<Vec<String>> {
    let mut freed = Vec::new();
    for dependency in tx.rows::<Dependency>(&Range::dependents_of(item))? {
        let Some(mut dependent) = tx.row::<WorkItem>(&Key::WorkItem(dependency.item_id.clone()))? else {
            continue;
        };
        if dependent.status != Status::Blocked {
            continue;
        }
        let mut open = open_blockers(tx, &dependent.item_id)?;
        open.retain(|blocker| blocker != item);
        settle(&mut dependent, &open, session, changes);
        if dependent.status != Status::Blocked {
            freed.push(dependent.item_id);
        }
    }
    Ok(freed)
}

/// Brings an item in line with what it still waits for, and puts it if that changes anything.
pub(super) fn settle(item: &mut WorkItem, open: &[String], session: Option<&str>, changes: &mut Changes) {
    let first = open.first();
    if item.status == Status::Blocked && (first.is_none() || item.blocked_by.as_ref() != first) {
        tell(item, open, session, changes);
    }
}

/// Brings an item in line with what it still waits for, and tells of it.
fn tell(item: &mut WorkItem, open: &[String], session: Option<&str>, changes: &mut Changes) {
    if item.status == Status::Blocked && open.is_empty() {
        item.status = if item.claimed_by.is_some() { Status::Claimed } else { Status::Available };
    }
    if item.status == Status::Blocked {
        item.blocked_by = open.first().cloned();
        let summary = format!("\"{}\" still waits for {}", item.title, open.join(", "));
        item.revision = changes.event(
            NewEvent::new(EventType::WorkBlocked, TargetType::WorkItem, &item.item_id, summary)
                .by(session)
                .with("blocked_by", open.to_vec()),
        );
    } else {
        item.blocked_by = None;
        let summary = format!("\"{}\" is no longer blocked", item.title);
        item.revision = changes.event(
            NewEvent::new(EventType::WorkUnblocked, TargetType::WorkItem, &item.item_id, summary).by(session),
        );
    }
    changes.put(item.clone());
}
