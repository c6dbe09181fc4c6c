//! The sweep: which sessions it marks stale, which it keeps, and how it releases their work.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::watched::{Look, watched};
use super::*;
use crate::process::ProcessIdentity;
use crate::work::Block;

on_every_engine![
    only_agents_without_heartbeat_and_process_are_marked_stale,
    an_idle_session_is_swept_too,
    sweep_reports_stale_agents_and_their_work,
    blocked_item_of_a_stale_session_loses_its_holder,
    completed_work_of_a_stale_session_keeps_its_session,
    running_process_is_refreshed_by_other_sessions,
    session_in_a_shared_process_has_a_longer_threshold,
    the_caller_is_never_marked,
    a_threshold_includes_its_own_millisecond,
    a_threshold_of_zero_includes_the_current_millisecond,
    a_dry_run_changes_nothing,
    a_deferred_sweep_comes_before_the_call_that_it_is_part_of,
    a_call_that_is_refused_before_its_first_read_leaves_the_deferred_sweep,
    deferred_sweep_is_not_shared_between_calls,
    a_sweep_reads_its_candidates_at_once,
    two_sweeps_mark_once,
    manual_sweep_checks_all_agents_and_an_automatic_one_a_hundred,
    a_sweep_removes_old_heartbeats,
    a_dry_run_reports_heartbeats_and_entries_that_are_due,
    an_observer_sees_automatic_sweeps_that_mark_an_agent,
    a_pid_counts_only_in_the_boot_of_its_machine_if_machines_share_the_board,
];

fn a_deferred_sweep_comes_before_the_call_that_it_is_part_of(fixture: &Fixture) {
    let held = |name: &str, id: &str| {
        let session = fixture.session(name);
        fixture.item(id);
        fixture.claim(id, &session);
        session
    };
    let (ivy, oak) = (held("Ivy", "x"), held("Oak", "y"));
    fixture.pass(300);
    let elm = fixture.session("Elm");
    fixture.board.sweep_with_next_call(Some(&ivy));
    assert_eq!(fixture.claim("y", &elm).item.claimed_by, Some(elm.clone()), "swept before the commit");
    assert_eq!(fixture.agent(&ivy).status, AgentStatus::Active, "the caller is never marked");
    assert_eq!(fixture.agent(&oak).status, AgentStatus::Stale);
    fixture.board.clone().sweep_with_next_call(Some(&elm));
    assert_eq!(fixture.work("x").claimed_by, None, "swept before the read");
    fixture.scope().write(&Write { ttl: Some(Duration::from_secs(1)), ..a_write("a", "1") }).unwrap();
    fixture.pass(2);
    let before = fixture.revision();
    fixture.board.sweep_with_next_call(None);
    let claim = fixture.board.work().claim(&Claim::of("nothing", &elm));
    assert_eq!(code(claim), Code::WorkNotFound);
    let recorded: Vec<_> =
        fixture.events_after(before).iter().map(|event| event.event_type.clone()).collect();
    assert_eq!(recorded, [EventType::EntryExpired], "also if the call is refused");
}

fn a_call_that_is_refused_before_its_first_read_leaves_the_deferred_sweep(fixture: &Fixture) {
    let ivy = fixture.session("Ivy");
    fixture.pass(300);
    fixture.board.sweep_if_deferred();
    assert_eq!(fixture.agent(&ivy).status, AgentStatus::Active, "no sweep was deferred");
    fixture.board.sweep_with_next_call(None);
    assert!(fixture.board.scope("locks").write(&a_write("a", "1")).is_err());
    // Any call on the board would begin with the sweep, so the test reads the store.
    let status = || {
        let (mut status, key) = (None, crate::store::Key::Agent(ivy.clone()));
        let read = fixture.engine.read(&[], &mut |tx| {
            status = tx.row::<Agent>(&key)?.map(|agent| agent.status);
            Ok(())
        });
        read.map(|()| status).unwrap()
    };
    assert_eq!(status(), Some(AgentStatus::Active));
    fixture.board.sweep_if_deferred();
    assert_eq!(status(), Some(AgentStatus::Stale));
    fixture.beat(&ivy);
    fixture.pass(300);
    fixture.board.sweep_if_deferred();
    assert_eq!(fixture.agent(&ivy).status, AgentStatus::Active, "a deferred sweep is made once");
}

