//! Programs that a test makes and then runs.
//!
//! Another process writes them. A process that one thread starts has copies of all open files until its own program
//! runs, also of the one that another thread is writing, and the system does not run a program that is open for
//! writing ("Text file busy").

use std::path::Path;
use std::process::{Command, Stdio};

use crate::process::RunToEnd as _;

/// Writes a script that can be run by its path.
#[track_caller]
pub fn write_program(path: &Path, script: &str) {
    let write = "printf '%s' \"$1\" > \"$0\" && chmod 755 \"$0\"";
    run(Command::new("sh").arg("-c").arg(write).arg(path).arg(script));
}

/// Copies a program, with its mode.
#[track_caller]
pub fn copy_program(from: &Path, to: &Path) {
    run(Command::new("cp").arg("-p").arg(from).arg(to));
}

#[track_caller]
fn run(command: &mut Command) {
    let output = command.stdin(Stdio::null()).run_to_end();
    assert!(output.status.success(), "{command:?}: {output:?}");
}
