//! Processes that a test starts, ends and moves.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{HostIdentity, Liveness, ProcessIdentity, ProcessInfo, ProcessState, Processes};

/// Processes that a test starts and ends. The same rules apply as to real ones.
///
/// ```
/// use blackboard::process::{FakeProcesses, Liveness, Processes};
///
/// let processes = FakeProcesses::default();
/// let first = processes.start(4711);
/// assert_eq!(processes.liveness(4711, Some(&first)), Liveness::Alive);
///
/// // The PID is reused: the first process is still dead.
/// let second = processes.start(4711);
/// assert_eq!(processes.liveness(4711, Some(&first)), Liveness::Dead);
/// assert_eq!(processes.liveness(4711, Some(&second)), Liveness::Alive);
/// ```
#[derive(Debug, Default)]
pub struct FakeProcesses(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// Appended to the name of the machine.
    machine: String,
    boots: u64,
    started: u64,
    running: BTreeMap<u32, u64>,
    ancestors: Vec<ProcessInfo>,
}

/// A process with this name, program and arguments, for a [`fake_chain`].
pub fn fake_process(name: &str, executable: &str, arguments: &str) -> ProcessInfo {
    ProcessInfo {
        name: name.to_owned(),
        executable: executable.to_owned(),
        arguments: arguments.split_whitespace().map(str::to_owned).collect(),
        ..ProcessInfo::default()
    }
}

/// These processes as ancestors, nearest first, with the PIDs 100, 99 and so on.
///
/// ```
/// use blackboard::process::{Found, fake_chain, fake_process, find_agent};
///
/// let shell = fake_process("sh", "/usr/bin/sh", "sh worker.sh");
/// let agent = fake_process("node", "/usr/bin/node", "node /usr/bin/claude");
/// assert_eq!(find_agent(&fake_chain([shell, agent]), &["claude"], &[]), Found::Agent(99));
/// ```
pub fn fake_chain<const N: usize>(processes: [ProcessInfo; N]) -> Vec<ProcessInfo> {
    let numbered = (0..).zip(processes);
    numbered.map(|(place, info)| ProcessInfo { pid: 100 - place, parent: 99 - place, ..info }).collect()
}

impl FakeProcesses {
    /// The processes of another machine than the default one.
    pub fn of_machine(name: &str) -> FakeProcesses {
        FakeProcesses(Mutex::new(State { machine: format!("-{name}"), ..State::default() }))
    }

    /// Starts a process with this PID. If another process has the PID, it ends.
    pub fn start(&self, pid: u32) -> ProcessIdentity {
        let mut state = self.state();
        state.started += 1;
        let started = state.started;
        state.running.insert(pid, started);
        state.mark(started)
    }

    /// Ends the process with this PID.
    pub fn end(&self, pid: u32) {
        self.state().running.remove(&pid);
    }

    /// Reboots the machine: every process ends.
    pub fn reboot(&self) {
        let mut state = self.state();
        state.boots += 1;
        state.running.clear();
    }

    /// Sets the ancestors of the caller, nearest first.
    pub fn descend_from(&self, ancestors: Vec<ProcessInfo>) {
        self.state().ancestors = ancestors;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn mark(&self, started: u64) -> ProcessIdentity {
        ProcessIdentity {
            host: format!("fake-host{}", self.machine),
            boot: format!("boot{}-{}", self.machine, self.boots),
            namespace: "fake-namespace".to_owned(),
            started,
        }
    }

    fn place(&self) -> HostIdentity {
        let ProcessIdentity { host, boot, namespace, .. } = self.mark(0);
        HostIdentity { host, boot, namespace: Some(namespace) }
    }

    fn look(&self, pid: u32) -> ProcessState {
        match self.running.get(&pid) {
            Some(&started) => ProcessState::Running { started: Some(started) },
            None => ProcessState::Gone,
        }
    }
}

impl Processes for FakeProcesses {
    fn mark(&self, pid: u32) -> Option<ProcessIdentity> {
        let state = self.state();
        state.place().mark(state.look(pid))
    }

    fn liveness(&self, pid: u32, mark: Option<&ProcessIdentity>) -> Liveness {
        let state = self.state();
        state.place().liveness(mark, || state.look(pid))
    }

    fn host(&self) -> String {
        self.state().place().host
    }

    fn boot(&self) -> String {
        self.state().place().boot
    }

    fn ancestors(&self, _agents: &[&str]) -> Vec<ProcessInfo> {
        self.state().ancestors.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fake_processes_end_by_call_and_by_reboot() {
        let processes = FakeProcesses::default();
        let (ended, rebooted) = (processes.start(10), processes.start(11));
        assert_eq!(processes.mark(10), Some(ended.clone()));

        processes.end(10);
        assert_eq!(processes.mark(10), None);
        assert_eq!(processes.liveness(10, Some(&ended)), Liveness::Dead);
        assert_eq!(processes.liveness(11, Some(&rebooted)), Liveness::Alive);

        let boot = processes.boot();
        processes.reboot();
        assert_ne!(processes.boot(), boot);
        assert_eq!(processes.liveness(11, Some(&rebooted)), Liveness::Dead);
        assert_eq!(processes.liveness(11, None), Liveness::Dead);
    }

    #[test]
    fn process_of_another_host_is_unknown() {
        let processes = FakeProcesses::default();
        let elsewhere = ProcessIdentity { host: "elsewhere".to_owned(), ..processes.start(10) };
        assert_eq!(processes.liveness(10, Some(&elsewhere)), Liveness::Unknown);
        let other = FakeProcesses::of_machine("other");
        assert_eq!(other.liveness(10, processes.mark(10).as_ref()), Liveness::Unknown);
        assert_ne!((other.host(), other.boot()), (processes.host(), processes.boot()));
    }
}
