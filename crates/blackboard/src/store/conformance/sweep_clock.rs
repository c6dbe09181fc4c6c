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
    fixture.session("Oak");
    assert_eq!(marks(fixture), 1, "the clocks stand as they did, so its silence counts");
    assert_eq!(fixture.agent(&ivy).status, AgentStatus::Stale);
}

fn another_boot_gives_no_grace(fixture: &Fixture) {
    fixture.session_of_process("Ivy", 10);
    fixture.processes.reboot();
    set_forward(fixture, 3600);
    assert_eq!(marks(fixture), 1, "its process cannot have survived");
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
