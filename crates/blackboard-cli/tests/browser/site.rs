//! A board, and the program that serves it.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Stdio};
use std::time::Duration;

use blackboard::Board;
use rusqlite::Connection;
use serde_json::Value;

use crate::scratch::Scratch;

/// Long enough that only something that hangs takes longer.
const HANGS: Duration = Duration::from_mins(1);

pub struct Site {
    scratch: Scratch,
    port: u16,
    server: Option<Child>,
}

impl Site {
    /// A board with nothing on it, served.
    pub fn new() -> Site {
        let mut site = Site { scratch: Scratch::new(), port: free_port(), server: None };
        // The board is there before it is served.
        site.json(&["project", "register", "--id", "first", "--name", "First project"]);
        site.start();
        site
    }

    pub fn address(&self) -> String {
        format!("http://127.0.0.1:{}/", self.port)
    }

    /// Starts the server, and waits until it answers.
    pub fn start(&mut self) {
        let port = self.port.to_string();
        let mut command = self.scratch.command(["serve", "--port", &port]);
        self.server = Some(command.stdout(Stdio::null()).stderr(Stdio::inherit()).spawn().unwrap());
        testkit::wait_until("the server answers", || {
            let ended = self.server.as_mut().unwrap().try_wait().unwrap();
            assert!(ended.is_none(), "the server ended: {ended:?}");
            self.answers().then_some(())
        });
    }

    /// Ends the server without a word.
    pub fn kill(&mut self) {
        if let Some(mut server) = self.server.take() {
            server.kill().unwrap();
            server.wait().unwrap();
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

    fn answers(&self) -> bool {
        let ask = || -> std::io::Result<String> {
            let mut connection = TcpStream::connect(("127.0.0.1", self.port))?;
            connection.set_read_timeout(Some(HANGS))?;
            write!(
                connection,
                "GET /api/status HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nConnection: close\r\n\r\n",
                self.port
            )?;
            let mut answer = String::new();
            connection.read_to_string(&mut answer)?;
            Ok(answer)
        };
        ask().is_ok_and(|answer| answer.starts_with("HTTP/1.1 200"))
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
