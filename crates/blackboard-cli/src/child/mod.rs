//! Runs a command for a session. Forwards signals to it, sends heartbeats meanwhile, and exits with its exit code.

#[cfg(target_os = "linux")]
mod linux;
mod session;

#[cfg(unix)]
mod unix;

#[cfg(not(unix))]
mod unsupported;

use std::io;
use std::process::ExitStatus;

use blackboard::{Code, Fault, Result};

pub use self::session::{Ended, IfKilled, end, name_base, run};
#[cfg(unix)]
pub use self::unix::{Signals, ignores_hangup};
#[cfg(not(unix))]
pub use self::unsupported::Signals;

/// Catches the signals that end a process, so that this one can release its holdings first.
pub fn catch_signals() -> Result<Signals> {
    Ok(Signals::catch().map_err(|error| Fault::new(Code::Io, "signals cannot be caught").because(error))?)
}

#[cfg(target_os = "linux")]
use self::linux::end_with_parent;

/// Other systems have no such call.
#[cfg(not(target_os = "linux"))]
fn end_with_parent(_command: &mut std::process::Command) {}

/// The exit code for a program that cannot be started, as in a shell.
fn exit_code_of_failure(error: &io::Error) -> u8 {
    if error.kind() == io::ErrorKind::NotFound { 127 } else { 126 }
}

/// The exit code of a program, as in a shell: 128 plus the signal number if a signal ended it.
fn exit_code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| signal_of(status).map(|signal| 128 + signal));
    // A code that does not fit into a byte is still a failure.
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX)
}

#[cfg(unix)]
fn signal_of(status: ExitStatus) -> Option<i32> {
    std::os::unix::process::ExitStatusExt::signal(&status)
}

#[cfg(not(unix))]
fn signal_of(_status: ExitStatus) -> Option<i32> {
    None
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::process::ExitStatusExt;

    use super::*;

    #[test]
    fn an_end_becomes_the_exit_code_that_shells_give_it() {
        for (raw, expected) in [(0, 0), (3 << 8, 3), (255 << 8, 255), (9, 137), (15, 143)] {
            assert_eq!(exit_code(ExitStatus::from_raw(raw)), expected, "{raw}");
        }
        assert_eq!(exit_code_of_failure(&io::ErrorKind::NotFound.into()), 127);
        assert_eq!(exit_code_of_failure(&io::ErrorKind::PermissionDenied.into()), 126);
    }
}
