//! The pages of a scope in one state of the board: those that are stored, with what happened after their cursor.
//!
//! Two ways lead there. If few events of entries follow the cursor and all of them are kept, they name the keys that
//! changed. Otherwise the keys and revisions of the scope are compared with those in its pages. Both read the values
//! of changed entries only, and pack the groups that they touch.

use std::collections::{BTreeSet, HashMap};

use super::pack::PackedPage;
use super::repack::{ChangedEntries, PlacedEntry, Plan, Repacked, repack};
use super::tokens::tokens_of_entry;
use super::{ContextPage, PackedEntry, PageMap};
use crate::entry::Entry;
use crate::error::Result;
use crate::event::{Event, EventType, TargetType};
use crate::metadata::Metadata;
use crate::revision::Revision;
use crate::store::record::Record;
use crate::store::{Key, Page, Prefetch, Range, Tx};
use crate::unreadable::if_readable;

/// How many events of entries are read after a cursor.
const MOST_EVENTS: usize = 2_000;

/// How many changed entries one fold packs. A caller that finds more reports how many are missing.
pub(super) const MOST_CHANGES: usize = 1_000;

/// How many events a fold without a changed page passes before it stores the cursor.
const MANY_EVENTS: usize = 500;

/// The types of the events that say which entry changed.
const ENTRY_EVENTS: &[EventType] = &[
    EventType::EntryWritten,
    EventType::EntryDeleted,
    EventType::EntryExpired,
    EventType::EntryEvicted,
    EventType::EntryPurged,
];

/// The pages of a scope.
pub(super) struct PageState {
    pub(super) map: PageMap,
    /// By group, and by key in a group.
    pub(super) pages: Vec<PackedPage>,
    /// How many entries changed that the pages do not contain yet.
    pub(super) behind: u64,
    /// What would make the stored pages equal to these.
    pub(super) plan: Plan,
}

/// The stored rows of a scope.
struct StoredPages {
    pages: Vec<ContextPage>,
    /// Rows of an earlier mapping, and rows that cannot be read or have no entries.
    leftovers: Vec<Key>,
    /// Whether the pages lack something, or have a key twice: another program changed them.
    is_damaged: bool,
}

/// Announces what [`PageState::read`] reads first.
pub(super) fn prefetch_state(map: &PageMap) -> [Prefetch<'static>; 3] {
    [Prefetch::Range(Range::pages_of(&map.scope)), Prefetch::Events(events_after(map)), Prefetch::Revision]
}

fn events_after(map: &PageMap) -> Page<'static> {
    Page { types: ENTRY_EVENTS, ..Page::after(map.cursor, MOST_EVENTS + 1) }
}

impl PageState {
    /// Reads it. The caller has announced [`prefetch_state`].
    pub(super) fn read(tx: &dyn Tx, map: PageMap) -> Result<PageState> {
        let StoredPages { pages, leftovers, is_damaged } = StoredPages::read(tx, &map)?;
        let known = changed_keys(tx, &map, is_damaged)?;
        let (keys, cursor, behind, passed) = if let Some(Changed { keys, cursor, behind, passed }) = known {
            (keys, Some(cursor), behind, passed)
        } else {
            let (keys, behind) = compare_with_entries(tx, &map, &pages)?;
            let cursor = (behind == 0).then(|| tx.revision()).transpose()?;
            (keys, cursor, behind, MANY_EVENTS)
        };
        let changed = read_entries(tx, &map, keys)?;
        let Repacked { removed, added } = repack(&map, &pages, &changed);
        let is_changed = !(removed.is_empty() && added.is_empty() && leftovers.is_empty());
        let cursor = cursor.unwrap_or(map.cursor);
        let is_worth_a_commit = is_changed || (passed >= MANY_EVENTS && cursor > map.cursor);
        let names = removed.iter().map(|&place| (pages[place].locality.clone(), pages[place].hash.clone()));
        let plan = Plan {
            before: map.clone(),
            cursor,
            removed: names.collect(),
            added: added.clone(),
            leftovers,
            is_worth_a_commit,
        };
        let replaced: BTreeSet<(&str, &str)> =
            added.iter().map(|page| (page.locality.as_str(), page.hash.as_str())).collect();
        let removed: BTreeSet<usize> = removed.into_iter().collect();
        let kept = pages.into_iter().enumerate().filter(|(place, page)| {
            !removed.contains(place) && !replaced.contains(&(page.locality.as_str(), page.hash.as_str()))
        });
        let kept: Vec<_> = kept.map(|(_, page)| PackedPage::from(page)).collect();
        let mut pages: Vec<_> = kept.into_iter().chain(added.iter().cloned()).collect();
        pages.sort_by(|one, other| {
            (one.locality.as_str(), one.first_key()).cmp(&(other.locality.as_str(), other.first_key()))
        });
        Ok(PageState { map, pages, behind, plan })
    }
}

