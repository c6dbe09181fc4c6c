//! `cargo xtask bench`: builds what measures, and runs it.

use std::process::Command;

use crate::release::{self, Options};
use crate::{Result, instructions, packages};

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
    let status = Command::new(programs.join(release::program("bench"))).arg(name).args(arguments).status()?;
    if status.success() { Ok(()) } else { Err(format!("the measurement ended with {status}").into()) }
}
