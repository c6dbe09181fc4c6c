//! The SQLite engine: a board in one file.
//!
//! A commit runs under `BEGIN IMMEDIATE`, so its reads cannot change and it never runs twice. Readers read the WAL
//! (write-ahead log) and never wait. One writer of this process works at a time; the queue decides between processes.
//!
//! | File | What it is about |
//! |---|---|
//! | `open.rs` | opening and creating the file |
//! | `directory.rs` | syncing the directory of a board |
//! | `trust.rs` | checks of ownership, permissions and content |
//! | `filesystem.rs` | the file systems on which a board works |
//! | `git.rs` | keeping a board out of git |
//! | `schema.rs` | migrations and versions |
//! | `private_file.rs` | databases of this program that are not boards |
//! | `reference/` | boards of ivy-blackboard, and their upgrade |
//! | `sidecars.rs` | the files beside the database, and their names |
//! | `queue.rs` | the queue in front of the writer lock |
//! | `tx.rs` | a transaction: reading, and applying changes |
//! | `gaps.rs` | counting events whose ids have gaps |
//! | `cells.rs` | values of rows as values of SQLite |
//! | `ranges.rs` | the statements that read ranges |
//! | `wake/` | waking threads that wait for the next event |
//! | `dump.rs`, `load.rs` | copying a complete board: reading it, and loading it into a new file |
//! | `scrub.rs` | erasing the remains of removed rows |
//! | `space.rs` | space usage of the file |
//! | `faults.rs` | translation of SQLite's errors |

mod cells;
mod directory;
mod dump;
mod faults;
mod filesystem;
mod gaps;
mod git;
mod load;
mod open;
mod private_file;
mod queue;
mod ranges;
mod reference;
mod schema;
mod scrub;
mod sidecars;
mod space;
mod trust;
mod tx;
mod wake;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use rusqlite::wal::CheckpointMode;
use rusqlite::{Connection, DEFAULT_NAME};

pub use self::git::{command_to_ignore, keep_out_of_git};
pub use self::load::LoadingFile;
pub(crate) use self::private_file::{PrivateFile, TableFile};
use self::queue::Queue;
pub use self::reference::{KeptInMetadata, LeftOutDependency, Upgraded, UpgradedRows};
pub use self::schema::VERSION as SCHEMA_VERSION;
pub use self::sidecars::SqliteSidecars;
pub use self::trust::{foreign_owner, writable_by_others};
use self::tx::SqliteTx;
use self::wake::Wake;
use super::transfer::{Hold, Recipient};
use super::{Changes, Commit, Committed, OnBusy, Prefetch, Store, Tx};
use crate::clock::Clock;
use crate::error::{Code, Error, Result};
use crate::revision::{Pending, Revision};
use crate::status::SpaceUsage;

/// How many frames the write-ahead log (WAL) may have before [`Store::maintain`] checkpoints and truncates it.
const FRAMES_KEPT: u32 = 100;

/// How many more it may have before a commit checkpoints it, and before the next attempt after one that failed.
const FRAMES_BETWEEN_COMMITS: u32 = 1_000;

/// How long the WAL's file may be before [`Store::maintain`] truncates it, however few of its frames are in use. A
/// killed process, or a reader during a checkpoint, leaves a long file behind, and the next process would read all of
/// it.
const BYTES_KEPT: u64 = FRAMES_KEPT as u64 * FRAME_BYTES;

/// How long the file may be before a checkpoint inside a commit truncates it too: twice what regular commits need. A
/// process that keeps writing then overwrites its file instead of growing it again.
const BYTES_BETWEEN_COMMITS: u64 = 2 * FRAMES_BETWEEN_COMMITS as u64 * FRAME_BYTES;

/// How long the file may be before a process with a deadline leaves its checkpoint to another process. No regular
/// process leaves more than this.
const BYTES_BEFORE_DEADLINE: u64 = BYTES_BETWEEN_COMMITS;

/// The length of one frame in the WAL's file: a page of SQLite's default size, and its header.
const FRAME_BYTES: u64 = 4096 + 24;

/// How many connections are kept for reuse.
const CONNECTIONS_KEPT: usize = 4;

/// When a commit is durable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// A commit survives the end of every process. A power cut may lose the last moments, and never corrupts the
    /// board.
    #[default]
    Normal,
    /// A commit survives a power cut: every one waits for the disk.
    Full,
}

