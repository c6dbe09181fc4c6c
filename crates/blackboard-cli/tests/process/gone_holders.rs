//! The next call gets what a session holds whose process was killed, 10 s after its last heartbeat.

use std::process::{Child, Command, Stdio};

use blackboard::clock::Timestamp;
use testkit::process::wait_for;

use crate::crowd::{end_of, kill, wait_until};
use crate::test_board::TestBoard;

testkit::on_each_engine![
    the_next_call_gets_what_a_killed_agent_holds_and_reports_the_sweep,
    a_refusal_names_the_killed_process_and_the_fix_also_after_a_wait,
    json_output_has_no_note_about_the_sweep,
    a_wait_gets_what_a_killed_agent_held_when_the_ten_seconds_have_passed,
    calls_that_wait_sweep_agents_that_die_meanwhile,
];

/// A process that stands for an agent; dropping it kills the process.
struct AgentProcess(Child);

impl AgentProcess {
    fn start() -> AgentProcess {
        AgentProcess(Command::new("sleep").arg("1000").stdout(Stdio::null()).spawn().unwrap())
    }

    /// `kill -9`, as the system would do it when memory is short.
    fn kill(&mut self) {
        kill(self.0.id());
        wait_for(&mut self.0);
    }
}

impl Drop for AgentProcess {
    fn drop(&mut self) {
        let _ = self.0.kill();
        wait_for(&mut self.0);
    }
}

/// An agent that holds one of everything and whose process was killed a moment ago.
fn killed_holder(board: &TestBoard) -> String {
    let mut process = AgentProcess::start();
    let pid = process.0.id().to_string();
    let registered = board.json(&["agent", "register", "--name", "Ivy", "--pid", &pid]);
    let session = registered["session_id"].as_str().unwrap().to_owned();
    board.items(1);
    for call in [
        &["work", "claim", "item-0"][..],
        &["lock", "acquire", "deploy"],
        &["file", "reserve", "src/**"],
        &["write", "leased", "1", "--lease"],
    ] {
        board.json(&[call, &["--session", &session]].concat());
    }
    process.kill();
    board.make_all_heartbeats_recent();
    session
}

const CALLS: &[&[&str]] = &[
    &["work", "claim", "item-0"],
    &["lock", "acquire", "deploy"],
    &["lock", "acquire", "deploy", "--wait", "0s"],
    &["lock", "run", "deploy", "--", "true"],
    &["file", "reserve", "src/lib.rs"],
    &["file", "check", "src/lib.rs"],
    &["write", "leased", "2"],
    &["append", "leased", "2"],
];

fn the_next_call_gets_what_a_killed_agent_holds_and_reports_the_sweep() {
    for call in CALLS {
        let board = TestBoard::new();
        let ivy = killed_holder(&board);
        let oak = board.session("Oak");
        let call = |more: &[&str]| {
            let (flags, command) = match call.iter().position(|word| *word == "--") {
                Some(at) => call.split_at(at),
                None => (*call, &[][..]),
            };
            board.run([flags, &["--session", &oak], more, command].concat())
        };
        let refused = call(&["--json"]);
        assert!([4, 6].contains(&refused.code), "{refused:?}");
        assert_eq!(refused.json()["held_by"], ivy.as_str(), "{refused:?}");
        assert_eq!(board.status_of(&ivy), "active");

        board.make_all_heartbeats_eleven_seconds_old();
        let done = call(&[]);
        assert_eq!(done.code, 0, "{done:?}");
        let note = format!("note: marked Ivy ({}) stale, released 1 work item, ", &ivy[..8]);
        assert!(done.stderr.contains(&note), "{done:?}");
        assert_eq!(board.status_of(&ivy), "stale");
        board.assert_sound();
    }
}

fn a_refusal_names_the_killed_process_and_the_fix_also_after_a_wait() {
    let board = TestBoard::new();
    let ivy = killed_holder(&board);
    let oak = board.session("Oak");
    for (wait, code) in [(&[][..], 4), (&["--wait", "1s"][..], 6)] {
        let refused =
            board.refusal(code, &[&["lock", "acquire", "deploy", "--session", &oak], wait].concat());
        let hint = refused["hint"].as_str().unwrap();
        assert!(hint.starts_with("the holder's process (PID "), "{refused}");
        assert!(hint.ends_with(&format!("blackboard agent deregister --session {}", &ivy[..8])), "{refused}");
    }
}

fn json_output_has_no_note_about_the_sweep() {
    let board = TestBoard::new();
    killed_holder(&board);
    let oak = board.session("Oak");
    board.make_all_heartbeats_eleven_seconds_old();
    let taken = board.run(["lock", "acquire", "deploy", "--session", &oak, "--json"]).success();
    assert_eq!((taken.stderr.as_str(), &taken.json()["acquired"]), ("", &true.into()));
}

fn a_wait_gets_what_a_killed_agent_held_when_the_ten_seconds_have_passed() {
    for wait in [
        &["lock", "acquire", "deploy", "--wait", "10m"][..],
        &["work", "wait", "item-0", "--status", "available", "--timeout", "10m"],
    ] {
        let board = TestBoard::new();
        let ivy = killed_holder(&board);
        let oak = board.session("Oak");
        let mut call = board.command(wait);
        call.env("BLACKBOARD_SESSION_ID", &oak).stdout(Stdio::piped()).stderr(Stdio::piped());
        let waiting = call.spawn().unwrap();
        // It waits on the board, and did not get it before.
        board.wait_until_followed();
        board.make_all_heartbeats_eleven_seconds_old();
        let ended = end_of(waiting);
        assert!(ended.status.success(), "{wait:?}: {ended:?}");
        assert!(ended.stderr.contains("note: marked Ivy ("), "{wait:?}: {ended:?}");
        assert_eq!(board.status_of(&ivy), "stale");
        board.assert_sound();
    }
}

fn calls_that_wait_sweep_agents_that_die_meanwhile() {
    for wait in [
        &["wait", "end", "--timeout", "10m"][..],
        &["observe", "--follow", "--timeout", "10m", "--filter", "agent_stale", "--limit", "1"],
        &["lock", "acquire", "other", "--wait", "10m"],
        &["work", "wait", "item", "--timeout", "10m"],
    ] {
        let board = TestBoard::new();
        let (oak, elm) = (board.session("Oak"), board.session("Elm"));
        board.json(&["work", "claim", "item", "--title", "Item", "--session", &oak]);
        board.json(&["lock", "acquire", "other", "--session", &oak]);
        let mut process = AgentProcess::start();
        let pid = process.0.id().to_string();
        let registered = board.json(&["agent", "register", "--name", "Ivy", "--pid", &pid]);
        let ivy = registered["session_id"].as_str().unwrap().to_owned();
        let mut call = board.command(wait);
        call.env("BLACKBOARD_SESSION_ID", &elm).stdout(Stdio::piped()).stderr(Stdio::piped());
        let waiting = call.spawn().unwrap();
        board.wait_until_followed();
        process.kill();
        board.change_agents(|agent, _| {
            if agent.session_id == ivy {
                agent.last_seen_at = Timestamp::EPOCH;
            }
        });
        wait_until("the agent is stale", || (board.status_of(&ivy) == "stale").then_some(()));
        // Ends each of the waits.
        board.json(&["write", "end", "1"]);
        board.json(&["lock", "release", "other", "--session", &oak]);
        board.json(&["work", "complete", "item", "--session", &oak]);
        let ended = end_of(waiting);
        assert!(ended.status.success(), "{wait:?}: {ended:?}");
        assert!(ended.stderr.contains("note: marked Ivy ("), "{wait:?}: {ended:?}");
    }
}
