//! Processes that a test starts, and their end.

use std::io::Read;
use std::process::{Child, ExitStatus};
use std::sync::mpsc;
use std::thread;

pub use rustix::process::Signal;
use rustix::process::{Pid, kill_process};

use crate::patience;

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

/// Ends a process that cannot refuse it.
pub fn kill(pid: u32) {
    signal(pid, Signal::KILL);
}

/// Sends a signal to a process of this test, which may have ended.
pub fn signal(pid: u32, signal: Signal) {
    let pid = Pid::from_raw(pid.cast_signed()).expect("the number of a process");
    let _ = kill_process(pid, signal);
}

/// Whether a process runs. One that has ended and was not waited for does not.
#[cfg(target_os = "linux")]
pub fn runs(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rfind(')').and_then(|name| stat[name + 1..].split_whitespace().next());
    state.is_some_and(|state| !matches!(state, "Z" | "X"))
}

fn read(pipe: Option<&mut impl Read>) -> String {
    let mut bytes = Vec::new();
    if let Some(pipe) = pipe {
        pipe.read_to_end(&mut bytes).unwrap();
    }
    String::from_utf8(bytes).unwrap()
}
