//! Operating-system processes: which one a PID means, whether it still runs, and which ancestor of this command is
//! the agent.
//!
//! A PID does not identify a process: it is valid in one PID namespace of one boot of one machine, and it is reused. A
//! [`ProcessIdentity`] is stored with it, and both together identify the process. If the state of a process cannot be
//! determined, it is [`Liveness::Unknown`], and the time since the last heartbeat decides.
//!
//! Nothing here sends a signal, starts a process or delays its end. Nothing here reads the environment or knows an
//! agent by name. The caller passes the names of agents and their declared PIDs to [`find_agent`].

use std::fmt;
use std::str::FromStr;
use std::sync::OnceLock;

#[cfg(unix)]
use uuid::Uuid;

use crate::error::{Error, Result};

mod ancestors;
mod fake;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(not(unix))]
mod other;
mod owner;
mod program;
#[cfg(unix)]
mod signal;
// Linux compiles it for its tests, so that the fallback is tested.
#[cfg(all(unix, any(test, not(target_os = "linux"))))]
mod unix;

#[cfg(target_os = "linux")]
use linux as system;
#[cfg(not(unix))]
use other as system;
#[cfg(all(unix, not(target_os = "linux")))]
use unix as system;

pub use ancestors::{Found, ancestors_of_script, find_agent, find_client};
pub use fake::{FakeProcesses, fake_chain, fake_process};

/// The maximum number of ancestors that are read.
pub const ANCESTORS_MAX: usize = 32;

/// What identifies the process of a PID: where the PID is valid, and when the process started.
///
/// Its text is stored with the PID, as `host/boot/namespace/started`; no part contains a slash.
///
/// ```
/// use blackboard::process::ProcessIdentity;
///
/// let mark: ProcessIdentity = "laptop/first-boot/4026531836/59235".parse()?;
/// assert_eq!(mark.started, 59235);
/// assert_eq!(mark.to_string(), "laptop/first-boot/4026531836/59235");
/// # Ok::<(), blackboard::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ProcessIdentity {
    /// The machine, as an id that reveals nothing else about it.
    pub host: String,
    /// The boot of the machine; empty if unknown.
    pub boot: String,
    /// The PID namespace of the PID; empty where there is only one.
    pub namespace: String,
    /// When the process started, in a unit of the system, counted from the boot; 0 if unknown.
    pub started: u64,
}

impl fmt::Display for ProcessIdentity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}/{}/{}", self.host, self.boot, self.namespace, self.started)
    }
}

impl FromStr for ProcessIdentity {
    type Err = Error;

    fn from_str(text: &str) -> Result<ProcessIdentity> {
        let mut parts = text.split('/');
        if let (Some(host), Some(boot), Some(namespace), Some(started), None) =
            (parts.next(), parts.next(), parts.next(), parts.next(), parts.next())
            && let Ok(started) = started.parse()
        {
            let [host, boot, namespace] = [host, boot, namespace].map(str::to_owned);
            return Ok(ProcessIdentity { host, boot, namespace, started });
        }
        Err(Error::invalid(format!("\"{text}\" is not a process identity (host/boot/namespace/started)")))
    }
}

/// Whether a process still runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Liveness {
    /// It runs.
    Alive,
    /// It has ended, even if another process has its PID now.
    Dead,
    /// It belongs to another machine or PID namespace, or the system hides it.
    Unknown,
}

impl Liveness {
    /// The name in JSON output.
    pub fn as_str(self) -> &'static str {
        match self {
            Liveness::Alive => "alive",
            Liveness::Dead => "dead",
            Liveness::Unknown => "unknown",
        }
    }
}

/// An ancestor of this process, as far as the system shows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcessInfo {
    /// Its PID in the PID namespace of this process.
    pub pid: u32,
    /// Its parent; 0 if it has none here.
    pub parent: u32,
    /// Its short name in the system: on Linux `comm`, at most 15 bytes, which a process may choose.
    pub name: String,
    /// The path of its program; empty if it cannot be read, or if the name is enough (shells and wrappers).
    pub executable: String,
    /// Its first arguments, starting with the name that it was called by. Empty if `executable` is empty, except for
    /// shells if no ancestor is an agent.
    pub arguments: Vec<String>,
    /// Whether it has a controlling terminal.
    pub terminal: bool,
    /// Whether it leads its process group. Every job of an interactive shell does, a `$(…)` does not.
    pub group_leader: bool,
}

/// The processes of the machine, as the board sees them.
pub trait Processes: Send + Sync {
    /// The identity of the process that has `pid` now. `None` if the process does not exist or cannot be identified
    /// here.
    fn mark(&self, pid: u32) -> Option<ProcessIdentity>;

