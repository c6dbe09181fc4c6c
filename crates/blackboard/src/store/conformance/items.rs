//! Creating, resetting, deleting and listing items.

use super::*;
use crate::hint::Hint;
use crate::project::RegisterProject;
use crate::work::{AppendEvent, Block, ClaimNext, ForceComplete, NewestWork, UpdateMetadata, WorkFilter};

on_every_engine![
    an_item_is_created_once,
    an_item_with_an_id_of_any_length_is_not_found,
    a_generated_id_is_unique_on_its_board,
    another_item_under_the_same_id_is_refused,
    created_items_are_validated,
    reset_makes_an_item_available_again,
    reset_item_with_open_blockers_is_blocked,
    third_failure_puts_an_item_on_hold_until_it_is_unblocked_or_reset,
    an_item_on_hold_stays_blocked_when_its_blocker_is_completed,
    forced_completion_needs_no_holder_and_unblocks_dependents,
    metadata_is_merged_and_custom_events_are_in_the_history,
    members_of_the_board_are_refused_in_given_metadata,
    held_or_blocking_item_needs_force_to_be_deleted,
    deleting_a_blocker_unblocks_its_dependents,
    items_are_listed_by_priority_then_age,
    every_view_of_an_item_lists_all_its_blockers,
    a_list_of_an_unknown_project_is_refused,
    item_history_has_every_event_of_the_item,
];

fn an_item_with_an_id_of_any_length_is_not_found(fixture: &Fixture) {
    for length in [1, 1 << 16, 1 << 18] {
        let unknown = "x".repeat(length);
        assert_eq!(code(fixture.board.work().status(&unknown)), Code::WorkNotFound, "{length}");
    }
}

