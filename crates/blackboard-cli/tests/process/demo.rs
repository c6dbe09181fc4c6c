//! `demo` ends by itself, prints what really happened, and leaves nothing behind.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use rusqlite::{Connection, OpenFlags};
use rustix::process::Signal;
use serde_json::Value;
use testkit::process::wait_for;

use crate::crowd::{Orphan, end_of, kill, signal, wait_until};
use crate::scale::{progress, size};

/// A demonstration that is quick, in a directory that no other process uses.
fn start(directory: &Path, arguments: &[&str]) -> Child {
    start_at_pace(directory, "50", arguments)
}

fn start_at_pace(directory: &Path, pace: &str, arguments: &[&str]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_blackboard"))
        .args(["demo", "--pace", pace])
        .args(arguments)
        .current_dir(directory)
        .env("TMPDIR", directory)
        .env("BLACKBOARD_HOME", directory.join("home"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// A demonstration with all of its agents. Each step takes ten minutes, so that it does not end by itself.
fn start_and_stay(directory: &Path) -> Child {
    let child = start_at_pace(directory, "600000", &["--keep", "--limit", "600000"]);
    // An agent that has registered knows its parent process.
    wait_until("its agents", || (registered_in(directory)? == 4).then_some(()));
    assert_eq!(processes_in(directory).len(), 5, "the demo and its agents");
    child
}

/// How many agents are on the board of a demonstration.
fn registered_in(directory: &Path) -> Option<i64> {
    let place = std::fs::read_dir(directory).unwrap().next()?.unwrap().path();
    let board = Connection::open_with_flags(place.join("local.db"), OpenFlags::SQLITE_OPEN_READ_ONLY).ok()?;
    board.query_row("SELECT count(*) FROM agents", [], |row| row.get(0)).ok()
}

fn is_empty(directory: &Path) -> bool {
    std::fs::read_dir(directory).unwrap().next().is_none()
}

/// The processes whose working directory was in there.
fn processes_in(directory: &Path) -> Vec<u32> {
    let directory = directory.canonicalize().unwrap();
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = processes.filter_map(|process| process.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| {
        std::fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|place| place.starts_with(&directory))
    })
    .collect()
}

#[test]
fn demo_completes_every_item_once_though_one_agent_is_killed() {
    let directory = testkit::tempdir().unwrap();
    let ended = end_of(start(directory.path(), &["--json"]));
    assert_eq!((ended.status.code(), ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
    let told: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!((&told["completed"], &told["interrupted"]), (&told["items"], &Value::Bool(false)), "{told}");
    assert!(told["rescued"].is_string(), "{told}");
    assert!(is_empty(directory.path()), "something is left");
    assert_eq!(processes_in(directory.path()), Vec::<u32>::new());
}

#[test]
fn demo_at_its_fastest_pace_prints_its_complete_story_every_time() {
    let rounds = size(2, 50);
    for round in 1..=rounds {
        let directory = testkit::tempdir().unwrap();
        // `end_of` kills a process that does not end.
        let ended = end_of(start_at_pace(directory.path(), "0", &["--json"]));
        assert_eq!((ended.status.code(), ended.stderr.as_str()), (Some(0), ""), "round {round}: {ended:?}");
        let told: Value = serde_json::from_str(&ended.stdout).unwrap();
        assert_eq!(told["completed"], told["items"], "round {round}: {told}");
        assert_eq!(told["rescued"], "write-guide", "round {round}: {told}");
        assert!(is_empty(directory.path()), "round {round}: something is left");
        progress("demo, rounds", round, rounds);
    }
    println!("demo: {rounds} runs, each to its end");
}

#[test]
fn a_demo_in_which_nothing_happens_reports_what_it_waited_for_and_leaves_nothing() {
    for json in [false, true] {
        let directory = testkit::tempdir().unwrap();
        // One step takes ten minutes, so that no progress is ever reported.
        let arguments = ["--limit", "1500", "--json"];
        let arguments = if json { &arguments[..] } else { &arguments[..2] };
        let ended = end_of(start_at_pace(directory.path(), "600000", arguments));
        assert_eq!(ended.status.code(), Some(6), "{ended:?}");
        let told = if json { &ended.stdout } else { &ended.stderr };
        assert!(told.contains("nothing happened for 1 second while the demo waited for"), "{ended:?}");
        assert!(is_empty(directory.path()), "something is left");
        assert_eq!(processes_in(directory.path()), Vec::<u32>::new());
    }
}

#[test]
fn a_demo_whose_agent_fails_fails_at_once() {
    let directory = testkit::tempdir().unwrap();
    let child = start_at_pace(directory.path(), "600000", &["--limit", "600000"]);
    // A signal that the story did not send ends an agent: its item would be missing forever.
    let agent = wait_until("an agent", || {
        let own = |pid: &u32| *pid != child.id();
        processes_in(directory.path()).into_iter().find(own)
    });
    kill(agent);
    let ended = end_of(child);
    assert_eq!(ended.status.code(), Some(1), "{ended:?}");
    assert!(ended.stderr.contains("of the demo failed"), "{ended:?}");
    assert!(is_empty(directory.path()), "something is left");
}

#[test]
fn a_demo_whose_agents_end_before_its_story_fails() {
    for json in [false, true] {
        let directory = testkit::tempdir().unwrap();
        // One step takes ten minutes, so that no item is ever completed.
        let arguments = ["--limit", "600000", "--json"];
        let arguments = if json { &arguments[..] } else { &arguments[..2] };
        let mut child = start_at_pace(directory.path(), "600000", arguments);
        let demo = child.id();
        // Each agent is asked to end by a signal that the demo does not get. An agent that starts later is asked, too.
        wait_until("the end of the demo", || {
            let agents = processes_in(directory.path()).into_iter().filter(|pid| *pid != demo);
            agents.for_each(|agent| signal(agent, Signal::TERM));
            child.try_wait().unwrap()
        });
        let ended = end_of(child);
        assert_eq!(ended.status.code(), Some(1), "{ended:?}");
        let told = if json { &ended.stdout } else { &ended.stderr };
        assert!(told.contains("the agents of the demo ended after 0 of 7 work items"), "{ended:?}");
        assert!(is_empty(directory.path()), "something is left");
    }
}

#[test]
fn demo_prints_which_agent_was_killed_and_which_took_over() {
    let directory = testkit::tempdir().unwrap();
    let ended = end_of(start(directory.path(), &[]));
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    let lines: Vec<&str> = ended.stdout.lines().collect();
    let place = |text: &str| {
        let found = lines.iter().position(|line| line.contains(text));
        found.unwrap_or_else(|| panic!("{text:?} is missing in\n{}", ended.stdout))
    };
    let story = ["$ kill -9", "$ blackboard sweep", "marked stale", "is refused:", "7 of 7 work items"];
    let places = story.map(place);
    assert!(places.is_sorted(), "{places:?} in\n{}", ended.stdout);
}

#[test]
fn signal_ends_the_demo_with_its_exit_code_and_nothing_is_left() {
    for (sent, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let directory = testkit::tempdir().unwrap();
        let child = start_and_stay(directory.path());
        signal(child.id(), sent);
        let ended = end_of(child);
        assert_eq!(ended.status.code(), Some(code), "{ended:?}");
        assert!(is_empty(directory.path()), "something is left");
        assert_eq!(processes_in(directory.path()), Vec::<u32>::new());
    }
}

#[test]
fn agents_of_the_demo_end_soon_after_it() {
    let directory = testkit::tempdir().unwrap();
    let mut child = start_and_stay(directory.path());
    let agents = processes_in(directory.path()).into_iter().filter(|pid| *pid != child.id());
    let _orphans: Vec<_> = agents.map(Orphan).collect();
    kill(child.id());
    wait_for(&mut child);
    wait_until("their end", || processes_in(directory.path()).is_empty().then_some(()));
}

#[test]
fn demo_does_not_change_the_board_of_its_user() {
    let directory = testkit::tempdir().unwrap();
    let ended = end_of(start(directory.path(), &["--db", "own.db"]));
    assert_eq!(ended.status.code(), Some(2), "{ended:?}");
    assert!(ended.stderr.contains("its own board"), "{ended:?}");
    assert!(is_empty(directory.path()), "something was made");
}
