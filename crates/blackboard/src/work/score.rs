//! `work list --show-scores`: an order in which no item waits forever.
//!
//! The score of an item is the weight of its priority, and grows with its age: an old P3 item comes before a new P2 item,
//! and no age makes it come before a new P1 item.

use serde::Serialize;

use super::{CountedItems, ListedItem, Priority, Work, WorkFilter, WorkItem};
use crate::clock::Timestamp;
use crate::error::Result;

/// What a day of age adds, and at most.
const PER_DAY: f64 = 5.0;
const MAX_FOR_AGE: f64 = 50.0;

const DAY: f64 = 86_400.0;

/// An item with its score.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ScoredItem {
    /// The item.
    #[serde(flatten)]
    pub listed: ListedItem,
    /// Its score, with one decimal.
    pub effective_score: f64,
}

/// The items with the highest scores, and how many items match.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ScoredItems {
    /// As many as the filter allows, the highest score first.
    pub items: Vec<ScoredItem>,
    /// How many items match.
    pub total: usize,
}

impl WorkItem {
    /// Its score: 100, 40 or 10 for its priority, and 5 for each day of its age, up to 50.
    ///
    /// ```
    /// # use blackboard::{Board, work::{Create, Priority}};
    /// # let board = Board::memory();
    /// let item = board.work().create(&Create::new("fix-tests", "Fix the tests"))?.item;
    /// assert_eq!(item.priority, Priority::P2);
    /// assert_eq!(item.score(item.created_at), 40.0);
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn score(&self, now: Timestamp) -> f64 {
        let weight = match self.priority {
            Priority::P1 => 100.0,
            Priority::P2 => 40.0,
            Priority::P3 => 10.0,
        };
        let days = now.since(self.created_at).as_secs_f64() / DAY;
        let score = weight + (days * PER_DAY).min(MAX_FOR_AGE);
        (score * 10.0).round() / 10.0
    }
}

impl Work<'_> {
    /// The same items as [`Work::list_counted`], the highest score first.
    pub fn list_scored(&self, filter: &WorkFilter) -> Result<ScoredItems> {
        let now = self.board.clock().now();
        let CountedItems { items, total } =
            self.list_counted(&WorkFilter { limit: None, ..filter.clone() })?;
        let score = |listed: ListedItem| ScoredItem { effective_score: listed.item.score(now), listed };
        let mut items: Vec<_> = items.into_iter().map(score).collect();
        // Items with the same score keep their order.
        items.sort_by(|one, other| other.effective_score.total_cmp(&one.effective_score));
        items.truncate(filter.limit.unwrap_or(usize::MAX));
        Ok(ScoredItems { items, total })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::store::conformance::an_item;

    #[test]
    fn score_grows_with_age_up_to_a_limit() {
        for (priority, hours, expected) in [
            (Priority::P1, 0, 100.0),
            (Priority::P2, 0, 40.0),
            (Priority::P3, 0, 10.0),
            (Priority::P3, 12, 12.5),
            (Priority::P3, 24 * 7, 45.0),
            (Priority::P3, 24 * 10, 60.0),
            (Priority::P3, 24 * 1000, 60.0),
            (Priority::P1, 24 * 1000, 150.0),
        ] {
            let item = WorkItem { priority, ..an_item("x") };
            let now = item.created_at.plus(Duration::from_hours(hours));
            assert!((item.score(now) - expected).abs() < 0.01, "{priority} after {hours} h");
        }
    }
}
