//! Dependencies: the rows that verbs read about them, and the rule that they share.
//!
//! An open item is blocked if, and only if, one of its blockers is open or it is on hold (`hold.rs`). Every verb that completes, resets, deletes
//! or releases an item updates its dependents in the same commit.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::Bound;

use super::{Dependency, ListedItem, Status, WorkItem};
use crate::error::{Code, Error, Refusal, Result};
use crate::event::{EventType, NewEvent, TargetType};
use crate::hint::Hint;
use crate::store::{Changes, Key, Prefetch, Range, Tx};

/// How many items a chain of dependencies may have.
const MAX_CHAIN: usize = 10_000;

/// How many blocked items of a list are read with a query each. If there are more, all dependencies are read at once.
const ONE_BY_ONE: usize = 64;

/// How many blocked items of the board are read with a query each. If there are more, all dependencies are read.
const ITEM_BY_ITEM: usize = 1000;

/// How many dependencies are read together.
const DEPENDENCIES_AT_ONCE: usize = 10_000;

/// A stored dependency, and the status of the blocker.
#[derive(Clone, Debug)]
pub(super) struct Blocker {
    pub(super) dependency: Dependency,
    /// `None` if the item does not exist yet.
    pub(super) status: Option<Status>,
}

impl Blocker {
    pub(super) fn id(&self) -> &str {
        &self.dependency.blocked_by
    }

    pub(super) fn is_open(&self) -> bool {
        self.status != Some(Status::Completed)
    }
}

/// All blockers of an item, in the order in which they were added.
pub(super) fn blockers_of(tx: &dyn Tx, item: &str) -> Result<Vec<Blocker>> {
    let range = Range::blockers_of(item);
    tx.prefetch(&[Prefetch::Range(range.clone())])?;
    let dependencies = tx.rows::<Dependency>(&range)?;
    prefetch_blockers(tx, &dependencies)?;
    with_statuses(tx, dependencies)
}

/// Announces the blockers of these dependencies.
fn prefetch_blockers(tx: &dyn Tx, dependencies: &[Dependency]) -> Result<()> {
    if dependencies.is_empty() {
        return Ok(());
    }
    let rows = dependencies.iter().map(|one| Prefetch::Row(Key::WorkItem(one.blocked_by.clone())));
    tx.prefetch(&rows.collect::<Vec<_>>())
}

fn with_statuses(tx: &dyn Tx, dependencies: Vec<Dependency>) -> Result<Vec<Blocker>> {
    dependencies
        .into_iter()
        .map(|dependency| Ok(Blocker { status: status_of(tx, &dependency.blocked_by)?, dependency }))
        .collect()
}

/// The ids of those blockers that are not completed.
pub(super) fn open_among(blockers: &[Blocker]) -> Vec<String> {
    blockers.iter().filter(|blocker| blocker.is_open()).map(|blocker| blocker.id().to_owned()).collect()
}

/// The ids of those blockers that do not exist yet.
pub(super) fn missing_among(blockers: &[Blocker]) -> Vec<String> {
    let missing = blockers.iter().filter(|blocker| blocker.status.is_none());
    missing.map(|blocker| blocker.id().to_owned()).collect()
}

/// The blockers of an item for a sentence, each marked that does not exist.
///
/// ```
/// let [open, missing] = [["design".to_owned(), "review".to_owned()].to_vec(), vec!["review".to_owned()]];
/// assert_eq!(blackboard::work::list_blockers(&open, &missing), "design, review (not created)");
/// ```
pub fn list_blockers(open: &[String], missing: &[String]) -> String {
    let mark = |id: &String| if missing.contains(id) { format!("{id} (not created)") } else { id.clone() };
    open.iter().map(mark).collect::<Vec<_>>().join(", ")
}

