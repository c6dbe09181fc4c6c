//! Checks that the documentation names existing tests, and that every test has a time limit.

use std::fs;
use std::path::{Path, PathBuf};

/// Every source file below a directory, with its text.
pub fn sources(directory: &Path, found: &mut Vec<(PathBuf, String)>) {
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

/// The root of this repository.
pub fn root() -> &'static Path {
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

/// Calls that start the limit of a test: directly, or in the constructor of a fixture.
const LIMITED: [&str; 13] = [
    "limit_test()",
    "testkit::tempdir()",
    // The same, in the fixtures of testkit itself.
    "crate::tempdir()",
    "Scratch::",
    "TestBoard::",
    "TestHub::",
    "Site::",
    "Served::",
    "Fixture::",
    "RedisServer::",
    "BoardFile::",
    "transcript::check",
    "World::",
];

#[test]
fn every_fixture_that_starts_the_limit_of_its_test_does_so() {
    let files = sources_of_crates();
    for fixture in LIMITED.iter().filter_map(|call| call.strip_suffix("::")) {
        let declared = [format!("struct {fixture} {{"), format!("struct {fixture}(")];
        let is_declared = |text: &str| declared.iter().any(|line| text.contains(line));
        let declaring: Vec<_> = files.iter().filter(|(_, text)| is_declared(text)).collect();
        assert!(!declaring.is_empty(), "{fixture} does not exist");
        for (path, text) in declaring {
            let own = format!("{fixture}::");
            let starts = LIMITED.iter().any(|call| *call != own && text.contains(call));
            assert!(starts, "{}: {fixture} does not start a limit", path.display());
        }
    }
}

/// Code in a test that can take long: it waits, starts something, uses files or a board, loops without a fixed end, or
/// generates its input.
const NEEDS_LIMIT: [&str; 20] = [
    "thread::",
    "Command::new",
    "tempdir",
    "TempDir",
    "TcpStream",
    "TcpListener",
    "recv()",
    "recv_timeout",
    "Barrier",
    "Condvar",
    ".join()",
    "Board::open",
    "Board::memory",
    "loop {",
    "while ",
    ".repeat(",
    "repeat_n(",
    "prop_assert",
    "std::fs::",
    " fs::",
];

/// A function of a source file.
struct Function<'a> {
    name: &'a str,
    /// Its name in calls: alone, or after that of its type.
    call: String,
    body: String,
    is_test: bool,
}

/// The functions of a file in the layout of `rustfmt`: each ends at the first line that closes its indentation.
fn functions(text: &str) -> Vec<Function<'_>> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    let mut owner = None;
    for (start, line) in lines.iter().enumerate() {
        if line.starts_with("impl") || line.starts_with("    impl") {
            owner = line.trim_end_matches(" {").split(' ').next_back();
        } else if *line == "}" {
            owner = None;
        }
        let indent = &line[..line.len() - line.trim_start().len()];
        let Some((before, after)) = line.trim_start().split_once("fn ") else { continue };
        let is_declared =
            before.split_whitespace().all(|word| word.starts_with("pub") || MODIFIERS.contains(&word));
        let name =
            after.split(|letter: char| letter != '_' && !letter.is_alphanumeric()).next().unwrap_or_default();
        if !is_declared || name.is_empty() {
            continue;
        }
        let end = format!("{indent}}}");
        let length = lines[start..].iter().position(|line| *line == end || line.ends_with("{}")).unwrap_or(0);
        let attributes =
            lines[..start].iter().rev().map(|line| line.trim()).take_while(|line| !line.is_empty());
        let is_test = attributes.take_while(|line| !line.ends_with('}')).any(|line| line == "#[test]");
        let code = lines[start..=start + length].iter().filter(|line| !line.trim_start().starts_with("//"));
        let body = code.copied().collect::<Vec<_>>().join("\n").replace("clap::Command", "");
        let owner = owner.filter(|_| !indent.is_empty() && !is_test);
        let call = owner.map_or_else(|| format!("{name}("), |owner| format!("{owner}::{name}("));
        found.push(Function { name, call, body, is_test });
    }
    found
}

const MODIFIERS: [&str; 4] = ["const", "async", "unsafe", "extern"];

/// For each function, whether it contains one of these texts, or calls one of these functions that does.
fn contain(functions: &[Function<'_>], texts: &[&str]) -> Vec<bool> {
    let has = |function: &Function<'_>| texts.iter().any(|text| function.body.contains(text));
    let mut found: Vec<bool> = functions.iter().map(has).collect();
    let mut new: Vec<usize> = (0..found.len()).filter(|place| found[*place]).collect();
    while !new.is_empty() {
        let calls = |body: &str| new.iter().any(|place| is_used(body, &functions[*place].call));
        let callers = (0..found.len()).filter(|place| !found[*place] && calls(&functions[*place].body));
        new = callers.collect();
        for place in &new {
            found[*place] = true;
        }
    }
    found
}

/// Whether a function is called by this name, possibly with the path of its module.
fn is_used(body: &str, call: &str) -> bool {
    let is_part = |letter: char| letter == '_' || letter.is_alphanumeric();
    body.match_indices(call).any(|(place, _)| {
        let before = &body[..place];
        let path = before.strip_suffix("::").map(|path| path.rsplit(|letter| !is_part(letter)).next());
        let is_of_a_type = path.flatten().is_some_and(|path| path.starts_with(char::is_uppercase));
        !is_of_a_type
            && !before.ends_with(|letter| is_part(letter) || letter == '.')
            && !before.ends_with("fn ")
    })
}

/// How many tests of a file need a limit, and those of them that have none. Helpers are followed in the file and in
/// that of the parent module; helpers elsewhere start the limit in a fixture of [`LIMITED`].
fn limits_of_tests<'a>(text: &'a str, above: &'a str) -> (usize, Vec<&'a str>) {
    let mut functions = functions(text);
    let own = functions.len();
    functions.extend(self::functions(above));
    let (need, have) = (contain(&functions, &NEEDS_LIMIT), contain(&functions, &LIMITED));
    let tests: Vec<usize> = (0..own).filter(|place| functions[*place].is_test && need[*place]).collect();
    let without = tests.iter().filter(|place| !have[**place]).map(|place| functions[*place].name);
    (tests.len(), without.collect())
}

