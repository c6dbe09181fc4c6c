//! Pages of the event log, without the values of entries.
//!
//! `newest` and `oldest` are for readers that page through it. `lines` is for a server that sends the event log to
//! its clients.

use super::{Event, EventType, Events};
use crate::clock::Timestamp;
use crate::entry::compacted;
use crate::error::Result;
use crate::follow::is_ahead;
use crate::revision::Revision;
use crate::scope::Guard;
use crate::store::{Page, Prefetch, Tx};

/// How many events are read together.
pub(super) const WINDOW: u64 = 1000;

/// How many events are read for one page. The next page continues from there.
const LOOKED_AT: u64 = 200_000;

/// Conditions for events. Every condition has to hold.
#[derive(Clone, Debug, PartialEq)]
pub struct Lines {
    /// Events after this revision.
    pub after: Option<Revision>,
    /// Events before this revision.
    pub before: Option<Revision>,
    /// Events up to this position in the event log: the oldest kept event is at 1. Ids may have gaps, positions have
    /// none.
    pub position: Option<u64>,
    /// Events from this moment on.
    pub since: Option<Timestamp>,
    /// Events of one of these types; all if empty.
    pub types: Vec<EventType>,
    /// Events that this session caused, or that are about it.
    pub session: Option<String>,
    /// The most events.
    pub limit: usize,
    /// A page ends with the event whose summary and metadata make it this many bytes; unlimited by default.
    pub most_bytes: Option<usize>,
}

impl Default for Lines {
    /// The last 200.
    fn default() -> Lines {
        Lines {
            after: None,
            before: None,
            position: None,
            since: None,
            types: Vec::new(),
            session: None,
            limit: 200,
            most_bytes: None,
        }
    }
}

/// A page of the event log.
#[derive(Clone, Debug, PartialEq)]
pub struct LogPage {
    /// The events.
    pub events: Vec<Event>,
    /// Where the next page continues: after this revision.
    pub next: Option<Revision>,
    /// The board's revision when the page was read.
    pub revision: Revision,
}

/// A page of the event log, and its position.
#[derive(Clone, Debug, PartialEq)]
pub struct LogView {
    /// The events.
    pub events: Vec<Event>,
    /// Where the next page continues: before this revision if the newest come first, after it otherwise.
    pub next: Option<Revision>,
    /// The board's revision when the page was read.
    pub revision: Revision,
    /// How many events are kept.
    pub kept: u64,
    /// The oldest of them.
    pub oldest: Option<Revision>,
    /// The positions of the first and the last event of this page; the oldest kept event is at 1.
    pub positions: Option<(u64, u64)>,
}