/// The items, each with all of its blockers. A blocker is read once, and only if it is not one of the items.
pub(crate) fn with_blockers(tx: &dyn Tx, items: Vec<WorkItem>) -> Result<Vec<ListedItem>> {
    let dependencies = dependencies_of(tx, &items)?;
    let statuses = blocker_statuses(tx, &items, &dependencies)?;
    let status_of = |blocker: &str| statuses.get(blocker).copied().flatten();
    let blockers_of = |item: &WorkItem| {
        let blockers = dependencies.get(item.item_id.as_str()).into_iter().flatten();
        let blockers = blockers.map(|dependency| dependency.blocked_by.as_str());
        let open = blockers.clone().filter(|blocker| status_of(blocker) != Some(Status::Completed));
        let missing = blockers.filter(|blocker| status_of(blocker).is_none());
        (open.map(str::to_owned).collect(), missing.map(str::to_owned).collect())
    };
    let blockers: Vec<(Vec<String>, Vec<String>)> = items.iter().map(blockers_of).collect();
    let listed = items.into_iter().zip(blockers).map(|(item, (open_blockers, missing_blockers))| {
        ListedItem { item, open_blockers, missing_blockers }
    });
    Ok(listed.collect())
}

/// The dependencies of those items that are blocked.
fn dependencies_of<'i>(tx: &dyn Tx, items: &'i [WorkItem]) -> Result<HashMap<&'i str, Vec<Dependency>>> {
    // Every blocked item names its first blocker, so the others need no query.
    let blocked = items.iter().filter(|item| item.blocked_by.is_some());
    let blocked: Vec<&str> = blocked.map(|item| item.item_id.as_str()).collect();
    if blocked.len() > ONE_BY_ONE {
        let mut all = all_dependencies(tx)?;
        return Ok(blocked.into_iter().filter_map(|item| Some((item, all.remove(item)?))).collect());
    }
    if !blocked.is_empty() {
        let ranges = blocked.iter().map(|item| Prefetch::Range(Range::blockers_of(item)));
        tx.prefetch(&ranges.collect::<Vec<_>>())?;
    }
    blocked.into_iter().map(|item| Ok((item, tx.rows::<Dependency>(&Range::blockers_of(item))?))).collect()
}

/// The statuses of all blockers; `None` for one that does not exist yet. A list omits an unreadable item: that one
/// exists, and may be open.
fn blocker_statuses<'i>(
    tx: &dyn Tx,
    items: &'i [WorkItem],
    dependencies: &'i HashMap<&str, Vec<Dependency>>,
) -> Result<HashMap<&'i str, Option<Status>>> {
    let mut statuses = HashMap::new();
    if dependencies.is_empty() {
        return Ok(statuses);
    }
    statuses.extend(items.iter().map(|item| (item.item_id.as_str(), Some(item.status))));
    let blockers = dependencies.values().flatten().map(|dependency| dependency.blocked_by.as_str());
    let others: BTreeSet<&str> = blockers.filter(|blocker| !statuses.contains_key(blocker)).collect();
    if !others.is_empty() {
        let announced = others.iter().flat_map(|&blocker| {
            [Prefetch::Row(Key::WorkItem(blocker.to_owned())), Prefetch::Any(one_item(blocker))]
        });
        tx.prefetch(&announced.collect::<Vec<_>>())?;
    }
    for blocker in others {
        // A probe costs less than reading a missing row, which has to be probed anyway.
        let status = if tx.any(&one_item(blocker))? {
            status_of(tx, blocker)?.or(Some(Status::Blocked))
        } else {
            None
        };
        statuses.insert(blocker, status);
    }
    Ok(statuses)
}

/// Announces what [`missing_blockers`] reads first.
pub(crate) fn prefetch_missing_blockers() -> Prefetch<'static> {
    Prefetch::Keys(Range::work_queue(Status::Blocked), ITEM_BY_ITEM + 1)
}

