//! The check of the dependencies, with a stand-in for `cargo deny`.

#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::process::{Command, Stdio};

use testkit::process::{Ended, end_of};

/// Fails in the way that `FAILS` names.
const STAND_IN: &str = r#"#!/bin/sh
case "$FAILS: $*" in
    "bans: deny check bans licenses sources") exit 2 ;;
    "database: deny fetch db") echo "no network" >&2; exit 1 ;;
    "advisories: deny check advisories") exit 1 ;;
esac
"#;

/// Runs the check.
fn check(fails: &str) -> Ended {
    let directory = testkit::tempdir().unwrap();
    let program = directory.path().join("cargo-deny");
    testkit::write_program(&program, STAND_IN);
    let inherited = std::env::var_os("PATH").unwrap_or_default();
    let path = [directory.path().to_owned()].into_iter().chain(std::env::split_paths(&inherited));
    let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
    command.arg("dependencies").env("PATH", std::env::join_paths(path).unwrap()).env("FAILS", fails);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    end_of(command.spawn().unwrap())
}

#[test]
fn everything_is_checked_where_the_database_can_be_fetched() {
    let ended = check("nothing");
    assert!(ended.status.success(), "{ended:?}");
    let report = ended.stdout.lines().last().unwrap();
    assert!(report.contains("dependencies ok") && report.contains("advisories ok"), "{report}");
}

#[test]
fn a_database_that_is_unavailable_is_reported_and_the_check_continues() {
    let ended = check("database");
    assert!(ended.status.success(), "{ended:?}");
    let report = ended.stdout.lines().last().unwrap();
    assert!(report.contains("dependencies ok"), "{report}");
    let expected = "NOT CHECKED, the advisory database is unavailable: `cargo deny fetch db` ended with";
    assert!(report.contains(expected), "{report}");
}

#[test]
fn an_advisory_fails_the_check_and_so_does_every_other_finding() {
    for (fails, step) in [("advisories", "advisories FAILED"), ("bans", "dependencies FAILED")] {
        let ended = check(fails);
        assert_eq!(ended.status.code(), Some(1), "{ended:?}");
        assert!(ended.stdout.contains(step), "{ended:?}");
    }
}
