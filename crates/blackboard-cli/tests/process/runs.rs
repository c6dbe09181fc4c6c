//! `run`: the session lasts as long as its process, however that ends.

use std::path::Path;
use std::process::Child;

use rustix::process::Signal;
use testkit::process::wait_for;

use crate::crowd::{Orphan, end_of, first_words, kill, signal, wait_until};
use crate::scratch::{MISSING_PROCESS, with_dying_process};
use crate::test_board::TestBoard;

testkit::on_each_engine![
    sweep_marks_a_killed_run_stale_and_releases_what_it_held,
    run_passes_signals_to_its_command_and_ends_the_session_normally,
    run_sends_heartbeats_and_sweeps_while_the_command_runs,
    run_reports_that_its_session_was_swept_meanwhile,
    swept_session_is_active_after_its_next_heartbeat_and_reports_what_it_lost,
];

/// A command with its own session.
struct Runner {
    child: Child,
    session: String,
    /// The process of the command.
    command: u32,
}

/// Starts one that has claimed `item-0`, and returns when its command has printed `READY`.
fn start(board: &TestBoard, script: &str) -> Runner {
    let script = script.replace("READY", "echo $BLACKBOARD_SESSION_ID $$");
    let mut child = board.start(["run", "--name", "Ivy", "--work-item", "item-0", "--", "sh", "-c", &script]);
    let (session, command) = first_words(&mut child);
    Runner { session, command: command.parse().unwrap(), child }
}

fn sweep_marks_a_killed_run_stale_and_releases_what_it_held() {
    let board = TestBoard::new();
    board.items(1);
    let oak = board.session("Oak");
    let Runner { mut child, session, command } = start(&board, "READY; exec sleep 1000");
    let _orphan = Orphan(command);
    assert_eq!(
        board.refusal(4, &["work", "claim", "item-0", "--session", &oak])["held_by"],
        session.as_str()
    );
    let swept = board.json(&["sweep", "--threshold", "0"]);
    assert_eq!(swept["staleAgents"].as_array().map(Vec::len), Some(0), "it lives: {swept}");
    kill(child.id());
    wait_for(&mut child);
    let swept = board.json(&["sweep", "--threshold", "0"]);
    assert_eq!(swept["staleAgents"][0]["sessionId"], session.as_str());
    assert_eq!(board.json(&["work", "claim", "item-0", "--session", &oak])["claimed"], true);
    assert_eq!(board.status_of(&session), "stale");
    board.assert_sound();
}

fn run_passes_signals_to_its_command_and_ends_the_session_normally() {
    for (sent, name) in [(Signal::TERM, "TERM"), (Signal::INT, "INT"), (Signal::HUP, "HUP")] {
        let board = TestBoard::new();
        board.items(1);
        let runner = start(&board, &format!("trap 'exit 7' {name}; READY; while :; do sleep 0.01; done"));
        signal(runner.child.id(), sent);
        let ended = end_of(runner.child);
        assert_eq!((ended.status.code(), ended.stderr.as_str()), (Some(7), ""), "{name}: {ended:?}");
        assert_eq!(board.status_of(&runner.session), "completed", "{name}");
        assert_eq!(board.json(&["work", "status", "item-0"])["status"], "available", "{name}");
        board.assert_sound();
    }
}

