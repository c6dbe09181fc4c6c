//! Dependencies between items.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::watched::watched;
use super::*;
use crate::work::{Block, Blocked, Dependency, WorkFilter};

on_every_engine![
    item_with_several_blockers_shows_the_first_open_one,
    missing_blocker_blocks_and_is_named,
    created_item_is_blocked_only_by_open_items,
    completing_the_last_blocker_makes_the_item_available_in_the_same_commit,
    blocked_item_keeps_its_holder,
    dependency_cycle_is_refused,
    completed_item_is_not_blocked_and_blocks_nothing,
    blocking_again_changes_nothing,
    a_blocker_that_is_reset_blocks_again_in_the_same_commit,
    unblock_removes_named_blockers_or_all,
    every_change_of_dependencies_has_an_event,
    a_status_names_the_first_hundred_missing_blockers,
    status_names_missing_blockers_of_thousands_of_items,
    many_blocked_items_are_listed_with_few_queries,
];

/// The same board, with a count of the rows and ranges that were read.
fn counted(fixture: &Fixture) -> (Board, Arc<AtomicUsize>) {
    let count = Arc::new(AtomicUsize::new(0));
    let counted = count.clone();
    let board = watched(fixture.board.clone(), fixture.clock.clone(), move |_| {
        counted.fetch_add(1, Ordering::Relaxed);
    });
    (board, count)
}

fn a_status_names_the_first_hundred_missing_blockers(fixture: &Fixture) {
    let session = fixture.session("Ivy");
    fixture.item("exists");
    for number in 0..100 {
        let (id, missing) = (format!("item {number:03}"), format!("missing {number:03}"));
        fixture.blocked_item(&id, &[&missing, "exists", "missing 000"]);
    }
    let (board, reads) = counted(fixture);
    let status = board.status().unwrap();
    assert_eq!((status.missing_blockers.len(), status.more_missing_blockers), (100, false));
    assert_eq!(status.missing_blockers[99], "missing 099");
    assert!(reads.load(Ordering::Relaxed) < 5, "{reads:?} reads");
    fixture.blocked_item("item 100", &["missing 100"]);
    let status = board.status().unwrap();
    assert_eq!((status.missing_blockers.len(), status.more_missing_blockers), (100, true));
    assert_eq!(status.work_items.blocked, 101);
    assert_eq!(board.work_counts(fixture.clock.now().midnight()).unwrap(), status.work_items);
    // One that exists, and one that blocks only a completed item.
    fixture.item("missing 001");
    fixture.board.work().unblock("item 100", &[], None).unwrap();
    complete_all(fixture, &session, &["item 100"]);
    let status = board.status().unwrap();
    assert!(!status.missing_blockers.iter().any(|id| id == "missing 001" || id == "missing 100"));
    assert_eq!((status.missing_blockers.len(), status.more_missing_blockers), (99, false));
}

/// More items than are read one by one.
fn status_names_missing_blockers_of_thousands_of_items(fixture: &Fixture) {
    let item = |id: &str, status| Row::from(WorkItem { status, ..an_item(id) });
    let dependency = |item: &str, blocker: &str| {
        let (item_id, blocked_by) = (item.to_owned(), blocker.to_owned());
        Row::from(Dependency { item_id, blocked_by, created_at: at(1) })
    };
    let id = |number: i32| format!("item {number:04}");
    let mut rows = vec![item("done", Status::Completed), item("free", Status::Available)];
    for number in 0..1100 {
        rows.push(item(&id(number), Status::Blocked));
        // Each is blocked by the one before, and so by one that does not exist.
        rows.push(dependency(&id(number), &id(number - 1)));
        rows.push(dependency(&id(number), "free"));
    }
    rows.push(dependency(&id(7), "missing"));
    rows.push(dependency("done", "missing, but nothing waits for it now"));
    fixture.put(&rows);
    let status = fixture.board.status().unwrap();
    assert_eq!(status.work_items.blocked, 1100);
    assert_eq!(
        (status.missing_blockers, status.more_missing_blockers),
        (vec![id(-1), "missing".to_owned()], false)
    );
}

