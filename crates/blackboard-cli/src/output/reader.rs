//! Whoever reads standard output, and whether they are still there.

use std::io;

/// Whether nobody can read what is written to standard output any more: the other end of a pipe is closed. A command
/// that waits would otherwise notice only when it has something to say.
#[cfg(unix)]
pub fn has_left() -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    let stdout = io::stdout();
    // Errors are told of without being asked for.
    let mut descriptors = [PollFd::new(&stdout, PollFlags::empty())];
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    let known = poll(&mut descriptors, Some(&at_once)).is_ok();
    known && descriptors[0].revents().intersects(PollFlags::ERR | PollFlags::NVAL)
}

/// Nobody knows.
#[cfg(not(unix))]
pub fn has_left() -> bool {
    let _ = io::stdout();
    false
}
