//! Retention: removes old rows in bounded batches, and nothing that is needed.

use super::*;
use crate::agent::HeartbeatRow;
use crate::follow::{Follow, Start};
use crate::prune::Pruned;
use crate::store::{BookkeepingRow, Cursor};

on_every_engine![
    nothing_is_pruned_before_its_time,
    ended_agents_are_pruned_with_their_rows,
    a_parent_stays_as_long_as_a_delegate_refers_to_it,
    old_events_are_pruned_except_the_newest_commit,
    events_are_pruned_in_batches_of_complete_commits,
    oversized_event_log_is_pruned,
    old_heartbeats_and_remembered_calls_are_pruned,
    a_session_keeps_its_newest_thousand_heartbeats,
    a_session_that_ended_or_is_stale_keeps_its_newest_thousand_heartbeats,
    heartbeats_that_are_old_and_too_many_do_not_end_the_batches_early,
    a_heartbeat_dated_in_the_future_does_not_keep_older_ones,
    abandoned_named_cursor_is_removed_after_missing_events,
    pruning_pauses_for_an_hour_when_nothing_is_due,
    due_time_of_another_clock_is_ignored,
    agents_are_pruned_in_batches,
    agent_with_many_rows_is_pruned_in_several_batches,
    an_ended_agent_with_open_work_stays,
    event_log_size_counts_all_events,
    clock_readings_of_unused_machines_are_pruned,
];

fn prune(fixture: &Fixture) -> Pruned {
    fixture.board.prune().unwrap()
}

/// Prunes until nothing is due.
fn prune_all(board: &Board) -> (u64, u64) {
    let (mut events, mut agents) = (0, 0);
    loop {
        let pruned = board.prune().unwrap();
        events += pruned.events;
        agents += pruned.agents;
        if !pruned.more {
            return (events, agents);
        }
    }
}

fn nothing_is_pruned_before_its_time(fixture: &Fixture) {
    let session = fixture.session("Ivy");
    fixture.item_that_is("x", Status::Completed, &session);
    fixture.board.agents().deregister(&session).unwrap();
    fixture.pass_days(1);
    let before = fixture.board.export().unwrap();
    assert_eq!(prune(fixture), Pruned::default());
    assert_eq!(fixture.board.export().unwrap(), before);
}

fn ended_agents_are_pruned_with_their_rows(fixture: &Fixture) {
    let completed = fixture.session("Ivy");
    fixture.beat(&completed);
    let done = fixture.item_that_is("x", Status::Completed, &completed);
    fixture.board.events().advance(&completed, "observe", fixture.id(1)).unwrap();
    fixture.board.agents().deregister(&completed).unwrap();
    let stale = fixture.session("Oak");
    fixture.item_that_is("y", Status::Completed, &stale);
    fixture.pass(301);
    fixture.sweep();
    let live = fixture.session("Elm");
    fixture.pass_days(1);
    fixture.beat(&live);
    let revision = fixture.revision();
    assert_eq!(prune(fixture).agents, 1);
    assert_eq!(code(fixture.board.agents().show(&completed)), Code::AgentNotFound);
    assert_eq!(fixture.work("x"), WorkItem { claimed_by: None, ..done }, "the name of who did it stays");
    assert_eq!(fixture.work("y").claimed_by, Some(stale.clone()));
    assert_eq!(fixture.revision(), revision, "retention has no events");
    fixture.pass_days(6);
    assert_eq!(prune(fixture).agents, 1);
    assert_eq!(code(fixture.board.agents().show(&stale)), Code::AgentNotFound);
    assert_eq!(fixture.agent(&live).status, AgentStatus::Active, "who is alive is never pruned");
}

fn a_parent_stays_as_long_as_a_delegate_refers_to_it(fixture: &Fixture) {
    let parent = fixture.session("Ivy");
    let delegate = Register { parent: Some(parent.clone()), ..Register::default() };
    let delegate = fixture.register(&delegate).session_id;
    fixture.board.agents().deregister(&parent).unwrap();
    fixture.pass_days(2);
    fixture.beat(&delegate);
    assert_eq!(prune(fixture).agents, 0);
    fixture.board.agents().deregister(&delegate).unwrap();
    fixture.pass(86_401);
    assert_eq!(prune(fixture).agents, 1);
    assert_eq!(fixture.agent(&parent).status, AgentStatus::Completed);
    fixture.pass(3600);
    assert_eq!(prune(fixture).agents, 1);
    assert!(fixture.board.export().unwrap().agents.is_empty());
}

