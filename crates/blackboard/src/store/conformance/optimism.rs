//! The contract of an engine without a writer lock: everything that a commit read is still true when it commits.
//!
//! The interleavings are forced: another writer commits while the function runs. With a writer lock they cannot happen,
//! so these tests return at once on an engine that has one. `writers.rs` tests the same on every engine with threads.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::watched::{Look, watched};
use super::*;
use crate::entry::EntryVersion;
use crate::lock::Acquire;
use crate::store::{Key, Range, Tx};
use crate::work::ClaimNext;

on_every_engine![
    changed_read_makes_a_commit_run_again,
    a_row_that_moves_into_a_bounded_range_makes_a_commit_run_again,
    an_entry_that_enters_leaves_or_changes_among_heads_makes_a_commit_run_again,
    changed_candidate_causes_no_second_run,
    a_heartbeat_of_the_holder_causes_no_second_run_of_a_verb_that_names_it,
    refusal_is_never_based_on_an_inconsistent_state,
    a_commit_that_does_not_wait_is_busy_after_one_conflict,
    claim_next_never_misses_an_available_item,
    calls_spread_for_a_short_time_after_another_call_lost_an_item,
    a_scope_of_an_earlier_version_is_usable_only_while_it_has_an_entry,
];

impl Fixture {
    fn is_optimistic(&self) -> bool {
        !self.engine.has_writer_lock()
    }

    /// Commits an event after a look at the board, and calls `meddle` in the run with this number. Returns how often
    /// it ran.
    fn runs(
        &self,
        look: &dyn Fn(&dyn Tx) -> Result<()>,
        meddle_in: usize,
        meddle: &dyn Fn(&Fixture),
    ) -> usize {
        let count = Cell::new(0);
        self.commit(|tx| {
            count.set(count.get() + 1);
            look(tx)?;
            if count.get() == meddle_in {
                meddle(self);
            }
            Ok(Changes { events: vec![an_event()], ..Changes::new() })
        })
        .unwrap();
        count.get()
    }

    /// How many more runs a commit that reads something needs if another writer does `meddle` in the run that would be its
    /// last. A test switch may add a run to every commit.
    fn added_runs(&self, look: impl Fn(&dyn Tx) -> Result<()>, meddle: impl Fn(&Fixture)) -> usize {
        let undisturbed = self.runs(&look, 0, &|_| {});
        self.runs(&look, undisturbed, &meddle) - undisturbed
    }

    /// The same on a board with the item `x` and the agent `a`.
    fn added_runs_with_x(&self, look: impl Fn(&dyn Tx) -> Result<()>, meddle: impl Fn(&Fixture)) -> usize {
        self.remove(&y());
        self.put(&[an_item("x").into(), an_agent("a").into()]);
        self.added_runs(look, meddle)
    }

    fn remove(&self, key: &Key) {
        self.commit(|tx| {
            let found = tx.get(key)?;
            Ok(Changes { remove: found.map(|_| key.clone()).into_iter().collect(), ..Changes::new() })
        })
        .unwrap();
    }
}

fn x() -> Key {
    Key::WorkItem("x".to_owned())
}

fn y() -> Key {
    Key::WorkItem("y".to_owned())
}

fn nothing(_: &Fixture) {}

fn changed_read_makes_a_commit_run_again(fixture: &Fixture) {
    if !fixture.is_optimistic() {
        return;
    }
    let get_x = |tx: &dyn Tx| tx.get(&x()).map(drop);
    let get_y = |tx: &dyn Tx| tx.get(&y()).map(drop);
    let items = |tx: &dyn Tx| tx.range(&Range::work_items()).map(drop);
    let claimed = |tx: &dyn Tx| tx.range(&Range::work_queue(Status::Claimed)).map(drop);
    let change_x = |fixture: &Fixture| {
        fixture.put(&[WorkItem { title: "Other".to_owned(), ..an_item("x") }.into()]);
    };
    let claim_x = |fixture: &Fixture| {
        fixture.put(&[WorkItem { status: Status::Claimed, ..an_item("x") }.into()]);
    };
    let add_y = |fixture: &Fixture| {
        fixture.put(&[an_item("y").into()]);
    };
    let remove_x = |fixture: &Fixture| fixture.remove(&x());
    assert_eq!(fixture.added_runs_with_x(get_x, nothing), 0);
    assert_eq!(fixture.added_runs_with_x(get_x, change_x), 1);
    assert_eq!(fixture.added_runs_with_x(get_x, remove_x), 1);
    assert_eq!(fixture.added_runs_with_x(get_y, add_y), 1, "a row that was absent appeared");
    assert_eq!(fixture.added_runs_with_x(items, nothing), 0);
    assert_eq!(fixture.added_runs_with_x(items, change_x), 1);
    assert_eq!(fixture.added_runs_with_x(items, add_y), 1, "a phantom entered");
    assert_eq!(fixture.added_runs_with_x(items, remove_x), 1);
    assert_eq!(fixture.added_runs_with_x(claimed, claim_x), 1, "a phantom entered by changing its status");
}

