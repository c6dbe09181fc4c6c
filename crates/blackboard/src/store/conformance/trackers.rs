//! Items of other trackers: imports, exports and edits.

use super::*;
use crate::agent::CheckIn;
use crate::project::RegisterProject;
use crate::scope::{CreateScope, Policies};
use crate::work::{Block, Edit, ExportItems, ImportItems, ImportedAs, ImportedItem, OutsideItem};

on_every_engine![
    an_edit_is_one_event_and_keeps_the_claim,
    an_import_is_idempotent_and_follows_changes,
    a_dry_run_reports_the_same_and_changes_nothing,
    dependencies_within_an_import_may_be_in_any_order,
    dependencies_of_the_board_stay,
    a_dependency_cycle_is_left_out_and_reported,
    a_claim_survives_and_a_closed_item_completes_when_released,
    a_closed_item_completes_when_its_session_ends_or_is_swept,
    an_item_that_agents_completed_stays_and_a_reopened_one_does_not,
    a_reopened_item_stays_on_hold,
    an_item_that_was_not_imported_is_changed_only_if_it_is_adopted,
    a_priority_follows_the_source_unless_it_was_edited,
    a_reset_item_is_not_completed_by_its_next_release,
    refused_items_do_not_stop_the_others,
    an_export_is_imported_as_the_same_items,
    an_interrupted_import_is_completed_by_a_repeated_one,
    scopes_end_with_items_that_an_import_completes,
];

fn outside(id: &str) -> OutsideItem {
    OutsideItem {
        id: id.to_owned(),
        title: format!("Title of {id}"),
        source: Some("github".to_owned()),
        ..OutsideItem::default()
    }
}

fn blocked(id: &str, blockers: &[&str]) -> OutsideItem {
    let blocked_by = Some(blockers.iter().map(|&id| id.to_owned()).collect());
    OutsideItem { blocked_by, ..outside(id) }
}

fn closed(id: &str) -> OutsideItem {
    OutsideItem { is_closed: true, ..outside(id) }
}

fn request(items: &[OutsideItem]) -> ImportItems {
    ImportItems { items: items.to_vec(), from: "github".to_owned(), ..ImportItems::default() }
}

fn import(fixture: &Fixture, items: &[OutsideItem]) -> Vec<ImportedItem> {
    fixture.board.work().import(&request(items)).unwrap()
}

fn outcomes(report: &[ImportedItem]) -> Vec<ImportedAs> {
    report.iter().map(|item| item.outcome).collect()
}

/// The types of the events about work items, with their targets.
fn work_events(fixture: &Fixture, after: Revision) -> Vec<(EventType, String)> {
    let events = fixture.events_after(after).into_iter();
    let events = events.filter(|event| event.target_type == Some(TargetType::WorkItem));
    events.map(|event| (event.event_type, event.target_id.unwrap_or_default())).collect()
}

fn an_edit_is_one_event_and_keeps_the_claim(fixture: &Fixture) {
    let [ivy, oak] = ["Ivy", "Oak"].map(|name| fixture.session(name));
    fixture.board.projects().register(&RegisterProject::new("pai", "PAI")).unwrap();
    fixture.item("x");
    let claimed = fixture.claim("x", &ivy).item;
    let before = fixture.revision();
    let edit = Edit {
        title: Some("New".to_owned()),
        project: Some("pai".to_owned()),
        add_labels: vec!["sql".to_owned()],
        estimate: Some(20_000),
        session: Some(oak.clone()),
        ..Edit::of("x")
    };
    let edited = fixture.board.work().edit(&edit).unwrap();
    assert_eq!(work_events(fixture, before), [(EventType::WorkUpdated, "x".to_owned())]);
    let item = fixture.work("x");
    assert_eq!(edited.item, item);
    assert_eq!(
        (&item.claimed_by, item.fence, item.status),
        (&claimed.claimed_by, claimed.fence, claimed.status)
    );
    assert_eq!((&*item.title, item.project_id.as_deref()), ("New", Some("pai")));
    assert_eq!((item.labels(), item.estimate()), (vec!["sql".to_owned()], Some(20_000)));
    assert_eq!(fixture.agent(&ivy).current_work.as_deref(), Some("New"));
    let again = fixture.board.work().edit(&edit).unwrap();
    assert!(again.changes.is_empty());
    assert_eq!(work_events(fixture, before).len(), 1);
    // The claim is as good as before, and its end clears the current work.
    fixture.complete("x", &ivy);
    assert_eq!(fixture.agent(&ivy).current_work, None);
    let unknown = Edit { project: Some("none".to_owned()), ..Edit::of("x") };
    assert_eq!(fixture.board.work().edit(&unknown).unwrap_err().code(), Code::ProjectNotFound);
    assert_eq!(fixture.board.work().edit(&Edit::of("none")).unwrap_err().code(), Code::WorkNotFound);
}

