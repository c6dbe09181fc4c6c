//! Claiming, releasing, completing: one session holds an item, and the fence token is the revision of its claim.

use std::collections::BTreeSet;

use super::watched::{Look, watched};
use super::*;
use crate::agent::{CheckIn, ShortIds, short_id};
use crate::hint::Hint;
use crate::project::RegisterProject;
use crate::work::{Block, ClaimNext, Reassign};

on_every_engine![
    claim_returns_the_item_and_its_fence_token,
    a_claim_in_every_state,
    repeated_claim_reports_when_it_was_claimed,
    a_claim_may_create_the_item,
    a_claim_may_register_its_session,
    a_refused_claim_registers_no_session,
    a_claim_of_an_item_that_exists_changes_nothing_else,
    a_claim_that_creates_needs_a_project_that_exists,
    only_a_live_session_claims,
    the_next_item_is_the_oldest_of_the_most_urgent,
    the_next_item_may_be_of_one_project_or_priority,
    the_next_item_of_one_project_or_priority_is_found_without_the_others,
    item_is_released_once,
    an_item_is_completed_once,
    fence_token_of_another_claim_is_refused,
    item_of_another_session_cannot_be_released_or_completed,
    a_swept_session_cannot_complete_its_old_claim,
    reassignment_is_one_commit_with_a_new_fence_token,
    reassignment_in_every_state,
    reassignment_from_a_third_session_needs_force,
    reassignment_needs_live_sessions,
    reassignment_is_reported_to_the_session_that_gets_the_item,
];

fn claim_returns_the_item_and_its_fence_token(fixture: &Fixture) {
    let session = fixture.session("Ivy");
    fixture.item("x");
    let (claimed, recorded) = fixture.events_of(|| fixture.claim("x", &session));
    assert_eq!(recorded, [EventType::WorkClaimed]);
    assert!(claimed.claimed && !claimed.already_held && !claimed.created);
    assert_eq!(claimed.since, fixture.now());
    let item = fixture.work("x");
    assert_eq!(claimed.item, item);
    assert_eq!(item.status, Status::Claimed);
    assert_eq!((&item.claimed_by, item.claimed_by_name.as_deref()), (&Some(session.clone()), Some("Ivy")));
    assert_eq!((item.fence, item.revision), (Some(fixture.revision()), fixture.revision()));
    let event = fixture.events().pop().unwrap();
    assert_eq!(event.summary, "Agent \"Ivy\" claimed \"Title of x\"");
    assert_eq!((event.actor_id, event.target_id.as_deref()), (Some(session.clone()), Some("x")));
    let agent = fixture.agent(&session);
    assert_eq!(agent.current_work.as_deref(), Some("Title of x"));
    assert_eq!(agent.revision, event.id, "the event changed the agent too");
}

fn a_claim_in_every_state(fixture: &Fixture) {
    let (ivy, oak) = (fixture.session("Ivy"), fixture.session("Oak"));
    for (status, by_holder, by_other) in [
        (Status::Available, Ok(true), Ok(true)),
        (Status::Claimed, Ok(false), Err(Code::AlreadyClaimed)),
        (Status::Blocked, Err(Code::WorkBlocked), Err(Code::WorkBlocked)),
        (Status::Completed, Err(Code::AlreadyCompleted), Err(Code::AlreadyCompleted)),
    ] {
        for (session, expected) in [(&ivy, by_holder), (&oak, by_other)] {
            let id = format!("{status} {}", fixture.revision());
            fixture.item_that_is(&id, status, &ivy);
            let outcome = fixture.board.work().claim(&Claim::of(&id, session));
            assert_eq!(
                outcome.map(|claimed| claimed.claimed).map_err(|error| error.code()),
                expected,
                "{id}"
            );
        }
    }
    assert_eq!(code(fixture.board.work().claim(&Claim::of("nothing", &ivy))), Code::WorkNotFound);
    assert_eq!(code(fixture.board.work().claim(&Claim::of("x", "unknown"))), Code::AgentNotFound);

    fixture.item("held");
    let fence = fixture.claim("held", &ivy).item.fence.unwrap();
    let refused = fixture.board.work().claim(&Claim::of("held", &oak)).unwrap_err();
    let details = refused.details().unwrap();
    assert_eq!(details["held_by"], ivy.as_str());
    assert_eq!(details["held_by_name"], "Ivy");
    assert_eq!(details["since"], fixture.now().to_string());
    assert_eq!(details["fence"], fence.get());
}

