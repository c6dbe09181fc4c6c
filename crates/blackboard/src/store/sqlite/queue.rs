//! A fair, crash-safe queue in front of the writer lock.
//!
//! SQLite's own busy handler sleeps and retries; under load, unlucky writers wait for seconds. Here a writer tries
//! once. If another writer is active, it queues for a lock on a sidecar file, which the kernel grants in order and
//! releases when a process ends. Only the holder of that lock polls SQLite's lock, and later writers queue behind it.
//! SQLite's lock still decides: a fault in the queue costs only fairness, and a stopped holder delays others only
//! briefly. Without contention it costs one `stat` of the sidecar file.
//!
//! The time limit applies to a lock that does not move. On an overloaded machine a long queue takes longer, but as
//! long as others commit, waiting makes sense.

use std::fs::{File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode};

use super::{SqliteSidecars, Waiting, faults};
use crate::error::Result;
use crate::store::{OnBusy, Sidecar, Sidecars};

/// The first and the longest sleep of the writer that polls.
const POLL: (Duration, Duration) = (Duration::from_micros(50), Duration::from_millis(1));

/// How many time limits a writer waits at most, however busy the others are.
const LIMITS: u32 = 12;

/// In how many parts of a time limit queued writers check whether the queue moves. If it does not, they try SQLite's
/// lock directly.
const LOOKS_AT_THE_LINE: u32 = 20;

/// How many times the holder of the lock is looked up before the message omits it.
#[cfg(target_os = "linux")]
const LOOKS: usize = 10;

/// The queue of writers for the database at one path.
pub(super) struct Queue {
    database: PathBuf,
    sidecar: PathBuf,
    limit: Duration,
    waiting: Waiting,
    /// How long writers of this process have waited so far, in microseconds.
    waited: AtomicU64,
}

/// The head of the queue, released on drop. Where file locks do not work, every writer is at the head, and the
/// database's own lock decides.
pub(super) struct Head {
    lock: Option<File>,
    waited: bool,
}

/// The result of queueing.
enum Turn {
    AtHead(Head),
    /// The transaction has begun without the queue, which did not move.
    Begun,
    TooLate,
}

impl Head {
    /// Created with the result of locking the sidecar file.
    fn new(file: File, locked: bool, waited: bool) -> Head {
        Head { lock: locked.then_some(file), waited }
    }

    const WITHOUT_LOCK: Head = Head { lock: None, waited: false };

    /// Whether no other writer can be at the head.
    pub(super) fn is_alone(&self) -> bool {
        self.lock.is_some()
    }

    /// Sets the waiter flag, which tells later writers that a queue exists. Checking it costs them one `stat`; a
    /// writer that sees it queues for the lock.
    fn set_waiter_flag(&self) {
        self.set_length(1);
    }

    /// Clears the waiter flag: a writer that got the lock at once knows that it is outdated.
    fn clear_waiter_flag(&self) {
        if !self.waited {
            self.set_length(0);
        }
    }

    fn set_length(&self, length: u64) {
        let Some(file) = &self.lock else { return };
        if file.metadata().is_ok_and(|metadata| metadata.len() != length) {
            let _ = file.set_len(length);
        }
    }
}

impl Queue {
    pub(super) fn new(sidecars: &SqliteSidecars, limit: Duration, waiting: Waiting) -> Queue {
        let (database, sidecar) = (sidecars.database().to_owned(), sidecars.path(Sidecar::WriterQueue));
        Queue { database, sidecar, limit, waiting, waited: AtomicU64::new(0) }
    }

    /// How long a writer may wait now. A writer with a deadline has one limit for all of its writes.
    fn limit(&self) -> Duration {
        match self.waiting {
            Waiting::QueueWithDeadline => {
                self.limit.saturating_sub(Duration::from_micros(self.waited.load(Ordering::Relaxed)))
            }
            Waiting::Queue | Waiting::BusyHandler => self.limit,
        }
    }

