//! The current work of a session: the item that it claimed last, or the work that it reported.

use super::*;
use crate::work::Reassign;

on_every_engine![
    current_work_falls_back_to_the_item_claimed_last,
    current_work_falls_back_to_the_reported_work,
    a_heartbeat_that_repeats_the_title_of_a_claimed_item_changes_nothing,
    swept_or_ended_session_falls_back_to_its_reported_work,
];

/// The ways in which a session stops holding an item.
const WAYS: [fn(&Fixture, &str, &str); 5] = [
    |fixture, id, session| fixture.release(id, session),
    |fixture, id, session| fixture.complete(id, session),
    |fixture, id, _| drop(fixture.board.work().reset(id, None).unwrap()),
    |fixture, id, _| drop(fixture.board.work().delete(id, true, None).unwrap()),
    |fixture, id, session| {
        let other = fixture.session("Oak");
        fixture.board.work().reassign(&Reassign::of(id, session, &other)).unwrap();
    },
];

fn current_work(fixture: &Fixture, session: &str) -> Option<String> {
    fixture.agent(session).current_work
}

fn current_work_falls_back_to_the_item_claimed_last(fixture: &Fixture) {
    for (number, stop_holding) in WAYS.into_iter().enumerate() {
        let session = fixture.session("Ivy");
        let [a, b, c] = ["c", "b", "a"].map(|letter| format!("{letter}{number}"));
        for id in [&a, &b, &c] {
            fixture.item(id);
            fixture.claim(id, &session);
        }
        assert_eq!(current_work(fixture, &session), Some(format!("Title of {c}")));
        stop_holding(fixture, &a, &session);
        assert_eq!(
            current_work(fixture, &session),
            Some(format!("Title of {c}")),
            "it worked on another one"
        );
        stop_holding(fixture, &c, &session);
        assert_eq!(current_work(fixture, &session), Some(format!("Title of {b}")), "way {number}");
        assert_eq!(fixture.agent(&session).revision, fixture.revision(), "the event changed the agent too");
        stop_holding(fixture, &b, &session);
        assert_eq!(current_work(fixture, &session), None);
    }
}

fn current_work_falls_back_to_the_reported_work(fixture: &Fixture) {
    for (number, stop_holding) in WAYS.into_iter().enumerate() {
        let work = Some("Review".to_owned());
        let session = fixture.register(&Register { work, ..Register::named("Ivy") }).session_id;
        let id = format!("x{number}");
        let claim_and_stop = || {
            fixture.item(&id);
            if fixture.work(&id).status != Status::Available {
                fixture.board.work().reset(&id, None).unwrap();
            }
            fixture.claim(&id, &session);
            assert_eq!(current_work(fixture, &session), Some(format!("Title of {id}")));
            stop_holding(fixture, &id, &session);
            current_work(fixture, &session)
        };
        assert_eq!(claim_and_stop().as_deref(), Some("Review"), "way {number}");
        fixture
            .board
            .agents()
            .heartbeat(&Heartbeat { work: Some("Tests".to_owned()), ..Heartbeat::of(&session) })
            .unwrap();
        assert_eq!(claim_and_stop().as_deref(), Some("Tests"), "way {number}");
        fixture
            .board
            .agents()
            .heartbeat(&Heartbeat { work: Some(String::new()), ..Heartbeat::of(&session) })
            .unwrap();
        assert_eq!(claim_and_stop(), None, "way {number}");
    }
}

fn a_heartbeat_that_repeats_the_title_of_a_claimed_item_changes_nothing(fixture: &Fixture) {
    let register = Register { work: Some("Review".to_owned()), ..Register::named("Ivy") };
    let session = fixture.register(&register).session_id;
    fixture.item("x");
    fixture.claim("x", &session);
    let before = fixture.agent(&session);
    let beat = Heartbeat { work: Some("Title of x".to_owned()), ..Heartbeat::of(&session) };
    let (_, recorded) = fixture.events_of(|| fixture.board.agents().heartbeat(&beat).unwrap());
    assert!(recorded.is_empty());
    assert_eq!(fixture.agent(&session).own_work, before.own_work);
    fixture.release("x", &session);
    assert_eq!(current_work(fixture, &session).as_deref(), Some("Review"));
}

fn swept_or_ended_session_falls_back_to_its_reported_work(fixture: &Fixture) {
    let register = |name: &str| Register { work: Some("Review".to_owned()), ..Register::named(name) };
    let (swept, ended) = (fixture.register(&register("Oak")), fixture.register(&register("Ivy")));
    for (id, agent) in [("x", &swept), ("y", &swept), ("z", &ended)] {
        fixture.item(id);
        fixture.claim(id, &agent.session_id);
    }
    let answer = fixture.board.agents().deregister(&ended.session_id).unwrap();
    assert_eq!(answer.agent.current_work.as_deref(), Some("Review"));
    fixture.pass(301);
    assert_eq!(fixture.sweep().stale_agents.len(), 1);
    assert_eq!(current_work(fixture, &swept.session_id).as_deref(), Some("Review"));
}