fn repeated_claim_reports_when_it_was_claimed(fixture: &Fixture) {
    let session = fixture.session("Ivy");
    fixture.item("x");
    let first = fixture.claim("x", &session);
    fixture.pass(10);
    let (again, recorded) = fixture.events_of(|| fixture.claim("x", &session));
    assert!(recorded.is_empty());
    assert!(again.already_held && !again.claimed);
    assert_eq!((again.since, again.item), (first.since, first.item));
}

fn a_claim_may_register_its_session(fixture: &Fixture) {
    let create = Create { session: None, ..Create::new("x", "Something") };
    let claim = Claim { create: Some(create), ..Claim::registering("x", Register::named("Ivy")) };
    let (claimed, recorded) = fixture.events_of(|| fixture.board.work().claim(&claim).unwrap());
    assert_eq!(recorded, [EventType::AgentRegistered, EventType::WorkCreated, EventType::WorkClaimed]);
    let session = claimed.item.claimed_by.clone().unwrap();
    assert_eq!(claimed.item, fixture.work("x"));
    assert_eq!(claimed.item.fence, Some(fixture.id(3)));
    let agent = fixture.board.agents().get(&session).unwrap().unwrap();
    assert_eq!((&*agent.agent_name, agent.current_work.as_deref()), ("Ivy", Some("Something")));
    assert_eq!((agent.joined, agent.revision), (fixture.id(1), fixture.id(3)));
    assert!(fixture.events().iter().all(|event| event.actor_id.as_ref() == Some(&session)));
    fixture.item("y");
    let other = fixture.board.work().claim(&Claim::registering("y", Register::named("Oak"))).unwrap();
    assert_eq!(other.item.claimed_by_name.as_deref(), Some("Oak"));
}

fn a_refused_claim_registers_no_session(fixture: &Fixture) {
    let ivy = fixture.session("Ivy");
    fixture.item("held");
    fixture.claim("held", &ivy);
    for (id, refusal) in [("held", Code::AlreadyClaimed), ("nothing", Code::WorkNotFound)] {
        let delegate = Register { parent: Some(ivy.clone()), ..Register::named("Oak") };
        for register in [Register::named("Oak"), delegate] {
            let (refused, recorded) =
                fixture.events_of(|| fixture.board.work().claim(&Claim::registering(id, register.clone())));
            assert_eq!((code(refused), recorded), (refusal, Vec::new()), "{id}");
        }
    }
    assert_eq!(fixture.board.export().unwrap().agents.len(), 1);
}

fn a_claim_may_create_the_item(fixture: &Fixture) {
    let session = fixture.session("Ivy");
    let create = Create { priority: Some(Priority::P1), ..Create::new("x", "Something") };
    let claim = Claim { create: Some(create), ..Claim::of("x", &session) };
    let (claimed, recorded) = fixture.events_of(|| fixture.board.work().claim(&claim).unwrap());
    assert_eq!(recorded, [EventType::WorkCreated, EventType::WorkClaimed]);
    assert!(claimed.created && claimed.claimed);
    let events = fixture.events();
    assert_eq!(events[1].commit_id, events[2].commit_id, "in one commit");
    let item = fixture.work("x");
    assert_eq!(claimed.item, item);
    assert_eq!((item.priority, item.source.as_str()), (Priority::P1, "local"));
    assert_eq!(item.fence, Some(fixture.id(3)));
    let other = Claim { create: Some(Create::new("another id", "Z")), ..Claim::of("z", &session) };
    assert_eq!(fixture.board.work().claim(&other).unwrap().item.item_id, "z");
    // A retry: the item exists and is held by the session.
    let again = fixture.board.work().claim(&claim).unwrap();
    assert!(again.already_held && !again.created);

    let blocked = Create { blocked_by: owned(&["x"]), ..Create::new("y", "Waits") };
    let refused = fixture.board.work().claim(&Claim { create: Some(blocked), ..Claim::of("y", &session) });
    let refused = refused.unwrap_err();
    assert_eq!(refused.code(), Code::WorkBlocked);
    assert_eq!(refused.to_string(), "cannot claim y: it would be blocked by x; nothing was created");
    assert_eq!(refused.details().unwrap()["blocked_by"], serde_json::json!(["x"]));
    assert_eq!(code(fixture.board.work().status("y")), Code::WorkNotFound, "nothing was created either");
}

