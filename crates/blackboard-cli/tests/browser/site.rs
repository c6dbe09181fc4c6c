//! A board, and the program that serves it.

use std::net::TcpListener;
use std::path::PathBuf;
use std::time::Duration;

use blackboard::Board;
use rusqlite::Connection;
use serde_json::Value;
use testkit::server::Server;

use crate::scratch::Scratch;

/// Long enough that only something that hangs takes longer.
const HANGS: Duration = Duration::from_mins(1);

pub struct Site {
    scratch: Scratch,
    port: u16,
    /// Where the server is started, if that is not the home directory.
    directory: Option<PathBuf>,
    /// Where it is, with the token of the server.
    address: String,
    server: Option<Server>,
}

impl Site {
    /// A board with nothing on it, served.
    pub fn new() -> Site {
        let mut site = Site::of(Scratch::new());
        // The board is there before it is served.
        site.json(&["project", "register", "--id", "first", "--name", "First project"]);
        site.start();
        site
    }

    /// This board, served.
    pub fn serving(scratch: Scratch) -> Site {
        let mut site = Site::of(scratch);
        site.start();
        site
    }

    fn of(scratch: Scratch) -> Site {
        Site { scratch, port: free_port(), directory: None, address: String::new(), server: None }
    }

    /// The same for the board of a project, which is in a directory of this name.
    pub fn in_project(name: &str) -> Site {
        let mut site = Site::of(Scratch::new());
        let directory = site.scratch.path().join(name);
        std::fs::create_dir(&directory).unwrap();
        let made = site.scratch.command(["init"]).current_dir(&directory).output().unwrap();
        assert!(made.status.success(), "{made:?}");
        site.directory = Some(directory);
        site.start();
        site
    }

    /// The address that the server printed.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// The address without the token.
    pub fn plain_address(&self) -> String {
        format!("http://127.0.0.1:{}/", self.port)
    }

    /// The database.
    pub fn database(&self) -> PathBuf {
        self.scratch.database()
    }

    /// Starts the server. It has its port, and a new token, when it prints its address.
    pub fn start(&mut self) {
        let port = self.port.to_string();
        let mut command = self.scratch.command(["serve", "--json", "--port", &port]);
        if let Some(directory) = &self.directory {
            command.current_dir(directory);
        }
        let server = Server::start(command);
        server.printed["url"].as_str().unwrap().clone_into(&mut self.address);
        self.server = Some(server);
    }

    /// Ends the server without a word.
    pub fn kill(&mut self) {
        if let Some(mut server) = self.server.take() {
            server.kill();
        }
    }

    /// Takes the board away.
    pub fn remove_board(&self) {
        std::fs::remove_dir_all(self.scratch.database().parent().unwrap()).unwrap();
    }

    /// Puts another board in its place at once, as a backup is put back, while it is served.
    pub fn replace_board(&self, other: &Scratch) {
        Connection::open(other.database())
            .unwrap()
            .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
            .unwrap();
        for ending in ["-wal", "-shm"] {
            let mut path = self.scratch.database().into_os_string();
            path.push(ending);
            // It is there only while somebody has the board open.
            let _ = std::fs::remove_file(path);
        }
        std::fs::rename(other.database(), self.scratch.database()).unwrap();
    }

    /// The answer of a command that succeeds.
    #[track_caller]
    pub fn json(&self, arguments: &[&str]) -> Value {
        self.scratch.json(arguments)
    }

    /// Registers an agent, whose process is this test.
    #[track_caller]
    pub fn agent(&self, arguments: &[&str]) -> String {
        let answer = self.json(&[&["agent", "register"], arguments].concat());
        answer["session_id"].as_str().unwrap().to_owned()
    }

    /// The same board for the library, which fills it faster than a process for each step could.
    pub fn library(&self) -> Board {
        Board::open(&self.scratch.database()).unwrap()
    }

    /// The ids of all events, the oldest first.
    pub fn log(&self) -> Vec<i64> {
        let connection = Connection::open(self.scratch.database()).unwrap();
        connection.busy_timeout(HANGS).unwrap();
        let mut statement = connection.prepare("SELECT id FROM events ORDER BY id").unwrap();
        statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    }

    /// Changes the board behind the program's back, as nobody should: what the program would not store is
    /// then there.
    #[track_caller]
    pub fn tamper(&self, sql: &str, parameters: impl rusqlite::Params) {
        let connection = Connection::open(self.scratch.database()).unwrap();
        connection.busy_timeout(HANGS).unwrap();
        connection.execute(sql, parameters).unwrap();
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.kill();
    }
}

fn free_port() -> u16 {
    TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port()
}
