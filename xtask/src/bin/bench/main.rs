//! Measures the board against what is possible: `cargo xtask bench ledger`, `entries`, `hooks`, `quota`, `redis`, `scopes`, `search` and
//! `web`.
//! Also simulates many agents: `cargo xtask fleet`.
//!
//! Every number is a ratio to a baseline from the same run, or is shown with one: a bare process, the same statements
//! in plain SQL, the same program without the queue. Compared programs run alternately. A verdict is the median of at
//! least five rounds, and there is none on a busy machine.

#![expect(
    unreachable_pub,
    reason = "a program has no public interface: `pub` means used outside of its module"
)]
#![expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "statistics over counts that are far from any limit"
)]

mod boards;
mod entries;
mod fleet;
mod hooks;
mod ledger;
mod programs;
mod quota;
mod redis;
mod redis_server;
mod remote_board;
mod report;
mod scopes;
mod search;
mod server_counters;
mod statistics;
mod web;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use clap::{CommandFactory, FromArgMatches};
use report::{Line, Report};

/// The result of a measurement; an error is a sentence for the caller.
pub type Result<T = (), E = Box<dyn std::error::Error>> = std::result::Result<T, E>;

/// The size of the measurements, and the directory of the programs.
pub struct Scale {
    /// A short run that only checks that everything works.
    pub quick: bool,
    /// The number of rounds.
    pub rounds: usize,
    programs: PathBuf,
}

impl Scale {
    /// A count: the full one, or a small one in a short run.
    pub fn of(&self, all: usize, few: usize) -> usize {
        if self.quick { few } else { all }
    }

    /// One of the programs that were built together with this one.
    pub fn program(&self, name: &str) -> PathBuf {
        self.programs.join(name)
    }

    /// The product on this board, with an otherwise empty environment.
    pub fn blackboard(&self, database: &Path) -> Command {
        let mut command = Command::new(self.program("blackboard"));
        command.env_clear().env("HOME", self.programs.join("no-home")).env("BLACKBOARD_DB", database);
        command
    }
}

/// One measurement: its name, and its function.
pub type Measurement = (&'static str, fn(&Scale) -> Result<Vec<Line>>);

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let outcome =
        match arguments.split_first() {
            Some((first, rest)) if first == "worker" => ledger::worker::run(rest),
            Some((first, rest)) if first == "stream-reader" => entries::followers::read_stream(rest),
            Some((first, rest)) if first == "ledger" => measure("ledger", ledger::MEASUREMENTS, rest),
            Some((first, rest)) if first == "entries" => measure("entries", entries::MEASUREMENTS, rest),
            Some((first, rest)) if first == "hooks" => measure("hooks", hooks::MEASUREMENTS, rest),
            Some((first, rest)) if first == "quota" => measure("quota", quota::MEASUREMENTS, rest),
            Some((first, rest)) if first == "claimer" => redis::crowd::claim_all(rest),
            Some((first, rest)) if first == "redis" => measure("redis", redis::MEASUREMENTS, rest),
            Some((first, rest)) if first == "scopes" => measure("scopes", scopes::MEASUREMENTS, rest),
            Some((first, rest)) if first == "search" => measure("search", search::MEASUREMENTS, rest),
            Some((first, rest)) if first == "fleet" => fleet::run(rest),
            Some((first, rest)) if first == "holder" => web::hold(rest),
            Some((first, rest)) if first == "web" => measure("web", web::MEASUREMENTS, rest),
            _ => Err("usage: bench ledger | entries | hooks | quota | redis | scopes | search | web | fleet"
                .into()),
        };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error}");
            ExitCode::FAILURE
        }
    }
}

/// How a suite is measured.
#[derive(clap::Parser)]
#[command(no_binary_name = true)]
struct Options {
    /// Only to see that it works
    #[arg(long)]
    quick: bool,

    /// Only measurements whose names contain this
    #[arg(long, value_name = "NAME")]
    only: Option<String>,

    /// Also write the results here
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

fn measure(suite: &str, measurements: &[Measurement], arguments: &[String]) -> Result {
    let names = measurements.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
    let command = Options::command().bin_name(format!("bench {suite}")).after_help(format!("Names: {names}"));
    let Options { quick, only, json } =
        Options::from_arg_matches_mut(&mut command.get_matches_from(arguments))?;
    let programs = std::env::current_exe()?.parent().ok_or("a program without a directory")?.to_owned();
    let scale = Scale { quick, rounds: if quick { 2 } else { 5 }, programs };
    let chosen = |name: &str| only.as_ref().is_none_or(|only| name.contains(only));
    if !measurements.iter().any(|(name, _)| chosen(name)) {
        return Err(format!("nothing is called that, only {names}").into());
    }
    let mut report = Report::new(quick);
    for (name, measurement) in measurements.iter().filter(|(name, _)| chosen(name)) {
        eprintln!("measuring {name}");
        report.extend(measurement(&scale).map_err(|error| format!("{name}: {error}"))?);
    }
    println!("{report}");
    if let Some(file) = json {
        std::fs::write(file, format!("{:#}\n", report.json()))?;
    }
    Ok(())
}
