//! Development tasks: `cargo xtask <task>`.

#![expect(
    unreachable_pub,
    reason = "a program has no public interface: `pub` means used outside of its module"
)]

mod cli_docs;

use std::process::ExitCode;

fn main() -> ExitCode {
    let task = std::env::args().nth(1).unwrap_or_default();
    if task == "cli-docs" {
        return cli_docs::run();
    }
    eprintln!("usage: cargo xtask cli-docs");
    ExitCode::from(2)
}