fn deferred_sweep_is_not_shared_between_calls(fixture: &Fixture) {
    let (ivy, oak) = (fixture.session("Ivy"), fixture.session("Oak"));
    fixture.pass(300);
    // Both calls have begun before one of them reads.
    let calls = [&ivy, &oak].map(|session| fixture.board.for_call(Some(session)));
    assert_eq!(fixture.agent(&oak).status, AgentStatus::Active, "a call that is not swept");
    assert_eq!(calls[0].agents().get(&oak).unwrap().unwrap().status, AgentStatus::Stale, "swept for Ivy");
    assert_eq!(fixture.agent(&ivy).status, AgentStatus::Active, "its own caller is never marked");
    assert_eq!(calls[1].agents().get(&ivy).unwrap().unwrap().status, AgentStatus::Stale, "swept for Oak");
}

fn a_sweep_reads_its_candidates_at_once(fixture: &Fixture) {
    for number in 0..20 {
        fixture.session(&format!("agent {number}"));
    }
    fixture.pass(300);
    let rows = Arc::new(AtomicUsize::new(0));
    let counted = rows.clone();
    let board = watched(fixture.board.clone(), fixture.clock.clone(), move |look| {
        let is_agent = matches!(look, Look::Row(crate::store::Key::Agent(_)));
        counted.fetch_add(usize::from(is_agent), Ordering::Relaxed);
    });
    let board = board.with_processes(fixture.processes.clone());
    let swept = board.sweep(&Sweep { dry_run: true, ..Sweep::default() }).unwrap();
    assert_eq!(swept.stale_agents.len(), 20);
    assert_eq!(rows.load(Ordering::Relaxed), 0, "agents that were read one by one");
}

fn marked(swept: &Swept) -> Vec<&str> {
    swept.stale_agents.iter().map(|stale| stale.agent_name.as_str()).collect()
}

fn only_agents_without_heartbeat_and_process_are_marked_stale(fixture: &Fixture) {
    let elsewhere = |name: &str, change: fn(&mut ProcessIdentity)| {
        let mut mark = fixture.processes.start(99);
        change(&mut mark);
        let mut agent = fixture.agent(&fixture.session_of_process(name, 99));
        agent.process = Some(mark);
        fixture.put(&[agent.into()]);
    };
    fixture.session_of_process("dead", 10);
    fixture.session_of_process("alive", 11);
    fixture.session_of_process("reused", 12);
    fixture.session("no PID");
    elsewhere("other host", |mark| mark.host = "elsewhere".to_owned());
    elsewhere("other namespace", |mark| mark.namespace = "container".to_owned());
    fixture.processes.end(10);
    fixture.processes.start(12);
    fixture.clock.advance(Duration::from_millis(299_999));
    let beating = fixture.session_of_process("beating", 13);
    fixture.processes.end(13);
    assert_eq!(fixture.sweep(), Swept::default(), "the threshold is not reached");
    fixture.clock.advance(Duration::from_millis(1));
    let swept = fixture.sweep();
    let mut names = marked(&swept);
    names.sort_unstable();
    assert_eq!(names, ["dead", "no PID", "other host", "other namespace", "reused"]);
    assert_eq!(swept.pids_verified.len(), 1);
    assert_eq!(fixture.agent(&beating).status, AgentStatus::Active, "its heartbeat is young");
    assert_eq!(fixture.sweep(), Swept::default());
}

fn an_idle_session_is_swept_too(fixture: &Fixture) {
    let session = fixture.session("Ivy");
    fixture
        .board
        .agents()
        .heartbeat(&Heartbeat { status: Some(AgentStatus::Idle), ..Heartbeat::of(&session) })
        .unwrap();
    fixture.pass(301);
    assert_eq!(marked(&fixture.sweep()), ["Ivy"]);
}

