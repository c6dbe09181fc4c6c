//! `cargo xtask install`: builds the release binary, installs it in cargo's directory, and runs the demo.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::test::in_ci;
use crate::{Result, release, run};

/// The limit of the complete task, which takes three minutes on two free cores. `.ci/run` kills the task a few minutes after
/// the limit in CI, and cannot say which step took too long.
const LIMIT: Duration = Duration::from_mins(45);
pub const LIMIT_IN_CI: Duration = Duration::from_mins(17);

/// The limit of the demo, which takes about four seconds.
const TO_SHOW: Duration = Duration::from_mins(2);

/// How many milliseconds an agent of the demo takes for a step: twelve steps are about four seconds. `blackboard demo`
/// itself takes 2000, which leaves time to watch the dashboard.
const PACE: &str = "250";

#[derive(clap::Args)]
pub struct Options {
    /// The program goes into the directory bin of this one [default: where cargo installs programs]
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
}

/// Installs.
pub fn run(options: Options) -> Result {
    let root = options.root.map_or_else(cargo_home, Ok)?;
    run::limit_task(if in_ci() { LIMIT_IN_CI } else { LIMIT });
    let directory = root.join("bin");
    let installed = directory.join(release::program("blackboard"));
    step(1, "build the release binary; that takes some minutes, most of them for the last crate");
    let built = release::build(release::Options::default())?.join(release::program("blackboard"));
    if release::STATIC {
        release::check_static(&built)?;
    }
    step(2, &format!("install {}", installed.display()));
    replace(&built, &installed)?;
    step(
        3,
        "show it at work: four agents share seven work items, one is killed, and another finishes its item",
    );
    println!("      (`blackboard demo` shows this at a slower pace, with a dashboard to watch)\n");
    let mut demo = Command::new(&installed);
    run::success(demo.args(["demo", "--pace", PACE]).stdin(Stdio::null()), TO_SHOW)?;
    let size = fs::metadata(&installed)?.len();
    let linked = if release::STATIC { ", static" } else { "" };
    println!("\nInstalled {} ({} KB{linked})", installed.display(), size / 1000);
    println!("{}", advice(&directory, &installed));
    Ok(())
}

/// Prints the current step.
fn step(number: u32, what: &str) {
    println!("[{number}/3] {what}");
}

/// The directory in which cargo installs programs.
fn cargo_home() -> Result<PathBuf> {
    if let Some(home) = env::var_os("CARGO_HOME") {
        return Ok(home.into());
    }
    let home = env::home_dir().ok_or("no home directory; name a place with --root DIR")?;
    Ok(home.join(".cargo"))
}

/// Installs the program by renaming, so that a process that runs the old one is not disturbed.
fn replace(built: &Path, installed: &Path) -> Result {
    let directory = installed.parent().ok_or("the program needs a directory")?;
    fs::create_dir_all(directory)?;
    let unfinished = directory.join(format!(".blackboard-{}", std::process::id()));
    let outcome = fs::copy(built, &unfinished).and_then(|_| fs::rename(&unfinished, installed));
    if outcome.is_err() {
        let _ = fs::remove_file(&unfinished);
    }
    Ok(outcome.map_err(|error| format!("{} cannot be written: {error}", installed.display()))?)
}

/// The program that a shell finds as `blackboard` now.
fn advice(directory: &Path, installed: &Path) -> String {
    let path = env::var_os("PATH").unwrap_or_default();
    let found = env::split_paths(&path)
        .map(|place| place.join(release::program("blackboard")))
        .find(|file| file.is_file());
    match found {
        Some(found) if same_file(&found, installed) => {
            "Its directory is on PATH: try `blackboard --help`".to_owned()
        }
        Some(other) => format!("Another one comes first on PATH: {}", other.display()),
        None => format!("Its directory is not on PATH; add: export PATH=\"{}:$PATH\"", directory.display()),
    }
}

fn same_file(one: &Path, other: &Path) -> bool {
    match (one.canonicalize(), other.canonicalize()) {
        (Ok(one), Ok(other)) => one == other,
        _ => false,
    }
}
