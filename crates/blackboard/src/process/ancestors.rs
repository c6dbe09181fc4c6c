//! Finds the ancestor of a command that is the agent.
//!
//! The command that registers ends a moment later, and so does a shell that was started for it. The process to watch
//! is the nearest ancestor that is a known agent. Otherwise it is the nearest process that runs a script file, of
//! whatever interpreter, or the nearest shell that has a terminal.
//!
//! The rule is pure: the chain comes from [`Processes::ancestors`](super::Processes::ancestors), and the names of
//! agents from the caller. The names of commands and of their packages are enough. How a process shows such a name is
//! the same for all agents and is implemented here.

use super::ProcessInfo;

/// Shells: never an agent, but one that runs a script or has a terminal acts for that script or for its user.
const SHELLS: &[&str] = &[
    "ash", "bash", "csh", "dash", "fish", "ksh", "ksh93", "mksh", "nu", "pwsh", "sh", "tcsh", "yash", "zsh",
];

/// Options of shells whose value is the next argument.
const SHELL_OPTIONS_WITH_VALUE: &[&str] = &["--init-file", "--rcfile", "--init-command", "-C", "-O", "+O"];

/// Programs that run another one in their place. Their arguments may contain the name of an agent.
const WRAPPERS: &[&str] = &[
    "blackboard",
    "env",
    "just",
    "make",
    "nice",
    "nohup",
    "npm",
    "npx",
    "pnpm",
    "setsid",
    "sudo",
    "timeout",
    "uv",
    "uvx",
    "xargs",
    "yarn",
];

/// What follows the name of an agent in a program for one system, for example `codex-x86_64-unknown-linux-musl`.
const SYSTEMS: &[&str] =
    &["aarch64", "arm64", "darwin", "linux", "macos", "win32", "windows", "x64", "x86_64"];

/// How many bytes of a name the system keeps.
const NAME_MAX: usize = 15;

/// How an interpreter other than a shell is called.
struct Interpreter {
    /// Its names. One that ends in a version (`python3.12`) counts too.
    names: &'static [&'static str],
    /// Letters of options that run their argument or standard input, so that there is no script.
    runs_argument: &'static [char],
    /// Letters of options whose value is the rest of the argument, or the next one.
    with_value: &'static [char],
    /// Letters of options whose value is the rest of the argument.
    with_rest: &'static [char],
    /// Long options whose value is the next argument.
    long_with_value: &'static [&'static str],
    /// Words before the script.
    subcommands: &'static [&'static str],
}

const INTERPRETERS: &[Interpreter] = &[
    Interpreter {
        names: &["python", "pypy"],
        runs_argument: &['c'],
        with_value: &['W', 'X'],
        with_rest: &[],
        long_with_value: &["--check-hash-based-pycs"],
        subcommands: &[],
    },
    Interpreter {
        names: &["node", "nodejs", "bun"],
        runs_argument: &['e', 'p'],
        with_value: &['C', 'r'],
        with_rest: &[],
        long_with_value: &[
            "--conditions",
            "--config",
            "--cwd",
            "--env-file",
            "--experimental-loader",
            "--import",
            "--loader",
            "--preload",
            "--require",
        ],
        subcommands: &["run"],
    },
    Interpreter {
        names: &["deno"],
        runs_argument: &[],
        with_value: &['c', 'L'],
        with_rest: &[],
        long_with_value: &["--cert", "--config", "--import-map", "--location", "--log-level", "--seed"],
        subcommands: &["run", "serve"],
    },
    Interpreter {
        names: &["ruby", "jruby", "truffleruby"],
        runs_argument: &['e'],
        with_value: &['C', 'I', 'r'],
        with_rest: &['E', 'F', 'K', 'T', 'W', 'i', 'x'],
        long_with_value: &["--encoding", "--external-encoding", "--internal-encoding"],
        subcommands: &[],
    },
    Interpreter {
        names: &["perl"],
        runs_argument: &['E', 'e'],
        with_value: &['I'],
        with_rest: &['C', 'D', 'F', 'M', 'V', 'i', 'm', 'x'],
        long_with_value: &[],
        subcommands: &[],
    },
    Interpreter {
        names: &["php"],
        runs_argument: &['B', 'R', 'a', 'r'],
        with_value: &['c', 'd', 'z'],
        with_rest: &[],
        long_with_value: &["--define", "--php-ini"],
        subcommands: &["-f", "--file"],
    },
    Interpreter {
        names: &["lua", "luajit"],
        runs_argument: &[],
        with_value: &['e', 'l'],
        with_rest: &['O', 'j'],
        long_with_value: &[],
        subcommands: &[],
    },
    Interpreter {
        names: &["Rscript"],
        runs_argument: &['e'],
        with_value: &[],
        with_rest: &[],
        long_with_value: &[],
        subcommands: &[],
    },
];