fn an_import_is_idempotent_and_follows_changes(fixture: &Fixture) {
    use ImportedAs::{Completed, Created, Skipped, Unchanged, Updated};
    let mut items = vec![
        OutsideItem {
            description: Some("Long".to_owned()),
            priority: Some(Priority::P1),
            labels: Some(vec!["b".to_owned(), "a".to_owned()]),
            estimate: Some(7),
            source_ref: Some("o/r#1".to_owned()),
            ..outside("gh:o/r#1")
        },
        outside("gh:o/r#2"),
        closed("gh:o/r#3"),
    ];
    let before = fixture.revision();
    assert_eq!(outcomes(&import(fixture, &items)), [Created, Created, Skipped]);
    assert_eq!(work_events(fixture, before).len(), 2);
    let first = fixture.work("gh:o/r#1");
    assert_eq!((first.priority, first.description.as_deref()), (Priority::P1, Some("Long")));
    assert_eq!((first.labels(), first.estimate()), (vec!["a".to_owned(), "b".to_owned()], Some(7)));
    assert_eq!((&*first.source, first.imported_from().as_deref()), ("github", Some("github")));
    let (again, recorded) = fixture.events_of(|| import(fixture, &items));
    assert_eq!((outcomes(&again), recorded), (vec![Unchanged, Unchanged, Skipped], vec![]));

    items[0].title = "New".to_owned();
    items[0].labels = Some(vec!["a".to_owned()]);
    items[1].is_closed = true;
    let (changed, recorded) = fixture.events_of(|| import(fixture, &items));
    assert_eq!(outcomes(&changed), [Updated, Completed, Skipped]);
    assert_eq!(recorded, [EventType::WorkUpdated, EventType::WorkCompleted]);
    let fields: Vec<_> = changed[0].changes.iter().map(|change| change.field).collect();
    assert_eq!(fields, ["title", "labels"]);
    assert_eq!(fixture.work("gh:o/r#1").title, "New");
    assert_eq!(fixture.work("gh:o/r#2").status, Status::Completed);
    let (again, recorded) = fixture.events_of(|| import(fixture, &items));
    assert_eq!((outcomes(&again), recorded), (vec![Unchanged, Unchanged, Skipped], vec![]));
}

fn a_dry_run_reports_the_same_and_changes_nothing(fixture: &Fixture) {
    import(fixture, &[outside("old"), blocked("waits", &["old"])]);
    // More than one batch, so that a later one depends on an earlier one.
    let mut items: Vec<_> = (0..600).map(|number| outside(&format!("n{number}"))).collect();
    items[599].blocked_by = Some(vec!["n0".to_owned(), "n1".to_owned()]);
    items[0].blocked_by = Some(vec!["n599".to_owned()]);
    items.push(closed("old"));
    let dry_run = ImportItems { dry_run: true, ..request(&items) };
    let (planned, recorded) = fixture.events_of(|| fixture.board.work().import(&dry_run).unwrap());
    assert_eq!(recorded, []);
    assert_eq!(fixture.work("old").status, Status::Available);
    let imported = import(fixture, &items);
    assert_eq!(planned, imported);
    assert!(imported[599].notes[0].contains("n0"), "{:?}", imported[599]);
    assert_eq!(fixture.work("waits").status, Status::Available);
    assert_eq!(fixture.work("n599").blocked_by.as_deref(), Some("n1"));
}

