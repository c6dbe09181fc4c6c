//! Moves usage to the ledger: what hooks have appended to the spool, and what no hook has read, such as the message after
//! the last hook of a session.
//!
//! Every command that opens the ledger folds first. A hook starts a process for it, at most every 30 seconds. One process
//! folds at a time: it holds the lock of a file, whose time is that of the last start, and which contains when the last fold
//! ended.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use blackboard::clock::{Clock, SystemClock, Timestamp};
use blackboard::id::session_id_from_hint;
use blackboard::quota::{Ledger, Record, ReportedLimit, UncountedMessage};
use blackboard::{Code, Error, Fault, Refusal, Result};

use super::board_names::BoardNames;
use super::ledger_location::LedgerLocation;
use super::of_file;
use super::spool::{self, SpoolLine};
use super::transcript::{self, Origin, Transcript};
use crate::config::printable;
use crate::disk;
use crate::location::Request;

/// The lock of a fold, in the home of boards.
const LOCK: &str = "quota-fold";

/// How long after the last start a hook starts no fold.
const PAUSE: Duration = Duration::from_secs(30);

/// How long a command waits for another one that folds.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long a claim waits for one, and how long it counts what hooks have read.
const BRIEF: Duration = Duration::from_millis(200);

/// How often it looks.
const POLL: Duration = Duration::from_millis(10);

/// How many bytes of a file are read at a time.
const BYTES: usize = 1024 * 1024;

/// A file that nothing was read of for this long is not looked at, unless there was no fold since.
const RECENT: Duration = Duration::from_hours(24);

/// Its state is removed after this time. If it is read again, the ledger knows its messages, or skips them because they are older
/// than the ids that it keeps.
const KEPT: Duration = Duration::from_hours(30 * 24);

/// How many state files and subagents of a session a fold looks at.
const MOST_STATES: usize = 20_000;
const MOST_DELEGATES: usize = 1000;

/// A ledger after a fold.
pub struct Folded {
    /// The ledger.
    pub ledger: Ledger,
    /// How many messages were counted that were not known.
    pub recorded: u64,
}

/// Folds everything there is. `None`, and no ledger is opened, if there is nothing. Another process that folds is waited for.
pub fn fold(location: &LedgerLocation) -> Result<Option<Folded>> {
    let home = location.home();
    if !spool::is_used(home) && !transcript::has_states(home) {
        return Ok(None);
    }
    let mut lock = disk::own_file(&home.join(LOCK), true).map_err(lock_failed(home))?;
    if !wait_for(&lock, PATIENCE, || true) {
        return Err(busy());
    }
    let mut target = Target::new(location);
    spool::drain(home, &mut |lines| target.record(lines)).map_err(Failure::error)?;
    read_transcripts(home, last_end(&mut lock), &mut target).map_err(Failure::error)?;
    note_end(&mut lock).map_err(lock_failed(home))?;
    Ok(target.folded)
}

/// Lets the next fold read all files from their start, if a model has a provider now whose messages were not counted. Returns
/// whether it will: messages that are known are not counted again.
pub fn read_again_if_due(home: &Path, ledger: &Ledger) -> Result<bool> {
    let models = ledger.newly_counted_models()?;
    if models.is_empty() || !transcript::restart_all(home) {
        return Ok(false);
    }
    ledger.forget_uncounted(&models).map(|()| true)
}

/// Folds what hooks have appended to the spool, for a call that does not wait for long: if it would have to, it is refused. A
/// process reads what no hook has read. `None`, and no ledger is opened, if the spool is empty.
pub fn fold_spool(location: &LedgerLocation) -> Result<Option<Ledger>> {
    let home = location.home();
    let folded = if spool::is_used(home) { drain_briefly(location) } else { Ok(None) };
    let is_unfinished = folded.as_ref().is_err_and(|error| error.code() == Code::Busy);
    if is_unfinished || transcript::has_states(home) {
        // A call that cannot start it leaves it to the next one.
        let _ = if is_unfinished { start(location) } else { start_if_due(location) };
    }
    folded
}

