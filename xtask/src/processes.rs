//! Processes, as `/proc` shows them.

use std::fs;

use crate::Result;

/// What the system says about a process.
pub struct Process {
    pub pid: u32,
    pub parent: u32,
    /// Its name, as `ps` shows it.
    pub name: String,
    /// Its command line.
    pub arguments: Vec<String>,
}

/// Kills a process and everything that it has started. Where there is no `/proc`, it alone.
pub fn kill_with_descendants(pid: u32) {
    // A parent is killed before its children, so that it starts no others.
    for process in below(pid).unwrap_or_default() {
        kill(process.pid);
    }
    kill(pid);
}

/// Kills a process as `kill -9` does.
#[cfg(unix)]
pub fn kill(pid: u32) {
    if let Some(pid) = rustix::process::Pid::from_raw(pid.cast_signed()) {
        // It may have ended.
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
    }
}

/// Kills a process.
#[cfg(not(unix))]
pub fn kill(pid: u32) {
    let _ = std::process::Command::new("taskkill").args(["/T", "/F", "/PID", &pid.to_string()]).status();
}

/// A process and its descendants, each after its parent.
pub fn below(root: u32) -> Result<Vec<Process>> {
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

/// Whether a process is more than an entry that waits for its parent.
pub fn runs(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rfind(')').and_then(|name| stat[name + 1..].split_whitespace().next());
    state.is_some_and(|state| !matches!(state, "Z" | "X"))
}

fn process(pid: u32) -> Option<Process> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name may contain anything, also brackets.
    let (open, close) = (stat.find('(')?, stat.rfind(')')?);
    let parent = stat[close + 1..].split_whitespace().nth(1)?.parse().ok()?;
    let arguments = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let arguments = arguments.split(|byte| *byte == 0).filter(|argument| !argument.is_empty());
    let arguments = arguments.map(|argument| String::from_utf8_lossy(argument).into_owned()).collect();
    Some(Process { pid, parent, name: stat[open + 1..close].to_owned(), arguments })
}
