//! Which agents are alive: their process decides, or the threshold if the process cannot be seen.

use std::process::{Child, Command, Stdio};

use blackboard::process::ProcessIdentity;
use serde_json::Value;
use testkit::process::wait_for;
use testkit::skip;

use crate::machine::{can, can_unshare};
use crate::test_board::TestBoard;

testkit::on_each_engine![
    agent_without_a_heartbeat_is_swept_when_its_process_is_gone,
    zombie_process_counts_as_gone,
    agent_without_a_heartbeat_is_kept_when_its_process_is_running,
    agent_with_a_recent_heartbeat_is_kept_when_its_process_is_gone,
    a_process_with_the_same_number_and_another_start_is_another_process,
    a_number_that_the_system_really_gave_to_another_process_does_not_keep_the_agent,
    about_a_process_of_another_pid_namespace_only_the_time_decides,
    register_reports_that_it_found_no_process_and_how_to_name_one,
    a_killed_python_script_loses_its_claim,
    an_agent_of_another_machine_or_an_earlier_boot_is_judged_as_such,
    agent_without_a_process_is_swept_after_the_threshold,
    process_that_this_user_cannot_signal_counts_as_running,
];

/// A process that does nothing; dropping it kills the process.
struct Sleeper(Child);

impl Sleeper {
    fn start() -> Sleeper {
        Sleeper(Command::new("sleep").arg("1000").stdout(Stdio::null()).spawn().unwrap())
    }

    fn pid(&self) -> String {
        self.0.id().to_string()
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        wait_for(&mut self.0);
    }
}

fn register(board: &TestBoard, pid: &str) -> String {
    let registered = board.json(&["agent", "register", "--name", "Ivy", "--pid", pid]);
    registered["session_id"].as_str().unwrap().to_owned()
}

/// Makes the last heartbeat of every agent an hour old, and sweeps.
fn sweep(board: &TestBoard) -> Value {
    board.make_all_heartbeats_old();
    board.json(&["sweep"])
}

#[track_caller]
fn assert_swept(board: &TestBoard, swept: &Value, session: &str) {
    assert_eq!(swept["staleAgents"][0]["sessionId"], session, "{swept}");
    assert_eq!(swept["pidsVerified"], serde_json::json!([]));
    assert_eq!(board.status_of(session), "stale");
    assert_eq!(board.count_of("agent_stale"), 1);
}

#[track_caller]
fn assert_kept(board: &TestBoard, swept: &Value, session: &str) {
    assert_eq!(swept["staleAgents"], serde_json::json!([]));
    assert_eq!(swept["pidsVerified"], serde_json::json!([session]));
    assert_eq!(board.status_of(session), "active");
    assert_eq!(board.count_of("agent_stale"), 0);
    let silent =
        "SELECT count(*) FROM agents WHERE last_seen_at < strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '-1 minute')";
    assert_eq!(board.number(silent), 0, "seen now");
    let spoke =
        "SELECT count(*) FROM agents WHERE last_beat_at > strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '-1 minute')";
    assert_eq!(board.number(spoke), 0, "seen by a stranger is not a heartbeat of its own");
}

fn agent_without_a_heartbeat_is_swept_when_its_process_is_gone() {
    let board = TestBoard::new();
    let sleeper = Sleeper::start();
    let session = register(&board, &sleeper.pid());
    drop(sleeper);
    let swept = sweep(&board);
    assert_swept(&board, &swept, &session);
}

fn zombie_process_counts_as_gone() {
    let board = TestBoard::new();
    let mut sleeper = Sleeper::start();
    let session = register(&board, &sleeper.pid());
    sleeper.0.kill().unwrap();
    let state = || std::fs::read_to_string(format!("/proc/{}/stat", sleeper.0.id())).unwrap();
    crate::crowd::wait_until("a zombie", || state().contains(") Z ").then_some(()));
    let swept = sweep(&board);
    assert_swept(&board, &swept, &session);
}

