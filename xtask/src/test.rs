//! `cargo xtask test`: all checks that a change has to pass. CI runs it after `cargo xtask install`.

use std::env;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::load::{self, Load};
use crate::skips::Skips;
use crate::{Result, instructions, packages, run};

/// The limit of the complete task: normally, in CI and under load. `.ci/run` kills the task a few minutes after the limit in
/// CI, and cannot say which step took too long.
const LIMIT: Duration = Duration::from_mins(110);
pub const LIMIT_IN_CI: Duration = Duration::from_mins(55);
const LIMIT_UNDER_LOAD: Duration = Duration::from_hours(4);

/// The limit of a step that compiles. A compiler on a busy machine makes progress: 15 min were too short for it.
const TO_COMPILE: Duration = Duration::from_mins(40);

/// The limit of all tests, normally and on a busy machine.
const TO_TEST: Duration = Duration::from_mins(90);
const TO_TEST_UNDER_LOAD: Duration = Duration::from_mins(150);

/// The limit of the separate run of the store tests, which compiles the library again.
const TO_TEST_STORES: Duration = Duration::from_mins(40);

#[derive(clap::Args)]
pub struct Options {
    /// Run also the tests that take long or need installed programs, as in CI
    #[arg(long)]
    all: bool,

    /// Run the tests together with processes that keep the machine busy
    #[arg(long)]
    under_load: bool,
}

/// Runs every step, and stops at the first failure.
pub fn run(options: &Options) -> Result {
    run::limit_task(match options.under_load {
        true => LIMIT_UNDER_LOAD,
        false if in_ci() => LIMIT_IN_CI,
        false => LIMIT,
    });
    let (mut report, skips) = (Report::default(), Skips::new()?);
    let outcome = steps(options, &skips, &mut report);
    let skipped = skips.list()?;
    println!("\n{} tests skipped", skipped.len());
    for test in skipped {
        println!("  {test}");
    }
    println!("\n{report}");
    outcome
}

/// `cargo xtask dependencies`: runs only the check of the dependencies.
pub fn check_dependencies() -> Result {
    let mut report = Report::default();
    let outcome = dependencies(in_ci(), &mut report);
    println!("\n{report}");
    outcome
}

/// Whether this is CI, which installs missing tools instead of skipping their tests.
pub fn in_ci() -> bool {
    env::var_os("CI").is_some_and(|value| value == "true" || value == "1")
}

fn steps(options: &Options, skips: &Skips, report: &mut Report) -> Result {
    let thorough = options.all || in_ci();
    report.step("format", cargo(&["fmt", "--all", "--check"]), run::SHORT)?;
    let lint = ["clippy", "--workspace", "--all-targets", "--all-features", "--", "-D", "warnings"];
    report.step("lint", cargo(&lint), TO_COMPILE)?;
    let mut documentation = cargo(&["doc", "--workspace", "--no-deps", "--all-features"]);
    documentation.env("RUSTDOCFLAGS", "-D warnings");
    report.step("documentation", documentation, TO_COMPILE)?;
    report.step("build", cargo(&["build", "--workspace", "--all-features"]), TO_COMPILE)?;
    provide_strace(report)?;
    provide_redis(report)?;
    provide_openssl(report)?;
    provide_ip(report)?;
    provide_python_yaml(report)?;
    provide_inspector(thorough, report);
    provide_chromium(report)?;
    provide_axe(thorough, report);
    tests(options.under_load, skips, report)?;
    tests_on_valkey(thorough, skips, report)?;
    if thorough {
        report.step("plain SQLite", with_plain_sqlite(skips), TO_TEST_STORES)?;
    } else {
        report.skip("plain SQLite", "only in CI or with --all");
    }
    dependencies(thorough, report)?;
    if !thorough {
        report.skip("instructions", "only in CI or with --all");
    } else if !packages::is_there("valgrind") {
        report.skip("instructions", "valgrind is not installed");
    } else {
        report.timed("instructions", || instructions::run(&instructions::Options::checking()))?;
    }
    Ok(())
}

