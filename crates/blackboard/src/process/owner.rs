//! Finds the process that a session of the environment belongs to, for a session whose process is gone.
//!
//! The process that sets a variable for its commands does not show it, because the system shows the environment that a
//! process started with. So the owner is the nearest script that started without the variable. If all of them started
//! with it, the owner is the outermost one. An agent counts only if it started with the variable: it has a session of its
//! own otherwise.

use super::ProcessInfo;
use super::ancestors::{is_terminal_shell, outermost};
use super::program::{is_agent, is_passed_over, is_shell, runs_script};

/// The owner among the ancestors of a command, nearest first. `has_variable` is whether a process started with the
/// variable. Every other program ends the search: it may run commands for any session.
pub(super) fn find_owner(
    chain: &[ProcessInfo],
    agents: &[&str],
    has_variable: impl Fn(u32) -> bool,
) -> Option<u32> {
    let mut owner = None;
    let mut rest = chain;
    while let Some(process) = rest.first() {
        if runs_script(process) {
            let script = outermost(rest);
            if !has_variable(script.pid) {
                return Some(script.pid);
            }
            owner = Some(script.pid);
            let place = rest.iter().position(|process| process.pid == script.pid).unwrap_or_default();
            rest = &rest[place..];
        } else if is_agent(process, agents) && has_variable(process.pid) {
            return Some(process.pid);
        } else if is_terminal_shell(process) || !(is_shell(process) || is_passed_over(&process.name)) {
            return owner;
        }
        rest = &rest[1..];
    }
    owner
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chain(commands: &[&str]) -> Vec<ProcessInfo> {
        let processes = commands.iter().zip((0..100).rev()).map(|(command, pid)| {
            let is_terminal = *command == "terminal";
            let arguments: Vec<String> = if is_terminal {
                vec!["bash".to_owned()]
            } else {
                command.split(' ').map(str::to_owned).collect()
            };
            let name = arguments[0].clone();
            let executable = format!("/usr/bin/{name}");
            let (terminal, group_leader) = (is_terminal, is_terminal);
            ProcessInfo { pid, parent: pid - 1, name, executable, arguments, terminal, group_leader }
        });
        processes.collect()
    }

    #[test]
    fn owner_is_the_nearest_script_that_started_without_the_variable() {
        testkit::limit_test();
        for (commands, with_variable, expected) in [
            (&["bash main.sh", "terminal"][..], &[][..], Some(99)),
            (&["bash main.sh", "bash main.sh", "terminal"], &[], Some(98)),
            (&["bash step.sh", "bash main.sh", "terminal"], &[99], Some(98)),
            (&["bash step.sh", "bash main.sh", "bash all.sh"], &[99], Some(98)),
            (&["bash step.sh", "timeout 9 bash", "sh -c x", "python3 main.py", "cron"], &[99], Some(96)),
            (&["bash main.sh", "terminal"], &[99], Some(99)),
            (&["bash -c x", "bash main.sh"], &[], Some(98)),
            (&["terminal", "bash main.sh"], &[], None),
            (&["cargo test", "bash ci.sh"], &[], None),
            (&["bash step.sh", "cargo test", "bash ci.sh"], &[99], Some(99)),
            (&["sh -c x", "claude", "bash main.sh"], &[], None),
            (&["sh -c x", "claude", "bash main.sh"], &[98], Some(98)),
            (&[], &[], None),
        ] {
            let found = find_owner(&chain(commands), &["claude"], |pid| with_variable.contains(&pid));
            assert_eq!(found, expected, "{commands:?}");
        }
    }
}