fn a_claim_of_an_item_that_exists_changes_nothing_else(fixture: &Fixture) {
    let session = fixture.session("Ivy");
    let before = fixture.item("x");
    let create = Create { priority: Some(Priority::P1), ..Create::new("x", "Another title") };
    let claim = Claim { create: Some(create), ..Claim::of("x", &session) };
    let claimed = fixture.board.work().claim(&claim).unwrap();
    assert!(claimed.claimed && !claimed.created);
    assert_eq!(claimed.ignored, ["title", "priority"]);
    let same = Claim { create: Some(Create::new("x", &before.title)), ..Claim::of("x", &session) };
    assert_eq!(fixture.board.work().claim(&same).unwrap().ignored, Vec::<&str>::new());
    let item = claimed.item;
    let expected = WorkItem {
        status: Status::Claimed,
        claimed_by: Some(session),
        claimed_by_name: Some("Ivy".to_owned()),
        claimed_at: Some(fixture.now()),
        fence: Some(item.revision),
        revision: item.revision,
        ..before
    };
    assert_eq!(item, expected);
}

fn a_claim_that_creates_needs_a_project_that_exists(fixture: &Fixture) {
    let session = fixture.session("Ivy");
    let create = Create { project: Some("pai".to_owned()), ..Create::new("x", "Something") };
    let claim = Claim { create: Some(create), ..Claim::of("x", &session) };
    assert_eq!(code(fixture.board.work().claim(&claim)), Code::ProjectNotFound);
    fixture.board.projects().register(&RegisterProject::new("pai", "PAI")).unwrap();
    assert!(fixture.board.work().claim(&claim).unwrap().created);
}

fn only_a_live_session_claims(fixture: &Fixture) {
    let (ended, stale, idle) = (fixture.session("Ended"), fixture.session("Stale"), fixture.session("Idle"));
    fixture.board.agents().deregister(&ended).unwrap();
    fixture.pass(301);
    fixture
        .board
        .agents()
        .heartbeat(&Heartbeat { status: Some(AgentStatus::Idle), ..Heartbeat::of(&idle) })
        .unwrap();
    fixture.sweep();
    let next = ClaimNext { session: ended.clone(), ..ClaimNext::default() };
    assert_eq!(
        code(fixture.board.work().claim_next(&next)),
        Code::SessionEnded,
        "though nothing is available"
    );
    fixture.item("x");
    for (session, expected) in [(&ended, Code::SessionEnded), (&stale, Code::SessionStale)] {
        assert_eq!(code(fixture.board.work().claim(&Claim::of("x", session))), expected);
        let next = ClaimNext { session: session.clone(), ..ClaimNext::default() };
        assert_eq!(code(fixture.board.work().claim_next(&next)), expected);
    }
    assert!(fixture.claim("x", &idle).claimed);
}

fn create(fixture: &Fixture, id: &str, priority: Priority, project: Option<&str>) {
    fixture.pass(1);
    let create =
        Create { priority: Some(priority), project: project.map(str::to_owned), ..Create::new(id, id) };
    fixture.board.work().create(&create).unwrap();
}

fn the_next_item_is_the_oldest_of_the_most_urgent(fixture: &Fixture) {
    let session = fixture.session("Ivy");
    for (id, priority) in [
        ("a late", Priority::P3),
        ("z old", Priority::P2),
        ("a new", Priority::P2),
        ("urgent", Priority::P1),
        ("taken", Priority::P1),
    ] {
        create(fixture, id, priority, None);
    }
    fixture.blocked_item("blocked", &["later"]);
    let other = fixture.session("Oak");
    fixture.claim("taken", &other);
    let next = ClaimNext { session, ..ClaimNext::default() };
    for expected in ["urgent", "z old", "a new", "a late"] {
        let claimed = fixture.board.work().claim_next(&next).unwrap();
        assert_eq!((claimed.item.item_id.as_str(), claimed.claimed), (expected, true));
    }
    assert_eq!(code(fixture.board.work().claim_next(&next)), Code::NothingAvailable);
}

