//! Tests of what is read from files of platforms.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use blackboard::quota::Usage;
use tempfile::TempDir;

use super::reading::{Reading, ReadingContext};
use super::spool::{self, SpoolLine};
use super::transcript::{Origin, Progress, Transcript, TranscriptFile, states};
use crate::platforms::{PLATFORMS, Platform};

fn read(platform: &str, fixture: &str) -> Reading {
    let format = Platform::find(platform).unwrap().usage.as_ref().unwrap();
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/usage").join(fixture);
    let mut reading = Reading::default();
    for line in fs::read_to_string(file).unwrap().lines() {
        (format.read)(line, &mut reading);
    }
    reading
}

fn messages(reading: &Reading) -> Vec<(&str, &str, [u64; 5])> {
    let numbers =
        |usage: &Usage| [usage.input, usage.cache_write, usage.cache_read, usage.output, usage.reasoning];
    let messages = reading.messages.iter();
    messages.map(|message| (message.id.as_str(), message.model.as_str(), numbers(&message.usage))).collect()
}

#[test]
fn usage_of_each_platform_is_read_in_one_form_and_each_message_once() {
    testkit::limit_test();
    let usual = [112, 0, 1001, 50, 7];
    for (platform, fixture, expected) in [
        (
            "claude",
            "claude.jsonl",
            vec![
                ("claude:msg_1", "claude-opus-4", [11, 101, 1001, 57, 0]),
                ("claude:msg_2", "claude-opus-4", [11, 101, 1001, 50, 7]),
            ],
        ),
        (
            "codex",
            "codex.jsonl",
            vec![
                ("codex:t1:resp_1", "gpt-5", usual),
                ("codex:t1:resp_2", "gpt-5", usual),
                ("codex:t1:resp_3", "gpt-5-mini", usual),
            ],
        ),
        (
            "codex",
            "codex-older.jsonl",
            vec![("codex:t2:1170", "gpt-5", usual), ("codex:t2:2340", "gpt-5", usual)],
        ),
        (
            "gemini",
            "gemini.jsonl",
            vec![
                ("gemini:g1", "gemini-2.5-flash", usual),
                ("gemini:g2", "gemini-2.5-flash", [117, 0, 1001, 50, 7]),
            ],
        ),
        (
            "copilot",
            "copilot.jsonl",
            vec![("copilot:s1:1", "gpt-5", usual), ("copilot:s1:2", "gpt-5", usual)],
        ),
        (
            "opencode",
            "opencode.jsonl",
            vec![("opencode:msg_1", "gpt-5", usual), ("opencode:msg_2", "gpt-5", [1, 0, 0, 2, 0])],
        ),
    ] {
        assert_eq!(messages(&read(platform, fixture)), expected, "{fixture}");
    }
}

#[test]
fn limits_that_a_platform_reports_are_read_with_the_model() {
    testkit::limit_test();
    let reading = read("codex", "codex.jsonl");
    let limits: Vec<_> = reading
        .limits
        .iter()
        .map(|limit| (limit.model.as_str(), limit.window_minutes, limit.used_percent, limit.resets_at))
        .collect();
    // A later line has the limits of one model, which are not those of the account.
    let expected = [
        ("gpt-5", 300, 42.5, 1_770_140_000_000),
        ("gpt-5", 10_080, 17.0, 1_770_600_000_000),
        ("gpt-5-mini", 299, 42.5, 1_770_140_000_000),
        ("gpt-5-mini", 10_079, 17.0, 1_770_600_000_000),
    ];
    assert_eq!(limits, expected);
}

