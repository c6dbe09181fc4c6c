//! Systems whose processes this program cannot inspect yet, for example Windows. Every process is unknown, and the
//! time since the last heartbeat decides.

use super::{HostIdentity, ProcessInfo, ProcessState};

pub(super) fn place() -> HostIdentity {
    HostIdentity { host: String::new(), boot: String::new(), namespace: None }
}

pub(super) fn look(_place: &HostIdentity, _pid: u32) -> ProcessState {
    ProcessState::Hidden
}

pub(super) fn ancestors(_place: &HostIdentity, _agents: &[&str]) -> Vec<ProcessInfo> {
    Vec::new()
}

/// Open files of other processes are not visible here.
pub(super) fn output_reader(_chain: &[ProcessInfo]) -> Option<usize> {
    None
}

/// Arguments of other processes are not visible here.
pub(super) fn complete_arguments(_chain: &mut [ProcessInfo]) {}

/// The environment of other processes is not visible here.
pub(super) fn started_with(_pid: u32, _variable: &str) -> bool {
    false
}