fn the_next_item_may_be_of_one_project_or_priority(fixture: &Fixture) {
    let session = fixture.session("Ivy");
    for project in ["p", "q"] {
        fixture.board.projects().register(&RegisterProject::new(project, project)).unwrap();
    }
    create(fixture, "1", Priority::P1, None);
    create(fixture, "2", Priority::P2, Some("p"));
    create(fixture, "3", Priority::P3, Some("p"));
    let next = |project: Option<&str>, priority| {
        let next = ClaimNext {
            session: session.clone(),
            project: project.map(str::to_owned),
            priority,
            most_tokens: None,
        };
        fixture.board.work().claim_next(&next).map(|claimed| claimed.item.item_id)
    };
    assert_eq!(code(next(Some("unknown"), None)), Code::ProjectNotFound);
    assert_eq!(code(next(Some("q"), None)), Code::NothingAvailable);
    assert_eq!(code(next(Some("p"), Some(Priority::P1))), Code::NothingAvailable);
    assert_eq!(next(Some("p"), Some(Priority::P3)).unwrap(), "3");
    assert_eq!(next(Some("p"), None).unwrap(), "2");
    assert_eq!(next(None, Some(Priority::P1)).unwrap(), "1");
}

fn the_next_item_of_one_project_or_priority_is_found_without_the_others(fixture: &Fixture) {
    let session = fixture.session("Ivy");
    fixture.board.projects().register(&RegisterProject::new("p", "P")).unwrap();
    for number in 0..3 {
        create(fixture, &format!("other {number}"), Priority::P1, None);
    }
    create(fixture, "of p", Priority::P2, Some("p"));
    // A set, because an engine may run a call more than once.
    let seen = Arc::new(Mutex::new(BTreeSet::new()));
    let noted = seen.clone();
    let board = watched(fixture.board.clone(), fixture.clock.clone(), move |look| {
        if let Look::Candidates(rows) | Look::Rows(rows) = look {
            noted.lock().unwrap().extend(rows.iter().filter_map(|row| match row {
                Row::WorkItem(item) => Some(item.item_id.clone()),
                _ => None,
            }));
        }
    });
    let next = ClaimNext { session: session.clone(), ..ClaimNext::default() };
    let of_project = ClaimNext { project: Some("p".to_owned()), ..next.clone() };
    for next in [of_project.clone(), ClaimNext { priority: Some(Priority::P2), ..next }] {
        assert_eq!(board.work().claim_next(&next).unwrap().item.item_id, "of p", "{next:?}");
        let seen = std::mem::take(&mut *seen.lock().unwrap());
        assert_eq!(seen, BTreeSet::from(["of p".to_owned()]), "{next:?}");
        fixture.release("of p", &session);
    }
    // A refusal has no other dependencies either.
    let nothing = ClaimNext { priority: Some(Priority::P1), ..of_project };
    assert_eq!(code(board.work().claim_next(&nothing)), Code::NothingAvailable);
    assert_eq!(*seen.lock().unwrap(), BTreeSet::new());
}

fn item_is_released_once(fixture: &Fixture) {
    let session = fixture.session("Ivy");
    let before = fixture.item("x");
    let fence = fixture.claim("x", &session).item.fence.unwrap();
    fixture.pass(90);
    let release = Release { fence: Some(fence), ..Release::of("x", &session) };
    let (released, recorded) = fixture.events_of(|| fixture.board.work().release(&release).unwrap());
    assert_eq!(recorded, [EventType::WorkReleased]);
    assert_eq!((released.released, released.held_seconds), (true, 90));
    assert_eq!(released.released_by, "Ivy");
    assert_eq!(fixture.work("x"), WorkItem { revision: fixture.revision(), ..before });
    let event = fixture.events().pop().unwrap();
    assert_eq!(event.summary, "Agent \"Ivy\" released \"Title of x\"");
    assert_eq!(metadata(&event), serde_json::json!({"fence": fence.get()}));
    let plain = Release::of("x", &session);
    let (again, recorded) = fixture.events_of(|| fixture.board.work().release(&plain).unwrap());
    assert!(!again.released && recorded.is_empty());
}