fn dependencies_within_an_import_may_be_in_any_order(fixture: &Fixture) {
    use ImportedAs::{Completed, Created, Updated};
    let items = [blocked("c", &["b", "done"]), blocked("a", &[]), blocked("b", &["a"]), closed("done")];
    import(fixture, &items);
    let statuses = |ids: &[&str]| -> Vec<_> { ids.iter().map(|id| fixture.work(id).status).collect() };
    // A closed blocker that the board does not have blocks nothing.
    assert_eq!(statuses(&["a", "b", "c"]), [Status::Available, Status::Blocked, Status::Blocked]);
    let ivy = fixture.session("Ivy");
    fixture.claim("a", &ivy);
    fixture.complete("a", &ivy);
    assert_eq!(statuses(&["b", "c"]), [Status::Available, Status::Blocked]);
    // The same commit closes one, adds a dependency and removes another.
    let items = [blocked("c", &["d"]), OutsideItem { is_closed: true, ..blocked("b", &["a"]) }, outside("d")];
    let (report, recorded) = fixture.events_of(|| import(fixture, &items));
    assert_eq!(outcomes(&report), [Updated, Completed, Created]);
    assert_eq!(recorded, [EventType::WorkBlocked, EventType::WorkCompleted, EventType::WorkCreated]);
    assert_eq!(fixture.work("c").blocked_by.as_deref(), Some("d"));
    let (_, recorded) = fixture.events_of(|| import(fixture, &items));
    assert_eq!(recorded, []);
}

fn dependencies_of_the_board_stay(fixture: &Fixture) {
    fixture.item("local");
    let items = [blocked("x", &["a", "b"]), outside("a"), outside("b")];
    import(fixture, &items);
    let block = Block { id: "x".to_owned(), blocked_by: vec!["local".to_owned()], ..Block::default() };
    fixture.board.work().block(&block).unwrap();
    fixture.board.work().unblock("x", &["b".to_owned()], None).unwrap();
    let blockers = || {
        let items = fixture.board.work().export(&ExportItems::default()).unwrap();
        items.into_iter().find(|item| item.id == "x").unwrap().blocked_by.unwrap()
    };
    let (_, recorded) = fixture.events_of(|| import(fixture, &items));
    assert_eq!((blockers(), recorded), (vec!["a".to_owned(), "local".to_owned()], vec![]));
    import(fixture, &[blocked("x", &["b"])]);
    assert_eq!(blockers(), ["local"], "the source no longer names a, and b was removed here");
}

fn a_dependency_cycle_is_left_out_and_reported(fixture: &Fixture) {
    let items = [blocked("a", &["b"]), blocked("b", &["c"]), blocked("c", &["a", "c"])];
    let report = import(fixture, &items);
    // One for itself, and one for the longer cycle.
    assert_eq!(report[2].notes.len(), 2, "{report:?}");
    assert_eq!(fixture.work("c").status, Status::Available);
    assert_eq!(fixture.work("a").status, Status::Blocked);
    let (again, recorded) = fixture.events_of(|| import(fixture, &items));
    assert_eq!((&again[2].notes, recorded), (&report[2].notes, vec![]));
    // Also with dependencies that the board has already.
    let report = import(fixture, &[blocked("c", &["a"])]);
    assert_eq!((report[0].outcome, report[0].notes.len()), (ImportedAs::Unchanged, 1));
}

fn a_claim_survives_and_a_closed_item_completes_when_released(fixture: &Fixture) {
    let [ivy, oak] = ["Ivy", "Oak"].map(|name| fixture.session(name));
    import(fixture, &[outside("x"), blocked("waits", &["x"])]);
    let claimed = fixture.claim("x", &ivy).item;
    let updates = |session: &str| -> Vec<String> {
        let checked_in = fixture.board.agents().check_in(&CheckIn::of(session)).unwrap();
        checked_in.updates.events.into_iter().map(|event| event.summary).collect()
    };
    let _ = (updates(&ivy), updates(&oak));
    let items = [OutsideItem { title: "New".to_owned(), ..closed("x") }];
    let (report, recorded) = fixture.events_of(|| import(fixture, &items));
    assert_eq!((report[0].outcome, recorded), (ImportedAs::Closing, vec![EventType::WorkUpdated]));
    assert!(report[0].held_by.as_deref().unwrap().starts_with("Ivy ("));
    let held = fixture.work("x");
    assert_eq!(
        (&held.claimed_by, held.fence, held.status),
        (&claimed.claimed_by, claimed.fence, Status::Claimed)
    );
    assert_eq!(fixture.work("waits").status, Status::Blocked);
    let (_, recorded) = fixture.events_of(|| import(fixture, &items));
    assert_eq!(recorded, []);
    assert_eq!(updates(&ivy), ["\"New\" is closed at its source (github): its release completes it"]);
    assert_eq!(updates(&oak), [""; 0], "only the holder is notified");

    let released = fixture.board.work().release(&Release::of("x", &ivy)).unwrap();
    assert!(released.released && released.completed);
    assert_eq!((released.item.status, &released.item), (Status::Completed, &fixture.work("x")));
    assert_eq!(fixture.work("waits").status, Status::Available);
    assert_eq!(fixture.agent(&ivy).current_work, None);
    let (_, recorded) = fixture.events_of(|| import(fixture, &items));
    assert_eq!(recorded, []);
}

