//! [`View`]: the rows that an import needs, and as it changes them.
//!
//! They are read in few steps, each with one announcement, so that the round trips of a commit do not depend on the number of
//! its items. A dry run keeps the rows of its batches: a view borrows the earlier ones and copies none of them.

use std::collections::{BTreeSet, HashMap, HashSet};

use crate::agent::Agent;
use crate::error::Result;
use crate::store::{Key, Prefetch, Range, Tx};
use crate::work::{Dependency, Status, WorkItem};

/// After this many steps along dependencies, all of them are read.
const MOST_STEPS: usize = 32;

/// Rows that were read, as they are after the changes so far. They cannot be cloned, because there may be many.
#[derive(Default)]
pub(super) struct Rows {
    /// `None` for one that does not exist.
    items: HashMap<String, Option<WorkItem>>,
    blockers: HashMap<String, Vec<Dependency>>,
    dependents: HashMap<String, BTreeSet<String>>,
    agents: HashMap<String, Option<Agent>>,
    has_all_dependencies: bool,
}

impl Rows {
    /// Adds the rows of a later batch.
    pub(super) fn add(&mut self, later: Rows) {
        self.items.extend(later.items);
        self.blockers.extend(later.blockers);
        self.dependents.extend(later.dependents);
        self.agents.extend(later.agents);
        self.has_all_dependencies |= later.has_all_dependencies;
    }
}

/// The rows of a batch, and those of the batches before it.
pub(super) struct View<'r> {
    earlier: &'r Rows,
    /// What this batch has read or changed. It hides an earlier row.
    own: Rows,
}

/// What to read.
#[derive(Default)]
pub(super) struct Wanted {
    pub(super) items: BTreeSet<String>,
    /// Items whose blockers are needed.
    pub(super) blockers: BTreeSet<String>,
    /// Items whose dependents are needed.
    pub(super) dependents: BTreeSet<String>,
    pub(super) agents: BTreeSet<String>,
    /// Dependencies that may be added.
    pub(super) added: Vec<(String, String)>,
}

