//! Heartbeats: their content, the recovery of stale sessions, and idempotency keys.

use super::*;
use crate::fingerprint::Fingerprint;
use crate::work::Block;

on_every_engine![
    heartbeat_has_an_event_only_if_it_changes_something,
    heartbeat_makes_an_idle_session_active_by_default,
    a_heartbeat_may_be_about_a_work_item_that_exists,
    heartbeat_recovers_a_stale_session_and_reports_its_losses,
    heartbeat_of_a_completed_session_is_refused,
    heartbeat_with_an_idempotency_key_happens_once,
    an_operation_id_belongs_to_one_verb,
];

fn heartbeat_has_an_event_only_if_it_changes_something(fixture: &Fixture) {
    let session = fixture.session("Ivy");
    let beat = |beat: Heartbeat| fixture.events_of(|| fixture.board.agents().heartbeat(&beat).unwrap());
    fixture.pass(30);
    let (plain, recorded) = beat(Heartbeat::of(&session));
    assert!(recorded.is_empty());
    assert_eq!((plain.recovered, plain.last_seen_at), (false, fixture.now()));
    assert_eq!(fixture.agent(&session).last_beat_at, fixture.now());

    let progress =
        Heartbeat { progress: Some("Schema done".to_owned()), milestone: true, ..Heartbeat::of(&session) };
    let (answer, recorded) = beat(progress);
    assert_eq!(recorded, [EventType::HeartbeatReceived]);
    assert_eq!((answer.revision, answer.progress.as_deref()), (fixture.revision(), Some("Schema done")));
    let event = fixture.events().pop().unwrap();
    assert_eq!(event.summary, "Agent \"Ivy\": Schema done");
    assert_eq!(metadata(&event), serde_json::json!({"progress": "Schema done", "milestone": true}));
    let agent = fixture.agent(&session);
    assert_eq!((agent.progress.as_deref(), agent.current_work), (Some("Schema done"), None));

    let work = Heartbeat { work: Some("CLI".to_owned()), ..Heartbeat::of(&session) };
    let (_, recorded) = beat(work.clone());
    assert_eq!(recorded, [EventType::AgentUpdated]);
    assert!(beat(work.clone()).1.is_empty(), "it said so before");
    let both = Heartbeat {
        progress: Some("Half".to_owned()),
        work: Some("Docs".to_owned()),
        ..Heartbeat::of(&session)
    };
    assert_eq!(beat(both).1, [EventType::AgentUpdated, EventType::HeartbeatReceived]);
    assert!(
        beat(Heartbeat { progress: Some("<b></b>".to_owned()), ..work }).1.len() == 1,
        "no progress, other work"
    );
    let says = |work: &str| {
        beat(Heartbeat { work: Some(work.to_owned()), ..Heartbeat::of(&session) }).0.current_work
    };
    assert_eq!(says("<b></b>").as_deref(), Some("CLI"), "markup says nothing");
    assert_eq!(says(""), None);
    assert_eq!(fixture.events().pop().unwrap().summary, "Agent \"Ivy\" has no current work");
}

fn heartbeat_makes_an_idle_session_active_by_default(fixture: &Fixture) {
    let session = fixture.session("Ivy");
    for (said, expected) in [
        (Some(AgentStatus::Idle), AgentStatus::Idle),
        (Some(AgentStatus::Idle), AgentStatus::Idle),
        (None, AgentStatus::Active),
        (Some(AgentStatus::Active), AgentStatus::Active),
        (Some(AgentStatus::Stale), AgentStatus::Active),
        (Some(AgentStatus::Completed), AgentStatus::Active),
    ] {
        let answer =
            fixture.board.agents().heartbeat(&Heartbeat { status: said, ..Heartbeat::of(&session) }).unwrap();
        assert_eq!(answer.status, expected, "{said:?}");
    }
}

