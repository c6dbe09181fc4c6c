//! The ledger of tokens, with many processes and with processes that are killed.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Stdio};

use serde_json::Value;
use testkit::scratch::Scratch;

use crate::crowd::{at_once, end_of, kill};
use crate::scale::{Chance, size};

const QUOTA: &str = r#"{"quota": {"providers": {"a": {"windows": {"5h": {"budget": 1000000000000}}}}}}"#;

/// A home with this configuration.
pub fn configured(text: &str) -> Scratch {
    let scratch = Scratch::new();
    let file = scratch.home_file("config.json");
    let directory = file.parent().unwrap();
    fs::create_dir_all(directory).unwrap();
    fs::set_permissions(directory, fs::Permissions::from_mode(0o700)).unwrap();
    fs::write(file, text).unwrap();
    scratch
}

/// JSON lines of messages, whose number is also their usage.
pub fn lines(numbers: impl Iterator<Item = usize>) -> String {
    let mut text = String::new();
    for number in numbers {
        let session = number % 7;
        writeln!(text, r#"{{"id":"m{number}","usage":{{"input":{number}}},"session":"s{session}"}}"#)
            .unwrap();
    }
    text
}

pub fn file(scratch: &Scratch, name: &str, text: &str) -> PathBuf {
    let file = scratch.path().join(name);
    fs::write(&file, text).unwrap();
    file
}

pub fn start(scratch: &Scratch, file: &std::path::Path) -> Child {
    let mut command = scratch.command(["quota", "record", file.to_str().unwrap(), "--json"]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

pub fn used(scratch: &Scratch) -> u64 {
    scratch.json(["quota", "status"])["providers"][0]["windows"][0]["used"].as_u64().unwrap()
}

#[test]
fn processes_that_change_the_configuration_at_once_lose_no_change() {
    let scratch = configured(QUOTA);
    // With the window that it has, as many as a provider may have.
    let answers = at_once(7, |number| {
        let key = format!("providers.a.windows.{}h.budget", number + 6);
        let mut command = scratch.command(["quota", "set", &key, "7"]);
        end_of(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap())
    });
    assert!(answers.iter().all(|ended| ended.status.success()), "{answers:?}");
    let status = scratch.json(["quota", "status"]);
    assert_eq!(status["providers"][0]["windows"].as_array().unwrap().len(), 8, "{status}");
}

#[test]
fn eight_processes_that_record_the_same_messages_count_each_once() {
    let scratch = configured(QUOTA);
    let (processes, messages) = (8, size(25_000, 100_000));
    // Each process has half of the messages, in its own order, and some of them twice.
    let files: Vec<_> = (0..processes)
        .map(|process| {
            let mut chance = Chance::new(process);
            let mut own: Vec<usize> = (0..messages).filter(|number| number % 2 == process % 2).collect();
            own.extend((0..messages / 8).map(|_| chance.below(messages)));
            for place in (1..own.len()).rev() {
                own.swap(place, chance.below(place + 1));
            }
            file(&scratch, &format!("{process}.jsonl"), &lines(own.into_iter()))
        })
        .collect();
    let answers = at_once(processes, |process| end_of(start(&scratch, &files[process])));
    let mut recorded = 0;
    for ended in answers {
        assert_eq!(ended.status.code(), Some(0), "{ended:?}");
        recorded += serde_json::from_str::<Value>(&ended.stdout).unwrap()["recorded"].as_u64().unwrap();
    }
    assert_eq!(recorded, messages as u64);
    assert_eq!(used(&scratch), (messages as u64 - 1) * messages as u64 / 2);
}

#[test]
fn of_fifty_processes_as_many_reserve_as_fit_together() {
    let scratch = configured(r#"{"quota": {"providers": {"a": {"windows": {"5h": {"budget": 1000}}}}}}"#);
    let answers = at_once(50, |_| {
        let call = ["quota", "check", "--tokens", "90", "--reserve", "--json"];
        let mut command = scratch.command(call);
        let ended = end_of(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap());
        ended.status.code()
    });
    assert_eq!(answers.iter().filter(|code| **code == Some(0)).count(), 11, "{answers:?}");
    assert_eq!(answers.iter().filter(|code| **code == Some(4)).count(), 39, "{answers:?}");
    let window = scratch.json(["quota", "status"])["providers"][0]["windows"][0].clone();
    assert_eq!((&window["reserved"], &window["remaining"]), (&990.into(), &10.into()));
}

#[test]
fn of_twenty_processes_that_cross_a_threshold_one_announces_it() {
    let scratch = configured(
        r#"{"quota": {"providers": {"a": {"windows": {"5h": {"budget": 1000}}, "warnAt": [0.5, 0.9]}}}}"#,
    );
    scratch.run(["work", "create", "x", "--title", "X"]).success();
    for (tokens, expected) in [("26", 1), ("24", 2)] {
        let answers = at_once(20, |_| {
            let mut command = scratch.command(["quota", "record", "--input-tokens", tokens]);
            end_of(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap())
        });
        for ended in answers {
            assert_eq!(ended.status.code(), Some(0), "{ended:?}");
        }
        let warnings = scratch.json(["observe", "--since", "1h", "--filter", "quota_warning"]);
        assert_eq!(warnings["count"], expected, "{warnings}");
    }
}

#[test]
fn a_killed_process_leaves_sums_that_a_retry_completes() {
    let scratch = configured(QUOTA);
    let messages = size(6_000, 60_000);
    let all = file(&scratch, "all.jsonl", &lines(0..messages));
    let mut chance = Chance::new(7);
    for _ in 0..size(8, 60) {
        let child = start(&scratch, &all);
        // At any moment: while it starts, reads, or commits one of its transactions.
        std::thread::sleep(std::time::Duration::from_millis(chance.below(60) as u64));
        kill(child.id());
        end_of(child);
        let output = scratch.run(["quota", "status", "--json"]);
        assert_eq!(output.code, 0, "{output:?}");
    }
    let ended = end_of(start(&scratch, &all));
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    assert_eq!(used(&scratch), (messages as u64 - 1) * messages as u64 / 2);
}
