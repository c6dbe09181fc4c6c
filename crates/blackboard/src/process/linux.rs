//! Processes on Linux, from `/proc`.
//!
//! Hooks wait for this, so a check reads one file (`stat`), and two more only for ancestors that are neither shells
//! nor wrappers. Shells need one more if no ancestor is an agent. Everything that a process can choose (its name, its
//! arguments) is untrusted: any bytes, with a bounded length.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::process::parent_id;
use std::process;

use super::ancestors::{complete_shells, is_agent, is_passed_over};
use super::{ANCESTORS_MAX, HostIdentity, ProcessInfo, ProcessState, host_id, signal};

/// Enough for the fields up to the 22nd, whatever their values.
const STAT_MAX: usize = 1024;
/// Enough for the options of an interpreter and the path of its script.
const ARGUMENTS_MAX: usize = 4096;

pub(super) fn place() -> HostIdentity {
    HostIdentity { host: host(), boot: line("/proc/sys/kernel/random/boot_id"), namespace: namespace() }
}

pub(super) fn look(place: &HostIdentity, pid: u32) -> ProcessState {
    // PIDs in the `/proc` of another namespace are not those that were asked for.
    if place.namespace.is_none() {
        return signal::probe(pid);
    }
    match Stat::read(pid) {
        Some(stat) if stat.ended => ProcessState::Gone,
        Some(stat) => ProcessState::Running { started: Some(stat.started) },
        // A `/proc` mounted with `hidepid` shows nothing of other users. A signal works.
        None => signal::probe(pid),
    }
}

pub(super) fn ancestors(place: &HostIdentity, agents: &[&str]) -> Vec<ProcessInfo> {
    if place.namespace.is_none() {
        return Vec::new();
    }
    let mut chain = Vec::new();
    let mut pid = parent_id();
    // The parent of pid 1, and of a process that entered this namespace from outside, is 0.
    while pid != 0 && chain.len() < ANCESTORS_MAX {
        let Some(stat) = Stat::read(pid) else { break };
        let known = is_passed_over(&stat.name);
        chain.push(ProcessInfo {
            pid,
            parent: stat.parent,
            executable: if known { String::new() } else { executable(pid) },
            arguments: if known { Vec::new() } else { arguments(pid) },
            name: stat.name,
            terminal: stat.terminal,
            group_leader: stat.group_leader,
        });
        pid = stat.parent;
    }
    // The script of a shell matters only if no process is an agent.
    if !chain.iter().any(|process| is_agent(process, agents)) {
        complete_shells(&mut chain, arguments);
    }
    chain
}

fn host() -> String {
    let machine = line("/etc/machine-id");
    // Images leave it empty, or with this word until the first boot.
    if machine.is_empty() || machine == "uninitialized" {
        host_id(rustix::system::uname().nodename().to_bytes())
    } else {
        host_id(machine.as_bytes())
    }
}

/// The PID namespace of this process, if `/proc` belongs to it. After `unshare --pid` without a new mount, `/proc`
/// still shows the outer namespace.
fn namespace() -> Option<String> {
    let own = fs::read_link("/proc/self").ok()?;
    if own.to_str()? != process::id().to_string() {
        return None;
    }
    let link = fs::read_link("/proc/self/ns/pid").ok()?;
    Some(link.to_str()?.strip_prefix("pid:[")?.strip_suffix(']')?.to_owned())
}

/// The used fields of `/proc/P/stat`.
#[derive(Debug, PartialEq, Eq)]
struct Stat {
    name: String,
    parent: u32,
    terminal: bool,
    group_leader: bool,
    started: u64,
    ended: bool,
}

impl Stat {
    fn read(pid: u32) -> Option<Stat> {
        Stat::parse(&read_start(&format!("/proc/{pid}/stat"), STAT_MAX).ok()?)
    }

    /// The name may contain spaces, newlines and parentheses: it ends at the last one.
    fn parse(bytes: &[u8]) -> Option<Stat> {
        let open = bytes.iter().position(|&byte| byte == b'(')?;
        let close = bytes.iter().rposition(|&byte| byte == b')')?;
        let name = String::from_utf8_lossy(bytes.get(open + 1..close)?).into_owned();
        let fields: Vec<&str> = str::from_utf8(&bytes[close + 1..]).ok()?.split_ascii_whitespace().collect();
        // The manual numbers the fields from 1; the state, after the name, is the third.
        let field = |number: usize| fields.get(number - 3).copied();
        let threads: u32 = field(20)?.parse().ok()?;
        Some(Stat {
            name,
            parent: field(4)?.parse().ok()?,
            terminal: field(7)? != "0",
            group_leader: field(5)?.as_bytes() == bytes[..open].trim_ascii(),
            started: field(22)?.parse().ok()?,
            // A process whose first thread ended also shows as a zombie while its other threads run.
            ended: matches!(field(3)?, "Z" | "X" | "x") && threads <= 1,
        })
    }
}

fn executable(pid: u32) -> String {
    let Ok(path) = fs::read_link(format!("/proc/{pid}/exe")) else { return String::new() };
    let mut path = lossy(path.into_os_string().into_vec());
    // An agent that was updated while it runs is the same agent.
    if let Some(length) = path.strip_suffix(" (deleted)").map(str::len) {
        path.truncate(length);
    }
    path
}

fn arguments(pid: u32) -> Vec<String> {
    let bytes = read_start(&format!("/proc/{pid}/cmdline"), ARGUMENTS_MAX).unwrap_or_default();
    let mut arguments: Vec<String> =
        bytes.split(|&byte| byte == 0).map(|part| lossy(part.to_vec())).collect();
    // Each argument ends with a zero byte, and a process that sets its title leaves more of them after it.
    while arguments.last().is_some_and(String::is_empty) {
        arguments.pop();
    }
    arguments
}

/// One read: the kernel generates these files for each read, and bytes beyond `limit` are not needed.
fn read_start(path: &str, limit: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; limit];
    let length = File::open(path)?.read(&mut bytes)?;
    bytes.truncate(length);
    Ok(bytes)
}

/// A file of one short line; empty if it cannot be read.
fn line(path: &str) -> String {
    lossy(read_start(path, 64).unwrap_or_default()).trim().to_owned()
}

fn lossy(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

#[cfg(test)]
mod tests;
