//! The event log: pages of complete commits, an oldest kept revision that only rises, and cursors.

use super::*;
use crate::agent::Heartbeat;
use crate::event::{Observation, Since};

on_every_engine![
    a_page_never_splits_a_commit,
    a_page_may_be_of_some_types_and_end_early,
    pruning_raises_the_oldest_kept_revision_and_ids_continue,
    the_engine_counts_events_and_finds_the_last_ones,
    a_bound_between_two_commits_counts_as_the_event_before,
    the_revision_before_a_moment_is_found,
    revision_before_a_moment_is_found_although_the_clock_went_back,
    the_first_observation_of_a_session_starts_at_its_registration,
    cursors_are_kept_for_each_session_and_reader,
    a_cursor_never_goes_back,
    pruned_events_are_reported_once_to_a_cursor,
    pruning_between_two_batches_is_reported,
    a_cursor_ahead_of_the_board_is_refused,
    an_observation_since_a_moment_or_revision_uses_no_cursor,
    observation_ends_at_the_revision_of_its_start,
];

fn ids(fixture: &Fixture, events: &[Event]) -> Vec<i64> {
    events.iter().map(|event| fixture.number(event.id)).collect()
}

/// Commits of 1, 3, 2 and 1 events.
fn four_commits(fixture: &Fixture) {
    for count in [1, 3, 2, 1] {
        let rows: Vec<Row> = (0..count).map(|number| an_item(&format!("x{number}")).into()).collect();
        fixture.put(&rows);
        fixture.pass(10);
    }
}

fn a_page_never_splits_a_commit(fixture: &Fixture) {
    four_commits(fixture);
    for (after, limit, expected) in [
        (0, 0, &[][..]),
        (0, 1, &[1]),
        (0, 2, &[1, 2, 3, 4]),
        (1, 1, &[2, 3, 4]),
        (1, 3, &[2, 3, 4]),
        (1, 4, &[2, 3, 4, 5, 6]),
        (6, 100, &[7]),
        (7, 100, &[]),
    ] {
        let page = Page::after(fixture.id(after), limit);
        let events = fixture.read(|tx| tx.events(&page)).unwrap();
        assert_eq!(ids(fixture, &events), expected, "after {after}, limit {limit}");
    }
}

fn a_page_may_be_of_some_types_and_end_early(fixture: &Fixture) {
    let session = fixture.session("Ivy");
    for number in 0..3 {
        let progress = Some(format!("Step {number}"));
        fixture.board.agents().heartbeat(&Heartbeat { progress, ..Heartbeat::of(&session) }).unwrap();
        fixture.item(&format!("x{number}"));
    }
    let created = [EventType::WorkCreated];
    let both = [EventType::WorkCreated, EventType::AgentRegistered];
    for (types, until, limit, expected) in [
        (&created[..], 100, 100, &[3, 5, 7][..]),
        (&created, 100, 2, &[3, 5]),
        (&created, 5, 100, &[3, 5]),
        (&created, 4, 100, &[3]),
        (&both, 100, 100, &[1, 3, 5, 7]),
        (&[], 2, 100, &[1, 2]),
    ] {
        let page = Page { after: Revision::ZERO, until: fixture.id(until), types, limit };
        let events = fixture.read(|tx| tx.events(&page)).unwrap();
        assert_eq!(ids(fixture, &events), expected, "{types:?} until {until}, limit {limit}");
    }
}

fn trim(fixture: &Fixture, until: i64) {
    fixture.trim(fixture.id(until));
}

fn pruning_raises_the_oldest_kept_revision_and_ids_continue(fixture: &Fixture) {
    let floor = || fixture.read(|tx| tx.floor()).unwrap();
    assert_eq!(floor(), Revision::ZERO);
    four_commits(fixture);
    assert_eq!(floor(), Revision::ZERO);
    trim(fixture, 4);
    assert_eq!((floor(), fixture.revision()), (fixture.id(4), fixture.id(7)));
    assert_eq!(ids(fixture, &fixture.events()), [5, 6, 7]);
    trim(fixture, 2);
    assert_eq!(floor(), fixture.id(4), "a floor never sinks");
    trim(fixture, 6);
    fixture.put(&[an_item("x").into()]);
    assert_eq!(ids(fixture, &fixture.events()), [7, 8]);
}

fn the_revision_before_a_moment_is_found(fixture: &Fixture) {
    let start = fixture.now();
    let before = |seconds| {
        let moment = start.plus(Duration::from_secs(seconds));
        fixture.number(fixture.read(|tx| tx.revision_before(moment)).unwrap())
    };
    assert_eq!(before(100), 0);
    four_commits(fixture);
    for (seconds, expected) in [(0, 0), (1, 1), (10, 1), (11, 4), (20, 4), (21, 6), (30, 6), (31, 7), (99, 7)]
    {
        assert_eq!(before(seconds), expected, "{seconds} s");
    }
    trim(fixture, 4);
    assert_eq!(before(1), 4, "nothing that is kept is older, so everything after the floor is newer");
}

