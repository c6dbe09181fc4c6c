//! Boards of ivy-blackboard, the reference implementation: recognized here, and upgraded on request.
//!
//! Its database is at the same default path, without an application id, with schema versions 1 to 9. Every call but the
//! upgrade leaves it untouched. The upgrade holds the writer lock from its first read to its commit: it makes a verified
//! copy, replaces the tables, inserts the rows of the copy, and commits all of that as one transaction.
//!
//! | File | What it is about |
//! |---|---|
//! | `recognize.rs` | whether a database is one of these |
//! | `inspect.rs` | whether it can be upgraded, before anything is written |
//! | `wal.rs` | what the WAL of a database says about it, read without SQLite |
//! | `backup.rs` | the verified copy |
//! | `guards.rs` | triggers that refuse writes of a process of ivy-blackboard that still runs |
//! | `source.rs` | values of its rows |
//! | `leftovers.rs` | what has no column here, and goes into metadata |
//! | `convert.rs`, `items.rs` | its rows as rows of a board |
//! | `cycles.rs` | whether a dependency would close a cycle |

mod backup;
mod convert;
mod cycles;
mod guards;
mod inspect;
mod items;
mod leftovers;
mod recognize;
mod source;
mod wal;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};
use serde::Serialize;

pub(super) use self::guards::is_guard;
pub use self::leftovers::KeptInMetadata;
use self::recognize::Peeked;
use super::queue::Queue;
use super::{Durability, Sqlite, SqliteOptions, SqliteSidecars, faults, git, open, schema, trust};
use crate::clock::Clock;
use crate::error::{Code, Error, Fault, Refusal, Result};
use crate::hint::Hint;
use crate::store::OnBusy;

/// How long an upgrade waits at least for another writer, which may be another upgrade.
const WAIT: Duration = Duration::from_secs(30);

/// How long the checkpoint after an upgrade waits for readers.
const CHECKPOINT_WAIT: Duration = Duration::from_secs(1);

/// How much memory the pages of the transaction may use before some of them are written to the WAL early, and perhaps again.
const CACHE_KILOBYTES: u32 = 256 * 1024;

/// A version of `schema_version` that no version of ivy-blackboard supports: it refuses to open the database.
const REFUSED_VERSION: u32 = 1_000_000;

/// A finished upgrade.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Upgraded {
    /// The schema version that the database had.
    pub from_version: u32,
    /// The copy of the database before the upgrade.
    #[serde(serialize_with = "as_shown")]
    pub copy: PathBuf,
    /// The rows that were taken over.
    #[serde(flatten)]
    pub rows: UpgradedRows,
    /// What has no column on a board of this program.
    pub kept_in_metadata: Vec<KeptInMetadata>,
    /// The dependencies that would close a cycle. Metadata keeps them.
    pub left_out: Vec<LeftOutDependency>,
}

/// A dependency that was not taken over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LeftOutDependency {
    /// The item.
    pub item_id: String,
    /// What it was blocked by.
    pub blocked_by: String,
}

impl LeftOutDependency {
    fn all(item: &str, blockers: Vec<String>) -> impl Iterator<Item = LeftOutDependency> {
        blockers.into_iter().map(|blocked_by| LeftOutDependency { item_id: item.to_owned(), blocked_by })
    }
}

/// The number of rows of each kind that were taken over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct UpgradedRows {
    /// Agents.
    pub agents: u64,
    /// Registered projects.
    pub projects: u64,
    /// Work items.
    pub work_items: u64,
    /// Dependencies between work items.
    pub dependencies: u64,
    /// Heartbeats.
    pub heartbeats: u64,
    /// Events.
    pub events: u64,
    /// Rows of `specflow_features`, which are in the metadata of their projects.
    pub specflow_features: u64,
}

/// What the header of a database without an application id means.
pub(super) enum Found {
    /// The commit of an upgrade is in the WAL. This is its header.
    Upgraded([u8; 100]),
    /// It is a board of ivy-blackboard, with this version if that is known without opening it.
    Reference(Option<u32>),
    /// It has the tables of ivy-blackboard, and this, which is not a part of it.
    Altered(String),
    /// It belongs to another program.
    Other,
}

