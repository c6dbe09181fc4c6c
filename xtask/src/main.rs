//! Development tasks: `cargo xtask <task>`.

#![expect(
    unreachable_pub,
    reason = "a program has no public interface: `pub` means used outside of its module"
)]

mod bench;
mod cli_docs;
#[cfg(test)]
mod documents;
mod e2e_agents;
#[cfg(test)]
mod guarantees;
mod install;
mod instructions;
mod load;
mod packages;
mod pictures;
mod release;
mod run;
mod skips;
mod test;
mod torture;
#[cfg(test)]
mod words;

use std::process::ExitCode;

use clap::Parser;

/// The result of a task; an error is a sentence for the caller.
pub type Result<T = (), E = Box<dyn std::error::Error>> = std::result::Result<T, E>;

/// Development tasks
#[derive(clap::Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", disable_help_subcommand = true)]
enum Task {
    /// Build the static release binary, install it, and run the demo
    Install(install::Options),
    /// Run all checks that a change has to pass
    Test(test::Options),
    /// Check the licenses, sources and known vulnerabilities of all dependencies
    Dependencies,
    /// Keep the machine busy, as test --under-load does, until the input ends
    Load(load::Options),
    /// Run the tests with real processes at full size
    Torture(torture::Options),
    /// Measure the program against the best possible results
    #[command(subcommand)]
    Bench(bench::Kind),
    /// Simulate many agents on a board of a local Redis server
    Fleet(bench::Fleet),
    /// Run real agents with stand-in models
    E2eAgents(e2e_agents::Options),
    /// Take the pictures of the README from the demo, with Chromium
    Pictures,
    /// Write docs/cli.md from the help texts
    CliDocs,
}

impl Task {
    fn run(self) -> Result {
        match self {
            Task::Install(options) => install::run(options),
            Task::Test(options) => test::run(&options),
            Task::Dependencies => test::check_dependencies(),
            Task::Load(options) => load::run(&options),
            Task::Torture(options) => torture::run(&options),
            Task::Bench(kind) => bench::run(&kind),
            Task::Fleet(fleet) => bench::fleet(&fleet),
            Task::E2eAgents(options) => e2e_agents::run(&options),
            Task::Pictures => pictures::run(),
            Task::CliDocs => cli_docs::run(),
        }
    }
}

fn main() -> ExitCode {
    match Task::parse().run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error}");
            ExitCode::FAILURE
        }
    }
}