fn revision_before_a_moment_is_found_although_the_clock_went_back(fixture: &Fixture) {
    let start = fixture.now();
    let after = |seconds| start.plus(Duration::from_secs(seconds));
    fixture.put(&[an_item("x").into()]);
    // So far ahead that the times of later events are not raised to it.
    fixture.clock.set(after(3 * 86_400));
    fixture.put(&[an_item("x").into()]);
    fixture.clock.set(after(10));
    fixture.put(&[an_item("x").into()]);
    let times: Vec<_> = fixture.events().iter().map(|event| event.timestamp).collect();
    assert_eq!(times, [start, after(3 * 86_400), after(10)]);
    for (seconds, expected) in [(0, 0), (1, 1), (20, 1), (2 * 86_400, 1), (4 * 86_400, 3)] {
        let before = fixture.read(|tx| tx.revision_before(after(seconds))).unwrap();
        assert_eq!(fixture.number(before), expected, "{seconds} s");
    }
}

fn the_engine_counts_events_and_finds_the_last_ones(fixture: &Fixture) {
    four_commits(fixture);
    let read = |after, until, back| {
        let (after, until) = (fixture.id(after), fixture.id(until));
        let read = fixture.read(|tx| Ok((tx.count_events(after, until)?, tx.revision_back(until, back)?)));
        let (count, start) = read.unwrap();
        (count, fixture.number(start))
    };
    assert_eq!(read(0, 7, 0), (7, 7));
    assert_eq!(read(0, 7, 1), (7, 6));
    assert_eq!(read(3, 5, 2), (2, 3));
    assert_eq!(read(5, 3, 9), (0, 0));
    assert_eq!(read(6, 9, u64::MAX), (1, 0), "an end ahead of the board is the end of the board");
    trim(fixture, 4);
    assert_eq!(
        read(0, 7, 100),
        (3, 4),
        "events that are pruned do not count, and no revision is below the floor"
    );
    assert_eq!(read(2, 4, 1), (0, 4));
}

/// On an engine with gaps, no event has the id before the first one of a commit. On others it is the event before.
fn a_bound_between_two_commits_counts_as_the_event_before(fixture: &Fixture) {
    four_commits(fixture);
    let between = |number| fixture.id(number).previous();
    let read = |after, until, back| {
        let read = fixture.read(|tx| Ok((tx.count_events(after, until)?, tx.revision_back(until, back)?)));
        let (count, start) = read.unwrap();
        (count, fixture.number(start))
    };
    assert_eq!(read(Revision::ZERO, between(1), 1), (0, 0));
    assert_eq!(read(between(2), between(5), 1), (3, 3));
    assert_eq!(read(between(5), between(7), 3), (2, 3));
    fixture.trim(between(5));
    assert_eq!(fixture.read(|tx| tx.floor()).unwrap(), between(5));
    assert_eq!(read(Revision::ZERO, between(7), 1), (2, 5));
    assert_eq!(read(between(5), fixture.id(7), 3), (3, 4));
    fixture.put(&[an_item("x").into()]);
    assert_eq!(read(between(5), fixture.revision(), 1), (4, 7));
    let last = fixture.now();
    fixture.pass(1);
    assert_eq!(fixture.read(|tx| tx.revision_before(last)).unwrap(), fixture.id(7));
}

fn since(session: &str, reader: &str) -> Since {
    Since::Cursor { session: session.to_owned(), reader: reader.to_owned() }
}

fn observe(fixture: &Fixture, session: &str, reader: &str) -> Observation {
    fixture.board.events().observe(&since(session, reader), &[]).unwrap()
}

/// Reads to the end, and returns the ids.
fn read(fixture: &Fixture, observation: &Observation) -> Vec<i64> {
    let mut read = Vec::new();
    let mut after = observation.after;
    while let Some(batch) = fixture.board.events().next(observation, after, 1).unwrap() {
        read.extend(ids(fixture, &batch.events));
        after = batch.last;
    }
    read
}

fn advance(fixture: &Fixture, session: &str, reader: &str, revision: i64) {
    fixture.board.events().advance(session, reader, fixture.id(revision)).unwrap();
}

fn the_first_observation_of_a_session_starts_at_its_registration(fixture: &Fixture) {
    fixture.item("before");
    let session = fixture.session("Ivy");
    fixture.item("after");
    let observation = observe(fixture, &session, "observe");
    assert_eq!(observation.since, Some(fixture.now()));
    assert_eq!(read(fixture, &observation), [3]);
    let unknown = fixture.board.events().observe(&since("unknown", "observe"), &[]);
    assert_eq!(code(unknown), Code::AgentNotFound);
}

