//! Ledgers of earlier versions can be opened: a file of every schema, with data in it.
//!
//! `tests/fixtures/ledger-N.db` was written by the version of this program whose ledgers had N steps, by the code below:
//!
//! ```text
//! BLACKBOARD_WRITE_FIXTURE=1 cargo test -p blackboard --lib quota::tests::older
//! ```
//!
//! It writes only the file of the current schema, and only if the file does not exist. After a new step, run it once and commit
//! the new file.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rusqlite::Connection;

use super::*;

/// The oldest version with a file. `files.rs` makes the first one from its statements.
const OLDEST: u32 = 3;

const CONFIG: &str = r#"{"providers": {"a": {"windows": {"5h": {"budget": 1000}, "7d": {"budget": 9000}}}}, "models": {"a-*": "a"}}"#;

fn fixture(version: u32) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/fixtures/ledger-{version}.db"))
}

fn by_ivy(tokens: u64) -> TokenRequest {
    let [board, session, agent, item] = ["/b", "s", "Ivy", "task"].map(|text| Some(text.to_owned()));
    TokenRequest { board, session, agent, item, ..TokenRequest::new("a", tokens) }
}

fn message(id: &str, at: Timestamp, input: u64) -> Record {
    let [board, session, agent, item] = ["/b", "s", "Ivy", "task"].map(|text| Some(text.to_owned()));
    let usage = Usage { input, ..Usage::default() };
    Record { model: "a-1".into(), board, session, agent, item, ..Record::new(id, "a", at, usage) }
}

fn fill(stage: &Stage) {
    stage.ledger.record(&[message("1", stage.now(), 300), message("2", stage.now(), 560)]).unwrap();
    let uncounted = UncountedMessage { id: "3".into(), model: "b-1".into(), at: stage.now() };
    stage.ledger.note_uncounted(&[uncounted]).unwrap();
    let limit = ReportedLimit {
        provider: "a".into(),
        window_minutes: 7 * 24 * 60,
        used_percent: 50.0,
        resets_at: stage.now().plus(Duration::from_hours(24)),
        reported_at: stage.now(),
    };
    stage.ledger.report(&[limit]).unwrap();
    assert_eq!(stage.ledger.take_crossings("/b").unwrap().len(), 1);
    assert!(stage.ledger.reserve(&by_ivy(90), Duration::from_hours(24)).unwrap().check.fits);
}

#[test]
fn a_ledger_of_every_version_opens_with_its_data() {
    testkit::limit_test();
    let current = Stage::new(CONFIG);
    let version = u32::try_from(current.rows("SELECT user_version FROM pragma_user_version")).unwrap();
    if std::env::var_os("BLACKBOARD_WRITE_FIXTURE").is_some() && !fixture(version).exists() {
        fill(&current);
        let path = current.directory.path().join("quota.db");
        drop(current.ledger);
        let connection = Connection::open(&path).unwrap();
        connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
        drop(connection);
        fs::copy(&path, fixture(version)).unwrap();
    }
    for version in OLDEST..=version {
        shows_what_was_in_it(version);
    }
}

fn shows_what_was_in_it(version: u32) {
    let directory = testkit::tempdir().unwrap();
    let file = directory.path().join("quota.db");
    fs::copy(fixture(version), &file).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    let clock = Arc::new(FixedClock::at(START).unwrap());
    let stage = Stage { ledger: open(&directory, &clock, CONFIG), directory, clock };
    let status = stage.ledger.status().unwrap();
    let [day, week] = [0, 1].map(|window| &status.providers[0].windows[window]);
    assert_eq!((day.used, day.reserved), (860, 90), "version {version}");
    let reported = week.reported.as_ref().map(|limit| limit.window_minutes);
    assert_eq!(reported, Some(7 * 24 * 60), "version {version}");
    assert_eq!(status.uncounted, [UncountedModel { model: "b-1".into(), messages: 1 }]);
    let agent = &status.providers[0].agents[0];
    assert_eq!((agent.board.as_str(), agent.agent.as_str(), agent.tokens), ("/b", "Ivy", 860));
    assert_eq!(stage.ledger.used_by_items("/b", &["task"]).unwrap(), [860]);
    assert!(stage.ledger.take_crossings("/b").unwrap().is_empty(), "it was announced");
    stage.advance(1);
    let again = stage.ledger.record(&[message("1", stage.now(), 300), message("4", stage.now(), 50)]);
    assert_eq!(again.unwrap(), Recorded { recorded: 1, duplicates: 1, ..Recorded::default() });
    let held = stage.ledger.reservations().unwrap();
    assert_eq!((held[0].tokens, held[0].left, held[0].item.as_str()), (90, 40, "task"), "version {version}");
    assert_eq!(stage.ledger.release_session("/b", "s").unwrap(), 1);
}
