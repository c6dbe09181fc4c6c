//! Reports tests that cannot run on this machine.
//!
//! A test that needs something that is missing calls [`skip`] and returns. It passes, and the report says that it was
//! skipped. In CI it fails, unless CI is allowed to lack it. `cargo xtask test` prints all skipped tests at its end.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;

/// The variable with the file to which each skipped test appends a line: its name, a tab, and the reason.
pub const VARIABLE: &str = "BLACKBOARD_TEST_SKIPS";

/// What CI may lack. A test that needs anything else fails there.
const LEFT_OUT_IN_CI: &[(&str, &str)] = &[
    ("a full disk", "only root may mount a file system of a fixed size"),
    ("a FUSE mount", "only root may mount a file system"),
    ("read-only media", "only root may mount a directory so that root cannot write to it"),
    ("a reused PID", "only root may make a PID namespace"),
    ("another PID namespace", "only root may make a PID namespace"),
    ("two machines", "only root may make a network namespace"),
    ("EPERM", "only root may become another user, who may have no access to the program"),
    ("a process of another user", "only root may become another user"),
    ("files of another user", "only root may give files away"),
    ("completion in a shell", "a machine need not have every shell"),
    ("the MCP Inspector", "it needs node"),
    ("the plugin for OpenCode", "it needs node"),
];

/// Reports that a test, or a part of it, is skipped because something is missing.
#[track_caller]
pub fn skip(what_for: &str, missing: &str) {
    let reason = LEFT_OUT_IN_CI.iter().find(|(allowed, _)| *allowed == what_for);
    let in_ci = std::env::var("CI").is_ok_and(|ci| ci == "true");
    assert!(!in_ci || reason.is_some(), "{what_for} is not tested: it needs {missing}");
    let reason = reason.map_or(String::new(), |(_, reason)| format!(" ({reason})"));
    let line = format!("{}\t{what_for} needs {missing}{reason}\n", test_name());
    // Not with a macro, whose output the test harness hides when a test passes.
    let _ = write!(std::io::stderr(), "skipped: {line}");
    if let Some(file) = std::env::var_os(VARIABLE) {
        append(Path::new(&file), &line);
    }
}

/// Appends a line to a file to which other processes append at the same time.
fn append(file: &Path, line: &str) {
    let mut file = OpenOptions::new().create(true).append(true).open(file).expect("the file can be written");
    file.write_all(line.as_bytes()).expect("the file can be written");
}

/// The name of the test in this thread, after that of its executable.
fn test_name() -> String {
    let executable = std::env::current_exe().ok();
    let stem = executable.as_deref().and_then(Path::file_stem).unwrap_or_default().to_string_lossy();
    // Cargo adds a hash.
    let crate_name = stem.rsplit_once('-').map_or(&*stem, |(name, _)| name);
    let thread = std::thread::current();
    // The harness gives the thread of a test the test's name. `cargo nextest` may run a test in the main thread.
    match thread.name().filter(|name| *name != "main") {
        Some(test) => format!("{crate_name} {test}"),
        None => match std::env::var("NEXTEST_TEST_NAME") {
            Ok(test) => format!("{crate_name} {test}"),
            Err(_) => crate_name.to_owned(),
        },
    }
}