fn a_row_that_moves_into_a_bounded_range_makes_a_commit_run_again(fixture: &Fixture) {
    if !fixture.is_optimistic() {
        return;
    }
    let silent = |tx: &dyn Tx| tx.range(&Range::live_agents_seen_until(at(100))).map(drop);
    let move_in = |fixture: &Fixture| {
        fixture.put(&[Agent { last_seen_at: at(50), ..an_agent("b") }.into()]);
    };
    fixture.put(&[Agent { last_seen_at: at(200), ..an_agent("b") }.into()]);
    assert_eq!(fixture.added_runs(silent, move_in), 1);
}

fn an_entry_that_enters_leaves_or_changes_among_heads_makes_a_commit_run_again(fixture: &Fixture) {
    if !fixture.is_optimistic() {
        return;
    }
    let added_runs = |range: &Range, limit: usize, meddle: &dyn Fn(&Fixture)| {
        write_some_entries(fixture);
        fixture.added_runs(|tx| tx.heads(range, limit).map(drop), meddle)
    };
    let enter = |fixture: &Fixture| drop(fixture.scope().write(&tagged("k:a", "t")).unwrap());
    let leave = |fixture: &Fixture| drop(fixture.scope().delete("k:b").unwrap());
    let change = |fixture: &Fixture| drop(fixture.scope().write(&tagged("k:b", "t")).unwrap());
    let gain_the_tag = |fixture: &Fixture| drop(fixture.scope().write(&tagged("z", "t")).unwrap());
    let newest = Range::newest_entries("team", None);
    for range in [
        Range::entries("team", ""),
        Range::entries("team", "k:"),
        Range::entries_tagged("team", "t", ""),
        Range::entries_tagged("team", "t", "k:"),
        newest.clone(),
    ] {
        assert_eq!(added_runs(&range, usize::MAX, &nothing), 0, "{range:?}");
        for limit in [1, usize::MAX] {
            let added = added_runs(&range, limit, &enter);
            assert_eq!(added, 1, "a phantom entered {range:?}, limit {limit}");
            // The entry that leaves is the first one, but not the newest one.
            if limit > 1 || range != newest {
                let added = added_runs(&range, limit, &leave);
                assert_eq!(added, 1, "something left {range:?}, limit {limit}");
            }
        }
        assert_eq!(added_runs(&range, usize::MAX, &change), 1, "something changed in {range:?}");
    }
    assert_eq!(added_runs(&Range::entries_tagged("team", "t", ""), usize::MAX, &gain_the_tag), 1);
    assert_eq!(added_runs(&newest, 1, &change), 1, "what was old came to the front");
}

/// The entries `k:b` and `k:c` with one tag and `z` with another one, which is the newest.
fn write_some_entries(fixture: &Fixture) {
    drop(fixture.scope().delete("k:a"));
    fixture.scope().write_batch(&[tagged("k:b", "t"), tagged("k:c", "t"), tagged("z", "u")]).unwrap();
}

fn tagged(key: &str, tag: &str) -> Write {
    Write { tags: owned(&[tag]), ..a_write(key, "1") }
}

