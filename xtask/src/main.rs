//! Development tasks: `cargo xtask <task>`.

#![expect(
    unreachable_pub,
    reason = "a program has no public interface: `pub` means used outside of its module"
)]

mod bench;
mod cli_docs;
mod e2e_agents;
#[cfg(test)]
mod guarantees;
mod install;
mod instructions;
mod load;
mod packages;
mod pictures;
mod processes;
mod release;
mod run;
mod test;
mod torture;

use std::process::ExitCode;

/// What a task returns; an error is a sentence for the caller.
pub type Result<T = (), E = Box<dyn std::error::Error>> = std::result::Result<T, E>;

const USAGE: &str = "\
usage: cargo xtask <task>

  install [--root DIR]   build the static release binary, install it, and show it at work
  test [--all] [--under-load]
                         everything that has to hold before a change lands; with the tests on a busy machine
  dependencies           check the licenses, sources and known vulnerabilities of all dependencies
  load [--busy COUNT]    keep the machine busy, as test --under-load does, until the input ends
  torture [NAME]         the tests with real processes at their full size
  bench ledger           measure the board against what is possible: --quick, --only NAME, --json FILE
  bench entries          the same for entries and their followers; also needs redis-server, to compare
  bench hooks            the same for what agents call: hooks and the MCP server
  bench web              the same for the dashboard's server
  bench instructions     count the instructions of the hot commands: --check, --write, --profile
  e2e-agents             real agents with stand-in models: --only NAME,…, --keep, --write
  pictures               take the pictures of the README from a demonstration, with chromium
  cli-docs               write docs/cli.md from the help texts";

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let task = arguments.next().unwrap_or_default();
    let arguments: Vec<String> = arguments.collect();
    let outcome = match task.as_str() {
        "cli-docs" => cli_docs::run(),
        "install" => install::run(&arguments),
        "pictures" => pictures::run(&arguments),
        "dependencies" => test::check_dependencies(&arguments),
        "load" => load::run(&arguments),
        "test" => test::run(&arguments),
        "torture" => torture::run(&arguments),
        "bench" => bench::run(&arguments),
        "e2e-agents" => e2e_agents::run(&arguments),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask {task}: {error}");
            ExitCode::FAILURE
        }
    }
}