fn a_heartbeat_may_be_about_a_work_item_that_exists(fixture: &Fixture) {
    let session = fixture.session("Ivy");
    let beat = Heartbeat {
        work_item: Some("x".to_owned()),
        progress: Some("Half done".to_owned()),
        ..Heartbeat::of(&session)
    };
    assert_eq!(code(fixture.board.agents().heartbeat(&beat)), Code::WorkNotFound);
    assert_eq!(code(fixture.board.agents().heartbeat(&Heartbeat::of("unknown"))), Code::AgentNotFound);
    fixture.item("x");
    fixture.board.agents().heartbeat(&beat).unwrap();
    assert_eq!(
        metadata(&fixture.events().pop().unwrap()),
        serde_json::json!({"progress": "Half done", "work_item_id": "x"})
    );
    fixture.board.work().delete("x", false, None).unwrap();
}

fn heartbeat_recovers_a_stale_session_and_reports_its_losses(fixture: &Fixture) {
    let (ivy, oak) = (fixture.session("Ivy"), fixture.session("Oak"));
    for id in ["x", "y"] {
        fixture.item(id);
        fixture.claim(id, &ivy);
    }
    let block = Block { id: "y".to_owned(), blocked_by: owned(&["later"]), ..Block::default() };
    fixture.board.work().block(&block).unwrap();
    fixture.pass(301);
    fixture.beat(&oak);
    fixture.sweep();
    let (beat, recorded) = fixture.events_of(|| fixture.beat(&ivy));
    assert_eq!(recorded, [EventType::AgentRecovered]);
    assert!(beat.recovered);
    assert_eq!(beat.lost, ["x", "y"]);
    let event = fixture.events().pop().unwrap();
    assert_eq!(event.summary, "Agent \"Ivy\" recovered; it lost 2 work items");
    assert_eq!(metadata(&event), serde_json::json!({"lost": ["x", "y"]}));
    let agent = fixture.agent(&ivy);
    assert_eq!((agent.status, agent.ended_at), (AgentStatus::Active, None));
    assert_eq!(fixture.work("x").status, Status::Available, "it does not get back what it lost");
    let again = fixture.beat(&ivy);
    assert!(!again.recovered && again.lost.is_empty());

    // A session that held nothing lost nothing, also if another one did in the next commit.
    fixture.claim("x", &ivy);
    fixture.pass(301);
    fixture.sweep();
    let beat = fixture.beat(&oak);
    assert!(beat.recovered && beat.lost.is_empty());
}

fn heartbeat_of_a_completed_session_is_refused(fixture: &Fixture) {
    let session = fixture.session("Ivy");
    fixture.board.agents().deregister(&session).unwrap();
    let (refused, recorded) =
        fixture.events_of(|| fixture.board.agents().heartbeat(&Heartbeat::of(&session)));
    assert_eq!(code(refused), Code::SessionEnded);
    assert!(recorded.is_empty());
}

fn heartbeat_with_an_idempotency_key_happens_once(fixture: &Fixture) {
    let session = fixture.session("Ivy");
    let beat = Heartbeat {
        progress: Some("Half done".to_owned()),
        operation: Some("op-1".to_owned()),
        ..Heartbeat::of(&session)
    };
    let first = fixture.board.agents().heartbeat(&beat).unwrap();
    fixture.item("x");
    fixture.pass(10);
    let (again, recorded) = fixture.events_of(|| fixture.board.agents().heartbeat(&beat).unwrap());
    assert_eq!(again, first);
    assert!(recorded.is_empty());
    let other = Heartbeat { operation: Some("op-2".to_owned()), ..beat };
    assert_eq!(fixture.events_of(|| fixture.board.agents().heartbeat(&other).unwrap()).1.len(), 1);
}

fn an_operation_id_belongs_to_one_verb(fixture: &Fixture) {
    let once = |verb: &'static str| {
        fixture.board.commit_once(Some("op"), None, verb, Fingerprint::new, &[], |_| {
            let mut changes = Changes::new();
            let revision = changes.event(an_event());
            Ok((changes, revision))
        })
    };
    assert_eq!(once("first verb").unwrap(), fixture.id(1));
    assert_eq!(once("first verb").unwrap(), fixture.id(1));
    assert_eq!(code(once("second verb")), Code::InvalidValue);
    assert_eq!(fixture.revision(), fixture.id(1));
}
