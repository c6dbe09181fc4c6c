//! `cargo xtask bench`: builds what measures, and runs it.

use std::process::Command;

use crate::release::{self, Options};
use crate::{Result, instructions};

/// Runs one kind of measurement.
pub fn run(arguments: &[String]) -> Result {
    match arguments.split_first() {
        Some((kind, rest)) if kind == "ledger" => ledger(rest),
        Some((kind, rest)) if kind == "instructions" => instructions::run(rest),
        _ => Err("usage: cargo xtask bench ledger | instructions".into()),
    }
}

fn ledger(arguments: &[String]) -> Result {
    let programs = release::build(Options { bench: true, ..Options::default() })?;
    let status = Command::new(programs.join(release::program("bench-ledger"))).args(arguments).status()?;
    if status.success() { Ok(()) } else { Err(format!("the measurement ended with {status}").into()) }
}
