//! What hooks do after every tool call: see `agent/check_in.rs` and `updates.rs`.

use super::{Fixture, a_write, on_every_engine};
use crate::agent::{AgentStatus, CheckIn, CheckedIn, READER, Register};
use crate::entry::Actor;
use crate::error::Code;
use crate::event::EventType;
use crate::file::{Edited, Release, Reserve, Selection};
use crate::lock::Acquire;
use crate::project::RegisterProject;
use crate::store::{Cursor, Key};
use crate::work::Create;

on_every_engine!(
    each_event_is_delivered_once,
    one_of_many_concurrent_check_ins_gets_the_updates,
    irrelevant_events_are_not_delivered_and_keep_the_cursor,
    cursor_far_behind_moves_without_updates,
    signs_of_life_are_throttled,
    check_in_distinguishes_idle_and_active,
    check_in_recovers_a_stale_session_and_reports_its_losses,
    check_in_of_an_ended_session_is_refused,
    session_far_behind_gets_the_newest_updates_and_a_count,
    released_files_are_reported_to_the_session_that_was_denied,
    expired_lock_is_reported_to_its_holder,
    signal_updates_include_the_value,
    events_of_another_project_are_not_delivered,
    session_that_does_not_listen_keeps_its_updates,
);

fn check_in(fixture: &Fixture, session: &str) -> CheckedIn {
    fixture.board.agents().check_in(&CheckIn::of(session)).unwrap()
}

/// The types of events that a session gets now.
fn update_types(fixture: &Fixture, session: &str) -> Vec<EventType> {
    check_in(fixture, session).updates.events.into_iter().map(|event| event.event_type).collect()
}

fn cursor(fixture: &Fixture, session: &str) -> Option<i64> {
    let key = Key::Cursor(session.to_owned(), READER.to_owned());
    let cursor = fixture.read(|tx| tx.row::<Cursor>(&key)).unwrap();
    cursor.map(|cursor| cursor.revision.get())
}

fn each_event_is_delivered_once(fixture: &Fixture) {
    let (ivy, oak) = (fixture.session("Ivy"), fixture.session("Oak"));
    fixture.item("x");
    assert_eq!(update_types(fixture, &ivy), [EventType::AgentRegistered, EventType::WorkCreated]);
    assert!(update_types(fixture, &ivy).is_empty());
    assert_eq!(update_types(fixture, &oak), [EventType::WorkCreated], "each session has its own cursor");
    fixture.claim("x", &oak);
    fixture.complete("x", &oak);
    assert_eq!(update_types(fixture, &ivy), [EventType::WorkCompleted]);
    assert!(update_types(fixture, &oak).is_empty(), "its own events are not told");
}

fn one_of_many_concurrent_check_ins_gets_the_updates(fixture: &Fixture) {
    let ivy = fixture.session("Ivy");
    for number in 0..5 {
        fixture.item(&number.to_string());
    }
    let counts: Vec<usize> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..16).map(|_| scope.spawn(|| update_types(fixture, &ivy).len())).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(counts.iter().sum::<usize>(), 5, "{counts:?}");
}

fn irrelevant_events_are_not_delivered_and_keep_the_cursor(fixture: &Fixture) {
    let ivy = fixture.session("Ivy");
    let before = cursor(fixture, &ivy);
    fixture.write("result:1", "1");
    fixture.write("signal:Oak:stop", "1");
    let checked_in = check_in(fixture, &ivy);
    assert!(checked_in.updates.is_empty() && !checked_in.wrote);
    assert_eq!(cursor(fixture, &ivy), before);
}

fn cursor_far_behind_moves_without_updates(fixture: &Fixture) {
    let ivy = fixture.session("Ivy");
    for number in 0..200 {
        fixture.write("result:1", &number.to_string());
    }
    let checked_in = check_in(fixture, &ivy);
    assert!(checked_in.updates.is_empty() && checked_in.wrote);
    assert_eq!(cursor(fixture, &ivy), Some(fixture.revision().get()));
}

fn signs_of_life_are_throttled(fixture: &Fixture) {
    let ivy = fixture.session("Ivy");
    let start = fixture.now();
    fixture.pass(4);
    assert!(!check_in(fixture, &ivy).wrote);
    assert_eq!(fixture.agent(&ivy).last_beat_at, start);
    fixture.pass(1);
    let (checked_in, events) = fixture.events_of(|| check_in(fixture, &ivy));
    assert!(checked_in.wrote && events.is_empty(), "{events:?}");
    assert_eq!((checked_in.agent.last_beat_at, fixture.agent(&ivy)), (fixture.now(), checked_in.agent));
    assert!(!check_in(fixture, &ivy).wrote);
}

fn check_in_distinguishes_idle_and_active(fixture: &Fixture) {
    let ivy = fixture.session("Ivy");
    let idle = CheckIn { status: AgentStatus::Idle, listens: false, ..CheckIn::of(&ivy) };
    assert!(fixture.board.agents().check_in(&idle).unwrap().wrote);
    assert_eq!(fixture.agent(&ivy).status, AgentStatus::Idle);
    assert!(!fixture.board.agents().check_in(&idle).unwrap().wrote);
    let (checked_in, events) = fixture.events_of(|| check_in(fixture, &ivy));
    assert_eq!((checked_in.agent.status, events), (AgentStatus::Active, vec![EventType::AgentUpdated]));
    assert!(!checked_in.agent.revision.to_string().is_empty());
    assert_eq!(checked_in.agent, fixture.agent(&ivy), "what is returned is what is stored");
}

