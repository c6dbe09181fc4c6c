//! The worker loop of the README, as it is printed there: it completes its items and keeps its claims while it runs, however
//! it was started.

use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::crowd::{end_of, wait_until};
use crate::machine::can;
use crate::test_board::TestBoard;

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
    let work =
        "do_the_work() {\n  sleep 2\n  env -u BLACKBOARD_SESSION_ID blackboard sweep --json >>sweeps\n}\n";
    let path = board.path().join("worker.sh");
    let text = format!("#!/usr/bin/env bash\n{work}{}touch done\n", loop_of_readme());
    std::fs::write(&path, text).unwrap();
    path
}

/// A board with three items, and the loop on its way.
fn check(start: &[&str], change: impl FnOnce(&mut Command)) {
    let needed = |program: &str| can("the loop of the README", program, &["--version"]);
    if !needed("bash") || !needed("jq") || !needed("setsid") {
        return;
    }
    let board = TestBoard::new();
    board.items(3);
    let script = script(&board);
    let furnished = board.shell("");
    let mut command = Command::new(start[0]);
    command.args(&start[1..]).arg(&script).env_clear().current_dir(board.path());
    for (name, value) in furnished.get_envs() {
        command.env(name, value.unwrap_or_default());
    }
    // `register` finds the process.
    command.env_remove("BLACKBOARD_PID").env("BLACKBOARD_STALE_THRESHOLD", "1");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    change(&mut command);
    let ended = end_of(command.spawn().unwrap());
    wait_until("the end of the loop", || board.path().join("done").exists().then_some(()));
    let completed = board.number("SELECT count(*) FROM work_items WHERE status = 'completed'");
    let sweeps = std::fs::read_to_string(board.path().join("sweeps")).unwrap();
    assert_eq!((completed, board.count_of("agent_stale")), (3, 0), "{ended:?}\n{sweeps}");
    wait_until("the end of the session", || (board.count_of("agent_deregistered") == 1).then_some(()));
    board.assert_sound();
}

#[test]
fn readme_loop_keeps_its_claims_without_a_terminal() {
    check(&["setsid", "--wait", "bash"], |_| {});
}

#[test]
fn readme_loop_keeps_its_claims_under_nohup_when_its_parent_is_gone() {
    // As from cron or an agent's shell: the parent process ends at once.
    check(&["sh", "-c", "nohup setsid bash \"$1\" >output 2>&1 &", "sh"], |_| {});
}

#[test]
fn readme_loop_keeps_its_claims_as_a_program() {
    check(&["sh", "-c", "chmod +x \"$1\"; setsid \"$1\" >output 2>&1 &", "sh"], |_| {});
}

#[test]
fn readme_loop_keeps_its_claims_in_a_terminal() {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&terminal).unwrap();
    unlockpt(&terminal).unwrap();
    let name = ptsname(&terminal, Vec::new()).unwrap().into_string().unwrap();
    let side = || OpenOptions::new().read(true).write(true).open(&name).unwrap();
    check(&["setsid", "--ctty", "--wait", "bash"], |command| {
        command.stdin(side()).stdout(side()).stderr(side());
    });
    drop(File::from(terminal));
}