/// The text of the parent module's file, if it exists.
fn module_above<'a>(files: &'a [(PathBuf, String)], path: &Path) -> &'a str {
    let directory = path.parent().unwrap_or(path);
    let above = [directory.join("mod.rs"), directory.with_extension("rs")];
    let mut found = files.iter().filter(|(other, _)| other != path && above.contains(other));
    found.next().map_or("", |(_, text)| text)
}

#[test]
fn every_test_has_a_time_limit_unless_it_compares_literal_values() {
    let (mut checked, mut without) = (0, Vec::new());
    let mut files = sources_of_crates();
    sources(&root().join("xtask"), &mut files);
    for (path, text) in files.iter().filter(|(path, _)| !path.ends_with("xtask/src/guarantees.rs")) {
        let (count, names) = limits_of_tests(text, module_above(&files, path));
        checked += count;
        without.extend(names.into_iter().map(|name| format!("{}: {name}", path.display())));
    }
    assert!(without.is_empty(), "tests without a time limit (see crates/testkit):\n{}", without.join("\n"));
    assert!(checked > 200, "{checked} tests were checked");
}

#[test]
fn a_test_without_a_limit_is_found_beside_one_that_has_a_limit() {
    let file = "
use testkit::wait_until;

fn start() -> Child {
    testkit::limit_test();
    Command::new(\"true\").spawn().unwrap()
}

#[test]
fn a_test_with_a_fixture() {
    start().wait();
}

#[test]
fn a_test_that_only_computes() {
    assert_eq!(1 + 1, 2);
}

#[test]
fn a_test_that_can_hang() {
    let (_sender, receiver) = channel::<()>();
    receiver.recv();
}

#[test]
fn another_test_that_can_hang() {
    // limit_test()
    Barrier::new(2).wait();
}

#[test]
fn a_test_of_a_long_text() {
    assert!(is_match(&\"a*\".repeat(1_000), \"b\"));
}
";
    let (checked, without) = limits_of_tests(file, "");
    let expected = ["a_test_that_can_hang", "another_test_that_can_hang", "a_test_of_a_long_text"];
    assert_eq!((checked, without), (4, expected.to_vec()));
}

/// Waits of the standard library that have no limit.
const ENDLESS: [&str; 6] = [
    ".output()",
    ".wait_with_output()",
    ".wait().unwrap()",
    ".wait();",
    ".stdout.take().unwrap()).",
    ".recv()",
];

#[test]
fn no_test_waits_for_a_process_without_a_limit() {
    let mut files = sources_of_crates();
    sources(&root().join("xtask"), &mut files);
    for (path, text) in files {
        let path = path.strip_prefix(root()).unwrap();
        let only_tests = path.components().any(|part| part.as_os_str() == "tests")
            || path.ends_with("tests.rs")
            || path.starts_with("crates/testkit");
        // This file has the words that it looks for.
        if path.ends_with("testkit/src/process.rs") || path.ends_with("xtask/src/guarantees.rs") {
            continue;
        }
        let tests = if only_tests { text.as_str() } else { unit_tests(&text) };
        for line in tests.lines().filter(|line| !line.trim_start().starts_with("//")) {
            // All threads reach the barrier, or the limit of the test ends them.
            let is_endless = ENDLESS.iter().any(|call| line.contains(call)) && !is_barrier(line);
            assert!(!is_endless, "{}: {line}: testkit::process has a limit", path.display());
        }
    }
}

/// The tests at the end of a file of the product.
fn unit_tests(text: &str) -> &str {
    text.find("\n#[cfg(test)]\nmod ").map_or("", |start| &text[start..])
}

fn is_barrier(line: &str) -> bool {
    ["start.wait();", "ready.wait();", "WRITING.wait();"].iter().any(|call| line.contains(call))
}

/// The minutes that `.ci/run` gives a command.
fn minutes_in_ci(command: &str) -> u64 {
    let script = fs::read_to_string(root().join(".ci/run")).unwrap();
    let mut lines = script.lines().filter_map(|line| line.strip_prefix("limited ")?.split_once(' '));
    let (minutes, _) = lines.find(|(_, limited)| limited.starts_with(command)).unwrap();
    minutes.parse().unwrap()
}

#[test]
fn a_task_ends_itself_before_ci_ends_it() {
    let (install, test) = (minutes_in_ci("cargo xtask install"), minutes_in_ci("cargo xtask test"));
    // The rest is for compiling xtask, and for ending killed processes.
    assert!(crate::install::LIMIT_IN_CI.as_secs() + 120 <= install * 60, "{install} min");
    assert!(crate::test::LIMIT_IN_CI.as_secs() + 120 <= test * 60, "{test} min");
    assert!(install + test <= 85, "the machine ends CI after 90 min");
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
