//! What a change of entries replaces: the groups that it touches are packed again, and only pages that differ change.

use std::collections::{BTreeMap, BTreeSet};

use super::pack::{PackedPage, pack};
use super::{ContextPage, PackedEntry, PageContent, PageMap};
use crate::event::{EventType, NewEvent, TargetType};
use crate::revision::Revision;
use crate::store::{Changes, Key};

/// Where an entry belongs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PlacedEntry {
    pub(super) locality: String,
    pub(super) entry: PackedEntry,
}

/// Entries that changed since the pages were packed, by key. `None` is an entry that no longer exists.
pub(super) type ChangedEntries = BTreeMap<String, Option<PlacedEntry>>;

/// The pages that differ.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Repacked {
    /// The places of stored pages that are replaced or removed.
    pub(super) removed: Vec<usize>,
    pub(super) added: Vec<PackedPage>,
}

/// Packs the groups that a change touches: those of the pages with a changed key, and those that get one.
pub(super) fn repack(map: &PageMap, pages: &[ContextPage], changed: &ChangedEntries) -> Repacked {
    let is_changed = |entry: &PackedEntry| changed.contains_key(&entry.key);
    let holds_changed = |page: &&ContextPage| page.content.entries.iter().any(is_changed);
    let mut touched: BTreeSet<&str> =
        pages.iter().filter(holds_changed).map(|page| page.locality.as_str()).collect();
    touched.extend(changed.values().flatten().map(|placed| placed.locality.as_str()));
    let mut groups: BTreeMap<&str, Group<'_>> =
        touched.into_iter().map(|locality| (locality, Group::default())).collect();
    for (place, page) in pages.iter().enumerate() {
        let Some(group) = groups.get_mut(page.locality.as_str()) else { continue };
        group.before.push(place);
        group.entries.extend(
            page.content
                .entries
                .iter()
                .filter(|entry| !is_changed(entry))
                .map(|entry| (entry.key.as_str(), entry)),
        );
    }
    for placed in changed.values().flatten() {
        if let Some(group) = groups.get_mut(placed.locality.as_str()) {
            group.entries.insert(&placed.entry.key, &placed.entry);
        }
    }
    let mut repacked = Repacked::default();
    for (locality, Group { mut before, entries }) in groups {
        before.sort_by_key(|&place| pages[place].content.entries.first().map(|entry| entry.key.as_str()));
        let after = pack(&map.scope, locality, map.max_tokens, entries.into_values().cloned());
        let hashes: BTreeSet<&str> = after.iter().map(|page| page.hash.as_str()).collect();
        let (kept, removed): (Vec<_>, Vec<_>) =
            before.into_iter().partition(|&place| hashes.contains(pages[place].hash.as_str()));
        // Another program may have changed a row and not its hash.
        let is_kept = |page: &PackedPage| kept.iter().any(|&place| is_equal(&pages[place], page));
        let added: Vec<_> = after.iter().filter(|page| !is_kept(page)).cloned().collect();
        repacked.removed.extend(removed);
        repacked.added.extend(added);
    }
    repacked
}

fn is_equal(stored: &ContextPage, packed: &PackedPage) -> bool {
    (&stored.hash, &stored.content.entries) == (&packed.hash, &packed.entries)
}

/// One group: the places of its stored pages, and its entries by key.
#[derive(Default)]
struct Group<'a> {
    before: Vec<usize>,
    entries: BTreeMap<&'a str, &'a PackedEntry>,
}

/// What a fold changes on the board.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    /// The map that it was decided for.
    pub(super) before: PageMap,
    pub(super) cursor: Revision,
    /// The keys of pages that are replaced or removed, with their groups and hashes.
    pub(super) removed: Vec<(String, String)>,
    pub(super) added: Vec<PackedPage>,
    /// Rows that count as no pages: of an earlier mapping, or unreadable.
    pub(super) leftovers: Vec<Key>,
    /// Whether it is worth a commit: it changes pages, or saves later folds many reads.
    pub(super) is_worth_a_commit: bool,
}

/// How many pages a fold added, replaced and invalidated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) added: u64,
    pub(super) replaced: u64,
    pub(super) invalidated: u64,
}

impl Plan {
    /// The rows that it puts or removes, which a commit has to read.
    pub(super) fn keys(&self) -> Vec<Key> {
        let scope = &self.before.scope;
        let removed = self.removed.iter().map(|(locality, hash)| (locality, hash));
        let added = self.added.iter().map(|page| (&page.locality, &page.hash));
        let pages = removed
            .chain(added)
            .map(|(locality, hash)| Key::ContextPage(scope.clone(), locality.clone(), hash.clone()));
        let mut keys: Vec<_> = pages.chain(self.leftovers.iter().cloned()).collect();
        keys.sort_unstable();
        keys.dedup();
        keys
    }