    /// Whether the process that had `pid` when `mark` was recorded still runs. Without an identity any process with
    /// that PID counts.
    fn liveness(&self, pid: u32, mark: Option<&ProcessIdentity>) -> Liveness;

    /// The id of this machine, empty if unknown.
    fn host(&self) -> String;

    /// The id of this boot of this machine, empty if unknown. Values of a monotonic clock are valid only in one boot.
    fn boot(&self) -> String;

    /// The ancestors of the calling process, nearest first, at most [`ANCESTORS_MAX`]; none if the system does not
    /// show them. If one of them is one of these agents, the arguments of shells are omitted. They cost a system call
    /// each, and [`find_agent`] does not need them.
    fn ancestors(&self, agents: &[&str]) -> Vec<ProcessInfo>;
}

/// The processes of the operating system.
///
/// ```
/// use blackboard::process::{Liveness, Processes, SystemProcesses};
///
/// let processes = SystemProcesses::default();
/// let pid = std::process::id();
/// let mark = processes.mark(pid);
/// # #[cfg(unix)]
/// assert_eq!(processes.liveness(pid, mark.as_ref()), Liveness::Alive);
/// ```
#[derive(Debug, Default)]
pub struct SystemProcesses {
    // A process stays on its machine, in its boot and in its PID namespace, so one read is enough.
    place: OnceLock<HostIdentity>,
}

impl SystemProcesses {
    /// The ancestors for a command whose output a shell evaluates, from the process on that reads that output. Processes
    /// between the two, for example a helper script, end with the command. The chain is complete if one of them is an
    /// agent, or if no ancestor reads the output through a pipe.
    pub fn ancestors_of_evaluated_command(&self, agents: &[&str]) -> Vec<ProcessInfo> {
        let mut chain = self.ancestors(agents);
        let reader = system::output_reader(&chain).unwrap_or_default();
        if !chain[..reader].iter().any(|process| program::is_agent(process, agents)) {
            chain.drain(..reader);
            system::complete_arguments(&mut chain);
        }
        chain
    }

    /// The script or agent that a variable of the environment belongs to (`NAME=value`). For a session of the environment
    /// whose process is gone: its registration may have come from a helper script.
    pub fn owner_of_variable(&self, agents: &[&str], variable: &str) -> Option<u32> {
        let mut chain = self.ancestors(agents);
        system::complete_arguments(&mut chain);
        owner::find_owner(&chain, agents, |pid| system::started_with(pid, variable))
    }

    fn place(&self) -> &HostIdentity {
        self.place.get_or_init(system::place)
    }
}

impl Processes for SystemProcesses {
    fn mark(&self, pid: u32) -> Option<ProcessIdentity> {
        let place = self.place();
        place.mark(system::look(place, pid))
    }

    fn liveness(&self, pid: u32, mark: Option<&ProcessIdentity>) -> Liveness {
        let place = self.place();
        place.liveness(mark, || system::look(place, pid))
    }

    fn host(&self) -> String {
        self.place().host.clone()
    }

    fn boot(&self) -> String {
        self.place().boot.clone()
    }

    fn ancestors(&self, agents: &[&str]) -> Vec<ProcessInfo> {
        system::ancestors(self.place(), agents)
    }
}

/// Whether no process has this PID, as far as one system call shows. That is cheaper than [`Processes::liveness`], which has
/// to confirm it: the PID may belong to another namespace or machine.
pub fn is_unused(pid: u32) -> bool {
    #[cfg(unix)]
    return signal::probe(pid) == ProcessState::Gone;
    #[cfg(not(unix))]
    return pid != 0;
}

/// Where the PIDs of this process are valid.
#[derive(Clone, Debug)]
struct HostIdentity {
    host: String,
    boot: String,
    /// `None` if the PIDs that the system shows may not be those that this process uses.
    namespace: Option<String>,
}

/// The state of a PID at this moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ProcessState {
    /// A process runs; its start is unknown if the system hides it.
    Running { started: Option<u64> },
    /// The process does not exist, or only its exit status is left.
    Gone,
    /// The system does not show it.
    Hidden,
}

impl HostIdentity {
    fn mark(&self, sight: ProcessState) -> Option<ProcessIdentity> {
        let ProcessState::Running { started } = sight else { return None };
        Some(ProcessIdentity {
            host: self.host.clone(),
            boot: self.boot.clone(),
            namespace: self.namespace.clone()?,
            started: started.unwrap_or(0),
        })
    }