fn an_item_is_completed_once(fixture: &Fixture) {
    let session = fixture.session("Ivy");
    fixture.item("x");
    let claimed = fixture.claim("x", &session).item;
    fixture.pass(90);
    let complete = Complete {
        fence: claimed.fence,
        summary: Some("All of it".to_owned()),
        ..Complete::of("x", &session)
    };
    let (completed, recorded) = fixture.events_of(|| fixture.board.work().complete(&complete).unwrap());
    assert_eq!(recorded, [EventType::WorkCompleted]);
    assert_eq!((completed.already_completed, completed.held_seconds), (false, 90));
    let expected = WorkItem {
        status: Status::Completed,
        completed_at: Some(fixture.now()),
        summary: Some("All of it".to_owned()),
        revision: fixture.revision(),
        ..claimed
    };
    assert_eq!(fixture.work("x"), expected, "who did it, and since when, stays");
    let event = fixture.events().pop().unwrap();
    assert_eq!(event.summary, "Agent \"Ivy\" completed \"Title of x\": All of it");
    let agent = fixture.agent(&session);
    assert_eq!((agent.current_work, agent.revision), (None, event.id), "it no longer works on it");
    assert_eq!(metadata(&event), serde_json::json!({"summary": "All of it"}));
    fixture.pass(10);
    let (again, recorded) = fixture.events_of(|| fixture.board.work().complete(&complete).unwrap());
    assert!(again.already_completed && recorded.is_empty());
    assert_eq!((again.held_seconds, again.item), (90, expected));
    assert_eq!(code(fixture.board.work().release(&Release::of("x", &session))), Code::AlreadyCompleted);
}

fn fence_token_of_another_claim_is_refused(fixture: &Fixture) {
    let session = fixture.session("Ivy");
    fixture.item("x");
    let old = fixture.claim("x", &session).item.fence;
    fixture.release("x", &session);
    let late = Release { fence: old, ..Release::of("x", &session) };
    assert!(
        !fixture.board.work().release(&late).unwrap().released,
        "no session holds it: a repeated release is safe"
    );
    let new = fixture.claim("x", &session).item.fence;
    assert!(new > old, "fences only grow");
    assert_eq!(code(fixture.board.work().release(&late)), Code::StaleFence);
    let complete = |fence| fixture.board.work().complete(&Complete { fence, ..Complete::of("x", &session) });
    let refused = complete(old).unwrap_err();
    assert_eq!(refused.code(), Code::StaleFence);
    assert_eq!(refused.details().unwrap()["fence"], new.unwrap().get());
    complete(new).unwrap();
    assert_eq!(code(complete(old)), Code::AlreadyCompleted);
}

fn item_of_another_session_cannot_be_released_or_completed(fixture: &Fixture) {
    let (ivy, oak) = (fixture.session("Ivy"), fixture.session("Oak"));
    for (status, release, complete) in [
        (Status::Available, None, Some(Code::NotHolder)),
        (Status::Claimed, Some(Code::NotHolder), Some(Code::NotHolder)),
        (Status::Blocked, None, Some(Code::NotHolder)),
        (Status::Completed, Some(Code::AlreadyCompleted), Some(Code::AlreadyCompleted)),
    ] {
        let id = status.as_str();
        let before = fixture.item_that_is(id, status, &ivy);
        let released = fixture.board.work().release(&Release::of(id, &oak));
        assert_eq!(released.err().map(|error| error.code()), release, "release {id}");
        let completed = fixture.board.work().complete(&Complete::of(id, &oak));
        assert_eq!(completed.err().map(|error| error.code()), complete, "complete {id}");
        assert_eq!(fixture.work(id), before);
    }
    let refused = fixture.board.work().complete(&Complete::of("claimed", &oak)).unwrap_err();
    assert_eq!(refused.details().unwrap()["held_by"], ivy.as_str());
    for id in ["nothing", "claimed"] {
        let session = if id == "nothing" { &ivy } else { "unknown" };
        let expected = if id == "nothing" { Code::WorkNotFound } else { Code::AgentNotFound };
        assert_eq!(code(fixture.board.work().release(&Release::of(id, session))), expected);
        assert_eq!(code(fixture.board.work().complete(&Complete::of(id, session))), expected);
    }
}