impl From<ContextPage> for PackedPage {
    fn from(page: ContextPage) -> PackedPage {
        let ContextPage { locality, hash, content, .. } = page;
        let tokens = content.entries.iter().fold(0, |sum: u64, entry| sum.saturating_add(entry.tokens));
        PackedPage { locality, hash, entries: content.entries, tokens }
    }
}

impl StoredPages {
    fn read(tx: &dyn Tx, map: &PageMap) -> Result<StoredPages> {
        let range = Range::pages_of(&map.scope);
        let mut leftovers = Vec::new();
        let rows = match tx.rows::<ContextPage>(&range) {
            Err(error) if error.is_unreadable_row() => readable_rows(tx, &range, &mut leftovers)?,
            rows => rows?,
        };
        let mut is_damaged = !leftovers.is_empty();
        let is_page =
            |row: &ContextPage| row.content.mapping == map.mapping && !row.content.entries.is_empty();
        let (pages, others): (Vec<_>, Vec<_>) = rows.into_iter().partition(is_page);
        leftovers.extend(others.iter().map(Record::key));
        let mut keys: Vec<&str> = pages
            .iter()
            .flat_map(|page| page.content.entries.iter().map(|entry| entry.key.as_str()))
            .collect();
        let count = keys.len();
        keys.sort_unstable();
        keys.dedup();
        is_damaged |= keys.len() != count;
        Ok(StoredPages { pages, leftovers, is_damaged })
    }
}

/// The rows of a range that can be read. The keys of the others are added to `unreadable`.
fn readable_rows(tx: &dyn Tx, range: &Range, unreadable: &mut Vec<Key>) -> Result<Vec<ContextPage>> {
    tx.prefetch(&[Prefetch::Keys(range.clone(), usize::MAX)])?;
    let mut keys = Vec::new();
    for key in tx.keys(range, usize::MAX)? {
        keys.extend(if_readable(key.map(Some))?);
    }
    tx.prefetch(&keys.iter().cloned().map(Prefetch::Row).collect::<Vec<_>>())?;
    let mut rows = Vec::new();
    for key in keys {
        match tx.row::<ContextPage>(&key) {
            Err(error) if error.is_unreadable_row() => unreadable.push(key),
            row => rows.extend(row?),
        }
    }
    Ok(rows)
}

/// The keys that changed after a cursor.
struct Changed {
    keys: BTreeSet<String>,
    /// Up to where these are all.
    cursor: Revision,
    /// How many more there are.
    behind: u64,
    /// How many events were passed.
    passed: usize,
}

/// The keys of the events after the cursor; `None` if the events do not say everything: some were pruned or cannot be
/// read, there are too many, or the pages were never complete.
fn changed_keys(tx: &dyn Tx, map: &PageMap, is_damaged: bool) -> Result<Option<Changed>> {
    let is_known = map.cursor > Revision::ZERO && map.cursor >= tx.floor()? && map.cursor <= tx.revision()?;
    if is_damaged || !is_known {
        return Ok(None);
    }
    let events = tx.events(&events_after(map))?;
    if events.len() > MOST_EVENTS {
        return Ok(None);
    }
    let passed = events.len();
    let (mut keys, mut later, mut cursor) = (BTreeSet::new(), BTreeSet::new(), tx.revision()?);
    for event in events {
        let Some((scope, key)) = subject_of(&event) else { return Ok(None) };
        if scope != map.scope || keys.contains(&key) || later.contains(&key) {
            continue;
        }
        if keys.len() < MOST_CHANGES {
            keys.insert(key);
        } else {
            if later.is_empty() {
                cursor = event.id.previous();
            }
            later.insert(key);
        }
    }
    Ok(Some(Changed { keys, cursor, behind: later.len() as u64, passed }))
}

