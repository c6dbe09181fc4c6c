//! Looking through the log: its lines, without the values of entries that events carry.
//!
//! `newest` is for people, who begin at the end and page back; `lines` is for whoever hands the log on to many.

use super::{Event, EventType, Events};
use crate::clock::Timestamp;
use crate::entry::compacted;
use crate::error::Result;
use crate::follow::is_ahead;
use crate::revision::Revision;
use crate::store::{Page, Prefetch, Tx};

/// How many lines are read together.
const WINDOW: u64 = 1000;

/// How many lines are looked at for one page; the next page goes on from there.
const LOOKED_AT: u64 = 200_000;

/// Which lines of the log. Every condition has to hold.
#[derive(Clone, Debug, PartialEq)]
pub struct Lines {
    /// Those after this revision.
    pub after: Option<Revision>,
    /// Those before this revision.
    pub before: Option<Revision>,
    /// Those from this moment on.
    pub since: Option<Timestamp>,
    /// Those of one of these types; all if empty.
    pub types: Vec<EventType>,
    /// Those that this session caused, or that are about it.
    pub session: Option<String>,
    /// No more than this many.
    pub limit: usize,
    /// A page ends with the line whose summary and metadata make it this many bytes; however many if it is not said.
    pub most_bytes: Option<usize>,
}

impl Default for Lines {
    /// The last 200.
    fn default() -> Lines {
        Lines {
            after: None,
            before: None,
            since: None,
            types: Vec::new(),
            session: None,
            limit: 200,
            most_bytes: None,
        }
    }
}

/// A page of the log.
#[derive(Clone, Debug, PartialEq)]
pub struct LogPage {
    /// The events.
    pub events: Vec<Event>,
    /// Where the next page goes on: before this revision if the newest come first, after it otherwise.
    pub next: Option<Revision>,
    /// The board's revision when the page was read.
    pub revision: Revision,
}

impl Events<'_> {
    /// The last lines, the newest first. Going on before the [`next`](LogPage::next) of a page misses nothing and
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
    pub fn newest(&self, wanted: &Lines) -> Result<LogPage> {
        self.board.read(&[Prefetch::Revision], |tx| {
            let revision = tx.revision()?;
            let mut lowest = tx.floor()?.max(wanted.after.unwrap_or(Revision::ZERO));
            if let Some(since) = wanted.since {
                lowest = lowest.max(tx.revision_before(since)?);
            }
            let end = wanted.before.map_or(revision, |before| before.previous().min(revision));
            let (events, next) = backwards(tx, wanted, lowest, end)?;
            Ok(LogPage { events, next, revision })
        })
    }

    /// The lines after `after`, oldest first, about `limit` of them: a commit is never split. Refuses with `compacted`
    /// if some of them are pruned.
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
            let events = tx.events(&page)?;
            let next = events.last().map(|last| last.id).filter(|last| *last < revision);
            Ok(LogPage { events, next, revision })
        })
    }
}

/// Reads from `end` back to what follows `lowest`.
fn backwards(
    tx: &dyn Tx,
    wanted: &Lines,
    lowest: Revision,
    end: Revision,
) -> Result<(Vec<Event>, Option<Revision>)> {
    let is_wanted = |event: &Event| {
        wanted.session.as_deref().is_none_or(|session| {
            event.actor_id.as_deref() == Some(session) || event.target_id.as_deref() == Some(session)
        })
    };
    let limit = wanted.limit.max(1);
    let plain = wanted.types.is_empty() && wanted.session.is_none();
    // One line more than is asked for tells whether there is a next page.
    let window = if plain { WINDOW.min(limit as u64).saturating_add(1) } else { WINDOW };
    let most_bytes = wanted.most_bytes.unwrap_or(usize::MAX).max(1);
    let (mut found, mut bytes, mut until, mut looked_at) = (Vec::new(), 0_usize, end, 0);
    while until > lowest {
        let after = tx.revision_back(until, window)?.max(lowest);
        let page = Page { after, until, types: &wanted.types, limit: usize::MAX };
        tx.prefetch(&[Prefetch::Events(page)])?;
        for event in tx.events(&page)?.into_iter().rev().filter(is_wanted) {
            if found.len() == limit || bytes >= most_bytes {
                let next = found.last().map(|last: &Event| last.id);
                return Ok((found, next));
            }
            let metadata = event.metadata.as_ref().map_or(0, |metadata| metadata.as_str().len());
            bytes = bytes.saturating_add(event.summary.len() + metadata);
            found.push(event);
        }
        looked_at += window;
        until = after;
        if looked_at >= LOOKED_AT && until > lowest {
            return Ok((found, Some(until.next())));
        }
    }
    Ok((found, None))
}
