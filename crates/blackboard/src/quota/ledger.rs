//! [`Ledger`]: the open file.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::Connection;

use super::config::{Config, Provider};
use super::journal::Journal;
use crate::board::Board;
use crate::clock::{Clock, SystemClock, Timestamp};
use crate::error::{Code, Error, Fault, Refusal, Result};
use crate::store::sqlite::{PrivateFile, SqliteOptions, TableFile};
use crate::text::shown;

/// The file of a ledger: "blqu".
const FILE: TableFile = TableFile {
    application_id: 0x626c_7175,
    steps: &[
        include_str!("schema.sql"),
        include_str!("steps/0002_notices.sql"),
        include_str!("steps/0003_uncounted.sql"),
        include_str!("steps/0004_reservation_usage.sql"),
        include_str!("steps/0005_newest.sql"),
    ],
};

/// The ledger of a user.
pub struct Ledger {
    storage: Mutex<Storage>,
    clock: Arc<dyn Clock>,
    pub(super) config: Config,
    /// The changes of all machines, if they share the ledger.
    pub(super) journal: Option<Journal>,
}

/// Where the tables are.
enum Storage {
    File(PrivateFile),
    /// Stands for a file that does not exist.
    Memory(Connection),
}

impl Ledger {
    /// Opens the ledger at `path`, and creates it if it does not exist. It is private to this user, as a board is.
    pub fn open(path: &Path, config: &Config) -> Result<Ledger> {
        Ledger::open_with(path, config, Arc::new(SystemClock), &SqliteOptions::default())
    }

    /// The same with another clock and other options.
    pub fn open_with(
        path: &Path,
        config: &Config,
        clock: Arc<dyn Clock>,
        options: &SqliteOptions,
    ) -> Result<Ledger> {
        let file = PrivateFile::open(path, &FILE, options).map_err(|error| explain(error, path))?;
        Ok(Ledger::on(Storage::File(file), config, clock))
    }

    /// Opens a ledger that several machines share. `board` has the changes of all of them, and is used for nothing else; the
    /// file at `path` has what they add up to. The time is that of the board.
    ///
    /// A file that is deleted is made again from the changes, which are kept for 37 days.
    pub fn shared(path: &Path, config: &Config, board: Board, options: &SqliteOptions) -> Result<Ledger> {
        let ledger = Ledger::open_with(path, config, Arc::new(SystemClock), options)?;
        let ledger = Ledger { journal: Some(Journal::on(board)), ..ledger };
        ledger.refresh()?;
        Ok(ledger)
    }

    /// Opens the ledger at `path`, or returns `None` and creates nothing if it does not exist.
    pub fn open_existing(
        path: &Path,
        config: &Config,
        clock: Arc<dyn Clock>,
        options: &SqliteOptions,
    ) -> Result<Option<Ledger>> {
        let file = PrivateFile::open_existing(path, &FILE, options).map_err(|error| explain(error, path))?;
        Ok(file.map(|file| Ledger::on(Storage::File(file), config, clock)))
    }

    /// An empty ledger in memory, which represents a missing one.
    pub fn empty(config: &Config, clock: Arc<dyn Clock>) -> Result<Ledger> {
        let open = || {
            let connection = Connection::open_in_memory()?;
            FILE.fill(&connection, 0)?;
            Ok(connection)
        };
        let connection = open().map_err(in_memory)?;
        Ok(Ledger::on(Storage::Memory(connection), config, clock))
    }

    fn on(storage: Storage, config: &Config, clock: Arc<dyn Clock>) -> Ledger {
        Ledger { storage: Mutex::new(storage), clock, config: config.clone(), journal: None }
    }

    /// The time of its clock, or of the board that has its changes.
    pub fn now(&self) -> Timestamp {
        self.journal.as_ref().map_or_else(|| self.clock.now(), Journal::now)
    }

    /// The configuration that it was opened with.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The provider with this name.
    pub(super) fn provider(&self, name: &str) -> Result<&Provider> {
        self.config.providers.get(name).ok_or_else(|| {
            let message = format!("the provider {} is not configured", shown(name));
            Refusal::new(Code::InvalidValue, message).hint(self.configured_providers()).into()
        })
    }

    /// The hint of a call that names no configured provider.
    pub(super) fn configured_providers(&self) -> String {
        let names: Vec<_> = self.config.providers.keys().map(String::as_str).collect();
        format!("configured: {}", names.join(", "))
    }

    pub(super) fn read<T>(&self, read: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T> {
        match &*self.storage.lock().unwrap_or_else(PoisonError::into_inner) {
            Storage::File(file) => file.read(read).map_err(|error| explain(error, file.path())),
            Storage::Memory(connection) => read(connection).map_err(in_memory),
        }
    }

    pub(super) fn write<T>(&self, write: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T> {
        match &*self.storage.lock().unwrap_or_else(PoisonError::into_inner) {
            Storage::File(file) => file.write(write).map_err(|error| explain(error, file.path())),
            Storage::Memory(connection) => write(connection).map_err(in_memory),
        }
    }
}

fn in_memory(error: rusqlite::Error) -> Error {
    Fault::new(Code::Internal, "the empty ledger cannot be used").because(error).into()
}

/// What helps against a file that cannot be used.
fn advice_to_replace(path: &Path) -> String {
    format!(
        "move {} away; usage recorded by hand is lost, what transcripts have is read again",
        path.display()
    )
}

/// The hints of a board's file name another board; a ledger has one location.
fn explain(error: Error, path: &Path) -> Error {
    match error.code() {
        Code::ForeignDatabase => error.with_hint(advice_to_replace(path).into()),
        Code::Corrupt => {
            error.with_hint(format!("restore a copy of it, or {}", advice_to_replace(path)).into())
        }
        Code::ReadOnly => error.with_hint("check the permissions of the file and of its directory".into()),
        _ => error,
    }
}
