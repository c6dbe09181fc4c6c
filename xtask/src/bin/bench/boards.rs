//! Boards for measurements, filled with SQL where the product would take too long.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use blackboard::agent::Register;
use blackboard::clock::{Clock, SystemClock, Timestamp};
use blackboard::store::sqlite::{Sqlite, SqliteOptions};
use blackboard::store::{Changes, Commit, Committed, Prefetch, Store, Tx};
use blackboard::{Board, Revision, Settings};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, params};
use tempfile::TempDir;

use crate::Result;

/// The path of the repository in a home.
const REPOSITORY: &str = "work/project";

/// A directory with one board, deleted at the end.
pub struct Scratch {
    directory: TempDir,
    database: PathBuf,
}

impl Scratch {
    pub fn new() -> Result<Scratch> {
        let directory = tempfile::tempdir()?;
        let database = directory.path().join("local.db");
        Ok(Scratch { directory, database })
    }

    /// A board of a git repository in a home directory, found from there without `--db`.
    pub fn in_repository() -> Result<Scratch> {
        let directory = tempfile::tempdir()?;
        let repository = directory.path().join(REPOSITORY);
        fs::create_dir_all(repository.join(".git"))?;
        Ok(Scratch { directory, database: repository.join(".blackboard/local.db") })
    }

    /// A copy of a board that no process has open and that has no WAL.
    pub fn copy_of(template: &Scratch) -> Result<Scratch> {
        let copy = Scratch::new()?;
        fs::copy(template.path(), copy.path())?;
        Ok(copy)
    }

    /// The database file.
    pub fn path(&self) -> PathBuf {
        self.database.clone()
    }

    /// The repository of a board that is in one.
    pub fn repository(&self) -> PathBuf {
        self.directory.path().join(REPOSITORY)
    }

    /// The home directory of that repository.
    pub fn home(&self) -> &Path {
        self.directory.path()
    }

    /// The size of the write-ahead log, in bytes.
    pub fn log_size(&self) -> u64 {
        fs::metadata(self.database.with_file_name("local.db-wal")).map_or(0, |metadata| metadata.len())
    }

    /// The board.
    pub fn open(&self) -> Result<Board> {
        Ok(Board::open(&self.path())?)
    }

    /// The board, with a record of how long each commit held the writer lock.
    pub fn open_watched(&self, settings: Settings) -> Result<(Board, Arc<Watched>)> {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let store = Sqlite::open(&self.path(), clock.clone(), &SqliteOptions::default())?;
        let store = Arc::new(Watched { store, held: Mutex::default() });
        Ok((Board::on(store.clone(), clock).with_settings(settings), store))
    }

    /// A connection that bypasses the product.
    pub fn connect(&self) -> Result<Connection> {
        connect(&self.path())
    }

    /// Registers agents whose process is this one, and returns their sessions.
    pub fn register(&self, count: usize) -> Result<Vec<String>> {
        self.register_with(count, std::process::id())
    }

    /// Registers agents of this process.
    pub fn register_with(&self, count: usize, pid: u32) -> Result<Vec<String>> {
        let board = self.open()?;
        let mut sessions = Vec::with_capacity(count);
        for number in 0..count {
            let request = Register { pid: Some(pid), ..Register::named(&format!("Agent {number}")) };
            sessions.push(board.agents().register(&request)?.agent.session_id);
        }
        Ok(sessions)
    }

    /// Adds available items `PREFIX-0`, `PREFIX-1` and so on, each with its own title: a claim changes the current work
    /// of its agent.
    pub fn add_items(&self, prefix: &str, count: usize) -> Result {
        const INSERT: &str = "INSERT INTO work_items (item_id, title, source, created_at, revision) \
                              VALUES (?1, 'Design SQL schema ' || ?1, 'local', ?2, 1)";
        let mut connection = self.connect()?;
        let transaction = connection.transaction()?;
        let now = SystemClock.now().to_string();
        {
            let mut statement = transaction.prepare(INSERT)?;
            for number in 0..count {
                statement.execute(params![format!("{prefix}-{number}"), now])?;
            }
        }
        transaction.commit()?;
        self.fold()
    }

    /// Appends events of this age, a millisecond apart, like those of claims.
    pub fn add_events(&self, count: i64, age: Duration) -> Result {
        const INSERT: &str = "INSERT INTO events (id, timestamp, event_type, actor_id, target_id, target_type, \
                              summary, commit_id) VALUES (?1, ?2, 'work_claimed', ?3, ?4, 'work_item', ?5, ?1)";
        let mut connection = self.connect()?;
        let transaction = connection.transaction()?;
        let last: i64 =
            transaction.query_row("SELECT coalesce(max(id), 0) FROM events", [], |row| row.get(0))?;
        let oldest = SystemClock.now().minus(age).millis();
        let session = "00000000-0000-4000-8000-000000000000";
        {
            let mut statement = transaction.prepare(INSERT)?;
            for number in 1..=count {
                let time = Timestamp::from_millis(oldest + number).to_string();
                let item = format!("item-{number}");
                let summary = format!("Agent \"Agent 0\" claimed \"Design SQL schema {number}\"");
                statement.execute(params![last + number, time, session, item, summary])?;
            }
        }
        transaction.commit()?;
        self.fold()
    }

    /// Checkpoints the WAL, so that the file alone is the board.
    pub fn fold(&self) -> Result {
        let connection = self.connect()?;
        connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
        Ok(())
    }
}

/// A connection to any database with expert settings: as durable as ours, with foreign key checks, and without
/// preparing a statement again for new values.
pub fn connect(path: &Path) -> Result<Connection> {
    let connection = Connection::open(path)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    connection.busy_timeout(Duration::from_secs(5))?;
    connection.execute_batch("PRAGMA synchronous = NORMAL; PRAGMA foreign_keys = ON")?;
    Ok(connection)
}

/// A store that records its commits.
pub struct Watched {
    store: Sqlite,
    held: Mutex<Vec<Duration>>,
}

impl Watched {
    /// How long each commit since the last call held the writer lock.
    pub fn take_held(&self) -> Vec<Duration> {
        std::mem::take(&mut self.held.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Store for Watched {
    fn read(
        &self,
        prefetch: &[Prefetch<'_>],
        f: &mut dyn FnMut(&dyn Tx) -> blackboard::Result<()>,
    ) -> blackboard::Result<()> {
        self.store.read(prefetch, f)
    }

    fn commit(
        &self,
        commit: &Commit<'_>,
        f: &mut dyn FnMut(&dyn Tx) -> blackboard::Result<Changes>,
    ) -> blackboard::Result<Committed> {
        let committed = self.store.commit(commit, f)?;
        self.held.lock().unwrap_or_else(PoisonError::into_inner).push(committed.held);
        Ok(committed)
    }

    fn wait(&self, after: Revision, timeout: Duration) -> blackboard::Result<Revision> {
        self.store.wait(after, timeout)
    }

    fn size(&self) -> blackboard::Result<u64> {
        self.store.size()
    }

    fn maintain(&self) {
        self.store.maintain();
    }
}