fn run_sends_heartbeats_and_sweeps_while_the_command_runs() {
    let board = TestBoard::new();
    board.items(1);
    board.configure(r#"{"heartbeat": {"intervalSeconds": 1, "staleThresholdSeconds": 300}}"#);
    let runner = start(&board, "READY; exec sleep 1000");
    wait_until("a heartbeat", || (board.heartbeats() > 0).then_some(()));
    with_dying_process(|pid| {
        board.json(&["agent", "register", "--name", "Ash", "--session-hint", "ash", "--pid", pid]);
    });
    // No command runs from here on, so that only the run itself can find it.
    board.make_all_heartbeats_old();
    let stale = "SELECT count(*) FROM agents WHERE agent_name = 'Ash' AND status = 'stale'";
    wait_until("the dead one is found", || (board.number(stale) == 1).then_some(()));
    signal(runner.child.id(), Signal::TERM);
    let ended = end_of(runner.child);
    assert_eq!(ended.status.code(), Some(128 + 15), "{ended:?}");
    assert!(!ended.stderr.contains("marked stale"), "{ended:?}");
    board.assert_sound();
}

/// Makes the sweep believe that the process of a session has ended.
fn sweep_away(board: &TestBoard, session: &str) {
    board.change_agents(|agent, _| {
        if agent.session_id == session {
            agent.pid = Some(MISSING_PROCESS);
        }
    });
    board.make_all_heartbeats_old();
    let swept = board.json(&["sweep"]);
    assert_eq!(swept["staleAgents"][0]["sessionId"], session);
}

fn run_reports_that_its_session_was_swept_meanwhile() {
    let board = TestBoard::new();
    board.items(1);
    let go_on = board.path().join("go-on");
    let script = format!("READY; until test -e {}; do sleep 0.01; done; exit 3", go_on.display());
    let runner = start(&board, &script);
    sweep_away(&board, &runner.session);
    std::fs::write(&go_on, "").unwrap();
    let ended = end_of(runner.child);
    assert_eq!(ended.status.code(), Some(3), "{ended:?}");
    let warning = format!(
        "({}) was marked stale while the command ran; what it held was released",
        &runner.session[..8]
    );
    assert!(ended.stderr.contains(&warning), "{ended:?}");
    assert_eq!(board.status_of(&runner.session), "completed");
    board.assert_sound();
}

fn swept_session_is_active_after_its_next_heartbeat_and_reports_what_it_lost() {
    let board = TestBoard::new();
    board.items(1);
    board.configure(r#"{"heartbeat": {"intervalSeconds": 1, "staleThresholdSeconds": 300}}"#);
    let runner = start(&board, "READY; exec sleep 1000");
    sweep_away(&board, &runner.session);
    wait_until("it is back", || (board.status_of(&runner.session) == "active").then_some(()));
    signal(runner.child.id(), Signal::TERM);
    let ended = end_of(runner.child);
    assert!(ended.stderr.contains("and is active again; released: work item item-0"), "{ended:?}");
    board.assert_sound();
}

/// What depends on the lock of writers.
mod of_a_file {
    use super::*;

    #[test]
    fn run_passes_a_signal_while_a_heartbeat_waits_for_the_board() {
        let board = TestBoard::new();
        board.items(1);
        board.configure(r#"{"heartbeat": {"intervalSeconds": 1, "staleThresholdSeconds": 300}}"#);
        let (told, end) = (board.path().join("told"), board.path().join("end"));
        let script = format!(
            "trap 'touch {}' TERM; READY; until test -e {}; do sleep 0.01; done; exit 7",
            told.display(),
            end.display()
        );
        let runner = start(&board, &script);
        // A heartbeat gives up after 5 s, which may be too short on a slow machine. If signals waited for heartbeats, no try
        // would succeed.
        wait_until("a command that is told while a heartbeat waits", || {
            let is_told = tell_while_a_heartbeat_waits(&board, runner.child.id(), &told);
            let _ = std::fs::remove_file(&told);
            is_told.then_some(())
        });
        std::fs::write(&end, "").unwrap();
        assert_eq!(end_of(runner.child).status.code(), Some(7));
        assert_eq!(board.status_of(&runner.session), "completed");
    }

    /// Sends a signal to a run while another process holds the write lock, and waits until its command is told. Returns whether
    /// a heartbeat certainly waited for the lock all the time.
    fn tell_while_a_heartbeat_waits(board: &TestBoard, runner: u32, told: &Path) -> bool {
        let lock = board.sql();
        lock.execute_batch("BEGIN IMMEDIATE").unwrap();
        // A process that waits for the board has this file open.
        let waits = |pid: u32| {
            let open = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
            let mut open = open.filter_map(|file| std::fs::read_link(file.path()).ok());
            open.any(|file| file == board.beside("-lock"))
        };
        // If it begins to wait before the heartbeat does, the heartbeat waits as long as this does.
        let mut before = board.start(["work", "create", "--id", "x", "--title", "X"]);
        wait_until("another one that waits", || (waits(before.id()) || has_ended(&mut before)).then_some(()));
        let is_first = !waits(runner);
        wait_until("a heartbeat that waits", || (waits(runner) || has_ended(&mut before)).then_some(()));
        signal(runner, Signal::TERM);
        wait_until("the command is told", || (told.exists() || has_ended(&mut before)).then_some(()));
        let waited = !has_ended(&mut before);
        lock.execute_batch("ROLLBACK").unwrap();
        end_of(before);
        wait_until("the command is told", || told.exists().then_some(()));
        is_first && waited
    }

    fn has_ended(child: &mut Child) -> bool {
        child.try_wait().unwrap().is_some()
    }
}
