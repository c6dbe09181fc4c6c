//! `cargo xtask e2e-agents`: runs real agents with stand-in models, to check that the board works with them.
//!
//! Each client is installed from npm in the version that `clients/mod.rs` names, set up by the real `blackboard setup`
//! in a scratch home, and run in a scratch repository against a model server on loopback. The story decides the model's
//! answers and checks the board meanwhile. It needs Linux, git, node and npm. Only npm uses the network. Not part of
//! CI.
//!
//! | File | Content |
//! |---|---|
//! | `clients/` | how to start a client and call its tools, one file each |
//! | `model/` | the stand-in models, one file for each API |
//! | `story.rs` | a session, the same for every client |
//! | `usage.rs` | token usage in the ledger |
//! | `usual.rs` | further checks that most clients can pass |
//! | `check.rs` | the checks and their results |
//! | `scratch.rs`, `process.rs` | home, repository, board; processes |
//! | `report.rs` | the results |
//!
//! A new client is a file in `clients/` with one `Client`, a line in its table, and perhaps a dialect in `model/`.

mod check;
mod clients;
mod model;
mod process;
mod report;
mod scratch;
mod story;
mod usage;
mod usual;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::builder::PossibleValuesParser;

use self::check::Checks;
use self::clients::{CLIENTS, Client, Package, ccusage, inspector};
use self::story::Stage;
use crate::{Result, release, run};

#[derive(clap::Args)]
pub struct Options {
    /// Only these clients
    #[arg(long, value_name = "NAME,…", value_delimiter = ',', value_parser = client_ids())]
    only: Vec<String>,

    /// Only the checks of token usage
    #[arg(long, conflicts_with = "write")]
    usage: bool,

    /// Keep homes, requests and output
    #[arg(long)]
    keep: bool,

    /// Write the results of all clients into the documentation
    #[arg(long, conflicts_with = "only")]
    write: bool,
}

fn client_ids() -> PossibleValuesParser {
    PossibleValuesParser::new(CLIENTS.iter().map(|client| client.id).chain([ccusage::ID, inspector::ID]))
}

/// A client that was tested.
pub struct Tried {
    pub title: &'static str,
    pub package: Package,
    pub checks: Checks,
}

/// Tests the clients, and prints the results.
pub fn run(options: &Options) -> Result {
    let program = build()?;
    let wanted = |id: &str| options.only.is_empty() || options.only.iter().any(|only| only == id);
    let clients = CLIENTS.iter().filter(|client| wanted(client.id));
    let mut tried: Vec<Tried> = clients.map(|client| attempt(client, &program, options)).collect();
    if wanted(ccusage::ID) {
        println!("{}: trying it", ccusage::TITLE);
        let checks = ccusage::attempt(&program, options.keep);
        tried.push(Tried { title: ccusage::TITLE, package: ccusage::PACKAGE, checks });
    }
    if wanted(inspector::ID) && !options.usage {
        println!("{}: trying it", inspector::TITLE);
        let checks = inspector::attempt(&program, options.keep);
        tried.push(Tried { title: inspector::TITLE, package: inspector::PACKAGE, checks });
    }
    println!("{}", report::terminal(&tried));
    if options.write {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/agents-tested.md");
        fs::write(file, report::document(&tried, &setting(&program)?))?;
    }
    match tried.iter().map(|one| one.checks.failed()).sum::<usize>() {
        0 => Ok(()),
        failed => Err(format!("{failed} checks failed").into()),
    }
}

/// Runs one client. An error is a result.
fn attempt(client: &'static Client, program: &Path, options: &Options) -> Tried {
    println!("{}: trying it", client.title);
    let mut checks = Checks::new();
    let more = client.more.as_ref().filter(|_| !options.usage);
    let why = match Stage::new(client, program, "user", options.keep) {
        Err(error) => format!("it could not be set up: {error}"),
        Ok(stage) => {
            let played = if options.usage { Ok(()) } else { story::play(&stage, &mut checks) };
            let more = more.map_or(Ok(()), |more| (more.play)(&stage, &mut checks));
            let usage = (client.usage.play)(&stage, &mut checks);
            checks.see(check::HOOK_LOG, || match stage.scratch.hook_log() {
                None => Ok("hook.log has no line".to_owned()),
                Some(lines) => Err(lines.into()),
            });
            let errors = [played, more, usage].into_iter().filter_map(std::result::Result::err);
            errors.map(|error| error.to_string()).collect::<Vec<_>>().join("; ")
        }
    };
    if !options.usage {
        checks.fail_missing(check::COMMON, &why);
    }
    let more = more.map_or(&[][..], |more| more.checks);
    for names in more.iter().chain(client.usage.checks) {
        checks.fail_missing(names, &why);
    }
    Tried { title: client.title, package: client.package, checks }
}

/// Builds the program under test.
fn build() -> Result<PathBuf> {
    let mut cargo = Command::new(env!("CARGO"));
    run::success(cargo.args(["build", "--quiet", "--package", "blackboard-cli"]), release::TO_BUILD)?;
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/debug");
    Ok(target.join(crate::release::program("blackboard")).canonicalize()?)
}

/// The date and the machine.
fn setting(program: &Path) -> Result<String> {
    let said = |program: &Path, arguments: &[&str]| -> Result<String> {
        let output = run::output(Command::new(program).args(arguments), run::SHORT)?;
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let version: serde_json::Value = serde_json::from_str(&said(program, &["version", "--json"])?)?;
    let day = version["timestamp"].as_str().and_then(|moment| moment.get(..10)).unwrap_or_default();
    Ok(format!(
        "Last run: {day}, blackboard {}, {} {}, node {}.",
        version["version"].as_str().unwrap_or_default(),
        std::env::consts::OS,
        std::env::consts::ARCH,
        said(Path::new("node"), &["--version"])?.trim_start_matches('v'),
    ))
}