fn sweep_reports_stale_agents_and_their_work(fixture: &Fixture) {
    let ivy = fixture.session_of_process("Ivy", 4711);
    fixture.session("Oak");
    let since = fixture.now();
    for id in ["x", "y"] {
        fixture.item(id);
    }
    let fences = ["x", "y"].map(|id| fixture.claim(id, &ivy).item.fence.unwrap().get());
    fixture.processes.end(4711);
    fixture.pass(301);
    let before = fixture.revision();
    let swept = fixture.sweep();
    let events = fixture.events_after(before);
    let of = |session: &str| -> Vec<_> {
        events.iter().filter(|event| event.target_id.as_deref() == Some(session)).collect()
    };
    let [stale, released] = of(&ivy)[..] else { panic!("{events:?}") };
    assert_eq!(stale.event_type, EventType::AgentStale);
    assert_eq!(
        stale.summary,
        format!("Agent \"Ivy\" marked stale (no heartbeat since {since}, PID 4711 not found)")
    );
    assert_eq!(released.event_type, EventType::StaleLocksReleased);
    assert_eq!(released.summary, "Released 2 work item(s) from stale agent \"Ivy\": Title of x, Title of y");
    assert_eq!(
        metadata(released),
        serde_json::json!({"items": [
            {"item_id": "x", "fence": fences[0]},
            {"item_id": "y", "fence": fences[1]},
        ]})
    );
    assert_eq!((stale.actor_id.as_ref(), stale.target_type), (None, Some(TargetType::Agent)));
    assert_eq!(released.commit_id, stale.id, "one commit for one agent");
    assert_eq!(events.len(), 3);
    let other = events.iter().find(|event| event.commit_id != stale.id).unwrap();
    assert_eq!(other.summary, format!("Agent \"Oak\" marked stale (no heartbeat since {since}, no PID)"));

    let agent = fixture.agent(&ivy);
    assert_eq!((agent.status, agent.ended_at), (AgentStatus::Stale, Some(fixture.now())));
    assert_eq!((agent.last_seen_at, agent.revision), (since, stale.id));
    let item = fixture.work("x");
    assert_eq!((item.status, item.claimed_by, item.claimed_at), (Status::Available, None, None));
    assert_eq!((item.fence, item.claimed_by_name, item.revision), (None, None, released.id));
    let of_ivy = swept.stale_agents.iter().find(|stale| stale.session_id == ivy).unwrap();
    assert_eq!((of_ivy.pid, &of_ivy.released_items), (Some(4711), &owned(&["x", "y"])));
}

fn blocked_item_of_a_stale_session_loses_its_holder(fixture: &Fixture) {
    let session = fixture.session("Ivy");
    fixture.item_that_is("x", Status::Claimed, &session);
    let block = Block { id: "x".to_owned(), blocked_by: owned(&["later"]), ..Block::default() };
    fixture.board.work().block(&block).unwrap();
    fixture.pass(301);
    assert_eq!(fixture.sweep().stale_agents[0].released_items, ["x"]);
    let item = fixture.work("x");
    assert_eq!((item.status, item.claimed_by, item.fence), (Status::Blocked, None, None));
    assert_eq!(item.blocked_by.as_deref(), Some("later"));
}

fn completed_work_of_a_stale_session_keeps_its_session(fixture: &Fixture) {
    let session = fixture.session("Ivy");
    let before = fixture.item_that_is("x", Status::Completed, &session);
    fixture.pass(301);
    let (swept, recorded) = fixture.events_of(|| fixture.sweep());
    assert!(swept.stale_agents[0].released_items.is_empty());
    assert_eq!(recorded, [EventType::AgentStale]);
    assert_eq!(fixture.work("x"), before);
}

fn running_process_is_refreshed_by_other_sessions(fixture: &Fixture) {
    let session = fixture.session_of_process("Ivy", 10);
    let registered = fixture.now();
    fixture.pass(301);
    let (swept, recorded) = fixture.events_of(|| fixture.sweep());
    assert_eq!(swept.pids_verified, [session.as_str()]);
    assert!(swept.stale_agents.is_empty() && recorded.is_empty());
    let agent = fixture.agent(&session);
    assert_eq!((agent.last_seen_at, agent.last_beat_at), (fixture.now(), registered));
    assert!(fixture.sweep().pids_verified.is_empty(), "it was just seen");
    fixture.pass(100);
    fixture.processes.end(10);
    assert!(fixture.sweep().stale_agents.is_empty());
    fixture.pass(201);
    assert_eq!(marked(&fixture.sweep()), ["Ivy"]);
}

