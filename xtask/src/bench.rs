//! `cargo xtask bench`: builds what measures, and runs it.

use std::process::Command;
use std::time::Duration;

use crate::release::{self, Options};
use crate::{Result, instructions, packages, run};

/// The limit of one suite of measurements.
const TO_MEASURE: Duration = Duration::from_hours(3);

/// Runs one kind of measurement.
pub fn run(arguments: &[String]) -> Result {
    match arguments.split_first() {
        Some((kind, rest)) if ["ledger", "entries", "hooks", "web"].contains(&kind.as_str()) => {
            suite(kind, rest)
        }
        Some((kind, rest)) if kind == "instructions" => instructions::run(rest),
        _ => Err("usage: cargo xtask bench ledger | entries | hooks | web | instructions".into()),
    }
}

fn suite(name: &str, arguments: &[String]) -> Result {
    if name == "entries" {
        packages::install_missing(&["redis-server"])?;
    }
    let programs = release::build(Options { bench: true, ..Options::default() })?;
    let mut measurement = Command::new(programs.join(release::program("bench")));
    run::success(measurement.arg(name).args(arguments), TO_MEASURE)
}