/// The ids of missing items that block others: the first `limit`, in order. It reads only keys, so that it also names
/// the blockers of an unreadable row.
pub(crate) fn missing_blockers(tx: &dyn Tx, limit: usize) -> Result<Vec<String>> {
    let queue = Range::work_queue(Status::Blocked);
    let blocked = readable_keys(tx.keys(&queue, ITEM_BY_ITEM + 1)?)?;
    let (blocked, mut blockers) = if blocked.len() <= ITEM_BY_ITEM {
        let blocked = blocked.into_iter().filter_map(item_id).collect();
        let blockers = blockers_item_by_item(tx, &blocked)?;
        (blocked, blockers)
    } else {
        tx.prefetch(&[Prefetch::Keys(queue.clone(), usize::MAX)])?;
        let blocked = readable_keys(tx.keys(&queue, usize::MAX)?)?.into_iter().filter_map(item_id).collect();
        let blockers = blockers_of_all(tx, &blocked)?;
        (blocked, blockers)
    };
    // An item that is blocked itself exists.
    blockers.retain(|blocker| !blocked.contains(blocker));
    let blockers: Vec<String> = blockers.into_iter().collect();
    let mut missing = Vec::new();
    for chunk in blockers.chunks(ITEM_BY_ITEM) {
        tx.prefetch(&chunk.iter().map(|id| Prefetch::Any(one_item(id))).collect::<Vec<_>>())?;
        for id in chunk {
            if missing.len() == limit {
                return Ok(missing);
            }
            if !tx.any(&one_item(id))? {
                missing.push(id.clone());
            }
        }
    }
    Ok(missing)
}

/// The blockers of these items, with a query for each.
fn blockers_item_by_item(tx: &dyn Tx, items: &HashSet<String>) -> Result<BTreeSet<String>> {
    let ranges: Vec<Range> = items.iter().map(|item| Range::blockers_of(item)).collect();
    if !ranges.is_empty() {
        let keys = ranges.iter().map(|range| Prefetch::Keys(range.clone(), usize::MAX));
        tx.prefetch(&keys.collect::<Vec<_>>())?;
    }
    let mut blockers = BTreeSet::new();
    for range in &ranges {
        let keys = readable_keys(tx.keys(range, usize::MAX)?)?;
        blockers.extend(keys.into_iter().filter_map(dependency_ids).map(|(_, blocker)| blocker));
    }
    Ok(blockers)
}

/// The blockers of these items, from all dependencies.
fn blockers_of_all(tx: &dyn Tx, items: &HashSet<String>) -> Result<BTreeSet<String>> {
    let mut blockers = BTreeSet::new();
    let mut range = Range::dependencies();
    loop {
        tx.prefetch(&[Prefetch::Keys(range.clone(), DEPENDENCIES_AT_ONCE)])?;
        let keys = tx.keys(&range, DEPENDENCIES_AT_ONCE)?;
        let is_end = keys.len() < DEPENDENCIES_AT_ONCE;
        let mut last = None;
        for (item, blocker) in readable_keys(keys)?.into_iter().filter_map(dependency_ids) {
            if items.contains(&item) {
                blockers.insert(blocker.clone());
            }
            last = Some(vec![item.as_str().into(), blocker.as_str().into()]);
        }
        match last {
            Some(last) if !is_end => range.from = Bound::Excluded(last),
            _ => return Ok(blockers),
        }
    }
}

/// The keys that can be read.
fn readable_keys(keys: Vec<Result<Key>>) -> Result<Vec<Key>> {
    keys.into_iter().filter(|key| !key.as_ref().is_err_and(Error::is_unreadable_row)).collect()
}

fn item_id(key: Key) -> Option<String> {
    if let Key::WorkItem(item) = key { Some(item) } else { None }
}

/// The blocked item, and its blocker.
fn dependency_ids(key: Key) -> Option<(String, String)> {
    if let Key::Dependency(item, blocker) = key { Some((item, blocker)) } else { None }
}

/// All dependencies by the blocked item, each list in the order of [`Range::blockers_of`].
fn all_dependencies(tx: &dyn Tx) -> Result<HashMap<String, Vec<Dependency>>> {
    let mut all: HashMap<String, Vec<Dependency>> = HashMap::new();
    tx.prefetch(&[Prefetch::Range(Range::dependencies())])?;
    for dependency in tx.rows::<Dependency>(&Range::dependencies())? {
        all.entry(dependency.item_id.clone()).or_default().push(dependency);
    }
    for dependencies in all.values_mut() {
        dependencies.sort_by(|a, b| (a.created_at, &a.blocked_by).cmp(&(b.created_at, &b.blocked_by)));
    }
    Ok(all)
}