/// The contract allows an engine to be less exact.
#[test]
fn memory_ignores_changes_in_other_partitions() {
    let fixture = Fixture::memory();
    let get_x = |tx: &dyn Tx| tx.get(&x()).map(drop);
    let claimed = |tx: &dyn Tx| tx.range(&Range::work_queue(Status::Claimed)).map(drop);
    let add_y = |fixture: &Fixture| {
        fixture.put(&[an_item("y").into()]);
    };
    assert_eq!(fixture.added_runs_with_x(get_x, add_y), 0);
    assert_eq!(fixture.added_runs_with_x(claimed, add_y), 0);
    write_some_entries(&fixture);
    let (team, other) = (Range::entries("team", ""), Range::entries("other", ""));
    let write = |fixture: &Fixture| drop(fixture.scope().write(&tagged("k:a", "t")).unwrap());
    assert_eq!(fixture.added_runs(|tx| tx.heads(&other, usize::MAX).map(drop), write), 0);
    let write = |fixture: &Fixture| drop(fixture.board.scope("other").write(&tagged("k:a", "t")).unwrap());
    assert_eq!(fixture.added_runs(|tx| tx.heads(&team, usize::MAX).map(drop), write), 0);
}

fn changed_candidate_causes_no_second_run(fixture: &Fixture) {
    if !fixture.is_optimistic() {
        return;
    }
    let peek = |tx: &dyn Tx| tx.peek(&x()).map(drop);
    let hint = |tx: &dyn Tx| tx.candidates(&Range::work_items(), 10).map(drop);
    let count = |tx: &dyn Tx| tx.count(&Range::work_items()).map(drop);
    let revision = |tx: &dyn Tx| tx.revision().map(drop);
    let log = |tx: &dyn Tx| tx.events(&Page::after(Revision::ZERO, 10)).map(drop);
    let meddle = |fixture: &Fixture| {
        fixture.put(&[an_item("x").into(), an_item("y").into()]);
    };
    assert_eq!(fixture.added_runs_with_x(peek, meddle), 0);
    assert_eq!(fixture.added_runs_with_x(hint, meddle), 0);
    assert_eq!(fixture.added_runs_with_x(count, meddle), 0);
    assert_eq!(fixture.added_runs_with_x(revision, meddle), 0);
    assert_eq!(fixture.added_runs_with_x(log, meddle), 0);
}

fn a_heartbeat_of_the_holder_causes_no_second_run_of_a_verb_that_names_it(fixture: &Fixture) {
    if !fixture.is_optimistic() {
        return;
    }
    let (ivy, oak) = (fixture.session("Ivy"), fixture.session("Oak"));
    fixture.board.locks().acquire(&Acquire::of("deploy", &ivy)).unwrap();
    let lock = Key::Entry("locks".to_owned(), "deploy".to_owned());
    let (others, holder) = (fixture.board.clone(), Key::Agent(ivy.clone()));
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&runs);
    let beats = Arc::new(AtomicBool::new(false));
    let beating = Arc::clone(&beats);
    let board = watched(fixture.board.clone(), fixture.clock.clone(), move |look| match look {
        Look::Row(key) if *key == lock => drop(counted.fetch_add(1, Ordering::Relaxed)),
        Look::Peek(key) if *key == holder && beating.load(Ordering::Relaxed) => {
            others.agents().heartbeat(&crate::agent::Heartbeat::of(&ivy)).unwrap();
        }
        _ => {}
    });
    let runs_of_a_refused_call = || {
        let refused = board.locks().acquire(&Acquire::of("deploy", &oak)).unwrap_err();
        assert_eq!(refused.details().unwrap()["held_by_name"], "Ivy");
        runs.swap(0, Ordering::Relaxed)
    };
    let undisturbed = runs_of_a_refused_call();
    beats.store(true, Ordering::Relaxed);
    assert_eq!(runs_of_a_refused_call(), undisturbed);
}

fn refusal_is_never_based_on_an_inconsistent_state(fixture: &Fixture) {
    if !fixture.is_optimistic() {
        return;
    }
    // `x` and `y` are created together, so no state of the board has one of them.
    let refuse_with_one = |meddle_in: usize| {
        let ran = Cell::new(0);
        let outcome = fixture.commit(|tx| {
            ran.set(ran.get() + 1);
            let has_x = tx.get(&x())?.is_some();
            if ran.get() == meddle_in {
                fixture.put(&[an_item("x").into(), an_item("y").into()]);
            }
            let has_y = tx.get(&y())?.is_some();
            if has_x == has_y { Ok(Changes::new()) } else { Err(crate::Error::invalid("one is missing")) }
        });
        (outcome.is_ok(), ran.get())
    };
    let (accepted, undisturbed) = refuse_with_one(0);
    assert!(accepted);
    let (accepted, ran) = refuse_with_one(undisturbed);
    assert!(accepted, "the refusal is based on a state that did not exist");
    assert_eq!(ran, undisturbed + 1);
}