fn a_closed_item_completes_when_its_session_ends_or_is_swept(fixture: &Fixture) {
    use Status::{Available, Completed};
    for (number, ends) in [true, false].into_iter().enumerate() {
        let id = |name: &str| format!("{name}{number}");
        let ivy = fixture.session("Ivy");
        let items = [outside(&id("a")), outside(&id("b")), outside(&id("open"))];
        import(fixture, &items);
        let both = blocked(&id("both"), &[&id("a"), &id("b")]);
        import(fixture, &[both]);
        for name in ["a", "b", "open"] {
            fixture.claim(&id(name), &ivy);
        }
        import(fixture, &[closed(&id("a")), closed(&id("b"))]);
        if ends {
            fixture.board.agents().deregister(&ivy).unwrap();
        } else {
            fixture.pass(301);
            assert_eq!(fixture.sweep().stale_agents.len(), 1);
        }
        let statuses: Vec<_> =
            ["a", "b", "open", "both"].iter().map(|name| fixture.work(&id(name)).status).collect();
        assert_eq!(statuses, [Completed, Completed, Available, Available], "deregistered: {ends}");
        assert_eq!(fixture.work(&id("a")).claimed_by, None);
    }
}

fn an_item_that_agents_completed_stays_and_a_reopened_one_does_not(fixture: &Fixture) {
    let ivy = fixture.session("Ivy");
    import(fixture, &[outside("x"), blocked("waits", &["x"])]);
    fixture.claim("x", &ivy);
    fixture.complete("x", &ivy);
    let (report, recorded) = fixture.events_of(|| import(fixture, &[outside("x")]));
    assert_eq!((report[0].outcome, recorded), (ImportedAs::Unchanged, vec![]));
    // The source closes it, and opens it again.
    let (report, recorded) = fixture.events_of(|| import(fixture, &[closed("x")]));
    assert_eq!((report[0].outcome, recorded), (ImportedAs::Updated, vec![EventType::WorkUpdated]));
    let (report, recorded) = fixture.events_of(|| import(fixture, &[outside("x")]));
    assert_eq!(report[0].outcome, ImportedAs::Reopened);
    assert_eq!(recorded, [EventType::WorkReset, EventType::WorkBlocked]);
    let item = fixture.work("x");
    assert_eq!((item.status, item.claimed_by, item.completed_at), (Status::Available, None, None));
    assert_eq!(fixture.work("waits").status, Status::Blocked);
    // One that is opened again while it is held only loses its mark.
    fixture.claim("x", &ivy);
    import(fixture, &[closed("x")]);
    let (_, recorded) = fixture.events_of(|| import(fixture, &[outside("x")]));
    assert_eq!(recorded, [EventType::WorkUpdated]);
    assert!(!fixture.board.work().release(&Release::of("x", &ivy)).unwrap().completed);
}

fn a_reopened_item_stays_on_hold(fixture: &Fixture) {
    let ivy = fixture.session("Ivy");
    import(fixture, &[outside("x")]);
    for _ in 0..3 {
        fixture.claim("x", &ivy);
        fixture.board.work().release(&Release { failed: true, ..Release::of("x", &ivy) }).unwrap();
    }
    assert_eq!(fixture.work("x").status, Status::Blocked);
    import(fixture, &[closed("x")]);
    assert_eq!(fixture.work("x").status, Status::Completed);
    assert_eq!(import(fixture, &[outside("x")])[0].outcome, ImportedAs::Reopened);
    let item = fixture.work("x");
    assert_eq!((item.status, item.hold().on_hold.as_deref()), (Status::Blocked, Some("failed 3 times")));
    let refused = fixture.board.work().claim(&Claim::of("x", &ivy)).unwrap_err();
    assert_eq!(refused.code(), Code::WorkBlocked);
    fixture.board.work().unblock("x", &[], None).unwrap();
    assert_eq!(fixture.work("x").status, Status::Available);
}

