//! A board on read-only media can be read.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use testkit::process::RunToEnd as _;

use crate::machine::can;
use crate::test_board::TestBoard;

/// A directory in which this user can write nothing, until it is dropped.
pub struct ReadOnly<'a>(&'a Path);

impl<'a> ReadOnly<'a> {
    pub fn make(directory: &'a Path) -> Option<ReadOnly<'a>> {
        let path = directory.to_str()?;
        if rustix::process::geteuid().is_root() {
            // Modes mean nothing to root.
            let what_for = "read-only media";
            if !can(what_for, "mount", &["--bind", path, path]) {
                return None;
            }
            let made = ReadOnly(directory);
            return can(what_for, "mount", &["-o", "remount,ro,bind", path]).then_some(made);
        }
        fs::set_permissions(directory, Permissions::from_mode(0o500)).unwrap();
        Some(ReadOnly(directory))
    }
}

impl Drop for ReadOnly<'_> {
    fn drop(&mut self) {
        if rustix::process::geteuid().is_root() {
            let _ = Command::new("umount").arg(self.0).run_to_end();
        } else {
            let _ = fs::set_permissions(self.0, Permissions::from_mode(0o700));
        }
    }
}

fn board_with_something() -> (TestBoard, String) {
    let board = TestBoard::new();
    let session = board.session("Ivy");
    board.items(2);
    board.json(&["write", "fact", "1"]);
    (board, session)
}

#[test]
fn a_board_on_read_only_media_is_read_and_not_written() {
    let (board, session) = board_with_something();
    board.sql().query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    // As a copy of the database alone is.
    for ending in ["-wal", "-shm", "-lock", "-wake"] {
        let _ = fs::remove_file(board.beside(ending));
    }
    let Some(read_only) = ReadOnly::make(board.database().parent().unwrap()) else { return };
    for call in [
        &["read", "fact"][..],
        &["list"],
        &["history", "fact"],
        &["status"],
        &["agent", "list"],
        &["agent", "show", &session],
        &["work", "list"],
        &["observe", "--since", "1h"],
        &["observe", "--session", &session],
        &["export"],
    ] {
        let output = board.run(call);
        assert_eq!(output.code, 0, "{call:?}: {output:?}");
        assert!(
            output.stderr.contains("cannot be written: the board is opened read-only"),
            "{call:?}: {output:?}"
        );
        let json = board.run(call.iter().chain(&["--json"]));
        assert_eq!((json.code, json.stderr.as_str()), (0, ""), "{call:?}");
    }
    assert_eq!(board.json(&["list"]), serde_json::json!(["fact"]));
    assert_eq!(board.refusal(5, &["write", "fact", "2"])["code"], "read_only");
    drop(read_only);
    board.json(&["write", "fact", "2"]);
    board.assert_sound();
}

#[test]
fn a_board_on_read_only_media_with_a_wal_is_refused_because_part_of_it_would_be_missing() {
    let (board, _) = board_with_something();
    assert!(fs::metadata(board.beside("-wal")).unwrap().len() > 0);
    fs::remove_file(board.beside("-shm")).unwrap();
    let Some(_read_only) = ReadOnly::make(board.database().parent().unwrap()) else { return };
    assert_eq!(board.refusal(5, &["list"])["code"], "read_only");
}