fn old_events_are_pruned_except_the_newest_commit(fixture: &Fixture) {
    for id in ["x", "y"] {
        fixture.item(id);
    }
    fixture.pass_days(15);
    fixture.item("z");
    fixture.pass_days(16);
    drop(fixture.note_revisions());
    assert_eq!(prune_all(&fixture.board).0, 2);
    assert_eq!(fixture.events().len(), 1);
    fixture.pass_days(100);
    assert_eq!(prune_all(&fixture.board), (0, 0));
    // A commit of three events stays complete.
    fixture.put(&[an_item("a").into(), an_item("b").into(), an_item("c").into()]);
    fixture.pass_days(100);
    assert_eq!(prune_all(&fixture.board).0, 1);
    let ids: Vec<_> = fixture.events().iter().map(|event| fixture.number(event.id)).collect();
    assert_eq!(ids, [4, 5, 6]);
    assert_eq!(fixture.board.status().unwrap().events_kept, 3);
    fixture.item("w");
    assert_eq!(fixture.revision(), fixture.id(7), "ids never start again");
}

fn events_are_pruned_in_batches_of_complete_commits(fixture: &Fixture) {
    // 650 is not a multiple of 3, so the end of a batch is inside a commit.
    for _ in 0..249 {
        fixture.put(&[an_item("a").into(), an_item("b").into(), an_item("c").into()]);
    }
    fixture.pass_days(31);
    fixture.item("newest");
    let first = prune(fixture);
    assert_eq!((first.events, first.more), (651, true));
    assert_eq!(fixture.events()[0].commit_id, fixture.events()[0].id);
    assert_eq!(prune(fixture), Pruned { events: 96, ..Pruned::default() });
    assert_eq!(fixture.events().len(), 1);
}

fn oversized_event_log_is_pruned(fixture: &Fixture) {
    for number in 0..100 {
        fixture.item(&format!("item {number}"));
    }
    let board = fixture.with_settings(|settings| settings.max_log_bytes = 5_000);
    let (events, _) = prune_all(&board);
    assert!((20..80).contains(&events), "{events} events of about 100 bytes went");
    assert_eq!(fixture.events().len() as u64, 100 - events);
    let tiny = fixture.with_settings(|settings| settings.max_log_bytes = 0);
    fixture.pass(3600);
    prune_all(&tiny);
    assert_eq!(fixture.events().len(), 1);
}

fn old_heartbeats_and_remembered_calls_are_pruned(fixture: &Fixture) {
    let session = fixture.session("Ivy");
    let beat = Heartbeat {
        operation: Some("op".to_owned()),
        progress: Some("P".to_owned()),
        ..Heartbeat::of(&session)
    };
    fixture.board.agents().heartbeat(&beat).unwrap();
    fixture.pass_days(1);
    prune_all(&fixture.board);
    assert_eq!(fixture.events_of(|| fixture.board.agents().heartbeat(&beat)).1.len(), 0, "still remembered");
    fixture.pass(3600);
    prune_all(&fixture.board);
    assert_eq!(fixture.events_of(|| fixture.board.agents().heartbeat(&beat)).1.len(), 1, "forgotten");
    fixture.pass_days(6);
    prune_all(&fixture.board);
    assert_eq!(fixture.heartbeats(&session), 1);
    fixture.pass_days(2);
    prune_all(&fixture.board);
    assert_eq!(fixture.heartbeats(&session), 0);
}

fn a_session_keeps_its_newest_thousand_heartbeats(fixture: &Fixture) {
    let (busy, other) = (fixture.session("Ivy"), fixture.session("Oak"));
    let heartbeat = |session: &str, seconds| HeartbeatRow {
        session_id: session.to_owned(),
        timestamp: fixture.now().minus(Duration::from_secs(seconds)),
        progress: None,
        work_item_id: None,
    };
    let rows = (1..=1700).map(|seconds| heartbeat(&busy, seconds).into());
    let rows: Vec<Row> = rows.chain([heartbeat(&other, 9999).into()]).collect();
    fixture.put(&rows);
    let batches: Vec<_> = (0..2).map(|_| (prune(fixture).more, fixture.heartbeats(&busy))).collect();
    assert_eq!(batches, [(true, 1050), (false, 1000)]);
    let oldest = fixture.read(|tx| tx.keys(&Range::heartbeats_of(&busy), 1)).unwrap().remove(0);
    assert_eq!(oldest.unwrap(), Row::from(heartbeat(&busy, 1000)).key());
    assert_eq!(fixture.heartbeats(&other), 1);
}

