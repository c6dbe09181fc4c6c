//! The sweep when the clock cannot be trusted: a missing heartbeat means nothing if no session could send one.

use super::watched::watched;
use super::*;

on_every_engine![
    changed_clock_marks_no_agent_and_gives_one_threshold_of_grace,
    small_clock_correction_gives_no_grace,
    dry_run_records_no_clock_reading,
    registering_records_a_changed_clock,
    clock_that_was_set_back_gives_grace,
    another_boot_gives_no_grace,
    a_machine_notices_a_changed_clock_after_another_one_registered,
    a_machine_without_a_clock_reading_marks_no_agent_for_one_threshold,
    registering_from_another_machine_gives_that_machine_one_threshold,
    the_first_session_of_a_board_with_work_needs_no_grace,
    a_heartbeat_ahead_of_the_clock_keeps_no_gone_session,
    a_heartbeat_ahead_of_the_clock_counts_as_the_current_time,
    a_threshold_of_zero_includes_a_heartbeat_ahead_of_the_clock,
    a_session_from_before_the_clock_was_set_back_becomes_stale,
    the_next_call_of_a_session_replaces_a_heartbeat_ahead_of_the_clock,
    the_time_of_the_engine_decides_what_is_due,
];

fn set_forward(fixture: &Fixture, seconds: u64) {
    // The monotonic clock stops, as while the machine sleeps.
    fixture.clock.set(fixture.now().plus(Duration::from_secs(seconds)));
}

fn marks(fixture: &Fixture) -> usize {
    fixture.sweep().stale_agents.len()
}

fn changed_clock_marks_no_agent_and_gives_one_threshold_of_grace(fixture: &Fixture) {
    let (ivy, oak) = (fixture.session("Ivy"), fixture.session("Oak"));
    set_forward(fixture, 8 * 3600);
    let (count, recorded) = fixture.events_of(|| marks(fixture));
    assert_eq!((count, recorded.len()), (0, 0));
    fixture.pass(299);
    assert_eq!(marks(fixture), 0);
    fixture.beat(&oak);
    fixture.pass(1);
    assert_eq!(marks(fixture), 1);
    assert_eq!(fixture.agent(&ivy).status, AgentStatus::Stale);
    assert_eq!(fixture.agent(&oak).status, AgentStatus::Active);
}

fn small_clock_correction_gives_no_grace(fixture: &Fixture) {
    fixture.session("Ivy");
    fixture.pass(301);
    set_forward(fixture, 30);
    assert_eq!(marks(fixture), 1);
}

fn dry_run_records_no_clock_reading(fixture: &Fixture) {
    fixture.session("Ivy");
    set_forward(fixture, 3600);
    let dry = Sweep { dry_run: true, ..Sweep::default() };
    assert!(fixture.board.sweep(&dry).unwrap().stale_agents.is_empty());
    // The grace period begins with the first real sweep.
    fixture.pass(300);
    assert_eq!(marks(fixture), 0);
    fixture.pass(300);
    assert_eq!(marks(fixture), 1);
}

fn registering_records_a_changed_clock(fixture: &Fixture) {
    fixture.session("Ivy");
    set_forward(fixture, 3600);
    let oak = fixture.session("Oak");
    fixture.pass(299);
    assert_eq!(marks(fixture), 0);
    fixture.beat(&oak);
    fixture.pass(1);
    assert_eq!(marks(fixture), 1);
}

fn clock_that_was_set_back_gives_grace(fixture: &Fixture) {
    let ivy = fixture.session("Ivy");
    fixture.pass(301);
    fixture.clock.set(fixture.now().minus(Duration::from_hours(1)));
    assert_eq!(marks(fixture), 0, "it was last seen in the future");
    // The clock is corrected: that is another jump.
    set_forward(fixture, 3600);
    let oak = fixture.session("Oak");
    fixture.pass(299);
    assert_eq!(marks(fixture), 0);
    fixture.beat(&oak);
    fixture.pass(1);
    assert_eq!(marks(fixture), 1);
    assert_eq!(fixture.agent(&ivy).status, AgentStatus::Stale);
}

fn another_boot_gives_no_grace(fixture: &Fixture) {
    fixture.session_of_process("Ivy", 10);
    fixture.processes.reboot();
    set_forward(fixture, 3600);
    assert_eq!(marks(fixture), 1, "its process cannot have survived");
}