/// The contract allows an engine to refuse by an earlier state of the board, which existed during the call.
#[test]
fn memory_validates_a_refusal_at_its_end() {
    let fixture = Fixture::memory();
    let refuse_without_x = |meddle_in: usize| {
        let ran = Cell::new(0);
        let outcome = fixture.commit(|tx| {
            ran.set(ran.get() + 1);
            let there = tx.get(&x())?.is_some();
            if ran.get() == meddle_in {
                fixture.put(&[an_item("x").into()]);
            }
            if there { Ok(Changes::new()) } else { Err(crate::Error::invalid("it is not there")) }
        });
        (outcome.is_ok(), ran.get())
    };
    let (found, undisturbed) = refuse_without_x(0);
    assert!(!found);
    let (found, ran) = refuse_without_x(undisturbed);
    assert!(found, "it was there when the refusal would have been given");
    assert_eq!(ran, undisturbed + 1);
}

fn a_commit_that_does_not_wait_is_busy_after_one_conflict(fixture: &Fixture) {
    if !fixture.is_optimistic() {
        return;
    }
    let try_once = |meddles: bool| {
        let commit = Commit { name: "test", prefetch: &[], on_busy: OnBusy::Fail, callers: &[] };
        let mut runs = 0;
        let outcome = fixture.engine.commit(&commit, &mut |tx| {
            runs += 1;
            tx.get(&x())?;
            if meddles {
                fixture.put(&[an_item("x").into()]);
            }
            Ok(Changes { events: vec![an_event()], ..Changes::new() })
        });
        (outcome.map(drop).map_err(|error| error.code()), runs)
    };
    let (outcome, undisturbed) = try_once(false);
    assert_eq!(outcome, Ok(()));
    assert_eq!(try_once(true), (Err(Code::Busy), undisturbed));
    assert_eq!(try_once(false), (Ok(()), undisturbed), "the conflict is over");
}

fn claim_next_never_misses_an_available_item(fixture: &Fixture) {
    if !fixture.is_optimistic() {
        return;
    }
    let (ivy, oak) = (fixture.session("Ivy"), fixture.session("Oak"));
    fixture.item("x");
    let others = fixture.board.clone();
    let meddled = AtomicBool::new(false);
    // Between the read of the queue and the read of its head, the head is claimed and another item is created.
    let board = watched(fixture.board.clone(), fixture.clock.clone(), move |look| {
        if matches!(look, Look::Candidates(_)) && !meddled.swap(true, Ordering::Relaxed) {
            others.work().claim(&Claim::of("x", &oak)).unwrap();
            others.work().create(&Create::new("y", "Another")).unwrap();
        }
    });
    let claimed = board.work().claim_next(&ClaimNext { session: ivy, ..ClaimNext::default() }).unwrap();
    assert_eq!(claimed.item.item_id, "y");
}

fn a_scope_of_an_earlier_version_is_usable_only_while_it_has_an_entry(fixture: &Fixture) {
    // Its end is white space, which is refused in new names.
    const OLD: &str = "old ";
    if !fixture.is_optimistic() {
        return;
    }
    let first = Key::Entry(OLD.to_owned(), "first".to_owned());
    let add_first = || {
        let entry = Entry { revision: Revision::of_event(0), ..an_entry(OLD, "first") };
        let version = EntryVersion { entry: entry.clone(), previous: None, removed: false };
        let added = fixture.commit(|tx| {
            tx.get(&first)?;
            let mut changes = Changes::new();
            changes.event(an_event().of_version(version.clone()));
            changes.put(entry.clone());
            Ok(changes)
        });
        added.unwrap();
    };
    add_first();
    fixture.board.scope(OLD).write(&a_write("second", "1")).unwrap();
    fixture.board.scope(OLD).delete("second").unwrap();
    let (others, removed) = (fixture.engine.clone(), AtomicBool::new(false));
    let board = watched(fixture.board.clone(), fixture.clock.clone(), move |look| {
        if matches!(look, Look::Heads) && !removed.swap(true, Ordering::Relaxed) {
            let commit = Commit { name: "test", prefetch: &[], on_busy: OnBusy::Wait, callers: &[] };
            let remove = others.commit(&commit, &mut |tx| {
                tx.get(&first)?;
                Ok(Changes { remove: vec![first.clone()], ..Changes::new() })
            });
            remove.unwrap();
        }
    });
    let refused = board.scope(OLD).write(&a_write("third", "1"));
    assert_eq!(code(refused), Code::InvalidValue, "the scope became empty meanwhile");
}

