//! Whatever is killed at any time, the stored pages become those of a fresh build.

use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;

use super::check::{Planned, assert_fresh, fresh_pages};
use super::{Grouping, MapScope};
use crate::board::Board;
use crate::clock::FixedClock;
use crate::entry::{Value, Write};
use crate::settings::Settings;
use crate::store::{Memory, Store};
use crate::sweep::Sweep;

/// What a process does. A process that is killed before its commit has done nothing, and one that is killed after it has
/// done it completely: so a kill is a fold that is decided and never applied, or applied too late.
#[derive(Clone, Debug)]
enum Step {
    Write { key: u8, tag: u8, length: usize, expires: bool },
    Batch { from: u8, count: u8 },
    Delete { key: u8 },
    Clear { tens: u8 },
    Purge { key: u8 },
    Pass { seconds: u64 },
    Sweep,
    Prune,
    Update,
    Decide,
    Apply { place: usize },
    Unmap,
    Map { grouping: usize },
    List,
}

fn step() -> impl Strategy<Value = Step> {
    let key = || 0..40_u8;
    prop_oneof![
        8 => (key(), 0..4_u8, 0..200_usize, prop::bool::weighted(0.2))
            .prop_map(|(key, tag, length, expires)| Step::Write { key, tag, length, expires }),
        2 => (key(), 1..40_u8).prop_map(|(from, count)| Step::Batch { from, count }),
        3 => key().prop_map(|key| Step::Delete { key }),
        1 => (0..4_u8).prop_map(|tens| Step::Clear { tens }),
        1 => key().prop_map(|key| Step::Purge { key }),
        2 => prop::sample::select(vec![1, 400, 8_000]).prop_map(|seconds| Step::Pass { seconds }),
        1 => Just(Step::Sweep),
        1 => Just(Step::Prune),
        4 => Just(Step::Update),
        3 => Just(Step::Decide),
        3 => (0..8_usize).prop_map(|place| Step::Apply { place }),
        1 => Just(Step::Unmap),
        1 => (0..3_usize).prop_map(|grouping| Step::Map { grouping }),
        2 => Just(Step::List),
    ]
}

fn key(number: u8) -> String {
    format!("k{}:{}", number / 10, number % 10)
}

fn take(board: &Board, clock: &FixedClock, step: &Step, decided: &mut Vec<Planned>) {
    let (scope, pages) = (board.scope("s"), board.pages());
    let text = |length: usize| Value::of(&"x".repeat(length)).unwrap();
    match step {
        Step::Write { key: number, tag, length, expires } => {
            let ttl = expires.then_some(Duration::from_mins(1));
            let tags = (0..*tag).map(|tag| format!("t{tag}")).collect();
            scope.write(&Write { tags, ttl, ..Write::new(&key(*number), text(*length)) }).unwrap();
        }
        Step::Batch { from, count } => {
            let writes: Vec<_> =
                (*from..from + count).map(|number| Write::new(&key(number), text(3))).collect();
            scope.write_batch(&writes).unwrap();
        }
        Step::Delete { key: number } => drop(scope.delete(&key(*number))),
        Step::Clear { tens } => drop(scope.clear(&format!("k{tens}:*")).unwrap()),
        Step::Purge { key: number } => drop(scope.purge(&key(*number))),
        Step::Pass { seconds } => clock.advance(Duration::from_secs(*seconds)),
        Step::Sweep => drop(board.sweep(&Sweep::default()).unwrap()),
        Step::Prune => drop(board.prune().unwrap()),
        Step::Update => drop(pages.update("s")),
        Step::Decide => decided.extend(pages.planned("s").ok()),
        Step::Apply { place } => {
            if *place < decided.len() {
                pages.apply_planned(&decided.remove(*place)).unwrap();
            }
        }
        Step::Unmap => drop(pages.unmap("s", None).unwrap()),
        Step::Map { grouping } => {
            let grouping = Some(Grouping::ALL[*grouping]);
            let request = MapScope { grouping, max_tokens: Some(100), ..MapScope::of("s") };
            pages.map(&request).unwrap();
        }
        Step::List => {
            // What a reader sees is what a fresh build would be, however far the stored pages are.
            let Ok(listed) = pages.list(Some("s")) else { return };
            let mut seen: Vec<_> =
                listed.pages.into_iter().map(|page| (page.locality, page.hash, page.tokens)).collect();
            seen.sort_unstable();
            let fresh = fresh_pages(board, "s").unwrap();
            let fresh: Vec<_> =
                fresh.into_iter().map(|(locality, hash, tokens, _)| (locality, hash, tokens)).collect();
            assert_eq!(seen, fresh);
        }
    }
}

fn stored_pages_become_those_of_a_fresh_build(steps: &[Step], engine: impl Fn(Memory) -> Memory) {
    let clock = Arc::new(FixedClock::at("2026-02-03T15:30:00Z").unwrap());
    let store: Arc<dyn Store> = Arc::new(engine(Memory::new(clock.clone())));
    let settings = Settings { keep_events: Duration::from_hours(1), ..Settings::default() };
    let board = Board::on(store, clock.clone()).with_settings(settings);
    let mut decided = Vec::new();
    take(&board, &clock, &Step::Map { grouping: 0 }, &mut decided);
    for step in steps {
        take(&board, &clock, step, &mut decided);
    }
    take(&board, &clock, &Step::List, &mut decided);
    if board.pages().update("s").is_ok() {
        assert_fresh(&board, "s");
    }
    // Decisions of processes that slept until now change nothing wrong.
    for planned in &decided {
        board.pages().apply_planned(planned).unwrap();
    }
    if board.pages().update("s").is_ok() {
        assert_fresh(&board, "s");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn pages_are_those_of_a_fresh_build_whatever_is_killed(steps in prop::collection::vec(step(), 1..60)) {
        testkit::limit_test();
        stored_pages_become_those_of_a_fresh_build(&steps, |memory| memory);
        stored_pages_become_those_of_a_fresh_build(&steps, Memory::running_everything_twice);
        stored_pages_become_those_of_a_fresh_build(&steps, Memory::skipping_revisions);
    }
}
