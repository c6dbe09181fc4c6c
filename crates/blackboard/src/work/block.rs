//! `work block`: adds blockers to an item.

use serde::Serialize;

use super::dependencies::{
    Blocker, NamedBlocker, blocked_event, blockers_of, follow_blockers, missing_among, named_blockers,
    open_among, prefetch_named,
};
use super::{Dependency, Status, Work, WorkItem, clean_reason, existing};
use crate::agent::prefetch_agent;
use crate::clock::Timestamp;
use crate::error::{Code, Error, Refusal, Result};
use crate::revision::{Pending, Revision};
use crate::store::{Changes, Key, Prefetch, Range};
use crate::text::{Cleaner, IN_A_SENTENCE, TextChanges, excerpt};

/// The item to block, and its blockers.
#[derive(Clone, Debug, Default)]
pub struct Block {
    /// The blocked item.
    pub id: String,
    /// Its blockers.
    pub blocked_by: Vec<String>,
    /// The reason.
    pub reason: Option<String>,
    /// The session that calls.
    pub session: Option<String>,
}

/// A blocked item.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Blocked {
    /// The item.
    #[serde(flatten)]
    pub item: WorkItem,
    /// Whether it is blocked now.
    pub blocked: bool,
    /// Its status before.
    pub previous_status: Status,
    /// The items that block it.
    pub open_blockers: Vec<String>,
    /// Those of them that do not exist yet, including those of earlier calls.
    pub missing_blockers: Vec<String>,
    /// The given fields that changed nothing: the reason, if all named blockers were known already.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ignored: Vec<&'static str>,
    /// The changes to the reason.
    #[serde(flatten)]
    pub text: TextChanges,
}

impl Pending for Blocked {
    fn resolve(&mut self, first: Revision) {
        self.item.resolve(first);
    }
}

impl Work<'_> {
    /// Adds blockers to an item, which may not exist yet. Its holder keeps it.
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
        let mut cleaner = Cleaner::new(rules);
        let reason = clean_reason(&mut cleaner, block.reason.as_ref())?;
        let block = Block { reason, ..block.clone() };
        let text = cleaner.changes();
        for blocker in &block.blocked_by {
            rules.check_listed_id("blocking work item", blocker)?;
        }
        let mut prefetch = vec![
            Prefetch::Row(Key::WorkItem(block.id.clone())),
            Prefetch::Range(Range::blockers_of(&block.id)),
        ];
        prefetch.extend(prefetch_agent(block.session.as_deref()));
        prefetch.extend(prefetch_named(&block.id, &block.blocked_by));
        self.board.commit("work block", &prefetch, |tx| {
            let item = existing(tx, &block.id)?;
            let stored = blockers_of(tx, &block.id)?;
            let named = named_blockers(tx, &block.id, &block.blocked_by)?;
            let (mut changes, mut blocked) = decide(&block, item, stored, named, tx.now())?;
            if blocked.ignored.is_empty() {
                blocked.text.clone_from(&text);
            }
            self.board.agents().record_activity_of(tx, block.session.as_deref(), &mut changes)?;
            Ok((changes, blocked))
        })
    }
}

fn decide(
    block: &Block,
    mut item: WorkItem,
    mut blockers: Vec<Blocker>,
    named: Vec<NamedBlocker>,
    now: Timestamp,
) -> Result<(Changes, Blocked)> {
    if item.status == Status::Completed {
        return Err(item.is_completed());
    }
    let previous_status = item.status;
    let mut changes = Changes::new();
    let mut added = Vec::new();
    for blocker in named {
        if blocker.status == Some(Status::Completed) {
            return Err(blocker_is_completed(&blocker.id));
        }
        blocker.must_not_close_a_cycle(&item.item_id)?;
        if !blocker.is_known {
            let dependency =
                Dependency { item_id: item.item_id.clone(), blocked_by: blocker.id.clone(), created_at: now };
            changes.put(dependency.clone());
            blockers.push(Blocker { dependency, status: blocker.status });
            added.push(blocker.id);
        }
    }
    // In the order of the index, so that the first one stays the first.
    blockers.sort_by(|a, b| (a.dependency.created_at, a.id()).cmp(&(b.dependency.created_at, b.id())));
    let (open, missing_blockers) = (open_among(&blockers), missing_among(&blockers));
    let session = block.session.as_deref();
    if added.is_empty() {
        follow_blockers(&mut item, &open, session, &mut changes);
    } else {
        item.status = Status::Blocked;
        item.blocked_by = open.first().cloned();
        let shown = block.reason.as_ref().map(|reason| format!(" ({})", excerpt(reason, IN_A_SENTENCE)));
        let why = shown.unwrap_or_default();
        let summary = format!("\"{}\" is blocked by {}{why}", item.title, added.join(", "));
        let mut event = blocked_event(&item, &added, summary, session);
        if let Some(reason) = &block.reason {
            event = event.with("reason", reason.as_str());
        }
        item.revision = changes.event(event);
        changes.put(item.clone());
    }
    let ignored = if added.is_empty() && block.reason.is_some() { vec!["reason"] } else { Vec::new() };
    let text = TextChanges::default();
    let blocked = item.status == Status::Blocked;
    let open_blockers = open;
    let blocked = Blocked { item, blocked, previous_status, open_blockers, missing_blockers, ignored, text };
    Ok((changes, blocked))
}

fn blocker_is_completed(blocker: &str) -> Error {
    Refusal::new(Code::AlreadyCompleted, format!("cannot block on {blocker}: it is already completed")).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::conformance::an_item;

    #[test]
    fn a_reason_is_reported_as_ignored_if_all_named_blockers_are_known() {
        let block = Block { reason: Some("waits for review".to_owned()), ..Block::default() };
        for (is_known, expected) in [(false, &[][..]), (true, &["reason"])] {
            let named = NamedBlocker {
                id: "a".to_owned(),
                status: Some(Status::Available),
                is_known,
                waits_for_item: false,
            };
            let (_, blocked) =
                decide(&block, an_item("x"), Vec::new(), vec![named], Timestamp::EPOCH).unwrap();
            assert_eq!(blocked.ignored, expected);
        }
    }

    #[test]
    fn item_is_blocked_only_by_open_items_that_it_does_not_block() {
        use Status::{Available, Claimed, Completed};
        for (item, blocker, is_known, waits_for_item, expected) in [
            (Available, Some(Available), false, false, Ok((1, false))),
            (Claimed, Some(Available), false, false, Ok((1, false))),
            (Available, None, false, false, Ok((1, true))),
            (Available, Some(Available), true, false, Ok((0, false))),
            (Available, Some(Completed), false, false, Err(Code::AlreadyCompleted)),
            (Completed, Some(Available), false, false, Err(Code::AlreadyCompleted)),
            (Available, Some(Available), false, true, Err(Code::DependencyCycle)),
        ] {
            let named = vec![NamedBlocker { id: "a".to_owned(), status: blocker, is_known, waits_for_item }];
            let item = WorkItem { status: item, ..an_item("x") };
            let context = format!("{} item, {named:?}", item.status);
            let decided = decide(&Block::default(), item, Vec::new(), named, Timestamp::EPOCH);
            let outcome = decided
                .map(|(changes, blocked)| (changes.events.len(), !blocked.missing_blockers.is_empty()))
                .map_err(|error| error.code());
            assert_eq!(outcome, expected, "{context}");
        }
    }
}