#[test]
fn lines_of_another_tool_and_damaged_lines_are_ignored() {
    testkit::limit_test();
    let deep = format!(r#"{{"type":"assistant","message":{}"#, "[".repeat(100_000));
    let lines = [
        "",
        "null",
        "{}",
        "[]",
        r#"{"type":"assistant","message":null}"#,
        r#"{"type":"assistant","message":{"id":"x","usage":[]},"tokens":1}"#,
        r#"{"type":"token_usage_record","payload":{"usage":{"input_tokens":5}}}"#,
        r#"{"type":"event_msg","payload":{"type":"token_count","info":null}}"#,
        r#"{"type":"session.usage_record","data":{}}"#,
        r#"{"type":"gemini","tokens":{"input":5}}"#,
        &deep,
    ];
    for platform in PLATFORMS {
        let Some(format) = &platform.usage else { continue };
        let mut reading = Reading::default();
        for line in lines {
            (format.read)(line, &mut reading);
        }
        assert!(reading.is_empty(), "{}", platform.id);
    }
}

/// A home of boards, and the directory of a platform with a file.
struct Stage {
    directory: TempDir,
    session: String,
}

impl Stage {
    fn new() -> Stage {
        let directory = testkit::tempdir().unwrap();
        for name in ["home", "platform", "outside"] {
            fs::create_dir(directory.path().join(name)).unwrap();
        }
        Stage { directory, session: "s".to_owned() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().canonicalize().unwrap().join(name)
    }

    fn append(&self, text: &str) {
        let mut options = OpenOptions::new();
        let file = options.append(true).create(true).open(self.path("platform/t.jsonl"));
        file.unwrap().write_all(text.as_bytes()).unwrap();
    }

    fn open(&self, path: PathBuf) -> Option<Transcript> {
        let file = TranscriptFile {
            path,
            root: self.path("platform"),
            platform: Platform::find("claude").unwrap(),
            own_session: None,
        };
        let origin = Origin { board: "b".to_owned(), session: self.session.clone(), agent: None, item: None };
        Transcript::open(&self.path("home"), file, &origin).unwrap()
    }

    fn read_with(&self, limit: usize) -> (Vec<String>, Progress) {
        let mut ids = Vec::new();
        let mut transcript = self.open(self.path("platform/t.jsonl")).unwrap();
        let progress = transcript.read(limit, &mut |_, reading| {
            ids.extend(reading.messages.iter().map(|message| message.id.replace("claude:", "")));
            Ok(())
        });
        (ids, progress.unwrap())
    }

    fn read(&self) -> Vec<String> {
        self.read_with(1 << 20).0
    }
}

fn line(id: &str) -> String {
    format!(
        r#"{{"type":"assistant","timestamp":"2026-02-03T15:30:00Z","message":{{"id":"{id}","model":"m","usage":{{"input_tokens":1}}}}}}"#
    )
}

#[test]
fn each_call_continues_after_the_last_complete_line() {
    let stage = Stage::new();
    assert_eq!(stage.read(), [""; 0], "the file does not exist yet");
    assert_eq!(states(&stage.path("home")).count(), 1, "a fold finds it");
    stage.append(&format!("{}\n{}\n{}", line("1"), line("2"), line("3")));
    assert_eq!(stage.read(), ["1", "2"]);
    assert_eq!(stage.read(), [""; 0], "the last line is not complete");
    stage.append("\n");
    assert_eq!(stage.read(), ["3"]);
    assert_eq!(stage.read(), [""; 0]);
}

#[test]
fn a_file_that_is_cut_off_or_replaced_is_read_from_its_start() {
    let stage = Stage::new();
    let file = stage.path("platform/t.jsonl");
    stage.append(&format!("{}\n{}\n", line("1"), line("2")));
    assert_eq!(stage.read(), ["1", "2"]);
    // Shorter than before.
    fs::write(&file, format!("{}\n", line("3"))).unwrap();
    assert_eq!(stage.read(), ["3"]);
    // Cut off, and longer than before: no line ends where the last one did.
    fs::write(&file, format!("{}\n{}\n", line("long-name-of-4"), line("5"))).unwrap();
    assert_eq!(stage.read(), ["long-name-of-4", "5"]);
    // Another file of the same length.
    fs::rename(&file, stage.path("platform/old.jsonl")).unwrap();
    stage.append(&format!("{}\n{}\n", line("long-name-of-6"), line("7")));
    assert_eq!(stage.read(), ["long-name-of-6", "7"]);
}

#[test]
fn a_call_reads_a_part_and_the_next_one_continues() {
    let stage = Stage::new();
    let all: Vec<String> = (0..100).map(|number| number.to_string()).collect();
    stage.append(&all.iter().map(|id| line(id) + "\n").collect::<String>());
    let mut ids = Vec::new();
    let mut calls = 0;
    loop {
        let (more, progress) = stage.read_with(1000);
        ids.extend(more);
        calls += 1;
        if !progress.has_more {
            break;
        }
    }
    assert_eq!(ids, all);
    assert!(calls > 10, "{calls}");
}

#[test]
fn a_line_that_is_too_long_is_skipped_and_what_follows_is_read() {
    let stage = Stage::new();
    let long = format!(r#"{{"type":"assistant","text":"{}"#, "x".repeat(9 << 20));
    stage.append(&format!("{}\n{long}", line("1")));
    let mut ids = Vec::new();
    for _ in 0..20 {
        ids.extend(stage.read());
    }
    assert_eq!(ids, ["1"]);
    stage.append(&format!("\n{}\n", line("2")));
    for _ in 0..20 {
        ids.extend(stage.read());
    }
    assert_eq!(ids, ["1", "2"]);
    // One of 2 MB is longer than a call usually reads.
    let large = line("3").replace("\"m\"", &format!("\"m\",\"text\":\"{}\"", "x".repeat(2 << 20)));
    stage.append(&format!("{large}\n{}\n", line("4")));
    assert_eq!([stage.read(), stage.read()].concat(), ["3", "4"]);
}

#[test]
fn lines_are_read_again_if_they_could_not_be_kept() {
    let stage = Stage::new();
    stage.append(&format!("{}\n", line("1")));
    let mut transcript = stage.open(stage.path("platform/t.jsonl")).unwrap();
    let failed = transcript.read(1 << 20, &mut |_, _| Err(io::ErrorKind::StorageFull.into()));
    assert!(failed.is_err());
    assert!(stage.open(stage.path("platform/t.jsonl")).is_none(), "another call reads it now");
    drop(transcript);
    assert_eq!(stage.read(), ["1"]);
    // A state that was lost or damaged.
    let file = states(&stage.path("home")).next().unwrap().path();
    fs::write(&file, r#"{"path": "#).unwrap();
    assert_eq!(stage.read(), ["1"]);
}

#[cfg(unix)]
#[test]
fn only_own_regular_files_below_the_directory_of_the_platform_are_read() {
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;
    let stage = Stage::new();
    let write = |name: &str| fs::write(stage.path(name), line("1") + "\n").unwrap();
    write("outside/t.jsonl");
    fs::create_dir(stage.path("platform/inside")).unwrap();
    write("platform/inside/t.jsonl");
    symlink(stage.path("outside/t.jsonl"), stage.path("platform/link.jsonl")).unwrap();
    symlink(stage.path("platform/inside/t.jsonl"), stage.path("platform/inner-link.jsonl")).unwrap();
    symlink(stage.path("outside"), stage.path("platform/directory")).unwrap();
    fs::create_dir(stage.path("platform/directory.jsonl")).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, stage.path("platform/fifo.jsonl"), rustix::fs::Mode::RWXU).unwrap();
    let _socket = UnixListener::bind(stage.path("platform/socket.jsonl")).unwrap();
    let read = |path: PathBuf| {
        let mut found = 0;
        let mut transcript = stage.open(path)?;
        let outcome = transcript.read(1 << 20, &mut |_, reading| {
            found += reading.messages.len();
            Ok(())
        });
        Some((found, outcome.is_ok()))
    };
    assert_eq!(read(stage.path("platform/inside/t.jsonl")), Some((1, true)));
    for name in [
        "outside/t.jsonl",
        "platform/link.jsonl",
        "platform/inner-link.jsonl",
        "platform/directory/t.jsonl",
        "platform/directory.jsonl",
        "platform/fifo.jsonl",
        "platform/socket.jsonl",
    ] {
        assert_eq!(read(stage.path(name)), Some((0, false)), "{name}");
    }
    for path in ["t.jsonl", "platform/inside/../../outside/t.jsonl"] {
        let path = if path == "t.jsonl" { PathBuf::from(path) } else { stage.path(path) };
        assert_eq!(read(path), None);
    }
    let long = stage.path("platform").join("x/".repeat(3000));
    assert_eq!(read(long), None);
}

#[test]
fn a_spool_keeps_every_line_while_it_is_folded() {
    testkit::limit_test();
    let directory = testkit::tempdir().unwrap();
    let home = directory.path();
    let writers = 4;
    let each = 200;
    let mut found = Vec::new();
    let mut drain = || {
        let mut take = |lines: Vec<SpoolLine>| -> io::Result<()> {
            found.extend(lines.into_iter().map(|line| line.origin.session));
            Ok(())
        };
        spool::drain(home, &mut take).unwrap();
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..writers)
            .map(|writer| {
                scope.spawn(move || {
                    for number in 0..each {
                        let session = format!("{writer}-{number}");
                        let origin = Origin { session, ..Origin::default() };
                        spool::append(home, &[SpoolLine { origin, message: None, limit: None }]).unwrap();
                    }
                })
            })
            .collect();
        while threads.iter().any(|thread| !thread.is_finished()) {
            drain();
        }
    });
    // Half a line of a killed process, and a fold that was killed.
    let mut file = OpenOptions::new().append(true).create(true).open(home.join("quota-spool")).unwrap();
    file.write_all(br#"{"board":"b","ses"#).unwrap();
    let last = Origin { session: "last".to_owned(), ..Origin::default() };
    spool::append(home, &[SpoolLine { origin: last, message: None, limit: None }]).unwrap();
    fs::rename(home.join("quota-spool"), home.join("quota-spool-folding")).unwrap();
    drain();
    found.sort();
    found.dedup();
    assert_eq!(found.len(), writers * each + 1);
    assert!(!spool::is_used(home));
}

#[test]
fn what_a_reader_knows_is_kept_between_calls() {
    testkit::limit_test();
    let format = Platform::find("codex").unwrap().usage.as_ref().unwrap();
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/usage/codex.jsonl");
    let mut context = ReadingContext::default();
    let mut models = Vec::new();
    for line in fs::read_to_string(fixture).unwrap().lines() {
        let mut reading = Reading::after(serde_json::from_value(serde_json::json!(context)).unwrap());
        (format.read)(line, &mut reading);
        models.extend(reading.messages.into_iter().map(|message| message.model));
        context = reading.context;
    }
    assert_eq!(models, ["gpt-5", "gpt-5", "gpt-5-mini", "gpt-5-mini"]);
    assert!(context.has_records);
}