/// Options for opening a board in a file.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a choice of its own")]
pub struct SqliteOptions {
    /// When a commit is durable.
    pub durability: Durability,
    /// How long a writer waits for other writers.
    pub busy_timeout: Duration,
    /// How it waits.
    pub waiting: Waiting,
    /// Whether the board stays open, so that its file may be deleted or replaced meanwhile. Then a check after every
    /// commit confirms that it went to the current file; otherwise it is not acknowledged. A process that opens a
    /// board for one call saves that check.
    pub stays_open: bool,
    /// Whether a new board creates the missing directories of its path. A path that a user types may be wrong.
    pub create_directories: bool,
    /// Whether the directory belongs to the board. A new board there gets a `.gitignore`.
    pub owns_directory: bool,
    /// Whether the database may be on a network file system, which damages a board that several machines use.
    pub allow_network_filesystem: bool,
}

/// How a writer waits for other writers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Waiting {
    /// In the queue in front of the writer lock.
    #[default]
    Queue,
    /// In the queue, and never longer than the limit: for a caller that would rather fail than be late. It never
    /// checkpoints a WAL that [`has_long_wal`] reports: a checkpoint that is interrupted has to start again.
    QueueWithDeadline,
    /// By SQLite's own busy handler, which sleeps and retries. Benchmarks compare the queue with it.
    BusyHandler,
}

impl Default for SqliteOptions {
    fn default() -> SqliteOptions {
        SqliteOptions {
            durability: Durability::Normal,
            busy_timeout: Duration::from_secs(5),
            waiting: Waiting::Queue,
            stays_open: true,
            create_directories: true,
            owns_directory: false,
            allow_network_filesystem: false,
        }
    }
}

/// Whether a checkpoint of the board at `path` may take longer than a process with a deadline has
/// ([`Waiting::QueueWithDeadline`]). Such a process leaves it to one without a deadline.
pub fn has_long_wal(path: &Path) -> bool {
    std::fs::symlink_metadata(sidecars::beside(path, "-wal"))
        .is_ok_and(|wal| wal.len() > BYTES_BEFORE_DEADLINE)
}

/// A board in a SQLite file.
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct Sqlite {
    path: PathBuf,
    clock: Arc<dyn Clock>,
    options: SqliteOptions,
    queue: Queue,
    wake: Wake,
    /// Writers of this process take turns here, before they compete with those of other processes.
    writer: Mutex<()>,
    /// Whether this value has created it.
    is_new: bool,
    /// Whether it was opened for reading only.
    reads_only: bool,
    /// Whether it was opened without locks.
    is_immutable: bool,
    /// Whether SQLite could open the file for reading only.
    is_write_protected: AtomicBool,
    /// Whether commits skip ids, which only tests do.
    skips_revisions: bool,
    idle: Mutex<Vec<Connection>>,
    /// The file that it connected to first.
    opened: OnceLock<trust::Identity>,
    /// Whether the file may have been replaced.
    stays_open: AtomicBool,
    /// How many frames the WAL had after the last commit.
    frames: Arc<AtomicU32>,
    /// How many it may have before a commit checkpoints it.
    frames_allowed: AtomicU32,
    /// The length of the WAL's file, as far as this process knows.
    wal_bytes: Arc<AtomicU64>,
}

impl Sqlite {
    /// Opens the board at `path`, and creates it if it does not exist.
    pub fn open(path: &Path, clock: Arc<dyn Clock>, options: &SqliteOptions) -> Result<Sqlite> {
        let mut store = Sqlite::at(path, clock, options);
        trust::check_directory(path)?;
        if trust::plain_file(path)?.is_none() {
            store.is_new = open::create(path, &store.queue, options, store.clock.now(), Hold::None)?;
        }
        store.connected()
    }

    /// Opens the board at `path`, or returns `None` and creates nothing if it does not exist.
    ///
    /// A board on read-only media, where no file can be created beside it, is opened for reading, unless it is to
    /// stay open: then nothing guards against a change of the file. [`Sqlite::is_read_only`] reports it.
    pub fn open_existing(
        path: &Path,
        clock: Arc<dyn Clock>,
        options: &SqliteOptions,
    ) -> Result<Option<Sqlite>> {
        trust::check_directory(path)?;
        if trust::plain_file(path)?.is_none() {
            return Ok(None);
        }
        match Sqlite::at(path, clock.clone(), options).connected() {
            Err(error)
                if error.code() == Code::ReadOnly && !options.stays_open && open::is_immutable(path) =>
            {
                let mut store = Sqlite::at(path, clock, options);
                (store.reads_only, store.is_immutable) = (true, true);
                store.connected().map(Some)
            }
            connected => connected.map(Some),
        }
    }

