//! Finds the ancestor of a command that is the agent.
//!
//! The command that registers ends a moment later, and so does the shell that was started for it. The process to watch
//! is the nearest ancestor that is a known agent. If there is none, it is the nearest process that runs a script file,
//! or the nearest shell with a terminal.
//!
//! The rule is pure: the chain comes from [`Processes::ancestors`](super::Processes::ancestors), and the names of
//! agents from the caller. `program.rs` recognizes what a single process runs.

#[cfg(test)]
mod tests;

use super::ProcessInfo;
use super::program::{is_agent, is_shell, is_shell_name, is_shell_or_wrapper, runs_script};

/// The process of the agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// A known agent.
    Agent(u32),
    /// No agent, but a process that runs a script file.
    Script(u32),
    /// No agent, but a shell in a terminal.
    Shell(u32),
    /// No process runs as long as the agent. Its PID is unknown, so only the time since its last heartbeat decides
    /// whether it is alive.
    Nothing,
}

impl Found {
    /// The PID to store.
    pub fn pid(self) -> Option<u32> {
        match self {
            Found::Agent(pid) | Found::Script(pid) | Found::Shell(pid) => Some(pid),
            Found::Nothing => None,
        }
    }
}

/// Finds the agent among the ancestors of a command, nearest first.
///
/// `agents` are the names of agents: of their commands, and of the packages that contain them. `declared` are the PIDs that
/// agents put into the environment. An agent that is started by another agent inherits them, so a PID counts only if it is on
/// the chain and no agent is nearer.
///
/// ```
/// use blackboard::process::{Found, ProcessInfo, find_agent};
///
/// let process = |pid, name: &str| ProcessInfo { pid, name: name.to_owned(), ..ProcessInfo::default() };
/// let chain = [process(30, "sh"), process(20, "claude"), process(10, "zsh")];
/// assert_eq!(find_agent(&chain, &["claude"], &[]), Found::Agent(20));
/// assert_eq!(find_agent(&chain, &["codex"], &[]), Found::Nothing);
/// assert_eq!(find_agent(&chain, &["codex"], &[20]), Found::Agent(20));
/// ```
pub fn find_agent(chain: &[ProcessInfo], agents: &[&str], declared: &[u32]) -> Found {
    let stands_for_agent =
        |process: &&ProcessInfo| declared.contains(&process.pid) || is_agent(process, agents);
    // An agent with PID 1 is the sandbox of one command. Its PIDs are not valid outside of the sandbox, or later.
    if chain.last().filter(|last| last.pid == 1).is_some_and(|first| stands_for_agent(&first)) {
        return Found::Nothing;
    }
    // If a launcher and the program that it launched both match, the program is nearer.
    if let Some(agent) = chain.iter().find(stands_for_agent) {
        return Found::Agent(agent.pid);
    }
    for (index, process) in chain.iter().enumerate() {
        if runs_script(process) {
            return Found::Script(outermost(&chain[index..]).pid);
        }
        if is_terminal_shell(process) {
            return Found::Shell(process.pid);
        }
    }
    Found::Nothing
}

/// Finds the client that started this process, among its ancestors, nearest first. It is the first one that is
/// neither a shell nor a wrapper, whatever its name. `None` if that is PID 1, which adopts orphans.
///
/// ```
/// use blackboard::process::{ProcessInfo, find_client};
///
/// let process = |pid, name: &str| ProcessInfo { pid, name: name.to_owned(), ..ProcessInfo::default() };
/// let chain = [process(40, "sh"), process(30, "npx"), process(20, "editor"), process(10, "claude")];
/// assert_eq!(find_client(&chain), Some(20));
/// ```
pub fn find_client(chain: &[ProcessInfo]) -> Option<u32> {
    chain
        .iter()
        .find(|process| !is_shell_or_wrapper(process))
        .map(|process| process.pid)
        .filter(|pid| *pid != 1)
}

/// The ancestors of a script, nearest first, up to the nearest shell in a terminal. A script that has not registered
/// acts for the session of one of them.
pub fn ancestors_of_script(chain: &[ProcessInfo], script: u32) -> &[ProcessInfo] {
    let outside = chain.iter().position(|process| process.pid == script).map_or(0, |place| place + 1);
    let outside = &chain[outside..];
    let terminal = outside.iter().position(is_terminal_shell);
    terminal.map_or(outside, |terminal| &outside[..=terminal])
}

/// A shell that does not lead its process group was forked for a `$(…)` or a pipe and ends a moment later.
pub(super) fn is_terminal_shell(process: &ProcessInfo) -> bool {
    process.terminal && process.group_leader && is_shell(process)
}

/// The process of the script itself, which the script knows as `$$`. A `$(…)`, a pipe or a `( … )` in the script is a
/// copy of this process with the same arguments, and may end a moment later.
pub(super) fn outermost(chain: &[ProcessInfo]) -> &ProcessInfo {
    let copies = chain.windows(2).take_while(|pair| is_copy(&pair[0], &pair[1]));
    &chain[copies.count()]
}

fn is_copy(copy: &ProcessInfo, original: &ProcessInfo) -> bool {
    is_shell(original)
        && copy.arguments == original.arguments
        && copy.executable == original.executable
        && copy.name == original.name
}

/// Adds the arguments of the shells that [`find_agent`] checks if no process is an agent. These are the shells up to
/// the first one that runs a script or has a terminal, and those that it is a copy of.
pub(super) fn complete_shells(chain: &mut [ProcessInfo], arguments: impl Fn(u32) -> Vec<String>) {
    let mut in_script = false;
    for index in 0..chain.len() {
        let process = &mut chain[index];
        if is_shell_name(&process.name) {
            process.arguments = arguments(process.pid);
        }
        let process = &chain[index];
        if in_script && !is_copy(&chain[index - 1], process) {
            return;
        }
        in_script = in_script || runs_script(process);
        if !in_script && is_terminal_shell(process) {
            return;
        }
    }
}
