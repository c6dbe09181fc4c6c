//! [`View`]: the rows that an import needs, and as it changes them.
//!
//! They are read in few steps, each with one announcement, so that the round trips of a commit do not depend on the number of
//! its items. A dry run keeps its view from one batch to the next.

use std::collections::{BTreeSet, HashMap, HashSet};

use crate::agent::Agent;
use crate::error::Result;
use crate::store::{Key, Prefetch, Range, Tx};
use crate::work::{Dependency, Status, WorkItem};

/// After this many steps along dependencies, all of them are read.
const MOST_STEPS: usize = 32;

/// Rows of the board, after the changes so far.
#[derive(Clone, Default)]
pub(super) struct View {
    /// `None` for one that does not exist.
    items: HashMap<String, Option<WorkItem>>,
    blockers: HashMap<String, Vec<Dependency>>,
    dependents: HashMap<String, BTreeSet<String>>,
    agents: HashMap<String, Option<Agent>>,
    has_all_dependencies: bool,
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

impl View {
    pub(super) fn item(&self, id: &str) -> Option<&WorkItem> {
        self.items.get(id)?.as_ref()
    }

    pub(super) fn set_item(&mut self, item: WorkItem) {
        self.items.insert(item.item_id.clone(), Some(item));
    }

    pub(super) fn agent(&self, session: &str) -> Option<&Agent> {
        self.agents.get(session)?.as_ref()
    }

    pub(super) fn set_agent(&mut self, agent: Agent) {
        self.agents.insert(agent.session_id.clone(), Some(agent));
    }

    /// The blockers of an item, in the order in which they were added.
    pub(super) fn blockers(&self, id: &str) -> Vec<&str> {
        self.blockers.get(id).into_iter().flatten().map(|one| one.blocked_by.as_str()).collect()
    }

    /// Those of them that are not completed.
    pub(super) fn open_blockers(&self, id: &str) -> Vec<String> {
        let is_open = |id: &&str| self.item(id).is_none_or(|item| item.status != Status::Completed);
        self.blockers(id).into_iter().filter(is_open).map(str::to_owned).collect()
    }

    pub(super) fn dependents(&self, id: &str) -> BTreeSet<String> {
        self.dependents.get(id).cloned().unwrap_or_default()
    }

    pub(super) fn add(&mut self, dependency: Dependency) {
        let (item, blocker) = (dependency.item_id.clone(), dependency.blocked_by.clone());
        let blockers = self.blockers.entry(item.clone()).or_default();
        blockers.push(dependency);
        blockers.sort_by(|a, b| (a.created_at, &a.blocked_by).cmp(&(b.created_at, &b.blocked_by)));
        self.dependents.entry(blocker).or_default().insert(item);
    }

    pub(super) fn remove(&mut self, item: &str, blocker: &str) {
        if let Some(blockers) = self.blockers.get_mut(item) {
            blockers.retain(|one| one.blocked_by != blocker);
        }
        if let Some(dependents) = self.dependents.get_mut(blocker) {
            dependents.remove(item);
        }
    }

    /// Whether `blocker` is blocked by `item`, directly or through others, or is `item` itself.
    pub(super) fn closes_cycle(&self, item: &str, blocker: &str) -> bool {
        if item == blocker {
            return true;
        }
        if self.dependents.get(item).is_some_and(BTreeSet::is_empty) {
            return false;
        }
        let mut seen = HashSet::from([blocker]);
        let mut waiting = vec![blocker];
        while let Some(next) = waiting.pop() {
            for one in self.blockers.get(next).into_iter().flatten() {
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

    /// Reads what is wanted and not known yet, with one announcement.
    pub(super) fn load(&mut self, tx: &dyn Tx, mut wanted: Wanted) -> Result<()> {
        wanted.items.retain(|id| !self.items.contains_key(id));
        wanted.blockers.retain(|id| !self.has_all_dependencies && !self.blockers.contains_key(id));
        wanted.dependents.retain(|id| !self.dependents.contains_key(id));
        wanted.agents.retain(|id| !self.agents.contains_key(id));
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
            self.items.insert(id, row);
        }
        for id in wanted.blockers {
            let rows = tx.rows(&Range::blockers_of(&id))?;
            self.blockers.insert(id, rows);
        }
        for id in wanted.dependents {
            let rows = tx.rows::<Dependency>(&Range::dependents_of(&id))?;
            self.dependents.insert(id, rows.into_iter().map(|one| one.item_id).collect());
        }
        for id in wanted.agents {
            let row = tx.row(&Key::Agent(id.clone()))?;
            self.agents.insert(id, row);
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
            next.retain(|id| !self.has_all_dependencies && !self.blockers.contains_key(id));
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
            self.blockers.entry(item).or_insert(dependencies);
        }
        self.has_all_dependencies = true;
        Ok(())
    }
}
