//! The sweep when the clock can't be trusted: silence means nothing if nobody had a chance to be heard.

use super::*;

on_every_engine![
    a_clock_that_was_set_marks_nobody_and_gives_one_threshold_of_grace,
    a_small_correction_is_no_reason_to_wait,
    a_dry_run_notes_no_clock,
    registering_notes_that_the_clock_was_set,
    a_clock_that_was_set_back_gives_grace_too,
    another_boot_is_no_reason_to_wait,
];

fn set_forward(fixture: &Fixture, seconds: u64) {
    // The monotonic clock stands still, as while the machine sleeps.
    fixture.clock.set(fixture.now().plus(Duration::from_secs(seconds)));
}

fn marks(fixture: &Fixture) -> usize {
    fixture.sweep().stale_agents.len()
}

fn a_clock_that_was_set_marks_nobody_and_gives_one_threshold_of_grace(fixture: &Fixture) {
    let (ivy, oak) = (fixture.session("Ivy"), fixture.session("Oak"));
    set_forward(fixture, 8 * 3600);
    let (count, told) = fixture.told_by(|| marks(fixture));
    assert_eq!((count, told.len()), (0, 0));
    fixture.pass(299);
    assert_eq!(marks(fixture), 0);
    fixture.beat(&oak);
    fixture.pass(1);
    assert_eq!(marks(fixture), 1);
    assert_eq!(fixture.agent(&ivy).status, AgentStatus::Stale);
    assert_eq!(fixture.agent(&oak).status, AgentStatus::Active);
}

fn a_small_correction_is_no_reason_to_wait(fixture: &Fixture) {
    fixture.session("Ivy");
    fixture.pass(301);
    set_forward(fixture, 30);
    assert_eq!(marks(fixture), 1);
}

fn a_dry_run_notes_no_clock(fixture: &Fixture) {
    fixture.session("Ivy");
    set_forward(fixture, 3600);
    let dry = Sweep { dry_run: true, ..Sweep::default() };
    assert!(fixture.board.sweep(&dry).unwrap().stale_agents.is_empty());
    // The grace begins with the first sweep that is meant.
    fixture.pass(300);
    assert_eq!(marks(fixture), 0);
    fixture.pass(300);
    assert_eq!(marks(fixture), 1);
}

fn registering_notes_that_the_clock_was_set(fixture: &Fixture) {
    fixture.session("Ivy");
    set_forward(fixture, 3600);
    let oak = fixture.session("Oak");
    fixture.pass(299);
    assert_eq!(marks(fixture), 0);
    fixture.beat(&oak);
    fixture.pass(1);
    assert_eq!(marks(fixture), 1);
}

fn a_clock_that_was_set_back_gives_grace_too(fixture: &Fixture) {
    let ivy = fixture.session("Ivy");
    fixture.pass(301);
    fixture.clock.set(fixture.now().minus(Duration::from_hours(1)));
    assert_eq!(marks(fixture), 0, "it was last seen in the future");
    // The clock comes right again: that is another jump.
    set_forward(fixture, 3600);
    fixture.session("Oak");
    assert_eq!(marks(fixture), 1, "the clocks stand as they did, so its silence counts");
    assert_eq!(fixture.agent(&ivy).status, AgentStatus::Stale);
}

fn another_boot_is_no_reason_to_wait(fixture: &Fixture) {
    fixture.session_of_process("Ivy", 10);
    fixture.processes.reboot();
    set_forward(fixture, 3600);
    assert_eq!(marks(fixture), 1, "its process can't have survived");
}
