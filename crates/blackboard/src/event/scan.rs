//! Reading the log for somebody: whole commits, of them the events that are wanted, with what they carry.

use super::filter::{Filters, Found, Names};
use super::{Event, EventType};
use crate::error::Result;
use crate::revision::Revision;
use crate::store::{Page, Tx};

/// How many bytes of values a batch has before it ends, with the commit that makes it so large.
const ENOUGH_BYTES: usize = 4 * 1024 * 1024;

/// How many lines of the log are looked at for one batch where more than their type decides whether they are wanted.
const LOOKED_AT: usize = 1000;

/// What was found.
pub(super) struct Scanned {
    found: Vec<Found>,
    /// How far it was read: the last event that was looked at, wanted or not; none if there is nothing to look at.
    pub(super) last: Option<Revision>,
    /// Whether that was all, up to the end that was asked for.
    pub(super) complete: bool,
}

impl Scanned {
    /// The events that are wanted. Runs code of the caller's, so it comes after the read.
    pub(super) fn events(self) -> Vec<Event> {
        self.found.into_iter().filter_map(Found::decide).collect()
    }
}

/// Reads on after `after`, up to `until`: about `limit` wanted events, and as many commits as have room in memory.
pub(super) fn scan(
    tx: &dyn Tx,
    after: Revision,
    until: Revision,
    filters: &Filters,
    limit: usize,
) -> Result<Scanned> {
    let by_type = filters.want_all_of_types();
    let looked_at = if by_type { limit } else { limit.max(LOOKED_AT) };
    let types: &[EventType] = filters.types();
    let lines = tx.events(&Page { after, until, types, limit: looked_at })?;
    let complete = lines.len() < looked_at;
    let names = Names::default();
    let mut scanned = Scanned { found: Vec::new(), last: None, complete };
    let (mut bytes, mut commit) = (0, None);
    for line in lines {
        let full = scanned.found.len() >= limit || bytes >= ENOUGH_BYTES;
        if full && commit != Some(line.commit_id) {
            scanned.complete = false;
            break;
        }
        commit = Some(line.commit_id);
        scanned.last = Some(line.id);
        if let Some(found) = filters.take(line, tx, &names)? {
            bytes += found.event.entry.as_ref().map_or(0, |change| change.bytes());
            scanned.found.push(found);
        }
    }
    Ok(scanned)
}