    /// Whether [`Sqlite::open`] has created the board. Of several processes that create it at once, one gets `true`.
    pub fn is_new(&self) -> bool {
        self.is_new
    }

    /// Whether it was opened for reading because its files cannot be written.
    pub fn is_read_only(&self) -> bool {
        self.is_immutable || self.is_write_protected.load(Ordering::Relaxed)
    }

    /// Opens the board at `path` for reading only, or returns `None` if it does not exist. Writes are refused, here
    /// and by SQLite. A board of an older version is refused too, because it would have to be migrated.
    pub fn open_to_read(
        path: &Path,
        clock: Arc<dyn Clock>,
        options: &SqliteOptions,
    ) -> Result<Option<Sqlite>> {
        trust::check_directory(path)?;
        if trust::plain_file(path)?.is_none() {
            return Ok(None);
        }
        let mut store = Sqlite::at(path, clock, options);
        store.reads_only = true;
        store.connected().map(Some)
    }

    /// For tests: the first event has a large id, and every commit skips a random number of ids. A board that was
    /// copied from such an engine looks the same.
    #[must_use]
    pub fn skipping_revisions(mut self) -> Sqlite {
        self.skips_revisions = true;
        self
    }

    fn at(path: &Path, clock: Arc<dyn Clock>, options: &SqliteOptions) -> Sqlite {
        let sidecars = SqliteSidecars::new(path);
        Sqlite {
            path: path.to_owned(),
            clock,
            queue: Queue::new(&sidecars, options.busy_timeout, options.waiting),
            wake: Wake::new(&sidecars),
            options: options.clone(),
            writer: Mutex::new(()),
            is_new: false,
            reads_only: false,
            is_immutable: false,
            is_write_protected: AtomicBool::new(false),
            skips_revisions: false,
            idle: Mutex::default(),
            opened: OnceLock::new(),
            stays_open: AtomicBool::new(options.stays_open),
            frames: Arc::default(),
            frames_allowed: AtomicU32::new(FRAMES_BETWEEN_COMMITS),
            wal_bytes: Arc::default(),
        }
    }

    /// Connects once, so that a problem with the file is reported here.
    fn connected(self) -> Result<Sqlite> {
        let connection = self.take()?;
        self.put_back(connection);
        Ok(self)
    }

    fn take(&self) -> Result<Connection> {
        if let Some(connection) = self.lock_idle().pop() {
            return Ok(connection);
        }
        let open::Connected { mut connection, file, wal_bytes } = if self.is_immutable {
            open::connect_immutable(&self.path, &self.options)?
        } else if self.reads_only {
            open::connect_to_read(&self.path, &self.options)?
        } else {
            open::connect(&self.path, &self.queue, &self.options, self.clock.now())?
        };
        if *self.opened.get_or_init(|| file.clone()) != file {
            return Err(trust::replaced(&self.path));
        }
        if self.reads_only {
            return Ok(connection);
        }
        let fault = |error| faults::translate(&self.path, error);
        self.is_write_protected
            .store(connection.is_readonly(rusqlite::MAIN_DB).map_err(fault)?, Ordering::Relaxed);
        self.wal_bytes.fetch_max(wal_bytes, Ordering::Relaxed);
        // Replaces SQLite's own automatic checkpoint, which would run inside a commit.
        let (frames, wal_bytes) = (self.frames.clone(), self.wal_bytes.clone());
        let hook = move |_: &mut _, length| {
            let length = u32::try_from(length).unwrap_or(0);
            frames.store(length, Ordering::Relaxed);
            wal_bytes.fetch_max(u64::from(length) * FRAME_BYTES, Ordering::Relaxed);
            Ok(())
        };
        connection.wal_hook(Some(hook)).map_err(fault)?;
        Ok(connection)
    }

