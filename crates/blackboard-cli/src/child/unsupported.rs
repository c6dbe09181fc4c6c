//! Where there are no signals: a program is only waited for.

use std::io;
use std::process::{Command, ExitStatus};

/// Nothing asks this program to end in a way that it could pass on.
pub struct Signals;

impl Signals {
    /// Catches nothing.
    pub fn catch() -> io::Result<Signals> {
        Ok(Signals)
    }

    /// Never.
    pub fn asked_to_end(&self) -> Option<u8> {
        None
    }

    /// Runs a program to its end.
    pub fn run(&self, command: &mut Command) -> io::Result<ExitStatus> {
        command.status()
    }
}