/// The process of the agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// A known agent.
    Agent(u32),
    /// No agent, but a process that runs a script file.
    Script(u32),
    /// No agent, but a shell in a terminal.
    Shell(u32),
    /// No process that runs as long as the agent: its PID stays unknown, and the time since its last heartbeat
    /// decides.
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
/// agents put into the environment. They leak into agents that are started by agents, so one counts only if it is on the chain
/// and no agent is nearer.
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
    // An agent that is PID 1 is the sandbox around one command: its PIDs mean nothing outside or later.
    if chain.last().filter(|last| last.pid == 1).is_some_and(|first| stands_for_agent(&first)) {
        return Found::Nothing;
    }
    // Of a launcher and the program that it launched, the nearest is the inner one.
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

/// The ancestors of a script, nearest first, up to the nearest shell in a terminal. A script that has not registered
/// acts for the session of one of them.
pub fn ancestors_of_script(chain: &[ProcessInfo], script: u32) -> &[ProcessInfo] {
    let outside = chain.iter().position(|process| process.pid == script).map_or(0, |place| place + 1);
    let outside = &chain[outside..];
    let terminal = outside.iter().position(is_terminal_shell);
    terminal.map_or(outside, |terminal| &outside[..=terminal])
}

/// A shell that does not lead its process group was forked for a `$(…)` or a pipe and ends a moment later.
fn is_terminal_shell(process: &ProcessInfo) -> bool {
    process.terminal && process.group_leader && is_shell(process)
}

/// Whether a process runs a script file, and so runs as long as the script. A `sh -c …` or `python -c …` runs only as
/// long as its command, and so does a script that is a wrapper, for example `yarn`.
fn runs_script(process: &ProcessInfo) -> bool {
    if is_shell(process) {
        return shell_script(process).is_some();
    }
    if is_passed_over(&process.name) {
        return false;
    }
    script(process).or_else(|| script_of_name(process)).is_some_and(|script| {
        let name = file_name(script);
        let name = name.split('.').next().unwrap_or(name);
        !is_passed_over(name.strip_suffix("-cli").unwrap_or(name))
    })
}

/// The script file of a process that has the name of the script: the system starts its interpreter with it, whatever that
/// is.
fn script_of_name(process: &ProcessInfo) -> Option<&str> {
    // One word can follow the interpreter in the first line of a script.
    let script = process.arguments.iter().skip(1).take(2).map(String::as_str);
    let program = file_name(&process.executable);
    script.filter(|script| script.contains('/')).find(|script| {
        let name = file_name(script);
        let is_name = name == process.name
            || (process.name.len() == NAME_MAX && name.starts_with(process.name.as_str()));
        is_name && !program.is_empty() && !program.starts_with(process.name.as_str())
    })
}