    /// Commits, and returns the last revision too if there were events.
    fn commit_on(
        &self,
        connection: &Connection,
        commit: &Commit<'_>,
        f: &mut dyn FnMut(&dyn Tx) -> Result<Changes>,
    ) -> Result<(Committed, Option<Revision>)> {
        self.queue.begin(connection, commit.on_busy)?;
        let held = Instant::now();
        // The transaction rolls back if it is dropped without being applied.
        let transaction = SqliteTx::write(connection, &self.path, self.clock.now())?;
        let changes = f(&transaction)?;
        let mut last = changes.events.len().checked_sub(1).map(Revision::of_event);
        let mut committed = transaction.apply(changes, self.skips_revisions)?;
        committed.held = held.elapsed();
        last.resolve(committed.first);
        Ok((committed, last))
    }

    /// Copies the WAL into the database, without waiting: if another process reads or writes now, a later call does
    /// it. The next commit then starts at the beginning of the WAL's file. With `truncate`, the file is also
    /// truncated, which costs a process that keeps writing more than it gains.
    fn checkpoint_wal(&self, truncate: bool) {
        let Ok(connection) = self.take() else { return };
        if connection.busy_timeout(Duration::ZERO).is_ok() {
            // First the copying and syncing, which blocks no writer. Truncating does, but has nothing left to copy.
            let checkpoint = |mode| connection.wal_checkpoint_v2(DEFAULT_NAME, mode);
            let copied = checkpoint(CheckpointMode::PASSIVE).is_ok_and(|(frames, copied)| frames == copied);
            let done = copied && (!truncate || checkpoint(CheckpointMode::TRUNCATE).is_ok());
            let frames = if done { 0 } else { self.frames.load(Ordering::Relaxed) };
            self.frames.store(frames, Ordering::Relaxed);
            self.frames_allowed.store(frames.saturating_add(FRAMES_BETWEEN_COMMITS), Ordering::Relaxed);
            if done && truncate {
                self.wal_bytes.store(0, Ordering::Relaxed);
            }
            let _ = connection.busy_timeout(self.options.busy_timeout);
        }
        self.put_back(connection);
    }

    /// Whether the caller would rather fail than be late.
    fn has_deadline(&self) -> bool {
        self.options.waiting == Waiting::QueueWithDeadline
    }

    fn put_back(&self, connection: Connection) {
        let mut idle = self.lock_idle();
        if idle.len() < CONNECTIONS_KEPT {
            idle.push(connection);
        }
    }

