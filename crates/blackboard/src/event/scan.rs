//! Reads complete commits of the event log, and selects the matching events with their entry changes.

use super::Event;
use super::change::Versions;
use super::filter::{Custom, Filters, Line, Names, PossibleMatch};
use crate::board::Board;
use crate::error::Result;
use crate::revision::Revision;
use crate::scope::Guard;
use crate::store::{Page, Prefetch, Tx};

/// How many bytes of values end a batch, after the commit that exceeds it.
pub(crate) const ENOUGH_BYTES: usize = 4 * 1024 * 1024;

/// How many events are read for one batch if more than their type decides whether they match.
const LOOKED_AT: usize = 1000;

/// How many events that may match are read together at least, so that the rest of a commit costs no further read.
const AT_LEAST: usize = 64;

/// A part of the event log: complete commits.
#[derive(Clone, Debug, PartialEq)]
pub struct Batch {
    /// The events. It is empty if the rest was pruned, or if no event matches.
    pub events: Vec<Event>,
    /// Where the next batch starts: after the last event that was read, matching or not.
    pub last: Revision,
    /// Whether events were pruned between the last batch and this one.
    pub compacted: bool,
}

/// The result of a scan.
pub(crate) struct Scanned {
    events: Vec<Event>,
    /// The events, by index, for which conditions in the caller's code still have to run.
    undecided: Vec<(usize, Vec<Custom>)>,
    /// How far it was read: the last event that was read, matching or not; none if there is none.
    pub(crate) last: Option<Revision>,
    /// Whether it reached the requested end.
    pub(crate) complete: bool,
    /// Whether the caller may not read one of the events that were read.
    pub(crate) hides: bool,
}

impl Scanned {
    /// All of these events.
    fn of(events: Vec<Event>, complete: bool) -> Scanned {
        let last = events.last().map(|event| event.id);
        Scanned { last, events, undecided: Vec::new(), complete, hides: false }
    }

    /// The same without the events, by index, that are hidden. It was read as far as before.
    fn without(mut self, hidden: &[bool]) -> Scanned {
        let mut hidden = hidden.iter();
        self.events.retain(|_| hidden.next() != Some(&true));
        self
    }

    /// Where the next batch starts, if this one started after `after` and was read up to `until`.
    pub(crate) fn end(&self, after: Revision, until: Revision) -> Revision {
        if self.complete { until } else { self.last.unwrap_or(after) }
    }

    /// The matching events. Runs the caller's code, so it comes after the read.
    pub(crate) fn events(self) -> Vec<Event> {
        let Scanned { events, undecided, .. } = self;
        if undecided.is_empty() {
            return events;
        }
        let mut conditions = undecided.into_iter().peekable();
        let is_wanted = |(place, event): &(usize, Event)| match conditions.next_if(|(at, _)| at == place) {
            Some((_, own)) => own.iter().any(|condition| condition(event)),
            None => true,
        };
        events.into_iter().enumerate().filter(is_wanted).map(|(_, event)| event).collect()
    }
}

/// A part of the event log to read: about `limit` matching events, and as many commits as fit into memory.
pub(crate) struct Scan<'a> {
    /// Events after this revision.
    pub(crate) after: Revision,
    /// Events up to and including this revision.
    pub(crate) until: Revision,
    /// The filters.
    pub(crate) filters: &'a Filters,
    /// The most events.
    pub(crate) limit: usize,
    /// Whether events of entries get their entry changes.
    pub(crate) values: bool,
    /// The board, whose caller reads it.
    pub(crate) board: &'a Board,
}

