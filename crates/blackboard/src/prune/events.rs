//! The event log: removes its oldest part, by age and by size, in complete commits.

use super::BATCH;
use crate::board::Board;
use crate::entry::Tombstone;
use crate::error::Result;
use crate::event::{Event, TargetType};
use crate::revision::Revision;
use crate::store::{Changes, Key, Page, Prefetch, Tx, VersionHead};
use crate::unreadable::if_readable;

/// How many events are read at each of three positions of the event log, to estimate the size of events.
const SAMPLE: usize = 16;

/// The size of a version of an entry besides its value.
const VERSION_BYTES: usize = 200;

/// About how many bytes one transaction removes: large values take as long to remove as many rows.
const BATCH_BYTES: u64 = 4 * 1024 * 1024;

impl Board {
    /// The revision up to which one batch removes the event log, and whether more is due.
    pub(super) fn events_to_prune(&self, tx: &dyn Tx) -> Result<Option<(Revision, bool)>> {
        let floor = tx.floor()?;
        let newest = tx.revision()?;
        let oldest_kept = tx.now().minus(self.settings().keep_events);
        tx.prefetch(&[
            Prefetch::RevisionBefore(oldest_kept),
            Prefetch::CountEvents(floor, newest),
            Prefetch::RevisionBack(newest, SAMPLE as u64),
            Prefetch::RevisionBack(newest, 1),
        ])?;
        let too_old = tx.revision_before(oldest_kept)?;
        let average = average_bytes(tx, floor, newest)?;
        // Up to where the event log has to be removed so that it fits its size limit.
        let too_much = revision_back(tx, newest, self.settings().max_log_bytes / average)?;
        let due = too_old.max(too_much).min(tx.revision_back(newest, 1)?);
        if due <= floor {
            return Ok(None);
        }
        let batch = (BATCH_BYTES / average).clamp(1, BATCH as u64);
        tx.prefetch(&[Prefetch::CountEvents(floor, due)])?;
        let beyond_batch = tx.count_events(floor, due)?.saturating_sub(batch);
        let until = match revision_back(tx, due, beyond_batch)? {
            until if until > floor => end_of_commit(tx, until, newest)?,
            _ => return Ok(None),
        };
        Ok((until > floor).then_some((until, until < due)))
    }
}

/// Removes the event log up to and including `until`, and returns the number of removed events. Another call may have
/// removed them meanwhile. The newest commit is never among them, because the search excluded it.
pub(super) fn prune_events(tx: &dyn Tx, until: Revision, changes: &mut Changes) -> Result<u64> {
    let floor = tx.floor()?;
    if until <= floor {
        return Ok(0);
    }
    tx.prefetch(&prefetch_cut(floor, until))?;
    cut_log(tx, until, changes)?;
    tx.count_events(floor, until)
}

/// What [`prune_events`] reads, except for the tombstones.
pub(super) fn prefetch_cut(floor: Revision, until: Revision) -> [Prefetch<'static>; 2] {
    [Prefetch::VersionHeads(floor, until), Prefetch::CountEvents(floor, until)]
}

fn revision_back(tx: &dyn Tx, until: Revision, count: u64) -> Result<Revision> {
    tx.prefetch(&[Prefetch::RevisionBack(until, count)])?;
    tx.revision_back(until, count)
}

/// Removes the event log up to and including `until`, with everything that only this part needed: versions of entries
/// that were superseded in it, removals, and their tombstones. This is the rule for every engine.
pub(crate) fn cut_log(tx: &dyn Tx, until: Revision, changes: &mut Changes) -> Result<()> {
    let mut tombstones = Vec::new();
    let floor = tx.floor()?;
    tx.prefetch(&[Prefetch::VersionHeads(floor, until)])?;
    for VersionHead { revision, previous, removed } in tx.version_heads(floor, until)? {
        changes.remove_versions.extend(previous);
        let Some((scope, key)) = removed else { continue };
        changes.remove_versions.push(revision);
        tombstones.push((Key::Tombstone(scope, key), revision));
    }
    tx.prefetch(&tombstones.iter().map(|(key, _)| Prefetch::Row(key.clone())).collect::<Vec<_>>())?;
    for (key, revision) in tombstones {
        // A tombstone that cannot be read stays; its key cannot be used.
        let tombstone = if_readable(tx.row::<Tombstone>(&key))?;
        if tombstone.is_some_and(|tombstone| tombstone.revision == revision) {
            changes.remove(key);
        }
    }
    changes.trim_events = Some(until);
    Ok(())
}

/// The end of the commit at `revision`, or of the one before if it is the newest. The removed part ends with a
/// complete commit, as a page does, and the newest one stays.
fn end_of_commit(tx: &dyn Tx, revision: Revision, newest: Revision) -> Result<Revision> {
    let page = Page::after(revision.previous(), 1);
    tx.prefetch(&[Prefetch::Events(page)])?;
    let page = tx.events(&page)?;
    Ok(match page.last() {
        Some(last) if last.id >= newest => revision_back(tx, last.commit_id.previous(), 0)?,
        Some(last) => last.id,
        None => revision,
    })
}

/// The average size of an event with the version of its entry, from a sample.
fn average_bytes(tx: &dyn Tx, floor: Revision, newest: Revision) -> Result<u64> {
    let kept = tx.count_events(floor, newest)?;
    let middle = revision_back(tx, newest, kept - kept / 2)?;
    let end = tx.revision_back(newest, SAMPLE as u64)?;
    let pages = [floor, middle, end].map(|start| Page::after(start, SAMPLE));
    tx.prefetch(&pages.map(Prefetch::Events))?;
    let mut sample = Vec::with_capacity(pages.len() * SAMPLE);
    for page in &pages {
        // The estimate is not worth reading a commit of thousands of entries.
        sample.extend(tx.events(page)?.into_iter().take(SAMPLE));
    }
    let has_version = |event: &&Event| event.target_type == Some(TargetType::Entry);
    let versions = sample.iter().filter(has_version).map(|event| Prefetch::Version(event.id));
    tx.prefetch(&versions.collect::<Vec<_>>())?;
    let mut bytes = sample.iter().map(approximate_bytes).sum::<usize>();
    for event in sample.iter().filter(has_version) {
        let version = if_readable(tx.version(event.id))?;
        bytes += version.map_or(0, |version| VERSION_BYTES + version.entry.value.as_str().len());
    }
    Ok((bytes / sample.len().max(1)).max(1) as u64)
}

fn approximate_bytes(event: &Event) -> usize {
    let text = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    60 + event.summary.len()
        + text(&event.actor_id)
        + text(&event.target_id)
        + event.metadata.as_ref().map_or(0, |metadata| metadata.as_str().len())
}
