//! Processes that a test starts: their end, and the lines that they print.
//!
//! Every wait here has a limit. A process that exceeds it is killed with its descendants, and the test fails with the name of
//! the command.

use std::io::Read;
#[cfg(unix)]
use std::process::ChildStdout;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

#[cfg(unix)]
use rustix::event::{PollFd, PollFlags, Timespec, poll};
#[cfg(unix)]
use rustix::io::retry_on_intr;
#[cfg(unix)]
pub use rustix::process::Signal;

use crate::patience;
use crate::processes::kill_with_descendants;
#[cfg(unix)]
pub use crate::processes::signal;
pub use crate::processes::{kill, runs};

/// The end of a process that may have been killed.
#[derive(Debug)]
pub struct Ended {
    /// Its exit status.
    pub status: ExitStatus,
    /// What it printed on stdout.
    pub stdout: String,
    /// What it printed on stderr.
    pub stderr: String,
}

/// Waits for a process that may itself wait for something. One that does not end is killed and fails the test.
#[track_caller]
pub fn end_of(child: Child) -> Ended {
    // Twice the limit of a wait for a state, so that the process itself reports first what it waited for.
    let Output { status, stdout, stderr } = output_within(2 * patience(), child);
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Ended { status, stdout: text(stdout), stderr: text(stderr) }
}

/// Runs something to its end with a limit: [`patience`].
pub trait RunToEnd {
    /// The status, and the bytes of each pipe that a test has connected.
    #[track_caller]
    fn run_to_end(self) -> Output;
}

impl RunToEnd for Child {
    #[track_caller]
    fn run_to_end(self) -> Output {
        output_within(patience(), self)
    }
}

/// The command with both outputs connected. A test that connects them itself starts the command and runs the child to its end.
impl RunToEnd for &mut Command {
    #[track_caller]
    fn run_to_end(self) -> Output {
        let child = self.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        child.unwrap_or_else(|error| panic!("{self:?}: {error}")).run_to_end()
    }
}

/// Waits for the end of a process whose output is not read here.
#[track_caller]
pub fn wait_for(child: &mut Child) -> ExitStatus {
    let (end, pid) = (Instant::now() + patience(), child.id());
    drop(child.stdin.take());
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        if Instant::now() >= end {
            let command = command_of(pid);
            kill_with_descendants(pid);
            panic!("process {pid} did not end within {} s: {command}", patience().as_secs());
        }
        thread::sleep(Duration::from_millis(2));
    }
}

#[track_caller]
fn output_within(limit: Duration, mut child: Child) -> Output {
    drop(child.stdin.take());
    let mut stdout = child.stdout.take();
    let mut stderr = child.stderr.take();
    let (sender, receiver) = mpsc::channel();
    let pid = child.id();
    thread::spawn(move || {
        let stderr = thread::spawn(move || read(stderr.as_mut()));
        let stdout = read(stdout.as_mut());
        let ended = Output { stdout, stderr: stderr.join().unwrap(), status: child.wait().unwrap() };
        let _ = sender.send(ended);
    });
    receiver.recv_timeout(limit).unwrap_or_else(|_| {
        let command = command_of(pid);
        kill_with_descendants(pid);
        panic!("process {pid} did not end within {} s: {command}", limit.as_secs())
    })
}

fn read(pipe: Option<&mut impl Read>) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Some(pipe) = pipe {
        pipe.read_to_end(&mut bytes).unwrap();
    }
    bytes
}

/// The command line of a process, where the system shows it.
fn command_of(pid: u32) -> String {
    let command = std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    command.replace('\0', " ")
}

/// The lines that a process prints, each awaited with a limit. Lines that a test does not read stay in the pipe.
#[cfg(unix)]
pub struct Lines {
    pid: u32,
    output: ChildStdout,
    /// Bytes that were read but not returned yet.
    rest: Vec<u8>,
}

#[cfg(unix)]
impl Lines {
    /// The lines of a process whose output is connected.
    pub fn of(child: &mut Child) -> Lines {
        Lines { pid: child.id(), output: child.stdout.take().unwrap(), rest: Vec::new() }
    }

    /// The next line, without its end. Without one within [`patience`], the process is killed and the test fails.
    #[track_caller]
    #[expect(clippy::should_implement_trait, reason = "an iterator would end where this fails")]
    pub fn next(&mut self) -> String {
        let end = Instant::now() + patience();
        loop {
            if let Some(length) = self.rest.iter().position(|byte| *byte == b'\n') {
                let line = self.rest.drain(..=length).take(length).collect();
                return String::from_utf8(line).unwrap();
            }
            let left = Timespec::try_from(end.saturating_duration_since(Instant::now())).unwrap();
            let ready = retry_on_intr(|| poll(&mut [PollFd::new(&self.output, PollFlags::IN)], Some(&left)));
            let ready = ready.unwrap();
            let mut bytes = [0; 8192];
            let count = if ready == 0 { None } else { Some(self.output.read(&mut bytes).unwrap()) };
            match count {
                Some(count) if count > 0 => self.rest.extend(&bytes[..count]),
                _ => self.fail(count.is_some()),
            }
        }
    }

    /// Reads everything else that the process prints, so that a full pipe does not stop it.
    pub fn discard_rest(mut self) {
        thread::spawn(move || std::io::copy(&mut self.output, &mut std::io::sink()));
    }

    #[track_caller]
    fn fail(&self, has_ended: bool) -> ! {
        let (pid, rest) = (self.pid, String::from_utf8_lossy(&self.rest));
        assert!(!has_ended, "process {pid} printed no more lines, only {rest:?}");
        let command = command_of(pid);
        kill_with_descendants(pid);
        panic!("process {pid} printed no line within {} s, only {rest:?}: {command}", patience().as_secs());
    }
}
