//! Concurrent claims of the next item, on an engine without a writer lock.
//!
//! Sessions that choose the same item conflict, and all but one of them run again. A call that lost an item chooses among
//! many items, and records on the board that it did. For a short time after that every call chooses among many items,
//! also in a process that starts only then. See `docs/decisions/0018`.

use std::borrow::Cow;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::WorkItem;
use crate::clock::Timestamp;
use crate::error::Result;
use crate::revision::Revision;
use crate::store::{BookkeepingRow, Changes, Key, Prefetch, Store, Tx};
use crate::unreadable::if_readable;

/// How many items a session chooses from at most.
pub(super) const MOST_CHOICE: usize = 64;

/// How long after a recorded loss all calls choose among many items.
const LASTS: Duration = Duration::from_secs(5);

/// How old a record is when a loss replaces it. Losses come in crowds, and one record is enough for all of them.
const REPLACED_AFTER: Duration = Duration::from_secs(2);

/// The row with the last loss.
const KEY: Key = Key::BookkeepingRow(NAME);
const NAME: Cow<'static, str> = Cow::Borrowed("lost-items");

/// When a call lost an item to another session.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct LastLoss {
    at: Timestamp,
}

impl LastLoss {
    /// Whether it is less than `age` ago. A time ahead is from before the clock was set.
    fn is_within(self, age: Duration, now: Timestamp) -> bool {
        self.at <= now.plus(age) && now < self.at.plus(age)
    }
}

/// What the runs of one call show about concurrent claims.
pub(super) struct Contention {
    /// Whether there can be any: under a writer lock no other session claims between two runs.
    is_possible: bool,
    /// The item that the last run chose.
    chosen: Option<String>,
    /// How often another session claimed the item that a run had chosen.
    lost: u32,
    /// The loss that the board has recorded, of any call.
    recorded: Option<LastLoss>,
}

impl Contention {
    pub(super) fn on(store: &dyn Store) -> Contention {
        Contention { is_possible: !store.has_writer_lock(), chosen: None, lost: 0, recorded: None }
    }

    /// What [`Contention::read`] and [`Contention::spread`] read.
    pub(super) fn prefetch(&self) -> Vec<Prefetch<'static>> {
        if self.is_possible { vec![Prefetch::Row(KEY), Prefetch::Revision] } else { Vec::new() }
    }

    /// Begins a run that sees this queue.
    pub(super) fn begin(&mut self, tx: &dyn Tx, queue: &[WorkItem]) -> Result<()> {
        if !self.is_possible {
            return Ok(());
        }
        self.note(queue);
        // For information only: a record of another call causes no further run.
        let row = if_readable(tx.peek_row::<BookkeepingRow>(&KEY))?;
        self.recorded = row.and_then(|row| serde_json::from_str(&row.value).ok());
        Ok(())
    }

    /// Counts the item of the last run if another session claimed it. A run is also repeated for other reasons.
    fn note(&mut self, queue: &[WorkItem]) {
        if let Some(chosen) = self.chosen.take() {
            self.lost += u32::from(queue.iter().all(|item| item.item_id != chosen));
        }
    }

    /// The item that this run chose.
    pub(super) fn choose(&mut self, item: &WorkItem) {
        self.chosen = self.is_possible.then(|| item.item_id.clone());
    }

    /// Changes the order in which a session tries the items of a queue, if calls lose items.
    pub(super) fn spread(&self, tx: &dyn Tx, queue: &mut [WorkItem], session: &str) -> Result<()> {
        let choice = self.choice(tx.now());
        if choice > 1 {
            spread(queue, choice, (session, self.lost, tx.revision()?));
        }
        Ok(())
    }

    /// Among how many items a call chooses: among many as soon as it or another call has lost an item.
    fn choice(&self, now: Timestamp) -> usize {
        let is_known = self.recorded.is_some_and(|loss| loss.is_within(LASTS, now));
        if is_known || self.lost > 0 { MOST_CHOICE } else { 1 }
    }

    /// Records a loss of this call, unless a recent one is recorded.
    pub(super) fn record(&self, tx: &dyn Tx, changes: &mut Changes) -> Result<()> {
        let is_recent = self.recorded.is_some_and(|loss| loss.is_within(REPLACED_AFTER, tx.now()));
        if self.lost == 0 || is_recent {
            return Ok(());
        }
        if_readable(tx.row::<BookkeepingRow>(&KEY))?;
        let value = serde_json::to_string(&LastLoss { at: tx.now() }).unwrap_or_default();
        changes.put(BookkeepingRow { name: NAME, value });
        Ok(())
    }
}

