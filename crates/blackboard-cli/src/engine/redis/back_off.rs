//! A small file that keeps hooks from a server that does not answer: 5 s after the first failure, and up to 60 s.
//!
//! Hooks run after every tool call, each in its own process. Without the file, each of them would wait for its limit.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use blackboard::store::create_private_directory;
use blackboard::{Code, Refusal, Result};

/// The name of the file among the sidecars of the board.
const FILE: &str = "retry-after";

const SHORTEST: Duration = Duration::from_secs(5);
const LONGEST: Duration = Duration::from_mins(1);

/// How long hooks leave a server alone.
pub(super) struct BackOff {
    file: PathBuf,
}

impl BackOff {
    pub(super) fn in_directory(directory: &Path) -> BackOff {
        BackOff { file: directory.join(FILE) }
    }

    /// Refuses until the pause after the last failure has passed.
    pub(super) fn check(&self, board: &str) -> Result<()> {
        match self.read() {
            Some((since, pause)) if since < pause => {
                let left = pause.saturating_sub(since).as_secs() + 1;
                let message = format!("the server of {board} did not answer; it is tried again in {left} s");
                Err(Refusal::new(Code::ServerUnavailable, message).into())
            }
            _ => Ok(()),
        }
    }

    /// The time since the last failure, and the pause after it. A failure in the future was under another clock.
    fn read(&self) -> Option<(Duration, Duration)> {
        let failed_at = fs::symlink_metadata(&self.file).ok()?.modified().ok()?;
        let since = SystemTime::now().duration_since(failed_at).ok()?;
        let seconds = fs::read_to_string(&self.file).ok()?.trim().parse().ok()?;
        Some((since, Duration::from_secs(seconds).clamp(SHORTEST, LONGEST)))
    }

    /// Twice as long as after the failure before. Without the file, the next hook waits for its limit again.
    pub(super) fn note_failure(&self) {
        let pause = match self.read() {
            // Another process has noticed the same failure.
            Some((since, pause)) if since < pause => return,
            Some((_, pause)) => (pause * 2).min(LONGEST),
            None => SHORTEST,
        };
        if let Some(directory) = self.file.parent() {
            let _ = create_private_directory(directory);
        }
        let _ = fs::write(&self.file, pause.as_secs().to_string());
    }

    pub(super) fn note_success(&self) {
        if self.file.exists() {
            let _ = fs::remove_file(&self.file);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Moves the last failure back by this many seconds.
    fn age(back_off: &BackOff, seconds: u64) {
        let file = fs::File::options().write(true).open(&back_off.file).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_secs(seconds)).unwrap();
    }

    #[test]
    fn pause_grows_with_each_failure_and_ends_with_a_success() {
        let directory = testkit::tempdir().unwrap();
        let back_off = BackOff::in_directory(&directory.path().join("remote"));
        back_off.check("board").unwrap();
        for pause in [5, 10, 20, 40, 60, 60] {
            back_off.note_failure();
            assert_eq!(back_off.check("board").unwrap_err().code(), Code::ServerUnavailable);
            back_off.note_failure();
            age(&back_off, pause - 2);
            assert!(back_off.check("board").is_err(), "{pause}");
            age(&back_off, pause + 1);
            back_off.check("board").unwrap();
        }
        back_off.note_success();
        back_off.note_failure();
        age(&back_off, 6);
        back_off.check("board").unwrap();
    }

    #[test]
    fn file_that_cannot_be_read_pauses_nothing() {
        let directory = testkit::tempdir().unwrap();
        let back_off = BackOff::in_directory(directory.path());
        for text in ["", "soon", "-1"] {
            fs::write(&back_off.file, text).unwrap();
            back_off.check("board").unwrap();
        }
    }
}
