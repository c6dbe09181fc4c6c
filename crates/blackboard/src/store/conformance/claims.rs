//! Claiming, giving back, completing: one session has it, and a fence says since when.

use super::*;
use crate::project::RegisterProject;
use crate::work::{Block, ClaimNext};

on_every_engine![
    a_claim_gives_the_item_and_its_fence,
    a_claim_in_every_state,
    a_claim_again_says_since_when,
    a_claim_may_create_the_item,
    a_claim_of_an_item_that_exists_changes_nothing_else,
    a_claim_that_creates_needs_a_project_that_exists,
    only_a_live_session_claims,
    the_next_item_is_the_oldest_of_the_most_urgent,
    the_next_item_may_be_of_one_project_or_priority,
    an_item_is_given_back_once,
    an_item_is_completed_once,
    a_fence_of_another_claim_is_refused,
    nobody_gives_back_or_completes_what_another_one_holds,
    whoever_was_swept_comes_too_late,
];

fn a_claim_gives_the_item_and_its_fence(fixture: &Fixture) {
    let session = fixture.session("Ivy");
    fixture.item("x");
    let (claimed, told) = fixture.told_by(|| fixture.claim("x", &session));
    assert_eq!(told, [EventType::WorkClaimed]);
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
    assert_eq!(code(fixture.board.work().claim(&Claim::of("x", "nobody"))), Code::AgentNotFound);

    fixture.item("held");
    let fence = fixture.claim("held", &ivy).item.fence.unwrap();
    let refused = fixture.board.work().claim(&Claim::of("held", &oak)).unwrap_err();
    let details = refused.details().unwrap();
    assert_eq!(details["held_by"], ivy.as_str());
    assert_eq!(details["held_by_name"], "Ivy");
    assert_eq!(details["since"], fixture.now().to_string());
    assert_eq!(details["fence"], fence.get());
}

fn a_claim_again_says_since_when(fixture: &Fixture) {
    let session = fixture.session("Ivy");
    fixture.item("x");
    let first = fixture.claim("x", &session);
    fixture.pass(10);
    let (again, told) = fixture.told_by(|| fixture.claim("x", &session));
    assert!(told.is_empty());
    assert!(again.already_held && !again.claimed);
    assert_eq!((again.since, again.item), (first.since, first.item));
}

fn a_claim_may_create_the_item(fixture: &Fixture) {
    let session = fixture.session("Ivy");
    let create = Create { priority: Some(Priority::P1), ..Create::new("x", "Something") };
    let claim = Claim { create: Some(create), ..Claim::of("x", &session) };
    let (claimed, told) = fixture.told_by(|| fixture.board.work().claim(&claim).unwrap());
    assert_eq!(told, [EventType::WorkCreated, EventType::WorkClaimed]);
    assert!(claimed.created && claimed.claimed);
    let events = fixture.events();
    assert_eq!(events[1].commit_id, events[2].commit_id, "in one commit");
    let item = fixture.work("x");
    assert_eq!(claimed.item, item);
    assert_eq!((item.priority, item.source.as_str()), (Priority::P1, "local"));
    assert_eq!(item.fence, Some(fixture.id(3)));
    let other = Claim { create: Some(Create::new("another id", "Z")), ..Claim::of("z", &session) };
    assert_eq!(fixture.board.work().claim(&other).unwrap().item.item_id, "z");
    // Again, as a retry would: it is there, and held.
    let again = fixture.board.work().claim(&claim).unwrap();
    assert!(again.already_held && !again.created);

    let blocked = Create { blocked_by: owned(&["x"]), ..Create::new("y", "Waits") };
    let refused = fixture.board.work().claim(&Claim { create: Some(blocked), ..Claim::of("y", &session) });
    let refused = refused.unwrap_err();
    assert_eq!(refused.code(), Code::WorkBlocked);
    assert_eq!(refused.to_string(), "work item y would wait for x and was not created");
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
    fixture.board.agents().heartbeat(&Beat { status: Some(AgentStatus::Idle), ..Beat::of(&idle) }).unwrap();
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
        let next = ClaimNext { session: session.clone(), project: project.map(str::to_owned), priority };
        fixture.board.work().claim_next(&next).map(|claimed| claimed.item.item_id)
    };
    assert_eq!(code(next(Some("unknown"), None)), Code::ProjectNotFound);
    assert_eq!(code(next(Some("q"), None)), Code::NothingAvailable);
    assert_eq!(code(next(Some("p"), Some(Priority::P1))), Code::NothingAvailable);
    assert_eq!(next(Some("p"), Some(Priority::P3)).unwrap(), "3");
    assert_eq!(next(Some("p"), None).unwrap(), "2");
    assert_eq!(next(None, Some(Priority::P1)).unwrap(), "1");
}