/// Finds out what a database without an application id is. It touches neither the file nor its companions.
pub(super) fn look_at(path: &Path) -> Found {
    let in_wal = wal::read(path);
    match in_wal.header {
        Some(header) if header[68..72] == schema::APPLICATION_ID.to_be_bytes() => Found::Upgraded(header),
        _ => match recognize::peek(path) {
            Peeked::Version(version) => Found::Reference(Some(version)),
            Peeked::Altered(_) | Peeked::Other if in_wal.creates_tables => Found::Reference(None),
            Peeked::Altered(object) => Found::Altered(object),
            Peeked::Other => Found::Other,
        },
    }
}

/// Whether SQLite shows the upgrade that was found in the WAL. Between writing a commit there and showing it to other
/// processes, SQLite syncs the file.
pub(super) fn is_visible(path: &Path, options: &SqliteOptions) -> bool {
    let application_id = || -> rusqlite::Result<i32> {
        let connection = open::open_as(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        open::configure(&connection, options)?;
        connection.query_row("PRAGMA application_id", [], |row| row.get(0))
    };
    // What prevents reading it here is reported when the board is opened.
    application_id().map_or(true, |id| id == schema::APPLICATION_ID)
}

/// The refusal of every call if the upgrade would be refused.
pub(super) fn altered(path: &Path, object: &str) -> Error {
    recognize::cannot_upgrade(path, object)
}

/// The refusal of every call but the upgrade.
pub(super) fn upgrade_needed(path: &Path, version: Option<u32>) -> Error {
    let version = version.map(|version| format!(", schema version {version}")).unwrap_or_default();
    let what = format!("{} is a board of another program (ivy-blackboard{version})", path.display());
    Refusal::new(Code::UpgradeNeeded, what).hint(Hint::UpgradeForeignBoard).into()
}

impl Sqlite {
    /// Whether there is a board of ivy-blackboard at `path`.
    pub fn needs_upgrade(path: &Path, options: &SqliteOptions) -> bool {
        let is_file = trust::plain_file(path).is_ok_and(|found| found.is_some());
        is_file && trust::check(path, options).is_err_and(|error| error.code() == Code::UpgradeNeeded)
    }

    /// Upgrades the board of ivy-blackboard at `path`, and keeps a copy of it. Returns `None` if it is a board of this
    /// program already, perhaps because another process was faster.
    ///
    /// The file is either upgraded completely, or unchanged.
    pub fn upgrade(path: &Path, clock: &Arc<dyn Clock>, options: &SqliteOptions) -> Result<Option<Upgraded>> {
        trust::check_directory(path)?;
        let Some(found) = trust::plain_file(path)? else { return Err(not_found(path)) };
        match trust::check(path, options) {
            Ok(_) => return Ok(None),
            Err(error) if error.code() == Code::UpgradeNeeded => {}
            Err(error) => return Err(error),
        }
        let file = trust::check_reference(path, &found)?;
        let Some(inspected) = inspect::inspect(path, options, clock.now())? else { return Ok(None) };
        if options.owns_directory {
            git::keep_out_of_git(path)?;
        }
        let connection = open::open_file(path).map_err(|error| faults::translate(path, error))?;
        trust::check_same(path, &file)?;
        let upgrade = Upgrade { path, connection, clock, options };
        let outcome = upgrade.begin().and_then(|()| upgrade.run());
        match &outcome {
            Ok(Some(_)) => upgrade.checkpoint(),
            // Another process was faster.
            Ok(None) => upgrade.roll_back(),
            Err(_) => {
                upgrade.roll_back();
                if !inspected.has_wal {
                    upgrade.remove_companions_on_close();
                }
            }
        }
        outcome
    }
}

/// An upgrade that is going on.
struct Upgrade<'a> {
    path: &'a Path,
    connection: Connection,
    clock: &'a Arc<dyn Clock>,
    options: &'a SqliteOptions,
}