fn a_swept_session_cannot_complete_its_old_claim(fixture: &Fixture) {
    let (ivy, oak) = (fixture.session("Ivy"), fixture.session("Oak"));
    fixture.item("x");
    let fence = fixture.claim("x", &ivy).item.fence;
    fixture.pass(301);
    fixture.beat(&oak);
    fixture.sweep();
    let late = Complete { fence, ..Complete::of("x", &ivy) };
    let refused = fixture.board.work().complete(&late).unwrap_err();
    assert_eq!(refused.code(), Code::SessionStale);
    assert!(refused.to_string().ends_with("is stale; what it held was released"), "{refused}");
    assert_eq!(code(fixture.board.work().release(&Release::of("x", &ivy))), Code::SessionStale);
    fixture.claim("x", &oak);
    fixture.beat(&ivy);
    assert_eq!(code(fixture.board.work().complete(&late)), Code::NotHolder);
    fixture.release("x", &oak);
    fixture.claim("x", &ivy);
    assert_eq!(code(fixture.board.work().complete(&late)), Code::StaleFence);
    // Also if it was blocked meanwhile, and while it is not claimed.
    let block = Block { id: "x".to_owned(), blocked_by: owned(&["later"]), ..Block::default() };
    fixture.board.work().block(&block).unwrap();
    assert_eq!(code(fixture.board.work().complete(&late)), Code::StaleFence);
}

/// The session ids as a text that names all of them shortens them.
fn shortened<const N: usize>(sessions: [&String; N]) -> [&str; N] {
    let ids = ShortIds::of(sessions.map(String::as_str));
    sessions.map(|session| ids.shorten(session))
}

fn reassignment_is_one_commit_with_a_new_fence_token(fixture: &Fixture) {
    let (ivy, oak) = (fixture.session("Ivy"), fixture.session("Oak"));
    for id in ["x", "y"] {
        fixture.item(id);
        fixture.claim(id, &ivy);
    }
    let before = fixture.work("y");
    fixture.pass(90);
    let reason = Some("Lunch".to_owned());
    let reassign = Reassign { fence: before.fence, reason, ..Reassign::of("y", &ivy, &oak) };
    let (reassigned, recorded) = fixture.events_of(|| fixture.board.work().reassign(&reassign).unwrap());
    assert_eq!(recorded, [EventType::WorkReleased, EventType::WorkClaimed]);
    assert!(reassigned.reassigned && reassigned.ignored.is_empty());
    assert_eq!(reassigned.previously_held_by.as_deref(), Some("Ivy"));
    let revision = fixture.revision();
    let expected = WorkItem {
        claimed_by: Some(oak.clone()),
        claimed_by_name: Some("Oak".to_owned()),
        claimed_at: Some(fixture.now()),
        fence: Some(revision),
        revision,
        ..before.clone()
    };
    assert_eq!((&reassigned.item, &fixture.work("y")), (&expected, &expected));
    let (loser, winner) = (fixture.agent(&ivy), fixture.agent(&oak));
    assert_eq!((loser.current_work.as_deref(), loser.revision), (Some("Title of x"), revision));
    assert_eq!((winner.current_work.as_deref(), winner.revision), (Some("Title of y"), revision));

    let events = fixture.events();
    let [released, claimed] = &events[events.len() - 2..] else { panic!("{events:?}") };
    assert_eq!(released.commit_id, claimed.commit_id, "in one commit");
    let [short_ivy, short_oak] = shortened([&ivy, &oak]);
    let handed_over =
        format!("Agent \"Ivy\" handed \"Title of y\" over to agent \"Oak\" ({short_oak}) (Lunch)");
    assert_eq!(released.summary, handed_over);
    let got = format!("Agent \"Oak\" got \"Title of y\" from agent \"Ivy\" ({short_ivy}) (Lunch)");
    assert_eq!(claimed.summary, got);
    assert_eq!((&released.actor_id, &claimed.actor_id), (&Some(ivy.clone()), &Some(oak.clone())));
    let fence = before.fence.unwrap().get();
    let fields = serde_json::json!({"fence": fence, "held_by": ivy, "to": oak, "reason": "Lunch"});
    assert_eq!(metadata(released), fields);
    assert_eq!(metadata(claimed), serde_json::json!({"assigned_by": ivy, "reason": "Lunch"}));

    // The old fence token is stale, for both sessions.
    let complete = |session: &str| Complete { fence: before.fence, ..Complete::of("y", session) };
    assert_eq!(code(fixture.board.work().complete(&complete(&ivy))), Code::NotHolder);
    assert_eq!(code(fixture.board.work().complete(&complete(&oak))), Code::StaleFence);
    // A repeated call changes nothing, and reports that.
    let (again, recorded) = fixture.events_of(|| fixture.board.work().reassign(&reassign).unwrap());
    assert!(!again.reassigned && recorded.is_empty());
    assert_eq!((again.ignored, again.item), (vec!["reason"], expected));
    fixture.complete("y", &oak);
    assert_eq!(fixture.agent(&oak).current_work, None);
}

