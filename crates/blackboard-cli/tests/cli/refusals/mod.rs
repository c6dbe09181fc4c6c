//! Every command × every code that it can end with, each provoked with the real program.
//!
//! The commands come from the help text and the codes from `Code::ALL`, so that neither a new command nor a new code
//! is forgotten: [`calls::can_end_with`] says which pairs there are, [`calls::provoke`] has the call for each of them, and a pair
//! without a call, a call without a pair, or a code without a command fails.

mod calls;
mod session_names;
mod stage;

use std::collections::BTreeSet;
use std::fs::File;
use std::process::Child;

use blackboard::Code;
use rusqlite::Connection;

pub use self::calls::{CALLS, READING};
use self::calls::{can_end_with, provoke};
use self::stage::Stage;
pub use self::stage::write_transactions;
use crate::scratch::{Output, commands};
use testkit::process::RunToEnd as _;

testkit::on_each_engine![every_refusal_of_every_command_has_human_and_json_output,];

/// Codes that no command of the program can be brought to end with, and why.
const NOT_PROVOKED: &[(Code, &str)] = &[
    (Code::DiskFull, "needs a file system without room, which `cargo xtask torture` makes"),
    (Code::NetworkFilesystem, "needs another file system, which tests/process/file_systems.rs makes"),
    (Code::ServerUnavailable, "needs a Redis server, which tests/redis_server of the library starts"),
    (Code::ServerUnsuitable, "needs a Redis server, which tests/redis_server of the library starts"),
    (Code::ServerFull, "needs a Redis server, which tests/redis_server of the library starts"),
    (Code::OutcomeUnknown, "needs a connection that breaks, which tests/redis_server of the library makes"),
    (Code::AccessDenied, "needs a Redis server, which tests/redis_server of the library starts"),
    (Code::BeingCopied, "needs an interrupted copy, which tests/cli/copy.rs makes"),
    (Code::BoardSealed, "needs a sealed board, which tests/cli/copy.rs makes"),
    (Code::QuotaNotConfigured, "needs a home without a quota, which tests/cli/quota/status.rs has"),
    (Code::Internal, "would be a bug of this program"),
];

/// The words in which a lower layer would speak, and those of a crash.
const FORBIDDEN: &[&str] =
    &["panicked", "backtrace", "RUST_", "constraint", "SQLITE", "UNIQUE", "SELECT", "INSERT", "rusqlite"];

fn every_refusal_of_every_command_has_human_and_json_output() {
    let stage = Stage::new();
    let mut covered = BTreeSet::new();
    for command in commands() {
        let possible = can_end_with(&command);
        for &code in Code::ALL {
            match (possible.contains(&code), provoke(&stage, &command, code)) {
                (true, Some(call)) => {
                    covered.insert(code);
                    // They wait for five seconds each, so they wait together, in their own test.
                    if code != Code::Busy {
                        check(&stage, &call, code);
                    }
                }
                (true, None) => panic!("`{command}` can end with {code}, but nothing provokes it"),
                (false, Some(call)) => {
                    panic!("{call:?} provokes {code}, which `{command}` is not known to end with")
                }
                (false, None) => {}
            }
        }
    }
    for &code in Code::ALL {
        let excused = NOT_PROVOKED.iter().any(|(excused, _)| *excused == code);
        assert_eq!(
            covered.contains(&code),
            !excused,
            "{code}: either a command ends with it, or it is excused"
        );
    }
}

fn check(stage: &Stage, call: &[String], code: Code) {
    for json in [false, true] {
        let output = Output::of(stage.start(call, json).run_to_end());
        check_output(call, json, &output, code);
    }
}

fn check_output(call: &[String], json: bool, output: &Output, code: Code) {
    let context = format!("{} ({code}, json: {json}): {output:?}", call.join(" "));
    // Platforms would stop an agent because of any other.
    let expected = if call.first().is_some_and(|word| word == "hook") { 0 } else { code.exit_code() };
    assert_eq!(output.code, i32::from(expected), "{context}");
    for word in FORBIDDEN {
        assert!(!output.stderr.contains(word) && !output.stdout.contains(word), "{word} in {context}");
    }
    if !json {
        assert_eq!(output.stdout, "", "{context}");
        assert!(output.stderr.starts_with("error: "), "{context}");
        return;
    }
    assert_eq!(output.stderr, "", "{context}");
    let answer = output.json();
    assert_eq!(answer["ok"], false, "{context}");
    assert_eq!(answer["code"], code.as_str(), "{context}");
    assert!(answer["error"].as_str().is_some_and(|text| !text.is_empty()), "{context}");
    assert!(answer["timestamp"].as_str().is_some_and(|text| text.ends_with('Z')), "{context}");
    assert!(
        answer.get("hint").is_none_or(|hint| hint.as_str().is_some_and(|hint| !hint.is_empty())),
        "{context}"
    );
}

/// What depends on the lock of writers.
mod of_a_file {
    use super::*;

    #[test]
    fn writer_that_times_out_reports_the_holder_of_the_lock() {
        let stage = Stage::new();
        stage.register_agent_with_gone_process();
        let lock = Connection::open(stage.scratch.database()).unwrap();
        lock.execute_batch("BEGIN IMMEDIATE").unwrap();
        let queue = File::create(stage.scratch.path().join("new.db-lock")).unwrap();
        queue.lock().unwrap();
        let waiting: Vec<(Vec<String>, bool, Child)> = commands()
            .into_iter()
            .filter_map(|command| provoke(&stage, &command, Code::Busy))
            .flat_map(|call| [(call.clone(), false), (call, true)])
            .map(|(call, json)| (stage.start(&call, json), call, json))
            .map(|(child, call, json)| (call, json, child))
            .collect();
        assert!(waiting.len() > 20);
        for (call, json, child) in waiting {
            check_output(&call, json, &Output::of(child.run_to_end()), Code::Busy);
        }
    }
}