/// The same board as another machine sees it.
fn another_machine(fixture: &Fixture) -> Board {
    fixture.board.clone().with_processes(Arc::new(FakeProcesses::of_machine("other")))
}

fn a_machine_notices_a_changed_clock_after_another_one_registered(fixture: &Fixture) {
    fixture.session("Ivy");
    another_machine(fixture).agents().register(&Register::named("Oak")).unwrap();
    set_forward(fixture, 8 * 3600);
    assert_eq!(marks(fixture), 0);
    fixture.pass(300);
    assert_eq!(marks(fixture), 2);
}

fn a_machine_without_a_clock_reading_marks_no_agent_for_one_threshold(fixture: &Fixture) {
    let ivy = fixture.session("Ivy");
    let other = another_machine(fixture);
    let marks = |dry_run| {
        let sweep = Sweep { dry_run, ..Sweep::default() };
        other.sweep(&sweep).unwrap().stale_agents.len()
    };
    fixture.pass(300);
    assert_eq!(marks(true), 0);
    fixture.pass(300);
    assert_eq!(marks(false), 0, "the dry run recorded nothing");
    fixture.pass(299);
    assert_eq!(marks(false), 0);
    fixture.pass(1);
    assert_eq!(marks(true), 1);
    assert_eq!(marks(false), 1);
    assert_eq!(fixture.agent(&ivy).status, AgentStatus::Stale);
}

fn the_first_session_of_a_board_with_work_needs_no_grace(fixture: &Fixture) {
    fixture.item("x");
    fixture.session("Ivy");
    fixture.pass(300);
    assert_eq!(marks(fixture), 1);
}

fn registering_from_another_machine_gives_that_machine_one_threshold(fixture: &Fixture) {
    fixture.session("Ivy");
    fixture.pass(300);
    let other = another_machine(fixture);
    other.agents().register(&Register::named("Oak")).unwrap();
    assert_eq!(other.sweep(&Sweep::default()).unwrap().stale_agents.len(), 0);
    assert_eq!(marks(fixture), 1, "the first machine has seen no change of the clock");
}

fn a_heartbeat_ahead_of_the_clock_keeps_no_gone_session(fixture: &Fixture) {
    let ivy = fixture.session_of_process("Ivy", 10);
    let oak = fixture.session_of_process("Oak", 11);
    fixture.set_heartbeat_ahead(&ivy, 31);
    fixture.set_heartbeat_ahead(&oak, 3600);
    fixture.processes.end(10);
    let dry = fixture.board.sweep(&Sweep { dry_run: true, ..Sweep::default() }).unwrap();
    assert_eq!(dry.stale_agents[0].session_id, ivy);
    assert_eq!(fixture.sweep(), dry);
    assert_eq!(fixture.agent(&ivy).status, AgentStatus::Stale);
    assert_eq!(dry.pids_verified, [oak.as_str()], "its process runs");
    assert_eq!(fixture.agent(&oak).last_seen_at, fixture.now());
}

fn a_heartbeat_ahead_of_the_clock_counts_as_the_current_time(fixture: &Fixture) {
    let (ivy, oak) = (fixture.session("Ivy"), fixture.session("Oak"));
    fixture.set_heartbeat_ahead(&ivy, 3600);
    fixture.set_heartbeat_ahead(&oak, 30);
    let before = fixture.agent(&ivy);
    let dry = Sweep { dry_run: true, ..Sweep::default() };
    assert!(fixture.board.sweep(&dry).unwrap().stale_agents.is_empty());
    assert_eq!(fixture.agent(&ivy), before, "a dry run changes nothing");
    let (count, recorded) = fixture.events_of(|| marks(fixture));
    assert_eq!((count, recorded.len()), (0, 0));
    let heartbeats = |agent: &Agent| (agent.last_seen_at, agent.last_beat_at);
    assert_eq!(heartbeats(&fixture.agent(&ivy)), (fixture.now(), fixture.now()));
    assert!(fixture.agent(&oak).last_seen_at > fixture.now(), "clocks may differ a little");
    fixture.pass(299);
    assert_eq!(marks(fixture), 0);
    fixture.pass(1);
    assert_eq!(marks(fixture), 1);
    assert_eq!(fixture.agent(&ivy).status, AgentStatus::Stale);
}