fn reassignment_in_every_state(fixture: &Fixture) {
    let (ivy, oak, elm) = (fixture.session("Ivy"), fixture.session("Oak"), fixture.session("Elm"));
    let (handed_over, unchanged) = (Ok(true), Ok(false));
    for (status, by_holder, to_holder, by_other) in [
        (Status::Available, handed_over, handed_over, handed_over),
        (Status::Claimed, handed_over, unchanged, Err(Code::AlreadyClaimed)),
        (Status::Blocked, Err(Code::WorkBlocked), Err(Code::WorkBlocked), Err(Code::WorkBlocked)),
        (
            Status::Completed,
            Err(Code::AlreadyCompleted),
            Err(Code::AlreadyCompleted),
            Err(Code::AlreadyCompleted),
        ),
    ] {
        for (by, to, expected) in [(&ivy, &oak, by_holder), (&oak, &ivy, to_holder), (&oak, &elm, by_other)] {
            let id = format!("{status} {}", fixture.revision());
            let before = fixture.item_that_is(&id, status, &ivy);
            let outcome = fixture.board.work().reassign(&Reassign::of(&id, by, to));
            let outcome = outcome.map(|answer| answer.reassigned).map_err(|error| error.code());
            assert_eq!(outcome, expected, "{id} by {by} to {to}");
            match outcome {
                Ok(true) => assert!(fixture.work(&id).is_held_by(to)),
                _ => assert_eq!(fixture.work(&id), before),
            }
        }
    }
    // Blocked while a session holds it: that session keeps it.
    fixture.item("held");
    fixture.claim("held", &ivy);
    let block = Block { id: "held".to_owned(), blocked_by: owned(&["later"]), ..Block::default() };
    fixture.board.work().block(&block).unwrap();
    let refused = fixture.board.work().reassign(&Reassign::of("held", &ivy, &oak)).unwrap_err();
    assert_eq!(refused.details().unwrap()["blocked_by"], serde_json::json!(["later"]));
    assert!(!fixture.board.work().reassign(&Reassign::of("held", &oak, &ivy)).unwrap().reassigned);
    for (id, session, to, expected) in [
        ("nothing", &*ivy, &*oak, Code::WorkNotFound),
        ("held", "unknown", &oak, Code::AgentNotFound),
        ("held", &ivy, "unknown", Code::AgentNotFound),
    ] {
        assert_eq!(code(fixture.board.work().reassign(&Reassign::of(id, session, to))), expected, "{id}");
    }
}

