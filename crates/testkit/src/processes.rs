//! Processes as `/proc` shows them: descendants, and their end. `xtask` uses it too.

use std::fs;
use std::io;
#[cfg(target_os = "linux")]
use std::thread;
#[cfg(target_os = "linux")]
use std::time::{Duration, Instant};

/// A process as the system shows it.
pub struct Process {
    /// Its PID.
    pub pid: u32,
    /// The PID of its parent.
    pub parent: u32,
    /// Its name, as `ps` shows it.
    pub name: String,
    /// Its command line.
    pub arguments: Vec<String>,
}

/// How long all descendants of a process may take to stop before they are killed.
#[cfg(target_os = "linux")]
const TO_STOP: Duration = Duration::from_secs(5);

/// Kills a process and its descendants. Without `/proc`, only the process.
///
/// All of them are stopped first, because a running process can start others after the list was made. A process whose
/// parent has already ended is not found: the system has given it another parent.
pub fn kill_with_descendants(pid: u32) {
    for process in stop_with_descendants(pid) {
        kill(process);
    }
    kill(pid);
}

/// Kills the processes that this thread has started and that still run. Those that were waited for are not among them.
#[cfg(target_os = "linux")]
pub(crate) fn kill_children_of_this_thread() {
    // If the kernel has no such file, processes end only with their fixtures.
    let children = fs::read_to_string("/proc/thread-self/children").unwrap_or_default();
    children.split_whitespace().filter_map(|pid| pid.parse().ok()).for_each(kill_with_descendants);
}

/// Kills every process below this one, and returns them.
#[cfg(target_os = "linux")]
pub(crate) fn kill_all_below_this_one() -> Vec<Process> {
    let mut found = below(std::process::id()).unwrap_or_default();
    found.retain(|process| process.pid != std::process::id());
    for process in &found {
        kill(process.pid);
    }
    found
}

/// Stops a process and its descendants until all that are found are stopped, and returns them.
#[cfg(target_os = "linux")]
fn stop_with_descendants(pid: u32) -> Vec<u32> {
    let end = Instant::now() + TO_STOP;
    loop {
        let found: Vec<u32> = below(pid).unwrap_or_default().iter().map(|process| process.pid).collect();
        let running: Vec<u32> = found.iter().copied().filter(|pid| !is_stopped(*pid)).collect();
        if running.is_empty() || Instant::now() >= end {
            return found;
        }
        for pid in running {
            signal(pid, rustix::process::Signal::STOP);
        }
        thread::sleep(Duration::from_millis(1));
    }
}

/// The descendants of a process, on systems where they cannot be stopped.
#[cfg(not(target_os = "linux"))]
fn stop_with_descendants(_pid: u32) -> Vec<u32> {
    Vec::new()
}

/// Kills a process with SIGKILL.
#[cfg(unix)]
pub fn kill(pid: u32) {
    signal(pid, rustix::process::Signal::KILL);
}

/// Sends a signal to a process.
#[cfg(unix)]
pub fn signal(pid: u32, signal: rustix::process::Signal) {
    if let Some(pid) = rustix::process::Pid::from_raw(pid.cast_signed()) {
        // It may have ended already.
        let _ = rustix::process::kill_process(pid, signal);
    }
}

/// Kills a process.
#[cfg(not(unix))]
pub fn kill(pid: u32) {
    let _ = std::process::Command::new("taskkill").args(["/T", "/F", "/PID", &pid.to_string()]).status();
}

/// A process and its descendants, each after its parent.
pub fn below(root: u32) -> io::Result<Vec<Process>> {
    let mut all = Vec::new();
    for entry in fs::read_dir("/proc")?.flatten() {
        let pid = entry.file_name().to_str().and_then(|name| name.parse().ok());
        all.extend(pid.and_then(process));
    }
    let mut found: Vec<Process> = Vec::new();
    let mut wanted = vec![root];
    while let Some(next) = wanted.pop() {
        wanted.extend(all.iter().filter(|process| process.parent == next).map(|process| process.pid));
        if let Some(place) = all.iter().position(|process| process.pid == next) {
            found.push(all.swap_remove(place));
        }
    }
    Ok(found)
}

/// Whether a process is running and not a zombie. The first thread of a killed process is a zombie before the others have
/// ended; until then its parent does not see its end.
pub fn runs(pid: u32) -> bool {
    let threads = || fs::read_dir(format!("/proc/{pid}/task")).map_or(0, Iterator::count);
    state(pid).is_some_and(|state| !matches!(state, 'Z' | 'X') || threads() > 1)
}

/// Whether a process cannot start others: it is stopped, by a signal or a debugger, or has ended.
#[cfg(target_os = "linux")]
fn is_stopped(pid: u32) -> bool {
    state(pid).is_none_or(|state| matches!(state, 'T' | 't' | 'Z' | 'X'))
}

/// The state letter of a process.
fn state(pid: u32) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat[stat.rfind(')')? + 1..].trim_start().chars().next()
}

fn process(pid: u32) -> Option<Process> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name may contain anything, including parentheses.
    let (open, close) = (stat.find('(')?, stat.rfind(')')?);
    let parent = stat[close + 1..].split_whitespace().nth(1)?.parse().ok()?;
    let arguments = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let arguments = arguments.split(|byte| *byte == 0).filter(|argument| !argument.is_empty());
    let arguments = arguments.map(|argument| String::from_utf8_lossy(argument).into_owned()).collect();
    Some(Process { pid, parent, name: stat[open + 1..close].to_owned(), arguments })
}
