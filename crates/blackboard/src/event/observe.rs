//! `observe`: what happened since one last looked.

use super::scan::Scan;
use super::{Event, EventType, Filter, Filters};
use crate::board::Board;
use crate::clock::Timestamp;
use crate::error::Result;
use crate::follow::{cursor_of, is_ahead};
use crate::revision::Revision;
use crate::store::{Key, OnBusy, Prefetch};

/// The log of a board: `board.events()`.
#[derive(Clone, Copy)]
pub struct Events<'a> {
    pub(crate) board: &'a Board,
}

/// Where to start.
#[derive(Clone, Debug, PartialEq)]
pub enum Since {
    /// After what this session's reader has read. Its first reading starts at its registration.
    Cursor {
        /// The session.
        session: String,
        /// Which of its readers.
        reader: String,
    },
    /// At this moment. No cursor is used or moved.
    Moment(Timestamp),
    /// After this revision. No cursor is used or moved.
    Revision(Revision),
    /// The last events, this many. No cursor is used or moved.
    Last(u64),
}

/// What is to be read: from where, up to where.
#[derive(Clone, Debug)]
pub struct Observation {
    /// What was read before.
    pub after: Revision,
    /// When that was, as far as it is known.
    pub since: Option<Timestamp>,
    /// The board's revision when the observation began: it reads up to here.
    pub until: Revision,
    /// Whether events had been pruned before the observation began that its reader had not read.
    pub compacted: bool,
    /// Which events are wanted.
    pub(crate) filters: Filters,
}

/// A part of what is to be read: whole commits.
#[derive(Clone, Debug, PartialEq)]
pub struct Batch {
    /// The events; none if all that was left has been pruned, or if none of what was looked at is wanted.
    pub events: Vec<Event>,
    /// Where the next batch starts: the last that was looked at.
    pub last: Revision,
    /// Whether events were pruned between the last batch and this one.
    pub compacted: bool,
}

impl Events<'_> {
    /// Finds out what there is to read.
    ///
    /// ```
    /// # use blackboard::{Board, agent::Register, event::Since, Revision};
    /// # let board = Board::memory();
    /// board.agents().register(&Register::named("Ivy"))?;
    /// let observation = board.events().observe(&Since::Revision(Revision::ZERO), &[])?;
    /// let batch = board.events().next(&observation, observation.after, 100)?.unwrap();
    /// assert_eq!(batch.events[0].summary, "Agent \"Ivy\" registered on project \"none\"");
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn observe(&self, since: &Since, types: &[EventType]) -> Result<Observation> {
        match types {
            [] => self.observe_filtered(since, &[]),
            types => self.observe_filtered(since, &[Filter::of_types(types.iter().cloned())]),
        }
    }

    /// As [`Events::observe`], with filters: an event is wanted if one of them wants it, or if there is none.
    ///
    /// ```
    /// # use blackboard::{Board, entry::{Value, Write}, event::{Filter, Since}, Revision};
    /// # let board = Board::memory();
    /// board.scope("team-1").write(&Write::new("task:1", Value::of("open")?))?;
    /// board.scope("team-1").write(&Write::new("note", Value::of("hello")?))?;
    /// let tasks = [Filter::of_keys("task:*")];
    /// let observation = board.events().observe_filtered(&Since::Revision(Revision::ZERO), &tasks)?;
    /// let batch = board.events().next(&observation, observation.after, 100)?.unwrap();
    /// let change = batch.events[0].entry.as_ref().unwrap();
    /// assert_eq!((batch.events.len(), change.value.clone()), (1, Some(Value::of("open")?)));
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn observe_filtered(&self, since: &Since, filters: &[Filter]) -> Result<Observation> {
        let filters = Filters::new(filters)?;
        let mut wanted = vec![Prefetch::Revision];
        match since {
            Since::Cursor { session, reader } => wanted.extend([
                Prefetch::Row(Key::Cursor(session.clone(), reader.clone())),
                Prefetch::Row(Key::Agent(session.clone())),
            ]),
            Since::Moment(moment) => wanted.push(Prefetch::RevisionBefore(*moment)),
            Since::Last(count) => wanted.push(Prefetch::RevisionBack(Revision::MAX, *count)),
            Since::Revision(_) => {}
        }
        self.board.read(&wanted, |tx| {
            let until = tx.revision()?;
            let (after, time) = match since {
                Since::Cursor { session, reader } => {
                    let (revision, time) = cursor_of(tx, session, reader)?;
                    (revision, Some(time))
                }
                Since::Moment(moment) => (tx.revision_before(*moment)?, Some(*moment)),
                Since::Revision(revision) => (*revision, None),
                Since::Last(count) => (tx.revision_back(Revision::MAX, *count)?, None),
            };
            if after > until {
                return Err(is_ahead(after, until));
            }
            let floor = tx.floor()?;
            let compacted = after < floor && !matches!(since, Since::Moment(_));
            Ok(Observation {
                after: after.max(floor),
                since: time,
                until,
                compacted,
                filters: filters.clone(),
            })
        })
    }

    /// The next events after `after`, about `limit` of them, or fewer if their values are large; `None` at the end.
    /// Nothing is held between two calls, so a slow reader is in nobody's way; what was pruned in the meantime is said
    /// in the batch. A batch may be empty where events were looked at and none was wanted.
    pub fn next(&self, observation: &Observation, after: Revision, limit: usize) -> Result<Option<Batch>> {
        let Observation { until, filters, .. } = observation;
        let scan = Scan { after, until: *until, filters, limit, values: true };
        let prefetch = [Prefetch::Events(scan.page()), Prefetch::Revision];
        let (scanned, floor) = self.board.read_list(&prefetch, |tx| Ok((scan.read(tx)?, tx.floor()?)))?;
        // What was pruned after the end of the observation is none of its business.
        let floor = floor.min(*until);
        let compacted = after < floor;
        let last = scanned.last.or(compacted.then_some(floor));
        Ok(last.map(|last| Batch { events: scanned.events(), last, compacted }))
    }

    /// Stores how far a reader has read, once that was written out. Never waits: if somebody writes at this moment,
    /// the reader sees its last batch again. A cursor never goes back.
    pub fn advance(&self, session: &str, reader: &str, revision: Revision) -> Result<()> {
        self.board.store_cursor(OnBusy::Fail, session, reader, revision).map(drop)
    }
}
