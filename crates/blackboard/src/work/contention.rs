//! Concurrent claims of the next item, on an engine without a writer lock.
//!
//! Sessions that choose the same item conflict, and all but one of them run again. A call that lost an item chooses among
//! many items, and records on the board that it did. For a short time after that every call chooses among many items,
//! also in a process that starts only then. See `docs/decisions/0018`.

use std::borrow::Cow;
use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::WorkItem;
use crate::clock::Timestamp;
use crate::error::Result;
use crate::revision::Revision;
use crate::store::{BookkeepingRow, Changes, Key, Prefetch, Range, Store, Tx};
use crate::unreadable::if_readable;

/// How many items a session chooses from when others lose items. Every run reads that many.
pub(super) const FIRST_CHOICE: usize = 64;

/// How many times more it chooses from after each item that it lost, and the most.
const WIDENING: usize = 4;
const MOST_CHOICE: usize = 1024;

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
    /// Among how many items other calls should choose.
    #[serde(default = "first_choice")]
    choice: usize,
}

fn first_choice() -> usize {
    FIRST_CHOICE
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
    /// The queue that the last run saw.
    seen: Vec<String>,
    /// How many of these items other sessions claimed, at most, while a run lost its item.
    others: usize,
    /// How often another session claimed the item that a run had chosen.
    lost: u32,
    /// The loss that the board has recorded, of any call.
    recorded: Option<LastLoss>,
}

impl Contention {
    pub(super) fn on(store: &dyn Store) -> Contention {
        let is_possible = !store.has_writer_lock();
        Contention { is_possible, chosen: None, seen: Vec::new(), others: 0, lost: 0, recorded: None }
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

    /// Counts the item of the last run if another session claimed it. A run is also repeated for other reasons. An item
    /// that was chosen farther in the queue always counts: many sessions claim then.
    fn note(&mut self, queue: &[WorkItem]) {
        let left: HashSet<&str> = queue.iter().map(|item| item.item_id.as_str()).collect();
        let is_claimed = |id: &String| !left.contains(id.as_str());
        if self.chosen.take().as_ref().is_some_and(is_claimed) {
            self.lost += 1;
            let claimed = self.seen.iter().filter(|id| is_claimed(id)).count();
            self.others = self.others.max(claimed);
        }
        self.seen = queue.iter().map(|item| item.item_id.clone()).collect();
    }

    /// The item that this run chose.
    pub(super) fn choose(&mut self, item: &WorkItem) {
        self.chosen = self.is_possible.then(|| item.item_id.clone());
    }

    /// Changes the order in which a session tries the items of a queue, if calls lose items.
    pub(super) fn spread(&self, tx: &dyn Tx, queue: &mut [WorkItem], session: &str) -> Result<()> {
        let choice = self.choice(tx.now());
        if choice > 1 {
            spread(queue, choice, self.seed(tx, session)?);
        }
        Ok(())
    }

    /// An item of a longer part of the queue than every run reads, if calls lose items in spite of their choice. `queue`
    /// is the part of one priority.
    pub(super) fn farther(&self, tx: &dyn Tx, queue: &Range, session: &str) -> Result<Option<Key>> {
        let choice = self.choice(tx.now());
        if choice <= FIRST_CHOICE {
            return Ok(None);
        }
        tx.prefetch(&[Prefetch::Keys(queue.clone(), choice)])?;
        let mut keys = tx.keys(queue, choice)?;
        if keys.is_empty() {
            return Ok(None);
        }
        let place = place_of(self.seed(tx, session)?, keys.len());
        // One that cannot be read is not chosen.
        let Ok(key) = keys.swap_remove(place) else { return Ok(None) };
        tx.prefetch(&[Prefetch::Row(key.clone())])?;
        Ok(Some(key))
    }

    /// Another one for each session and each run.
    fn seed<'a>(&self, tx: &dyn Tx, session: &'a str) -> Result<(&'a str, u32, Revision)> {
        Ok((session, self.lost, tx.revision()?))
    }

    /// Among how many items a call chooses: among many as soon as it or another call has lost an item, and among more
    /// after each item that it lost.
    fn choice(&self, now: Timestamp) -> usize {
        let known = self.recorded.filter(|loss| loss.is_within(LASTS, now)).map(|loss| loss.choice);
        if known.is_none() && self.lost == 0 {
            return 1;
        }
        let first = known.unwrap_or(FIRST_CHOICE).clamp(FIRST_CHOICE, MOST_CHOICE);
        first.saturating_mul(WIDENING.saturating_pow(self.lost)).min(MOST_CHOICE)
    }