impl Events<'_> {
    /// The last events, the newest first. Continuing before the [`next`](LogView::next) of a page misses nothing and
    /// shows nothing twice, whatever happens meanwhile.
    ///
    /// ```
    /// # use blackboard::{Board, event::Lines, work::Create};
    /// # let board = Board::memory();
    /// for id in ["a", "b", "c"] {
    ///     board.work().create(&Create::new(id, "A task"))?;
    /// }
    /// let page = board.events().newest(&Lines { limit: 2, ..Lines::default() })?;
    /// let ids: Vec<_> = page.events.iter().map(|event| event.id.get()).collect();
    /// assert_eq!(ids, [3, 2]);
    /// let rest = board.events().newest(&Lines { before: page.next, ..Lines::default() })?;
    /// assert_eq!((rest.events.len(), rest.next), (1, None));
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn newest(&self, wanted: &Lines) -> Result<LogView> {
        self.view(wanted, backwards)
    }

    /// The first events, the oldest first. Continuing after the [`next`](LogView::next) of a page misses nothing and
    /// shows nothing twice.
    ///
    /// ```
    /// # use blackboard::{Board, Revision, event::Lines, work::Create};
    /// # let board = Board::memory();
    /// for id in ["a", "b", "c"] {
    ///     board.work().create(&Create::new(id, "A task"))?;
    /// }
    /// let page = board.events().oldest(&Lines { after: Some(Revision::new(1)), limit: 1, ..Lines::default() })?;
    /// let ids: Vec<_> = page.events.iter().map(|event| event.id.get()).collect();
    /// assert_eq!((ids, page.positions, page.kept), (vec![2], Some((2, 2)), 3));
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn oldest(&self, wanted: &Lines) -> Result<LogView> {
        self.view(wanted, forwards)
    }

    fn view(self, wanted: &Lines, read: Read) -> Result<LogView> {
        self.board.read(&[Prefetch::Revision], |tx| {
            let (revision, floor) = (tx.revision()?, tx.floor()?);
            tx.prefetch(&[Prefetch::CountEvents(floor, revision)])?;
            let kept = tx.count_events(floor, revision)?;
            let mut lowest = floor.max(wanted.after.unwrap_or(Revision::ZERO));
            if let Some(since) = wanted.since {
                tx.prefetch(&[Prefetch::RevisionBefore(since)])?;
                lowest = lowest.max(tx.revision_before(since)?);
            }
            let mut end = wanted.before.map_or(revision, |before| before.previous().min(revision));
            if let Some(newer) = wanted.position.and_then(|position| kept.checked_sub(position)) {
                tx.prefetch(&[Prefetch::RevisionBack(revision, newer)])?;
                end = end.min(tx.revision_back(revision, newer)?);
            }
            let guard = Guard::of_board(self.board, tx);
            let (events, next) = read(tx, &guard, wanted, lowest, end)?;
            let ends = events.first().zip(events.last()).map(|(first, last)| [first.id, last.id]);
            let counted = ends.iter().flatten().map(|id| Prefetch::CountEvents(floor, *id));
            let back = kept.checked_sub(1).map(|newer| Prefetch::RevisionBack(revision, newer));
            tx.prefetch(&counted.chain(back).collect::<Vec<_>>())?;
            // The revision before all kept events but the oldest is that of the oldest.
            let oldest = kept.checked_sub(1).map(|newer| tx.revision_back(revision, newer)).transpose()?;
            let positions = match ends {
                Some([first, last]) => Some((tx.count_events(floor, first)?, tx.count_events(floor, last)?)),
                None => None,
            };
            Ok(LogView { events, next, revision, kept, oldest, positions })
        })
    }

    /// The events after `after`, oldest first, about `limit` of them: a commit is never split. Refuses with
    /// `compacted` if some of them are pruned.
    ///
    /// ```
    /// # use blackboard::{Board, Revision, work::Create};
    /// # let board = Board::memory();
    /// board.work().create(&Create::new("a", "A task"))?;
    /// let page = board.events().lines(Revision::ZERO, 100)?;
    /// assert_eq!((page.events.len(), page.next), (1, None));
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn lines(&self, after: Revision, limit: usize) -> Result<LogPage> {
        let page = Page::after(after, limit);
        self.board.read(&[Prefetch::Revision, Prefetch::Events(page)], |tx| {
            let (revision, floor) = (tx.revision()?, tx.floor()?);
            if after > revision {
                return Err(is_ahead(after, revision));
            }
            if after < floor {
                return Err(compacted(after, floor));
            }
            let mut events = tx.events(&page)?;
            let next = events.last().map(|last| last.id).filter(|last| *last < revision);
            Guard::of_board(self.board, tx).retain_readable(&mut events)?;
            Ok(LogPage { events, next, revision })
        })
    }
}