    /// The changes: the pages with an event for each, and the cursor.
    pub(super) fn decide(self) -> (Changes, Counts) {
        let Plan { before, cursor, removed, added, leftovers, .. } = self;
        let (mut changes, mut counts) = (Changes::new(), Counts::default());
        let scope = before.scope.as_str();
        let mut replaced: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (locality, hash) in removed.iter().rev() {
            replaced.entry(locality).or_default().push(hash);
        }
        let put: Vec<_> = added.iter().map(|page| (page.locality.as_str(), page.hash.as_str())).collect();
        for page in &added {
            // The page at about the same place of its group.
            let old = replaced.get_mut(page.locality.as_str()).and_then(Vec::pop);
            let entries = match page.entries.len() {
                1 => "1 entry".to_owned(),
                count => format!("{count} entries"),
            };
            let (event_type, what) = match old {
                Some(old) => (EventType::PageReplaced, format!("replaced page {old}")),
                None => (EventType::PageAdded, "added".to_owned()),
            };
            let summary = format!("Page {} of scope \"{scope}\" {what}: {entries}", page.hash);
            let event = NewEvent::new(event_type, TargetType::Scope, scope, summary)
                .with("page", page.hash.as_str())
                .with("entries", page.entries.len())
                .with("tokens", page.tokens);
            changes.event(match old {
                Some(old) => event.with("replaces", old),
                None => event,
            });
            match old {
                Some(_) => counts.replaced += 1,
                None => counts.added += 1,
            }
            changes.put(ContextPage {
                scope: scope.to_owned(),
                locality: page.locality.clone(),
                hash: page.hash.clone(),
                content: PageContent::new(before.mapping, page.entries.clone()),
            });
        }
        for hash in replaced.values().flat_map(|rest| rest.iter().rev()) {
            counts.invalidated += 1;
            let summary = format!("Page {hash} of scope \"{scope}\" invalidated: no entry is left in it");
            changes.event(
                NewEvent::new(EventType::PageInvalidated, TargetType::Scope, scope, summary)
                    .with("page", *hash),
            );
        }
        let is_put = |locality: &str, hash: &str| put.contains(&(locality, hash));
        for (locality, hash) in &removed {
            if !is_put(locality, hash) {
                changes.remove(Key::ContextPage(scope.to_owned(), locality.clone(), hash.clone()));
            }
        }
        for key in leftovers {
            let is_put = matches!(&key, Key::ContextPage(_, locality, hash) if is_put(locality, hash));
            if !is_put {
                changes.remove(key);
            }
        }
        let folds = before.folds.saturating_add(1);
        changes.put(PageMap { cursor, folds, ..before }.row());
        (changes, counts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Timestamp;
    use crate::page::Grouping;

    fn a_map() -> PageMap {
        PageMap {
            scope: "s".to_owned(),
            by: Grouping::Tag,
            max_tokens: 100,
            mapping: Revision::new(1),
            cursor: Revision::new(5),
            folds: 3,
            mapped_at: Timestamp::EPOCH,
            mapped_by: "cli".to_owned(),
        }
    }

    fn packed(key: &str, revision: i64) -> PackedEntry {
        PackedEntry { key: key.to_owned(), revision: Revision::new(revision), tokens: 60 }
    }

    /// A page of one entry for each key, because two exceed the limit.
    fn stored(locality: &str, keys: &[&str]) -> Vec<ContextPage> {
        pack("s", locality, 100, keys.iter().map(|key| packed(key, 1)))
            .into_iter()
            .map(|page| ContextPage {
                scope: "s".to_owned(),
                locality: page.locality,
                hash: page.hash,
                content: PageContent::new(Revision::new(1), page.entries),
            })
            .collect()
    }

    fn change(key: &str, to: Option<(&str, i64)>) -> (String, Option<PlacedEntry>) {
        let placed = to.map(|(locality, revision)| PlacedEntry {
            locality: locality.to_owned(),
            entry: packed(key, revision),
        });
        (key.to_owned(), placed)
    }

    #[test]
    fn a_change_replaces_only_pages_that_differ() {
        use EventType::{PageAdded, PageInvalidated, PageReplaced};
        let pages: Vec<_> = [stored("g", &["a", "b", "c"]), stored("h", &["d"])].concat();
        for (changed, expected) in [
            (vec![], vec![]),
            (vec![change("x", None)], vec![]),
            (vec![change("a", Some(("g", 1)))], vec![]),
            (vec![change("a", Some(("g", 9)))], vec![PageReplaced]),
            (vec![change("a", None)], vec![PageInvalidated]),
            (vec![change("x", Some(("g", 9)))], vec![PageAdded]),
            (vec![change("x", Some(("new", 9)))], vec![PageAdded]),
            (vec![change("a", Some(("h", 9)))], vec![PageAdded, PageInvalidated]),
            (vec![change("a", None), change("x", Some(("g", 9)))], vec![PageReplaced]),
            (vec![change("a", None), change("d", None)], vec![PageInvalidated, PageInvalidated]),
        ] {
            let changed: ChangedEntries = changed.into_iter().collect();
            let Repacked { removed, added } = repack(&a_map(), &pages, &changed);
            let name = |place: usize| (pages[place].locality.clone(), pages[place].hash.clone());
            let plan = Plan {
                before: a_map(),
                cursor: Revision::new(9),
                removed: removed.into_iter().map(name).collect(),
                added,
                leftovers: Vec::new(),
                is_worth_a_commit: true,
            };
            let (decided, counts) = plan.decide();
            let events: Vec<_> = decided.events.iter().map(|event| event.event_type.clone()).collect();
            assert_eq!(events, expected, "{changed:?}");
            let gone = events.iter().filter(|event| **event != PageAdded).count();
            assert_eq!(decided.remove.len(), gone, "{changed:?}");
            let new = events.iter().filter(|event| **event != PageInvalidated).count();
            // The map is put as well.
            assert_eq!(decided.put.len(), new + 1, "{changed:?}");
            assert_eq!(counts.added + counts.replaced + counts.invalidated, events.len() as u64);
        }
    }
}
