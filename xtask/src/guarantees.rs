//! What the documentation says about the tests has to be true, and every test has a time limit.

use std::fs;
use std::path::{Path, PathBuf};

/// Every source file below a directory, with its text.
fn sources(directory: &Path, found: &mut Vec<(PathBuf, String)>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            found.push((path, text));
        }
    }
}

fn sources_of_crates() -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    sources(&root().join("crates"), &mut found);
    found
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

#[test]
fn every_test_that_the_guarantees_name_exists() {
    let code: String = sources_of_crates().into_iter().map(|(_, text)| text).collect();
    let page = fs::read_to_string(root().join("docs/guarantees.md")).unwrap();
    let names: Vec<_> = page
        .split('`')
        .skip(1)
        .step_by(2)
        .filter(|name| {
            name.contains('_') && name.bytes().all(|byte| byte == b'_' || byte.is_ascii_alphanumeric())
        })
        .collect();
    assert!(names.len() > 40, "{names:?}");
    for name in names {
        assert!(code.contains(&format!("fn {name}(")), "docs/guarantees.md names {name}, which is no test");
    }
}

/// What a test module contains that starts the limit of its tests: directly, or by one of the fixtures that do.
const LIMITED: [&str; 10] = [
    "limit_test()",
    "testkit::",
    "Scratch::",
    "TestBoard::",
    "Site::",
    "Served::",
    "Fixture",
    "BoardFile::",
    "transcript::check",
    "World::",
];

/// What a test module contains whose tests wait, start something or use files.
const NEEDS_LIMIT: [&str; 8] = [
    "thread::",
    "Command::new",
    "tempdir",
    "TempDir",
    "TcpStream",
    "TcpListener",
    "recv_timeout",
    "Board::open",
];

#[test]
fn every_test_that_waits_starts_something_or_uses_files_has_a_time_limit() {
    let (mut checked, mut without) = (0, Vec::new());
    for (path, text) in sources_of_crates() {
        // What is in front of the test module of a file is no test; a file in `tests` is one as a whole.
        let in_tests =
            path.components().any(|part| part.as_os_str() == "tests" || part.as_os_str() == "tests.rs");
        let start = if in_tests { Some(0) } else { text.find("#[cfg(test)]\nmod tests {") };
        let Some(tests) = start.map(|start| &text[start..]).filter(|tests| tests.contains("#[test]")) else {
            continue;
        };
        let tests = tests.replace("clap::Command", "");
        if !NEEDS_LIMIT.iter().any(|needs| tests.contains(needs)) {
            continue;
        }
        checked += 1;
        if !LIMITED.iter().any(|limited| tests.contains(limited)) {
            without.push(path);
        }
    }
    assert!(without.is_empty(), "tests without a time limit (see crates/testkit): {without:?}");
    assert!(checked > 30, "{checked} files were checked");
}

#[test]
fn directories_of_tests_come_from_the_testkit() {
    for (path, text) in sources_of_crates() {
        let is_testkit = path.starts_with(root().join("crates/testkit"));
        for line in text.lines().filter(|line| !line.trim_start().starts_with("//")) {
            let is_own = line.contains("tempfile::tempdir()") || line.contains("TempDir::new()");
            assert!(!is_own || is_testkit, "{}: {line}: testkit::tempdir() starts the limit", path.display());
        }
    }
}