    /// Runs `wait` and adds its duration to the time waited.
    fn counted<T>(&self, wait: impl FnOnce() -> T) -> T {
        let began = Instant::now();
        let outcome = wait();
        let took = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.waited.fetch_add(took, Ordering::Relaxed);
        outcome
    }

    /// Begins a write transaction.
    pub(super) fn begin(&self, connection: &Connection, on_busy: OnBusy) -> Result<()> {
        if !self.leaves_waiting_to_sqlite(on_busy) {
            connection.busy_timeout(Duration::ZERO).map_err(|error| self.fault(error))?;
        }
        let begun = self.begin_in_turn(connection, on_busy);
        // Later reads on this connection may have to wait for a recovery.
        connection.busy_timeout(self.limit).map_err(|error| self.fault(error))?;
        begun
    }

    /// Waits for the head of the queue, to create a database there.
    pub(super) fn enter_alone(&self) -> Option<Head> {
        let mut wait = Wait::new(self.limit(), self.limits(), || None);
        match self.counted(|| self.enter(&mut wait, || Ok(false))) {
            Ok(Turn::AtHead(head)) => Some(head),
            _ => None,
        }
    }

    fn begin_in_turn(&self, connection: &Connection, on_busy: OnBusy) -> Result<()> {
        let leaves_waiting = self.leaves_waiting_to_sqlite(on_busy);
        // No writer overtakes the queue. Otherwise a process that writes without a pause would starve it.
        let in_line = !leaves_waiting && self.hints_at_a_line();
        if !in_line && self.try_begin(connection)? {
            return Ok(());
        }
        if leaves_waiting || (on_busy == OnBusy::Fail && !in_line) {
            return Err(faults::busy(&self.database, None));
        }
        if on_busy == OnBusy::Fail {
            return match self.open_and_try() {
                Ok(head) if self.try_begin(connection)? => {
                    head.clear_waiter_flag();
                    Ok(())
                }
                _ => Err(faults::busy(&self.database, None)),
            };
        }
        self.counted(|| self.wait_and_begin(connection))
    }

    fn wait_and_begin(&self, connection: &Connection) -> Result<()> {
        let mut wait = Wait::new(self.limit(), self.limits(), || last_commit(connection));
        let head = match self.enter(&mut wait, || self.try_begin(connection))? {
            Turn::AtHead(head) => head,
            Turn::Begun => return Ok(()),
            Turn::TooLate => return Err(self.busy()),
        };
        if self.try_begin(connection)? {
            head.clear_waiter_flag();
            return Ok(());
        }
        head.set_waiter_flag();
        let mut pause = POLL.0;
        while !self.try_begin(connection)? {
            if wait.left().is_none() {
                return Err(self.busy());
            }
            thread::sleep(pause);
            pause = (pause * 2).min(POLL.1);
        }
        Ok(())
    }

    /// How many time limits a writer waits at most.
    fn limits(&self) -> u32 {
        if self.waiting == Waiting::QueueWithDeadline { 1 } else { LIMITS }
    }

    fn leaves_waiting_to_sqlite(&self, on_busy: OnBusy) -> bool {
        on_busy == OnBusy::Wait && self.waiting == Waiting::BusyHandler
    }

