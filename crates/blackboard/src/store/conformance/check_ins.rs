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
    each_event_is_told_once,
    of_many_who_attend_at_once_one_is_told,
    what_is_nobodys_business_is_not_told_and_moves_no_cursor,
    a_cursor_that_is_far_behind_moves_without_news,
    signs_of_life_are_throttled,
    idle_and_active_are_told_apart,
    a_stale_session_comes_back_and_hears_what_it_lost,
    a_session_that_has_ended_does_not_come_back,
    whoever_was_away_is_told_the_newest_and_how_many_more,
    files_that_were_wanted_are_told_of_when_they_are_free,
    a_lock_that_ran_out_is_told_to_its_holder,
    signals_carry_their_value,
    what_happens_in_another_project_is_not_told,
    who_does_not_listen_misses_nothing,
);

fn check_in(fixture: &Fixture, session: &str) -> CheckedIn {
    fixture.board.agents().check_in(&CheckIn::of(session)).unwrap()
}

/// The types of events that a session gets now.
fn told(fixture: &Fixture, session: &str) -> Vec<EventType> {
    check_in(fixture, session).news.events.into_iter().map(|event| event.event_type).collect()
}

fn cursor(fixture: &Fixture, session: &str) -> Option<i64> {
    let key = Key::Cursor(session.to_owned(), READER.to_owned());
    let cursor = fixture.read(|tx| tx.row::<Cursor>(&key)).unwrap();
    cursor.map(|cursor| cursor.revision.get())
}

fn each_event_is_told_once(fixture: &Fixture) {
    let (ivy, oak) = (fixture.session("Ivy"), fixture.session("Oak"));
    fixture.item("x");
    assert_eq!(told(fixture, &ivy), [EventType::AgentRegistered, EventType::WorkCreated]);
    assert!(told(fixture, &ivy).is_empty());
    assert_eq!(told(fixture, &oak), [EventType::WorkCreated], "each session has its own cursor");
    fixture.claim("x", &oak);
    fixture.complete("x", &oak);
    assert_eq!(told(fixture, &ivy), [EventType::WorkCompleted]);
    assert!(told(fixture, &oak).is_empty(), "its own events are not told");
}

fn of_many_who_attend_at_once_one_is_told(fixture: &Fixture) {
    let ivy = fixture.session("Ivy");
    for number in 0..5 {
        fixture.item(&number.to_string());
    }
    let counts: Vec<usize> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..16).map(|_| scope.spawn(|| told(fixture, &ivy).len())).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(counts.iter().sum::<usize>(), 5, "{counts:?}");
}

fn what_is_nobodys_business_is_not_told_and_moves_no_cursor(fixture: &Fixture) {
    let ivy = fixture.session("Ivy");
    let before = cursor(fixture, &ivy);
    fixture.write("result:1", "1");
    fixture.write("signal:Oak:stop", "1");
    let attended = check_in(fixture, &ivy);
    assert!(attended.news.is_empty() && !attended.wrote);
    assert_eq!(cursor(fixture, &ivy), before);
}

fn a_cursor_that_is_far_behind_moves_without_news(fixture: &Fixture) {
    let ivy = fixture.session("Ivy");
    for number in 0..200 {
        fixture.write("result:1", &number.to_string());
    }
    let attended = check_in(fixture, &ivy);
    assert!(attended.news.is_empty() && attended.wrote);
    assert_eq!(cursor(fixture, &ivy), Some(fixture.revision().get()));
}

fn signs_of_life_are_throttled(fixture: &Fixture) {
    let ivy = fixture.session("Ivy");
    let start = fixture.now();
    fixture.pass(4);
    assert!(!check_in(fixture, &ivy).wrote);
    assert_eq!(fixture.agent(&ivy).last_beat_at, start);
    fixture.pass(1);
    let (attended, events) = fixture.told_by(|| check_in(fixture, &ivy));
    assert!(attended.wrote && events.is_empty(), "{events:?}");
    assert_eq!((attended.agent.last_beat_at, fixture.agent(&ivy)), (fixture.now(), attended.agent));
    assert!(!check_in(fixture, &ivy).wrote);
}

fn idle_and_active_are_told_apart(fixture: &Fixture) {
    let ivy = fixture.session("Ivy");
    let idle = CheckIn { status: AgentStatus::Idle, listens: false, ..CheckIn::of(&ivy) };
    assert!(fixture.board.agents().check_in(&idle).unwrap().wrote);
    assert_eq!(fixture.agent(&ivy).status, AgentStatus::Idle);
    assert!(!fixture.board.agents().check_in(&idle).unwrap().wrote);
    let (attended, events) = fixture.told_by(|| check_in(fixture, &ivy));
    assert_eq!((attended.agent.status, events), (AgentStatus::Active, vec![EventType::AgentUpdated]));
    assert!(!attended.agent.revision.to_string().is_empty());
    assert_eq!(attended.agent, fixture.agent(&ivy), "what is returned is what is stored");
}

