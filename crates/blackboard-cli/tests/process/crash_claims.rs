//! Nothing acknowledged is lost, nothing happens twice: processes that claim and are killed at any moment.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::process::ExitStatusExt;
use std::thread;
use std::time::{Duration, Instant};

use blackboard::Revision;
use blackboard::store::{Prefetch, Range, Store};
use blackboard::work::WorkItem;
use serde_json::Value;

use crate::crowd::{at_once, end_of, kill};
use crate::scale::{Chance, progress, size};
use crate::test_board::TestBoard;

testkit::on_each_engine![acknowledged_claims_survive_kill_9,];

/// How many of a hundred claims are killed.
const KILLED: usize = 30;

fn acknowledged_claims_survive_kill_9() {
    let (workers, claims) = (size(40, 200), size(10, 50));
    let board = TestBoard::new();
    let sessions = board.sessions("agent", workers);
    board.items(workers * claims);

    let calls = at_once(workers, |worker| {
        let mut chance = Chance::new(worker);
        let mut lifetime = Duration::from_millis(20);
        let (mut calls, store) = (Vec::new(), board.store());
        for round in 0..claims {
            // Half of them claim the next item, half compete for the same items.
            let item = format!("item-{}", chance.below(workers * claims));
            let what = if chance.below(2) == 0 { "--next" } else { &item };
            let last_fence = || last_fence(&*store, &sessions[worker]);
            calls.push(claim_and_perhaps_die(
                &board,
                &sessions[worker],
                what,
                &mut lifetime,
                &mut chance,
                &last_fence,
            ));
            if worker == 0 {
                progress("crash-claims, rounds of the first worker", round + 1, claims);
            }
        }
        calls
    });

    board.assert_sound();
    let mut log = BTreeMap::new();
    for line in board.log().into_iter().filter(|line| line.event_type == "work_claimed") {
        log.insert(line.id, (line.target.unwrap(), line.actor.unwrap()));
    }
    let (mut acknowledged, mut aimed_at, mut killed) = (0, 0, 0);
    let mut by_survivors = BTreeSet::new();
    for (worker, call) in
        calls.iter().enumerate().flat_map(|(worker, own)| own.iter().map(move |one| (worker, one)))
    {
        aimed_at += usize::from(call.was_aimed_at);
        killed += usize::from(call.was_killed);
        let Some(claimed) = &call.claimed else { continue };
        let fence = claimed["fence"].as_i64().unwrap();
        let expected = (claimed["item_id"].as_str().unwrap().to_owned(), sessions[worker].clone());
        assert_eq!(log.get(&fence), Some(&expected), "acknowledged and lost: {claimed}");
        acknowledged += 1;
        if !call.was_killed {
            by_survivors.insert(fence);
        }
    }
    // Survivors report what they did. Killed processes did everything else on the board.
    let by_killed = log.len() - by_survivors.len();
    println!(
        "crash-claims: {} calls, {killed} of {aimed_at} killed in time, {acknowledged} acknowledged, {} on the board, \
         {by_killed} of them by the killed",
        workers * claims,
        log.len()
    );
    assert!(killed >= aimed_at / 5, "{killed} of {aimed_at} were killed before they ended");
    assert!(by_killed > 0, "none of {killed} was killed after its commit");
    assert!(!by_survivors.is_empty(), "no process survived");
    assert_eq!(
        board.number("SELECT count(*) FROM work_items WHERE status = 'claimed'"),
        i64::try_from(log.len()).unwrap(),
        "one event for each claim"
    );
}

/// The result of a call.
struct Call {
    was_aimed_at: bool,
    was_killed: bool,
    /// Its answer, if it claimed the item and lived long enough to print that.
    claimed: Option<Value>,
}

/// Claims, and may be killed: after a random part of the duration of the last complete call, or when its commit is visible.
fn claim_and_perhaps_die(
    board: &TestBoard,
    session: &str,
    what: &str,
    lifetime: &mut Duration,
    chance: &mut Chance,
    last_fence: &dyn Fn() -> i64,
) -> Call {
    let before = last_fence();
    let started = Instant::now();
    let mut child = board.start(["work", "claim", what, "--json", "--session", session]);
    let was_aimed_at = chance.below(100) < KILLED;
    if was_aimed_at {
        if chance.below(2) == 0 {
            thread::sleep(*lifetime * u32::try_from(chance.below(100)).unwrap() / 100);
        } else {
            while last_fence() == before && child.try_wait().unwrap().is_none() {
                thread::yield_now();
            }
        }
        // The PID of a process that was waited for can be reused.
        if child.try_wait().unwrap().is_none() {
            kill(child.id());
        }
    }
    let ended = end_of(child);
    assert_eq!(ended.stderr, "", "locks are not reported: {ended:?}");
    if let Some(code) = ended.status.code() {
        assert!([0, 3, 4].contains(&code), "{ended:?}");
        *lifetime = started.elapsed();
    }
    // A complete line is an answer, also if its process was killed before it could exit.
    let answer: Option<Value> =
        ended.stdout.ends_with('\n').then(|| serde_json::from_str(&ended.stdout).unwrap());
    let claimed = answer.filter(|answer| answer["ok"] == true);
    Call { was_aimed_at, was_killed: ended.status.signal().is_some(), claimed }
}

/// Changes with every claim of a session.
fn last_fence(store: &dyn Store, session: &str) -> i64 {
    let (held, mut last) = (Range::held_by(session), 0);
    let read = store.read(&[Prefetch::Range(held.clone())], &mut |tx| {
        let items = tx.range(&held)?.into_iter().filter_map(|row| WorkItem::try_from(row).ok());
        last = items.filter_map(|item| item.fence).map(Revision::get).max().unwrap_or(0);
        Ok(())
    });
    read.unwrap();
    last
}