fn a_session_that_ended_or_is_stale_keeps_its_newest_thousand_heartbeats(fixture: &Fixture) {
    let (ended, stale) = (fixture.session("Ivy"), fixture.session("Oak"));
    for session in [&ended, &stale] {
        let rows = (1..=1010).map(|seconds| HeartbeatRow {
            session_id: session.clone(),
            timestamp: fixture.now().minus(Duration::from_secs(seconds)),
            progress: None,
            work_item_id: None,
        });
        fixture.put(&rows.map(Row::from).collect::<Vec<_>>());
    }
    fixture.board.agents().deregister(&ended).unwrap();
    fixture.pass(301);
    assert_eq!(fixture.sweep().stale_agents.len(), 1);
    prune_all(&fixture.board);
    assert_eq!([fixture.heartbeats(&ended), fixture.heartbeats(&stale)], [1000, 1000]);
}

fn heartbeats_that_are_old_and_too_many_do_not_end_the_batches_early(fixture: &Fixture) {
    let session = fixture.session("Ivy");
    let eight_days = 8 * 24 * 60 * 60;
    let ages = (1..=1700).chain(eight_days..eight_days + 60);
    let rows = ages.map(|seconds| HeartbeatRow {
        session_id: session.clone(),
        timestamp: fixture.now().minus(Duration::from_secs(seconds)),
        progress: None,
        work_item_id: None,
    });
    fixture.put(&rows.map(Row::from).collect::<Vec<_>>());
    assert_eq!(prune_all(&fixture.board).0, 0, "no event is due");
    assert_eq!(fixture.heartbeats(&session), 1000);
}

fn a_heartbeat_dated_in_the_future_does_not_keep_older_ones(fixture: &Fixture) {
    let session = fixture.session("Ivy");
    let start = fixture.now();
    let year = Duration::from_hours(24 * 365);
    for (millis, skipped) in (0..).zip([false, true, false, true, false]) {
        let moment = start.plus(Duration::from_millis(millis));
        fixture.clock.set(if skipped { moment.plus(year) } else { moment });
        fixture.beat(&session);
    }
    fixture.clock.set(start);
    fixture.pass_days(8);
    fixture.beat(&session);
    assert_eq!(fixture.sweep().heartbeats_pruned, 3);
    assert_eq!(fixture.heartbeats(&session), 3, "the two of the future and the recent one");
}

fn abandoned_named_cursor_is_removed_after_missing_events(fixture: &Fixture) {
    let start = |name: &str, new_after| {
        let start = Start::Cursor { name: name.to_owned(), new_after };
        fixture.board.follow(&Follow { start, ..Follow::default() }).unwrap();
    };
    let names = || {
        let range = Range::cursors_of(Cursor::OWNERLESS);
        let cursors = fixture.read(|tx| tx.rows::<Cursor>(&range)).unwrap();
        cursors.into_iter().map(|cursor| cursor.reader).collect::<Vec<_>>()
    };
    fixture.item("x");
    fixture.item("y");
    start("left behind", Some(Revision::ZERO));
    fixture.pass_days(31);
    fixture.item("z");
    start("at the end", None);
    assert_eq!(prune_all(&fixture.board).0, 2);
    fixture.pass(3600);
    start("just moved", Some(Revision::ZERO));
    assert_eq!(names(), ["at the end", "just moved", "left behind"]);
    prune_all(&fixture.board);
    assert_eq!(names(), ["at the end", "just moved"]);
    fixture.pass_days(31);
    prune_all(&fixture.board);
    assert_eq!(names(), ["at the end"], "it has missed nothing, however old it is");
}

fn pruning_pauses_for_an_hour_when_nothing_is_due(fixture: &Fixture) {
    let session = fixture.session("Ivy");
    fixture.board.agents().deregister(&session).unwrap();
    fixture.pass(86_399);
    assert_eq!(prune(fixture), Pruned::default());
    fixture.pass(3599);
    assert_eq!(prune(fixture), Pruned::default(), "the agent is due, but this call does not look");
    fixture.pass(1);
    assert_eq!(prune(fixture).agents, 1);
}

fn due_time_of_another_clock_is_ignored(fixture: &Fixture) {
    let session = fixture.session("Ivy");
    fixture.board.agents().deregister(&session).unwrap();
    let ended = fixture.now();
    fixture.clock.set(ended.plus(Duration::from_hours(40 * 24)));
    prune_all(&fixture.board);
    let session = fixture.session("Oak");
    fixture.clock.set(ended);
    fixture.board.agents().deregister(&session).unwrap();
    fixture.pass(86_401);
    assert_eq!(prune(fixture).agents, 1);
}