/// Lets a session start at one of the first `choice` items of the same priority. `queue` is in the order of the queue.
fn spread(queue: &mut [WorkItem], choice: usize, seed: (&str, u32, Revision)) {
    let Some(priority) = queue.first().map(|first| first.priority) else { return };
    let same_priority = queue.iter().take_while(|item| item.priority == priority).count();
    let choice = same_priority.min(choice).max(1);
    let mut hasher = DefaultHasher::new();
    seed.hash(&mut hasher);
    // The remainder is smaller than `choice`, which is a `usize`.
    let start = usize::try_from(hasher.finish() % choice as u64).unwrap_or(0);
    queue[..choice].rotate_left(start);
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::store::conformance::an_item;
    use crate::work::Priority;

    fn contention(lost: u32, recorded: Option<u64>) -> Contention {
        let recorded = recorded.map(|at| LastLoss { at: Timestamp::EPOCH.plus(Duration::from_millis(at)) });
        Contention { is_possible: true, chosen: None, lost, recorded }
    }

    #[test]
    fn a_session_starts_at_one_of_the_first_items_of_the_same_priority() {
        let queue = || -> Vec<WorkItem> {
            let urgent = (0..20).map(|number| (Priority::P1, number));
            let items = urgent.chain((20..30).map(|number| (Priority::P2, number)));
            items.map(|(priority, number)| WorkItem { priority, ..an_item(&number.to_string()) }).collect()
        };
        for (choice, most) in [(1, 1), (2, 2), (4, 4), (8, 8), (16, 16), (32, 20), (64, 20)] {
            let mut first = BTreeSet::new();
            for number in 0..400 {
                let mut tried = queue();
                // Another session, or another call of the same one.
                let (session, revision) = (format!("session-{}", number % 20), Revision::new(number / 20));
                spread(&mut tried, choice, (&session, 1, revision));
                first.insert(tried[0].item_id.parse::<usize>().unwrap());
                assert!(tried[20..].iter().all(|item| item.priority == Priority::P2), "choice {choice}");
                tried.sort_by_key(|item| item.item_id.parse::<usize>().unwrap());
                assert_eq!(tried, queue(), "each item is tried once");
            }
            assert_eq!(first, (0..most).collect(), "choice {choice}");
        }
        spread(&mut [], 2, ("session", 1, Revision::ZERO));
    }

    #[test]
    fn only_an_item_that_another_session_claimed_counts_as_lost() {
        let mut contention = contention(0, None);
        for (chosen, expected) in [(None, 0), (Some("a"), 0), (Some("taken"), 1), (None, 1), (Some("b"), 1)] {
            contention.chosen = chosen.map(str::to_owned);
            contention.note(&[an_item("a"), an_item("b")]);
            assert_eq!(contention.lost, expected, "{chosen:?}");
        }
    }

    #[test]
    fn calls_choose_among_many_items_while_calls_lose_items() {
        let now = Timestamp::EPOCH.plus(Duration::from_secs(10));
        for (lost, recorded, expected) in [
            (0, None, 1),
            (1, None, 64),
            (2, None, 64),
            (0, Some(10_000), 64),
            (0, Some(5_001), 64),
            (0, Some(5_000), 1),
            (2, Some(5_000), 64),
            (0, Some(99_000), 1),
        ] {
            assert_eq!(
                contention(lost, recorded).choice(now),
                expected,
                "{lost} lost, recorded {recorded:?}"
            );
        }
    }
}