/// Runs all tests. They are compiled before the load starts.
fn tests(under_load: bool, skips: &Skips, report: &mut Report) -> Result {
    let all = ["test", "--workspace", "--all-features", "--no-fail-fast"];
    let mut tests = cargo(&all);
    skips.collect_from(&mut tests);
    if !under_load {
        return report.step("tests", tests, TO_TEST);
    }
    report.step("tests, compiled", cargo(&[&all[..], &["--no-run"]].concat()), TO_COMPILE)?;
    let busy = load::busy_processes();
    println!("the tests run beside {busy} processes that compute and one that writes to the disk");
    let mut load = Load::start(busy)?;
    // A slow test on such a machine does not hang.
    tests.env("BLACKBOARD_TEST_PATIENCE", "180").env("BLACKBOARD_TEST_TIMEOUT", "1800");
    // As many tests at once as processes compute: half of the machine is theirs, and they meet each other as well.
    tests.env("RUST_TEST_THREADS", busy.to_string());
    let outcome = report.step("tests under load", tests, TO_TEST_UNDER_LOAD);
    // Without the complete load, the tests show less than they claim.
    outcome.and_then(|()| load.check())
}

/// Runs the tests of boards on a server with Valkey in place of Redis, where the distribution has it.
fn tests_on_valkey(thorough: bool, skips: &Skips, report: &mut Report) -> Result {
    const STEP: &str = "valkey";
    const PROGRAM: &str = "valkey-server";
    if !thorough {
        report.skip(STEP, "only in CI or with --all");
        return Ok(());
    }
    if !packages::is_there(PROGRAM) && packages::can_install() && packages::is_offered(PROGRAM) {
        report.timed("valkey, installed", || packages::install_missing(&[PROGRAM]))?;
    }
    if !packages::is_there(PROGRAM) {
        report.skip(STEP, "valkey-server is not installed, and this distribution has no such package");
        return Ok(());
    }
    let mut tests =
        cargo(&["test", "--workspace", "--all-features", "--no-fail-fast", "--test", "redis_server"]);
    tests.args(["--test", "agreement", "--test", "threads"]).env("BLACKBOARD_TEST_REDIS", PROGRAM);
    skips.collect_from(&mut tests);
    report.step(STEP, tests, TO_TEST)
}

/// Runs the store tests with SQLite built as in programs that depend on the library: without our flags.
fn with_plain_sqlite(skips: &Skips) -> Command {
    let mut command =
        cargo(&["test", "--package", "blackboard", "--lib", "store::", "--", "--skip", "redis"]);
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/plain-sqlite");
    // A variable that is set, even to nothing, overrides the one in `.cargo/config.toml`.
    command.env("LIBSQLITE3_FLAGS", "").env("CARGO_TARGET_DIR", target);
    skips.collect_from(&mut command);
    command
}

/// Some tests make system calls fail. Without the tool for that, they are skipped.
fn provide_strace(report: &mut Report) -> Result {
    provide_packages("strace", &["strace"], report)
}

/// The browser for the tests of the dashboard. Without it, they are skipped.
fn provide_chromium(report: &mut Report) -> Result {
    provide_packages("chromium", &["chromium", "chromedriver"], report)
}

/// The server for tests of boards on Redis. Without it, they are skipped.
fn provide_redis(report: &mut Report) -> Result {
    provide_packages("redis", &["redis-server"], report)
}

/// The program that makes the certificates for tests of TLS. Without it, they are skipped.
fn provide_openssl(report: &mut Report) -> Result {
    provide_packages("openssl", &["openssl"], report)
}

/// The parser of YAML 1.1 that reads our exports. Without it, these tests are skipped.
fn provide_python_yaml(report: &mut Report) -> Result {
    provide_packages("python3-yaml", &[packages::PYTHON_YAML], report)
}

