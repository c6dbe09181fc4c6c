//! `cargo xtask bench`: builds and runs the measurements.

use std::process::Command;
use std::time::Duration;

use crate::release::{self, Options};
use crate::{Result, instructions, packages, run};

/// The limit of one suite of measurements.
const TO_MEASURE: Duration = Duration::from_hours(3);

#[derive(clap::Subcommand)]
pub enum Kind {
    /// Sessions and work items
    Ledger(Suite),
    /// Entries and their followers; also needs redis-server, to compare
    Entries(Suite),
    /// What agents call: hooks and the MCP server
    Hooks(Suite),
    /// The dashboard's server
    Web(Suite),
    /// Count the instructions of the hot commands
    Instructions(instructions::Options),
}

#[derive(clap::Args)]
pub struct Suite {
    /// --quick, --only NAME, --json FILE
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    options: Vec<String>,
}

/// Runs one suite of measurements.
pub fn run(kind: &Kind) -> Result {
    match kind {
        Kind::Ledger(suite) => measure("ledger", suite),
        Kind::Entries(suite) => {
            packages::install_missing(&["redis-server"])?;
            measure("entries", suite)
        }
        Kind::Hooks(suite) => measure("hooks", suite),
        Kind::Web(suite) => measure("web", suite),
        Kind::Instructions(options) => instructions::run(options),
    }
}

fn measure(name: &str, suite: &Suite) -> Result {
    let programs = release::build(Options { bench: true, ..Options::default() })?;
    let mut measurement = Command::new(programs.join(release::program("bench")));
    run::success(measurement.arg(name).args(&suite.options), TO_MEASURE)
}
