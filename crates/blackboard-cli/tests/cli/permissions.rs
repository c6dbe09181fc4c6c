//! What is on disk belongs to its user alone, and what is not is refused.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::Path;

use blackboard::Code;

use crate::scratch::{Output, Scratch};

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
}

/// Every file and directory of a board, with its mode.
fn modes(directory: &Path) -> Vec<(String, u32)> {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap());
    let mut modes: Vec<_> =
        entries.map(|entry| (entry.file_name().into_string().unwrap(), mode(&entry.path()))).collect();
    modes.sort();
    modes
}

#[test]
fn a_board_is_private_under_every_umask() {
    for umask in ["000", "022", "027", "077"] {
        let scratch = Scratch::new();
        let line = format!("umask {umask}; exec blackboard agent register --name Ivy");
        Output::of(scratch.shell(&line).output().unwrap()).success();
        let home = scratch.path().join(".pai/blackboard");
        for directory in [scratch.path().join(".pai"), home.clone()] {
            assert_eq!(mode(&directory) & 0o077, 0, "umask {umask}: {}", directory.display());
        }
        let modes = modes(&home);
        let names: Vec<&str> = modes.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["local.db", "local.db-lock", "local.db-shm", "local.db-wal"], "umask {umask}");
        for (name, mode) in modes {
            assert_eq!(mode & 0o177, 0, "umask {umask}: {name} has {mode:o}");
        }
    }
}

#[test]
fn a_new_board_of_a_repository_is_private_under_every_umask() {
    for umask in ["000", "077"] {
        let scratch = Scratch::new();
        Output::of(scratch.shell(&format!("umask {umask}; exec blackboard init")).output().unwrap())
            .success();
        let directory = scratch.path().join(".blackboard");
        assert_eq!(mode(&directory), 0o700);
        assert_eq!(mode(&directory.join("local.db")), 0o600);
        assert_eq!(mode(&directory.join(".gitignore")), 0o600);
        assert_eq!(fs::read_to_string(directory.join(".gitignore")).unwrap(), "*\n");
    }
}

#[test]
fn a_copy_of_the_board_is_as_private_as_the_board() {
    let scratch = Scratch::new();
    let line = "umask 000; exec blackboard export --output board.json";
    Output::of(scratch.shell(line).output().unwrap()).success();
    assert_eq!(mode(&scratch.path().join("board.json")), 0o600);
}

#[test]
fn the_mode_of_a_directory_that_was_there_is_never_touched() {
    for before in [0o755, 0o777, 0o1777, 0o700] {
        let scratch = Scratch::new();
        let here = scratch.path().join("here");
        fs::create_dir_all(here.join(".blackboard")).unwrap();
        for directory in [&here, &here.join(".blackboard")] {
            fs::set_permissions(directory, Permissions::from_mode(before)).unwrap();
        }
        for call in
            ["blackboard --db ./x.db agent register --name Ivy", "blackboard init", "blackboard status"]
        {
            let mut shell = scratch.shell(call);
            Output::of(shell.current_dir(&here).output().unwrap()).success();
            assert_eq!(mode(&here), before, "{call}");
            assert_eq!(mode(&here.join(".blackboard")), before, "{call}");
        }
        assert_eq!(mode(&here.join("x.db")), 0o600);
    }
}

/// A board, and what is wrong with it; the hint has to contain the words.
#[track_caller]
fn refused(break_it: impl Fn(&Path), hint: &str) {
    let scratch = Scratch::new();
    scratch.run(["--db", "x.db", "agent", "register", "--name", "Ivy"]).success();
    break_it(&scratch.path().join("x.db"));
    let before = scratch.contents();
    for call in [&["agent", "list"][..], &["agent", "register", "--name", "Oak"], &["init"], &["sweep"]] {
        let arguments = ["--db", "x.db", "--json"].into_iter().chain(call.iter().copied());
        let refusal = scratch.run(arguments).refused(Code::UnsafePermissions);
        assert!(refusal["hint"].as_str().unwrap().contains(hint), "{refusal}");
    }
    assert_eq!(scratch.contents(), before);
}

#[test]
fn a_database_that_others_can_open_is_refused_with_the_cure() {
    for mode in [0o640, 0o604, 0o620, 0o602, 0o610, 0o666, 0o777] {
        refused(
            |database| fs::set_permissions(database, Permissions::from_mode(mode)).unwrap(),
            "chmod 600 ",
        );
    }
}

#[test]
fn the_cure_cures() {
    let scratch = Scratch::new();
    scratch.run(["--db", "my board.db", "agent", "register", "--name", "Ivy"]).success();
    fs::set_permissions(scratch.path().join("my board.db"), Permissions::from_mode(0o644)).unwrap();
    let refusal = scratch.run(["--db", "my board.db", "--json", "status"]).refused(Code::UnsafePermissions);
    let cure = refusal["hint"].as_str().unwrap();
    assert!(scratch.shell(cure).status().unwrap().success(), "{cure}");
    scratch.run(["--db", "my board.db", "status"]).success();
}

#[test]
fn a_link_to_a_database_is_refused() {
    refused(
        |database| {
            let real = database.with_extension("real");
            fs::rename(database, &real).unwrap();
            symlink(&real, database).unwrap();
        },
        "--db",
    );
    refused(|database| fs::hard_link(database, database.with_extension("second")).unwrap(), "copy");
}

#[test]
fn what_is_no_plain_file_is_refused() {
    refused(
        |database| {
            fs::remove_file(database).unwrap();
            let made = std::process::Command::new("mkfifo").arg(database).status().unwrap();
            assert!(made.success());
        },
        "--db",
    );
}

#[test]
fn a_database_of_another_user_is_refused() {
    if !rustix::process::geteuid().is_root() {
        println!("skipped: only root can give files away");
        return;
    }
    refused(|database| chown(database, Some(65534), None).unwrap(), "--db");
}
