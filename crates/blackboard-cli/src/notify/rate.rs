//! [`RateFile`]: when commands were started, for all processes of a user.
//!
//! The file is locked while it is open. It has the time of the last start of each command and the number of events since then. If it is
//! lost or damaged, commands may start earlier than configured, and nothing else happens.

use std::collections::BTreeMap;
use std::fs::File;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Read, Seek, Write};
use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::config::NotifyCommand;
use crate::disk;

const LARGEST: u64 = 64 * 1024;

/// How often and how long a process waits for the lock. Another one has it for less than a millisecond, unless it was stopped.
const TRIES: usize = 50;
const BETWEEN_TRIES: Duration = Duration::from_millis(1);

/// The open and locked file.
pub struct RateFile {
    file: File,
    starts: BTreeMap<String, LastStart>,
}

/// The last start of a command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct LastStart {
    /// Its time in milliseconds.
    at: i64,
    /// The events since then.
    skipped: u64,
}

/// Whether a command is started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It is, after events that it was not started for.
    Start {
        /// Their number.
        skipped: u64,
    },
    /// It is not, because it was started a moment ago.
    Skip,
}

impl RateFile {
    /// Opens and locks the file, which is created if it does not exist.
    pub fn open(path: &Path) -> io::Result<RateFile> {
        let mut file = disk::own_file(path, true)?;
        lock(&file)?;
        let mut text = String::new();
        // What cannot be read is replaced.
        let _ = (&mut file).take(LARGEST).read_to_string(&mut text);
        let starts = serde_json::from_str(&text).unwrap_or_default();
        Ok(RateFile { file, starts })
    }

    /// Decides whether a command is started for an event at this time, and remembers it.
    pub fn decide(&mut self, command: &NotifyCommand, now: i64) -> Decision {
        let known = self.starts.entry(key(command)).or_insert(LastStart { at: i64::MIN, skipped: 0 });
        known.decide(now, command.min_interval)
    }

    /// Stores what was decided, for these commands only.
    pub fn store(mut self, commands: &[NotifyCommand]) -> io::Result<()> {
        let configured: Vec<String> = commands.iter().map(key).collect();
        self.starts.retain(|key, _| configured.contains(key));
        let text = serde_json::to_string(&self.starts)?;
        self.file.rewind()?;
        self.file.set_len(0)?;
        self.file.write_all(text.as_bytes())
    }
}

impl LastStart {
    fn decide(&mut self, now: i64, interval: Duration) -> Decision {
        let interval = i64::try_from(interval.as_millis()).unwrap_or(i64::MAX);
        // A time in the future is that of another clock.
        let is_recent = self.at <= now && now.saturating_sub(self.at) < interval;
        if is_recent {
            self.skipped = self.skipped.saturating_add(1);
            return Decision::Skip;
        }
        let skipped = self.skipped;
        *self = LastStart { at: now, skipped: 0 };
        Decision::Start { skipped }
    }
}

/// The name of a command in the file. Its arguments may contain a credential.
fn key(command: &NotifyCommand) -> String {
    let mut hasher = DefaultHasher::new();
    command.hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

fn lock(file: &File) -> io::Result<()> {
    for _ in 0..TRIES {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(std::fs::TryLockError::WouldBlock) => std::thread::sleep(BETWEEN_TRIES),
            Err(std::fs::TryLockError::Error(error)) => return Err(error),
        }
    }
    Err(io::Error::new(io::ErrorKind::WouldBlock, "another process holds its lock"))
}

#[cfg(test)]
mod tests {
    use blackboard::event::Severity;

    use super::*;

    #[test]
    fn a_command_is_started_again_after_its_interval_with_what_was_skipped() {
        let mut start = LastStart { at: i64::MIN, skipped: 0 };
        let interval = Duration::from_secs(5);
        for (now, expected) in [
            (10_000, Decision::Start { skipped: 0 }),
            (10_000, Decision::Skip),
            (14_999, Decision::Skip),
            (15_000, Decision::Start { skipped: 2 }),
            (19_000, Decision::Skip),
            (9_000, Decision::Start { skipped: 1 }),
            (9_001, Decision::Skip),
        ] {
            assert_eq!(start.decide(now, interval), expected, "{now}");
        }
        assert_eq!(start.decide(9_002, Duration::ZERO), Decision::Start { skipped: 1 });
    }

    #[test]
    fn the_file_survives_damage_and_forgets_other_commands() {
        testkit::limit_test();
        let directory = testkit::tempdir().unwrap();
        let path = directory.path().join("notify.json");
        let command = |program: &str| NotifyCommand {
            command: vec![program.to_owned()],
            events: Vec::new(),
            min_severity: Severity::Info,
            min_interval: Duration::from_secs(5),
        };
        let (one, other) = (command("one"), command("other"));
        std::fs::write(&path, "{").unwrap();
        let mut rate = RateFile::open(&path).unwrap();
        for command in [&one, &other] {
            assert_eq!(rate.decide(command, 1000), Decision::Start { skipped: 0 });
        }
        assert_eq!(RateFile::open(&path).err().unwrap().kind(), io::ErrorKind::WouldBlock);
        rate.store(std::slice::from_ref(&one)).unwrap();
        let mut rate = RateFile::open(&path).unwrap();
        assert_eq!(rate.decide(&one, 1000), Decision::Skip);
        assert_eq!(rate.decide(&other, 1000), Decision::Start { skipped: 0 });
    }
}
