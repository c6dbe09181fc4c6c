//! The dependencies so far: an item must not block itself, directly or through others.

use std::collections::{HashMap, HashSet};

#[derive(Default)]
pub(super) struct Dependencies {
    blockers: HashMap<String, Vec<String>>,
    /// The items that block others.
    blocking: HashSet<String>,
}

impl Dependencies {
    pub(super) fn add(&mut self, item: &str, blocker: String) {
        self.blocking.insert(blocker.clone());
        self.blockers.entry(item.to_owned()).or_default().push(blocker);
    }

    /// Whether `blocker` is blocked by `item`, directly or through others.
    pub(super) fn closes_cycle(&self, item: &str, blocker: &str) -> bool {
        // Most items are stored after those that block them, and block nothing yet.
        if !self.blocking.contains(item) {
            return false;
        }
        let mut seen = HashSet::from([blocker]);
        let mut waiting = vec![blocker];
        while let Some(next) = waiting.pop() {
            if next == item {
                return true;
            }
            for one in self.blockers.get(next).into_iter().flatten() {
                if seen.insert(one) {
                    waiting.push(one);
                }
            }
        }
        false
    }
}