fn a_threshold_of_zero_includes_a_heartbeat_ahead_of_the_clock(fixture: &Fixture) {
    let gone = fixture.session_of_process("gone", 10);
    fixture.session_of_process("alive", 11);
    fixture.session("no PID");
    fixture.processes.end(10);
    fixture.set_heartbeat_ahead(&gone, 1);
    let threshold = |dry_run| Sweep { threshold: Some(Duration::ZERO), dry_run, caller: None };
    let names = |swept: &Swept| -> Vec<_> {
        let mut names: Vec<_> = swept.stale_agents.iter().map(|stale| stale.agent_name.clone()).collect();
        names.sort();
        names
    };
    assert_eq!(names(&fixture.board.sweep(&threshold(true)).unwrap()), ["gone", "no PID"]);
    fixture.clock.set(fixture.now().minus(Duration::from_hours(1)));
    let swept = fixture.board.sweep(&threshold(false)).unwrap();
    assert_eq!(names(&swept), ["gone", "no PID"], "the heartbeat does not count, and so the clock does not");
    assert_eq!(swept.pids_verified.len(), 1);
}

fn a_session_from_before_the_clock_was_set_back_becomes_stale(fixture: &Fixture) {
    let (ivy, oak) = (fixture.session("Ivy"), fixture.session_of_process("Oak", 10));
    fixture.processes.end(10);
    fixture.clock.set(fixture.now().minus(Duration::from_hours(1)));
    fixture.pass(10);
    assert_eq!(marks(fixture), 0);
    fixture.pass(299);
    assert_eq!(marks(fixture), 0, "each has one threshold from then");
    fixture.pass(1);
    assert_eq!(marks(fixture), 1);
    assert_eq!(fixture.agent(&oak).status, AgentStatus::Stale, "its process is gone");
    fixture.pass(300);
    assert_eq!(marks(fixture), 1);
    assert_eq!(fixture.agent(&ivy).status, AgentStatus::Stale);
}

fn the_next_call_of_a_session_replaces_a_heartbeat_ahead_of_the_clock(fixture: &Fixture) {
    let ivy = fixture.session("Ivy");
    fixture.item("x");
    fixture.set_heartbeat_ahead(&ivy, 3600);
    fixture.claim("x", &ivy);
    let agent = fixture.agent(&ivy);
    assert_eq!((agent.last_seen_at, agent.last_beat_at), (fixture.now(), fixture.now()));
}

fn the_time_of_the_engine_decides_what_is_due(fixture: &Fixture) {
    // The clock of the caller is an hour behind that of the engine, and runs at the same speed.
    let clock = Arc::new(FixedClock::at("2026-02-03T14:30:00Z").unwrap());
    let pass = |seconds| {
        clock.advance(Duration::from_secs(seconds));
        fixture.pass(seconds);
    };
    let board = watched(fixture.board.clone(), clock.clone(), |_| {});
    let ivy = board.agents().register(&Register::named("Ivy")).unwrap().agent.session_id;
    let note = Write { ttl: Some(Duration::from_secs(10)), ..a_write("note", "1") };
    board.scope("team").write(&note).unwrap();
    pass(10);
    assert_eq!(board.try_sweep(None).entries_expired, 1);
    pass(289);
    board.sweep_with_next_call(None);
    assert_eq!(board.agents().show(&ivy).unwrap().agent.status, AgentStatus::Active);
    pass(1);
    board.sweep_with_next_call(None);
    assert_eq!(
        board.agents().show(&ivy).unwrap().agent.status,
        AgentStatus::Stale,
        "by the probes of the read"
    );
    board.agents().heartbeat(&Heartbeat::of(&ivy)).unwrap();
    pass(7 * 86_400 + 1);
    board.agents().heartbeat(&Heartbeat::of(&ivy)).unwrap();
    let dry = board.sweep(&Sweep { dry_run: true, ..Sweep::default() }).unwrap();
    assert_eq!(dry.heartbeats_pruned, 1);
    assert_eq!(board.sweep(&Sweep::default()).unwrap().heartbeats_pruned, 1);
    assert_eq!(fixture.heartbeats(&ivy), 1);
}