/// The scope and the key of an event of an entry. A purge erases the scope of the events before it.
fn subject_of(event: &Event) -> Option<(String, String)> {
    if event.target_type != Some(TargetType::Entry) {
        return None;
    }
    let scope = event.metadata.as_ref().map(Metadata::to_map)?.remove("scope")?;
    Some((scope.as_str()?.to_owned(), event.target_id.clone()?))
}

/// The keys whose pages differ from the entries of the scope, and how many more there are.
fn compare_with_entries(
    tx: &dyn Tx,
    map: &PageMap,
    pages: &[ContextPage],
) -> Result<(BTreeSet<String>, u64)> {
    let range = Range::entries(&map.scope, "");
    tx.prefetch(&[Prefetch::Heads(range.clone(), usize::MAX)])?;
    let heads = match tx.heads(&range, usize::MAX) {
        // Each is read by its key, and one that cannot be read is in no page.
        Err(error) if error.is_unreadable_row() => return keys_one_by_one(tx, &range, pages),
        heads => heads?,
    };
    let mut packed: HashMap<&str, Option<Revision>> = HashMap::new();
    for entry in pages.iter().flat_map(|page| page.content.entries.iter()) {
        let first = packed.insert(&entry.key, Some(entry.revision)).is_none();
        if !first {
            packed.insert(&entry.key, None);
        }
    }
    let mut changed = BTreeSet::new();
    for head in heads {
        if packed.remove(head.key.as_str()).flatten() != Some(head.revision) {
            changed.insert(head.key);
        }
    }
    changed.extend(packed.into_keys().map(str::to_owned));
    Ok(first_of(changed))
}

fn keys_one_by_one(tx: &dyn Tx, range: &Range, pages: &[ContextPage]) -> Result<(BTreeSet<String>, u64)> {
    tx.prefetch(&[Prefetch::Keys(range.clone(), usize::MAX)])?;
    let mut changed: BTreeSet<String> =
        pages.iter().flat_map(|page| page.content.entries.iter().map(|entry| entry.key.clone())).collect();
    for key in tx.keys(range, usize::MAX)? {
        if let Some(Key::Entry(_, key)) = if_readable(key.map(Some))? {
            changed.insert(key);
        }
    }
    Ok((changed, 0))
}

/// The first keys, and how many are left out.
fn first_of(mut keys: BTreeSet<String>) -> (BTreeSet<String>, u64) {
    let rest = match keys.iter().nth(MOST_CHANGES) {
        Some(key) => {
            let key = key.clone();
            keys.split_off(&key).len()
        }
        None => 0,
    };
    (keys, rest as u64)
}

/// The entries of these keys, with the groups that they belong to.
fn read_entries(tx: &dyn Tx, map: &PageMap, keys: BTreeSet<String>) -> Result<ChangedEntries> {
    let next: Vec<_> = keys.iter().map(|key| Prefetch::Entry(&map.scope, key)).collect();
    if !next.is_empty() {
        tx.prefetch(&next)?;
    }
    drop(next);
    let placed = keys.into_iter().map(|key| {
        let entry = if_readable(tx.row::<Entry>(&Key::Entry(map.scope.clone(), key.clone())))?;
        let placed = entry.map(|entry| PlacedEntry {
            locality: map.by.locality(&entry),
            entry: PackedEntry { tokens: tokens_of_entry(&entry), revision: entry.revision, key: entry.key },
        });
        Ok((key, placed))
    });
    placed.collect()
}