fn session_in_a_shared_process_has_a_longer_threshold(fixture: &Fixture) {
    let parent = fixture.session_of_process("Ivy", 10);
    let delegate = Register { parent: Some(parent), pid: Some(10), ..Register::default() };
    let delegate = fixture.register(&delegate).session_id;
    fixture.pass(301);
    assert_eq!(fixture.sweep().pids_verified.len(), 1, "the parent only");
    let before = fixture.agent(&delegate);
    assert_eq!(before.status, AgentStatus::Active);
    fixture.pass(1498);
    assert!(fixture.sweep().stale_agents.is_empty());
    assert_eq!(fixture.agent(&delegate), before, "no session refreshes it");
    fixture.pass(1);
    assert_eq!(marked(&fixture.sweep()), ["Ivy (delegate)"]);
    fixture.beat(&delegate);
    // Sessions of a process that is gone are marked stale at once.
    fixture.processes.end(10);
    fixture.pass(301);
    assert_eq!(marked(&fixture.sweep()), ["Ivy", "Ivy (delegate)"]);
}

fn the_caller_is_never_marked(fixture: &Fixture) {
    let caller = fixture.session("Ivy");
    fixture.session("Oak");
    fixture.pass(301);
    let sweep = Sweep { caller: Some(caller.clone()), ..Sweep::default() };
    assert_eq!(marked(&fixture.board.sweep(&sweep).unwrap()), ["Oak"]);
    assert_eq!(fixture.board.try_sweep(Some(&caller)), Swept::default());
    assert_eq!(marked(&fixture.board.try_sweep(None)), ["Ivy"]);
}

fn a_threshold_includes_its_own_millisecond(fixture: &Fixture) {
    fixture.session("Ivy");
    fixture.pass(11);
    let sweep = |millis| {
        let threshold = Some(Duration::from_millis(millis));
        fixture.board.sweep(&Sweep { threshold, ..Sweep::default() }).unwrap()
    };
    assert!(sweep(11_001).stale_agents.is_empty());
    assert_eq!(marked(&sweep(11_000)), ["Ivy"]);
}

fn a_threshold_of_zero_includes_the_current_millisecond(fixture: &Fixture) {
    let dead = fixture.session_of_process("dead", 10);
    fixture.session_of_process("alive", 11);
    fixture.item_that_is("x", Status::Claimed, &dead);
    fixture.processes.end(10);
    // The heartbeat, the end of the process and the sweep are in one millisecond.
    fixture.beat(&dead);
    let sweep = |dry_run| {
        let threshold = Some(Duration::ZERO);
        fixture.board.sweep(&Sweep { threshold, dry_run, ..Sweep::default() }).unwrap()
    };
    let dry = sweep(true);
    assert_eq!(marked(&dry), ["dead"]);
    assert_eq!(dry.pids_verified.len(), 1);
    assert_eq!(sweep(false), dry);
    assert_eq!(fixture.work("x").status, Status::Available);
    assert_eq!(fixture.agent(&dead).status, AgentStatus::Stale);
}

fn a_dry_run_changes_nothing(fixture: &Fixture) {
    let dead = fixture.session_of_process("dead", 10);
    fixture.session_of_process("alive", 11);
    fixture.item_that_is("x", Status::Claimed, &dead);
    fixture.processes.end(10);
    fixture.pass(301);
    let before = fixture.board.export().unwrap();
    let dry = fixture.board.sweep(&Sweep { dry_run: true, ..Sweep::default() }).unwrap();
    assert_eq!(marked(&dry), ["dead"]);
    assert_eq!(dry.stale_agents[0].released_items, ["x"]);
    assert_eq!(dry.pids_verified.len(), 1);
    assert_eq!(fixture.board.export().unwrap(), before);
    let wet = fixture.sweep();
    assert_eq!(wet, dry, "what it said is what happens");
}

fn two_sweeps_mark_once(fixture: &Fixture) {
    for number in 0..20 {
        fixture.session(&format!("agent {number}"));
    }
    fixture.pass(301);
    let board = &fixture.board;
    let sweeps: Vec<_> = std::thread::scope(|scope| {
        let sweeps: Vec<_> =
            (0..4).map(|_| scope.spawn(|| board.sweep(&Sweep::default()).unwrap())).collect();
        sweeps.into_iter().map(|sweep| sweep.join().unwrap()).collect()
    });
    assert_eq!(sweeps.iter().map(|swept| swept.stale_agents.len()).sum::<usize>(), 20);
    let stale = fixture.events().into_iter().filter(|event| event.event_type == EventType::AgentStale);
    assert_eq!(stale.count(), 20);
}

