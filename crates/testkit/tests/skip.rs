//! A test that cannot run on a machine is reported, and fails in CI if CI should be able to run it.
//!
//! Other tests run the ignored ones, each in a separate run.

#![expect(clippy::unwrap_used, reason = "a test that cannot continue has failed")]

use std::process::{Command, Output};

use testkit::process::RunToEnd as _;
use testkit::{SKIPS_VARIABLE, skip};

#[test]
#[ignore = "it is run by another test"]
fn needs_what_ci_may_lack() {
    skip("a full disk", "`mount`");
}

#[test]
#[ignore = "it is run by another test"]
fn needs_what_ci_has() {
    skip("a commit", "git");
}

/// Runs one of the ignored tests, and returns its report.
fn run(test: &str, in_ci: bool) -> (Output, String) {
    let directory = testkit::tempdir().unwrap();
    let file = directory.path().join("skips");
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--ignored"]).env(SKIPS_VARIABLE, &file).env_remove("CI");
    if in_ci {
        command.env("CI", "true");
    }
    (command.run_to_end(), std::fs::read_to_string(file).unwrap_or_default())
}

#[test]
fn a_skipped_test_passes_and_is_reported_with_its_reason() {
    for in_ci in [false, true] {
        let (ended, reported) = run("needs_what_ci_may_lack", in_ci);
        assert!(ended.status.success(), "{ended:?}");
        let reason = "a full disk needs `mount` (only root may mount a file system of a fixed size)";
        assert_eq!(reported, format!("skip needs_what_ci_may_lack\t{reason}\n"));
    }
    let (ended, reported) = run("needs_what_ci_has", false);
    assert!(ended.status.success(), "{ended:?}");
    assert_eq!(reported, "skip needs_what_ci_has\ta commit needs git\n");
}

#[test]
fn in_ci_a_test_fails_that_cannot_run_without_reason() {
    let (ended, reported) = run("needs_what_ci_has", true);
    assert_eq!((ended.status.code(), reported.as_str()), (Some(101), ""), "{ended:?}");
    assert!(
        String::from_utf8_lossy(&ended.stdout).contains("a commit is not tested: it needs git"),
        "{ended:?}"
    );
}