/// The tool that connects the two machines of some tests. Without it, they are skipped.
fn provide_ip(report: &mut Report) -> Result {
    provide_packages("ip", &["ip"], report)
}

/// Installs the packages of programs that tests on Linux need, if possible.
fn provide_packages(step: &str, programs: &[&str], report: &mut Report) -> Result {
    if !cfg!(target_os = "linux") || programs.iter().all(|program| packages::is_there(program)) {
        return Ok(());
    }
    if !packages::can_install() {
        report.skip(step, "not installed: the tests that need it are skipped");
        return Ok(());
    }
    report.timed(step, || packages::install_missing(programs))
}

/// One test runs the MCP Inspector against the server. Without the Inspector, it is skipped.
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
    // The versions that check schemas need a newer node than many systems have.
    let version = if node >= (22, 19) { "2.12" } else { "0.15" };
    let mut install = Command::new("npm");
    install.args(["install", "--silent", "--no-audit", "--no-fund", "--prefix"]).arg(&directory);
    install.arg(format!("@modelcontextprotocol/inspector@{version}"));
    println!("the MCP Inspector is missing: installing it with npm");
    if let Err(error) = install_into(&directory, &mut install) {
        report.skip("inspector", &error.to_string());
    }
}

/// The accessibility checker for the dashboard. Without it, that test is skipped.
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
    if let Err(error) = install_into(&directory, &mut install) {
        report.skip("axe-core", &error.to_string());
    }
}

/// Installs a package in its own directory.
fn install_into(directory: &Path, install: &mut Command) -> Result {
    std::fs::create_dir_all(directory)?;
    run::success(install, packages::TO_INSTALL)
}

/// The version of axe-core that is used.
const AXE: &str = "4.14.0";

/// The major version of node, for example 22 in `v22.23.3`.
fn node_version() -> Option<(u32, u32)> {
    let output = run::output(Command::new("node").arg("--version"), run::SHORT).ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let mut numbers = text.trim().strip_prefix('v')?.split('.').map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

fn dependencies(thorough: bool, report: &mut Report) -> Result {
    if !packages::is_there("cargo-deny") {
        if !thorough {
            report.skip("dependencies", "cargo-deny is not installed: cargo install --locked cargo-deny");
            return Ok(());
        }
        println!("cargo-deny is missing: installing it, which takes some minutes");
        report.step("cargo-deny", cargo(&["install", "--locked", "cargo-deny"]), TO_COMPILE)?;
    }
    let own = cargo(&["deny", "check", "bans", "licenses", "sources"]);
    report.step("dependencies", own, packages::TO_INSTALL)?;
    advisories(report)
}

/// Checks the dependencies for known vulnerabilities, after fetching the database of them. If the database is
/// unavailable, the report says so and the run continues.
fn advisories(report: &mut Report) -> Result {
    println!("\n== advisories: fetching the database");
    if let Err(error) = run::success(&mut cargo(&["deny", "fetch", "db"]), run::SHORT) {
        let why = format!("NOT CHECKED, the advisory database is unavailable: {error}");
        println!("{why}");
        report.skip("advisories", &why);
        return Ok(());
    }
    let check = cargo(&["deny", "check", "advisories"]);
    report.step("advisories", check, packages::TO_INSTALL)
}

fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO"));
    command.args(arguments);
    command
}

/// The steps, with their durations.
#[derive(Default)]
struct Report {
    lines: Vec<String>,
    total: Duration,
}

impl Report {
    fn step(&mut self, name: &str, mut command: Command, limit: Duration) -> Result {
        self.timed(name, || run::success(&mut command, limit))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_that_takes_too_long_is_named_before_the_task_ends() {
        for step in [TO_COMPILE, TO_COMPILE, TO_TEST, TO_TEST_STORES] {
            assert!(step < LIMIT, "{step:?}");
        }
        assert!(TO_TEST_UNDER_LOAD < LIMIT_UNDER_LOAD);
    }
}
