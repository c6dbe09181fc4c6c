//! The token quota. Its ledger is a file in the home of boards, on every engine.

mod check;
mod claims;
mod fold;
mod history;
mod init;
mod record;
mod release;
mod set;
mod shared;
mod shown;
mod status;

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::PathBuf;

use blackboard::clock::{Clock as _, SystemClock};
use serde_json::json;

use crate::scratch::Scratch;

/// A home with a quota of one provider: 1,000 tokens in 5 hours, of which 200 are kept.
fn configured() -> Scratch {
    with_quota(
        r#"{"providers": {"a": {"windows": {"5h": {"budget": 1000}}, "reservation": {"operator": 200}}}}"#,
    )
}

/// A home with this quota.
fn with_quota(quota: &str) -> Scratch {
    let scratch = Scratch::new();
    write_config(&scratch, &format!(r#"{{"quota": {quota}}}"#));
    scratch
}

fn write_config(scratch: &Scratch, text: &str) {
    let file = scratch.home_file("config.json");
    let directory = file.parent().unwrap();
    fs::create_dir_all(directory).unwrap();
    fs::set_permissions(directory, fs::Permissions::from_mode(0o700)).unwrap();
    fs::write(file, text).unwrap();
}

/// Replaces the ledger by a file that is none.
fn break_ledger(scratch: &Scratch) {
    let file = scratch.home_file("quota.db");
    for name in ["quota.db-wal", "quota.db-shm"] {
        // It exists only while, or after, a process had it open.
        let _ = fs::remove_file(scratch.home_file(name));
    }
    fs::write(&file, "no database").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
}

/// Writes a spool with one message, which no fold has counted. Returns its path.
fn hooks_have_read(scratch: &Scratch, tokens: u64) -> PathBuf {
    let line = json!({
        "board": "b",
        "session": "s",
        "message": {"id": "m1", "model": "x", "at": SystemClock.now().millis(), "usage": {"input": tokens}},
    });
    let spool = scratch.home_file("quota-spool");
    let mut file = OpenOptions::new().create(true).append(true).mode(0o600).open(&spool).unwrap();
    writeln!(file, "{line}").unwrap();
    spool
}
