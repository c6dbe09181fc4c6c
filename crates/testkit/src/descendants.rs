//! The processes below this one, as `/proc` shows them.

use std::fs;

use rustix::process::{Pid, Signal, kill_process};

/// Kills the processes that this thread has started and that still run. One that was waited for is not among them.
pub(crate) fn kill_children_of_this_thread() {
    // Where the kernel has no such file, the processes end with their fixtures alone.
    let children = fs::read_to_string("/proc/thread-self/children").unwrap_or_default();
    for child in children.split_whitespace().filter_map(|pid| pid.parse().ok()) {
        for (pid, _) in below(child) {
            kill(pid);
        }
        kill(child);
    }
}

/// Kills every process below this one, and returns what they were: number and command line.
pub(crate) fn kill_all() -> Vec<(i32, String)> {
    let found = below(std::process::id().cast_signed());
    for (pid, _) in &found {
        kill(*pid);
    }
    found
}

fn kill(pid: i32) {
    if let Some(pid) = Pid::from_raw(pid) {
        // It may have ended.
        let _ = kill_process(pid, Signal::KILL);
    }
}

/// The processes below this one, without it.
fn below(root: i32) -> Vec<(i32, String)> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let mut parents: Vec<(i32, i32)> = pids.filter_map(|pid| Some((pid, parent_of(pid)?))).collect();
    let mut found = Vec::new();
    let mut waiting = vec![root];
    while let Some(next) = waiting.pop() {
        parents.retain(|(pid, parent)| {
            if *parent == next {
                waiting.push(*pid);
                found.push((*pid, command_line(*pid)));
            }
            *parent != next
        });
    }
    found
}

fn parent_of(pid: i32) -> Option<i32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name may contain anything, also brackets.
    stat[stat.rfind(')')? + 1..].split_whitespace().nth(1)?.parse().ok()
}

fn command_line(pid: i32) -> String {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let words = line.split(|byte| *byte == 0).filter(|word| !word.is_empty());
    words.map(String::from_utf8_lossy).collect::<Vec<_>>().join(" ")
}
