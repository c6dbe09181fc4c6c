//! The upgrade of a board of ivy-blackboard, as a complete command.

use std::process::Stdio;
use std::time::Instant;

use rusqlite::Connection;
use testkit::reference;

use crate::programs::status;
use crate::report::{Bar, Line, Unit};
use crate::{Result, Scale};

/// The schema version of the boards.
const VERSION: u32 = 9;

/// A board with many events: the copy, the checks and the transaction.
pub fn measure(scale: &Scale) -> Result<Vec<Line>> {
    let events = u32::try_from(scale.of(100_000, 2_000))?;
    let mut seconds = Vec::new();
    for _ in 0..scale.rounds {
        let directory = tempfile::tempdir()?;
        let database = directory.path().join("local.db");
        Connection::open(&database)?.execute_batch(&reference::large_database(VERSION, events))?;
        make_private(&database)?;
        let mut upgrade = scale.blackboard(&database);
        upgrade.args(["upgrade", "--yes", "--json"]).stdout(Stdio::null());
        let begin = Instant::now();
        let status = status(&mut upgrade, "an upgrade")?;
        seconds.push(begin.elapsed().as_secs_f64());
        if !status.success() {
            return Err(format!("an upgrade ended with {status}").into());
        }
    }
    let what = format!("`upgrade` of a board of ivy-blackboard with {events} events");
    Ok(vec![Line::new(what, Bar::AtMost(2.0), Unit::Seconds, &seconds, "")])
}

#[cfg(unix)]
fn make_private(database: &std::path::Path) -> Result {
    use std::os::unix::fs::PermissionsExt;
    Ok(std::fs::set_permissions(database, std::fs::Permissions::from_mode(0o600))?)
}

#[cfg(not(unix))]
fn make_private(_database: &std::path::Path) -> Result {
    Ok(())
}
