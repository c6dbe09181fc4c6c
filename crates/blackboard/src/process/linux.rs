//! Processes on Linux, from `/proc`.
//!
//! Hooks wait for this, so a check reads few files: `stat`, two more for ancestors that are neither shells nor
//! wrappers, and one more for shells if no ancestor is an agent. What a process can choose (its name, its arguments) is
//! untrusted: it may be any bytes, and its length is limited here.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::parent_id;
use std::path::Path;
use std::process;

use super::ancestors::complete_shells;
use super::program::{is_agent, is_passed_over};
use super::{ANCESTORS_MAX, HostIdentity, ProcessInfo, ProcessState, host_id, signal};

/// Enough bytes for the first 22 fields with any values.
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
        // If `/proc` is mounted with `hidepid`, it hides processes of other users. A signal still finds them.
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

/// The place of the first of these processes that reads the standard output of this one through a pipe.
pub(super) fn output_reader(chain: &[ProcessInfo]) -> Option<usize> {
    let output = fs::read_link("/proc/self/fd/1").ok()?;
    output.to_str()?.strip_prefix("pipe:")?;
    chain.iter().position(|process| reads(process.pid, &output))
}

/// Whether a process has the end of a pipe open from which it reads.
fn reads(pid: u32, pipe: &Path) -> bool {
    let Ok(files) = fs::read_dir(format!("/proc/{pid}/fd")) else { return false };
    files.flatten().map(|file| file.path()).any(|file| {
        fs::read_link(&file).is_ok_and(|target| target == pipe)
            // The permissions of the link are those of the open file.
            && fs::symlink_metadata(&file).is_ok_and(|link| link.mode() & 0o400 != 0)
    })
}

/// Adds the arguments of all shells. [`ancestors`] adds those that [`find_agent`](super::find_agent) needs.
pub(super) fn complete_arguments(chain: &mut [ProcessInfo]) {
    for process in chain.iter_mut().filter(|process| process.arguments.is_empty()) {
        process.arguments = arguments(process.pid);
    }
}

/// Whether a process started with this variable in its environment (`NAME=value`).
pub(super) fn started_with(pid: u32, variable: &str) -> bool {
    let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    environment.split(|&byte| byte == 0).any(|known| known == variable.as_bytes())
}

fn host() -> String {
    let machine = line("/etc/machine-id");
    // In the image of a system, the file is empty or has this word until the first boot.
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

    /// The name may contain spaces, newlines and parentheses, so it ends at the last parenthesis.
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
    // An update replaces the program of an agent that is running.
    if let Some(length) = path.strip_suffix(" (deleted)").map(str::len) {
        path.truncate(length);
    }
    path
}

fn arguments(pid: u32) -> Vec<String> {
    let bytes = read_start(&format!("/proc/{pid}/cmdline"), ARGUMENTS_MAX).unwrap_or_default();
    let mut arguments: Vec<String> =
        bytes.split(|&byte| byte == 0).map(|part| lossy(part.to_vec())).collect();
    // Each argument ends with a zero byte. A process that sets its title leaves more zero bytes after it.
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
