//! `cargo xtask torture`: the tests with real processes at their full size, against the release build.
//!
//! CI runs the same tests at a small size: only `BLACKBOARD_TEST_SCALE` differs, so there is one definition of what has
//! to hold. A test prints its figures in a line that starts with the name of its torture.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use clap::builder::PossibleValuesParser;

use crate::skips::Skips;
use crate::{Result, release, run};

/// The tortures: name, module of the tests, description. Those of `web::` are tests of the dashboard's server, those of
/// `redis_server::` and `linearizable::` of the library, all others of many processes.
const TORMENTS: &[(&str, &str, &str)] = &[
    ("crash-claims", "crash_claims::", "200 processes claim 50 times each, 30 % of them are killed"),
    ("crash-entries", "crash_entries::", "100 processes write 50 times each, 30 % of them are killed"),
    ("swarm", "swarm::", "the crowds that lose data in a Markdown file"),
    ("counters", "counters::", "16 shells count 500 times each by write --if-revision"),
    ("expiry", "expiry::", "200 entries expire while 20 processes read them"),
    ("many-entries", "many_entries::", "100,000 entries, and little memory"),
    ("copy", "large_copy::", "100,000 entries and 1,000,000 events to a server and back"),
    ("unknown-outcome", "unknown_outcome::", "killed at any moment, repeated until answered: happened once"),
    ("disk-full", "disk_full::", "no space, then space again"),
    ("mutations", "mutations::", "500 corrupted files"),
    ("wal", "wal::", "the WAL after 10,000 commands"),
    ("syscalls", "system_calls::", "the n-th system call fails"),
    ("queue", "queue::", "members of the writer queue are killed every 5 ms"),
    ("followers", "followers::", "killed, stuck for a minute, 200 at once, and woken 10,000 times"),
    ("demo", "demo::", "the demo at its fastest pace, 50 times"),
    ("sweep-race", "sweep_race::", "10,000 rounds of sweep against heartbeat"),
    ("web-crowd", "web::crowd::", "1,000 browsers for a minute, 20 writes a second"),
    ("web-limits", "web::limits::", "10,000 requests, and 500 that never end"),
    ("redis-kills", "redis_server::crash::", "a Redis server is killed 50 times under load"),
    ("redis-failovers", "redis_server::sentinel::", "20 failovers of three servers under load"),
    ("redis-cluster", "redis_server::cluster::", "a cluster of three, and a board that moves"),
    ("redis-proxy", "redis_server::proxy::", "connections that are cut, delayed, half-closed and replayed"),
    ("linearizable", "linearizable::history_", "histories through kills, failovers and broken connections"),
];

/// The test binaries: those of many processes, of the dashboard's server, and those of the library.
const PROCESSES: Target = Target { package: "blackboard-cli", name: "process" };
const WEB: Target = Target { package: "blackboard-cli", name: "web" };
const REDIS: Target = Target { package: "blackboard", name: "redis_server" };
const LINEARIZABLE: Target = Target { package: "blackboard", name: "linearizable" };

/// A test binary.
#[derive(Clone, Copy)]
struct Target {
    package: &'static str,
    name: &'static str,
}

/// The limit of one test at its full size.
const LIMIT: Duration = Duration::from_hours(2);

/// Larger than what any test needs for its full size.
const SCALE: &str = "1000";

#[derive(clap::Args)]
pub struct Options {
    /// One of them
    #[arg(default_value = ALL, value_parser = names())]
    name: String,
}

/// The names of all tortures.
const ALL: &str = "all";

fn names() -> PossibleValuesParser {
    PossibleValuesParser::new(TORMENTS.iter().map(|(name, ..)| *name).chain([ALL]))
}

/// Runs one torture, or all of them.
pub fn run(options: &Options) -> Result {
    let torments: Vec<_> =
        TORMENTS.iter().filter(|(name, ..)| options.name == ALL || options.name == *name).collect();
    for target in [PROCESSES, WEB, REDIS, LINEARIZABLE] {
        run::success(tests(target).arg("--no-run"), release::TO_BUILD)?;
    }
    let mut outcomes = Vec::new();
    for (name, module, about) in torments {
        println!("\n== {name}: {about}");
        outcomes.push(endure(name, module)?);
    }
    println!("\n{:<16} {:<8} {:>8}  figures", "torment", "verdict", "time");
    for outcome in &outcomes {
        let verdict = if outcome.passed { "ok" } else { "FAILED" };
        let figures = outcome.figures.join("; ");
        println!("{:<16} {verdict:<8} {:>6} s  {figures}", outcome.name, outcome.time.as_secs());
    }
    let failed: Vec<_> =
        outcomes.iter().filter(|outcome| !outcome.passed).map(|outcome| outcome.name).collect();
    if failed.is_empty() { Ok(()) } else { Err(format!("not endured: {}", failed.join(", ")).into()) }
}

