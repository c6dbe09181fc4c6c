//! Ends a child process with this one, also if this one is killed.

#![expect(unsafe_code, reason = "only the child itself can ask for this, before it runs its program")]

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::io::Errno;
use rustix::process::{Signal, getpid, getppid, set_parent_process_death_signal};

/// Has the kernel kill the process of this command when the thread that starts it ends. That thread must wait for the
/// command: otherwise the command would end with the thread, while this process still runs.
pub fn end_with_parent(command: &mut Command) {
    let parent = getpid();
    let ask = move || {
        set_parent_process_death_signal(Some(Signal::KILL))?;
        // The parent may have been killed before that, and then there is no signal.
        if getppid() == Some(parent) { Ok(()) } else { Err(io::Error::from(Errno::SRCH)) }
    };
    // SAFETY: between fork and exec, only calls are safe that neither allocate nor take a lock. The closure makes three
    // system calls, and its errors are numbers.
    unsafe { command.pre_exec(ask) };
}
