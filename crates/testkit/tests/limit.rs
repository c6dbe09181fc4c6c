//! A test that hangs is reported, and the processes of a test end with it.
//!
//! Other tests run the ignored ones, each in a separate run, because they would end this run.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test that cannot continue has failed")]

use std::path::Path;
use std::process::{Command, Stdio};

use testkit::process::{Ended, RunToEnd as _, Signal, end_of, runs, signal};
use testkit::{limit_test, wait_until};

/// The file in which a test of another run records its process.
const NOTE: &str = "TESTKIT_NOTE";

/// A run of one of the ignored tests.
fn run_of(test: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--ignored", "--nocapture"]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn run(command: &mut Command) -> Ended {
    end_of(command.spawn().unwrap())
}

fn process_in(note: &Path) -> u32 {
    std::fs::read_to_string(note).unwrap().parse().unwrap()
}

/// Starts a process that does not end, and records its PID.
#[expect(clippy::zombie_processes, reason = "this is what a test does that fails before it waits")]
fn start_and_note() {
    let note = std::env::var_os(NOTE).unwrap();
    let child = Command::new("sleep").arg("1000").spawn().unwrap();
    std::fs::write(note, child.id().to_string()).unwrap();
}

#[test]
#[ignore = "it is run by another test"]
fn hangs_with_a_process() {
    // Before the limit starts, so that it does not depend on the speed of the machine.
    start_and_note();
    limit_test();
    loop {
        std::thread::park();
    }
}

#[test]
fn a_test_that_hangs_is_named_and_ends_the_run_and_its_processes() {
    let directory = testkit::tempdir().unwrap();
    let note = directory.path().join("pid");
    let ended = run(run_of("hangs_with_a_process").env(NOTE, &note).env("BLACKBOARD_TEST_TIMEOUT", "1"));
    assert_eq!(ended.status.code(), Some(101), "{ended:?}");
    assert!(ended.stderr.contains("test hangs_with_a_process did not end within 1 s"), "{ended:?}");
    assert!(ended.stderr.contains("sleep 1000"), "{ended:?}");
    let pid = process_in(&note);
    wait_until("the end of the process of the test that hangs", || (!runs(pid)).then_some(()));
}

#[test]
#[ignore = "it is run by another test"]
fn measures_something_that_hangs() {
    testkit::limit_test();
    let second = std::time::Duration::from_secs(1);
    assert_eq!(testkit::limited("what ends in time", second, || 7), 7);
    start_and_note();
    testkit::limited("what hangs", second, || {
        loop {
            std::thread::park();
        }
    });
}

#[test]
fn a_limited_wait_that_hangs_is_named_and_ends_the_run_and_its_processes() {
    let directory = testkit::tempdir().unwrap();
    let note = directory.path().join("pid");
    let ended = run(run_of("measures_something_that_hangs").env(NOTE, &note));
    assert_eq!(ended.status.code(), Some(101), "{ended:?}");
    assert!(ended.stderr.contains("what hangs did not end within 1 s"), "{ended:?}");
    assert!(ended.stderr.contains("sleep 1000"), "{ended:?}");
    let pid = process_in(&note);
    wait_until("the end of the process", || (!runs(pid)).then_some(()));
}

#[test]
#[ignore = "it is run by another test"]
fn fails_with_a_process() {
    limit_test();
    start_and_note();
    panic!("as a test does whose process is left");
}

#[test]
fn a_process_that_a_failed_test_leaves_is_killed() {
    let directory = testkit::tempdir().unwrap();
    let note = directory.path().join("pid");
    let ended = run(run_of("fails_with_a_process").env(NOTE, &note));
    assert_eq!(ended.status.code(), Some(101), "{ended:?}");
    assert!(!ended.stderr.contains("did not end within"), "{ended:?}");
    let pid = process_in(&note);
    wait_until("the end of the process of the failed test", || (!runs(pid)).then_some(()));
}

#[test]
#[ignore = "it is run by another test"]
fn starts_a_script_that_traps_a_signal() {
    limit_test();
    for name in ["INT", "HUP", "TERM"] {
        let script = format!("trap 'exit 7' {name}; kill -{name} $$; exit 0");
        let ended = Command::new("sh").args(["-c", &script]).run_to_end().status;
        assert_eq!(ended.code(), Some(7), "the script does not see {name}");
    }
}

#[test]
fn processes_of_a_test_do_not_ignore_the_signals_that_the_run_ignores() {
    limit_test();
    let inner = run_of("starts_a_script_that_traps_a_signal");
    // As a shell does for a background job, and `nohup` for its command.
    let mut command = Command::new("sh");
    command.args(["-c", "trap '' INT HUP TERM; exec \"$0\" \"$@\""]);
    command.arg(inner.get_program()).args(inner.get_args());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let ended = run(&mut command);
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
}

#[test]
#[ignore = "it is run by another test"]
fn waits_to_be_interrupted() {
    limit_test();
    std::fs::write(std::env::var_os(NOTE).unwrap(), std::process::id().to_string()).unwrap();
    loop {
        std::thread::park();
    }
}

#[test]
fn a_run_can_still_be_interrupted() {
    let directory = testkit::tempdir().unwrap();
    let note = directory.path().join("pid");
    let child = run_of("waits_to_be_interrupted").env(NOTE, &note).spawn().unwrap();
    let pid = child.id().to_string();
    wait_until("the run", || (std::fs::read_to_string(&note).ok()? == pid).then_some(()));
    signal(child.id(), Signal::INT);
    assert_eq!(end_of(child).status.code(), Some(128 + 2));
}
