//! `.ci/run` with stand-ins for the programs that it calls.

#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::path::Path;
use std::process::{Command, Stdio};

use testkit::process::{Ended, end_of};

/// Installs a program that prints its version; `$4` is the directory after `xtask install --root`.
const CARGO: &str = r#"case "$2" in install) mkdir "$4/bin"; echo "echo version" > "$4/bin/blackboard"; chmod +x "$4/bin/blackboard";; esac
echo "cargo $*""#;

/// Runs `.ci/run` where only `stand_ins`, by name and script, and a few programs of the system are found.
fn run(stand_ins: &[(&str, &str)]) -> Ended {
    let directory = testkit::tempdir().unwrap();
    let shell = find("bash");
    for name in ["dirname", "mktemp", "rm", "mkdir", "chmod"] {
        std::os::unix::fs::symlink(find(name), directory.path().join(name)).unwrap();
    }
    for (name, script) in stand_ins {
        let program = directory.path().join(name);
        testkit::write_program(&program, &format!("#!{}\n{script}\n", shell.display()));
    }
    let mut command = Command::new(&shell);
    command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.ci/run")).env("PATH", directory.path());
    command.env("TMPDIR", directory.path());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    end_of(command.spawn().unwrap())
}

/// Where a program of the system is.
fn find(name: &str) -> std::path::PathBuf {
    let path = std::env::var_os("PATH").unwrap();
    std::env::split_paths(&path).map(|place| place.join(name)).find(|file| file.is_file()).unwrap()
}

/// Runs the command without a limit.
const PASS: &str = r#"shift 2; exec "$@""#;

#[test]
fn ci_runs_both_commands_of_the_readme() {
    let ended = run(&[("cargo", CARGO), ("timeout", PASS)]);
    assert!(ended.status.success(), "{ended:?}");
    let lines: Vec<_> = ended.stdout.lines().collect();
    assert!(lines[0].starts_with("cargo xtask install --root "), "{ended:?}");
    assert_eq!(lines[1..], ["version", "cargo xtask test"], "{ended:?}");
}

#[test]
fn ci_names_the_command_that_exceeded_its_limit_or_was_killed() {
    for code in [124, 137] {
        let ended = run(&[("cargo", CARGO), ("timeout", &format!("exit {code}"))]);
        assert_eq!(ended.status.code(), Some(code), "{ended:?}");
        assert!(ended.stderr.starts_with("cargo xtask install --root "), "{ended:?}");
        assert!(ended.stderr.contains("did not end within 20 min"), "{ended:?}");
    }
}

#[test]
fn ci_fails_if_nothing_can_limit_its_commands() {
    let ended = run(&[("cargo", CARGO)]);
    assert_eq!((ended.status.code(), ended.stdout.as_str()), (Some(1), ""), "{ended:?}");
    assert!(ended.stderr.starts_with("timeout is missing"), "{ended:?}");
}