/// A blocker that a request names.
#[derive(Clone, Debug)]
pub(super) struct NamedBlocker {
    pub(super) id: String,
    /// `None` if the item does not exist yet.
    pub(super) status: Option<Status>,
    /// Whether it blocks the item already.
    pub(super) is_known: bool,
    /// Whether it is blocked by the item itself, directly or through others.
    pub(super) waits_for_item: bool,
}

impl NamedBlocker {
    pub(super) fn must_not_close_a_cycle(&self, item: &str) -> Result<()> {
        if self.waits_for_item { Err(cycle(item, &self.id)) } else { Ok(()) }
    }
}

/// Announces an item and its blockers.
fn prefetch_item(item: &str) -> [Prefetch<'static>; 2] {
    [Prefetch::Row(Key::WorkItem(item.to_owned())), Prefetch::Range(Range::blockers_of(item))]
}

/// Announces what [`named_blockers`] reads, except for the blockers of the blockers.
pub(super) fn prefetch_named(item: &str, ids: &[String]) -> impl Iterator<Item = Prefetch<'static>> {
    ids.iter().flat_map(move |id| {
        let dependency = Prefetch::Row(Key::Dependency(item.to_owned(), id.clone()));
        prefetch_item(id).into_iter().chain([dependency])
    })
}

/// The state of the blockers that a request names for `item`, each once.
pub(super) fn named_blockers(tx: &dyn Tx, item: &str, ids: &[String]) -> Result<Vec<NamedBlocker>> {
    let mut named: Vec<NamedBlocker> = Vec::new();
    for id in ids {
        if named.iter().any(|known| known.id == *id) {
            continue;
        }
        let blocker = NamedBlocker {
            id: id.clone(),
            status: status_of(tx, id)?,
            is_known: tx.get(&Key::Dependency(item.to_owned(), id.clone()))?.is_some(),
            waits_for_item: waits_for(tx, id, item)?,
        };
        if blocker.status.is_none() && !blocker.is_known {
            crate::text::check_id("blocking work item", id)?;
        }
        named.push(blocker);
    }
    Ok(named)
}

/// An open item, with its blockers after the verb.
#[derive(Clone, Debug)]
pub(super) struct Dependent {
    pub(super) item: WorkItem,
    pub(super) open_blockers: Vec<String>,
}

/// The dependents of `blocker`, in their state after it is open, or after it is not.
pub(super) fn dependents_of(tx: &dyn Tx, blocker: &str, will_be_open: bool) -> Result<Vec<Dependent>> {
    let waiting = tx.rows::<Dependency>(&Range::dependents_of(blocker))?;
    dependents_among(tx, waiting, |other| if other.id() == blocker { will_be_open } else { other.is_open() })
}

/// The same for several blockers, each dependent once. It announces what it reads.
pub(super) fn dependents_of_all(
    tx: &dyn Tx,
    blockers: &BTreeSet<String>,
    will_be_open: bool,
) -> Result<Vec<Dependent>> {
    let ranges: Vec<Range> = blockers.iter().map(|blocker| Range::dependents_of(blocker)).collect();
    tx.prefetch(&ranges.iter().cloned().map(Prefetch::Range).collect::<Vec<_>>())?;
    let mut waiting: Vec<Dependency> = Vec::new();
    for range in &ranges {
        for dependency in tx.rows::<Dependency>(range)? {
            if !waiting.iter().any(|known| known.item_id == dependency.item_id) {
                waiting.push(dependency);
            }
        }
    }
    dependents_among(
        tx,
        waiting,
        |other| {
            if blockers.contains(other.id()) { will_be_open } else { other.is_open() }
        },
    )
}