    fn try_begin(&self, connection: &Connection) -> Result<bool> {
        match connection.prepare_cached("BEGIN IMMEDIATE").and_then(|mut begin| begin.execute([])) {
            Ok(_) => Ok(true),
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) => Ok(false),
            Err(error) => Err(self.fault(error)),
        }
    }

    fn hints_at_a_line(&self) -> bool {
        std::fs::symlink_metadata(&self.sidecar).is_ok_and(|metadata| metadata.len() > 0)
    }

    /// Waits for the head of the queue, until the wait is over. If nothing moves, `try_anyway` runs from time to
    /// time: the process at the head may have been stopped.
    fn enter(
        &self,
        wait: &mut Wait<impl FnMut() -> Option<i64>>,
        mut try_anyway: impl FnMut() -> Result<bool>,
    ) -> Result<Turn> {
        let file = match self.open_and_try() {
            Ok(head) => return Ok(Turn::AtHead(head)),
            Err(file) => file,
        };
        // Waiting for a file lock has no time limit, so a thread waits. If it is too late, its lock is dropped with
        // the message that no thread receives.
        let (sender, receiver) = mpsc::channel();
        let wait_for_lock = move || {
            let locked = loop {
                match file.lock() {
                    Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                    locked => break locked.is_ok(),
                }
            };
            let _ = sender.send(Head::new(file, locked, true));
        };
        if thread::Builder::new().spawn(wait_for_lock).is_err() {
            return Ok(Turn::AtHead(Head::WITHOUT_LOCK));
        }
        while let Some(left) = wait.left() {
            match receiver.recv_timeout(left.min(self.limit / LOOKS_AT_THE_LINE)) {
                Ok(head) => return Ok(Turn::AtHead(head)),
                Err(_) if !wait.moves() && try_anyway()? => return Ok(Turn::Begun),
                Err(_) => {}
            }
        }
        Ok(Turn::TooLate)
    }

    /// The head of the queue, or the file to wait for. Only a writer that holds the lock keeps others from the head;
    /// no other failure does.
    fn open_and_try(&self) -> std::result::Result<Head, File> {
        let Ok(file) = open_sidecar(&self.sidecar) else { return Ok(Head::WITHOUT_LOCK) };
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => Err(file),
            locked => Ok(Head::new(file, locked.is_ok(), false)),
        }
    }

    fn busy(&self) -> crate::Error {
        faults::busy(&self.database, lock_holder(&self.database))
    }

    fn fault(&self, error: rusqlite::Error) -> crate::Error {
        faults::translate(&self.database, error)
    }
}

/// The duration of a wait: until nothing has happened for `limit`, or for a number of limits.
struct Wait<F> {
    limit: Duration,
    progress: F,
    seen: Option<i64>,
    until: Instant,
    at_most_until: Instant,
}

impl<F: FnMut() -> Option<i64>> Wait<F> {
    /// `progress` changes when another writer has made progress.
    fn new(limit: Duration, limits: u32, mut progress: F) -> Wait<F> {
        let now = Instant::now();
        Wait { limit, seen: progress(), progress, until: now + limit, at_most_until: now + limit * limits }
    }

    /// How much longer to wait; `None` when it is over.
    fn left(&mut self) -> Option<Duration> {
        let now = Instant::now();
        if now >= self.until && (now >= self.at_most_until || !self.moves()) {
            return None;
        }
        Some(self.until - now)
    }

    /// Whether `progress` has changed since the last check. If so, the limit starts again.
    fn moves(&mut self) -> bool {
        let seen = (self.progress)();
        let moves = seen != self.seen;
        if moves {
            self.seen = seen;
            self.until = (Instant::now() + self.limit).min(self.at_most_until);
        }
        moves
    }
}

/// A number that changes when another connection commits. Reading it never waits.
fn last_commit(connection: &Connection) -> Option<i64> {
    connection.query_row("PRAGMA data_version", [], |row| row.get(0)).ok()
}

fn open_sidecar(path: &Path) -> std::io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    super::open::private(&mut options);
    let file = options.open(path)?;
    super::open::keep_for_owner(&file)?;
    Ok(file)
}

/// A description of the process that holds the writer lock.
#[cfg(target_os = "linux")]
fn lock_holder(database: &Path) -> Option<String> {
    use std::os::unix::fs::MetadataExt;
    // The kernel's table of locks, because opening and closing the file would drop SQLite's own locks.
    let inode = std::fs::symlink_metadata(super::sidecars::beside(database, "-shm")).ok()?.ino();
    // The kernel shows its table in pieces. When other processes release locks meanwhile, lines move and one may be
    // missed, so one read is not enough.
    let pid = (0..LOOKS).find_map(|_| writer_pid(&std::fs::read_to_string("/proc/locks").ok()?, inode))?;
    let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    Some(format!("process {pid} ({})", crate::text::escape_for_terminal(name.trim())))
}