    /// The rule of liveness. `look` is called only if the identity is of this host.
    fn liveness(&self, mark: Option<&ProcessIdentity>, look: impl FnOnce() -> ProcessState) -> Liveness {
        if let Some(mark) = mark {
            if mark.host != self.host {
                return Liveness::Unknown;
            }
            // Checked before the namespace: no namespace outlives its boot.
            if mark.boot != self.boot {
                let boots_known = !mark.boot.is_empty() && !self.boot.is_empty();
                return if boots_known { Liveness::Dead } else { Liveness::Unknown };
            }
            if self.namespace.as_ref() != Some(&mark.namespace) {
                return Liveness::Unknown;
            }
        }
        match (look(), mark) {
            (ProcessState::Gone, _) => Liveness::Dead,
            (ProcessState::Hidden, _) => Liveness::Unknown,
            (ProcessState::Running { started: Some(started) }, Some(mark))
                if mark.started != 0 && mark.started != started =>
            {
                Liveness::Dead
            }
            (ProcessState::Running { .. }, _) => Liveness::Alive,
        }
    }
}

/// The id of a host. The machine id is confidential according to its manual page, and an export contains identities.
/// So only a hash is stored.
#[cfg(unix)]
fn host_id(known: &[u8]) -> String {
    Uuid::new_v5(&HOST_NAMESPACE, known).simple().to_string()
}

#[cfg(unix)]
const HOST_NAMESPACE: Uuid = Uuid::from_u128(0x6a1f_0c5e_93d2_4b7f_8e44_5b1d_72c9_a0f3);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn place() -> HostIdentity {
        HostIdentity { host: "here".into(), boot: "now".into(), namespace: Some("7".into()) }
    }

    fn mark(text: &str) -> ProcessIdentity {
        text.parse().unwrap()
    }

    #[test]
    fn process_of_another_host_is_judged_without_a_probe() {
        for (text, expected) in [
            ("there/now/7/100", Liveness::Unknown),
            ("there/before/7/100", Liveness::Unknown),
            ("here/before/7/100", Liveness::Dead),
            ("here/before/8/100", Liveness::Dead),
            ("here//7/100", Liveness::Unknown),
            ("here/now/8/100", Liveness::Unknown),
            ("here/now//100", Liveness::Unknown),
        ] {
            let unexpected = || panic!("{text}: the process was looked at");
            assert_eq!(place().liveness(Some(&mark(text)), unexpected), expected, "{text}");
        }
    }

    #[test]
    fn unidentified_host_never_reports_foreign_processes_dead() {
        let gone = || ProcessState::Gone;
        let no_boot = HostIdentity { boot: String::new(), ..place() };
        assert_eq!(no_boot.liveness(Some(&mark("here/now/7/100")), gone), Liveness::Unknown);
        assert_eq!(no_boot.liveness(Some(&mark("here//7/100")), gone), Liveness::Dead);

        let no_namespace = HostIdentity { namespace: None, ..place() };
        assert_eq!(no_namespace.liveness(Some(&mark("here/now//100")), gone), Liveness::Unknown);
        assert_eq!(no_namespace.mark(ProcessState::Running { started: Some(100) }), None);
    }

    #[test]
    fn process_of_this_host_is_judged_by_its_state_and_start() {
        let running = |started| ProcessState::Running { started };
        for (sight, text, expected) in [
            (running(Some(100)), Some("here/now/7/100"), Liveness::Alive),
            (running(Some(101)), Some("here/now/7/100"), Liveness::Dead),
            (running(Some(100)), Some("here/now/7/0"), Liveness::Alive),
            (running(None), Some("here/now/7/100"), Liveness::Alive),
            (running(Some(100)), None, Liveness::Alive),
            (ProcessState::Gone, Some("here/now/7/100"), Liveness::Dead),
            (ProcessState::Gone, None, Liveness::Dead),
            (ProcessState::Hidden, Some("here/now/7/100"), Liveness::Unknown),
            (ProcessState::Hidden, None, Liveness::Unknown),
        ] {
            assert_eq!(place().liveness(text.map(mark).as_ref(), || sight), expected, "{sight:?} {text:?}");
        }
    }

    #[test]
    fn invalid_process_identity_text_is_refused() {
        for text in
            ["", "////", "a/b/c", "a/b/c/", "a/b/c/d", "a/b/c/-1", "a/b/c/1/2", "a/b/c/18446744073709551616"]
        {
            assert!(text.parse::<ProcessIdentity>().is_err(), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn process_identity_round_trips_through_text(host in "[^/]*", boot in "[^/]*", namespace in "[^/]*", started: u64) {
            testkit::limit_test();
            let mark = ProcessIdentity { host, boot, namespace, started };
            prop_assert_eq!(mark.to_string().parse::<ProcessIdentity>().unwrap(), mark);
        }
    }
}
