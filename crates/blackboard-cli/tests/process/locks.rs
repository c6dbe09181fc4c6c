//! Locks: one winner, waiting calls wake, and a killed holder blocks no other session.

use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};

use blackboard::clock::Timestamp;
use rustix::process::Signal;
use serde_json::json;
use testkit::process::wait_for;

use crate::crowd::{at_once, end_of, first_words, kill, signal, wait_until};
use crate::machine::can;
use crate::test_board::TestBoard;

testkit::on_each_engine![
    one_of_20_processes_acquires_a_lock_and_19_get_its_holder,
    no_two_of_20_processes_run_at_once_under_one_lock,
    sweep_releases_the_lock_of_a_killed_holder_and_its_fence_is_refused,
    waiting_call_acquires_a_lock_when_it_is_released,
    command_of_a_killed_lock_run_is_killed_before_another_session_gets_the_lock,
    lock_run_keeps_its_command_until_that_ends_by_itself,
    waiting_call_sweeps_a_killed_holder_of_its_lock,
    lock_run_passes_signals_to_its_command_and_ends_with_it,
    a_key_pressed_at_the_terminal_is_not_passed_on,
    command_that_a_signal_ends_has_the_exit_code_of_a_shell,
    signal_during_a_wait_leaves_nothing_behind,
    signal_that_was_ignored_at_the_start_stays_ignored,
    lock_run_sends_heartbeats_of_the_holder,
];

fn one_of_20_processes_acquires_a_lock_and_19_get_its_holder() {
    let board = TestBoard::new();
    let sessions = board.sessions("agent", 20);
    let answers = at_once(sessions.len(), |index| {
        board.run(["lock", "acquire", "deploy", "--json", "--session", &sessions[index]])
    });
    let winners: Vec<_> = (0..sessions.len()).filter(|&index| answers[index].code == 0).collect();
    let [winner] = winners[..] else { panic!("{} winners", winners.len()) };
    let taken = answers[winner].json();
    for (_, answer) in answers.iter().enumerate().filter(|(index, _)| *index != winner) {
        assert_eq!((answer.code, answer.stderr.as_str()), (4, ""), "{answer:?}");
        let refusal = answer.json();
        assert_eq!((&refusal["code"], &refusal["held_by"]), (&"held".into(), &taken["session_id"]));
        assert_eq!(refusal["held_by_name"], format!("agent-{winner}"));
        assert_eq!((&refusal["since"], &refusal["fence"]), (&taken["since"], &taken["fence"]));
    }
    assert_eq!(board.count_of("entry_written"), 1);
    board.assert_sound();
}

fn no_two_of_20_processes_run_at_once_under_one_lock() {
    let board = TestBoard::new();
    let inside = board.path().join("inside");
    // `mkdir` succeeds for one at a time: it fails if another process is inside.
    let script = format!("mkdir {0} && rmdir {0}", inside.display());
    let answers = at_once(20, |index| {
        let name = format!("agent {index}");
        board.run(["lock", "run", "deploy", "--wait", "10m", "--name", &name, "--", "sh", "-c", &script])
    });
    for answer in answers {
        assert_eq!((answer.code, answer.stdout.as_str()), (0, ""), "{answer:?}");
    }
    assert_eq!(board.json(&["lock", "list"])["count"], 0);
    assert_eq!(board.json(&["agent", "list"])["count"], 0, "every session ended");
    board.assert_sound();
}

/// A command under a lock.
struct Holder {
    child: Child,
    fence: i64,
    session: String,
}

/// Starts one, and returns when it holds the lock and its command has printed `READY`.
fn hold(board: &TestBoard, script: &str) -> Holder {
    let script = script.replace("READY", "echo $BLACKBOARD_LOCK_FENCE $BLACKBOARD_SESSION_ID");
    let mut child = board.start(["lock", "run", "deploy", "--name", "Ivy", "--", "sh", "-c", &script]);
    let (fence, session) = first_words(&mut child);
    Holder { fence: fence.parse().unwrap(), session, child }
}

