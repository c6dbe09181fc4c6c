//! `cargo xtask cli-docs`: writes `docs/cli.md` from the help texts of the commands.
//!
//! The test that checks the page also writes it, so that the two can't disagree.

use std::process::{Command, ExitCode};

/// Writes the page.
pub fn run() -> ExitCode {
    let status = Command::new(env!("CARGO"))
        .args(["test", "--quiet", "--package", "blackboard-cli", "--bin", "blackboard", "cli_docs"])
        .env("BLACKBOARD_WRITE_CLI_DOCS", "1")
        .status();
    if status.is_ok_and(|status| status.success()) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
