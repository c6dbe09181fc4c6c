//! A board, and the program that serves it.

use std::path::{Path, PathBuf};
use std::process::Command;

use blackboard::Board;
use rusqlite::Connection;
use serde_json::Value;
use testkit::process::RunToEnd as _;
use testkit::server::{Served, Server};

use crate::scratch::Scratch;

pub struct Site {
    served: Served,
    /// Where the server is started, if that is not the home directory.
    directory: Option<PathBuf>,
}

impl Site {
    /// A board with nothing on it, served.
    pub fn new() -> Site {
        let scratch = Scratch::new();
        // The board is there before it is served.
        scratch.json(["project", "register", "--id", "first", "--name", "First project"]);
        Site::serving(scratch)
    }

    /// This board, served.
    pub fn serving(scratch: Scratch) -> Site {
        Site { served: Served::of(scratch, 0), directory: None }
    }

    /// The same for the board of a project, which is in a directory of this name.
    pub fn in_project(name: &str) -> Site {
        let scratch = Scratch::new();
        let directory = scratch.path().join(name);
        std::fs::create_dir(&directory).unwrap();
        let made = scratch.command(["init"]).current_dir(&directory).run_to_end();
        assert!(made.status.success(), "{made:?}");
        let server = server_of(&scratch, Some(&directory), 0);
        Site { served: Served::by(scratch, server), directory: Some(directory) }
    }

    /// The address that the server printed, with its token.
    pub fn address(&self) -> &str {
        self.served.server.printed["url"].as_str().unwrap()
    }

    /// The address without the token.
    pub fn plain_address(&self) -> String {
        format!("http://127.0.0.1:{}/", self.served.server.port())
    }

    /// The database.
    pub fn database(&self) -> PathBuf {
        self.served.scratch.database()
    }

    /// Starts the server again, on the same port. It has a new token.
    pub fn start(&mut self) {
        let server = server_of(&self.served.scratch, self.directory.as_deref(), self.served.server.port());
        self.served.server = Server::start(server);
    }

    /// Kills the server.
    pub fn kill(&mut self) {
        self.served.server.kill();
    }

    /// Takes the board away.
    pub fn remove_board(&self) {
        std::fs::remove_dir_all(self.served.scratch.database().parent().unwrap()).unwrap();
    }

    /// Puts another board in its place at once, as a backup is put back, while it is served.
    pub fn replace_board(&self, other: &Scratch) {
        Connection::open(other.database())
            .unwrap()
            .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
            .unwrap();
        for ending in ["-wal", "-shm"] {
            let mut path = self.served.scratch.database().into_os_string();
            path.push(ending);
            // It exists only while a process has the board open.
            let _ = std::fs::remove_file(path);
        }
        std::fs::rename(other.database(), self.served.scratch.database()).unwrap();
    }

    /// The answer of a command that succeeds.
    #[track_caller]
    pub fn json(&self, arguments: &[&str]) -> Value {
        self.served.scratch.json(arguments)
    }

    /// Registers an agent, whose process is this test.
    #[track_caller]
    pub fn agent(&self, arguments: &[&str]) -> String {
        let answer = self.json(&[&["agent", "register"], arguments].concat());
        answer["session_id"].as_str().unwrap().to_owned()
    }

    /// The human output of a command.
    #[track_caller]
    pub fn says(&self, arguments: &[&str]) -> String {
        self.served.scratch.run(arguments).success().stdout
    }

    /// The same board for the library, which fills it faster than a process for each step could.
    pub fn library(&self) -> Board {
        Board::open(&self.served.scratch.database()).unwrap()
    }

    /// The ids of all events, the oldest first.
    pub fn log(&self) -> Vec<i64> {
        let connection = Connection::open(self.database()).unwrap();
        connection.busy_timeout(testkit::patience()).unwrap();
        let mut statement = connection.prepare("SELECT id FROM events ORDER BY id").unwrap();
        statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    }

    /// Changes the board without the program: what the program would not store is
    /// then there.
    #[track_caller]
    pub fn tamper(&self, sql: &str, parameters: impl rusqlite::Params) {
        let connection = Connection::open(self.served.scratch.database()).unwrap();
        connection.busy_timeout(testkit::patience()).unwrap();
        connection.execute(sql, parameters).unwrap();
    }
}

/// The command that serves the board of this directory.
fn server_of(scratch: &Scratch, directory: Option<&Path>, port: u16) -> Command {
    let mut command = scratch.command(["serve", "--json", "--port", &port.to_string()]);
    command.current_dir(directory.unwrap_or(scratch.path()));
    command
}

impl Drop for Site {
    fn drop(&mut self) {
        self.kill();
    }
}
