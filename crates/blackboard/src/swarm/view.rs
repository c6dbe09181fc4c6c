//! [`SwarmView`]: what a render shows of the board.

use super::FileEntry;
use crate::board::Board;
use crate::clock::Timestamp;
use crate::entry::Query;
use crate::error::Result;
use crate::event::{Event, Since, TargetType};
use crate::metadata::Metadata;
use crate::revision::Revision;
use crate::store::{Key, Prefetch, Range, Row};
use crate::work::{Status, WorkFilter, WorkItem};

/// How many events a file shows.
const EVENTS: usize = 50;

/// How many events are read for that: those of other scopes are left out.
const READ_EVENTS: usize = 1000;

/// What a render shows of the board.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SwarmView {
    /// The scope.
    pub scope: String,
    /// Whether the board knows nothing of it: no policies, no entries, and no key that was deleted lately. Its name may be
    /// mistyped.
    pub is_unknown_scope: bool,
    /// The entries of a scope, sorted by key.
    pub entries: Vec<FileEntry>,
    /// The work items that sessions hold.
    pub work: Vec<WorkItem>,
    /// The last 50 events, oldest first and without entry changes, of the last 1,000 of the board. Those about entries of other
    /// scopes and their policies are left out: readers of the file need not be allowed to read them.
    pub events: Vec<Event>,
    /// The revision of the entries. The work items and the events are at least as new: following the board from here
    /// misses nothing.
    pub revision: Revision,
    /// The time of the board's clock.
    pub time: Timestamp,
}

impl Board {
    /// What a file shows of a scope, and of the work on the board.
    ///
    /// ```
    /// # use blackboard::{Board, entry::{Value, Write}, swarm::{Dialect, render}};
    /// # let board = Board::memory();
    /// board.scope("team-1").write(&Write::new("task:1", Value::of("open")?))?;
    /// let view = board.swarm_view("team-1")?;
    /// assert!(render(&view, Dialect::A, "")?.text.contains("### task:1\n{\"key\":\"task:1\",\"value\":\"open\""));
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn swarm_view(&self, scope: &str) -> Result<SwarmView> {
        let snapshot = self.scope(scope).snapshot(&Query::default())?;
        let filter = WorkFilter { statuses: vec![Status::Claimed, Status::Blocked], ..WorkFilter::default() };
        let items = self.work().list(&filter)?.into_iter().map(|listed| listed.item);
        let observation = self.events().observe(&Since::Last(READ_EVENTS as u64), &[])?;
        let (mut events, mut after) = (Vec::new(), observation.after);
        while let Some(batch) = self.events().next_batch(&observation, after, READ_EVENTS, false)? {
            after = batch.last;
            events.extend(batch.events.into_iter().filter(|event| is_shown(event, scope)));
        }
        // The end of the event log is that of a commit, which may have more events.
        events.drain(..events.len().saturating_sub(EVENTS));
        let policies = Key::ScopePolicies(scope.to_owned());
        let removed = Range::tombstones_from(scope);
        let reads = [Prefetch::Row(policies.clone()), Prefetch::Candidates(removed.clone(), 1)];
        let (time, is_known) = self.read(&reads, |tx| {
            let is_in_scope =
                |row: &Row| matches!(row, Row::Tombstone(tombstone) if tombstone.scope == scope);
            let has_removed = tx.candidates(&removed, 1)?.first().is_some_and(is_in_scope);
            Ok((tx.now(), has_removed || tx.peek(&policies)?.is_some()))
        })?;
        Ok(SwarmView {
            scope: scope.to_owned(),
            is_unknown_scope: snapshot.entries.is_empty() && !is_known,
            time,
            entries: snapshot.entries.iter().map(FileEntry::of).collect(),
            work: items.filter(|item| item.claimed_by.is_some()).collect(),
            events,
            revision: snapshot.revision,
        })
    }
}

/// Whether the file of a scope shows an event: one about this scope, or about no scope at all.
fn is_shown(event: &Event, scope: &str) -> bool {
    match event.target_type {
        Some(TargetType::Scope) => event.target_id.as_deref() == Some(scope),
        Some(TargetType::Entry) => {
            let metadata = event.metadata.as_ref().map(Metadata::to_map).unwrap_or_default();
            metadata.get("scope").is_some_and(|of| of == scope)
        }
        _ => true,
    }
}
