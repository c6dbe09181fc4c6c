//! Maintenance that takes longer than a hook may: another process does it.
//!
//! A hook checkpoints a short write-ahead log (WAL) after its answer. A long one, for example after a reader that was stuck,
//! takes seconds, and a checkpoint that is interrupted has to start again. If only hooks ran, the WAL would never become
//! shorter.

use std::process::{Command, Stdio};

use crate::open::Engine;

/// Starts a process that maintains the board, if that is due and takes too long for a hook. It does not wait for it.
pub fn start_if_overdue(board: &dyn Engine) {
    let (Some(database), Ok(program)) = (board.database_to_maintain(), std::env::current_exe()) else {
        return;
    };
    let mut command = Command::new(program);
    // Like every command, it checkpoints the WAL at its end.
    command.arg("--db").arg(database).arg("sweep");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // Platforms end the processes of a hook's group.
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    // An error here is no error of the hook; the next one tries again.
    let _ = command.spawn();
}