fn calls_spread_for_a_short_time_after_another_call_lost_an_item(fixture: &Fixture) {
    if !fixture.is_optimistic() {
        return;
    }
    let (ivy, oak) = (fixture.session("Ivy"), fixture.session("Oak"));
    for number in 0..40 {
        fixture.board.work().create(&Create::new(&format!("{number:02}"), "T")).unwrap();
        fixture.pass(1);
    }
    let next = |board: &Board| {
        let next = ClaimNext { session: ivy.clone(), ..ClaimNext::default() };
        let item = board.work().claim_next(&next).unwrap().item;
        let left = fixture.board.export().unwrap().work_items;
        left.iter().filter(|other| other.status == Status::Available && other.item_id < item.item_id).count()
    };
    assert_eq!([next(&fixture.board), next(&fixture.board)], [0, 0], "no call has lost an item");
    let (others, has_claimed) = (fixture.board.clone(), AtomicBool::new(false));
    let board = watched(fixture.board.clone(), fixture.clock.clone(), move |look| {
        if let Look::Row(Key::WorkItem(id)) = look
            && !has_claimed.swap(true, Ordering::Relaxed)
        {
            others.work().claim(&Claim::of(id, &oak)).unwrap();
        }
    });
    next(&board);
    let places: std::collections::BTreeSet<_> = (0..12).map(|_| next(&fixture.board)).collect();
    assert!(places.len() > 4, "{places:?}");
    fixture.pass(5);
    assert_eq!([next(&fixture.board), next(&fixture.board)], [0, 0], "the last loss is some time ago");
}

/// The position of the item that a session gets after losing several items to other sessions, among the remaining
/// items. Also the priority of that item.
#[cfg(test)]
fn place_after_losing(sessions_before: usize, lost: usize) -> (usize, Priority) {
    let fixture = Fixture::memory();
    let other = fixture.session("Other");
    for number in 0..sessions_before {
        fixture.session(&format!("Before {number}"));
    }
    let session = fixture.session("Ivy");
    for number in 0..30 {
        fixture.pass(1);
        let priority = Some(if number < 20 { Priority::P1 } else { Priority::P2 });
        fixture
            .board
            .work()
            .create(&Create { priority, ..Create::new(&format!("{number:02}"), "T") })
            .unwrap();
    }
    let (others, claimed) = (fixture.board.clone(), AtomicUsize::new(0));
    let board = watched(fixture.board.clone(), fixture.clock.clone(), move |look| {
        if let Look::Row(Key::WorkItem(id)) = look
            && claimed.load(Ordering::Relaxed) < lost
        {
            claimed.fetch_add(1, Ordering::Relaxed);
            others.work().claim(&Claim::of(id, &other)).unwrap();
        }
    });
    let item = board.work().claim_next(&ClaimNext { session, ..ClaimNext::default() }).unwrap().item;
    let left = fixture.board.export().unwrap().work_items;
    let older = left.iter().filter(|other| other.status == Status::Available && other.item_id < item.item_id);
    (older.count(), item.priority)
}

#[test]
fn sessions_that_lose_the_next_item_spread_over_the_first_of_its_priority() {
    for (lost, most) in [(0, 1), (1, 19), (2, 18), (3, 17)] {
        let places: std::collections::BTreeSet<_> = (0..24)
            .map(|sessions_before| {
                let (place, priority) = place_after_losing(sessions_before, lost);
                assert_eq!(priority, Priority::P1, "an urgent item is never passed over");
                place
            })
            .collect();
        assert!(places.iter().all(|place| *place < most), "after {lost}: {places:?}");
        assert!(places.len() > most / 2, "after {lost}: {places:?}");
    }
}