    /// Records a loss of this call, unless a recent one is recorded. Of the sessions that lost at the same time, about one
    /// records it: the others would have to run again because of that.
    pub(super) fn record(&self, tx: &dyn Tx, session: &str, changes: &mut Changes) -> Result<()> {
        if self.lost == 0 {
            return Ok(());
        }
        let choice = (self.choice(tx.now()) / WIDENING).max(FIRST_CHOICE);
        let is_known = self
            .recorded
            .is_some_and(|loss| loss.is_within(REPLACED_AFTER, tx.now()) && loss.choice >= choice);
        if is_known || place_of(("record", self.seed(tx, session)?), self.others.max(1)) != 0 {
            return Ok(());
        }
        if_readable(tx.row::<BookkeepingRow>(&KEY))?;
        let value = serde_json::to_string(&LastLoss { at: tx.now(), choice }).unwrap_or_default();
        changes.put(BookkeepingRow { name: NAME, value });
        Ok(())
    }
}

/// One of the first `choice` places.
fn place_of(seed: impl Hash, choice: usize) -> usize {
    let mut hasher = DefaultHasher::new();
    seed.hash(&mut hasher);
    // The remainder is smaller than `choice`, which is a `usize`.
    usize::try_from(hasher.finish() % choice.max(1) as u64).unwrap_or(0)
}

/// Lets a session start at one of the first `choice` items of the same priority. `queue` is in the order of the queue.
fn spread(queue: &mut [WorkItem], choice: usize, seed: (&str, u32, Revision)) {
    let Some(priority) = queue.first().map(|first| first.priority) else { return };
    let same_priority = queue.iter().take_while(|item| item.priority == priority).count();
    let choice = same_priority.min(choice).max(1);
    queue[..choice].rotate_left(place_of(seed, choice));
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::store::conformance::an_item;
    use crate::work::Priority;

    fn contention(lost: u32, recorded: Option<(u64, usize)>) -> Contention {
        let at = |millis| Timestamp::EPOCH.plus(Duration::from_millis(millis));
        let recorded = recorded.map(|(millis, choice)| LastLoss { at: at(millis), choice });
        Contention { is_possible: true, chosen: None, seen: Vec::new(), others: 0, lost, recorded }
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
    fn other_sessions_are_counted_by_the_items_they_claimed_meanwhile() {
        let mut contention = contention(0, None);
        let queue = |ids: &[&str]| ids.iter().map(|id| an_item(id)).collect::<Vec<_>>();
        for (seen, chosen, expected) in [
            (&["a", "b", "c", "d"][..], Some("a"), 0),
            // Nothing was lost, whatever others have claimed.
            (&["a", "d"], Some("a"), 0),
            (&["e", "f", "g"], Some("e"), 2),
            (&["f", "g"], Some("f"), 2),
            (&[], None, 2),
        ] {
            contention.note(&queue(seen));
            contention.chosen = chosen.map(str::to_owned);
            assert_eq!(contention.others, expected, "{seen:?}");
        }
    }

    #[test]
    fn record_of_an_older_program_means_the_first_choice() {
        let stored = serde_json::json!({"at": Timestamp::EPOCH});
        let loss: LastLoss = serde_json::from_value(stored).unwrap();
        assert_eq!(loss.choice, FIRST_CHOICE);
    }

    #[test]
    fn calls_choose_among_many_items_while_calls_lose_items() {
        let now = Timestamp::EPOCH.plus(Duration::from_secs(10));
        for (lost, recorded, expected) in [
            (0, None, 1),
            (1, None, 256),
            (2, None, 1024),
            (9, None, 1024),
            (u32::MAX, None, 1024),
            (0, Some((10_000, 64)), 64),
            (1, Some((10_000, 64)), 256),
            (0, Some((5_001, 256)), 256),
            (1, Some((5_001, 256)), 1024),
            (0, Some((5_000, 256)), 1),
            (1, Some((5_000, 1024)), 256),
            (0, Some((99_000, 64)), 1),
            (0, Some((10_000, 0)), 64),
            (0, Some((10_000, usize::MAX)), 1024),
        ] {
            assert_eq!(
                contention(lost, recorded).choice(now),
                expected,
                "{lost} lost, recorded {recorded:?}"
            );
        }
    }
}
