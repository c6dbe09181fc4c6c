//! Runs other programs, each with a limit.
//!
//! No task waits without a limit. A program that exceeds its limit is killed with its descendants (`processes.rs`), and
//! the error names the program. Programs stay in the process group of the task, so that Ctrl-C at a terminal reaches
//! all of them.

use std::io;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::OnceLock;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use testkit::processes;

use crate::Result;

/// The limit of a program that should answer at once.
pub const SHORT: Duration = Duration::from_mins(5);

/// The deadline of the complete task, if it has one.
static END: OnceLock<Instant> = OnceLock::new();

/// Sets one limit for everything that this task runs from now on. CI kills a task that takes longer, and could not say
/// which step was slow.
pub fn limit_task(limit: Duration) {
    let _ = END.set(Instant::now() + limit);
}

/// The limit of a program, or the rest of the task's limit if that is less.
fn clip(limit: Duration, end: Option<Instant>) -> Duration {
    end.map_or(limit, |end| limit.min(end.saturating_duration_since(Instant::now())))
}

/// How long a killed program may take to be gone.
const TO_DIE: Duration = Duration::from_secs(10);

/// Runs a program to its end.
pub fn status(command: &mut Command, limit: Duration) -> Result<ExitStatus> {
    let what = shown(command);
    let mut child = command.spawn().map_err(|error| format!("`{what}` cannot be started: {error}"))?;
    within(limit, child.id(), &what, move || child.wait())
}

/// Runs a program to its end. It has to succeed.
pub fn success(command: &mut Command, limit: Duration) -> Result {
    let status = status(command, limit)?;
    if status.success() { Ok(()) } else { Err(format!("`{}` ended with {status}", shown(command)).into()) }
}

/// Runs a program to its end, and returns its output.
pub fn output(command: &mut Command, limit: Duration) -> Result<Output> {
    let what = shown(command);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().map_err(|error| format!("`{what}` cannot be started: {error}"))?;
    within(limit, child.id(), &what, move || child.wait_with_output())
}

/// Runs `wait`, which returns when the process `pid` has ended.
pub fn within<T: Send + 'static>(
    limit: Duration,
    pid: u32,
    what: &str,
    wait: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<T> {
    let limit = clip(limit, END.get().copied());
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let _ = sender.send(wait());
    });
    match receiver.recv_timeout(limit) {
        Ok(answer) => Ok(answer?),
        Err(RecvTimeoutError::Timeout) => {
            processes::kill_with_descendants(pid);
            let _ = receiver.recv_timeout(TO_DIE);
            Err(format!("`{what}` did not end within {}", duration(limit)).into())
        }
        Err(RecvTimeoutError::Disconnected) => Err(format!("the end of `{what}` is unknown").into()),
    }
}

/// Waits for a process that was asked to end. Kills it if it does not.
pub fn end(child: &mut Child, limit: Duration) {
    let until = Instant::now() + limit;
    while matches!(child.try_wait(), Ok(None)) {
        if Instant::now() >= until {
            processes::kill_with_descendants(child.id());
            let _ = child.kill();
            let _ = child.wait();
            return;
        }
        thread::sleep(Duration::from_millis(20));
    }
}

/// The command as a user would type it.
fn shown(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let program = program.file_name().unwrap_or(program.as_os_str());
    let words = std::iter::once(program).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

fn duration(duration: Duration) -> String {
    match duration.as_secs() {
        seconds if seconds >= 60 && seconds % 60 == 0 => format!("{} min", seconds / 60),
        seconds => format!("{seconds} s"),
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]).stdin(Stdio::null());
        command
    }

    #[test]
    fn a_program_that_ends_in_time_gives_its_status_and_its_output() {
        testkit::limit_test();
        assert_eq!(status(&mut shell("exit 3"), SHORT).unwrap().code(), Some(3));
        let said = output(&mut shell("echo out; echo error >&2"), SHORT).unwrap();
        assert_eq!((said.stdout.as_slice(), said.stderr.as_slice()), (&b"out\n"[..], &b"error\n"[..]));
        assert!(success(&mut shell("exit 0"), SHORT).is_ok());
        let failed = success(&mut shell("exit 3"), SHORT).unwrap_err().to_string();
        assert_eq!(failed, "`sh -c exit 3` ended with exit status: 3");
        let missing = status(&mut Command::new("no-such-program"), SHORT).unwrap_err().to_string();
        assert!(missing.starts_with("`no-such-program` cannot be started: "), "{missing}");
    }

    #[test]
    fn a_program_that_hangs_is_killed_with_what_it_started_and_named() {
        let directory = testkit::tempdir().unwrap();
        let note = directory.path().join("pid");
        let script = format!("sleep 1000 & echo $! > {}; wait", note.display());
        let mut child = shell(&script).spawn().unwrap();
        let started = || std::fs::read_to_string(&note).ok()?.trim().parse().ok();
        let (pid, started) = (child.id(), testkit::wait_until("what it starts", started));
        let second = Duration::from_secs(1);
        let error = within(second, pid, "a program that hangs", move || child.wait()).unwrap_err();
        assert_eq!(error.to_string(), "`a program that hangs` did not end within 1 s");
        for pid in [pid, started] {
            testkit::wait_until("the end of all of it", || (!testkit::process::runs(pid)).then_some(()));
        }
    }

    #[test]
    fn a_killed_program_leaves_nothing_that_it_starts_meanwhile() {
        let directory = testkit::tempdir().unwrap();
        let note = directory.path().join("started");
        // The script starts processes as fast as it can, up to a number that a machine can handle.
        let script = "i=0; while [ $i -lt 400 ]; do sleep 1000 & i=$((i+1)); echo $i > started; done; wait";
        let mut command = shell(script);
        // Processes that are left after a failure must not keep the output of the run open.
        command.current_dir(directory.path()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let pid = child.id();
        testkit::wait_until("some processes", || {
            let count: u32 = std::fs::read_to_string(&note).ok()?.trim().parse().ok()?;
            (count > 20).then_some(())
        });
        processes::kill_with_descendants(pid);
        testkit::process::wait_for(&mut child);
        testkit::wait_until("the end of all of them", || {
            let all = std::fs::read_dir("/proc").unwrap().flatten();
            let mut pids = all.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
            let is_left = |pid: u32| {
                let place = std::fs::read_link(format!("/proc/{pid}/cwd"));
                place.is_ok_and(|place| place == directory.path()) && testkit::process::runs(pid)
            };
            (!pids.any(is_left)).then_some(())
        });
    }

    #[test]
    fn a_program_has_at_most_what_is_left_of_the_limit_of_its_task() {
        let now = Instant::now();
        assert_eq!(clip(SHORT, None), SHORT);
        assert_eq!(clip(SHORT, Some(now + 100 * SHORT)), SHORT);
        assert!(clip(SHORT, Some(now + SHORT / 2)) <= SHORT / 2);
        assert_eq!(clip(SHORT, Some(now)), Duration::ZERO);
    }

    #[test]
    fn limits_are_shown_in_minutes_or_seconds() {
        assert_eq!(duration(Duration::from_mins(45)), "45 min");
        assert_eq!(duration(Duration::from_secs(90)), "90 s");
    }
}