fn agent_without_a_heartbeat_is_kept_when_its_process_is_running() {
    let board = TestBoard::new();
    let sleeper = Sleeper::start();
    let session = register(&board, &sleeper.pid());
    let swept = sweep(&board);
    assert_kept(&board, &swept, &session);
    assert_eq!(board.json(&["sweep"])["pidsVerified"], serde_json::json!([]), "no candidate for a while");
}

fn agent_with_a_recent_heartbeat_is_kept_when_its_process_is_gone() {
    let board = TestBoard::new();
    let sleeper = Sleeper::start();
    let session = register(&board, &sleeper.pid());
    drop(sleeper);
    assert_eq!(board.json(&["sweep"])["staleAgents"], serde_json::json!([]));
    assert_eq!(board.status_of(&session), "active");
}

fn a_process_with_the_same_number_and_another_start_is_another_process() {
    let board = TestBoard::new();
    let sleeper = Sleeper::start();
    let session = register(&board, &sleeper.pid());
    board.change_agents(|agent, _| agent.process.as_mut().unwrap().started = 1);
    let swept = sweep(&board);
    assert_swept(&board, &swept, &session);
}

fn a_number_that_the_system_really_gave_to_another_process_does_not_keep_the_agent() {
    if !can_unshare("a reused PID") {
        return;
    }
    // In a namespace of its own, so that the requested number is free, and no other process is disturbed.
    let script = "sleep 1000 & first=$!
        \"$@\" agent register --name Ivy --pid $first || exit 1
        kill -9 $first; wait $first 2>/dev/null
        echo $((first - 1)) > /proc/sys/kernel/ns_last_pid || exit 77
        sleep 1000 & [ $! = $first ] || exit 77
        \"$@\" sweep --threshold 0 --json";
    let board = TestBoard::new();
    let wrapper = ["unshare", "--pid", "--fork", "--mount-proc", "sh", "-c", script, "sh"];
    let ended = board.wrapped(&wrapper, &[]);
    if ended.status.code() == Some(77) {
        return skip("a reused PID", "/proc/sys/kernel/ns_last_pid to be writable");
    }
    assert!(ended.status.success(), "{ended:?}");
    assert_eq!(board.count_of("agent_stale"), 1, "{ended:?}");
}

fn about_a_process_of_another_pid_namespace_only_the_time_decides() {
    if !can_unshare("another PID namespace") {
        return;
    }
    let board = TestBoard::new();
    // PID 1 exists inside the namespace and outside, where it is another process.
    let register = ["agent", "register", "--name", "Ivy", "--pid", "1", "--json"];
    let ended = board.wrapped(&["unshare", "--pid", "--fork", "--mount-proc"], &register);
    assert!(ended.status.success(), "{ended:?}");
    let registered: Value = serde_json::from_str(&ended.stdout).unwrap();
    let session = registered["session_id"].as_str().unwrap();

    assert_eq!(board.json(&["sweep"])["staleAgents"], serde_json::json!([]), "not yet");
    let swept = sweep(&board);
    assert_swept(&board, &swept, session);
}

fn register_reports_that_it_found_no_process_and_how_to_name_one() {
    // In a PID namespace without its own /proc, no process is found, regardless of what runs this test.
    if !can("another PID namespace", "unshare", &["--pid", "--fork", "true"]) {
        return;
    }
    let board = TestBoard::new();
    let hidden = ["env", "-u", "BLACKBOARD_PID", "unshare", "--pid", "--fork"];
    let register = ["agent", "register", "--name", "Ivy"];
    let human = board.wrapped(&hidden, &register);
    assert!(human.status.success() && human.stdout.contains("none (alive only by heartbeat"), "{human:?}");
    assert!(
        human.stderr.contains("no process found to watch") && human.stderr.contains("--pid $$"),
        "{human:?}"
    );
    let json = board.wrapped(&hidden, &[&register[..], &["--json"]].concat());
    let answer: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!((&answer["pid"], &answer["process_watched"]), (&Value::Null, &Value::Bool(false)), "{answer}");
    assert!(answer["hint"].as_str().unwrap().contains("--pid PID"), "{answer}");
    let known = board.json(&["agent", "register", "--name", "Ivy"]);
    assert_eq!((&known["process_watched"], known.get("hint")), (&Value::Bool(true), None), "{known}");
}