fn a_stale_session_comes_back_and_hears_what_it_lost(fixture: &Fixture) {
    let ivy = fixture.session("Ivy");
    fixture.item("x");
    fixture.claim("x", &ivy);
    fixture.board.locks().acquire(&Acquire::of("deploy", &ivy)).unwrap();
    check_in(fixture, &ivy);
    fixture.pass(301);
    fixture.sweep();
    let told = told(fixture, &ivy);
    assert_eq!(told, [EventType::AgentStale, EventType::StaleLocksReleased, EventType::EntryDeleted]);
    assert_eq!(fixture.agent(&ivy).status, AgentStatus::Active);
}

fn a_session_that_has_ended_does_not_come_back(fixture: &Fixture) {
    let ivy = fixture.session("Ivy");
    fixture.board.agents().deregister(&ivy).unwrap();
    let refused = fixture.board.agents().check_in(&CheckIn::of(&ivy)).unwrap_err();
    assert_eq!(refused.code(), Code::SessionEnded);
    let unknown = fixture.board.agents().check_in(&CheckIn::of("nobody")).unwrap_err();
    assert_eq!(unknown.code(), Code::AgentNotFound);
}

fn whoever_was_away_is_told_the_newest_and_how_many_more(fixture: &Fixture) {
    let ivy = fixture.session("Ivy");
    for number in 0..25 {
        fixture.item(&format!("item-{number:02}"));
    }
    let news = check_in(fixture, &ivy).news;
    assert_eq!((news.events.len(), news.left_out), (10, 15));
    assert_eq!(news.events[9].target_id.as_deref(), Some("item-24"));
    assert!(check_in(fixture, &ivy).news.is_empty(), "what was left out is not told later");
}

fn files_that_were_wanted_are_told_of_when_they_are_free(fixture: &Fixture) {
    let (ivy, oak) = (fixture.session("Ivy"), fixture.session("Oak"));
    fixture.board.files().reserve(&Reserve::of("/w", &["src/**"], &oak)).unwrap();
    let edited =
        Edited { worktree: "/w".to_owned(), paths: vec!["src/lib.rs".to_owned()], tool: None, denied: true };
    fixture.board.agents().check_in(&CheckIn { edited: Some(edited), ..CheckIn::of(&ivy) }).unwrap();
    let release = Release { session: oak.clone(), which: Selection::All };
    fixture.board.files().release(&release).unwrap();
    let news = check_in(fixture, &ivy).news;
    assert_eq!(news.events.len(), 1, "{news:?}");
    assert!(news.events[0].summary.contains("src/**"), "{news:?}");
    fixture.board.files().reserve(&Reserve::of("/w", &["docs/**"], &oak)).unwrap();
    assert!(check_in(fixture, &ivy).news.is_empty());
}

fn a_lock_that_ran_out_is_told_to_its_holder(fixture: &Fixture) {
    let (ivy, oak) = (fixture.session("Ivy"), fixture.session("Oak"));
    told(fixture, &ivy);
    let ttl = Some(std::time::Duration::from_secs(5));
    fixture.board.locks().acquire(&Acquire { ttl, ..Acquire::of("deploy", &ivy) }).unwrap();
    assert!(told(fixture, &oak).is_empty());
    fixture.pass(5);
    fixture.sweep();
    assert_eq!(told(fixture, &ivy), [EventType::EntryExpired]);
    assert!(told(fixture, &oak).is_empty());
}

fn signals_carry_their_value(fixture: &Fixture) {
    let (ivy, oak) = (fixture.session("Ivy"), fixture.session("Oak"));
    check_in(fixture, &ivy);
    let scope = fixture.board.scope("team").acting_as(Actor::session(&oak));
    scope.write(&a_write("signal:Ivy:stop", r#""please wait""#)).unwrap();
    let news = check_in(fixture, &ivy).news;
    let change = news.events[0].entry.as_ref().unwrap();
    assert_eq!(
        (change.author.as_str(), change.value.as_ref().unwrap().as_str()),
        ("Oak", r#""please wait""#)
    );
}

fn what_happens_in_another_project_is_not_told(fixture: &Fixture) {
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
    let news = check_in(fixture, &ivy).news;
    let targets: Vec<_> = news.events.iter().filter_map(|event| event.target_id.as_deref()).collect();
    assert_eq!(targets.len(), 3, "{news:?}");
    assert_eq!(targets[1..], ["a", "c"]);
}

fn who_does_not_listen_misses_nothing(fixture: &Fixture) {
    let ivy = fixture.session("Ivy");
    fixture.item("x");
    fixture.pass(60);
    let deaf = CheckIn { listens: false, ..CheckIn::of(&ivy) };
    assert!(fixture.board.agents().check_in(&deaf).unwrap().news.is_empty());
    assert_eq!(told(fixture, &ivy), [EventType::WorkCreated]);
}
