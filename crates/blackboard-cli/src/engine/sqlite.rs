//! A board in a SQLite file.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::path::Path;
use std::sync::Arc;

use blackboard::Result;
use blackboard::clock::{Clock, SystemClock};
use blackboard::store::sqlite::{self, Sqlite, SqliteOptions, SqliteSidecars, Upgraded, Waiting};
use blackboard::store::{LoadingBoard, Sidecars};

use super::{Engine, Mode, OpenStore, Opening};
use crate::config::{Database, Durability};
use crate::envelope::BoardState;

/// A board in a file.
pub struct SqliteFile {
    /// The sidecars also know the file.
    sidecars: SqliteSidecars,
    /// Whether its directory is that of a project's board, or of the home board.
    owns_directory: bool,
    creates_directories: bool,
}

impl SqliteFile {
    /// The board in this file.
    pub fn new(file: &Path, owns_directory: bool, creates_directories: bool) -> SqliteFile {
        SqliteFile { sidecars: SqliteSidecars::new(file), owns_directory, creates_directories }
    }

    fn database(&self) -> &Path {
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
            waiting: opening.write_limit.map_or(defaults.waiting, |_| Waiting::QueueWithDeadline),
            stays_open: opening.stays_open,
            create_directories: self.creates_directories,
            owns_directory: self.owns_directory,
            allow_network_filesystem: database.allow_network_filesystem,
        }
    }
}

impl Engine for SqliteFile {
    fn name(&self) -> String {
        self.database().display().to_string()
    }

    fn exists(&self) -> bool {
        self.database().exists()
    }

    /// The file's location on its disk, and when it was created.
    fn identity(&self) -> Option<String> {
        let metadata = std::fs::symlink_metadata(self.database()).ok()?;
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

    fn create_sidecar_directory(&self) -> io::Result<()> {
        Ok(())
    }

    fn file(&self) -> Option<&Path> {
        Some(self.database())
    }

    fn is_maintenance_overdue(&self) -> bool {
        sqlite::has_long_wal(self.database())
    }

    fn open(&self, database: &Database, opening: Opening) -> Result<Option<OpenStore>> {
        let (clock, options) = (Arc::new(SystemClock), self.options(database, opening));
        let store = match opening.mode {
            Mode::Create => Some(Sqlite::open(self.database(), clock, &options)?),
            Mode::Existing => Sqlite::open_existing(self.database(), clock, &options)?,
            Mode::ReadOnly => Sqlite::open_to_read(self.database(), clock, &options)?,
        };
        Ok(store.map(|store| {
            let state = match (store.is_new(), store.is_read_only()) {
                (true, _) => Some(BoardState::Created),
                (false, true) => Some(BoardState::ReadOnly),
                (false, false) => None,
            };
            OpenStore { state, store: Arc::new(store), clock: Arc::new(SystemClock) }
        }))
    }

    fn needs_upgrade(&self, database: &Database) -> bool {
        Sqlite::needs_upgrade(self.database(), &self.options(database, Opening::new(Mode::Existing)))
    }

    fn upgrade(&self, database: &Database) -> Result<Option<Upgraded>> {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        Sqlite::upgrade(self.database(), &clock, &self.options(database, Opening::new(Mode::Existing)))
    }

    fn create_to_load(
        &self,
        database: &Database,
        _: Opening,
        replaces: bool,
    ) -> Result<Box<dyn LoadingBoard>> {
        let options = self.options(database, Opening::staying(Mode::Create));
        let loading = Sqlite::create_to_load(self.database(), Arc::new(SystemClock), &options, replaces)?;
        Ok(Box::new(loading))
    }
}
