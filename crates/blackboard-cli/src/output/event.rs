//! Events, for people and programs.

use std::cell::Cell;
use std::rc::Rc;

use blackboard::event::{Event, Observation, TargetType};
use blackboard::{Board, Revision};
use serde::Serialize;

use super::{Result, Screen, escape, time};
use crate::envelope::Answer;
use crate::outcome::Render;

/// How many events are in memory at once.
const BATCH: usize = 1000;

/// The answer of `observe`: the log is read in batches while it is printed, so that neither a million events nor a
/// slow reader are in anybody's way.
pub struct Observed {
    board: Board,
    observation: Observation,
    reading: Reading,
    limit: usize,
    last_shown: Rc<Cell<Revision>>,
}

/// From where the log is read, which decides what a person is told about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// From where the session stopped; the next observation goes on from here.
    OnFromCursor,
    /// From where the session stopped, without moving that place.
    PeekFromCursor,
    /// From a moment on.
    FromMoment,
}

#[derive(Serialize)]
struct Position {
    revision: Revision,
    compacted: bool,
    more: bool,
}

/// What was shown.
struct Shown {
    count: usize,
    /// Whether events were pruned before they could be shown.
    pruned: bool,
    /// Whether events were left out because of the limit.
    more: bool,
}

/// What happened, in one harmless line: its type, its summary, and the work item that it is about. Summaries have only
/// the title, which no command takes.
pub fn described(event: &Event) -> String {
    // A crafted board may have any text as the type.
    let event_type = escape(event.event_type.as_str());
    let text = format!("{event_type:<20} {}", escape(&event.summary));
    match (event.target_type, &event.target_id) {
        (Some(TargetType::WorkItem), Some(item)) => format!("{text} [{}]", escape(item)),
        _ => text,
    }
}

impl Observed {
    /// What `observation` found on `board`, at most about `limit` events of it.
    pub fn new(board: Board, observation: Observation, reading: Reading, limit: Option<usize>) -> Observed {
        let last_shown = Rc::new(Cell::new(observation.after));
        Observed { board, observation, reading, limit: limit.unwrap_or(usize::MAX), last_shown }
    }

    /// How far it was read once it was shown.
    pub fn last_shown(&self) -> Rc<Cell<Revision>> {
        Rc::clone(&self.last_shown)
    }

    /// Shows every event up to the limit.
    fn each(&self, mut show: impl FnMut(&Event) -> Result) -> Result<Shown> {
        let (mut shown, mut pruned) = (0, false);
        let mut after = self.observation.after;
        while shown < self.limit {
            let batch = self.board.events().next(&self.observation, after, BATCH.min(self.limit - shown))?;
            let Some(batch) = batch else {
                // Everything was seen, also what a filter left out.
                self.last_shown.set(self.observation.until);
                break;
            };
            batch.events.iter().try_for_each(&mut show)?;
            shown += batch.events.len();
            pruned |= batch.compacted;
            after = batch.last;
            self.last_shown.set(after);
        }
        let more = shown >= self.limit && self.has_events_after(after)?;
        Ok(Shown { count: shown, pruned, more })
    }

    /// Whether a wanted event follows. A filter may leave out everything between.
    fn has_events_after(&self, mut after: Revision) -> Result<bool> {
        while let Some(batch) = self.board.events().next(&self.observation, after, 1)? {
            if !batch.events.is_empty() {
                return Ok(true);
            }
            after = batch.last;
        }
        Ok(false)
    }
}

impl Render for Observed {
    fn json(&self, answer: &mut Answer<'_>) -> Result {
        let mut items = answer.items()?;
        let shown = self.each(|event| items.push(event))?;
        let compacted = self.observation.compacted || shown.pruned;
        items.finish(&Position { revision: self.last_shown.get(), compacted, more: shown.more })
    }

    fn human(&self, screen: &mut Screen<'_>) -> Result {
        match (self.observation.since, self.reading) {
            (None, _) => screen.line(format_args!("Events (times are UTC):"))?,
            (Some(since), Reading::FromMoment) => {
                screen.line(format_args!("Events since {since} (times are UTC):"))?;
            }
            (Some(since), _) => {
                screen.line(format_args!("Events since last observation ({since}; times are UTC):"))?;
            }
        }
        if self.observation.compacted {
            screen.line(format_args!(
                "Older events have been pruned; this starts with the oldest that is kept."
            ))?;
        }
        screen.gap()?;
        let mut last = None;
        let mut day = screen.now().midnight();
        let Shown { count: shown, pruned, more } = self.each(|event| {
            last = Some(event.timestamp);
            if event.timestamp.midnight() != day {
                day = event.timestamp.midnight();
                screen.line(format_args!("{}:", time::date(day)))?;
            }
            screen.line(format_args!("{}  {}", time::of_day(event.timestamp), described(event)))
        })?;
        if pruned {
            screen.line(format_args!(
                "Events were pruned while this was read; some of them are missing here."
            ))?;
        }
        match last {
            Some(last) => {
                screen.gap()?;
                let events = if shown == 1 { "event" } else { "events" };
                match self.reading {
                    Reading::OnFromCursor => screen.line(format_args!(
                        "{shown} {events} | Next check will start from {}",
                        time::of_day(last)
                    ))?,
                    _ => screen.line(format_args!("{shown} {events}"))?,
                }
                match self.reading {
                    _ if !more => Ok(()),
                    Reading::OnFromCursor => screen
                        .line(format_args!("More events follow. Check again, or use --limit N for more.")),
                    _ => screen.line(format_args!(
                        "More events follow. Add --after {}, or use --limit N for more.",
                        self.last_shown.get()
                    )),
                }
            }
            None => screen.line(format_args!("Nothing new.")),
        }
    }

    fn is_list(&self) -> bool {
        true
    }
}
