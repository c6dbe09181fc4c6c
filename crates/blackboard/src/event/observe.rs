//! `observe`: reads the events since a cursor or moment.

use super::page::WINDOW;
use super::scan::{Batch, Scan};
use super::{EventType, Filter, Filters};
use crate::board::Board;
use crate::clock::Timestamp;
use crate::error::Result;
use crate::follow::{cursor_of, is_ahead, not_reached};
use crate::revision::Revision;
use crate::store::{Key, OnBusy, Prefetch};

/// The event log of a board: `board.events()`.
#[derive(Clone, Copy)]
pub struct Events<'a> {
    pub(crate) board: &'a Board,
}

/// Where to start.
#[derive(Clone, Debug, PartialEq)]
pub enum Since {
    /// After the cursor of this session's reader. The first read starts at the registration.
    Cursor {
        /// The session.
        session: String,
        /// The name of the reader.
        reader: String,
    },
    /// At this moment. No cursor is used or moved.
    Moment(Timestamp),
    /// After this revision. No cursor is used or moved.
    Revision(Revision),
    /// The last events that match, this many. No cursor is used or moved.
    Last(u64),
}

/// A range of the event log to read.
#[derive(Clone, Debug)]
pub struct Observation {
    /// The revision to start after.
    pub after: Revision,
    /// The time of that revision, if it is known.
    pub since: Option<Timestamp>,
    /// The board's revision when the observation began: it reads up to here.
    pub until: Revision,
    /// Whether events that its reader had not read were pruned before the observation began.
    pub compacted: bool,
    /// The filters.
    pub(crate) filters: Filters,
}

impl Events<'_> {
    /// Prepares to read events of some types.
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

    /// As [`Events::observe`], with filters: an event matches if one of them matches, or if there is none.
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
        let found;
        let since = match since {
            Since::Last(count) if *count > 0 && !filters.want_everything() => {
                found = Since::Revision(self.revision_before_last(*count, &filters)?);
                &found
            }
            since => since,
        };
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
                return Err(match since {
                    Since::Revision(_) => not_reached(after, until),
                    _ => is_ahead(after, until),
                });
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

    /// The revision before the last matching events, this many; that before all kept events if fewer match. The event log
    /// has no index for filters, so it is read back in windows.
    fn revision_before_last(self, count: u64, filters: &Filters) -> Result<Revision> {
        let (mut end, mut newest) = (Revision::MAX, Vec::new());
        loop {
            let prefetch = [Prefetch::Revision, Prefetch::RevisionBack(end, WINDOW)];
            let (after, until, floor) = self.board.read(&prefetch, |tx| {
                let floor = tx.floor()?;
                Ok((tx.revision_back(end, WINDOW)?.max(floor), end.min(tx.revision()?), floor))
            })?;
            let filters = filters.clone();
            let window = Observation { after, since: None, until, compacted: false, filters };
            let (mut matching, mut read) = (Vec::new(), after);
            while let Some(batch) = self.next(&window, read, usize::MAX)? {
                matching.extend(batch.events.iter().map(|event| event.id));
                read = batch.last;
            }
            newest.extend(matching.into_iter().rev());
            let first = usize::try_from(count - 1).ok().and_then(|older| newest.get(older));
            if let Some(first) = first {
                return Ok(first.previous());
            }
            if after <= floor {
                return Ok(after);
            }
            end = after;
        }
    }

    /// The next events after `after`, about `limit` of them, or fewer if their values are large; `None` at the end.
    /// No lock is held between two calls, so a slow reader delays no other process. The batch reports if events were
    /// pruned meanwhile. A batch is empty if no event matched.
    pub fn next(&self, observation: &Observation, after: Revision, limit: usize) -> Result<Option<Batch>> {
        self.next_batch(observation, after, limit, true)
    }

    /// The same; without `values`, the events have no entry changes, which saves reading them.
    pub(crate) fn next_batch(
        self,
        observation: &Observation,
        after: Revision,
        limit: usize,
        values: bool,
    ) -> Result<Option<Batch>> {
        let Observation { until, filters, .. } = observation;
        let scan = Scan { after, until: *until, filters, limit, values, board: self.board };
        let prefetch = [Prefetch::Events(scan.page()), Prefetch::Revision];
        let (scanned, floor) = self.board.read_list(&prefetch, |tx| Ok((scan.read(tx)?, tx.floor()?)))?;
        // What was pruned after the end of the observation does not matter to it.
        let floor = floor.min(*until);
        let compacted = after < floor;
        let last = scanned.last.or(compacted.then_some(floor));
        Ok(last.map(|last| Batch { events: scanned.events(), last, compacted }))
    }

    /// Stores how far a reader has read, after the events were printed. Never waits: if another process is writing,
    /// the reader gets its last batch again. A cursor never goes back.
    pub fn advance(&self, session: &str, reader: &str, revision: Revision) -> Result<()> {
        self.board.store_cursor(OnBusy::Fail, session, reader, revision).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::{Value, Write};

    #[test]
    fn last_matching_events_are_found_behind_many_others() {
        testkit::limit_test();
        let board = Board::memory();
        let scope = board.scope("team-1");
        let write = |key: &str| scope.write(&Write::new(key, Value::null())).unwrap().revision;
        let tasks: Vec<_> = ["task:1", "task:2", "task:3"]
            .map(|key| {
                for _ in 0..=WINDOW {
                    write("note");
                }
                write(key)
            })
            .into();
        write("note");
        let filters = [Filter::of_keys("task:*")];
        let last = |count, filters: &[Filter]| {
            let observation = board.events().observe_filtered(&Since::Last(count), filters).unwrap();
            let (mut ids, mut after) = (Vec::new(), observation.after);
            while let Some(batch) = board.events().next(&observation, after, 100).unwrap() {
                ids.extend(batch.events.iter().map(|event| event.id));
                after = batch.last;
            }
            ids
        };
        for (count, expected) in [(1, &tasks[2..]), (2, &tasks[1..]), (3, &tasks[..]), (4, &tasks[..])] {
            assert_eq!(last(count, &filters), expected, "{count}");
        }
        assert_eq!(last(2, &[]), [tasks[2], tasks[2].next()]);
        assert!(last(0, &filters).is_empty());
        assert!(last(1, &[Filter::of_keys("none")]).is_empty());
    }
}