#[cfg(not(target_os = "linux"))]
fn lock_holder(_database: &Path) -> Option<String> {
    None
}

/// Finds the writer among lines like `1: POSIX ADVISORY WRITE 4711 00:2a:815 120 120`: the writer lock of a WAL is
/// byte 120 of its `-shm` file.
#[cfg(target_os = "linux")]
fn writer_pid(locks: &str, inode: u64) -> Option<u32> {
    locks.lines().find_map(|line| {
        let fields: Vec<_> = line.split_whitespace().filter(|field| *field != "->").collect();
        let [_, _, _, "WRITE", pid, place, "120", "120"] = fields[..] else { return None };
        let (_, found) = place.rsplit_once(':')?;
        (found.parse() == Ok(inode)).then(|| pid.parse().ok()).flatten()
    })
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::time::Duration;

    use super::{LIMITS, Queue, SqliteSidecars, Wait, Waiting};

    #[test]
    fn without_a_queue_file_every_writer_is_at_the_head() {
        let directory = testkit::tempdir().unwrap();
        // Two independent boards, without a location for a sidecar file.
        let queues = ["one", "other"].map(|name| {
            let database = directory.path().join("none").join(name);
            Queue::new(&SqliteSidecars::new(&database), Duration::ZERO, Waiting::Queue)
        });
        let heads = queues.each_ref().map(|queue| [queue.enter_alone(), queue.enter_alone()]);
        assert!(heads.iter().flatten().all(|head| head.as_ref().is_some_and(|head| !head.is_alone())));

        let queue =
            Queue::new(&SqliteSidecars::new(&directory.path().join("board")), Duration::ZERO, Waiting::Queue);
        let head = queue.enter_alone();
        assert!(head.is_some_and(|head| head.is_alone() && queue.enter_alone().is_none()));
    }

    #[test]
    fn queue_with_deadline_has_one_limit_for_all_writes() {
        let directory = testkit::tempdir().unwrap();
        let limit = Duration::from_millis(40);
        for (waiting, expected) in [(Waiting::QueueWithDeadline, true), (Waiting::Queue, false)] {
            let database = directory.path().join(format!("{waiting:?}"));
            let _head = Queue::new(&SqliteSidecars::new(&database), limit, waiting).enter_alone();
            let queue = Queue::new(&SqliteSidecars::new(&database), limit, waiting);
            assert_eq!(queue.limit(), limit);
            assert!(queue.enter_alone().is_none());
            assert_eq!(queue.limit().is_zero(), expected, "{waiting:?}");
        }
    }

    #[test]
    fn wait_ends_when_nothing_happens_for_its_limit() {
        let commits = Cell::new(Some(1));
        let mut wait = Wait::new(Duration::ZERO, LIMITS, || commits.get());
        assert_eq!(wait.left(), None, "no process has committed");

        let mut wait = Wait::new(Duration::from_hours(1), LIMITS, || commits.get());
        assert!(wait.left().is_some(), "the limit is not over");
        wait.until -= Duration::from_hours(2);
        commits.set(Some(2));
        assert!(wait.left().is_some_and(|left| left > Duration::from_mins(59)), "a process has committed");
        wait.until -= Duration::from_hours(2);
        assert_eq!(wait.left(), None, "no process has since then");
        commits.set(Some(3));
        wait.at_most_until -= Duration::from_hours(1) * LIMITS;
        assert_eq!(wait.left(), None, "there is an end to everything");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_writer_is_found_in_the_kernels_table() {
        let locks = "1: POSIX  ADVISORY  READ  11 fe:00:815 124 124\n\
                     2: POSIX  ADVISORY  WRITE 12 fe:00:816 120 120\n\
                     3: POSIX  ADVISORY  WRITE 13 fe:00:815 120 120\n\
                     3: -> POSIX  ADVISORY  WRITE 14 fe:00:815 120 120\n";
        assert_eq!(super::writer_pid(locks, 815), Some(13));
        assert_eq!(super::writer_pid(locks, 817), None);
        assert_eq!(super::writer_pid("nonsense", 815), None);
    }
}