fn agents_are_pruned_in_batches(fixture: &Fixture) {
    for number in 0..45 {
        let session = fixture.session(&format!("agent {number}"));
        fixture.board.agents().deregister(&session).unwrap();
    }
    fixture.pass(86_401);
    let batches: Vec<_> = (0..4).map(|_| prune(fixture)).map(|pruned| (pruned.agents, pruned.more)).collect();
    assert_eq!(batches, [(20, true), (20, true), (5, false), (0, false)]);
}

fn agent_with_many_rows_is_pruned_in_several_batches(fixture: &Fixture) {
    let session = fixture.session("Ivy");
    for _ in 0..3 {
        fixture.beat(&session);
    }
    let did: Vec<Row> = (0..1500)
        .map(|number| {
            let done = WorkItem {
                status: Status::Completed,
                claimed_by: Some(session.clone()),
                claimed_by_name: Some("Ivy".to_owned()),
                completed_at: Some(at(2)),
                ..an_item(&format!("x{number}"))
            };
            done.into()
        })
        .collect();
    fixture.put(&did);
    fixture.board.agents().deregister(&session).unwrap();
    fixture.pass(86_401);
    let batches: Vec<_> = (0..3)
        .map(|_| {
            let pruned = prune(fixture);
            let items = fixture.board.export().unwrap().work_items;
            assert!(items.iter().all(|item| item.claimed_by_name.as_deref() == Some("Ivy")));
            (pruned.agents, pruned.more, items.iter().filter(|item| item.claimed_by.is_some()).count())
        })
        .collect();
    assert_eq!(batches, [(0, true, 850), (0, true, 200), (1, false, 0)]);
}

fn an_ended_agent_with_open_work_stays(fixture: &Fixture) {
    // No verb does this, but SQL of another program could.
    let ended = Agent { status: AgentStatus::Completed, ended_at: Some(fixture.now()), ..an_agent("ended") };
    let held = WorkItem {
        status: Status::Claimed,
        claimed_by: Some("ended".to_owned()),
        fence: Some(Revision::new(1)),
        ..an_item("x")
    };
    fixture.put(&[ended.into(), held.into()]);
    let other = fixture.session("Ivy");
    fixture.board.agents().deregister(&other).unwrap();
    fixture.pass_days(2);
    let before = fixture.work("x");
    assert_eq!(prune_all(&fixture.board), (0, 1));
    assert_eq!(fixture.work("x"), before, "no session loses work without an event");
    assert_eq!(fixture.agent("ended").status, AgentStatus::Completed);
}

fn event_log_size_counts_all_events(fixture: &Fixture) {
    for number in 0..100 {
        fixture.item(&format!("small {number}"));
    }
    for number in 0..200 {
        let large = Create::new(&format!("large {number}"), &"large ".repeat(80));
        fixture.board.work().create(&large).unwrap();
    }
    // Space for all of them if all were as small as the oldest.
    let board = fixture.with_settings(|settings| settings.max_log_bytes = 60_000);
    prune_all(&board);
    let kept = fixture.events().len();
    assert!((80..220).contains(&kept), "{kept} events are kept");
}

fn clock_readings_of_unused_machines_are_pruned(fixture: &Fixture) {
    let of_machine =
        |name: &str| fixture.board.clone().with_processes(Arc::new(FakeProcesses::of_machine(name)));
    let register = |board: &Board| board.agents().register(&Register::named("Ivy")).unwrap();
    let readings = || -> Vec<String> {
        let rows = fixture.read(|tx| tx.range(&Range::bookkeeping_rows("clock:"))).unwrap();
        let name = |row: Row| BookkeepingRow::try_from(row).unwrap().name.into_owned();
        rows.into_iter().map(name).collect()
    };
    for machine in ["away", "used"] {
        register(&of_machine(machine));
    }
    fixture.session("Oak");
    let all = ["clock:fake-host", "clock:fake-host-away", "clock:fake-host-used"];
    assert_eq!(readings(), all);
    fixture.pass_days(29);
    register(&of_machine("used"));
    prune_all(&fixture.board);
    assert_eq!(readings(), all, "each has used the board in the last 30 days");
    fixture.pass_days(1);
    prune_all(&fixture.board);
    assert_eq!(readings(), ["clock:fake-host", "clock:fake-host-used"], "its own reading stays");
    // The other machine may come back.
    register(&of_machine("away"));
    assert_eq!(readings(), all);
}