fn an_item_is_created_once(fixture: &Fixture) {
    fixture.board.projects().register(&RegisterProject::new("pai", "PAI")).unwrap();
    let session = fixture.session("Ivy");
    let create = Create {
        description: Some("At\nlength".to_owned()),
        project: Some("pai".to_owned()),
        source: Some("github".to_owned()),
        source_ref: Some("#78".to_owned()),
        priority: Some(Priority::P1),
        metadata: Some(Metadata::parse(r#"{"a": 1}"#).unwrap()),
        session: Some(session.clone()),
        ..Create::new("gh:owner/repo#78", "Design SQL schema")
    };
    let created = fixture.board.work().create(&create).unwrap();
    assert!(created.created);
    assert_eq!(created.item, fixture.work("gh:owner/repo#78"));
    assert_eq!(created.item.revision, fixture.id(3));
    let event = fixture.events().pop().unwrap();
    assert_eq!(event.summary, "Work item \"Design SQL schema\" created");
    assert_eq!(event.actor_id.as_deref(), Some(session.as_str()));
    fixture.claim("gh:owner/repo#78", &session);
    let (again, recorded) = fixture.events_of(|| fixture.board.work().create(&create).unwrap());
    assert!(!again.created && recorded.is_empty());
    assert_eq!(again.item.status, Status::Claimed, "as it is now");
    let plain = fixture.item("x");
    assert_eq!((plain.source.as_str(), plain.priority), ("local", Priority::P2));
}

fn every_view_of_an_item_lists_all_its_blockers(fixture: &Fixture) {
    fixture.board.projects().register(&RegisterProject::new("pai", "PAI")).unwrap();
    let session = fixture.session("Ivy");
    for id in ["a", "b", "done"] {
        fixture.item(id);
    }
    let create = Create {
        project: Some("pai".to_owned()),
        blocked_by: owned(&["a", "b", "done", "typo"]),
        ..Create::new("ship", "Ship it")
    };
    fixture.board.work().create(&create).unwrap();
    fixture.claim("done", &session);
    fixture.complete("done", &session);
    let (open, missing) = (owned(&["a", "b", "typo"]), owned(&["typo"]));
    let mut views = Vec::new();
    let listed = fixture.board.work().list(&WorkFilter::default()).unwrap();
    for listed in listed.into_iter().chain(fixture.board.projects().status("pai").unwrap().work_items) {
        match &*listed.item.item_id {
            "ship" => views.push((listed.open_blockers, listed.missing_blockers)),
            _ => assert!(listed.open_blockers.is_empty() && listed.missing_blockers.is_empty()),
        }
    }
    let status = fixture.board.work().status("ship").unwrap();
    views.push((status.open_blockers, status.missing_blockers));
    let mut page = fixture.board.work().newest(&NewestWork::default()).unwrap();
    let of_page = (page.open_blockers.remove("ship"), page.missing_blockers.remove("ship"));
    views.push((of_page.0.unwrap(), of_page.1.unwrap()));
    let block = Block { id: "ship".to_owned(), blocked_by: owned(&["a"]), ..Block::default() };
    let blocked = fixture.board.work().block(&block).unwrap();
    views.push((blocked.open_blockers, blocked.missing_blockers));
    let unblocked = fixture.board.work().unblock("ship", &owned(&["done"]), None).unwrap();
    views.push((unblocked.open_blockers, unblocked.missing_blockers));
    let reset = fixture.board.work().reset("ship", None).unwrap();
    views.push((reset.open_blockers, reset.missing_blockers));
    assert_eq!(views, vec![(open, missing.clone()); 7]);
    assert_eq!(fixture.board.status().unwrap().missing_blockers, missing);
    // A holder sees the blockers of its item.
    fixture.claim("a", &session);
    fixture.board.work().block(&Block { id: "a".to_owned(), blocked_by: owned(&["late"]), ..block }).unwrap();
    let held = fixture.claim("a", &session);
    assert_eq!((held.open_blockers, held.missing_blockers), (owned(&["late"]), owned(&["late"])));
    let shown = fixture.board.agents().show(&session).unwrap().work_items.remove(0);
    assert_eq!((shown.open_blockers, shown.missing_blockers), (owned(&["late"]), owned(&["late"])));
    fixture.item("typo");
    assert_eq!(fixture.board.status().unwrap().missing_blockers, ["late"]);
}

fn a_list_of_an_unknown_project_is_refused(fixture: &Fixture) {
    let of = |project: &str| {
        let filter = WorkFilter { project: Some(project.to_owned()), ..WorkFilter::default() };
        fixture.board.work().list(&filter)
    };
    assert_eq!(code(of("pai")), Code::ProjectNotFound);
    fixture.board.projects().register(&RegisterProject::new("pai", "PAI")).unwrap();
    assert_eq!(of("pai").unwrap(), []);
}

fn a_generated_id_is_unique_on_its_board(fixture: &Fixture) {
    let create = |title: &str| {
        let create = Create { blocked_by: owned(&["z"]), ..Create::new("ignored", title) };
        fixture.board.work().create_with_generated_id(&create).unwrap()
    };
    for expected in ["fix-it", "fix-it-2", "fix-it-3"] {
        let created = create("Fix it");
        assert_eq!((created.item.item_id.as_str(), created.created), (expected, true));
        assert_eq!((created.open_blockers, fixture.work(expected)), (owned(&["z"]), created.item));
    }
    fixture.board.work().delete("fix-it-2", true, None).unwrap();
    assert_eq!(create("fix it!").item.item_id, "fix-it-2");
    // What the filter removes from the title is not in the id.
    let hidden = create("Fix <!-- hidden instruction --> the lo\u{ad}gin");
    assert_eq!(
        (hidden.item.item_id.as_str(), hidden.item.title.as_str()),
        ("fix-the-login", "Fix the login")
    );
    let refused = |create: &Create| code(fixture.board.work().create_with_generated_id(create));
    assert_eq!(refused(&Create::new("", " ")), Code::InvalidValue);
    let lost = Create { project: Some("none".to_owned()), ..Create::new("", "Fix it") };
    assert_eq!(refused(&lost), Code::ProjectNotFound);
    // Ten at once get ten ids.
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..10).map(|_| scope.spawn(|| create("At once").item.item_id)).collect();
        let mut ids: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), 10, "{ids:?}");
    });
}