fn manual_sweep_checks_all_agents_and_an_automatic_one_a_hundred(fixture: &Fixture) {
    let caller = fixture.session("caller");
    for number in 0..220 {
        fixture.session(&format!("agent {number}"));
    }
    fixture.pass(301);
    fixture.beat(&caller);
    assert_eq!(fixture.board.try_sweep(Some(&caller)).stale_agents.len(), 100);
    let sweep = Sweep { caller: Some(caller), ..Sweep::default() };
    assert_eq!(fixture.board.sweep(&sweep).unwrap().stale_agents.len(), 120);
}

fn a_sweep_removes_old_heartbeats(fixture: &Fixture) {
    let session = fixture.session("Ivy");
    for _ in 0..3 {
        fixture.pass(1);
        fixture.beat(&session);
    }
    fixture.pass_days(8);
    fixture.beat(&session);
    let (swept, recorded) = fixture.events_of(|| fixture.sweep());
    assert_eq!(swept.heartbeats_pruned, 3);
    assert!(recorded.is_empty());
    assert_eq!(fixture.heartbeats(&session), 1);
}

fn a_dry_run_reports_heartbeats_and_entries_that_are_due(fixture: &Fixture) {
    let session = fixture.session_of_process("Ivy", 10);
    for _ in 0..3 {
        fixture.pass(1);
        fixture.beat(&session);
    }
    for key in ["a", "b"] {
        let ttl = Some(Duration::from_secs(10));
        fixture.scope().write(&crate::entry::Write { ttl, ..a_write(key, "1") }).unwrap();
    }
    fixture.write("c", "1");
    fixture.pass_days(8);
    fixture.beat(&session);
    let (dry, recorded) =
        fixture.events_of(|| fixture.board.sweep(&Sweep { dry_run: true, ..Sweep::default() }).unwrap());
    assert_eq!((dry.heartbeats_pruned, dry.entries_expired), (3, 2));
    assert!(recorded.is_empty());
    let swept = fixture.sweep();
    assert_eq!(swept, dry, "what it reported is what happens");
    let after = fixture.board.sweep(&Sweep { dry_run: true, ..Sweep::default() }).unwrap();
    assert_eq!(after, Swept::default());
}

fn an_observer_sees_automatic_sweeps_that_mark_an_agent(fixture: &Fixture) {
    let (reports, reported) = std::sync::mpsc::channel();
    let board = fixture.board.clone().with_sweep_observer(move |swept| {
        let names: Vec<_> = swept.stale_agents.iter().map(|agent| agent.agent_name.clone()).collect();
        reports.send(names).unwrap();
    });
    fixture.session("Ivy");
    board.try_sweep(None);
    assert!(reported.try_recv().is_err(), "nothing was marked");
    fixture.pass(300);
    board.try_sweep(None);
    assert_eq!(reported.try_recv().unwrap(), ["Ivy"]);
    fixture.session("Oak");
    fixture.pass(300);
    // The answer contains the result of the request.
    assert_eq!(board.sweep(&Sweep::default()).unwrap().stale_agents.len(), 1);
    assert!(reported.try_recv().is_err());
}

fn a_pid_counts_only_in_the_boot_of_its_machine_if_machines_share_the_board(fixture: &Fixture) {
    let (ivy, oak) = (fixture.session_of_process("Ivy", 10), fixture.session_of_process("Oak", 11));
    let elm = fixture.session_of_process("Elm", 12);
    let (of_ivy, of_oak) = (fixture.agent(&ivy), fixture.agent(&oak));
    // One process that could not be identified, and one of a machine with the same id.
    let copied = of_oak.process.clone().map(|process| ProcessIdentity { boot: "copy".to_owned(), ..process });
    fixture.put(&[Agent { process: None, ..of_ivy }.into(), Agent { process: copied, ..of_oak }.into()]);
    let is_shared = fixture.engine.is_shared_by_machines();
    let process = |session: &str| fixture.board.agents().show(session).unwrap().process;
    let expected = if is_shared { ["unknown", "unknown", "alive"] } else { ["alive", "dead", "alive"] };
    assert_eq!([process(&ivy), process(&oak), process(&elm)], expected);
    fixture.pass(299);
    assert!(fixture.sweep().stale_agents.is_empty());
    fixture.pass(1);
    let swept = fixture.sweep();
    let stale: Vec<_> = swept.stale_agents.iter().map(|agent| agent.agent_name.as_str()).collect();
    assert_eq!(stale.contains(&"Ivy"), is_shared, "the time decides: {stale:?}");
    assert!(stale.contains(&"Oak") && !stale.contains(&"Elm"), "{stale:?}");
}