/// The script itself: a `$(…)`, a pipe or a `( … )` in it is a copy of its shell with the same arguments, and may end
/// a moment later. This is the process that the script knows as `$$`.
fn outermost(chain: &[ProcessInfo]) -> &ProcessInfo {
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

/// The script file that a shell runs.
fn shell_script(process: &ProcessInfo) -> Option<&str> {
    let (called, arguments) = process.arguments.split_first()?;
    let mut arguments = arguments.iter().map(String::as_str);
    if file_name(called) == "pwsh" {
        // PowerShell has long options, and most of them have a value.
        let first = arguments.next()?;
        if !first.starts_with('-') {
            return Some(first);
        }
        let is_file = |option: &str| ["-file", "-f"].iter().any(|file| file.eq_ignore_ascii_case(option));
        return if is_file(first) || arguments.any(is_file) { arguments.next() } else { None };
    }
    while let Some(argument) = arguments.next() {
        match argument {
            "--" | "-" => return arguments.next(),
            option if SHELL_OPTIONS_WITH_VALUE.contains(&option) => {
                arguments.next();
            }
            option if option.starts_with("--") => {
                // `--command` of fish and nu.
                if option.starts_with("--command") {
                    return None;
                }
            }
            option if option.starts_with(['-', '+']) => {
                let letters = &option[1..];
                // `-c` runs its argument, and `-s` standard input.
                if option.starts_with('-') && letters.contains(['c', 's']) {
                    return None;
                }
                // `-euo pipefail`.
                if letters.ends_with('o') {
                    arguments.next();
                }
            }
            "" => return None,
            script => return Some(script),
        }
    }
    None
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
    let passes_on = |process: &&ProcessInfo| {
        is_passed_over(&process.name) || is_passed_over(file_name(&process.executable))
    };
    chain.iter().find(|process| !passes_on(process)).map(|process| process.pid).filter(|pid| *pid != 1)
}

/// Whether a process of this name is a shell or a wrapper, so that its other properties do not matter.
pub(super) fn is_passed_over(name: &str) -> bool {
    // `npm exec …` sets its title.
    let command = name.split(' ').next().unwrap_or_default();
    SHELLS.contains(&command) || WRAPPERS.contains(&command)
}

/// Whether a process of this name is a shell.
pub(super) fn is_shell_name(name: &str) -> bool {
    SHELLS.contains(&name)
}

fn is_shell(process: &ProcessInfo) -> bool {
    // A script has its own name. Some shells have a program of another name (`busybox`) and are called as a shell.
    let called = process.arguments.first().map_or("", |called| file_name(called));
    is_shell_name(&process.name) || is_shell_name(file_name(&process.executable)) || is_shell_name(called)
}

/// Whether a process is one of these agents.
pub(super) fn is_agent(process: &ProcessInfo, agents: &[&str]) -> bool {
    // A script has its own name, and its program is the shell.
    if is_shell(process) || is_passed_over(&process.name) || is_passed_over(file_name(&process.executable)) {
        return false;
    }
    is_agent_name(&process.name, agents)
        || is_agent_path(&process.executable, agents)
        || process.arguments.first().is_some_and(|called| is_agent_path(called, agents))
        || script(process).is_some_and(|script| is_agent_path(script, agents))
}

/// The script that an interpreter runs, or the module.
fn script(process: &ProcessInfo) -> Option<&str> {
    let (called, arguments) = process.arguments.split_first()?;
    let interpreter =
        interpreter(file_name(&process.executable)).or_else(|| interpreter(file_name(called)))?;
    let mut arguments = arguments.iter().map(String::as_str);
    while let Some(argument) = arguments.next() {
        match argument {
            word if interpreter.subcommands.contains(&word) => {}
            "" | "-" | "eval" | "repl" | "--eval" | "--print" | "--run" => return None,
            "--" => return arguments.next(),
            option if interpreter.long_with_value.contains(&option) => {
                arguments.next();
            }
            option if option.starts_with("--") => {}
            option if option.starts_with('-') => {
                for (place, letter) in option.char_indices().skip(1) {
                    let is_last = place + letter.len_utf8() == option.len();
                    if letter == 'm' && interpreter.names.contains(&"python") {
                        return if is_last { arguments.next() } else { Some(&option[place + 1..]) };
                    }
                    if interpreter.runs_argument.contains(&letter) {
                        return None;
                    }
                    if interpreter.with_rest.contains(&letter) {
                        break;
                    }
                    if interpreter.with_value.contains(&letter) {
                        if is_last {
                            arguments.next();
                        }
                        break;
                    }
                }
            }
            script => return Some(script),
        }
    }
    None
}

fn interpreter(name: &str) -> Option<&'static Interpreter> {
    let name = name.strip_suffix(".exe").unwrap_or(name);
    let without_version =
        name.trim_end_matches(|character: char| character.is_ascii_digit() || character == '.');
    let name = without_version.trim_end_matches('-');
    INTERPRETERS.iter().find(|interpreter| interpreter.names.contains(&name))
}

