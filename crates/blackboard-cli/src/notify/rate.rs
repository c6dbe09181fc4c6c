//! [`RateFile`]: when commands were started, for all processes of a user.
//!
//! The file is locked while it is open. It has for each command the subjects of its last starts: an event is not announced again
//! within the interval, and others are. If the file is lost or damaged, commands may start earlier than configured, and nothing
//! else happens.

use std::collections::BTreeMap;
use std::fs::File;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Read, Seek, Write};
use std::path::Path;
use std::time::Duration;

use blackboard::event::{Event, EventType, Severity};
use blackboard::metadata::Metadata;
use serde::{Deserialize, Serialize};

use crate::config::NotifyCommand;
use crate::disk;

const LARGEST: u64 = 64 * 1024;

/// How often and how long a process waits for the lock. Another one has it for less than a millisecond, unless it was stopped.
const TRIES: usize = 50;
const BETWEEN_TRIES: Duration = Duration::from_millis(1);

/// How many starts of a command are remembered for one severity. Events of more subjects within its interval are skipped.
const MOST_SUBJECTS: usize = 20;

/// The open and locked file.
pub struct RateFile {
    file: File,
    commands: BTreeMap<String, CommandStarts>,
}

/// The last starts of a command.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct CommandStarts {
    /// The events since the last start that it was not started for.
    skipped: u64,
    /// The starts within its interval.
    starts: BTreeMap<String, Start>,
}

/// A start for a subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Start {
    /// Its time in milliseconds.
    at: i64,
    severity: Severity,
}

/// Whether a command is started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It is, after events that it was not started for.
    Start {
        /// Their number.
        skipped: u64,
    },
    /// It is not, because it was started for the same a moment ago.
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
        let commands = serde_json::from_str(&text).unwrap_or_default();
        Ok(RateFile { file, commands })
    }

    /// Decides whether a command is started for an event at this time, and remembers it.
    pub fn decide(&mut self, command: &NotifyCommand, event: &Event, now: i64) -> Decision {
        let starts = self.commands.entry(key(command)).or_default();
        starts.decide(subject(event), event.event_type.severity(), now, command.min_interval)
    }

    /// Stores what was decided, for these commands only.
    pub fn store(mut self, commands: &[NotifyCommand]) -> io::Result<()> {
        let configured: Vec<String> = commands.iter().map(key).collect();
        self.commands.retain(|key, _| configured.contains(key));
        let text = serde_json::to_string(&self.commands)?;
        self.file.rewind()?;
        self.file.set_len(0)?;
        self.file.write_all(text.as_bytes())
    }
}

impl CommandStarts {
    fn decide(&mut self, subject: String, severity: Severity, now: i64, interval: Duration) -> Decision {
        let interval = i64::try_from(interval.as_millis()).unwrap_or(i64::MAX);
        // A time in the future is that of another clock.
        self.starts.retain(|_, start| start.at <= now && now.saturating_sub(start.at) < interval);
        // Many events that are less severe leave space for the others.
        let similar = self.starts.values().filter(|start| start.severity == severity).count();
        if self.starts.contains_key(&subject) || similar >= MOST_SUBJECTS {
            self.skipped = self.skipped.saturating_add(1);
            return Decision::Skip;
        }
        self.starts.insert(subject, Start { at: now, severity });
        Decision::Start { skipped: std::mem::take(&mut self.skipped) }
    }
}

/// What an event is about: its type, its target, and the threshold of a quota. Texts of users are not kept.
fn subject(event: &Event) -> String {
    let mut hasher = DefaultHasher::new();
    (event.shown_type(), &event.target_id).hash(&mut hasher);
    if event.event_type == EventType::QuotaWarning {
        let metadata = event.metadata.as_ref().map(Metadata::to_map).unwrap_or_default();
        for name in ["provider", "window", "threshold"] {
            metadata.get(name).map(ToString::to_string).hash(&mut hasher);
        }
    }
    format!("{:016x}", hasher.finish())
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
    use blackboard::Board;
    use blackboard::event::QuotaWarning;

    use super::*;

    #[test]
    fn a_command_is_started_again_after_its_interval_with_what_was_skipped() {
        let mut starts = CommandStarts::default();
        let interval = Duration::from_secs(5);
        let mut decide =
            |subject: &str, now, interval| starts.decide(subject.to_owned(), Severity::Info, now, interval);
        for (subject, now, expected) in [
            ("a", 10_000, Decision::Start { skipped: 0 }),
            ("a", 10_000, Decision::Skip),
            ("a", 14_999, Decision::Skip),
            ("b", 14_999, Decision::Start { skipped: 2 }),
            ("a", 15_000, Decision::Start { skipped: 0 }),
            ("a", 19_000, Decision::Skip),
            ("a", 9_000, Decision::Start { skipped: 1 }),
            ("a", 9_001, Decision::Skip),
        ] {
            assert_eq!(decide(subject, now, interval), expected, "{subject} {now}");
        }
        assert_eq!(decide("a", 9_002, Duration::ZERO), Decision::Start { skipped: 1 });
    }

    #[test]
    fn many_subjects_start_a_bounded_number_of_commands_and_leave_space_for_severe_ones() {
        let mut starts = CommandStarts::default();
        let interval = Duration::from_secs(5);
        let mut decide =
            |subject: &str, severity| starts.decide(subject.to_owned(), severity, 1000, interval);
        let decisions: Vec<_> = (0..1000).map(|number| decide(&number.to_string(), Severity::Info)).collect();
        let started = decisions.iter().filter(|decision| **decision != Decision::Skip).count();
        assert_eq!(started, MOST_SUBJECTS);
        assert_eq!(decide("severe", Severity::Warning), Decision::Start { skipped: 980 });
        assert_eq!(decide("severe", Severity::Warning), Decision::Skip);
        assert!(starts.starts.len() <= 3 * MOST_SUBJECTS);
    }

    fn event(window: &str, threshold: f64, notified: &str) -> Event {
        let board = Board::memory();
        let warning = QuotaWarning {
            provider: "a".to_owned(),
            window: Some(window.to_owned()),
            threshold: Some(threshold),
            notified: vec![notified.to_owned()],
            ..QuotaWarning::default()
        };
        let id = board.events().warn_of_quota(&warning).unwrap();
        super::super::read(&board, id).unwrap().unwrap()
    }

    #[test]
    fn thresholds_of_a_quota_are_subjects_of_their_own() {
        testkit::limit_test();
        let subject =
            |window: &str, threshold: f64, notified: &str| subject(&event(window, threshold, notified));
        assert_eq!(subject("5h", 0.8, "s"), subject("5h", 0.8, "t"));
        assert_ne!(subject("5h", 0.8, "s"), subject("5h", 0.95, "s"));
        assert_ne!(subject("5h", 0.8, "s"), subject("7d", 0.8, "s"));
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
        let event = event("5h", 0.8, "s");
        std::fs::write(&path, "{").unwrap();
        let mut rate = RateFile::open(&path).unwrap();
        for command in [&one, &other] {
            assert_eq!(rate.decide(command, &event, 1000), Decision::Start { skipped: 0 });
        }
        assert_eq!(RateFile::open(&path).err().unwrap().kind(), io::ErrorKind::WouldBlock);
        rate.store(std::slice::from_ref(&one)).unwrap();
        let mut rate = RateFile::open(&path).unwrap();
        assert_eq!(rate.decide(&one, &event, 1000), Decision::Skip);
        assert_eq!(rate.decide(&other, &event, 1000), Decision::Start { skipped: 0 });
    }
}
