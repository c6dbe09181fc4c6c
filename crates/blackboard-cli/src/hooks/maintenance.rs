//! Maintenance that takes longer than a hook may: another process does it.
//!
//! A hook checkpoints a short write-ahead log (WAL) after its answer. A long one, for example after a reader that was stuck,
//! takes seconds, and a checkpoint that is interrupted has to start again. If only hooks ran, the WAL would never become
//! shorter.
//!
//! A reader that stays keeps the WAL long, whatever is started. So at most one such process runs, and a hook starts another
//! one a minute later at the earliest. Both are known from a sidecar: the process holds its lock, and its time is that of the
//! last start.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use blackboard::Board;
use blackboard::store::Sidecar;

use crate::disk;
use crate::engine::Engine;

/// How long after the last start a hook starts no other process.
const PAUSE: Duration = Duration::from_mins(1);

/// How often the process tries to shorten the WAL: other processes may read it at the wrong moment.
const TRIES: usize = 10;

/// How long it waits between two tries.
const BETWEEN_TRIES: Duration = Duration::from_millis(100);

/// Starts a process that maintains the board, if that is due and takes too long for a hook. It does not wait for it.
pub fn start_if_overdue(board: &dyn Engine) {
    if let Some(database) = board.file().filter(|_| board.is_maintenance_overdue()) {
        // An error here is no error of the hook; the next one tries again.
        let _ = start(database, &board.sidecars().path(Sidecar::Maintenance));
    }
}

/// Maintains a board, without a sweep and without pruning: no agent waits for those.
pub fn maintain(board: &Board, engine: &dyn Engine) {
    for attempt in 0..TRIES {
        if attempt > 0 {
            std::thread::sleep(BETWEEN_TRIES);
        }
        board.maintain();
        if !engine.is_maintenance_overdue() {
            return;
        }
    }
}

fn start(database: &Path, sidecar: &Path) -> io::Result<()> {
    let mut sidecar = disk::own_file(sidecar, true)?;
    // A process that maintains the board has it, or a hook that is about to start one.
    if sidecar.try_lock().is_err() || was_just_used(&sidecar)? {
        return Ok(());
    }
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("--db").arg(database).args(["sweep", "--maintain-only"]);
    // The lock belongs to the open file, which the process keeps to its end, however it ends.
    command.stdin(sidecar.try_clone()?).stdout(Stdio::null()).stderr(Stdio::null());
    // Platforms end the processes of a hook's group.
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let process = command.spawn()?;
    sidecar.set_len(0)?;
    writeln!(sidecar, "{}", process.id())
}

/// Whether a hook started a process a moment ago. A time in the future is that of another clock, and counts as long ago.
fn was_just_used(sidecar: &File) -> io::Result<bool> {
    let metadata = sidecar.metadata()?;
    let is_recent = metadata.modified()?.elapsed().is_ok_and(|age| age < PAUSE);
    // An empty one was created by this hook.
    Ok(metadata.len() > 0 && is_recent)
}