/// Whether a path belongs to a program of an agent: by its last part, by the package in `node_modules`, or as one of
/// several installed versions (`…/claude/versions/2.1.325`). Other directories prove nothing: one may be called
/// `/home/claude`.
fn is_agent_path(path: &str, agents: &[&str]) -> bool {
    let parts: Vec<&str> = path.split(['/', '\\']).collect();
    let package = parts.iter().rposition(|part| *part == "node_modules").and_then(|modules| {
        let after = &parts[modules + 1..];
        after.iter().find(|part| !part.starts_with('@'))
    });
    let versioned = parts.windows(2).find(|pair| pair[1] == "versions").map(|pair| &pair[0]);
    [parts.last(), package, versioned].into_iter().flatten().any(|part| is_agent_name(part, agents))
}

fn is_agent_name(name: &str, agents: &[&str]) -> bool {
    let name = name.to_ascii_lowercase();
    let name = [".exe", ".js", ".mjs", ".cjs", ".py"]
        .iter()
        .find_map(|extension| name.strip_suffix(extension))
        .unwrap_or(&name);
    agents.iter().any(|agent| match name.strip_prefix(agent) {
        Some("") => true,
        Some(rest) => {
            rest.strip_prefix('-').is_some_and(|system| SYSTEMS.iter().any(|known| system.starts_with(known)))
        }
        None => false,
    })
}

