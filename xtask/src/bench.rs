//! `cargo xtask bench` and `cargo xtask fleet`: build and run the measurements.

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
    /// The token quota
    Quota(Suite),
    /// A board on a Redis server; needs redis-server
    Redis(Suite),
    /// Scopes with policies, and files with many entries
    Scopes(Suite),
    /// Searching a board
    Search(Suite),
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

#[derive(clap::Args)]
pub struct Fleet {
    /// --agents N, --minutes M or --seconds S, --claims-per-second RATE, --writes-per-second RATE, --heartbeat SECONDS,
    /// --appendfsync off|everysec|always, --json
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    options: Vec<String>,
}

/// The server that boards on a server need.
const REDIS: &[&str] = &["redis-server"];

/// Runs one suite of measurements.
pub fn run(kind: &Kind) -> Result {
    match kind {
        Kind::Ledger(suite) => measure("ledger", &suite.options),
        Kind::Entries(suite) => {
            packages::install_missing(REDIS)?;
            measure("entries", &suite.options)
        }
        Kind::Redis(suite) => {
            packages::install_missing(REDIS)?;
            measure("redis", &suite.options)
        }
        Kind::Hooks(suite) => measure("hooks", &suite.options),
        Kind::Quota(suite) => measure("quota", &suite.options),
        Kind::Scopes(suite) => measure("scopes", &suite.options),
        Kind::Search(suite) => measure("search", &suite.options),
        Kind::Web(suite) => measure("web", &suite.options),
        Kind::Instructions(options) => instructions::run(options),
    }
}

/// Simulates many agents.
pub fn fleet(fleet: &Fleet) -> Result {
    packages::install_missing(REDIS)?;
    measure("fleet", &fleet.options)
}

fn measure(name: &str, options: &[String]) -> Result {
    let programs = release::build(Options { bench: true, ..Options::default() })?;
    let mut measurement = Command::new(programs.join(release::program("bench")));
    run::success(measurement.arg(name).args(options), TO_MEASURE)
}
