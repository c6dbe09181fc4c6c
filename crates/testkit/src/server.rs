//! The server of a board.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, ExitStatus, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// A server in the foreground. It ends with the value.
pub struct Server {
    process: Child,
    /// What it printed when it was ready: its address, port and token.
    pub printed: Value,
}

impl Server {
    /// Starts `serve --json` and waits until it is ready.
    pub fn start(mut command: Command) -> Server {
        let mut process = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let printed: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
        assert_eq!(printed["ok"], true, "{printed}");
        Server { process, printed }
    }

    /// The number of its process.
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Asks it to end.
    pub fn end(&mut self) -> ExitStatus {
        kill_process(Pid::from_child(&self.process), Signal::TERM).unwrap();
        self.process.wait().unwrap()
    }

    /// Ends it at once.
    pub fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if self.process.try_wait().unwrap().is_none() {
            self.end();
        }
    }
}
