//! The engine of a board, chosen by where the board is: what can be known and done before the board is open.
//!
//! [`of`] is the only place that tells engines apart. Another engine is one more arm there and one more [`Engine`].

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use std::sync::Arc;

use blackboard::clock::SystemClock;
use blackboard::store::sqlite::{self, Sqlite, SqliteOptions, SqliteSidecars, Waiting};
use blackboard::store::{Sidecars, Store};
use blackboard::{Code, Error, Refusal, Result};

use crate::config::{Database, Durability};
use crate::location::{Location, Target};
use crate::open::{Mode, Opening};

/// The engine of one board, which need not exist.
pub trait Engine: Send + Sync {
    /// Where the board is, for people.
    fn name(&self) -> String;

    /// Whether the board exists.
    fn exists(&self) -> bool;

    /// What tells this board from another one at the same location; `None` if there is none.
    fn identity(&self) -> Option<String>;

    /// Where programs keep their small files for the board.
    fn sidecars(&self) -> &dyn Sidecars;

    /// Opens the store of the board. `None` if it does not exist and is not to be created.
    fn open(&self, database: &Database, opening: Opening) -> Result<Option<OpenStore>>;
}

/// A store that was opened.
pub struct OpenStore {
    /// The store.
    pub store: Arc<dyn Store>,
    /// Whether it was opened without locks, because nothing can be written there.
    pub is_immutable: bool,
}

/// The engine of the board at this location.
pub fn of(location: &Location) -> Result<Arc<dyn Engine>> {
    match &location.target {
        Target::File(file) => Ok(sqlite_file(file, location.project_config.is_some())),
        Target::Redis(_) => Err(no_redis()),
    }
}

/// The engine of a board in this file. `in_project`: its directory is the one that a project keeps for its board.
pub fn sqlite_file(file: &Path, in_project: bool) -> Arc<dyn Engine> {
    Arc::new(SqliteFile { sidecars: SqliteSidecars::new(file), in_project })
}

struct SqliteFile {
    /// They know the file, too.
    sidecars: SqliteSidecars,
    in_project: bool,
}

impl SqliteFile {
    fn file(&self) -> &Path {
        self.sidecars.database()
    }

    fn options(&self, database: &Database, opening: Opening) -> SqliteOptions {
        let defaults = SqliteOptions::default();
        SqliteOptions {
            durability: match database.durability {
                Durability::Normal => sqlite::Durability::Normal,
                Durability::Full => sqlite::Durability::Full,
            },
            busy_timeout: opening.write_limit.unwrap_or(defaults.busy_timeout),
            waiting: opening.write_limit.map_or(defaults.waiting, |_| Waiting::QueueNoLonger),
            stays_open: opening.stays_open,
            in_project: self.in_project,
            check_git: opening.check_git,
            allow_network_filesystem: database.allow_network_filesystem,
        }
    }
}

impl Engine for SqliteFile {
    fn name(&self) -> String {
        self.file().display().to_string()
    }

    fn exists(&self) -> bool {
        self.file().exists()
    }

    /// Where the file is on its disk, and when it was created.
    fn identity(&self) -> Option<String> {
        let metadata = std::fs::symlink_metadata(self.file()).ok()?;
        let mut hasher = DefaultHasher::new();
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt;
            (metadata.dev(), metadata.ino()).hash(&mut hasher);
        }
        metadata.created().ok().hash(&mut hasher);
        Some(format!("{:016x}", hasher.finish()))
    }

    fn sidecars(&self) -> &dyn Sidecars {
        &self.sidecars
    }

    fn open(&self, database: &Database, opening: Opening) -> Result<Option<OpenStore>> {
        let (clock, options) = (Arc::new(SystemClock), self.options(database, opening));
        let store = match opening.mode {
            Mode::Create => Some(Sqlite::open(self.file(), clock, &options)?),
            Mode::Existing => Sqlite::open_existing(self.file(), clock, &options)?,
            Mode::ReadOnly => Sqlite::open_to_read(self.file(), clock, &options)?,
        };
        Ok(store.map(|store| OpenStore { is_immutable: store.is_immutable(), store: Arc::new(store) }))
    }
}

fn no_redis() -> Error {
    Refusal::new(Code::InvalidValue, "this version has no Redis engine yet")
        .hint("name a file with --db or BLACKBOARD_DB")
        .into()
}
