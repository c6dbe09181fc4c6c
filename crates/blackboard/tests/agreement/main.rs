//! Every engine gives the same answers.
//!
//! Random sequences of verbs, with few names so that they conflict, run on several engines: memory, memory that loses
//! every first run, memory whose ids have gaps, SQLite, and Redis. After each step the answers have to be equal, at the end
//! the complete board and its event log. Redis is compared with memory that several machines share. Invariants are checked meanwhile: see `invariants.rs`.
//!
//! `PROPTEST_CASES=2000 cargo test -p blackboard --test agreement` runs more cases.

#![expect(unreachable_pub, reason = "a test has no public interface: `pub` means used outside of its module")]
#![expect(clippy::unwrap_used, reason = "a test that cannot continue has failed")]

mod entries;
mod entry_invariants;
mod invariants;
mod memory;
mod pages;
mod revisions;
mod scopes;
mod step;
mod world;

use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use crate::step::{FenceToken, ImportedItem, Step, WorkStep, step};
use crate::world::World;

/// How many sequences are tried, unless `PROPTEST_CASES` is set.
const CASES: u32 = 96;

#[test]
fn all_engines_give_the_same_answers() {
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(CASES);
    let config = ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() };
    let steps = prop::collection::vec(step(), 1..120);
    TestRunner::new(config).run(&steps, |steps| agree(&steps)).unwrap();
}

/// A sequence that random ones rarely contain: an item fails three times, and its source closes and reopens it.
#[test]
fn an_item_on_hold_stays_so_when_its_source_reopens_it() {
    testkit::limit_test();
    let import = |is_closed| {
        let item =
            ImportedItem { item: 0, title: 0, priority: None, has_labels: true, is_closed, blockers: vec![] };
        let items = vec![item];
        Step::Work(WorkStep::Import { items, with_closed: false, adopt: false, dry_run: false })
    };
    let claim = Step::Work(WorkStep::Claim { item: 0, who: 0, title: None, blockers: vec![] });
    let fail = Step::Work(WorkStep::Release { item: 0, who: 0, fence: FenceToken::None, failed: true });
    let mut steps =
        vec![Step::Register { who: 0, project: None, parent: None, pid: None, shares_process: false }];
    steps.push(import(false));
    for _ in 0..3 {
        steps.extend([claim.clone(), fail.clone()]);
    }
    steps.extend([import(true), import(false), claim]);
    agree(&steps).unwrap();
}

fn agree(steps: &[Step]) -> Result<(), TestCaseError> {
    agree_with(
        World::memory(),
        vec![
            ("memory running twice", World::memory_running_twice()),
            ("memory with gaps", World::memory_with_gaps()),
            ("SQLite", World::sqlite()),
            ("SQLite with gaps", World::sqlite_with_gaps()),
        ],
        steps,
    )?;
    #[cfg(all(unix, feature = "redis"))]
    {
        // A process of an earlier boot is judged only on a board of one machine.
        let redis = World::redis().map(|world| ("Redis", world));
        let twice = World::redis_running_twice().map(|world| ("Redis running twice", world));
        agree_with(World::shared_memory(), redis.into_iter().chain(twice).collect(), steps)?;
    }
    Ok(())
}

fn agree_with(
    mut memory: World,
    mut others: Vec<(&str, World)>,
    steps: &[Step],
) -> Result<(), TestCaseError> {
    let mut before = memory.board.export().unwrap();
    for (number, step) in steps.iter().enumerate() {
        let expected = memory.take(step);
        for (name, other) in &mut others {
            prop_assert_eq!(&other.take(step), &expected, "step {} on {}: {:?}", number, name, step);
        }
        let after = memory.board.export().unwrap();
        if let Err(broken) = invariants::check(step, &before, &after) {
            return Err(TestCaseError::fail(format!("step {number}, {step:?}: {broken}")));
        }
        let holds =
            entry_invariants::check_leases(&after).and_then(|()| entry_invariants::check_sizes(&after));
        prop_assert_eq!(holds, Ok(()), "step {}, {:?}", number, step);
        if matches!(step, Step::Prune) {
            let holds = entry_invariants::check_entries(&*memory.store, &memory.board, &memory.log());
            prop_assert_eq!(holds, Ok(()), "step {}, retention", number);
        }
        before = after;
    }
    let log = memory.log();
    for (name, other) in &others {
        let export = other.board.export().unwrap();
        prop_assert_eq!(other.shown(&export), memory.shown(&before), "the board on {}", name);
        prop_assert_eq!(other.shown(other.log()), memory.shown(&log), "the log on {}", name);
        let holds = entry_invariants::check_entries(&*other.store, &other.board, &other.log());
        prop_assert_eq!(holds, Ok(()), "the entries on {}", name);
        if let Some(file) = other.file() {
            prop_assert_eq!(entry_invariants::check_tables(&file, &before.entries), Ok(()));
        }
    }
    invariants::check_log(&log).map_err(TestCaseError::fail)
}