/// The open items of these dependencies, each with those of its blockers that will be open.
fn dependents_among(
    tx: &dyn Tx,
    waiting: Vec<Dependency>,
    will_be_open: impl Fn(&Blocker) -> bool,
) -> Result<Vec<Dependent>> {
    if waiting.is_empty() {
        return Ok(Vec::new());
    }
    let next: Vec<_> = waiting.iter().flat_map(|dependency| prefetch_item(&dependency.item_id)).collect();
    tx.prefetch(&next)?;
    let mut open = Vec::new();
    for dependency in waiting {
        let item = tx.row::<WorkItem>(&Key::WorkItem(dependency.item_id))?;
        let Some(item) = item.filter(|item| item.status != Status::Completed) else { continue };
        let dependencies = tx.rows::<Dependency>(&Range::blockers_of(&item.item_id))?;
        open.push((item, dependencies));
    }
    let next = open.iter().flat_map(|(_, dependencies)| dependencies);
    let next = next.map(|dependency| Prefetch::Row(Key::WorkItem(dependency.blocked_by.clone())));
    tx.prefetch(&next.collect::<Vec<_>>())?;
    let mut dependents = Vec::new();
    for (item, dependencies) in open {
        let mut blockers = with_statuses(tx, dependencies)?;
        blockers.retain(&will_be_open);
        let open_blockers = blockers.into_iter().map(|blocker| blocker.dependency.blocked_by).collect();
        dependents.push(Dependent { item, open_blockers });
    }
    Ok(dependents)
}

/// Updates dependents to match their blockers. Returns the ids of those that are no longer blocked.
pub(super) fn update_dependents(
    dependents: Vec<Dependent>,
    session: Option<&str>,
    changes: &mut Changes,
) -> Vec<String> {
    let mut unblocked = Vec::new();
    for Dependent { mut item, open_blockers } in dependents {
        let was_blocked = item.status == Status::Blocked;
        follow_blockers(&mut item, &open_blockers, session, changes);
        if was_blocked && item.status != Status::Blocked {
            unblocked.push(item.item_id);
        }
    }
    unblocked
}

/// Updates one item to match its blockers, with an event if that changes anything.
pub(super) fn follow_blockers(
    item: &mut WorkItem,
    open: &[String],
    session: Option<&str>,
    changes: &mut Changes,
) {
    let is_blocked = !open.is_empty() || item.is_on_hold();
    let is_in_line =
        item.blocked_by.as_ref() == open.first() && (item.status == Status::Blocked) == is_blocked;
    if !is_in_line {
        follow_with_event(item, open, session, changes);
    }
}

/// Updates one item to match its blockers, with an event even if it stays the same: one of several dependencies was
/// removed.
pub(super) fn follow_with_event(
    item: &mut WorkItem,
    open: &[String],
    session: Option<&str>,
    changes: &mut Changes,
) {
    let before = item.status;
    let is_held_back = !open.is_empty() || item.is_on_hold();
    item.status = match before {
        Status::Completed => Status::Completed,
        Status::Available | Status::Claimed | Status::Blocked if is_held_back => Status::Blocked,
        Status::Available | Status::Claimed | Status::Blocked if item.claimed_by.is_some() => Status::Claimed,
        Status::Available | Status::Claimed | Status::Blocked => Status::Available,
    };
    let is_blocked = item.status == Status::Blocked;
    item.blocked_by = open.first().filter(|_| is_blocked).cloned();
    item.revision = changes.event(if !is_blocked {
        let summary = format!("\"{}\" is no longer blocked", item.title);
        NewEvent::new(EventType::WorkUnblocked, TargetType::WorkItem, &item.item_id, summary).by(session)
    } else if open.is_empty() {
        let summary = format!("\"{}\" is on hold", item.title);
        blocked_event(item, open, summary, session)
    } else if before == Status::Blocked {
        let summary = format!("\"{}\" is still blocked by {}", item.title, open.join(", "));
        blocked_event(item, open, summary, session)
    } else {
        let summary = format!("\"{}\" is blocked by {}", item.title, open.join(", "));
        blocked_event(item, open, summary, session)
    });
    changes.put(item.clone());
}

pub(super) fn blocked_event(
    item: &WorkItem,
    blockers: &[String],
    summary: String,
    session: Option<&str>,
) -> NewEvent {
    NewEvent::new(EventType::WorkBlocked, TargetType::WorkItem, &item.item_id, summary)
        .by(session)
        .with("blocked_by", blockers.to_vec())
}

