//! For systems without signals: only waits for the child process.

use std::io;
use std::process::{Command, ExitStatus};

/// There are no signals to forward.
pub struct Signals;

impl Signals {
    /// Does nothing.
    pub fn catch() -> io::Result<Signals> {
        Ok(Signals)
    }

    /// Always `None`.
    pub fn asked_to_end(&self) -> Option<u8> {
        None
    }

    /// Runs a program to its end.
    pub fn run(&self, command: &mut Command) -> io::Result<ExitStatus> {
        command.status()
    }
}