fn drain_briefly(location: &LedgerLocation) -> Result<Option<Ledger>> {
    let home = location.home();
    let lock = disk::own_file(&home.join(LOCK), true).map_err(lock_failed(home))?;
    if !wait_for(&lock, BRIEF, || spool::is_used(home)) {
        return if spool::is_used(home) { Err(busy()) } else { Ok(None) };
    }
    let mut target = Target::new(location);
    let began = Instant::now();
    let drained = spool::drain(home, &mut |lines| {
        if began.elapsed() >= BRIEF {
            return Err(Failure::Ledger(busy()));
        }
        target.record(lines)
    });
    drained.map_err(Failure::error)?;
    Ok(target.folded.map(|folded| folded.ledger))
}

/// Starts a process that folds, if the last one was started long enough ago. It does not wait for it.
pub fn start_if_due(location: &LedgerLocation) -> io::Result<()> {
    start_after(location, PAUSE)
}

/// Starts a process that folds, unless there is one.
pub fn start(location: &LedgerLocation) -> io::Result<()> {
    start_after(location, Duration::ZERO)
}

/// Starts a process that folds, if the last one was started this long ago. Warnings are announced on the board of the call.
fn start_after(location: &LedgerLocation, pause: Duration) -> io::Result<()> {
    let lock = disk::own_file(&location.home().join(LOCK), true).map_err(|error| of_file(LOCK, &error))?;
    // A process that folds has it, or a hook that is about to start one.
    if lock.try_lock().is_err() || was_used_within(&lock, pause)? {
        return Ok(());
    }
    if lock.metadata()?.len() == 0 {
        (&lock).write_all(b"0")?;
    }
    lock.set_modified(SystemTime::now())?;
    drop(lock);
    let mut command = Command::new(std::env::current_exe()?);
    let Request { db, current_dir, .. } = location.request();
    command.args(db.as_deref().map(|db| [OsStr::new("--db"), db]).into_iter().flatten());
    command.args(["quota", "fold"]);
    command.current_dir(current_dir);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // Platforms end the processes of a hook's group.
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    command.spawn().map(drop)
}

/// Where records go. The ledger is opened with the first one.
struct Target<'a> {
    location: &'a LedgerLocation,
    names: BoardNames,
    folded: Option<Folded>,
}

impl Target<'_> {
    fn new(location: &LedgerLocation) -> Target<'_> {
        Target { location, names: location.board_names(), folded: None }
    }

    fn record(&mut self, lines: Vec<SpoolLine>) -> Result<(), Failure> {
        if self.folded.is_none() {
            self.folded = Some(Folded { ledger: self.location.create()?, recorded: 0 });
        }
        let Some(Folded { ledger, recorded }) = &mut self.folded else { return Ok(()) };
        let (mut records, mut uncounted) = (Vec::new(), Vec::new());
        // Every line of a platform may repeat its limits.
        let mut limits = BTreeMap::new();
        for SpoolLine { origin, message, limit } in lines {
            if let Some(message) = message {
                let at = Timestamp::from_millis(message.at);
                match ledger.config().provider_of_message(&message.model) {
                    Some(provider) => {
                        let record = Record {
                            model: message.model,
                            board: Some(self.names.of(&origin.board)),
                            session: Some(origin.session),
                            agent: origin.agent,
                            item: origin.item,
                            ..Record::new(message.id, provider, at, message.usage)
                        };
                        // One that is refused must not stop the others.
                        records.extend(record.check().is_ok().then_some(record));
                    }
                    None => uncounted.push(UncountedMessage { id: message.id, model: message.model, at }),
                }
            }
            if let Some(limit) = limit
                && let Some(provider) = ledger.config().provider_of_message(&limit.model)
            {
                let key = (provider.to_owned(), limit.window_minutes);
                let newest = limits.entry(key).or_insert_with(|| limit.clone());
                if newest.at <= limit.at {
                    *newest = limit;
                }
            }
        }
        *recorded += ledger.record(&records)?.recorded;
        if !uncounted.is_empty() {
            ledger.note_uncounted(&uncounted)?;
        }
        for ((provider, window_minutes), limit) in limits {
            let reported = ReportedLimit {
                provider,
                window_minutes,
                used_percent: limit.used_percent,
                resets_at: Timestamp::from_millis(limit.resets_at),
                reported_at: Timestamp::from_millis(limit.at),
            };
            // A platform may report a limit that cannot be, and reports it again soon.
            let _ = ledger.report(&[reported]);
        }
        Ok(())
    }
}

