//! A [`Revision`] is the id of an event, and so a point in the history of the board.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The id of an event. The board's revision is that of its last event; a row's is that of the event that changed it.
///
/// The engine assigns ids inside the commit. A rule that runs before that refers to "the id that my second event will
/// get" by [`Revision::of_event`]. The engine replaces it, through [`Pending`], before anything is stored or
/// returned. So a pending revision never leaves a commit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Revision(i64);

impl Revision {
    /// Before the first event.
    pub const ZERO: Revision = Revision(0);

    /// After every event that a board can have.
    pub const MAX: Revision = Revision(i64::MAX);

    /// The revision with this id.
    pub const fn new(id: i64) -> Revision {
        Revision(id)
    }

    /// The id that the event at `index` of the current changes will get.
    pub fn of_event(index: usize) -> Revision {
        Revision(-1 - i64::try_from(index).unwrap_or(i64::MAX - 1))
    }

    /// The index of the event whose id it will be, if it is pending.
    pub fn event(self) -> Option<usize> {
        if self.0 < 0 { usize::try_from(-1 - self.0).ok() } else { None }
    }

    /// The id as a number.
    pub const fn get(self) -> i64 {
        self.0
    }

    /// The id after this one. There may be no such event.
    #[must_use]
    pub const fn next(self) -> Revision {
        Revision(self.0.saturating_add(1))
    }

    /// The id before this one, never below zero. There may be no such event. Reading after it begins with this one.
    #[must_use]
    pub const fn previous(self) -> Revision {
        Revision(if self.0 > 0 { self.0 - 1 } else { 0 })
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

/// A value with revisions that are known only when its commit has ids.
pub trait Pending {
    /// Replaces pending revisions of [`Revision::of_event`], `first` being the id of the commit's first event.
    fn resolve(&mut self, first: Revision);
}

impl Pending for Revision {
    fn resolve(&mut self, first: Revision) {
        if self.0 < 0 {
            self.0 = first.0 - 1 - self.0;
        }
    }
}

impl<T: Pending> Pending for Option<T> {
    fn resolve(&mut self, first: Revision) {
        if let Some(inner) = self {
            inner.resolve(first);
        }
    }
}

impl<T: Pending> Pending for Vec<T> {
    fn resolve(&mut self, first: Revision) {
        for inner in self {
            inner.resolve(first);
        }
    }
}

impl Pending for () {
    fn resolve(&mut self, _first: Revision) {}
}

impl Pending for u64 {
    fn resolve(&mut self, _first: Revision) {}
}

impl Pending for bool {
    fn resolve(&mut self, _first: Revision) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pending_revision_becomes_the_id_of_its_event_and_others_stay() {
        let mut revisions = vec![Revision::of_event(0), Revision::of_event(2), Revision::new(7)];
        revisions.resolve(Revision::new(40));
        assert_eq!(revisions, [Revision::new(40), Revision::new(42), Revision::new(7)]);
    }
}
