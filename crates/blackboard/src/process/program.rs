//! Recognizes what a process runs: an agent, a script file, a shell, or a wrapper around another program.
//!
//! The caller passes the names of agents: of their commands, and of the packages that contain them. How a process
//! shows such a name is the same for all agents.

use super::ProcessInfo;

/// Shells. A shell is never an agent. If it runs a script, it acts for the script. If it has a terminal, it acts for the
/// user.
pub(super) const SHELLS: &[&str] = &[
    "ash", "bash", "csh", "dash", "fish", "ksh", "ksh93", "mksh", "nu", "pwsh", "sh", "tcsh", "yash", "zsh",
];

/// Options of shells whose value is the next argument.
const SHELL_OPTIONS_WITH_VALUE: &[&str] = &["--init-file", "--rcfile", "--init-command", "-C", "-O", "+O"];

/// Wrappers: programs that run another program. Their arguments may contain the name of an agent.
pub(super) const WRAPPERS: &[&str] = &[
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

/// The words after the name of an agent that mean a program for one system, for example
/// `codex-x86_64-unknown-linux-musl`.
const SYSTEMS: &[&str] =
    &["aarch64", "arm64", "darwin", "linux", "macos", "win32", "windows", "x64", "x86_64"];

/// The maximum length of the name of a process, in bytes. The system cuts longer names.
const NAME_MAX: usize = 15;

/// The command line of an interpreter other than a shell.
struct Interpreter {
    /// Its names. A name with a version at the end (`python3.12`) matches too.
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

/// Whether a process is one of these agents.
pub(super) fn is_agent(process: &ProcessInfo, agents: &[&str]) -> bool {
    // A process that runs a script is named after the script, but its program is the shell.
    if is_shell(process) || is_shell_or_wrapper(process) {
        return false;
    }
    is_agent_name(&process.name, agents)
        || is_agent_path(&process.executable, agents)
        || process.arguments.first().is_some_and(|called| is_agent_path(called, agents))
        || script(process).is_some_and(|script| is_agent_path(script, agents))
}

/// Whether a process runs a script file, and so runs as long as the script. A `sh -c …` or `python -c …` runs only as
/// long as its command, and so does a script that is a wrapper, for example `yarn`.
pub(super) fn runs_script(process: &ProcessInfo) -> bool {
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

/// Whether a process of this name is a shell or a wrapper, so that its other properties do not matter.
pub(super) fn is_passed_over(name: &str) -> bool {
    // `npm exec …` changes the name of its process.
    let command = name.split(' ').next().unwrap_or_default();
    SHELLS.contains(&command) || WRAPPERS.contains(&command)
}

/// Whether a process is a shell or a wrapper, by its name or by its program.
pub(super) fn is_shell_or_wrapper(process: &ProcessInfo) -> bool {
    is_passed_over(&process.name) || is_passed_over(file_name(&process.executable))
}

/// Whether a process of this name is a shell.
pub(super) fn is_shell_name(name: &str) -> bool {
    SHELLS.contains(&name)
}

/// Whether a process is a shell, or is called as one.
pub(super) fn is_shell(process: &ProcessInfo) -> bool {
    // A process that runs a script is named after the script. Some shells are part of another program (`busybox`), which
    // is called by the name of the shell.
    let called = process.arguments.first().map_or("", |called| file_name(called));
    is_shell_name(&process.name) || is_shell_name(file_name(&process.executable)) || is_shell_name(called)
}

/// The script file of a process that is named after its script. The system starts the interpreter, which can be any
/// program.
fn script_of_name(process: &ProcessInfo) -> Option<&str> {
    // The first line of a script may pass one argument to the interpreter.
    let script = process.arguments.iter().skip(1).take(2).map(String::as_str);
    let program = file_name(&process.executable);
    script.filter(|script| script.contains('/')).find(|script| {
        let name = file_name(script);
        let is_name = name == process.name
            || (process.name.len() == NAME_MAX && name.starts_with(process.name.as_str()));
        is_name && !program.is_empty() && !program.starts_with(process.name.as_str())
    })
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