fn an_item_that_was_not_imported_is_changed_only_if_it_is_adopted(fixture: &Fixture) {
    use ImportedAs::{Completed, Created, Refused, Unchanged, Updated};
    fixture.item("local");
    import(fixture, &[outside("issue")]);
    let before = [fixture.work("local"), fixture.work("issue")];
    let items = [
        OutsideItem { title: "Harmless".to_owned(), priority: Some(Priority::P3), ..closed("local") },
        OutsideItem { title: "Harmless".to_owned(), ..outside("issue") },
        OutsideItem { source: Some("local".to_owned()), ..outside("new") },
    ];
    let markdown = ImportItems { from: "markdown".to_owned(), ..request(&items) };
    let (report, recorded) = fixture.events_of(|| fixture.board.work().import(&markdown).unwrap());
    assert_eq!(
        (outcomes(&report), recorded),
        (vec![Refused, Refused, Created], vec![EventType::WorkCreated])
    );
    assert_eq!(report[0].code, Some(Code::AlreadyExists.as_str()));
    let reasons = report[..2].iter().map(|item| item.reason.as_deref().unwrap()).collect::<Vec<_>>();
    assert_eq!(
        reasons,
        [
            "the item on the board was not imported, and an import from markdown may not change its title, \
             priority, source, closed state",
            "the item on the board was imported from github, and an import from markdown may not change its title",
        ]
    );
    assert_eq!([fixture.work("local"), fixture.work("issue")], before);
    // Adopted items belong to the imports of this form from then on.
    let adopts = ImportItems { adopt: true, ..markdown.clone() };
    let planned = fixture.board.work().import(&ImportItems { dry_run: true, ..adopts.clone() }).unwrap();
    let report = fixture.board.work().import(&adopts).unwrap();
    assert_eq!((&planned, outcomes(&report)), (&report, vec![Completed, Updated, Unchanged]));
    let item = fixture.work("local");
    assert_eq!((item.status, item.priority, &*item.title), (Status::Completed, Priority::P3, "Harmless"));
    let renamed = OutsideItem { title: "Again".to_owned(), ..items[1].clone() };
    let later = ImportItems { items: vec![renamed.clone()], ..markdown.clone() };
    assert_eq!(outcomes(&fixture.board.work().import(&later).unwrap()), [Updated]);
    let back = OutsideItem { title: "Back".to_owned(), ..outside("issue") };
    assert_eq!(outcomes(&import(fixture, &[back])), [Refused]);
}

fn a_priority_follows_the_source_unless_it_was_edited(fixture: &Fixture) {
    let issue = |priority: Option<Priority>| {
        let labels = Some(priority.iter().map(ToString::to_string).collect());
        [OutsideItem { priority, labels, ..outside("x") }]
    };
    let priority = || fixture.work("x").priority;
    import(fixture, &issue(Some(Priority::P1)));
    assert_eq!(priority(), Priority::P1);
    // The label is removed, and another one is added.
    let report = import(fixture, &issue(None));
    let fields: Vec<_> = report[0].changes.iter().map(|change| change.field).collect();
    assert_eq!((priority(), fields), (Priority::P2, vec!["priority", "labels"]));
    import(fixture, &issue(Some(Priority::P3)));
    assert_eq!(priority(), Priority::P3);
    let edit = |priority| Edit { priority: Some(priority), ..Edit::of("x") };
    fixture.board.work().edit(&edit(Priority::P1)).unwrap();
    for source in [Some(Priority::P3), None, Some(Priority::P3), Some(Priority::P2)] {
        import(fixture, &issue(source));
        assert_eq!(priority(), Priority::P1, "{source:?}");
        let (_, recorded) = fixture.events_of(|| import(fixture, &issue(source)));
        assert_eq!(recorded, [], "{source:?}");
    }
    // The same priority as that of the source follows it again.
    fixture.board.work().edit(&edit(Priority::P2)).unwrap();
    import(fixture, &issue(Some(Priority::P3)));
    assert_eq!(priority(), Priority::P3);
}

fn a_reset_item_is_not_completed_by_its_next_release(fixture: &Fixture) {
    let ivy = fixture.session("Ivy");
    import(fixture, &[outside("x")]);
    fixture.claim("x", &ivy);
    import(fixture, &[closed("x")]);
    fixture.board.work().reset("x", None).unwrap();
    let (report, _) = fixture.events_of(|| import(fixture, &[closed("x")]));
    assert_eq!((report[0].outcome, fixture.work("x").status), (ImportedAs::Unchanged, Status::Available));
    fixture.claim("x", &ivy);
    assert!(!fixture.board.work().release(&Release::of("x", &ivy)).unwrap().completed);
}