fn file_name(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    const AGENTS: &[&str] = &[
        "aider",
        "amp",
        "claude",
        "codex",
        "cursor",
        "cursor-agent",
        "gemini",
        "gemini-cli",
        "goose",
        "opencode",
        "qwen-code",
    ];

    fn find_agent(chain: &[ProcessInfo], declared: &[u32]) -> Found {
        super::find_agent(chain, AGENTS, declared)
    }

    /// A process from its name, program and arguments.
    fn process(name: &str, executable: &str, arguments: &str) -> ProcessInfo {
        ProcessInfo {
            name: name.to_owned(),
            executable: executable.to_owned(),
            arguments: arguments.split_whitespace().map(str::to_owned).collect(),
            ..ProcessInfo::default()
        }
    }

    fn named(name: &str) -> ProcessInfo {
        process(name, &format!("/usr/bin/{name}"), name)
    }

    fn in_terminal(process: ProcessInfo) -> ProcessInfo {
        ProcessInfo { terminal: true, group_leader: true, ..process }
    }

    /// A chain, nearest first, with the PIDs 100, 99 and so on.
    fn chain<const N: usize>(processes: [ProcessInfo; N]) -> Vec<ProcessInfo> {
        let numbered = (0..).zip(processes);
        numbered.map(|(place, info)| ProcessInfo { pid: 100 - place, parent: 99 - place, ..info }).collect()
    }

    /// The same, but the last one is PID 1.
    fn to_first<const N: usize>(processes: [ProcessInfo; N]) -> Vec<ProcessInfo> {
        let mut chain = chain(processes);
        chain.last_mut().unwrap().pid = 1;
        chain
    }

    fn gemini() -> ProcessInfo {
        let script = "/usr/lib/node_modules/@google/gemini-cli/dist/index.js";
        process(
            "node",
            "/usr/bin/node",
            &format!("/usr/bin/node --max-old-space-size=8192 {script} -m flash"),
        )
    }

    fn codex_launcher() -> ProcessInfo {
        process("node", "/usr/bin/node", "node /usr/lib/node_modules/@openai/codex/bin/codex.js exec")
    }

    #[test]
    fn agent_is_recognized_by_name_program_call_or_script() {
        testkit::limit_test();
        for (name, executable, arguments) in [
            ("claude", "", ""),
            ("2.1.325", "/home/u/.local/share/claude/versions/2.1.325", "/elsewhere/2.1.325"),
            ("MainThread", "/usr/bin/node", "claude"),
            ("codex-x86_64-un", "/usr/local/bin/codex-x86_64-unknown-linux-musl", "codex"),
            ("Cursor", "/opt/Cursor/Cursor", "/opt/Cursor/Cursor"),
            ("node", "/home/u/.local/share/cursor-agent/versions/2026.11/node", "/usr/bin/agent index.js"),
            ("python3.12", "/usr/bin/python3.12", "/venv/bin/python /home/u/.local/bin/aider --yes"),
            ("python3", "/usr/bin/python3", "python3 -X utf8 -m aider"),
            ("MainThread", "/usr/bin/node", "node /usr/lib/node_modules/@sourcegraph/amp/dist/main.js"),
            ("node", "", "node -r /lib/hook.js /usr/lib/node_modules/@qwen-code/qwen-code/cli.js"),
            ("bun", "/usr/bin/bun", "bun run /usr/bin/gemini"),
            ("goose", "/usr/bin/goose", "goose session"),
            ("opencode.exe", r"C:\Tools\opencode.exe", r"C:\Tools\opencode.exe"),
        ] {
            let agent = process(name, executable, arguments);
            assert_eq!(find_agent(&chain([named("sh"), agent]), &[]), Found::Agent(99), "{name} {arguments}");
        }
    }

    #[test]
    fn process_that_only_mentions_an_agent_is_not_one() {
        testkit::limit_test();
        for (name, executable, arguments) in [
            ("vim", "/usr/bin/vim", "vim claude"),
            ("node", "/usr/bin/node", "node /home/claude/project/server.js"),
            ("node", "/usr/bin/node", "node server.js claude"),
            ("node", "/usr/bin/node", "node -e claude"),
            ("node", "/usr/bin/node", "node --require /usr/bin/claude server.js"),
            ("node", "/usr/bin/node", "node /x/node_modules/@google/gemini-cli/node_modules/other/cli.js"),
            ("node", "/usr/bin/node", "node"),
            ("python3", "/usr/bin/python3", "python3 -c claude"),
            ("sudo", "/usr/bin/sudo", "sudo claude"),
            ("npm exec @opena", "/usr/bin/node", "npm exec @openai/codex"),
            ("uvx", "/usr/bin/uvx", "uvx aider"),
            // A shell script with the name of an agent.
            ("claude", "/usr/bin/bash", "/bin/bash /home/u/bin/claude"),
            ("blackboard", "/usr/bin/blackboard", "blackboard run -- aider"),
            ("claude", "/usr/bin/blackboard", "claude"),
            ("claudette", "/usr/bin/claudette", "claudette"),
            ("codex-notes", "/usr/bin/codex-notes", "codex-notes"),
            ("", "", ""),
        ] {
            let other = process(name, executable, arguments);
            let found = find_agent(&chain([other, named("cron")]), &[]);
            assert!(!matches!(found, Found::Agent(_)), "{name} {arguments}");
        }
    }

    #[test]
    fn shells_and_wrappers_are_skipped() {
        testkit::limit_test();
        for wrapper in SHELLS.iter().chain(WRAPPERS) {
            let called_like_agent = process(wrapper, &format!("/usr/bin/{wrapper}"), "claude");
            assert_eq!(
                find_agent(&chain([called_like_agent, named("codex")]), &[]),
                Found::Agent(99),
                "{wrapper}"
            );
        }
    }

    #[test]
    fn nearest_of_nested_agents_is_found() {
        testkit::limit_test();
        let nested = chain([named("sh"), named("codex"), codex_launcher(), named("bash"), named("claude")]);
        assert_eq!(find_agent(&nested, &[]), Found::Agent(99));
        assert_eq!(find_agent(&nested, &[96]), Found::Agent(99), "the PID of the outer one leaked");
    }

    #[test]
    fn a_declared_pid_counts_on_the_chain_if_no_agent_is_nearer() {
        testkit::limit_test();
        let unknown = || process("renamed", "/opt/renamed", "renamed");
        for (chain, declared, expected) in [
            (chain([named("sh"), unknown(), named("init")]), &[99][..], Found::Agent(99)),
            (chain([named("sh"), unknown(), named("claude")]), &[99], Found::Agent(99)),
            (chain([named("claude"), unknown()]), &[99], Found::Agent(100)),
            (chain([unknown(), named("sh"), unknown()]), &[98, 100], Found::Agent(100)),
            (chain([named("sh"), unknown()]), &[4711], Found::Nothing),
            (to_first([named("sh"), unknown()]), &[1], Found::Nothing),
        ] {
            assert_eq!(find_agent(&chain, declared), expected, "{chain:?} {declared:?}");
        }
    }

    #[test]
    fn agent_as_pid_1_is_treated_as_a_sandbox() {
        testkit::limit_test();
        assert_eq!(
            find_agent(&to_first([named("claude"), named("bash"), named("codex")]), &[]),
            Found::Nothing
        );
        assert_eq!(find_agent(&to_first([in_terminal(named("bash")), gemini()]), &[100]), Found::Nothing);
        assert_eq!(find_agent(&to_first([named("claude"), named("systemd")]), &[]), Found::Agent(100));
    }

    #[test]
    fn nearest_terminal_shell_is_used_if_no_ancestor_is_an_agent() {
        testkit::limit_test();
        let substitution = || ProcessInfo { group_leader: false, ..in_terminal(named("bash")) };
        let script = || process("deploy.sh", "/usr/bin/bash", "/bin/bash ./deploy.sh");
        for (chain, expected) in [
            (chain([in_terminal(named("bash")), in_terminal(named("zsh"))]), Found::Shell(100)),
            (chain([named("sh"), in_terminal(named("make")), in_terminal(named("zsh"))]), Found::Shell(98)),
            (chain([substitution(), in_terminal(named("bash"))]), Found::Shell(99)),
            (chain([in_terminal(script()), in_terminal(named("zsh"))]), Found::Script(100)),
            (chain([named("sh"), named("cron")]), Found::Nothing),
            (chain([in_terminal(named("vim"))]), Found::Nothing),
            (to_first([named("sh"), in_terminal(named("bash"))]), Found::Shell(1)),
            (chain([]), Found::Nothing),
        ] {
            assert_eq!(find_agent(&chain, &[]), expected, "{chain:?}");
        }
        assert_eq!(
            [Found::Agent(7), Found::Script(9), Found::Shell(8), Found::Nothing].map(Found::pid),
            [Some(7), Some(9), Some(8), None]
        );
    }

    #[test]
    fn a_shell_that_runs_a_script_file_is_found_without_a_terminal() {
        testkit::limit_test();
        for (name, executable, arguments) in [
            ("bash", "", "bash worker.sh"),
            ("sh", "", "/bin/sh /etc/cron.daily/worker one -c two"),
            ("worker.sh", "/usr/bin/bash", "/bin/bash ./worker.sh"),
            ("worker", "/bin/busybox", "/bin/sh ./worker"),
            ("bash", "", "bash -eu worker.sh"),
            ("bash", "", "bash -euo pipefail worker.sh"),
            ("bash", "", "bash -o pipefail -O extglob worker.sh"),
            ("bash", "", "bash +x --norc --rcfile c worker.sh"),
            ("bash", "", "bash --rcfile c -- worker.sh"),
            ("bash", "", "bash /dev/fd/63"),
            ("zsh", "", "zsh -f worker.zsh"),
            ("fish", "", "fish -C c worker.fish"),
            ("nu", "", "nu worker.nu"),
            ("pwsh", "", "pwsh -NonInteractive -ExecutionPolicy Bypass -File worker.ps1"),
            ("pwsh", "", "pwsh worker.ps1"),
        ] {
            let script = process(name, executable, arguments);
            let found = find_agent(&chain([script, named("cron")]), &[]);
            assert_eq!(found, Found::Script(100), "{arguments}");
        }
    }

    #[test]
    fn a_shell_that_runs_one_command_or_its_input_is_not_found() {
        testkit::limit_test();
        for (name, arguments) in [
            ("sh", "sh -c worker.sh"),
            ("bash", "bash -lc worker.sh"),
            ("bash", "bash -euc worker.sh"),
            ("bash", "bash -o pipefail -c worker.sh"),
            ("zsh", "/bin/zsh -c -l source snapshot.sh && eval x"),
            ("bash", "bash -s worker"),
            ("bash", "-bash"),
            ("bash", "bash"),
            ("bash", "bash -o pipefail"),
            ("fish", "fish --command worker.fish"),
            ("pwsh", "pwsh -NoProfile -Command worker.ps1"),
            ("sh", ""),
        ] {
            let shell = process(name, "", arguments);
            assert_eq!(find_agent(&chain([shell, named("cron")]), &[]), Found::Nothing, "{arguments}");
        }
    }

    #[test]
    fn script_process_is_the_one_that_it_knows_as_its_pid() {
        testkit::limit_test();
        let script = || process("bash", "", "bash worker.sh");
        let other = || process("bash", "", "bash outer.sh");
        for (chain, expected, what) in [
            (chain([script(), script(), other(), named("cron")]), Found::Script(99), "a copy for `$(…)`"),
            (chain([named("timeout"), script(), other()]), Found::Script(99), "a wrapper in between"),
            (chain([process("sh", "", "sh -c x"), script()]), Found::Script(99), "one command in between"),
            (chain([script(), named("claude")]), Found::Agent(99), "an agent counts before its scripts"),
            (chain([script(), in_terminal(named("zsh"))]), Found::Script(100), "nearer than the terminal"),
            (chain([in_terminal(named("zsh")), script()]), Found::Shell(100), "a terminal in a script"),
            (to_first([script()]), Found::Script(1), "a container"),
        ] {
            assert_eq!(find_agent(&chain, &[]), expected, "{what}");
        }
    }

    #[test]
    fn ancestors_of_a_script_end_with_the_terminal() {
        testkit::limit_test();
        let script = || process("bash", "", "bash worker.sh");
        let pids = |chain: &[ProcessInfo]| -> Vec<u32> {
            ancestors_of_script(chain, 99).iter().map(|process| process.pid).collect()
        };
        let terminal = || in_terminal(named("zsh"));
        assert_eq!(pids(&chain([script(), script(), script(), terminal(), named("init")])), [98, 97]);
        assert_eq!(pids(&chain([script(), script(), script(), named("cron")])), [98, 97]);
    }

    #[test]
    fn a_script_of_another_interpreter_is_found() {
        testkit::limit_test();
        for (name, executable, arguments) in [
            ("python", "/usr/bin/python3.12", "python pw.py"),
            ("python3", "/usr/bin/python3.12", "python3 -u -W ignore -Xdev /w/pw.py --name -c"),
            ("python3", "/usr/bin/python3.12", "python3 -m worker"),
            ("python3", "/usr/bin/python3.12", "python3 -um worker"),
            ("pw.py", "/usr/bin/python3.12", "/usr/bin/python3 ./pw.py"),
            ("MainThread", "/usr/bin/node", "node --import tsx --env-file .env worker.ts"),
            ("node", "/usr/bin/node", "node -r dotenv/config worker.js"),
            ("bun", "/root/.bun/bin/bun", "bun run worker.ts"),
            ("deno", "/usr/bin/deno", "deno run -A --config deno.json worker.ts"),
            ("ruby", "/usr/bin/ruby3.2", "ruby -w -I lib worker.rb"),
            ("perl", "/usr/bin/perl", "perl -w -MTime::HiRes worker.pl"),
            ("php", "/usr/bin/php8.3", "php -d x=1 -f worker.php"),
            ("lua5.4", "/usr/bin/lua5.4", "lua -e x=1 worker.lua"),
            ("worker.R", "/usr/bin/Rscript", "Rscript --vanilla worker.R"),
            ("worker", "/opt/babashka/bb", "/opt/babashka/bb ./worker"),
            ("a-long-worker-n", "/usr/bin/tclsh8.6", "/usr/bin/tclsh ./a-long-worker-name.tcl"),
        ] {
            let script = process(name, executable, arguments);
            let terminal = in_terminal(named("bash"));
            assert_eq!(find_agent(&chain([script, terminal]), &[]), Found::Script(100), "{arguments}");
        }
    }

    #[test]
    fn an_interpreter_without_a_script_file_is_not_found() {
        testkit::limit_test();
        for (name, executable, arguments) in [
            ("python3", "/usr/bin/python3", "python3"),
            ("python3", "/usr/bin/python3", "python3 -c import.os"),
            ("python3", "/usr/bin/python3", "python3 -uc import.os worker.py"),
            ("python3", "/usr/bin/python3", "python3 - worker"),
            ("node", "/usr/bin/node", "node -pe 1 worker.js"),
            ("node", "/usr/bin/node", "node --eval 1 worker.js"),
            ("node", "/usr/bin/node", "node /usr/bin/yarn run worker"),
            ("npm run worker", "/usr/bin/node", "npm run worker"),
            ("node", "/usr/bin/node", "node /usr/lib/node_modules/npm/bin/npm-cli.js run worker"),
            ("deno", "/usr/bin/deno", "deno eval 1"),
            ("ruby", "/usr/bin/ruby", "ruby -ne x worker"),
            ("perl", "/usr/bin/perl", "perl -lane x worker"),
            ("php", "/usr/bin/php", "php -r x worker"),
            ("vim", "/usr/bin/vim", "vim worker.py"),
            ("vim", "/usr/bin/vim.basic", "vim plugins/vim"),
        ] {
            let other = process(name, executable, arguments);
            let terminal = in_terminal(named("bash"));
            assert_eq!(find_agent(&chain([other, terminal]), &[]), Found::Shell(99), "{arguments}");
        }
    }

    #[test]
    fn a_fork_of_an_interpreter_is_a_worker_of_its_own() {
        testkit::limit_test();
        let script = || process("python3", "/usr/bin/python3", "python3 pool.py");
        assert_eq!(find_agent(&chain([script(), script(), named("cron")]), &[]), Found::Script(100));
    }

    #[test]
    fn arguments_are_read_only_for_deciding_shells() {
        testkit::limit_test();
        let read = |chain: &mut Vec<ProcessInfo>| {
            let asked = std::cell::RefCell::new(Vec::new());
            complete_shells(chain, |pid| {
                asked.borrow_mut().push(pid);
                let script = if pid > 97 { "run.sh" } else { "other.sh" };
                vec!["bash".to_owned(), script.to_owned()]
            });
            asked.into_inner()
        };
        let shell = || ProcessInfo { name: "bash".to_owned(), ..ProcessInfo::default() };
        let mut scripts = chain([named("make"), shell(), shell(), shell(), shell(), shell()]);
        assert_eq!(read(&mut scripts), [99, 98, 97]);
        assert_eq!(find_agent(&scripts, &[]), Found::Script(98));
    }
}