fn check_in_recovers_a_stale_session_and_reports_its_losses(fixture: &Fixture) {
    let ivy = fixture.session("Ivy");
    fixture.item("x");
    fixture.claim("x", &ivy);
    fixture.board.locks().acquire(&Acquire::of("deploy", &ivy)).unwrap();
    check_in(fixture, &ivy);
    fixture.pass(301);
    fixture.sweep();
    let recorded = update_types(fixture, &ivy);
    assert_eq!(recorded, [EventType::AgentStale, EventType::StaleLocksReleased, EventType::EntryDeleted]);
    assert_eq!(fixture.agent(&ivy).status, AgentStatus::Active);
}

fn check_in_of_an_ended_session_is_refused(fixture: &Fixture) {
    let ivy = fixture.session("Ivy");
    fixture.board.agents().deregister(&ivy).unwrap();
    let refused = fixture.board.agents().check_in(&CheckIn::of(&ivy)).unwrap_err();
    assert_eq!(refused.code(), Code::SessionEnded);
    let unknown = fixture.board.agents().check_in(&CheckIn::of("unknown")).unwrap_err();
    assert_eq!(unknown.code(), Code::AgentNotFound);
}

fn session_far_behind_gets_the_newest_updates_and_a_count(fixture: &Fixture) {
    let ivy = fixture.session("Ivy");
    for number in 0..25 {
        fixture.item(&format!("item-{number:02}"));
    }
    let updates = check_in(fixture, &ivy).updates;
    assert_eq!((updates.events.len(), updates.left_out), (10, 15));
    assert_eq!(updates.events[9].target_id.as_deref(), Some("item-24"));
    assert!(check_in(fixture, &ivy).updates.is_empty(), "what was left out is not told later");
}

fn released_files_are_reported_to_the_session_that_was_denied(fixture: &Fixture) {
    let (ivy, oak) = (fixture.session("Ivy"), fixture.session("Oak"));
    fixture.board.files().reserve(&Reserve::of("/w", &["src/**"], &oak)).unwrap();
    let edited =
        Edited { worktree: "/w".to_owned(), paths: vec!["src/lib.rs".to_owned()], tool: None, denied: true };
    fixture.board.agents().check_in(&CheckIn { edited: Some(edited), ..CheckIn::of(&ivy) }).unwrap();
    let release = Release { session: oak.clone(), which: Selection::All };
    fixture.board.files().release(&release).unwrap();
    let updates = check_in(fixture, &ivy).updates;
    assert_eq!(updates.events.len(), 1, "{updates:?}");
    assert!(updates.events[0].summary.contains("src/**"), "{updates:?}");
    fixture.board.files().reserve(&Reserve::of("/w", &["docs/**"], &oak)).unwrap();
    assert!(check_in(fixture, &ivy).updates.is_empty());
}

fn expired_lock_is_reported_to_its_holder(fixture: &Fixture) {
    let (ivy, oak) = (fixture.session("Ivy"), fixture.session("Oak"));
    update_types(fixture, &ivy);
    let ttl = Some(std::time::Duration::from_secs(5));
    fixture.board.locks().acquire(&Acquire { ttl, ..Acquire::of("deploy", &ivy) }).unwrap();
    assert!(update_types(fixture, &oak).is_empty());
    fixture.pass(5);
    fixture.sweep();
    assert_eq!(update_types(fixture, &ivy), [EventType::EntryExpired]);
    assert!(update_types(fixture, &oak).is_empty());
}

fn signal_updates_include_the_value(fixture: &Fixture) {
    let (ivy, oak) = (fixture.session("Ivy"), fixture.session("Oak"));
    check_in(fixture, &ivy);
    let scope = fixture.board.scope("team").acting_as(Actor::session(&oak));
    scope.write(&a_write("signal:Ivy:stop", r#""please wait""#)).unwrap();
    let updates = check_in(fixture, &ivy).updates;
    let change = updates.events[0].entry.as_ref().unwrap();
    assert_eq!(
        (change.author.as_str(), change.value.as_ref().unwrap().as_str()),
        ("Oak", r#""please wait""#)
    );
}

fn events_of_another_project_are_not_delivered(fixture: &Fixture) {
    for project in ["pai", "other"] {
        fixture.board.projects().register(&RegisterProject::new(project, project)).unwrap();
    }
    let of = |name: &str, project: &str| {
        let project = Some(project.to_owned());
        fixture.register(&Register { project, ..Register::named(name) }).session_id
    };
    let ivy = of("Ivy", "pai");
    of("Oak", "other");
    of("Elm", "pai");
    for (id, project) in [("a", Some("pai")), ("b", Some("other")), ("c", None)] {
        let project = project.map(str::to_owned);
        fixture.board.work().create(&Create { project, ..Create::new(id, id) }).unwrap();
    }
    let updates = check_in(fixture, &ivy).updates;
    let targets: Vec<_> = updates.events.iter().filter_map(|event| event.target_id.as_deref()).collect();
    assert_eq!(targets.len(), 3, "{updates:?}");
    assert_eq!(targets[1..], ["a", "c"]);
}

fn session_that_does_not_listen_keeps_its_updates(fixture: &Fixture) {
    let ivy = fixture.session("Ivy");
    fixture.item("x");
    fixture.pass(60);
    let deaf = CheckIn { listens: false, ..CheckIn::of(&ivy) };
    assert!(fixture.board.agents().check_in(&deaf).unwrap().updates.is_empty());
    assert_eq!(update_types(fixture, &ivy), [EventType::WorkCreated]);
}
