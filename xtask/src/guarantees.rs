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

/// Calls that start the limit of a test: directly, or in the constructor of a fixture.
const LIMITED: [&str; 11] = [
    "limit_test()",
    "testkit::tempdir()",
    // The same, in the fixtures of testkit itself.
    "crate::tempdir()",
    "Scratch::",
    "TestBoard::",
    "Site::",
    "Served::",
    "Fixture::",
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

/// What a test contains that waits, starts something or uses files.
const NEEDS_LIMIT: [&str; 12] = [
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
];

/// A function of a source file.
struct Function<'a> {
    name: &'a str,
    body: String,
    is_test: bool,
}

/// The functions of a file, as `rustfmt` lays them out: each ends at the first line that closes its indentation.
fn functions(text: &str) -> Vec<Function<'_>> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    for (start, line) in lines.iter().enumerate() {
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
        found.push(Function { name, body, is_test });
    }
    found
}

const MODIFIERS: [&str; 4] = ["const", "async", "unsafe", "extern"];

/// The functions that contain one of these texts, or call a function of the same file that does.
fn that_contain<'a>(functions: &[Function<'a>], texts: &[&str]) -> Vec<&'a str> {
    let has = |function: &Function<'_>| texts.iter().any(|text| function.body.contains(text));
    let mut found: Vec<&str> = functions.iter().filter(|f| has(f)).map(|f| f.name).collect();
    loop {
        let calls = |function: &Function<'_>| found.iter().any(|name| is_used(&function.body, name));
        let more: Vec<_> =
            functions.iter().filter(|f| !found.contains(&f.name) && calls(f)).map(|f| f.name).collect();
        if more.is_empty() {
            return found;
        }
        found.extend(more);
    }
}

/// Whether a function is called, or handed on, by its bare name.
fn is_used(body: &str, name: &str) -> bool {
    let is_part = |letter: char| letter == '_' || letter.is_alphanumeric();
    body.match_indices(name).any(|(place, _)| {
        let (before, after) = (&body[..place], &body[place + name.len()..]);
        !before.ends_with(|letter| is_part(letter) || letter == '.')
            && !before.ends_with("fn ")
            && after.starts_with('(')
    })
}

/// How many tests of a file need a limit, and those of them that have none. Helpers of other files are not followed:
/// what they start is in a fixture of [`LIMITED`].
fn limits_of_tests(text: &str) -> (usize, Vec<&str>) {
    let functions = functions(text);
    let (need, have) = (that_contain(&functions, &NEEDS_LIMIT), that_contain(&functions, &LIMITED));
    let tests = functions.iter().filter(|function| function.is_test && need.contains(&function.name));
    let tests: Vec<&str> = tests.map(|function| function.name).collect();
    (tests.len(), tests.into_iter().filter(|name| !have.contains(name)).collect())
}

#[test]
fn every_test_that_waits_starts_something_or_uses_files_has_a_time_limit() {
    let (mut checked, mut without) = (0, Vec::new());
    let mut files = sources_of_crates();
    sources(&root().join("xtask"), &mut files);
    for (path, text) in files.iter().filter(|(path, _)| !path.ends_with("xtask/src/guarantees.rs")) {
        let (count, names) = limits_of_tests(text);
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
";
    let (checked, without) = limits_of_tests(file);
    assert_eq!((checked, without), (3, vec!["a_test_that_can_hang", "another_test_that_can_hang"]));
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
    // The rest is for compiling xtask, and for the end of what was killed.
    assert!(crate::install::LIMIT.as_secs() + 120 <= install * 60, "{install} min");
    assert!(crate::test::LIMIT.as_secs() + 120 <= test * 60, "{test} min");
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
