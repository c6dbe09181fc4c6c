//! A file at the board's path that is no board of this version is refused and left unchanged, byte for byte.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use blackboard::Code;
use rusqlite::Connection;
use testkit::reference;

use crate::refusals::{CALLS, write_transactions};
use crate::scratch::{Scratch, with_options};

/// Puts a file at the default path, runs every command, and checks that nothing has changed.
#[track_caller]
fn refused_untouched(put: impl Fn(&Path), code: Code, hint: &str) {
    let scratch = Scratch::new();
    let directory = scratch.path().join(".pai/blackboard");
    fs::create_dir_all(&directory).unwrap();
    put(&scratch.database());
    for entry in fs::read_dir(&directory).unwrap() {
        fs::set_permissions(entry.unwrap().path(), Permissions::from_mode(0o600)).unwrap();
    }
    write_transactions(&scratch);
    let before = scratch.contents();
    for (command, arguments) in CALLS {
        // Without `--db` it creates its own board.
        let database = scratch.database();
        let named = ["--db", database.to_str().unwrap()];
        let named = if *command == "init" { &named[..] } else { &[] };
        let words = command.split(' ').chain(arguments.iter().copied()).map(str::to_owned).collect();
        let options = named.iter().chain(&["--json"]).map(|option| (*option).to_owned());
        let refusal = scratch.run(with_options(words, options)).refused(code);
        assert!(refusal["hint"].as_str().unwrap().contains(hint), "{command}: {refusal}");
        assert!(scratch.contents() == before, "{command} touched what is not its own");
    }
}

#[test]
fn a_board_of_ivy_blackboard_is_left_alone() {
    for version in reference::VERSIONS.step_by(4) {
        let closed = |path: &Path| {
            Connection::open(path).unwrap().execute_batch(&reference::database(version)).unwrap();
        };
        refused_untouched(closed, Code::UpgradeNeeded, "a copy of it stays beside it: blackboard ");
    }
}

#[test]
fn a_write_ahead_log_of_ivy_blackboard_is_left_alone() {
    // As a crash leaves it: what was written last is in the log, which opening the database would fold back.
    let crashed = |path: &Path| {
        let made = path.with_extension("made");
        let connection = Connection::open(&made).unwrap();
        connection.execute_batch(&reference::database(9)).unwrap();
        for ending in ["", "-wal", "-shm"] {
            let (from, to) = (format!("{}{ending}", made.display()), format!("{}{ending}", path.display()));
            fs::copy(from, to).unwrap();
        }
        assert!(fs::metadata(format!("{}-wal", path.display())).unwrap().len() > 0);
        drop(connection);
        fs::remove_file(made).unwrap();
    };
    refused_untouched(crashed, Code::UpgradeNeeded, "a copy of it stays beside it: blackboard ");
}

#[test]
fn a_database_of_another_program_is_left_alone() {
    for statements in
        ["CREATE TABLE notes (text)", "CREATE TABLE schema_version (version)", "PRAGMA user_version = 1"]
    {
        let other = |path: &Path| {
            let connection = Connection::open(path).unwrap();
            connection.execute_batch(&format!("PRAGMA journal_mode = WAL; {statements}; ANALYZE")).unwrap();
        };
        refused_untouched(other, Code::ForeignDatabase, "BLACKBOARD_DB");
    }
}

#[test]
fn a_file_that_is_no_database_is_left_alone() {
    for content in [&b""[..], b"x", b"SQLite format 3\0", &b"# Notes\n".repeat(1000)] {
        refused_untouched(|path| fs::write(path, content).unwrap(), Code::ForeignDatabase, "BLACKBOARD_DB");
    }
}

/// A complete board of this version at `path`.
fn board(path: &Path) -> Connection {
    let scratch = Scratch::new();
    scratch.run(["--db", path.to_str().unwrap(), "agent", "register", "--name", "Ivy"]).success();
    Connection::open(path).unwrap()
}

#[test]
fn a_board_of_a_newer_version_is_left_alone() {
    let newer = |path: &Path| board(path).execute_batch("PRAGMA user_version = 99").unwrap();
    refused_untouched(newer, Code::NewerSchema, "update blackboard");
}

#[test]
fn board_with_a_foreign_schema_object_is_refused() {
    for statement in [
        "CREATE TRIGGER mine AFTER INSERT ON events BEGIN DELETE FROM agents; END",
        "CREATE VIEW mine AS SELECT * FROM agents",
        "CREATE TABLE mine (x)",
        "CREATE INDEX mine ON agents(upper(agent_name))",
    ] {
        let scratch = Scratch::new();
        write_transactions(&scratch);
        let path = scratch.path().join("cloned.db");
        board(&path).execute_batch(statement).unwrap();
        let before = fs::read(&path).unwrap();
        for (command, arguments) in CALLS {
            let words = command.split(' ').chain(arguments.iter().copied()).map(str::to_owned).collect();
            let call = with_options(words, ["--db", "cloned.db", "--json"].map(str::to_owned));
            let refusal = scratch.run(call).refused(Code::ForeignDatabase);
            assert!(refusal["error"].as_str().unwrap().contains("\"mine\""), "{refusal}");
        }
        assert!(fs::read(&path).unwrap() == before);
    }
}