fn an_item_is_given_back_once(fixture: &Fixture) {
    let session = fixture.session("Ivy");
    let before = fixture.item("x");
    let fence = fixture.claim("x", &session).item.fence.unwrap();
    fixture.pass(90);
    let release = Release { fence: Some(fence), ..Release::of("x", &session) };
    let (released, told) = fixture.told_by(|| fixture.board.work().release(&release).unwrap());
    assert_eq!(told, [EventType::WorkReleased]);
    assert_eq!((released.released, released.held_seconds), (true, 90));
    assert_eq!(released.released_by, "Ivy");
    assert_eq!(fixture.work("x"), WorkItem { revision: fixture.revision(), ..before });
    let event = fixture.events().pop().unwrap();
    assert_eq!(event.summary, "Agent \"Ivy\" released \"Title of x\"");
    assert_eq!(metadata(&event), serde_json::json!({"fence": fence.get()}));
    let plain = Release::of("x", &session);
    let (again, told) = fixture.told_by(|| fixture.board.work().release(&plain).unwrap());
    assert!(!again.released && told.is_empty());
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
    let (completed, told) = fixture.told_by(|| fixture.board.work().complete(&complete).unwrap());
    assert_eq!(told, [EventType::WorkCompleted]);
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
    assert_eq!((agent.current_work, agent.revision), (None, event.id), "it does not work on it any more");
    assert_eq!(metadata(&event), serde_json::json!({"summary": "All of it"}));
    fixture.pass(10);
    let (again, told) = fixture.told_by(|| fixture.board.work().complete(&complete).unwrap());
    assert!(again.already_completed && told.is_empty());
    assert_eq!((again.held_seconds, again.item), (90, expected));
    assert_eq!(code(fixture.board.work().release(&Release::of("x", &session))), Code::AlreadyCompleted);
}

fn a_fence_of_another_claim_is_refused(fixture: &Fixture) {
    let session = fixture.session("Ivy");
    fixture.item("x");
    let old = fixture.claim("x", &session).item.fence;
    fixture.release("x", &session);
    let late = Release { fence: old, ..Release::of("x", &session) };
    assert!(
        !fixture.board.work().release(&late).unwrap().released,
        "nobody holds it: a repeated release is safe"
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

fn nobody_gives_back_or_completes_what_another_one_holds(fixture: &Fixture) {
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
        let session = if id == "nothing" { &ivy } else { "nobody" };
        let expected = if id == "nothing" { Code::WorkNotFound } else { Code::AgentNotFound };
        assert_eq!(code(fixture.board.work().release(&Release::of(id, session))), expected);
        assert_eq!(code(fixture.board.work().complete(&Complete::of(id, session))), expected);
    }
}

fn whoever_was_swept_comes_too_late(fixture: &Fixture) {
    let (ivy, oak) = (fixture.session("Ivy"), fixture.session("Oak"));
    fixture.item("x");
    let fence = fixture.claim("x", &ivy).item.fence;
    fixture.pass(301);
    fixture.beat(&oak);
    fixture.sweep();
    let late = Complete { fence, ..Complete::of("x", &ivy) };
    let refused = fixture.board.work().complete(&late).unwrap_err();
    assert_eq!(refused.code(), Code::SessionStale);
    assert!(refused.to_string().ends_with("was marked stale and lost what it held"), "{refused}");
    assert_eq!(code(fixture.board.work().release(&Release::of("x", &ivy))), Code::SessionStale);
    fixture.claim("x", &oak);
    fixture.beat(&ivy);
    assert_eq!(code(fixture.board.work().complete(&late)), Code::NotHolder);
    fixture.release("x", &oak);
    fixture.claim("x", &ivy);
    assert_eq!(code(fixture.board.work().complete(&late)), Code::StaleFence);
    // Also when it was blocked in between, and while nobody holds it.
    let block = Block { id: "x".to_owned(), blocked_by: owned(&["later"]), ..Block::default() };
    fixture.board.work().block(&block).unwrap();
    assert_eq!(code(fixture.board.work().complete(&late)), Code::StaleFence);
}