impl Upgrade<'_> {
    /// Waits for the writer lock.
    fn begin(&self) -> Result<()> {
        self.prepare().map_err(|error| faults::translate(self.path, error))?;
        let limit = self.options.busy_timeout.max(WAIT);
        let queue = Queue::new(&SqliteSidecars::new(self.path), limit, self.options.waiting);
        queue.begin(&self.connection, OnBusy::Wait)
    }

    fn prepare(&self) -> rusqlite::Result<()> {
        open::configure(
            &self.connection,
            &SqliteOptions { durability: Durability::Full, ..self.options.clone() },
        )?;
        // Rows come in any order, and all references are checked before the commit.
        self.connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_FKEY, false)?;
        self.connection.execute_batch(&format!("PRAGMA cache_size = -{CACHE_KILOBYTES}"))?;
        // Its own program does the same whenever it opens the database.
        self.connection.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()))
    }

    /// Does everything inside the transaction that has begun, and commits it.
    fn run(&self) -> Result<Option<Upgraded>> {
        let Some(version) = recognize::version(&self.connection, self.path)? else { return Ok(None) };
        let copy = backup::make(self.path, version)?;
        match self.replace_tables(version, &copy) {
            // From here on the copy stays. A commit that fails may be complete in the WAL, and a later process may find it.
            Ok(upgraded) => self.commit(&copy.path).map(|()| Some(upgraded)),
            Err(error) => {
                copy.discard();
                Err(error)
            }
        }
    }

    fn commit(&self, copy: &Path) -> Result<()> {
        let committed = self.connection.execute_batch("COMMIT");
        committed.map_err(|error| match faults::translate(self.path, error) {
            Error::Fault(fault) if fault.code == Code::Io => {
                fault.hint(format!("retry; a copy of the board is at {}", copy.display())).into()
            }
            error => error,
        })
    }

    /// Replaces the tables, inside the transaction.
    fn replace_tables(&self, version: u32, copy: &backup::Copy) -> Result<Upgraded> {
        let fault = |error| faults::translate(self.path, error);
        let now = self.clock.now();
        for table in recognize::TABLES {
            self.connection.execute_batch(&format!("DROP TABLE IF EXISTS {table}")).map_err(fault)?;
        }
        let application_id = format!("PRAGMA application_id = {}", schema::APPLICATION_ID);
        self.connection.execute_batch(&application_id).map_err(fault)?;
        schema::migrate(&self.connection, now).map_err(fault)?;
        let converted = convert::convert(&copy.connection, &self.connection, version, now).map_err(fault)?;
        self.check_references()?;
        self.connection
            .execute(
                "INSERT INTO schema_version (version, applied_at, description) VALUES (?1, ?2, ?3)",
                (
                    REFUSED_VERSION,
                    now.to_string(),
                    format!("upgraded from ivy-blackboard, version {version}"),
                ),
            )
            .map_err(fault)?;
        self.connection.execute_batch(&guards::statements()).map_err(fault)?;
        // The file that was checked is the one that is changed.
        schema::check_objects(&self.connection, self.path)?;
        let convert::Converted { rows, kept_in_metadata, left_out } = converted;
        Ok(Upgraded { from_version: version, copy: copy.path.clone(), rows, kept_in_metadata, left_out })
    }

    fn check_references(&self) -> Result<()> {
        let fault = |error| faults::translate(self.path, error);
        let mut statement = self.connection.prepare("PRAGMA foreign_key_check").map_err(fault)?;
        let mut found = statement.query([]).map_err(fault)?;
        let Some(row) = found.next().map_err(fault)? else { return Ok(()) };
        let (table, parent): (String, String) = (row.get(0).map_err(fault)?, row.get(2).map_err(fault)?);
        let what = format!("a row of {table} would refer to a missing one of {parent}");
        Err(Fault::new(Code::Internal, what).hint("this is a bug; nothing was changed").into())
    }

    /// Nothing was written, or what was written is not kept.
    fn roll_back(&self) {
        let _ = self.connection.execute_batch("ROLLBACK");
    }

    /// Lets SQLite remove the WAL that this upgrade created and that has no commit, unless another process uses it.
    fn remove_companions_on_close(&self) {
        let _ = self.connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false);
    }

    /// Moves the upgrade from the WAL into the database, so that its header identifies it. If a reader prevents that, the
    /// WAL does.
    fn checkpoint(&self) {
        let _ = self.connection.busy_timeout(CHECKPOINT_WAIT);
        let _ = self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
    }
}

/// A path as text, also one that is not.
fn as_shown<S: serde::Serializer>(path: &Path, serializer: S) -> std::result::Result<S::Ok, S::Error> {
    serializer.collect_str(&path.display())
}

fn not_found(path: &Path) -> Error {
    Refusal::new(Code::BoardNotFound, format!("no board at {}", path.display())).into()
}
