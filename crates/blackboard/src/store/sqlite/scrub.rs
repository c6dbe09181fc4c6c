//! Erasing what removed rows have left in the files of a board: in free pages, in the gaps of others, and in the
//! write-ahead log.

use std::thread;
use std::time::{Duration, Instant};

use rusqlite::wal::CheckpointMode;
use rusqlite::{Connection, DEFAULT_NAME, ErrorCode};

/// How long to wait until the next attempt.
const PAUSE: Duration = Duration::from_millis(20);

/// Writes every page again, from what the rows say now, into the write-ahead log. Writers wait for it, readers don't.
pub(super) fn rewrite(connection: &Connection) -> rusqlite::Result<()> {
    // The copy that is made on the way never leaves the memory of this process.
    connection.execute_batch("PRAGMA temp_store = MEMORY; PRAGMA secure_delete = ON; VACUUM")
}

/// Copies the new pages over the old ones, and empties the write-ahead log. Readers of an older state are waited for; they
/// are the ones who need the old pages. Returns whether that was done in time.
pub(super) fn empty_wal(connection: &Connection, timeout: Duration) -> rusqlite::Result<bool> {
    let until = Instant::now() + timeout;
    // SQLite would wait with the writer lock in its hand; this lets others write between two attempts.
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