fn many_blocked_items_are_listed_with_few_queries(fixture: &Fixture) {
    let session = fixture.session("Ivy");
    for id in ["open", "done", "z"] {
        fixture.item(id);
    }
    for number in 0..100 {
        let (id, missing) = (format!("item {number:03}"), format!("missing {number:03}"));
        fixture.blocked_item(&id, &["z", &missing]);
        fixture.pass(1);
        block(fixture, &id, &["open", "done"]).unwrap();
    }
    complete_all(fixture, &session, &["done"]);
    let (board, reads) = counted(fixture);
    let blocked = WorkFilter { statuses: vec![Status::Blocked], ..WorkFilter::default() };
    let all = board.work().list(&blocked).unwrap();
    assert!(reads.load(Ordering::Relaxed) / fixture.runs_of_a_read() < 10, "{reads:?} reads");
    assert_eq!(all.len(), 100);
    let few = board.work().list(&WorkFilter { limit: Some(10), ..blocked }).unwrap();
    assert_eq!(all[..10], few);
    for (number, listed) in all.iter().enumerate() {
        let missing = format!("missing {number:03}");
        assert_eq!(listed.missing_blockers, [missing.as_str()]);
        assert_eq!(listed.open_blockers.len(), 3, "{:?}", listed.open_blockers);
    }
}

fn block(fixture: &Fixture, id: &str, blockers: &[&str]) -> Result<Blocked> {
    let block = Block { id: id.to_owned(), blocked_by: owned(blockers), ..Block::default() };
    fixture.board.work().block(&block)
}

fn state(fixture: &Fixture, id: &str) -> (Status, Option<String>, Vec<String>) {
    let history = fixture.board.work().status(id).unwrap();
    (history.item.status, history.item.blocked_by, history.open_blockers)
}

fn blocked_by(blockers: &[&str]) -> (Status, Option<String>, Vec<String>) {
    (Status::Blocked, blockers.first().map(|&blocker| blocker.to_owned()), owned(blockers))
}

fn complete_all(fixture: &Fixture, session: &str, ids: &[&str]) {
    for id in ids {
        fixture.claim(id, session);
        fixture.complete(id, session);
    }
}

fn item_with_several_blockers_shows_the_first_open_one(fixture: &Fixture) {
    let session = fixture.session("Ivy");
    for id in ["x", "a", "b", "z", "w"] {
        fixture.item(id);
    }
    let (blocked, recorded) = fixture.events_of(|| block(fixture, "x", &["z", "b"]).unwrap());
    assert_eq!(recorded, [EventType::WorkBlocked]);
    assert_eq!(fixture.events().pop().unwrap().summary, "\"Title of x\" is blocked by z, b");
    assert_eq!(blocked.open_blockers, ["b", "z"], "what was said at once stands in the order of ids");
    assert_eq!(blocked.item, fixture.work("x"));
    fixture.pass(1);
    let more = block(fixture, "x", &["a", "w"]).unwrap();
    assert_eq!(more.open_blockers, ["b", "z", "a", "w"], "what was said first stands first");
    assert_eq!(state(fixture, "x"), blocked_by(&["b", "z", "a", "w"]));
    complete_all(fixture, &session, &["a"]);
    assert_eq!(state(fixture, "x"), blocked_by(&["b", "z", "w"]));
    complete_all(fixture, &session, &["b"]);
    assert_eq!(state(fixture, "x"), blocked_by(&["z", "w"]));
    assert_eq!(fixture.events().pop().unwrap().summary, "\"Title of x\" is still blocked by z, w");
    assert_eq!(fixture.board.work().status("z").unwrap().dependents, ["x"]);
}

fn missing_blocker_blocks_and_is_named(fixture: &Fixture) {
    let session = fixture.session("Ivy");
    let create = Create { blocked_by: owned(&["gh:owner/repo#78", "later"]), ..Create::new("x", "X") };
    let created = fixture.board.work().create(&create).unwrap();
    assert_eq!(created.missing_blockers, ["gh:owner/repo#78", "later"]);
    assert_eq!(state(fixture, "x"), blocked_by(&["gh:owner/repo#78", "later"]));
    fixture.item("y");
    assert_eq!(block(fixture, "y", &["x", "later"]).unwrap().missing_blockers, ["later"]);
    for id in ["gh:owner/repo#78", "later"] {
        fixture.item(id);
    }
    assert_eq!(state(fixture, "x").0, Status::Blocked);
    complete_all(fixture, &session, &["later", "gh:owner/repo#78"]);
    assert_eq!(state(fixture, "x"), (Status::Available, None, Vec::new()));
    assert_eq!(state(fixture, "y"), blocked_by(&["x"]));
}

fn created_item_is_blocked_only_by_open_items(fixture: &Fixture) {
    let session = fixture.session("Ivy");
    fixture.item("done");
    complete_all(fixture, &session, &["done"]);
    assert_eq!(fixture.blocked_item("x", &["done"]).status, Status::Available);
    fixture.item("open");
    let (item, recorded) = fixture.events_of(|| fixture.blocked_item("y", &["done", "open", "open"]));
    assert_eq!(recorded, [EventType::WorkCreated, EventType::WorkBlocked]);
    assert_eq!((item.status, item.blocked_by.as_deref()), (Status::Blocked, Some("open")));
    assert_eq!(item.revision, fixture.revision());
    assert_eq!(fixture.work("y"), item);
}