fn sweep_releases_the_lock_of_a_killed_holder_and_its_fence_is_refused() {
    let board = TestBoard::new();
    let oak = board.session("Oak");
    // Where the command outlives the holder, it ends by itself when the directory of the board is removed.
    let script = format!("READY; while test -d {}; do sleep 0.1; done", board.path().display());
    let Holder { child, fence, session } = hold(&board, &script);
    let fenced = format!("lock:deploy={fence}");
    board.json(&["write", "result", "1", "--fence", &fenced]);
    let transaction = board.path().join("transaction.json");
    std::fs::write(&transaction, r#"{"then": [{"write": {"key": "result", "value": 2}}]}"#).unwrap();

    kill(child.id());
    let mut child = child;
    wait_for(&mut child);
    board.make_all_heartbeats_recent();
    let held = board.refusal(4, &["lock", "acquire", "deploy", "--session", &oak]);
    assert_eq!(held["held_by"], session.as_str(), "it was alive a moment ago");
    board.make_all_heartbeats_old();
    let swept = board.json(&["sweep"]);
    assert_eq!(swept["staleAgents"][0]["sessionId"], session.as_str());
    assert_eq!(swept["staleAgents"][0]["releasedLeases"], json!([{"scope": "locks", "key": "deploy"}]));
    assert_eq!(board.json(&["lock", "list"])["count"], 0);

    let every_path_is_closed = |when: &str| {
        for call in [
            &["write", "result", "2"][..],
            &["delete", "result"],
            &["append", "list", "2"],
            &["increment", "count"],
            &["clear", "*"],
            &["purge", "result"],
            &["txn", "--file", transaction.to_str().unwrap()],
        ] {
            let refusal = board.refusal(4, &[call, &["--fence", &fenced]].concat());
            assert_eq!(refusal["code"], "stale_fence", "{call:?} {when}");
        }
        let fence = fence.to_string();
        board.refusal(4, &["lock", "release", "deploy", "--session", &session, "--fence", &fence]);
    };
    every_path_is_closed("while no session holds it");
    let taken = board.json(&["lock", "acquire", "deploy", "--session", &oak]);
    assert!(taken["fence"].as_i64().unwrap() > fence, "a fence only grows");
    every_path_is_closed("while another session holds it");
    board.json(&["agent", "heartbeat", "--session", &session]);
    every_path_is_closed("also when its session is back");
    assert_eq!(board.json(&["lock", "list"])["items"][0]["session_id"], oak.as_str());
    let kept = board.json(&["read", "result"]);
    assert_eq!((&kept["version"], &kept["value"]), (&1.into(), &1.into()), "nothing was changed");
    board.assert_sound();
}

fn waiting_call_acquires_a_lock_when_it_is_released() {
    let board = TestBoard::new();
    let (ivy, oak) = (board.session("Ivy"), board.session("Oak"));
    let fence = board.json(&["lock", "acquire", "deploy", "--session", &ivy])["fence"].clone();
    let waiting = board.start(["lock", "acquire", "deploy", "--wait", "10m", "--json", "--session", &oak]);
    // It has been refused once, and sleeps on the board.
    board.wait_until_followed();
    board.json(&["lock", "release", "deploy", "--session", &ivy]);
    let ended = end_of(waiting);
    assert!(ended.status.success(), "{ended:?}");
    let taken: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!((&taken["acquired"], &taken["session_id"]), (&true.into(), &oak.as_str().into()));
    assert!(taken["fence"].as_i64() > fence.as_i64());
    board.assert_sound();
}

fn command_of_a_killed_lock_run_is_killed_before_another_session_gets_the_lock() {
    use testkit::processes::runs;
    let board = TestBoard::new();
    let oak = board.session("Oak");
    // The command ignores the signals that it can ignore.
    let script = "trap '' TERM INT HUP; echo $BLACKBOARD_SESSION_ID $$; while :; do sleep 0.1; done";
    for _ in 0..5 {
        let mut child = board.start(["lock", "run", "deploy", "--", "sh", "-c", script]);
        let (_, command) = first_words(&mut child);
        let command: u32 = command.parse().unwrap();
        assert!(runs(command));
        kill(child.id());
        wait_for(&mut child);
        wait_until("the end of the command", || (!runs(command)).then_some(()));
        board.make_all_heartbeats_old();
        board.json(&["lock", "acquire", "deploy", "--session", &oak]);
        board.json(&["lock", "release", "deploy", "--session", &oak]);
    }
    board.assert_sound();
}

fn lock_run_keeps_its_command_until_that_ends_by_itself() {
    let board = TestBoard::new();
    board.configure(r#"{"heartbeat": {"intervalSeconds": 1, "staleThresholdSeconds": 300}}"#);
    let go_on = board.path().join("go-on");
    let script = format!("READY; until test -e {}; do sleep 0.01; done; exit 3", go_on.display());
    let holder = hold(&board, &script);
    // The thread that sends heartbeats has run meanwhile, and the command is still the child of the program.
    wait_until("a heartbeat", || (board.heartbeats() > 0).then_some(()));
    std::fs::write(&go_on, "").unwrap();
    assert_eq!(end_of(holder.child).status.code(), Some(3));
}

fn waiting_call_sweeps_a_killed_holder_of_its_lock() {
    let board = TestBoard::new();
    let oak = board.session("Oak");
    let Holder { mut child, fence, .. } = hold(&board, "READY; exec sleep 0.1");
    kill(child.id());
    wait_for(&mut child);
    // However long this test takes, the check of the holder's process does not release the lock: only the sweep does.
    board.make_all_heartbeats_recent();
    let waiting = board.start(["lock", "acquire", "deploy", "--wait", "10m", "--session", &oak]);
    // After the sweep at its start.
    board.wait_until_followed();
    board.change_agents(|agent, _| agent.last_seen_at = Timestamp::EPOCH);
    let ended = end_of(waiting);
    assert!(ended.status.success(), "{ended:?}");
    assert!(ended.stdout.trim().parse::<i64>().unwrap() > fence);
}

fn lock_run_passes_signals_to_its_command_and_ends_with_it() {
    for (sent, name) in [(Signal::TERM, "TERM"), (Signal::INT, "INT"), (Signal::HUP, "HUP")] {
        let board = TestBoard::new();
        let holder = hold(&board, &format!("trap 'exit 7' {name}; READY; while :; do sleep 0.01; done"));
        signal(holder.child.id(), sent);
        let ended = end_of(holder.child);
        assert_eq!(ended.status.code(), Some(7), "{name}: {ended:?}");
        assert_eq!(board.json(&["lock", "list"])["count"], 0, "{name}");
        assert_eq!(board.json(&["agent", "list"])["count"], 0, "{name}");
    }
}

fn a_key_pressed_at_the_terminal_is_not_passed_on() {
    if !can("a terminal", "script", &["-qec", "setsid true", "/dev/null"]) {
        return;
    }
    let board = TestBoard::new();
    let file = board.path().join("script.sh");
    // Without a terminal, it gets SIGINT only if its parent forwards it. Of two pending signals, the shell handles the one
    // with the lower number first, which is SIGINT.
    let script = "code=10; trap 'code=11' INT; trap 'exit $code' TERM; echo ready $PPID; \
                  while :; do sleep 0.01; done";
    std::fs::write(&file, script).unwrap();
    let inner = board.command(["lock", "run", "deploy", "--", "setsid", "sh", file.to_str().unwrap()]);
    let words = [inner.get_program()].into_iter().chain(inner.get_args());
    let words: Vec<_> = words.map(|word| word.to_str().unwrap()).collect();
    let mut command = Command::new("script");
    command.args(["-qec", &format!("exec {}", words.join(" ")), "/dev/null"]);
    command.env_clear().current_dir(board.path());
    for (name, value) in inner.get_envs() {
        command.env(name, value.unwrap_or_default());
    }
    let mut terminal = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (mut keys, mut screen) = (terminal.stdin.take().unwrap(), terminal.stdout.take().unwrap());
    let mut shown = String::new();
    let mut wait_for = |end: &str| {
        while !shown.ends_with(end) {
            let mut byte = [0];
            screen.read_exact(&mut byte).unwrap();
            shown.push(byte[0].into());
        }
        shown.clone()
    };
    wait_for("ready ");
    let holder = wait_for("\r\n");
    let (_, holder) = holder.trim_end().rsplit_once(' ').unwrap();
    // Ctrl-C, which the terminal shows when it has sent the signal.
    keys.write_all(&[3]).unwrap();
    wait_for("^C");
    signal(holder.parse().unwrap(), Signal::TERM);
    assert_eq!(end_of(terminal).status.code(), Some(10));
}

fn command_that_a_signal_ends_has_the_exit_code_of_a_shell() {
    let board = TestBoard::new();
    let holder = hold(&board, "READY; exec sleep 1000");
    signal(holder.child.id(), Signal::TERM);
    let ended = end_of(holder.child);
    assert_eq!(ended.status.code(), Some(128 + 15), "{ended:?}");
    assert_eq!(board.json(&["lock", "list"])["count"], 0);
    board.assert_sound();
}

fn signal_during_a_wait_leaves_nothing_behind() {
    let board = TestBoard::new();
    let ivy = board.session("Ivy");
    board.json(&["lock", "acquire", "deploy", "--session", &ivy]);
    let ran = board.path().join("ran");
    let waiting =
        board.start(["lock", "run", "deploy", "--wait", "10m", "--", "touch", ran.to_str().unwrap()]);
    board.wait_until_followed();
    signal(waiting.id(), Signal::TERM);
    let ended = end_of(waiting);
    assert_eq!(ended.status.code(), Some(128 + 15), "{ended:?}");
    assert!(!ran.exists());
    assert_eq!(board.json(&["agent", "list", "--all"])["count"], 1, "it never had a session");
    assert_eq!(board.json(&["lock", "list"])["count"], 1, "the other one has it");
}

fn signal_that_was_ignored_at_the_start_stays_ignored() {
    let board = TestBoard::new();
    let inner = board.command(["lock", "run", "deploy", "--", "sh", "-c", "kill -HUP $$; echo alive"]);
    // As `nohup` does.
    let mut command = Command::new("sh");
    command.args(["-c", "trap '' HUP; exec \"$0\" \"$@\""]).arg(inner.get_program()).args(inner.get_args());
    command.env_clear().current_dir(board.path()).stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    for (name, value) in inner.get_envs() {
        command.env(name, value.unwrap_or_default());
    }
    let ended = end_of(command.spawn().unwrap());
    assert_eq!((ended.status.code(), ended.stdout.as_str()), (Some(0), "alive\n"), "{ended:?}");
}

fn lock_run_sends_heartbeats_of_the_holder() {
    let board = TestBoard::new();
    board.configure(r#"{"heartbeat": {"intervalSeconds": 1, "staleThresholdSeconds": 300}}"#);
    let go_on = board.path().join("go-on");
    let holder = hold(&board, &format!("READY; until test -e {}; do sleep 0.01; done", go_on.display()));
    wait_until("a heartbeat", || (board.heartbeats() > 0).then_some(()));
    std::fs::write(&go_on, "").unwrap();
    let ended = end_of(holder.child);
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    assert!(!ended.stderr.contains("lost"), "{ended:?}");
}