struct Outcome {
    name: &'static str,
    passed: bool,
    time: Duration,
    figures: Vec<String>,
}

/// Runs the tests of one module, prints their output, and keeps their figures and skipped tests.
fn endure(name: &'static str, module: &'static str) -> Result<Outcome> {
    let start = Instant::now();
    let (target, module) = target_of(module);
    let mut tests = tests(target);
    tests.args(["--", "--nocapture", module]).env("BLACKBOARD_TEST_SCALE", SCALE);
    // Large tests take long, but do not hang.
    tests.env("BLACKBOARD_TEST_TIMEOUT", LIMIT.as_secs().to_string()).env("BLACKBOARD_TEST_PATIENCE", "300");
    let skips = Skips::new()?;
    skips.collect_from(&mut tests);
    let mut child = tests.stdout(Stdio::piped()).spawn()?;
    let output = child.stdout.take().ok_or("the tests have no output")?;
    let endured = run::within(LIMIT + run::SHORT, child.id(), name, move || {
        let (mut figures, mut has_run) = (Vec::new(), false);
        for line in BufReader::new(output).lines() {
            let line = line?;
            println!("{line}");
            has_run |= is_start_of_tests(&line);
            if let Some(figure) = line.strip_prefix(name).and_then(|line| line.strip_prefix(": ")) {
                figures.push(figure.to_owned());
            }
        }
        if !has_run {
            figures.push(format!("no test is in the module {module}"));
        }
        Ok((child.wait()?.success() && has_run, figures))
    });
    // The other tortures run even if this one hangs.
    let (passed, mut figures) = endured.unwrap_or_else(|error| (false, vec![error.to_string()]));
    figures.extend(skips.list()?.into_iter().map(|skipped| format!("skipped: {skipped}")));
    Ok(Outcome { name, passed, time: start.elapsed(), figures })
}

/// The test binary of a module, and its name there.
fn target_of(module: &str) -> (Target, &str) {
    for target in [WEB, REDIS, LINEARIZABLE] {
        let rest = module.strip_prefix(target.name).and_then(|rest| rest.strip_prefix("::"));
        if let Some(rest) = rest {
            return (target, rest);
        }
    }
    (PROCESSES, module)
}

/// Whether this line of output says that at least one test begins.
fn is_start_of_tests(line: &str) -> bool {
    let count = line.strip_prefix("running ").and_then(|rest| rest.split_once(" test")?.0.parse().ok());
    count.is_some_and(|count: u64| count > 0)
}

fn tests(target: Target) -> Command {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["test", "--quiet", "--release", "--package", target.package, "--test", target.name]);
    cargo
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guarantees::root;

    #[test]
    fn every_torture_has_tests() {
        testkit::limit_test();
        for (name, module, _) in TORMENTS {
            let (target, module) = target_of(module);
            let tests = root().join("crates").join(target.package).join("tests");
            let path = match module.strip_suffix("::") {
                Some(file) => tests.join(target.name).join(format!("{file}.rs")),
                None => tests.join(format!("{}.rs", target.name)),
            };
            let text = std::fs::read_to_string(&path).unwrap_or_default();
            let is_there = module.ends_with("::") || text.contains(&format!("fn {module}"));
            let has_tests = text.contains("#[test]") || text.contains("on_each_engine!");
            assert!(is_there && has_tests, "{name}: {}", path.display());
        }
    }

    #[test]
    fn a_run_without_tests_is_recognized() {
        for (line, expected) in [
            ("running 1 test", true),
            ("running 12 tests", true),
            ("running 0 tests", false),
            ("test result: ok. 0 passed", false),
        ] {
            assert_eq!(is_start_of_tests(line), expected, "{line}");
        }
    }
}
