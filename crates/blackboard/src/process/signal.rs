//! Existence by signal 0, which works on every Unix for processes of any user.

use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};

use super::ProcessState;

/// Whether a process has this PID; its start stays unknown.
pub(super) fn probe(pid: u32) -> ProcessState {
    // 0 and negative numbers mean process groups.
    match i32::try_from(pid).ok().and_then(Pid::from_raw) {
        Some(pid) => sight_of(test_kill_process(pid)),
        None => ProcessState::Gone,
    }
}

fn sight_of(answer: Result<(), Errno>) -> ProcessState {
    match answer {
        // A process of another user exists too.
        Ok(()) | Err(Errno::PERM) => ProcessState::Running { started: None },
        Err(Errno::SRCH) => ProcessState::Gone,
        Err(_) => ProcessState::Hidden,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refused_signal_proves_that_the_process_exists() {
        let running = ProcessState::Running { started: None };
        for (answer, expected) in [
            (Ok(()), running),
            (Err(Errno::PERM), running),
            (Err(Errno::SRCH), ProcessState::Gone),
            (Err(Errno::NOSYS), ProcessState::Hidden),
        ] {
            assert_eq!(sight_of(answer), expected, "{answer:?}");
        }
    }

    #[test]
    fn numbers_that_are_not_pids_count_as_gone() {
        for pid in [0, i32::MAX.cast_unsigned() + 1, u32::MAX] {
            assert_eq!(probe(pid), ProcessState::Gone, "{pid}");
        }
    }
}