fn refused_items_do_not_stop_the_others(fixture: &Fixture) {
    use ImportedAs::{Created, Refused, Skipped};
    let secret = ["AKIA", "IOSFODNN7EXAMPLE"].concat();
    let items = [
        outside("a"),
        OutsideItem { title: " ".to_owned(), ..outside("empty") },
        OutsideItem { description: Some(secret), ..outside("secret") },
        outside("two\nlines"),
        OutsideItem { source: Some("Nowhere".to_owned()), ..outside("source") },
        OutsideItem { project: Some("none".to_owned()), ..outside("project") },
        OutsideItem { title: "Fix <b>\u{1b}[31mthis</b>".to_owned(), ..outside("markup") },
        OutsideItem { title: "Last".to_owned(), ..outside("a") },
    ];
    let report = import(fixture, &items);
    assert_eq!(
        outcomes(&report),
        [Skipped, Refused, Refused, Refused, Refused, Created, Created, Created],
        "{report:?}"
    );
    assert_eq!(report[2].code, Some(Code::SecretLooking.as_str()));
    assert_eq!(report[5].notes, ["project none is not registered; it is left out"]);
    assert_eq!((&*fixture.work("markup").title, &*fixture.work("a").title), ("Fix this", "Last"));
    let unknown = ImportItems { project: Some("none".to_owned()), ..request(&items) };
    assert_eq!(fixture.board.work().import(&unknown).unwrap_err().code(), Code::ProjectNotFound);
}

fn an_export_is_imported_as_the_same_items(fixture: &Fixture) {
    let ivy = fixture.session("Ivy");
    fixture.item("a");
    fixture.blocked_item("b", &["a", "missing"]);
    fixture.item("done");
    fixture.blocked_item("c", &["done"]);
    fixture.claim("done", &ivy);
    fixture.complete("done", &ivy);
    let edit = Edit { add_labels: vec!["x".to_owned()], estimate: Some(5), ..Edit::of("a") };
    fixture.board.work().edit(&edit).unwrap();
    let all = ExportItems { with_closed: true, ..ExportItems::default() };
    let items = fixture.board.work().export(&all).unwrap();
    assert_eq!(items.iter().map(|item| item.id.as_str()).collect::<Vec<_>>(), ["a", "b", "c", "done"]);
    // On its own board it changes nothing, not even the items that were never imported.
    for form in ["github", "markdown"] {
        let import = ImportItems { from: form.to_owned(), ..request(&items) };
        let (report, recorded) = fixture.events_of(|| fixture.board.work().import(&import).unwrap());
        assert_eq!((outcomes(&report), recorded), (vec![ImportedAs::Unchanged; 4], vec![]), "{form}");
    }
    let other = Board::memory();
    let import = ImportItems { with_closed: true, ..request(&items) };
    other.work().import(&import).unwrap();
    assert_eq!(other.work().export(&all).unwrap(), items);
    let open = fixture.board.work().export(&ExportItems::default()).unwrap();
    assert_eq!(open.iter().map(|item| item.id.as_str()).collect::<Vec<_>>(), ["a", "b", "c"]);
    assert_eq!(open[2].blocked_by.as_deref(), Some(&[][..]));
}

fn an_interrupted_import_is_completed_by_a_repeated_one(fixture: &Fixture) {
    let items: Vec<_> = (0..700).map(|number| outside(&format!("n{number}"))).collect();
    // The commits before the interruption.
    import(fixture, &items[..500]);
    let report = import(fixture, &items);
    let created = report.iter().filter(|item| item.outcome == ImportedAs::Created).count();
    assert_eq!((created, report.len()), (200, 700));
    let (_, recorded) = fixture.events_of(|| import(fixture, &items));
    assert_eq!(recorded, []);
}

fn scopes_end_with_items_that_an_import_completes(fixture: &Fixture) {
    let ivy = fixture.session("Ivy");
    import(fixture, &[outside("x"), outside("held")]);
    for id in ["x", "held"] {
        let policies = Policies { work_item: Some(id.to_owned()), ..Policies::default() };
        fixture.board.scopes().create(&CreateScope::new(&format!("of-{id}"), policies)).unwrap();
    }
    fixture.claim("held", &ivy);
    let scopes = || -> Vec<String> {
        fixture.board.scopes().list().unwrap().into_iter().map(|scope| scope.scope).collect()
    };
    import(fixture, &[closed("x"), closed("held")]);
    assert_eq!(scopes(), ["of-held"]);
    fixture.release("held", &ivy);
    assert!(scopes().is_empty());
}