fn another_item_under_the_same_id_is_refused(fixture: &Fixture) {
    fixture.item("x");
    let other = Create { priority: Some(Priority::P1), ..Create::new("x", "Other title") };
    let refused = fixture.board.work().create(&other).unwrap_err();
    assert_eq!(refused.code(), Code::AlreadyExists);
    assert_eq!(refused.details().unwrap()["differs"], serde_json::json!(["title", "priority"]));
    fixture.blocked_item("y", &["x", "later"]);
    let again = |blockers: &[&str]| {
        let same = Create { blocked_by: owned(blockers), ..Create::new("y", "Title of y") };
        fixture.board.work().create(&same)
    };
    let same = again(&["later", "x"]).unwrap();
    assert!(!same.created);
    assert_eq!((same.open_blockers, same.missing_blockers), (owned(&["later", "x"]), owned(&["later"])));
    let refused = again(&["x"]).unwrap_err();
    assert_eq!(refused.details().unwrap()["differs"], serde_json::json!(["blocked_by"]));
}

fn created_items_are_validated(fixture: &Fixture) {
    let create = |create: Create| code(fixture.board.work().create(&create));
    assert_eq!(create(Create::new("", "Title")), Code::InvalidValue);
    assert_eq!(create(Create::new("x,y", "Title")), Code::InvalidValue);
    assert_eq!(create(Create { blocked_by: owned(&["a,b"]), ..Create::new("x", "X") }), Code::InvalidValue);
    let secret = format!("ghp_{}", "a1B2c3D4e5F6".repeat(3));
    assert_eq!(create(Create::new(&secret, "X")), Code::SecretLooking);
    assert_eq!(create(Create { source: Some(secret.clone()), ..Create::new("x", "X") }), Code::SecretLooking);
    let blocked_by = vec![secret];
    assert_eq!(create(Create { blocked_by, ..Create::new("x", "X") }), Code::SecretLooking);
    assert_eq!(create(Create::new("x", "<br>")), Code::InvalidValue);
    assert_eq!(create(Create { blocked_by: owned(&[""]), ..Create::new("x", "X") }), Code::InvalidValue);
    assert_eq!(
        create(Create { project: Some("no".to_owned()), ..Create::new("x", "X") }),
        Code::ProjectNotFound
    );
    assert!(fixture.events().is_empty());
}

fn reset_makes_an_item_available_again(fixture: &Fixture) {
    let session = fixture.session("Ivy");
    for &status in Status::ALL {
        let id = status.as_str();
        fixture.item_that_is(id, status, &session);
        fixture.board.work().unblock(id, &[], None).unwrap();
        let before = fixture.work(id);
        let (reset, recorded) = fixture.events_of(|| fixture.board.work().reset(id, None).unwrap());
        assert_eq!(reset.previous_status, before.status);
        assert_eq!(reset.previously_held_by, before.claimed_by_name);
        let was_there = before.status == Status::Available;
        assert_eq!(recorded, if was_there { vec![] } else { vec![EventType::WorkReset] }, "{status}");
        let item = fixture.work(id);
        assert_eq!(reset.item, item);
        assert_eq!((item.status, item.claimed_by, item.fence), (Status::Available, None, None));
        assert_eq!((item.completed_at, item.claimed_at), (None, None));
    }
    assert_eq!(code(fixture.board.work().reset("nothing", None)), Code::WorkNotFound);
    let fence = fixture.claim("claimed", &session).item.fence;
    fixture.board.work().reset("claimed", None).unwrap();
    let late = Complete { fence, ..Complete::of("claimed", &session) };
    assert_eq!(code(fixture.board.work().complete(&late)), Code::NotHolder);
}

fn reset_item_with_open_blockers_is_blocked(fixture: &Fixture) {
    let session = fixture.session("Ivy");
    fixture.item("a");
    fixture.blocked_item("x", &["a"]);
    fixture.claim("a", &session);
    fixture.complete("a", &session);
    fixture.claim("x", &session);
    fixture.board.work().reset("a", None).unwrap();
    let reset = fixture.board.work().reset("x", None).unwrap();
    assert_eq!((reset.item.status, reset.item.blocked_by.as_deref()), (Status::Blocked, Some("a")));
    assert_eq!(reset.item.claimed_by, None);
}