impl Scan<'_> {
    /// What it reads first.
    pub(crate) fn page(&self) -> Page<'_> {
        let by_type = self.filters.want_all_of_types();
        let limit = if by_type { self.limit } else { self.limit.max(LOOKED_AT) };
        Page { after: self.after, until: self.until, types: self.filters.types(), limit }
    }

    /// Reads it. The caller has announced the page.
    pub(crate) fn read(&self, tx: &dyn Tx) -> Result<Scanned> {
        let page = self.page();
        let lines = tx.events(&page)?;
        let complete = lines.len() < page.limit;
        // What the caller may not read is passed over like what no filter matches.
        let hidden = Guard::of_board(self.board, tx).hidden(&lines)?;
        let hides = hidden.contains(&true);
        let mut scanned = match (self.filters.want_all_of_types(), self.values) {
            (true, true) => with_entries(tx, lines, complete)?.without(&hidden),
            (true, false) => Scanned::of(lines, complete).without(&hidden),
            (false, values) => {
                let mut hidden = hidden.into_iter();
                let lines = lines.into_iter().map(|event| match hidden.next() {
                    Some(true) => Line::hidden(event),
                    Some(false) | None => self.filters.look_at(event),
                });
                let mut scanned = wanted(tx, lines.collect(), complete, self.limit)?;
                if !values {
                    scanned.events.iter_mut().for_each(|event| event.entry = None);
                }
                scanned
            }
        };
        scanned.hides = hides;
        Ok(scanned)
    }
}

/// All of these events, with their entry changes. Most events have none and are not touched.
fn with_entries(tx: &dyn Tx, mut events: Vec<Event>, complete: bool) -> Result<Scanned> {
    let mut versions = Versions::of(tx, events.iter(), Vec::new(), ENOUGH_BYTES)?;
    let mut budget = PageBudget::default();
    let mut fit = 0;
    for event in &mut events {
        // Values that were read ahead are not more than those that make the batch large enough.
        if !budget.is_for(event, false) || !versions.include(event) {
            break;
        }
        event.entry = versions.take(event).map(Box::new);
        budget.take(event);
        fit += 1;
    }
    let complete = complete && fit == events.len();
    events.truncate(fit);
    Ok(Scanned::of(events, complete))
}

/// The events that match the filters, with their entry changes.
fn wanted(tx: &dyn Tx, lines: Vec<Line<'_>>, complete: bool, limit: usize) -> Result<Scanned> {
    let names = Names::default();
    let mut budget = PageBudget::default();
    let mut scanned =
        Scanned { events: Vec::new(), undecided: Vec::new(), last: None, complete, hides: false };
    let mut versions = Versions::default();
    let mut lines = lines.into_iter();
    while let Some(line) = lines.next() {
        if !budget.is_for(&line.event, scanned.events.len() >= limit) {
            scanned.complete = false;
            break;
        }
        scanned.last = Some(line.event.id);
        budget.commit = Some(line.event.commit_id);
        if line.is_possible() && !versions.include(&line.event) {
            let rest = std::iter::once(&line).chain(lines.as_slice()).filter(|line| line.is_possible());
            let next = rest.take(limit.saturating_sub(scanned.events.len()).max(AT_LEAST));
            let names = next.clone().flat_map(Line::names).map(Prefetch::Row);
            versions = Versions::of(tx, next.map(|line| &line.event), names.collect(), ENOUGH_BYTES)?;
        }
        if let Some(PossibleMatch { event, conditions }) = line.take(tx, &mut versions, &names)? {
            budget.take(&event);
            if !conditions.is_empty() {
                scanned.undecided.push((scanned.events.len(), conditions));
            }
            scanned.events.push(event);
        }
    }
    Ok(scanned)
}

/// The size of a batch.
#[derive(Default)]
struct PageBudget {
    bytes: usize,
    commit: Option<Revision>,
}

impl PageBudget {
    /// Whether an event fits into the batch: a commit that was begun is read to its end.
    fn is_for(&self, event: &Event, full: bool) -> bool {
        (!full && self.bytes < ENOUGH_BYTES) || self.commit == Some(event.commit_id)
    }

    fn take(&mut self, event: &Event) {
        self.commit = Some(event.commit_id);
        self.bytes += event.entry.as_ref().map_or(0, |change| change.bytes());
    }
}