fn cursors_are_kept_for_each_session_and_reader(fixture: &Fixture) {
    let (ivy, oak) = (fixture.session("Ivy"), fixture.session("Oak"));
    fixture.item("x");
    advance(fixture, &ivy, "observe", 3);
    fixture.item("y");
    assert_eq!(read(fixture, &observe(fixture, &ivy, "observe")), [4]);
    assert_eq!(read(fixture, &observe(fixture, &ivy, "hook")), [2, 3, 4]);
    assert_eq!(read(fixture, &observe(fixture, &oak, "observe")), [3, 4]);
    assert_eq!(fixture.revision(), fixture.id(4), "a cursor makes no event");
}

fn a_cursor_never_goes_back(fixture: &Fixture) {
    let ivy = fixture.session("Ivy");
    for id in ["x", "y", "z"] {
        fixture.item(id);
    }
    for revision in [3, 2, 3, 1] {
        advance(fixture, &ivy, "observe", revision);
        assert_eq!(observe(fixture, &ivy, "observe").after, fixture.id(3).min(fixture.revision()));
    }
}

fn pruned_events_are_reported_once_to_a_cursor(fixture: &Fixture) {
    let ivy = fixture.session("Ivy");
    for id in ["x", "y", "z"] {
        fixture.item(id);
    }
    advance(fixture, &ivy, "observe", 1);
    trim(fixture, 3);
    let observation = observe(fixture, &ivy, "observe");
    assert!(observation.compacted);
    assert_eq!(read(fixture, &observation), [4]);
    advance(fixture, &ivy, "observe", 4);
    assert!(!observe(fixture, &ivy, "observe").compacted);
    let at_floor = fixture.board.events().observe(&Since::Revision(fixture.id(3)), &[]).unwrap();
    assert!(!at_floor.compacted, "who stands at the floor has missed nothing");
    let below = fixture.board.events().observe(&Since::Revision(fixture.id(2)), &[]).unwrap();
    assert!(below.compacted);
}

fn pruning_between_two_batches_is_reported(fixture: &Fixture) {
    for number in 0..6 {
        fixture.item(&format!("x{number}"));
    }
    let log = fixture.board.events();
    let observation = log.observe(&Since::Revision(Revision::ZERO), &[]).unwrap();
    let next = |after| log.next(&observation, fixture.id(after), 2).unwrap().unwrap();
    let first = next(0);
    assert_eq!((ids(fixture, &first.events), first.compacted), (vec![1, 2], false));
    trim(fixture, 2);
    assert!(!next(2).compacted, "what was read may go");
    trim(fixture, 3);
    let second = next(2);
    assert_eq!((ids(fixture, &second.events), second.compacted), (vec![4, 5], true));
    assert!(!next(5).compacted, "it is said once");
    // The rest of it is pruned, and an event follows after its end.
    for number in 6..9 {
        fixture.item(&format!("x{number}"));
    }
    trim(fixture, 8);
    let third = next(5);
    assert_eq!((ids(fixture, &third.events), third.last, third.compacted), (vec![], observation.until, true));
    assert_eq!(log.next(&observation, third.last, 2).unwrap(), None);
}

fn a_cursor_ahead_of_the_board_is_refused(fixture: &Fixture) {
    let ivy = fixture.session("Ivy");
    advance(fixture, &ivy, "observe", 2);
    assert_eq!(code(fixture.board.events().observe(&since(&ivy, "observe"), &[])), Code::CursorAhead);
    fixture.item("x");
    advance(fixture, &ivy, "observe", 2);
    assert!(read(fixture, &observe(fixture, &ivy, "observe")).is_empty());
    let ahead = fixture.board.events().observe(&Since::Revision(fixture.id(3)), &[]);
    assert_eq!(code(ahead), Code::CursorAhead);
}

fn an_observation_since_a_moment_or_revision_uses_no_cursor(fixture: &Fixture) {
    let start = fixture.now();
    four_commits(fixture);
    let moment = Since::Moment(start.plus(Duration::from_secs(10)));
    let observation = fixture.board.events().observe(&moment, &[]).unwrap();
    assert_eq!(read(fixture, &observation), [2, 3, 4, 5, 6, 7]);
    let revision = fixture.board.events().observe(&Since::Revision(fixture.id(4)), &[]).unwrap();
    assert_eq!(read(fixture, &revision), [5, 6, 7]);
    trim(fixture, 6);
    let compacted = fixture.board.events().observe(&moment, &[]).unwrap();
    assert!(!compacted.compacted, "a moment asks for what is there");
    assert_eq!(read(fixture, &compacted), [7]);
}

fn observation_ends_at_the_revision_of_its_start(fixture: &Fixture) {
    fixture.item("x");
    let observation = fixture.board.events().observe(&Since::Revision(Revision::ZERO), &[]).unwrap();
    fixture.item("y");
    assert_eq!(read(fixture, &observation), [1]);
}
