//! The contract of an engine without a writer lock: everything that a commit read is still true when it commits.
//!
//! The interleavings are forced: another writer commits while the function runs. With a writer lock they cannot
//! happen, so these tests run on the memory engine, and some of them on Redis. `writers.rs` tests the same on every engine with threads.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::watched::{Look, watched};
use super::*;
use crate::lock::Acquire;
use crate::store::{Key, Range, Tx};
use crate::work::ClaimNext;

/// Runs a commit that reads something while another writer does `meddle` during its first run. Returns how often it
/// ran, which is the same on every engine without a writer lock.
fn runs(look: impl Fn(&dyn Tx) -> Result<()>, meddle: impl Fn(&Fixture)) -> usize {
    let count = runs_on(&Fixture::memory(), &look, &meddle);
    #[cfg(all(unix, feature = "redis"))]
    if let Some(fixture) = Fixture::redis() {
        assert_eq!(runs_on(&fixture, &look, &meddle), count, "on Redis");
    }
    count
}

fn runs_on(fixture: &Fixture, look: &impl Fn(&dyn Tx) -> Result<()>, meddle: &impl Fn(&Fixture)) -> usize {
    fixture.put(&[an_item("x").into(), an_agent("a").into()]);
    let count = Cell::new(0);
    fixture
        .commit(|tx| {
            count.set(count.get() + 1);
            look(tx)?;
            if count.get() == 1 {
                meddle(fixture);
            }
            Ok(Changes { events: vec![an_event()], ..Changes::new() })
        })
        .unwrap();
    count.get()
}

fn x() -> Key {
    Key::WorkItem("x".to_owned())
}

#[test]
fn changed_read_makes_a_commit_run_again() {
    let get_x = |tx: &dyn Tx| tx.get(&x()).map(drop);
    let get_y = |tx: &dyn Tx| tx.get(&Key::WorkItem("y".to_owned())).map(drop);
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
    let remove_x = |fixture: &Fixture| {
        fixture
            .commit(|tx| {
                tx.get(&x())?;
                Ok(Changes { remove: vec![x()], ..Changes::new() })
            })
            .unwrap();
    };
    let nothing = |_: &Fixture| {};
    assert_eq!(runs(get_x, nothing), 1);
    assert_eq!(runs(get_x, change_x), 2);
    assert_eq!(runs(get_x, remove_x), 2);
    assert_eq!(runs(get_x, add_y), 1);
    assert_eq!(runs(get_y, add_y), 2, "a row that was absent appeared");
    assert_eq!(runs(items, nothing), 1);
    assert_eq!(runs(items, change_x), 2);
    assert_eq!(runs(items, add_y), 2, "a phantom entered");
    assert_eq!(runs(items, remove_x), 2);
    assert_eq!(runs(claimed, claim_x), 2, "a phantom entered by changing its status");
    assert_eq!(runs(claimed, add_y), 1, "what enters another partition does not matter here");
}

#[test]
fn a_row_that_moves_into_a_bounded_range_makes_a_commit_run_again() {
    let silent = |tx: &dyn Tx| tx.range(&Range::live_agents_seen_until(at(100))).map(drop);
    let move_in = |fixture: &Fixture| {
        fixture.put(&[Agent { last_seen_at: at(50), ..an_agent("b") }.into()]);
    };
    let fixture = Fixture::memory();
    fixture.put(&[Agent { last_seen_at: at(200), ..an_agent("b") }.into()]);
    let count = Cell::new(0);
    fixture
        .commit(|tx| {
            count.set(count.get() + 1);
            silent(tx)?;
            if count.get() == 1 {
                move_in(&fixture);
            }
            Ok(Changes::new())
        })
        .unwrap();
    assert_eq!(count.get(), 2);
}

