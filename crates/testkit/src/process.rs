//! Processes that a test starts, and their end.

use std::io::Read;
use std::process::{Child, ExitStatus};
use std::sync::mpsc;
use std::thread;

pub use rustix::process::Signal;

use crate::patience;
pub use crate::processes::{kill, runs, signal};

/// How a process ended that may have been killed.
#[derive(Debug)]
pub struct Ended {
    /// The status that it ended with.
    pub status: ExitStatus,
    /// What it printed.
    pub stdout: String,
    /// What it printed besides.
    pub stderr: String,
}

/// Waits for the end of a process. One that does not end is killed and fails the test.
#[track_caller]
pub fn end_of(mut child: Child) -> Ended {
    let mut stdout = child.stdout.take();
    let mut stderr = child.stderr.take();
    let (sender, receiver) = mpsc::channel();
    let pid = child.id();
    thread::spawn(move || {
        let stderr = thread::spawn(move || read(stderr.as_mut()));
        let stdout = read(stdout.as_mut());
        let ended = Ended { stdout, stderr: stderr.join().unwrap(), status: child.wait().unwrap() };
        let _ = sender.send(ended);
    });
    // Twice as long as a state is waited for: the process itself may wait for one.
    receiver.recv_timeout(2 * patience()).unwrap_or_else(|_| {
        let command = std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        kill(pid);
        panic!("process {pid} does not end: {}", command.replace('\0', " "))
    })
}

fn read(pipe: Option<&mut impl Read>) -> String {
    let mut bytes = Vec::new();
    if let Some(pipe) = pipe {
        pipe.read_to_end(&mut bytes).unwrap();
    }
    String::from_utf8(bytes).unwrap()
}
