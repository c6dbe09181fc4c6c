//! A wait for a process ends, kills the process and names it.
//!
//! Another test runs the ignored tests, each in a separate run with a short limit.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test that cannot continue has failed")]

use std::process::{Child, Command, Stdio};

use testkit::process::{Lines, RunToEnd as _, end_of, runs, wait_for};
use testkit::{limit_test, wait_until};

fn shell(script: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", script]).stdin(Stdio::null());
    command
}

/// A process that prints its PID and half of a line, and does not end. Its child keeps the output open.
fn hanging() -> Child {
    let script = "sleep 1000 & echo pid $$; printf half; wait";
    shell(script).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

#[test]
#[ignore = "it is run by another test"]
fn waits_for_the_output_of_a_process_that_hangs() {
    testkit::limit_test();
    hanging().run_to_end();
}

#[test]
#[ignore = "it is run by another test"]
fn waits_for_a_process_that_hangs() {
    testkit::limit_test();
    wait_for(&mut hanging());
}

#[test]
#[ignore = "it is run by another test"]
fn waits_for_a_line_that_does_not_end() {
    testkit::limit_test();
    let mut child = hanging();
    let mut lines = Lines::of(&mut child);
    assert_eq!(lines.next(), format!("pid {}", child.id()));
    lines.next();
}

#[test]
fn a_wait_that_is_too_long_kills_the_process_and_names_it() {
    limit_test();
    for (test, failure) in [
        ("waits_for_the_output_of_a_process_that_hangs", "did not end within 1 s: sh -c sleep 1000"),
        ("waits_for_a_process_that_hangs", "did not end within 1 s: sh -c sleep 1000"),
        ("waits_for_a_line_that_does_not_end", "printed no line within 1 s, only \"half\": sh -c sleep 1000"),
    ] {
        let mut run = Command::new(std::env::current_exe().unwrap());
        run.args(["--exact", test, "--ignored", "--nocapture"]).stdin(Stdio::null());
        run.env("BLACKBOARD_TEST_PATIENCE", "1").stdout(Stdio::piped()).stderr(Stdio::piped());
        let ended = end_of(run.spawn().unwrap());
        assert_eq!(ended.status.code(), Some(101), "{ended:?}");
        assert!(ended.stderr.contains(failure), "{ended:?}");
        let (_, text) = ended.stderr.split_once("process ").unwrap();
        let pid = text.split(' ').next().unwrap().parse().unwrap();
        wait_until("the end of the process", || (!runs(pid)).then_some(()));
    }
}

#[test]
fn a_process_that_ends_gives_its_status_its_output_and_its_lines() {
    limit_test();
    let output = shell("echo out; echo error >&2; exit 3").run_to_end();
    assert_eq!(
        (output.status.code(), output.stdout, output.stderr),
        (Some(3), b"out\n".to_vec(), b"error\n".to_vec())
    );
    let mut child = shell("echo one; echo two; exit 4").stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = Lines::of(&mut child);
    assert_eq!((lines.next(), lines.next()), ("one".to_owned(), "two".to_owned()));
    assert_eq!(wait_for(&mut child).code(), Some(4));
}
