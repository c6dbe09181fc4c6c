use super::*;
use crate::process::program::{SHELLS, WRAPPERS};
use crate::process::{fake_chain as chain, fake_process as process};

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

fn named(name: &str) -> ProcessInfo {
    process(name, &format!("/usr/bin/{name}"), name)
}

fn in_terminal(process: ProcessInfo) -> ProcessInfo {
    ProcessInfo { terminal: true, group_leader: true, ..process }
}

/// A chain whose last process is PID 1.
fn to_first<const N: usize>(processes: [ProcessInfo; N]) -> Vec<ProcessInfo> {
    let mut chain = chain(processes);
    chain.last_mut().unwrap().pid = 1;
    chain
}

fn gemini() -> ProcessInfo {
    let script = "/usr/lib/node_modules/@google/gemini-cli/dist/index.js";
    process("node", "/usr/bin/node", &format!("/usr/bin/node --max-old-space-size=8192 {script} -m flash"))
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
    assert_eq!(find_agent(&to_first([named("claude"), named("bash"), named("codex")]), &[]), Found::Nothing);
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
