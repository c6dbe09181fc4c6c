//! The server of a board, and a board with its server: the fixture of its tests.

use std::process::{Child, Command, ExitStatus, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::process::{Lines, wait_for};
use crate::scratch::Scratch;

/// A server in the foreground. It ends when this value is dropped.
pub struct Server {
    process: Child,
    /// The JSON that it printed when it was ready: its address, port and token.
    pub printed: Value,
}

impl Server {
    /// Starts `serve --json` and waits until it is ready.
    pub fn start(mut command: Command) -> Server {
        let mut process = command.stdout(Stdio::piped()).spawn().unwrap();
        let line = Lines::of(&mut process).next();
        let printed: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
        assert_eq!(printed["ok"], true, "{printed}");
        Server { process, printed }
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        self.printed["port"].as_u64().and_then(|port| port.try_into().ok()).unwrap()
    }

    /// The token that requests need; empty if they need none.
    pub fn token(&self) -> &str {
        self.printed["token"].as_str().unwrap_or_default()
    }

    /// The PID of its process.
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Asks it to stop.
    pub fn end(&mut self) -> ExitStatus {
        kill_process(Pid::from_child(&self.process), Signal::TERM).unwrap();
        wait_for(&mut self.process)
    }

    /// Kills it.
    pub fn kill(&mut self) {
        self.process.kill().unwrap();
        wait_for(&mut self.process);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if self.process.try_wait().unwrap().is_none() {
            // A test that has failed already reports its own failure.
            if std::thread::panicking() {
                self.kill();
            } else {
                self.end();
            }
        }
    }
}

/// A board and the server that shows it.
pub struct Served {
    /// Dropped before the directory is deleted: fields are dropped in this order.
    pub server: Server,
    /// The board.
    pub scratch: Scratch,
}

impl Served {
    /// A server of this board, on this port or any.
    pub fn of(scratch: Scratch, port: u16) -> Served {
        let command = scratch.command(["serve", "--json", "--port", &port.to_string()]);
        Served::by(scratch, command)
    }

    /// A server that was started like this.
    pub fn by(scratch: Scratch, command: Command) -> Served {
        crate::limit_test();
        Served { server: Server::start(command), scratch }
    }

    /// Ends the server, and returns the board.
    pub fn end(mut self) -> Scratch {
        let status = self.server.end();
        assert_eq!(status.code(), Some(0), "it exits with 0 when it is asked to stop");
        self.scratch
    }
}
