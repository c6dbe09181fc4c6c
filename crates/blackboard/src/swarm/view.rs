//! [`SwarmView`]: what a render shows of the board.

use super::FileEntry;
use crate::board::Board;
use crate::entry::Query;
use crate::error::Result;
use crate::event::{Event, Since};
use crate::revision::Revision;
use crate::work::{Status, WorkFilter, WorkItem};

/// How many events a file shows.
const EVENTS: usize = 50;

/// What a render shows of the board.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SwarmView {
    /// The entries of a scope, sorted by key.
    pub entries: Vec<FileEntry>,
    /// The work items that sessions hold.
    pub work: Vec<WorkItem>,
    /// The last 50 events, oldest first.
    pub events: Vec<Event>,
    /// The revision of the entries. The work items and the events are at least as new: following the board from here
    /// misses nothing.
    pub revision: Revision,
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
        let observation = self.events().observe(&Since::Last(EVENTS as u64), &[])?;
        let (mut events, mut after) = (Vec::new(), observation.after);
        while let Some(batch) = self.events().next(&observation, after, EVENTS)? {
            after = batch.last;
            events.extend(batch.events);
        }
        // The end of the event log is that of a commit, which may have more events.
        events.drain(..events.len().saturating_sub(EVENTS));
        Ok(SwarmView {
            entries: snapshot.entries.iter().map(FileEntry::of).collect(),
            work: items.filter(|item| item.claimed_by.is_some()).collect(),
            events,
            revision: snapshot.revision,
        })
    }
}
