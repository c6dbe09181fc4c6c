//! Erases the remains of removed rows from the files of a board: in free pages, in the gaps of others, and in the
//! WAL.

use std::thread;
use std::time::{Duration, Instant};

use rusqlite::wal::CheckpointMode;
use rusqlite::{Connection, DEFAULT_NAME, ErrorCode};

/// Why something may be left.
pub(super) const IN_USE: &str = "another process uses an older state of the board";

/// The pause before the next attempt.
const PAUSE: Duration = Duration::from_millis(20);

/// Writes every page again, from the current rows, into the WAL. Writers wait for it, readers do not.
pub(super) fn rewrite(connection: &Connection) -> rusqlite::Result<()> {
    // The temporary copy never leaves the memory of this process.
    connection.execute_batch("PRAGMA temp_store = MEMORY; PRAGMA secure_delete = ON; VACUUM")
}

/// Copies the new pages over the old ones, and empties the WAL. It waits for readers of an older state, which need
/// the old pages. Returns whether that succeeded in time.
pub(super) fn empty_wal(connection: &Connection, timeout: Duration) -> rusqlite::Result<bool> {
    let until = Instant::now() + timeout;
    // SQLite would wait while it holds the writer lock. This lets other processes write between two attempts.
    connection.busy_timeout(Duration::ZERO)?;
    loop {
        match connection.wal_checkpoint_v2(DEFAULT_NAME, CheckpointMode::TRUNCATE) {
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) => {}
            outcome => return outcome.map(|_| true),
        }
        if Instant::now() >= until {
            return Ok(false);
        }
        thread::sleep(PAUSE);
    }
}