/// Reads the rest of every file that a hook has read not long ago, and of its subagents.
fn read_transcripts(home: &Path, last_end: Timestamp, target: &mut Target<'_>) -> Result<(), Failure> {
    let now = SystemClock.now();
    let recent = now.minus(RECENT).min(last_end.minus(Duration::from_hours(1)));
    for entry in transcript::states(home).take(MOST_STATES) {
        let Ok(modified) = entry.metadata().and_then(|metadata| metadata.modified()) else { continue };
        let age = modified.elapsed().unwrap_or_default();
        if age > KEPT {
            // What cannot be removed stays, and does no harm.
            let _ = std::fs::remove_file(entry.path());
            continue;
        }
        if now.minus(age) < recent {
            continue;
        }
        let Some(mut opened) = Transcript::of_state(&entry.path()) else { continue };
        read_to_end(&mut opened, target)?;
        let board = opened.origin().board.clone();
        for (file, hint) in opened.delegates(MOST_DELEGATES) {
            let session = session_id_from_hint(&hint);
            let origin = Origin { board: board.clone(), session, agent: None, item: None };
            if let Ok(Some(mut delegate)) = Transcript::open(home, file, &origin) {
                read_to_end(&mut delegate, target)?;
            }
        }
    }
    Ok(())
}

/// Reads a file to its end. One that cannot be read does not stop the others, but a ledger does.
fn read_to_end(transcript: &mut Transcript, target: &mut Target<'_>) -> Result<(), Failure> {
    loop {
        let mut failure = None;
        let progress = transcript.read(BYTES, &mut |origin, reading| {
            target.record(SpoolLine::of(origin, reading)).map_err(|error| {
                failure = Some(error);
                io::ErrorKind::Other.into()
            })
        });
        match (failure, progress) {
            (Some(failure), _) => return Err(failure),
            (None, Ok(progress)) if progress.has_more => {}
            (None, _) => return Ok(()),
        }
    }
}

/// Why a fold stopped.
enum Failure {
    Ledger(Error),
    File(io::Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::Ledger(error)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        Failure::File(error)
    }
}

impl Failure {
    fn error(self) -> Error {
        match self {
            Failure::Ledger(error) => error,
            Failure::File(error) => unreadable(error),
        }
    }
}

fn unreadable(error: io::Error) -> Error {
    Fault::new(Code::Io, format!("it cannot be read: {error}")).because(error).into()
}

/// Locks the file when no other process folds any more. Returns `false` if that takes longer than `limit`, or as soon as it is
/// not needed any more.
fn wait_for(lock: &File, limit: Duration, is_needed: impl Fn() -> bool) -> bool {
    let began = Instant::now();
    while lock.try_lock().is_err() {
        if began.elapsed() >= limit || !is_needed() {
            return false;
        }
        thread::sleep(POLL);
    }
    true
}

fn busy() -> Error {
    Refusal::new(Code::Busy, "another process is counting usage").hint("retry").into()
}

fn lock_failed(home: &Path) -> impl Fn(io::Error) -> Fault {
    let lock = printable(&home.join(LOCK));
    move |error| Fault::new(Code::Io, format!("{lock} cannot be used: {error}")).because(error)
}

fn was_used_within(lock: &File, pause: Duration) -> io::Result<bool> {
    let metadata = lock.metadata()?;
    let is_recent = metadata.modified()?.elapsed().is_ok_and(|age| age < pause);
    // An empty one was created by this hook.
    Ok(metadata.len() > 0 && is_recent)
}

/// When the last fold ended.
fn last_end(lock: &mut File) -> Timestamp {
    let mut text = String::new();
    let _ = lock.take(32).read_to_string(&mut text);
    Timestamp::from_millis(text.trim().parse().unwrap_or_default())
}

fn note_end(lock: &mut File) -> io::Result<()> {
    lock.seek(SeekFrom::Start(0))?;
    lock.set_len(0)?;
    write!(lock, "{}", SystemClock.now().millis())
}