fn completing_the_last_blocker_makes_the_item_available_in_the_same_commit(fixture: &Fixture) {
    let session = fixture.session("Ivy");
    for id in ["a", "b"] {
        fixture.item(id);
    }
    fixture.blocked_item("x", &["a", "b"]);
    fixture.blocked_item("y", &["b"]);
    complete_all(fixture, &session, &["a"]);
    fixture.claim("b", &session);
    let (completed, recorded) =
        fixture.events_of(|| fixture.board.work().complete(&Complete::of("b", &session)).unwrap());
    assert_eq!(recorded, [EventType::WorkCompleted, EventType::WorkUnblocked, EventType::WorkUnblocked]);
    assert_eq!(completed.unblocked, ["x", "y"]);
    let events = fixture.events();
    let [.., completed, first, second] = &events[..] else { panic!() };
    assert_eq!([first.commit_id, second.commit_id], [completed.id; 2]);
    assert_eq!(first.summary, "\"Title of x\" is no longer blocked");
    for (id, revision) in [("x", first.id), ("y", second.id)] {
        assert_eq!(state(fixture, id), (Status::Available, None, Vec::new()));
        assert_eq!(fixture.work(id).revision, revision);
    }
}

fn blocked_item_keeps_its_holder(fixture: &Fixture) {
    let (ivy, oak) = (fixture.session("Ivy"), fixture.session("Oak"));
    for id in ["a", "x", "y", "z"] {
        fixture.item(id);
    }
    for id in ["x", "y", "z"] {
        fixture.claim(id, &ivy);
        block(fixture, id, &["a"]).unwrap();
    }
    let item = fixture.work("x");
    assert_eq!((item.status, item.claimed_by.as_ref()), (Status::Blocked, Some(&ivy)));
    assert!(fixture.claim("x", &ivy).already_held);
    assert_eq!(code(fixture.board.work().claim(&Claim::of("x", &oak))), Code::WorkBlocked);
    assert_eq!(code(fixture.board.work().complete(&Complete::of("x", &ivy))), Code::WorkBlocked);
    assert_eq!(code(fixture.board.work().complete(&Complete::of("x", &oak))), Code::NotHolder);

    fixture.release("x", &ivy);
    let released = fixture.work("x");
    assert_eq!((released.status, released.claimed_by, released.fence), (Status::Blocked, None, None));
    let unblocked = fixture.board.work().unblock("y", &[], Some(&ivy)).unwrap();
    assert!(unblocked.unblocked);
    assert_eq!((unblocked.item.status, unblocked.item.fence), (Status::Claimed, fixture.work("y").fence));
    fixture.complete("y", &ivy);
    complete_all(fixture, &oak, &["a"]);
    assert_eq!(fixture.work("z").status, Status::Claimed, "it was held all the time");
    fixture.complete("z", &ivy);
}

fn dependency_cycle_is_refused(fixture: &Fixture) {
    for id in ["a", "b", "c", "d"] {
        fixture.item(id);
    }
    assert_eq!(code(block(fixture, "a", &["a"])), Code::DependencyCycle);
    block(fixture, "b", &["a"]).unwrap();
    block(fixture, "c", &["b", "d"]).unwrap();
    block(fixture, "d", &["future"]).unwrap();
    for (id, blocker) in [("a", "b"), ("a", "c"), ("b", "c"), ("d", "c")] {
        let (refused, recorded) = fixture.events_of(|| block(fixture, id, &[blocker]));
        assert_eq!(code(refused), Code::DependencyCycle, "{id} waits for {blocker}");
        assert!(recorded.is_empty());
    }
    // An item that already blocks others cannot be created blocked by them.
    let create = |blocker: &str| {
        fixture.board.work().create(&Create { blocked_by: owned(&[blocker]), ..Create::new("future", "F") })
    };
    assert_eq!(code(create("c")), Code::DependencyCycle);
    assert_eq!(code(create("future")), Code::DependencyCycle);
    assert!(create("a").is_ok());
    // A diamond is not a cycle.
    block(fixture, "c", &["a"]).unwrap();
}

