//! The worker loop of the README, as it is printed there: it completes its items and keeps its claims while it runs, however
//! it was started.

use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::crowd::{end_of, wait_for, wait_until};
use crate::machine::{can, can_unshare};
use crate::scratch::with_dying_process;
use crate::test_board::TestBoard;

testkit::on_each_engine![
    readme_loop_waits_for_blocked_items_and_for_those_of_a_crashed_worker,
    readme_loop_fails_if_it_cannot_claim,
    readme_loop_keeps_its_claims_without_a_terminal,
    readme_loop_keeps_its_claims_under_nohup_when_its_parent_is_gone,
    readme_loop_keeps_its_claims_as_a_program,
    readme_loop_keeps_its_claims_in_a_terminal,
];

/// The first block of the README's section about scripts.
fn loop_of_readme() -> String {
    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md");
    let readme = std::fs::read_to_string(readme).unwrap();
    let is_loop = |block: &&str| block.contains("agent register") && block.contains("do_the_work");
    let block = readme.split("```sh\n").skip(1).filter_map(|rest| rest.split("```").next()).find(is_loop);
    block.expect("the README has a worker loop").to_owned()
}

/// The loop as a script whose work takes longer than an agent may be without a heartbeat, and is followed by a sweep of
/// another session.
fn script(board: &TestBoard) -> PathBuf {
    let work = "do_the_work() {\n  command sleep 2\n  env -u BLACKBOARD_SESSION_ID blackboard sweep --json >>sweeps\n}\n\
                sleep() {\n  touch waits\n  command sleep 0.1\n}\n";
    let path = board.path().join("worker.sh");
    let text = format!("#!/bin/sh\n{work}{}touch done\n", loop_of_readme());
    testkit::write_program(&path, &text);
    path
}

/// Runs the loop on a board with three items, and checks that it keeps its claims.
///
/// The loop runs in a PID namespace of its own, where that is allowed. Otherwise a terminal or an agent that runs this test
/// would be an ancestor of the loop, and a live process of its session.
fn check(start: &[&str], change: impl FnOnce(&mut Command)) {
    let needed = |program: &str| can("the loop of the README", program, &["--version"]);
    if !needed("jq") || !needed("setsid") {
        return;
    }
    let board = TestBoard::new();
    board.items(3);
    // A namespace ends with its first process, so that one runs on after the loop.
    let runs = board.path().join("runs");
    std::fs::write(&runs, "").unwrap();
    let first = ["sh", "-c", "\"$@\"; while test -e runs; do sleep 0.01; done", "sh"];
    let unshare: &[&str] = &["unshare", "--pid", "--fork", "--mount-proc"];
    let namespace = if can_unshare("another PID namespace") { unshare } else { &[] };
    let mut command = worker(&board, &[namespace, &first[..], start].concat());
    change(&mut command);
    let child = command.spawn().unwrap();
    for (event, count) in
        [("work_completed", 1), ("work_completed", 2), ("work_completed", 3), ("agent_deregistered", 1)]
    {
        wait_until(&format!("{count} times {event}"), || {
            let sweeps = std::fs::read_to_string(board.path().join("sweeps")).unwrap_or_default();
            assert_eq!(board.count_of("agent_stale"), 0, "{sweeps}");
            (board.count_of(event) >= count).then_some(())
        });
    }
    std::fs::remove_file(&runs).unwrap();
    let ended = end_of(child);
    assert!(board.path().join("done").exists(), "{ended:?}");
    assert_eq!(board.count_of("work_completed"), 3);
    board.assert_sound();
}

/// The loop as a command.
fn worker(board: &TestBoard, start: &[&str]) -> Command {
    let script = script(board);
    let furnished = board.shell("");
    let mut command = Command::new(start[0]);
    command.args(&start[1..]).arg(&script).env_clear().current_dir(board.path());
    for (name, value) in furnished.get_envs() {
        command.env(name, value.unwrap_or_default());
    }
    // `register` finds the process.
    command.env_remove("BLACKBOARD_PID").env("BLACKBOARD_STALE_THRESHOLD", "1");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn readme_loop_waits_for_blocked_items_and_for_those_of_a_crashed_worker() {
    let needed = |program: &str| can("the loop of the README", program, &["--version"]);
    if !needed("jq") || !needed("setsid") {
        return;
    }
    let board = TestBoard::new();
    let run = |line: &str| board.run(line.split(' ')).success();
    run("agent register --name Ivy --session-hint ivy");
    run("work claim first --title First --session ivy");
    run("work create second --title Second --blocked-by first");
    let mut loops = worker(&board, &["setsid", "--wait", "sh"]).spawn().unwrap();
    // No item is available: the loop waits, and does not end.
    wait_until("a wait of the loop", || board.path().join("waits").exists().then_some(()));
    // Its process lives until it has claimed: the loop sweeps agents whose process is gone after a second.
    with_dying_process(|pid| {
        run(&format!("agent register --name Oak --session-hint oak --pid {pid}"));
        run("work claim third --title Third --session oak");
    });
    run("work complete first --session ivy");
    assert!(wait_for(&mut loops).success());
    assert!(board.path().join("done").exists());
    let completed = board.number("SELECT count(*) FROM work_items WHERE status = 'completed'");
    assert_eq!((completed, board.count_of("agent_stale")), (3, 1));
}

fn readme_loop_fails_if_it_cannot_claim() {
    let needed = |program: &str| can("the loop of the README", program, &["--version"]);
    if !needed("jq") || !needed("setsid") {
        return;
    }
    let board = TestBoard::new();
    board.items(1);
    let mut command = worker(&board, &["setsid", "--wait", "sh"]);
    // The session is one that is not on the board: `claim` ends with another code than 3.
    let path = board.path().join("worker.sh");
    let text = std::fs::read_to_string(&path).unwrap();
    let text = text.replacen("trap ", "BLACKBOARD_SESSION_ID=another-session\ntrap ", 1);
    std::fs::write(&path, text).unwrap();
    let ended = end_of(command.spawn().unwrap());
    assert_eq!(ended.status.code(), Some(1), "{ended:?}");
    assert!(!board.path().join("done").exists());
}

fn readme_loop_keeps_its_claims_without_a_terminal() {
    check(&["setsid", "--wait", "sh"], |_| {});
}

fn readme_loop_keeps_its_claims_under_nohup_when_its_parent_is_gone() {
    // As from cron or an agent's shell: the parent process ends at once.
    check(&["sh", "-c", "nohup setsid sh \"$1\" >output 2>&1 &", "sh"], |_| {});
}

fn readme_loop_keeps_its_claims_as_a_program() {
    check(&["sh", "-c", "setsid \"$1\" >output 2>&1 &", "sh"], |_| {});
}

fn readme_loop_keeps_its_claims_in_a_terminal() {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&terminal).unwrap();
    unlockpt(&terminal).unwrap();
    let name = ptsname(&terminal, Vec::new()).unwrap().into_string().unwrap();
    let side = || OpenOptions::new().read(true).write(true).open(&name).unwrap();
    check(&["setsid", "--ctty", "--wait", "sh"], |command| {
        command.stdin(side()).stdout(side()).stderr(side());
    });
    drop(File::from(terminal));
}