fn held_or_blocking_item_needs_force_to_be_deleted(fixture: &Fixture) {
    let session = fixture.session("Ivy");
    for &status in Status::ALL {
        let id = status.as_str();
        fixture.item_that_is(id, status, &session);
        if status == Status::Claimed {
            let refused = fixture.board.work().delete(id, false, None).unwrap_err();
            assert_eq!(
                (refused.code(), &refused.details().unwrap()["held_by"]),
                (Code::InUse, &session.clone().into())
            );
        }
        let (deleted, recorded) =
            fixture.events_of(|| fixture.board.work().delete(id, status == Status::Claimed, None).unwrap());
        assert_eq!(recorded, [EventType::WorkDeleted]);
        assert_eq!(deleted.previous_status, status);
        assert_eq!(code(fixture.board.work().status(id)), Code::WorkNotFound);
        assert_eq!(code(fixture.board.work().delete(id, true, None)), Code::WorkNotFound);
    }
    assert_eq!(
        fixture.events().pop().unwrap().summary,
        "Work item \"Title of completed\" deleted (was completed)"
    );
}

fn third_failure_puts_an_item_on_hold_until_it_is_unblocked_or_reset(fixture: &Fixture) {
    let ivy = fixture.session("Ivy");
    let fail = |id: &str| {
        fixture.claim(id, &ivy);
        let reason = Some("The tests are red".to_owned());
        let release = Release { failed: true, reason, ..Release::of(id, &ivy) };
        fixture.board.work().release(&release).unwrap()
    };
    for (id, ends_with_reset) in [("x", false), ("y", true)] {
        fixture.item(id);
        for count in 1..=2 {
            let released = fail(id);
            assert_eq!((released.failure_count, released.item.status), (Some(count), Status::Available));
        }
        let (released, recorded) = fixture.events_of(|| {
            fixture.claim(id, &ivy);
            let release = Release { failed: true, ..Release::of(id, &ivy) };
            fixture.board.work().release(&release).unwrap()
        });
        assert_eq!(released.on_hold.as_deref(), Some("failed 3 times"));
        assert_eq!(recorded, [EventType::WorkClaimed, EventType::WorkReleased, EventType::WorkBlocked]);
        let refused = fixture.board.work().claim(&Claim::of(id, &ivy)).unwrap_err();
        assert_eq!(
            (refused.code(), refused.hint()),
            (Code::WorkBlocked, Some(&Hint::EndHold(id.to_owned())))
        );
        let next = ClaimNext { session: ivy.clone(), ..ClaimNext::default() };
        assert_eq!(code(fixture.board.work().claim_next(&next)), Code::NothingAvailable);
        let item = if ends_with_reset {
            fixture.board.work().reset(id, None).unwrap().item
        } else {
            let unblocked = fixture.board.work().unblock(id, &[], None).unwrap();
            assert!(unblocked.unblocked && unblocked.restored_status == Status::Available);
            unblocked.item
        };
        assert_eq!((item.status, item.hold().failure_count), (Status::Available, 0));
        fixture.claim(id, &ivy);
        fixture.complete(id, &ivy);
    }
}

fn an_item_on_hold_stays_blocked_when_its_blocker_is_completed(fixture: &Fixture) {
    let ivy = fixture.session("Ivy");
    fixture.item("a");
    fixture.item("x");
    for _ in 0..3 {
        fixture.claim("x", &ivy);
        fixture.board.work().release(&Release { failed: true, ..Release::of("x", &ivy) }).unwrap();
    }
    let block = Block { id: "x".to_owned(), blocked_by: owned(&["a"]), ..Block::default() };
    assert_eq!(fixture.board.work().block(&block).unwrap().item.blocked_by.as_deref(), Some("a"));
    fixture.claim("a", &ivy);
    fixture.complete("a", &ivy);
    let item = fixture.work("x");
    assert_eq!((item.status, item.blocked_by), (Status::Blocked, None));
    // The removal of one blocker does not end it.
    fixture.board.work().unblock("x", &owned(&["a"]), None).unwrap();
    assert_eq!(fixture.work("x").status, Status::Blocked);
    assert!(fixture.board.work().unblock("x", &[], None).unwrap().unblocked);
}