fn reassignment_from_a_third_session_needs_force(fixture: &Fixture) {
    let (ivy, oak, elm) = (fixture.session("Ivy"), fixture.session("Oak"), fixture.session("Elm"));
    fixture.item("x");
    let held = fixture.claim("x", &ivy).item;
    let reassign = Reassign::of("x", &elm, &oak);
    let refused = fixture.board.work().reassign(&reassign).unwrap_err();
    assert_eq!(refused.code(), Code::AlreadyClaimed);
    assert!(
        refused.to_string().contains(&format!("is already claimed by Ivy ({})", short_id(&ivy))),
        "{refused}"
    );
    assert_eq!(refused.details().unwrap()["held_by"], ivy.as_str());
    assert_eq!(refused.hint(), Some(&Hint::ReassignAnyway("x".to_owned())));
    assert_eq!(fixture.work("x"), held);

    let wrong = Reassign { force: true, fence: Some(fixture.id(1)), ..reassign.clone() };
    assert_eq!(code(fixture.board.work().reassign(&wrong)), Code::StaleFence);
    let forced = Reassign { force: true, fence: held.fence, ..reassign };
    assert!(fixture.board.work().reassign(&forced).unwrap().item.is_held_by(&oak));
    let events = fixture.events();
    let released = &events[events.len() - 2];
    let [short_ivy, short_oak, _] = shortened([&ivy, &oak, &elm]);
    let taken = format!(
        "Agent \"Elm\" took \"Title of x\" from agent \"Ivy\" ({short_ivy}) for agent \"Oak\" ({short_oak})"
    );
    assert_eq!(released.summary, taken);
    assert_eq!((&released.actor_id, &metadata(released)["held_by"]), (&Some(elm), &ivy.as_str().into()));
    assert_eq!(fixture.agent(&ivy).current_work, None);
    // The activity chart names the session that the item was reassigned from.
    let lanes = fixture.board.work().lanes(Duration::from_hours(1)).unwrap().lanes;
    let mut holders: Vec<_> = lanes.iter().map(|lane| lane.agent_name.clone().unwrap()).collect();
    holders.sort_unstable();
    assert_eq!(holders, ["Ivy", "Oak"]);
}

fn reassignment_needs_live_sessions(fixture: &Fixture) {
    let (ended, stale) = (fixture.session("Ended"), fixture.session("Stale"));
    fixture.board.agents().deregister(&ended).unwrap();
    fixture.pass(301);
    let ivy = fixture.session("Ivy");
    fixture.sweep();
    fixture.item("x");
    fixture.claim("x", &ivy);
    for (session, expected) in [(&ended, Code::SessionEnded), (&stale, Code::SessionStale)] {
        let refused = fixture.board.work().reassign(&Reassign::of("x", &ivy, session)).unwrap_err();
        assert_eq!(refused.code(), expected);
        assert_eq!(refused.hint(), Some(&Hint::ListActiveAgents));
        let forced = Reassign { force: true, ..Reassign::of("x", session, &ivy) };
        assert_eq!(code(fixture.board.work().reassign(&forced)), expected);
    }
    assert!(fixture.work("x").is_held_by(&ivy));
}

fn reassignment_is_reported_to_the_session_that_gets_the_item(fixture: &Fixture) {
    let (ivy, oak, elm) = (fixture.session("Ivy"), fixture.session("Oak"), fixture.session("Elm"));
    for id in ["held", "free"] {
        fixture.item(id);
    }
    fixture.claim("held", &ivy);
    let recorded = |session: &str| -> Vec<_> {
        let checked_in = fixture.board.agents().check_in(&CheckIn::of(session)).unwrap();
        checked_in.updates.events.into_iter().map(|event| event.summary).collect()
    };
    for session in [&ivy, &oak, &elm] {
        recorded(session);
    }
    for id in ["held", "free"] {
        fixture.board.work().reassign(&Reassign::of(id, &ivy, &oak)).unwrap();
    }
    let [short_ivy, short_oak] = shortened([&ivy, &oak]);
    let handed_over = format!("Agent \"Ivy\" handed \"Title of held\" over to agent \"Oak\" ({short_oak})");
    let got = format!("Agent \"Oak\" got \"Title of held\" from agent \"Ivy\" ({short_ivy})");
    let assigned = format!("Agent \"Ivy\" assigned \"Title of free\" to agent \"Oak\" ({short_oak})");
    assert_eq!(recorded(&oak), [got, assigned]);
    assert_eq!(recorded(&elm), [handed_over]);
    assert!(recorded(&ivy).is_empty());
}
