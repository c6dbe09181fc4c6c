//! `cargo xtask cli-docs`: writes `docs/cli.md` from the help texts of the commands.
//!
//! The test that checks the page also writes it, so that the two cannot disagree.

use std::process::Command;

use crate::{Result, release, run};

/// Writes the page.
pub fn run() -> Result {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["test", "--quiet", "--package", "blackboard-cli", "--bin", "blackboard", "cli_docs"]);
    run::success(cargo.env("BLACKBOARD_WRITE_CLI_DOCS", "1"), release::TO_BUILD)
}