fn forced_completion_needs_no_holder_and_unblocks_dependents(fixture: &Fixture) {
    let [ivy, oak] = ["Ivy", "Oak"].map(|name| fixture.session(name));
    for (id, holder, session) in [
        ("a", None, None),
        ("b", Some(&ivy), None),
        ("c", Some(&ivy), Some(&oak)),
        ("d", Some(&oak), Some(&oak)),
    ] {
        fixture.item(id);
        let dependent = format!("after-{id}");
        fixture.blocked_item(&dependent, &[id]);
        if let Some(holder) = holder {
            fixture.claim(id, holder);
        }
        let force = ForceComplete { id: id.to_owned(), session: session.cloned(), summary: None };
        let completed = fixture.board.work().force_complete(&force).unwrap();
        assert_eq!(completed.unblocked, [dependent.as_str()], "{id}");
        assert_eq!(fixture.work(id).status, Status::Completed);
        assert!(fixture.board.work().force_complete(&force).unwrap().already_completed);
        if let Some(holder) = holder {
            assert_eq!(fixture.agent(holder).current_work, None, "{id}");
        }
    }
}

fn members_of_the_board_are_refused_in_given_metadata(fixture: &Fixture) {
    fixture.item("x");
    let before = fixture.work("x");
    for text in [r#"{"outside": null}"#, r#"{"a": 1, "blackboard": {"on_hold": "forged"}}"#] {
        let metadata = Metadata::parse(text).unwrap();
        let update = UpdateMetadata { id: "x".to_owned(), metadata: metadata.clone(), session: None };
        assert_eq!(code(fixture.board.work().update_metadata(&update)), Code::InvalidValue, "{text}");
        let create = Create { metadata: Some(metadata), ..Create::new("y", "Y") };
        assert_eq!(code(fixture.board.work().create(&create)), Code::InvalidValue, "{text}");
    }
    assert_eq!(fixture.work("x"), before);
    assert_eq!(code(fixture.board.work().status("y")), Code::WorkNotFound);
}

