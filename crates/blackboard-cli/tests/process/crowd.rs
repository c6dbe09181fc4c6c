//! Many at once, and waiting with an end.

use std::io::Read;
use std::process::{Child, ExitStatus};
use std::sync::{Barrier, mpsc};
use std::thread;
use std::time::{Duration, Instant};

/// Long enough that only something that hangs takes longer, however slow the machine is.
pub const HANGS: Duration = Duration::from_mins(1);

/// Runs `f` in `count` threads that start together, and returns their answers in order.
pub fn at_once<T: Send>(count: usize, f: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let start = Barrier::new(count);
    thread::scope(|scope| {
        let threads: Vec<_> = (0..count)
            .map(|index| {
                let (start, f) = (&start, &f);
                scope.spawn(move || {
                    start.wait();
                    f(index)
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("a thread of the crowd failed")).collect()
    })
}

/// How a process ended that may have been killed.
#[derive(Debug)]
pub struct Ended {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
}

/// Waits for the end of a process. One that does not end is killed and fails the test.
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
    receiver.recv_timeout(HANGS).unwrap_or_else(|_| {
        kill(pid);
        panic!("process {pid} hangs")
    })
}

/// Ends a process that can't refuse it.
pub fn kill(pid: u32) {
    signal(pid, rustix::process::Signal::KILL);
}

/// Sends a signal to a process of this test, which may have ended.
pub fn signal(pid: u32, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_raw(pid.cast_signed()).unwrap();
    let _ = rustix::process::kill_process(pid, signal);
}

/// Looks again and again until it sees something.
#[track_caller]
pub fn wait_until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + HANGS;
    loop {
        if let Some(seen) = look() {
            return seen;
        }
        assert!(Instant::now() < deadline, "never seen: {what}");
        thread::sleep(Duration::from_millis(2));
    }
}

fn read(pipe: Option<&mut impl Read>) -> String {
    let mut bytes = Vec::new();
    if let Some(pipe) = pipe {
        pipe.read_to_end(&mut bytes).unwrap();
    }
    String::from_utf8(bytes).unwrap()
}