/// Reads the matching events after the first revision, up to and including the second one, in one direction.
type Read = fn(&dyn Tx, &Guard<'_>, &Lines, Revision, Revision) -> Result<(Vec<Event>, Option<Revision>)>;

/// Reads from `end` back to the revision after `lowest`.
fn backwards(
    tx: &dyn Tx,
    guard: &Guard<'_>,
    wanted: &Lines,
    lowest: Revision,
    end: Revision,
) -> Result<(Vec<Event>, Option<Revision>)> {
    let window = wanted.window();
    let (mut found, mut until, mut looked_at) = (PageBuilder::new(wanted), end, 0);
    while until > lowest {
        tx.prefetch(&[Prefetch::RevisionBack(until, window)])?;
        let after = tx.revision_back(until, window)?.max(lowest);
        let page = Page { after, until, types: &wanted.types, limit: usize::MAX };
        tx.prefetch(&[Prefetch::Events(page)])?;
        let mut events = tx.events(&page)?;
        guard.retain_readable(&mut events)?;
        if let Some(next) = found.add(events.into_iter().rev()) {
            return Ok((found.events, Some(next)));
        }
        looked_at += window;
        until = after;
        if looked_at >= LOOKED_AT && until > lowest {
            return Ok((found.events, Some(until.next())));
        }
    }
    Ok((found.events, None))
}

/// Reads the events after `lowest`, up to `end`.
fn forwards(
    tx: &dyn Tx,
    guard: &Guard<'_>,
    wanted: &Lines,
    lowest: Revision,
    end: Revision,
) -> Result<(Vec<Event>, Option<Revision>)> {
    let window = wanted.window();
    let (mut found, mut after, mut looked_at) = (PageBuilder::new(wanted), lowest, 0);
    while after < end {
        tx.prefetch(&[Prefetch::CountEvents(after, end)])?;
        let left = tx.count_events(after, end)?;
        if left == 0 {
            // The end is in a gap.
            break;
        }
        let newer = left.saturating_sub(window);
        tx.prefetch(&[Prefetch::RevisionBack(end, newer)])?;
        let until = tx.revision_back(end, newer)?;
        let page = Page { after, until, types: &wanted.types, limit: usize::MAX };
        tx.prefetch(&[Prefetch::Events(page)])?;
        let mut events = tx.events(&page)?;
        guard.retain_readable(&mut events)?;
        if let Some(next) = found.add(events.into_iter()) {
            return Ok((found.events, Some(next)));
        }
        looked_at += window;
        after = until;
        if looked_at >= LOOKED_AT && after < end {
            return Ok((found.events, Some(after)));
        }
    }
    Ok((found.events, None))
}

impl Lines {
    /// How many events are read together. One more than requested shows whether there is a next page.
    fn window(&self) -> u64 {
        if self.is_filtered() { WINDOW } else { WINDOW.min(self.limit.max(1) as u64).saturating_add(1) }
    }

    /// Whether events may be omitted.
    fn is_filtered(&self) -> bool {
        !self.types.is_empty() || self.session.is_some()
    }

    fn is_wanted(&self, event: &Event) -> bool {
        self.session.as_deref().is_none_or(|session| {
            event.actor_id.as_deref() == Some(session) || event.target_id.as_deref() == Some(session)
        })
    }
}

/// The content of a page so far.
struct PageBuilder<'a> {
    wanted: &'a Lines,
    events: Vec<Event>,
    bytes: usize,
}

impl PageBuilder<'_> {
    fn new(wanted: &Lines) -> PageBuilder<'_> {
        PageBuilder { wanted, events: Vec::new(), bytes: 0 }
    }

    /// Adds the matching events. If the page is full before the end, returns the last revision that is in it.
    fn add(&mut self, events: impl Iterator<Item = Event>) -> Option<Revision> {
        let most_bytes = self.wanted.most_bytes.unwrap_or(usize::MAX).max(1);
        for event in events.filter(|event| self.wanted.is_wanted(event)) {
            if self.events.len() == self.wanted.limit.max(1) || self.bytes >= most_bytes {
                return self.events.last().map(|last| last.id);
            }
            let metadata = event.metadata.as_ref().map_or(0, |metadata| metadata.as_str().len());
            self.bytes = self.bytes.saturating_add(event.summary.len() + metadata);
            self.events.push(event);
        }
        None
    }
}