fn a_killed_python_script_loses_its_claim() {
    // In a PID namespace of its own, so that no agent that runs this test is an ancestor.
    if !can_unshare("a script in Python") || !can("a script in Python", "python3", &["--version"]) {
        return;
    }
    let board = TestBoard::new();
    board.items(1);
    let worker = board.path().join("worker.py");
    let text = "import os, signal, subprocess, sys\n\
                run = lambda *words: subprocess.run([*sys.argv[1:], *words], check=True, stdout=2)\n\
                run('agent', 'register', '--name', 'Ivy')\n\
                run('work', 'claim', '--next')\n\
                os.kill(os.getpid(), signal.SIGKILL)\n";
    std::fs::write(&worker, text).unwrap();
    // The shell runs on after the script, as a terminal does. The sweep comes from its namespace.
    let script = "worker=$1; shift; python3 \"$worker\" \"$@\"; \"$@\" sweep --threshold 0 --json";
    let path = worker.to_str().unwrap();
    let wrapper = [
        "env",
        "-u",
        "BLACKBOARD_PID",
        "unshare",
        "--pid",
        "--fork",
        "--mount-proc",
        "sh",
        "-c",
        script,
        "sh",
        path,
    ];
    let ended = board.wrapped(&wrapper, &[]);
    assert!(ended.status.success(), "{ended:?}");
    assert_eq!(board.number("SELECT count(*) FROM work_items WHERE status = 'available'"), 1, "{ended:?}");
    assert_eq!(board.count_of("agent_stale"), 1, "{ended:?}");
}

fn an_agent_of_another_machine_or_an_earlier_boot_is_judged_as_such() {
    type Change = fn(&mut ProcessIdentity);
    let board = TestBoard::new();
    let sleeper = Sleeper::start();
    let changes: [(Change, &str); 2] =
        [(|process| process.host.push('0'), "host"), (|process| process.boot.push('0'), "boot")];
    for (change, meaning) in changes {
        let session = register(&board, &sleeper.pid());
        board.change_agents(|agent, _| agent.process.iter_mut().for_each(change));
        let swept = sweep(&board);
        assert_eq!(swept["staleAgents"][0]["sessionId"], session.as_str(), "{meaning}");
    }
}

fn agent_without_a_process_is_swept_after_the_threshold() {
    let board = TestBoard::new();
    let session = register(&board, &std::process::id().to_string());
    board.forget_processes();
    assert_eq!(board.json(&["sweep"])["staleAgents"], serde_json::json!([]), "not yet");
    let swept = sweep(&board);
    assert_swept(&board, &swept, &session);
    let summary = "SELECT count(*) FROM events WHERE summary LIKE 'Agent \"Ivy\" marked stale (no heartbeat since %, no PID)'";
    assert_eq!(board.number(summary), 1);
}

fn process_that_this_user_cannot_signal_counts_as_running() {
    // With `hidepid` the processes of other users are hidden, and `kill` returns EPERM: the process exists.
    let hidden = "mount -t proc -o hidepid=2 proc /proc && exec setpriv --reuid 65534 --regid 65534 --clear-groups \"$@\"";
    let wrapper = ["unshare", "--mount", "sh", "-c", hidden, "sh"];
    let probe = [&wrapper[1..], &["sh", "-c", "[ ! -e /proc/1/stat ]"]].concat();
    if !can("EPERM", wrapper[0], &probe) {
        return;
    }
    let board = TestBoard::new();
    let sleeper = Sleeper::start();
    let session = register(&board, &sleeper.pid());
    board.make_all_heartbeats_old();
    // The sweeper has to own the board, or reach its server.
    board.allow_other_users();
    let owned = can("EPERM", "chown", &["-R", "65534:65534", board.path().to_str().unwrap()]);
    assert!(owned, "root may do that");
    let ended = board.wrapped(&wrapper, &["sweep", "--json"]);
    if ended.status.code() == Some(126) {
        return skip("EPERM", "a program that another user may run");
    }
    assert!(ended.status.success(), "{ended:?}");
    let swept: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_kept(&board, &swept, &session);
}