    fn lock_idle(&self) -> std::sync::MutexGuard<'_, Vec<Connection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Store for Sqlite {
    fn read(&self, prefetch: &[Prefetch<'_>], f: &mut dyn FnMut(&dyn Tx) -> Result<()>) -> Result<()> {
        let connection = self.take()?;
        if let [Prefetch::Row(_)] = prefetch {
            let transaction = SqliteTx::read_one(&connection, &self.path, self.clock.now());
            let outcome = f(&transaction);
            if !transaction.wanted_more() {
                drop(transaction);
                self.put_back(connection);
                return outcome;
            }
        }
        let transaction = SqliteTx::read(&connection, &self.path, self.clock.now())?;
        let outcome = f(&transaction);
        drop(transaction);
        self.put_back(connection);
        outcome
    }

    fn commit(
        &self,
        commit: &Commit<'_>,
        f: &mut dyn FnMut(&dyn Tx) -> Result<Changes>,
    ) -> Result<Committed> {
        if self.reads_only {
            return Err(open::reads_only(&self.path));
        }
        let turn = match commit.on_busy {
            OnBusy::Wait => self.writer.lock().unwrap_or_else(PoisonError::into_inner),
            OnBusy::Fail => match self.writer.try_lock() {
                Ok(turn) => turn,
                Err(std::sync::TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
                Err(std::sync::TryLockError::WouldBlock) => return Err(faults::busy(&self.path, None)),
            },
        };
        let connection = self.take()?;
        let mut outcome = self.commit_on(&connection, commit, f);
        // Only now, because a process that removes the file does not take its lock. A refusal is an answer about the
        // board too.
        if !matches!(outcome, Err(Error::Fault(_)))
            && self.stays_open.load(Ordering::Relaxed)
            && let Err(gone) = self.check_still_there()
        {
            outcome = Err(gone);
        }
        // A refusal is an ordinary answer. After a fault, a new connection checks the state again.
        if !matches!(outcome, Err(Error::Fault(_))) {
            self.put_back(connection);
        }
        drop(turn);
        if let Ok((_, Some(last))) = outcome {
            self.wake.tell(last);
        }
        if !self.has_deadline()
            && self.frames.load(Ordering::Relaxed) > self.frames_allowed.load(Ordering::Relaxed)
        {
            self.checkpoint_wal(self.wal_bytes.load(Ordering::Relaxed) > BYTES_BETWEEN_COMMITS);
        }
        outcome.map(|(committed, _)| committed)
    }

    fn wait(&self, after: Revision, timeout: Duration) -> Result<Revision> {
        // A waiting process stays open.
        self.stays_open.store(true, Ordering::Relaxed);
        let found = self.wake.wait(after, timeout, || {
            let mut revision = Revision::ZERO;
            self.read(&[], &mut |tx| {
                revision = tx.revision()?;
                Ok(())
            })?;
            Ok(revision)
        })?;
        if found <= after {
            self.check_still_there()?;
        }
        Ok(found)
    }

    fn has_writer_lock(&self) -> bool {
        true
    }

    fn check_still_there(&self) -> Result<()> {
        self.opened.get().map_or(Ok(()), |opened| trust::check_still_there(&self.path, opened))
    }

    fn size(&self) -> Result<u64> {
        let length = |path: &Path| std::fs::symlink_metadata(path).map_or(0, |metadata| metadata.len());
        Ok(length(&self.path) + length(&sidecars::beside(&self.path, "-wal")))
    }

    fn space_usage(&self) -> Result<Vec<SpaceUsage>> {
        let connection = self.take()?;
        let room = space::of(&connection).map_err(|error| faults::translate(&self.path, error))?;
        self.put_back(connection);
        Ok(room)
    }

    fn scrub(&self) -> Result<Vec<String>> {
        if self.reads_only {
            return Err(open::reads_only(&self.path));
        }
        let turn = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        // A separate connection, because its settings are for this call only.
        let open::Connected { connection, .. } =
            open::connect(&self.path, &self.queue, &self.options, self.clock.now())?;
        let scrubbed = scrub::rewrite(&connection).and_then(|()| {
            // Other writers continue while this waits for readers.
            drop(turn);
            scrub::empty_wal(&connection, self.options.busy_timeout)
        });
        let scrubbed = scrubbed.map_err(|error| faults::translate(&self.path, error))?;
        if !scrubbed {
            return Ok(vec![scrub::IN_USE.to_owned()]);
        }
        self.frames.store(0, Ordering::Relaxed);
        self.wal_bytes.store(0, Ordering::Relaxed);
        Ok(Vec::new())
    }

    fn dump(&self, to: &mut dyn Recipient) -> Result<()> {
        let connection = self.take()?;
        let transaction = SqliteTx::read(&connection, &self.path, self.clock.now())?;
        let outcome = transaction.dump(to);
        drop(transaction);
        self.put_back(connection);
        outcome
    }

    fn seal(&self, moved_to: &str) -> Result<bool> {
        const STORE: &str = "INSERT OR REPLACE INTO marks (name, value) VALUES ('sealed', ?1)";
        let before = self.set_hold(Hold::Sealed, |tx| tx.execute(STORE, [moved_to]).map(drop))?;
        Ok(before == Hold::None)
    }

    fn sealed(&self) -> Result<Option<String>> {
        let connection = self.take()?;
        let (_, hold) = schema::age(&connection, &self.path)?;
        let sealed = (hold == Hold::Sealed).then(|| schema::moved_to(&connection).unwrap_or_default());
        self.put_back(connection);
        Ok(sealed)
    }

    fn unseal(&self) -> Result<bool> {
        const REMOVE: &str = "DELETE FROM marks WHERE name = 'sealed'";
        let before = self.set_hold(Hold::None, |tx| tx.execute(REMOVE, []).map(drop))?;
        Ok(before == Hold::Sealed)
    }

    fn maintain(&self) {
        let wal_bytes = self.wal_bytes.load(Ordering::Relaxed);
        let is_long = self.frames.load(Ordering::Relaxed) > FRAMES_KEPT || wal_bytes > BYTES_KEPT;
        let is_too_long = self.has_deadline() && wal_bytes > BYTES_BEFORE_DEADLINE;
        if is_long && !is_too_long && !self.reads_only {
            self.checkpoint_wal(true);
        }
    }
}

impl Drop for Sqlite {
    fn drop(&mut self) {
        self.maintain();
    }
}

#[cfg(test)]
mod tests;
