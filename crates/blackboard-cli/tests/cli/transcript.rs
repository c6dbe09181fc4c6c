//! Human output: transcripts of terminal sessions, one file per command, all in `snapshots/`.
//!
//! A file is what a terminal would show: lines that begin with `$` are run by a shell, in a directory of their own,
//! and what follows is what they print. Lines that begin with `#` explain. What changes from run to run (ids, times)
//! has a name instead. `BLACKBOARD_WRITE_SNAPSHOTS=1 cargo test -p blackboard-cli --test cli` writes the files again;
//! read the difference before you commit it.

use std::fmt::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use testkit::engine::Engine;
use testkit::process::RunToEnd as _;

use crate::scratch::{Output, Scratch, commands, with_dying_process};

/// Runs the transcript of a command and compares.
#[track_caller]
pub fn check(command: &str) {
    let file = file_of(command);
    let stored = std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    // A board that a variable names is no home board.
    let is_expected =
        |line: &&str| Engine::of_this_test() == Engine::Sqlite || !line.contains("showing your home board");
    let stored = stored.split_inclusive('\n').filter(is_expected).collect::<String>();
    let mut seen = replay(&stored);
    // An age of ten seconds is wider than a smaller one, and so is its column.
    for _ in 0..ATTEMPTS {
        if seen.text == stored || seen.took < TEN_SECONDS {
            break;
        }
        seen = replay(&stored);
    }
    let seen = seen.text;
    if std::env::var_os("BLACKBOARD_WRITE_SNAPSHOTS").is_some() {
        if Engine::of_this_test() == Engine::Sqlite {
            std::fs::write(&file, seen).unwrap();
        }
    } else {
        let mut lines = seen.lines().zip(stored.lines());
        let different = lines.find(|(seen, stored)| seen != stored);
        assert!(seen == stored, "{} is not what happens; seen and stored: {different:#?}", file.display());
    }
}

#[test]
fn every_command_has_a_module_and_a_transcript() {
    let directory = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/cli");
    for command in commands() {
        let module = directory.join(command.replace(' ', "/")).with_extension("rs");
        assert!(module.exists(), "{command} has no tests: {} is missing", module.display());
        let source = std::fs::read_to_string(&module).unwrap();
        let call = format!("transcript::check(\"{command}\")");
        assert!(source.contains(&call), "{} does not call {call}", module.display());
        let transcript = std::fs::read_to_string(file_of(&command)).unwrap_or_default();
        let runs_it = transcript
            .lines()
            .any(|line| line.starts_with("$ ") && line.contains(&format!("blackboard {command}")));
        assert!(runs_it, "{} never runs {command}", file_of(&command).display());
    }
}

fn file_of(command: &str) -> PathBuf {
    let name = format!("{}.txt", command.replace(' ', "-"));
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/cli/snapshots").join(name)
}

/// How often a transcript is run again on a machine that is too busy for it.
const ATTEMPTS: usize = 4;
const TEN_SECONDS: Duration = Duration::from_secs(10);

/// What a transcript should be, and how long its commands took.
struct Replayed {
    text: String,
    took: Duration,
}

/// Runs the lines of a transcript.
fn replay(transcript: &str) -> Replayed {
    let begin = Instant::now();
    let scratch = Scratch::new();
    let mut dead = Vec::new();
    let mut text = String::new();
    for line in transcript.lines() {
        let call = line.strip_prefix("$ ");
        if call.is_none() && !line.starts_with("# ") {
            continue;
        }
        // What was printed is set apart from what comes next.
        if text.lines().last().is_some_and(|last| !last.starts_with(['$', '#'])) {
            text.push('\n');
        }
        writeln!(text, "{line}").unwrap();
        if let Some(call) = call {
            text.push_str(&if call.contains("$DEAD_PID") {
                with_dying_process(|pid| {
                    dead.push(pid.to_owned());
                    run(&scratch, call, pid)
                })
            } else {
                run(&scratch, call, "")
            });
        }
    }
    let text = text.replace(scratch.path().to_str().unwrap(), "/home/ivy");
    Replayed { text: Names::default().normalize(&text, &dead), took: begin.elapsed() }
}

/// Runs a line. `pid` is that of a process which ends with the line.
fn run(scratch: &Scratch, call: &str, pid: &str) -> String {
    // In one pipe, so that what is printed stays in order.
    let mut command = scratch.shell(&format!("exec 2>&1; {call}"));
    let Output { code, stdout: mut said, .. } = Output::of(command.env("DEAD_PID", pid).run_to_end());
    if code != 0 {
        writeln!(said, "[exit {code}]").unwrap();
    }
    if scratch.is_served() { as_in_a_file(scratch, &said) } else { said }
}

/// A transcript shows a board in the home of boards, and stands for other engines too. There a variable names the board.
fn as_in_a_file(scratch: &Scratch, said: &str) -> String {
    let is_kept = |line: &&str| !line.starts_with("note: the hook finds the board as any command does");
    let lines = said.split_inclusive('\n').filter(is_kept).collect::<String>();
    lines
        .replace(&scratch.location(), "/home/ivy/.pai/blackboard/local.db")
        .replace("or check BLACKBOARD_DB", "or check --db")
}

/// The text with names for what differs from run to run.
pub fn normalized(text: &str) -> String {
    Names::default().normalize(text, &[])
}

/// Stands for what differs from run to run. Replacements keep the width, so that tables stay tables.
#[derive(Default)]
struct Names {
    sessions: Vec<String>,
}