/// The range with only this item.
fn one_item(item: &str) -> Range {
    Range::work_items().from(item).up_to(item)
}

/// Those of these items that do not exist. One that cannot be read exists.
pub(super) fn missing_of(tx: &dyn Tx, items: Vec<String>) -> Result<Vec<String>> {
    if !items.is_empty() {
        tx.prefetch(&items.iter().map(|item| Prefetch::Any(one_item(item))).collect::<Vec<_>>())?;
    }
    let mut missing = Vec::new();
    for item in items {
        if !tx.any(&one_item(&item))? {
            missing.push(item);
        }
    }
    Ok(missing)
}

fn status_of(tx: &dyn Tx, item: &str) -> Result<Option<Status>> {
    Ok(tx.row::<WorkItem>(&Key::WorkItem(item.to_owned()))?.map(|item| item.status))
}

/// Whether `item` blocks `blocker`, directly or through others, or is `blocker` itself.
fn waits_for(tx: &dyn Tx, blocker: &str, item: &str) -> Result<bool> {
    let mut seen = BTreeSet::new();
    let mut waiting = vec![blocker.to_owned()];
    while let Some(next) = waiting.pop() {
        if next == item {
            return Ok(true);
        }
        if seen.len() > MAX_CHAIN {
            return Err(Error::invalid(format!(
                "work item {blocker} is blocked by more than {MAX_CHAIN} others"
            )));
        }
        if seen.insert(next.clone()) {
            let range = Range::blockers_of(&next);
            tx.prefetch(&[Prefetch::Range(range.clone())])?;
            let dependencies = tx.rows::<Dependency>(&range)?;
            waiting.extend(dependencies.into_iter().map(|dependency| dependency.blocked_by));
        }
    }
    Ok(false)
}

fn cycle(item: &str, blocker: &str) -> Error {
    if item == blocker {
        return Refusal::new(Code::DependencyCycle, format!("work item {item} cannot block itself"))
            .hint("name another item")
            .into();
    }
    Refusal::new(Code::DependencyCycle, format!("dependency cycle: {blocker} is already blocked by {item}"))
        .hint(Hint::RemoveBlocker { item: blocker.to_owned(), blocker: item.to_owned() })
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::conformance::an_item;

    #[test]
    fn item_is_blocked_if_and_only_if_it_has_an_open_blocker() {
        use Status::{Available, Blocked, Claimed, Completed};
        for (before, shown, holder, open, after, expected) in [
            (Available, None, None, &[][..], Available, None),
            (Available, None, None, &["a", "b"], Blocked, Some("is blocked by a, b")),
            (Claimed, None, Some("me"), &["a"], Blocked, Some("is blocked by a")),
            (Blocked, Some("a"), None, &["a", "b"], Blocked, None),
            (Blocked, Some("a"), None, &["b"], Blocked, Some("is still blocked by b")),
            (Blocked, Some("a"), None, &[], Available, Some("is no longer blocked")),
            (Blocked, Some("a"), Some("me"), &[], Claimed, Some("is no longer blocked")),
            (Completed, None, Some("me"), &[], Completed, None),
        ] {
            let mut item = WorkItem {
                status: before,
                blocked_by: shown.map(str::to_owned),
                claimed_by: holder.map(str::to_owned),
                ..an_item("x")
            };
            let open: Vec<_> = open.iter().map(|&id| id.to_owned()).collect();
            let mut changes = Changes::new();
            follow_blockers(&mut item, &open, None, &mut changes);
            let context = format!("{before} item that shows {shown:?} and waits for {open:?}");
            assert_eq!(item.status, after, "{context}");
            assert_eq!(item.blocked_by, open.first().cloned(), "{context}");
            let summary = expected.map(|expected| format!("\"{}\" {expected}", item.title));
            assert_eq!(changes.events.pop().map(|event| event.summary), summary, "{context}");
            assert_eq!(changes.put.len(), usize::from(expected.is_some()), "{context}");
        }
    }
}