impl<'r> View<'r> {
    pub(super) fn after(earlier: &'r Rows) -> View<'r> {
        View { earlier, own: Rows::default() }
    }

    /// The rows of this batch.
    pub(super) fn into_rows(self) -> Rows {
        self.own
    }

    pub(super) fn item(&self, id: &str) -> Option<&WorkItem> {
        self.own.items.get(id).or_else(|| self.earlier.items.get(id))?.as_ref()
    }

    pub(super) fn set_item(&mut self, item: WorkItem) {
        self.own.items.insert(item.item_id.clone(), Some(item));
    }

    pub(super) fn agent(&self, session: &str) -> Option<&Agent> {
        self.own.agents.get(session).or_else(|| self.earlier.agents.get(session))?.as_ref()
    }

    pub(super) fn set_agent(&mut self, agent: Agent) {
        self.own.agents.insert(agent.session_id.clone(), Some(agent));
    }

    fn dependencies(&self, id: &str) -> Option<&Vec<Dependency>> {
        self.own.blockers.get(id).or_else(|| self.earlier.blockers.get(id))
    }

    fn known_dependents(&self, id: &str) -> Option<&BTreeSet<String>> {
        self.own.dependents.get(id).or_else(|| self.earlier.dependents.get(id))
    }

    fn has_all_dependencies(&self) -> bool {
        self.own.has_all_dependencies || self.earlier.has_all_dependencies
    }

    /// The blockers of an item, in the order in which they were added.
    pub(super) fn blockers(&self, id: &str) -> Vec<&str> {
        self.dependencies(id).into_iter().flatten().map(|one| one.blocked_by.as_str()).collect()
    }

    /// Those of them that are not completed.
    pub(super) fn open_blockers(&self, id: &str) -> Vec<String> {
        let is_open = |id: &&str| self.item(id).is_none_or(|item| item.status != Status::Completed);
        self.blockers(id).into_iter().filter(is_open).map(str::to_owned).collect()
    }

    pub(super) fn dependents(&self, id: &str) -> BTreeSet<String> {
        self.known_dependents(id).cloned().unwrap_or_default()
    }

    pub(super) fn add(&mut self, dependency: Dependency) {
        let (item, blocker) = (dependency.item_id.clone(), dependency.blocked_by.clone());
        let mut blockers = self.dependencies(&item).cloned().unwrap_or_default();
        blockers.push(dependency);
        blockers.sort_by(|a, b| (a.created_at, &a.blocked_by).cmp(&(b.created_at, &b.blocked_by)));
        let mut dependents = self.dependents(&blocker);
        dependents.insert(item.clone());
        self.own.blockers.insert(item, blockers);
        self.own.dependents.insert(blocker, dependents);
    }

    pub(super) fn remove(&mut self, item: &str, blocker: &str) {
        if let Some(mut blockers) = self.dependencies(item).cloned() {
            blockers.retain(|one| one.blocked_by != blocker);
            self.own.blockers.insert(item.to_owned(), blockers);
        }
        if let Some(mut dependents) = self.known_dependents(blocker).cloned() {
            dependents.remove(item);
            self.own.dependents.insert(blocker.to_owned(), dependents);
        }
    }

    /// Whether `blocker` is blocked by `item`, directly or through others, or is `item` itself.
    pub(super) fn closes_cycle(&self, item: &str, blocker: &str) -> bool {
        if item == blocker {
            return true;
        }
        if self.known_dependents(item).is_some_and(BTreeSet::is_empty) {
            return false;
        }
        let mut seen = HashSet::from([blocker]);
        let mut waiting = vec![blocker];
        while let Some(next) = waiting.pop() {
            for one in self.dependencies(next).into_iter().flatten() {
                if one.blocked_by == item {
                    return true;
                }
                if seen.insert(&one.blocked_by) {
                    waiting.push(&one.blocked_by);
                }
            }
        }
        false
    }

    fn lacks_blockers_of(&self, id: &str) -> bool {
        !self.has_all_dependencies() && self.dependencies(id).is_none()
    }

    /// Reads what is wanted and not known yet, with one announcement.
    pub(super) fn load(&mut self, tx: &dyn Tx, mut wanted: Wanted) -> Result<()> {
        let Rows { items, agents, .. } = self.earlier;
        wanted.items.retain(|id| !self.own.items.contains_key(id) && !items.contains_key(id));
        wanted.blockers.retain(|id| self.lacks_blockers_of(id));
        wanted.dependents.retain(|id| self.known_dependents(id).is_none());
        wanted.agents.retain(|id| !self.own.agents.contains_key(id) && !agents.contains_key(id));
        let added = |(item, blocker): &(String, String)| Key::Dependency(item.clone(), blocker.clone());
        let rows = wanted.items.iter().cloned().map(Key::WorkItem);
        let rows = rows.chain(wanted.agents.iter().cloned().map(Key::Agent));
        let rows = rows.chain(wanted.added.iter().map(added)).map(Prefetch::Row);
        let blockers = wanted.blockers.iter().map(|id| Prefetch::Range(Range::blockers_of(id)));
        let dependents = wanted.dependents.iter().map(|id| Prefetch::Range(Range::dependents_of(id)));
        let prefetch: Vec<_> = rows.chain(blockers).chain(dependents).collect();
        if prefetch.is_empty() {
            return Ok(());
        }
        tx.prefetch(&prefetch)?;
        for id in wanted.items {
            let row = tx.row(&Key::WorkItem(id.clone()))?;
            self.own.items.insert(id, row);
        }
        for id in wanted.blockers {
            let rows = tx.rows(&Range::blockers_of(&id))?;
            self.own.blockers.insert(id, rows);
        }
        for id in wanted.dependents {
            let rows = tx.rows::<Dependency>(&Range::dependents_of(&id))?;
            self.own.dependents.insert(id, rows.into_iter().map(|one| one.item_id).collect());
        }
        for id in wanted.agents {
            let row = tx.row(&Key::Agent(id.clone()))?;
            self.own.agents.insert(id, row);
        }
        for one in &wanted.added {
            // The commit may only write what it has read.
            tx.get(&added(one))?;
        }
        Ok(())
    }

    /// Reads the blockers of the blockers, and so on, of these items.
    pub(super) fn load_chains(&mut self, tx: &dyn Tx, from: BTreeSet<String>) -> Result<()> {
        let mut next = from;
        for _ in 0..MOST_STEPS {
            next.retain(|id| self.lacks_blockers_of(id));
            if next.is_empty() {
                return Ok(());
            }
            self.load(tx, Wanted { blockers: next.clone(), ..Wanted::default() })?;
            next = next.iter().flat_map(|id| self.blockers(id)).map(str::to_owned).collect();
        }
        tx.prefetch(&[Prefetch::Range(Range::dependencies())])?;
        let mut all: HashMap<String, Vec<Dependency>> = HashMap::new();
        for dependency in tx.rows::<Dependency>(&Range::dependencies())? {
            all.entry(dependency.item_id.clone()).or_default().push(dependency);
        }
        for (item, mut dependencies) in all {
            dependencies.sort_by(|a, b| (a.created_at, &a.blocked_by).cmp(&(b.created_at, &b.blocked_by)));
            // What is known already may have been changed.
            if self.dependencies(&item).is_none() {
                self.own.blockers.insert(item, dependencies);
            }
        }
        self.own.has_all_dependencies = true;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Timestamp;
    use crate::store::conformance::an_item;

    fn dependency(item: &str, blocker: &str) -> Dependency {
        Dependency { item_id: item.to_owned(), blocked_by: blocker.to_owned(), created_at: Timestamp::EPOCH }
    }

    #[test]
    fn a_batch_sees_the_rows_of_earlier_ones_and_copies_none() {
        testkit::limit_test();
        let none = Rows::default();
        let mut first = View::after(&none);
        for number in 0..1000 {
            first.set_item(an_item(&format!("n{number}")));
        }
        first.add(dependency("n1", "n0"));
        first.add(dependency("n2", "n0"));
        let mut earlier = first.into_rows();
        let mut second = View::after(&earlier);
        second.set_item(WorkItem { title: "New".to_owned(), ..an_item("n7") });
        second.add(dependency("n1", "n3"));
        second.remove("n2", "n0");
        assert_eq!(second.item("n7").unwrap().title, "New");
        assert!(second.item("n8").is_some() && second.item("none").is_none());
        assert_eq!((second.blockers("n1"), second.blockers("n2")), (vec!["n0", "n3"], vec![]));
        assert_eq!(second.dependents("n0"), BTreeSet::from(["n1".to_owned()]));
        let rows = second.into_rows();
        assert_eq!((rows.items.len(), rows.blockers.len(), rows.dependents.len()), (1, 2, 2));
        earlier.add(rows);
        let third = View::after(&earlier);
        assert_eq!((third.item("n7").unwrap().title.as_str(), third.blockers("n2").len()), ("New", 0));
    }
}
