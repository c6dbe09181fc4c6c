//! The load beside the tests: it ends with the process that started it, and a load that is not complete fails.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use testkit::process::{Lines, end_of, kill, runs, wait_for};
use testkit::wait_until;

/// A small load: the process that keeps it, and the processes that are the load.
fn start() -> (Child, Vec<u32>) {
    start_from(Path::new(env!("CARGO_BIN_EXE_xtask")))
}

fn start_from(program: &Path) -> (Child, Vec<u32>) {
    testkit::limit_test();
    let mut command = Command::new(program);
    command.args(["load", "--busy", "1"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let line = Lines::of(&mut child).next();
    let load: Vec<u32> = line.split_whitespace().map(|pid| pid.parse().unwrap()).collect();
    assert_eq!(load.len(), 2, "one that computes, and one that writes");
    assert!(load.iter().all(|pid| runs(*pid)), "{load:?}");
    (child, load)
}

fn wait_for_the_end_of(load: &[u32]) {
    wait_until("the end of the load", || load.iter().all(|pid| !runs(*pid)).then_some(()));
}

#[test]
fn a_load_ends_with_a_parent_that_is_killed() {
    let (mut child, load) = start();
    kill(child.id());
    wait_for(&mut child);
    wait_for_the_end_of(&load);
}

#[test]
fn load_ends_when_its_input_closes() {
    let (mut child, load) = start();
    drop(child.stdin.take());
    assert!(end_of(child).status.success());
    wait_for_the_end_of(&load);
}

#[test]
fn a_load_that_lost_a_process_fails() {
    for (place, name) in [(0, "busy"), (1, "disk")] {
        let (mut child, load) = start();
        kill(load[place]);
        wait_for_the_end_of(&load[place..=place]);
        drop(child.stdin.take());
        let ended = end_of(child);
        assert_eq!(ended.status.code(), Some(1), "{ended:?}");
        assert!(ended.stderr.contains(&format!("the {name} process of the load ended early")), "{ended:?}");
    }
}

/// The file that the disk process of a load writes to.
fn file_of(load: &[u32]) -> PathBuf {
    wait_until("a file without a name", || {
        let files = std::fs::read_dir(format!("/proc/{}/fd", load[1])).ok()?;
        let mut names = files.flatten().filter_map(|file| std::fs::read_link(file.path()).ok());
        names.find(|name| name.to_string_lossy().ends_with("(deleted)"))
    })
}

#[test]
fn load_starts_from_a_program_that_was_replaced() {
    let directory = testkit::tempdir().unwrap();
    let program = directory.path().join("xtask");
    testkit::copy_program(Path::new(env!("CARGO_BIN_EXE_xtask")), &program);
    let open = std::fs::File::open(&program).unwrap();
    std::fs::remove_file(&program).unwrap();
    let (mut child, load) =
        start_from(Path::new(&format!("/proc/{}/fd/{}", std::process::id(), open.as_raw_fd())));
    drop(child.stdin.take());
    assert!(end_of(child).status.success());
    wait_for_the_end_of(&load);
}

#[test]
fn load_writes_next_to_its_program() {
    let directory = testkit::tempdir().unwrap();
    let program = directory.path().canonicalize().unwrap().join("xtask");
    testkit::copy_program(Path::new(env!("CARGO_BIN_EXE_xtask")), &program);
    let (mut child, load) = start_from(&program);
    let file = file_of(&load);
    assert_eq!(file.parent(), program.parent(), "{}", file.display());
    drop(child.stdin.take());
    assert!(end_of(child).status.success());
}

#[test]
fn the_file_of_a_load_has_no_name_and_ends_with_it() {
    let (mut child, load) = start();
    file_of(&load);
    drop(child.stdin.take());
    end_of(child);
    wait_for_the_end_of(&load);
}
