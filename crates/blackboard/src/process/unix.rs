//! Processes on macOS and other Unixes, as far as they are visible without `unsafe` calls: existence, and the direct
//! parent.
//!
//! The start of a process, the boot and further ancestors are missing. So a reused PID counts as alive until the new
//! process ends. An agent is found only if it is the parent and has declared its PID to the caller.

use std::os::unix::process::parent_id;

use super::{HostIdentity, ProcessInfo, ProcessState, host_id, signal};

pub(super) fn place() -> HostIdentity {
    HostIdentity {
        host: host_id(rustix::system::uname().nodename().to_bytes()),
        boot: String::new(),
        namespace: Some(String::new()),
    }
}

pub(super) fn look(_place: &HostIdentity, pid: u32) -> ProcessState {
    signal::probe(pid)
}

pub(super) fn ancestors(_place: &HostIdentity, _agents: &[&str]) -> Vec<ProcessInfo> {
    vec![ProcessInfo { pid: parent_id(), ..ProcessInfo::default() }]
}

/// Open files of other processes are not visible here.
#[cfg(not(target_os = "linux"))]
pub(super) fn output_reader(_chain: &[ProcessInfo]) -> Option<usize> {
    None
}

/// Arguments of other processes are not visible here.
#[cfg(not(target_os = "linux"))]
pub(super) fn complete_arguments(_chain: &mut [ProcessInfo]) {}

/// The environment of other processes is not visible here.
#[cfg(not(target_os = "linux"))]
pub(super) fn started_with(_pid: u32, _variable: &str) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::super::{Found, Liveness, find_agent};
    use super::*;

    #[test]
    fn process_is_identified_by_its_host_and_judged_by_existence() {
        let (place, pid) = (place(), std::process::id());
        let mark = place.mark(look(&place, pid)).unwrap();
        assert_eq!((mark.boot.as_str(), mark.namespace.as_str(), mark.started), ("", "", 0));
        assert_eq!(place.liveness(Some(&mark), || look(&place, pid)), Liveness::Alive);
    }

    #[test]
    fn the_parent_is_the_agent_if_its_pid_is_declared() {
        let chain = ancestors(&place(), &[]);
        assert_eq!(find_agent(&chain, &[], &[]), Found::Nothing);
        // A process with PID 1 is a sandbox, not an agent.
        let expected = if parent_id() == 1 { Found::Nothing } else { Found::Agent(parent_id()) };
        assert_eq!(find_agent(&chain, &[], &[parent_id()]), expected);
    }
}