#[test]
fn an_entry_that_enters_leaves_or_changes_among_heads_makes_a_commit_run_again() {
    let tagged = |key: &str, tag: &str| Write { tags: owned(&[tag]), ..a_write(key, "1") };
    let runs = |range: Range, limit: usize, meddle: &dyn Fn(&Fixture)| {
        let fixture = Fixture::memory();
        fixture.scope().write_batch(&[tagged("k:b", "t"), tagged("k:c", "t"), tagged("z", "u")]).unwrap();
        let count = Cell::new(0);
        fixture
            .commit(|tx| {
                count.set(count.get() + 1);
                tx.heads(&range, limit)?;
                if count.get() == 1 {
                    meddle(&fixture);
                }
                Ok(Changes { events: vec![an_event()], ..Changes::new() })
            })
            .unwrap();
        count.get()
    };
    let nothing = |_: &Fixture| {};
    let enter = |fixture: &Fixture| drop(fixture.scope().write(&tagged("k:a", "t")).unwrap());
    let leave = |fixture: &Fixture| drop(fixture.scope().delete("k:b").unwrap());
    let change = |fixture: &Fixture| drop(fixture.scope().write(&tagged("k:b", "t")).unwrap());
    let gain_the_tag = |fixture: &Fixture| drop(fixture.scope().write(&tagged("z", "t")).unwrap());
    for range in [
        Range::entries("team", ""),
        Range::entries("team", "k:"),
        Range::entries_tagged("team", "t", ""),
        Range::entries_tagged("team", "t", "k:"),
        Range::newest_entries("team", None),
    ] {
        assert_eq!(runs(range.clone(), usize::MAX, &nothing), 1, "{range:?}");
        for limit in [1, usize::MAX] {
            assert_eq!(runs(range.clone(), limit, &enter), 2, "a phantom entered {range:?}, limit {limit}");
            assert_eq!(runs(range.clone(), limit, &leave), 2, "something left {range:?}, limit {limit}");
        }
        assert_eq!(runs(range.clone(), usize::MAX, &change), 2, "something changed in {range:?}");
    }
    assert_eq!(runs(Range::entries_tagged("team", "t", ""), usize::MAX, &gain_the_tag), 2);
    assert_eq!(runs(Range::newest_entries("team", None), 1, &change), 2, "what was old came to the front");
    assert_eq!(
        runs(Range::entries("other", ""), usize::MAX, &enter),
        1,
        "another scope does not matter here"
    );
    let write_and_forget =
        |fixture: &Fixture| drop(fixture.board.scope("other").write(&tagged("k:a", "t")).unwrap());
    assert_eq!(runs(Range::entries("team", ""), usize::MAX, &write_and_forget), 1);
}

#[test]
fn changed_candidate_causes_no_second_run() {
    let peek = |tx: &dyn Tx| tx.peek(&x()).map(drop);
    let hint = |tx: &dyn Tx| tx.candidates(&Range::work_items(), 10).map(drop);
    let count = |tx: &dyn Tx| tx.count(&Range::work_items()).map(drop);
    let revision = |tx: &dyn Tx| tx.revision().map(drop);
    let log = |tx: &dyn Tx| tx.events(&Page::after(Revision::ZERO, 10)).map(drop);
    let meddle = |fixture: &Fixture| {
        fixture.put(&[an_item("x").into(), an_item("y").into()]);
    };
    assert_eq!(runs(peek, meddle), 1);
    assert_eq!(runs(hint, meddle), 1);
    assert_eq!(runs(count, meddle), 1);
    assert_eq!(runs(revision, meddle), 1);
    assert_eq!(runs(log, meddle), 1);
}

#[test]
fn a_heartbeat_of_the_holder_causes_no_second_run_of_a_verb_that_names_it() {
    let fixture = Fixture::memory();
    let (ivy, oak) = (fixture.session("Ivy"), fixture.session("Oak"));
    fixture.board.locks().acquire(&Acquire::of("deploy", &ivy)).unwrap();
    let lock = Key::Entry("locks".to_owned(), "deploy".to_owned());
    let (others, holder) = (fixture.board.clone(), Key::Agent(ivy.clone()));
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&runs);
    let beaten = AtomicBool::new(false);
    let board = watched(fixture.board.clone(), fixture.clock.clone(), move |look| match look {
        Look::Row(key) if *key == lock => drop(counted.fetch_add(1, Ordering::Relaxed)),
        Look::Peek(key) if *key == holder && !beaten.swap(true, Ordering::Relaxed) => {
            others.agents().heartbeat(&crate::agent::Heartbeat::of(&ivy)).unwrap();
        }
        _ => {}
    });
    let refused = board.locks().acquire(&Acquire::of("deploy", &oak)).unwrap_err();
    assert_eq!(refused.details().unwrap()["held_by_name"], "Ivy");
    assert_eq!(runs.load(Ordering::Relaxed), 1);
}

#[test]
fn refusal_is_never_based_on_an_inconsistent_state() {
    let fixture = Fixture::memory();
    let ran = Cell::new(0);
    let outcome = fixture.commit(|tx| {
        ran.set(ran.get() + 1);
        let there = tx.get(&x())?.is_some();
        if ran.get() == 1 {
            fixture.put(&[an_item("x").into()]);
        }
        if there { Ok(Changes::new()) } else { Err(crate::Error::invalid("it is not there")) }
    });
    assert!(outcome.is_ok(), "it was there when the refusal would have been given");
    assert_eq!(ran.get(), 2);
}

#[test]
fn claim_next_never_misses_an_available_item() {
    let fixture = Fixture::memory();
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

/// The position of the item that a session gets after losing several items to other sessions, among the remaining
/// items. Also the priority of that item.
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
    for (lost, most) in [(0, 1), (1, 2), (2, 4), (3, 8)] {
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