impl Names {
    fn normalize(&mut self, text: &str, dead: &[String]) -> String {
        let mut clean = String::with_capacity(text.len());
        let mut rest = text;
        let mut inside_word = false;
        while let Some(character) = rest.chars().next() {
            let taken = if inside_word { None } else { self.replacement(rest, dead) };
            let (length, shown) = taken.unwrap_or_else(|| (character.len_utf8(), character.to_string()));
            clean.push_str(&shown);
            inside_word = rest[..length].ends_with(|last: char| last.is_alphanumeric());
            rest = &rest[length..];
        }
        clean
    }

    /// The length of the value at the start of `rest` that has a name, and that name.
    fn replacement(&mut self, rest: &str, dead: &[String]) -> Option<(usize, String)> {
        const SESSION: &str = "hhhhhhhh-hhhh-hhhh-hhhh-hhhhhhhhhhhh";
        const SHORT_ID: &str = "hhhhhhhh";
        for (shape, name) in [
            ("dddd-dd-ddTdd:dd:dd.dddZ", "2026-02-03T15:30:00.000Z"),
            ("dddd-dd-ddTdd:dd:ddZ", "2026-02-03T15:30:00Z"),
            ("dd:dd:dd", "15:30:00"),
            ("dd:dd (", "15:30 ("),
        ] {
            if has_shape(rest, shape) {
                return Some((shape.len(), name.to_owned()));
            }
        }
        if has_shape(rest, SESSION) {
            return Some((SESSION.len(), self.session(&rest[..SESSION.len()])));
        }
        if has_shape(rest, SHORT_ID) {
            let (id, next) = rest.split_at(SHORT_ID.len());
            let is_word = next.starts_with(|next: char| next.is_alphanumeric());
            if !is_word && id.contains(|digit: char| digit.is_ascii_digit()) {
                return Some((SHORT_ID.len(), self.session(id)[..SHORT_ID.len()].to_owned()));
            }
        }
        let own = std::process::id().to_string();
        let dead = dead.iter().map(|process| (process, "<dead pid>"));
        for (process, name) in dead.chain([(&own, "<pid>")]) {
            if rest.starts_with(process.as_str())
                && !rest[process.len()..].starts_with(|next: char| next.is_ascii_digit())
            {
                return Some((process.len(), name.to_owned()));
            }
        }
        elapsed(rest)
    }

    /// The same id gets the same name, in the order in which they appear.
    fn session(&mut self, id: &str) -> String {
        let is_same = |known: &String| known.starts_with(id) || id.starts_with(known.as_str());
        let number = self.sessions.iter().position(is_same).unwrap_or_else(|| {
            self.sessions.push(id.to_owned());
            self.sessions.len() - 1
        });
        format!("{0:08}-0000-4000-8000-{0:012}", number + 1)
    }
}

const NO_TIME: &str = "less than a second";

/// A machine may be slow, but no transcript takes a minute: few seconds are no time at all.
fn elapsed(rest: &str) -> Option<(usize, String)> {
    let digits = rest.len() - rest.trim_start_matches(|digit: char| digit.is_ascii_digit()).len();
    if rest.starts_with(NO_TIME) {
        return Some((NO_TIME.len(), "0 seconds".to_owned()));
    }
    if digits == 0 || digits > 3 {
        return None;
    }
    let after = &rest[digits..];
    for (unit, name) in
        [(" sec ago", "just now "), (" seconds", "0 seconds"), (" second", "0 seconds"), (" KB", "300 KB")]
    {
        if after.starts_with(unit) {
            return Some((digits + unit.len(), name.to_owned()));
        }
    }
    // From a minute on it would be printed in minutes.
    let is_age = rest[..digits].parse::<u8>().is_ok_and(|seconds| seconds < 60)
        && after.starts_with('s')
        && !after[1..].starts_with(|next: char| next.is_alphanumeric());
    is_age.then(|| (digits + 1, "0s".to_owned()))
}

/// Whether the text begins with this shape: `h` is a hexadecimal digit, `d` a decimal one.
fn has_shape(text: &str, shape: &str) -> bool {
    text.len() >= shape.len()
        && text.bytes().zip(shape.bytes()).all(|(byte, shape)| match shape {
            b'h' => byte.is_ascii_hexdigit(),
            b'd' => byte.is_ascii_digit(),
            other => byte == other,
        })
}

#[test]
fn transcripts_replace_values_that_differ_between_runs() {
    let id = "f76b0ba8-2716-58ab-8be4-1f8f7b71a60b";
    for (text, expected) in [
        (format!("{id} {id}"), "00000001-0000-4000-8000-000000000001 00000001-0000-4000-8000-000000000001"),
        ("at 2026-11-15T20:43:28.253Z, 20:43:28".to_owned(), "at 2026-02-03T15:30:00.000Z, 15:30:00"),
        ("at 2026-11-15T20:43:28Z (3s ago)".to_owned(), "at 2026-02-03T15:30:00Z (0s ago)"),
        ("3 sec ago, 3s, 1 second, 12 seconds".to_owned(), "just now , 0s, 0 seconds, 0 seconds"),
        (format!("Ivy ({}) since 20:43 (3s ago)", &id[..8]), "Ivy (00000001) since 15:30 (0s ago)"),
        ("fence 3, 4s5, P1, --since 1h".to_owned(), "fence 3, 4s5, P1, --since 1h"),
        (format!("PID {}, {0}1", std::process::id()), &format!("PID <pid>, {}1", std::process::id())),
    ] {
        assert_eq!(Names::default().normalize(&text, &[]), expected);
    }
}