fn metadata_is_merged_and_custom_events_are_in_the_history(fixture: &Fixture) {
    let ivy = fixture.session("Ivy");
    fixture.item("x");
    for (text, events) in [(r#"{"a": 1}"#, 1), (r#"{"a": 1}"#, 0), (r#"{"b": [2.0]}"#, 1)] {
        let metadata = Metadata::parse(text).unwrap();
        let update = UpdateMetadata { id: "x".to_owned(), metadata, session: Some(ivy.clone()) };
        let (_, recorded) = fixture.events_of(|| fixture.board.work().update_metadata(&update).unwrap());
        assert_eq!(recorded, vec![EventType::MetadataUpdated; events], "{text}");
    }
    assert_eq!(fixture.work("x").metadata.unwrap().as_str(), r#"{"a":1,"b":[2.0]}"#);
    let append = AppendEvent {
        id: "x".to_owned(),
        event_type: "review_requested".to_owned(),
        summary: "Oak, please review".to_owned(),
        metadata: Some(Metadata::parse(r#"{"to": "Oak"}"#).unwrap()),
        session: Some(ivy.clone()),
    };
    let appended = fixture.board.work().append_event(&append).unwrap();
    let last = fixture.board.work().status("x").unwrap().history.pop().unwrap();
    assert_eq!((last.id, last.event_type.as_str()), (appended.event_id, "review_requested"));
    assert_eq!((last.actor_id.as_deref(), &*last.summary), (Some(ivy.as_str()), "Oak, please review"));
    let unknown = AppendEvent { id: "none".to_owned(), ..append.clone() };
    assert_eq!(code(fixture.board.work().append_event(&unknown)), Code::WorkNotFound);
    let forged = AppendEvent { event_type: "work_claimed".to_owned(), ..append };
    assert_eq!(code(fixture.board.work().append_event(&forged)), Code::InvalidValue);
}

fn deleting_a_blocker_unblocks_its_dependents(fixture: &Fixture) {
    fixture.item("a");
    fixture.blocked_item("x", &["a"]);
    fixture.blocked_item("y", &["a", "x"]);
    let refused = fixture.board.work().delete("a", false, None).unwrap_err();
    assert_eq!(refused.code(), Code::InUse);
    assert_eq!(refused.details().unwrap()["dependents"], serde_json::json!(["x", "y"]));
    let (deleted, recorded) = fixture.events_of(|| fixture.board.work().delete("a", true, None).unwrap());
    assert_eq!(deleted.unblocked, ["x"]);
    assert_eq!(recorded, [EventType::WorkUnblocked, EventType::WorkBlocked, EventType::WorkDeleted]);
    assert_eq!(fixture.work("x").status, Status::Available);
    let y = fixture.work("y");
    assert_eq!((y.status, y.blocked_by.as_deref()), (Status::Blocked, Some("x")));
    // The id can be used again, and blocks no item.
    fixture.item("a");
    assert!(fixture.board.work().status("a").unwrap().dependents.is_empty());
    fixture.board.work().delete("y", false, None).unwrap();
    assert!(fixture.board.export().unwrap().work_dependencies.is_empty());
}

fn items_are_listed_by_priority_then_age(fixture: &Fixture) {
    let session = fixture.session("Ivy");
    fixture.board.projects().register(&RegisterProject::new("p", "P")).unwrap();
    fixture.item_that_is("done", Status::Completed, &session);
    fixture.item_that_is("held", Status::Claimed, &session);
    fixture.pass(1);
    fixture.blocked_item("blocked", &["later"]);
    fixture.pass(1);
    let urgent =
        Create { priority: Some(Priority::P1), project: Some("p".to_owned()), ..Create::new("urgent", "U") };
    fixture.board.work().create(&urgent).unwrap();
    let list = |filter: WorkFilter| {
        let items = fixture.board.work().list(&filter).unwrap();
        items.into_iter().map(|listed| listed.item.item_id).collect::<Vec<_>>()
    };
    let open = WorkFilter::default;
    assert_eq!(list(open()), ["urgent", "held", "blocked"]);
    assert_eq!(list(WorkFilter { limit: Some(2), ..open() }), ["urgent", "held"]);
    assert_eq!(list(WorkFilter { priority: Some(Priority::P2), ..open() }), ["held", "blocked"]);
    assert_eq!(list(WorkFilter { project: Some("p".to_owned()), ..open() }), ["urgent"]);
    assert_eq!(list(WorkFilter { claimed_by: Some(session.clone()), ..open() }), ["held"]);
    let all = WorkFilter { statuses: Status::ALL.to_vec(), ..open() };
    assert_eq!(list(all.clone()), ["urgent", "done", "held", "blocked"]);
    assert_eq!(list(WorkFilter { claimed_by: Some(session), ..all }), ["done", "held"]);
}

fn item_history_has_every_event_of_the_item(fixture: &Fixture) {
    let (ivy, oak) = (fixture.session("Ivy"), fixture.session("Oak"));
    fixture.item("other");
    fixture.pass(10);
    fixture.item("x");
    fixture.claim("x", &ivy);
    fixture.claim("other", &oak);
    fixture.pass(301);
    fixture.beat(&oak);
    fixture.sweep();
    fixture.claim("x", &oak);
    let progress = |item: &str| {
        let (work_item, progress) = (Some(item.to_owned()), Some("Half done".to_owned()));
        fixture.board.agents().heartbeat(&Heartbeat { progress, work_item, ..Heartbeat::of(&oak) }).unwrap();
    };
    progress("other");
    progress("x");
    let last = fixture.board.work().status("x").unwrap().history.pop().unwrap();
    assert_eq!(last.event_type, EventType::HeartbeatReceived, "also before the item changes again");
    fixture.complete("x", &oak);
    let history = fixture.board.work().status("x").unwrap().history;
    let types: Vec<_> = history.iter().map(|event| event.event_type.as_str()).collect();
    assert_eq!(
        types,
        [
            "work_created",
            "work_claimed",
            "stale_locks_released",
            "work_claimed",
            "heartbeat_received",
            "work_completed"
        ]
    );
}
