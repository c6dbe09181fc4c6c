//! `cargo xtask test`: everything that has to hold before a change lands. CI calls nothing else.

use std::env;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::{Result, instructions, packages};

/// Runs every step, and stops at the first that fails.
pub fn run(arguments: &[String]) -> Result {
    let thorough = match arguments {
        [] => in_ci(),
        [option] if option == "--all" => true,
        _ => return Err("usage: cargo xtask test [--all]".into()),
    };
    let mut report = Report::default();
    let outcome = steps(thorough, &mut report);
    println!("\n{report}");
    outcome
}

/// Whether this runs in continuous integration, where missing tools are installed rather than missed.
fn in_ci() -> bool {
    env::var_os("CI").is_some_and(|value| value == "true" || value == "1")
}

fn steps(thorough: bool, report: &mut Report) -> Result {
    report.step("format", cargo(&["fmt", "--all", "--check"]))?;
    let lint = ["clippy", "--workspace", "--all-targets", "--all-features", "--", "-D", "warnings"];
    report.step("lint", cargo(&lint))?;
    let mut documentation = cargo(&["doc", "--workspace", "--no-deps", "--all-features"]);
    documentation.env("RUSTDOCFLAGS", "-D warnings");
    report.step("documentation", documentation)?;
    report.step("build", cargo(&["build", "--workspace", "--all-features"]))?;
    provide_strace(report)?;
    provide_inspector(thorough, report);
    provide_chromium(report)?;
    provide_axe(thorough, report);
    report.step("tests", cargo(&["test", "--workspace", "--all-features"]))?;
    if thorough {
        report.step("plain SQLite", with_plain_sqlite())?;
    } else {
        report.skip("plain SQLite", "only in CI or with --all");
    }
    dependencies(thorough, report)?;
    if !thorough {
        report.skip("instructions", "only in CI or with --all");
    } else if !exists("valgrind") {
        report.skip("instructions", "valgrind is not installed");
    } else {
        report.timed("instructions", || instructions::run(&["--check".to_owned()]))?;
    }
    Ok(())
}

/// The tests of the stores with SQLite as programs build it that depend on the library: without our flags.
fn with_plain_sqlite() -> Command {
    let mut command = cargo(&["test", "--package", "blackboard", "--lib", "store::"]);
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/plain-sqlite");
    // A variable that is set, even to nothing, is stronger than the one in `.cargo/config.toml`.
    command.env("LIBSQLITE3_FLAGS", "").env("CARGO_TARGET_DIR", target);
    command
}

/// Some tests make system calls fail. Without the tool for that they say that they are skipped.
fn provide_strace(report: &mut Report) -> Result {
    if !cfg!(target_os = "linux") || exists("strace") {
        return Ok(());
    }
    if !(exists("apt-get") && is_root()) {
        report.skip("strace", "not installed: the tests that need it are skipped");
        return Ok(());
    }
    println!("strace is missing: installing it with apt-get");
    let mut install = Command::new("sh");
    install.args(["-c", "apt-get update -qq && apt-get install -y -qq --no-install-recommends strace"]);
    report.step("strace", install)
}

/// One test lets the MCP Inspector talk to the server. Without it that test says that it is skipped.
fn provide_inspector(thorough: bool, report: &mut Report) {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/inspector");
    if directory.join("node_modules/@modelcontextprotocol/inspector/package.json").exists() {
        return;
    }
    let Some(node) = node_version() else {
        return report.skip("inspector", "node is not installed");
    };
    if !thorough {
        return report.skip("inspector", "only in CI or with --all");
    }
    // The versions that judge schemas need a newer node than many have.
    let version = if node >= (22, 19) { "2.12" } else { "0.15" };
    let mut install = Command::new("npm");
    install.args(["install", "--silent", "--no-audit", "--no-fund", "--prefix"]).arg(&directory);
    install.arg(format!("@modelcontextprotocol/inspector@{version}"));
    println!("the MCP Inspector is missing: installing it with npm");
    let installed =
        std::fs::create_dir_all(&directory).is_ok() && install.status().is_ok_and(|status| status.success());
    if !installed {
        report.skip("inspector", "npm could not install it");
    }
}

/// The browser in which the page of the dashboard is tested. Without it those tests fail.
fn provide_chromium(report: &mut Report) -> Result {
    let programs = ["chromium", "chromedriver"];
    if !cfg!(target_os = "linux") || programs.iter().all(|program| packages::is_there(program)) {
        return Ok(());
    }
    if !(exists("apt-get") && is_root()) {
        report.skip(
            "chromium",
            "not installed: install chromium and chromedriver, or the tests of the page fail",
        );
        return Ok(());
    }
    report.timed("chromium", || packages::install_missing(&programs))
}

/// What judges whether everybody can use the page. Without it that test says that it is skipped.
fn provide_axe(thorough: bool, report: &mut Report) {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/axe");
    if directory.join("node_modules/axe-core/axe.min.js").exists() {
        return;
    }
    if node_version().is_none() {
        return report.skip("axe-core", "node is not installed");
    }
    if !thorough {
        return report.skip("axe-core", "only in CI or with --all");
    }
    println!("axe-core is missing: installing version {AXE} with npm into target/axe");
    let mut install = Command::new("npm");
    install
        .args(["install", "--silent", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix"])
        .arg(&directory);
    install.arg(format!("axe-core@{AXE}"));
    let installed =
        std::fs::create_dir_all(&directory).is_ok() && install.status().is_ok_and(|status| status.success());
    if !installed {
        report.skip("axe-core", "npm could not install it");
    }
}

/// The version of axe-core that judges.
const AXE: &str = "4.14.0";

/// The first numbers of node's version, as in `v22.23.3`.
fn node_version() -> Option<(u32, u32)> {
    let output = Command::new("node").arg("--version").output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let mut numbers = text.trim().strip_prefix('v')?.split('.').map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

fn dependencies(thorough: bool, report: &mut Report) -> Result {
    if !exists("cargo-deny") {
        if !thorough {
            report.skip("dependencies", "cargo-deny is not installed: cargo install --locked cargo-deny");
            return Ok(());
        }
        println!("cargo-deny is missing: installing it, which takes some minutes");
        report.step("cargo-deny", cargo(&["install", "--locked", "cargo-deny"]))?;
    }
    report.step("dependencies", cargo(&["deny", "check", "bans", "licenses", "sources"]))
}

fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO"));
    command.args(arguments);
    command
}

/// Whether this program can be started. What it answers does not matter.
fn exists(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok()
}

fn is_root() -> bool {
    Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout == b"0\n")
}

/// What ran, and how long it took.
#[derive(Default)]
struct Report {
    lines: Vec<String>,
    total: Duration,
}

impl Report {
    fn step(&mut self, name: &str, mut command: Command) -> Result {
        self.timed(name, || {
            let status = command.status()?;
            if status.success() { Ok(()) } else { Err(format!("{name} failed ({status})").into()) }
        })
    }

    fn timed(&mut self, name: &str, run: impl FnOnce() -> Result) -> Result {
        println!("\n== {name}");
        let start = Instant::now();
        let outcome = run();
        let verdict = if outcome.is_ok() { "ok" } else { "FAILED" };
        let elapsed = start.elapsed();
        self.total += elapsed;
        self.lines.push(format!("{name} {verdict} {:.1} s", elapsed.as_secs_f64()));
        outcome
    }

    fn skip(&mut self, name: &str, why: &str) {
        self.lines.push(format!("{name} skipped ({why})"));
    }
}

impl std::fmt::Display for Report {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}; {:.0} s in all", self.lines.join("; "), self.total.as_secs_f64())
    }
}