fn completed_item_is_not_blocked_and_blocks_nothing(fixture: &Fixture) {
    let session = fixture.session("Ivy");
    fixture.item_that_is("done", Status::Completed, &session);
    fixture.item("x");
    assert_eq!(code(block(fixture, "done", &["x"])), Code::AlreadyCompleted);
    let refused = block(fixture, "x", &["done"]).unwrap_err();
    assert_eq!((refused.code(), refused.hint()), (Code::AlreadyCompleted, None));
    assert_eq!(refused.to_string(), "cannot block on done: it is already completed");
    assert_eq!(code(block(fixture, "nothing", &["x"])), Code::WorkNotFound);
    assert_eq!(code(block(fixture, "x", &["two\nlines"])), Code::InvalidValue);
    assert_eq!(state(fixture, "x"), (Status::Available, None, Vec::new()));
}

fn blocking_again_changes_nothing(fixture: &Fixture) {
    for id in ["a", "x"] {
        fixture.item(id);
    }
    block(fixture, "x", &["a", "a"]).unwrap();
    let (again, recorded) = fixture.events_of(|| block(fixture, "x", &["a"]).unwrap());
    assert!(recorded.is_empty());
    assert_eq!(again.open_blockers, ["a"]);
}

fn a_blocker_that_is_reset_blocks_again_in_the_same_commit(fixture: &Fixture) {
    let (ivy, oak) = (fixture.session("Ivy"), fixture.session("Oak"));
    fixture.item("b");
    for id in ["free", "held", "done", "more"] {
        fixture.blocked_item(id, &["b"]);
    }
    fixture.pass(1);
    block(fixture, "more", &["later"]).unwrap();
    complete_all(fixture, &ivy, &["b", "done"]);
    let held = fixture.claim("held", &oak).item;
    assert_eq!(state(fixture, "more"), blocked_by(&["later"]));
    let (_, recorded) = fixture.events_of(|| fixture.board.work().reset("b", None).unwrap());
    let blocked = EventType::WorkBlocked;
    assert_eq!(recorded, [EventType::WorkReset, blocked.clone(), blocked.clone(), blocked]);
    let events = fixture.events();
    let [.., reset, free, _, more] = &events[..] else { panic!() };
    assert_eq!(more.commit_id, reset.id);
    assert_eq!(free.summary, "\"Title of free\" is blocked by b");
    assert_eq!(state(fixture, "free"), blocked_by(&["b"]));
    assert_eq!(state(fixture, "more"), blocked_by(&["b", "later"]));
    assert_eq!(fixture.work("done").status, Status::Completed);
    let waits = fixture.work("held");
    assert_eq!(
        (waits.status, waits.claimed_by, waits.fence),
        (Status::Blocked, Some(oak.clone()), held.fence)
    );
    complete_all(fixture, &ivy, &["b"]);
    assert_eq!(state(fixture, "free").0, Status::Available);
    fixture.complete("held", &oak);
}

fn unblock_removes_named_blockers_or_all(fixture: &Fixture) {
    fixture.blocked_item("x", &["a", "b", "c"]);
    let unblock = |blockers: &[&str]| {
        fixture.events_of(|| fixture.board.work().unblock("x", &owned(blockers), None).unwrap())
    };
    let (nothing, recorded) = unblock(&["unknown"]);
    assert!(!nothing.unblocked && recorded.is_empty());
    assert_eq!(nothing.open_blockers, ["a", "b", "c"]);
    let (less, recorded) = unblock(&["a"]);
    assert_eq!((less.unblocked, recorded), (false, vec![EventType::WorkBlocked]));
    assert_eq!(less.item.blocked_by.as_deref(), Some("b"));
    assert_eq!(state(fixture, "x"), blocked_by(&["b", "c"]));
    let (free, recorded) = unblock(&[]);
    assert_eq!((free.unblocked, recorded), (true, vec![EventType::WorkUnblocked]));
    assert_eq!(free.item, fixture.work("x"));
    assert_eq!(state(fixture, "x"), (Status::Available, None, Vec::new()));
    let (again, recorded) = unblock(&[]);
    assert!(!again.unblocked && recorded.is_empty());
    assert_eq!(code(fixture.board.work().unblock("nothing", &[], None)), Code::WorkNotFound);
}

fn every_change_of_dependencies_has_an_event(fixture: &Fixture) {
    fixture.blocked_item("x", &["a", "b"]);
    let unblock = |blocker: &str| {
        let before = fixture.board.export().unwrap();
        let (_, recorded) =
            fixture.events_of(|| fixture.board.work().unblock("x", &owned(&[blocker]), None).unwrap());
        assert_ne!(fixture.board.export().unwrap().work_dependencies, before.work_dependencies);
        recorded
    };
    assert_eq!(unblock("b"), [EventType::WorkBlocked], "the first blocker stays, but there is one less");
    assert_eq!(unblock("a"), [EventType::WorkUnblocked]);
}
