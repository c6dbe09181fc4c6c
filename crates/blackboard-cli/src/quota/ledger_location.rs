//! [`LedgerLocation`]: where the ledger of this user is. The only way to open it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use blackboard::clock::SystemClock;
use blackboard::quota::{self, Ledger};
use blackboard::store::redis::{Address, DEFAULT_BOARD};
use blackboard::store::sqlite::SqliteOptions;
use blackboard::text::shell_word;
use blackboard::{Board, Code, Error, Hint, Refusal, Result};
use uuid::Uuid;

use super::board_names::BoardNames;
use super::transcript;
use crate::config::{Config, printable};
use crate::engine::{Mode, Opening, Patience};
use crate::location::{self, Request};
use crate::open::ResolvedBoard;

/// The name of the ledger in the home of boards.
const LEDGER_FILE: &str = "quota.db";

/// The name of the board with the journal of a shared ledger, unless the URL names another one.
const JOURNAL_BOARD: &str = "token-quota";

/// The name space of the files of shared ledgers. It never changes: a file is found by it.
const SHARED_FILES: Uuid = Uuid::from_u128(0x6d1f_0b8e_52c7_4e19_9a43_71d8_c05b_e92a);

/// How long a command of the board waits for the server of a shared ledger.
const PATIENCE_BESIDE_THE_BOARD: Patience = Patience::Brief(Duration::from_secs(3));

/// Where the ledger of this user is, and its configuration. It can be sent to another thread.
#[derive(Clone)]
pub struct LedgerLocation {
    config: Box<quota::Config>,
    /// The home of boards.
    home: PathBuf,
    file: PathBuf,
    options: SqliteOptions,
    /// The input of the search for the board of the call.
    request: Request,
    notes_waiting: bool,
    /// Whether the ledger is not what the call is about, so that it waits for a server only briefly.
    waits_briefly: bool,
}

impl LedgerLocation {
    /// The ledger of this configuration; `None` unless it has a quota. Only then `request` is called.
    pub fn of(config: &Config, request: impl FnOnce() -> Request) -> Option<LedgerLocation> {
        let quota = config.quota.clone()?;
        let request = request();
        let home = location::home(&request)?;
        let name = match &quota.server {
            // Each server has its own journal, and so its own file.
            Some(url) => format!("quota-{}.db", Uuid::new_v5(&SHARED_FILES, url.as_bytes()).simple()),
            None => LEDGER_FILE.to_owned(),
        };
        let options = SqliteOptions {
            stays_open: false,
            allow_network_filesystem: config.database.allow_network_filesystem,
            ..SqliteOptions::default()
        };
        let file = home.join(name);
        Some(LedgerLocation {
            config: quota,
            home,
            file,
            options,
            request,
            notes_waiting: false,
            waits_briefly: false,
        })
    }

    /// The same with a note about a server that a call waits for.
    #[must_use]
    pub fn noting_waits(self, notes_waiting: bool) -> LedgerLocation {
        LedgerLocation { notes_waiting, ..self }
    }

    /// The same for a command of the board. It waits briefly for the server of a shared ledger, and not again soon.
    #[must_use]
    pub fn beside_the_board(self) -> LedgerLocation {
        LedgerLocation { waits_briefly: true, ..self }
    }

    /// The same for a caller that would rather fail than wait longer than this.
    #[must_use]
    pub fn within(mut self, limit: Duration) -> LedgerLocation {
        self.options.busy_timeout = limit;
        self
    }

    /// Its configuration.
    pub fn config(&self) -> &quota::Config {
        &self.config
    }

    /// The home of boards.
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// The input of the search for the board of the call.
    pub fn request(&self) -> &Request {
        &self.request
    }

    /// How the ledger names boards.
    pub fn board_names(&self) -> BoardNames {
        match self.config.server {
            Some(_) => BoardNames::shared(&self.home),
            None => BoardNames::Locations,
        }
    }

    /// The same for a caller that never writes.
    pub fn board_names_to_read(&self) -> BoardNames {
        match self.config.server {
            Some(_) => BoardNames::shared_to_read(&self.home),
            None => BoardNames::Locations,
        }
    }

    /// Its file on this machine.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// Lets transcripts be read again from their start if the ledger does not exist: it may have been removed.
    pub fn read_again_if_missing(&self) {
        let found = std::fs::symlink_metadata(&self.file);
        if found.is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound) {
            // Where this fails, a new ledger has less of the past.
            transcript::restart_all(&self.home);
        }
    }

    /// Opens the ledger, and creates it if it does not exist.
    pub fn create(&self) -> Result<Ledger> {
        self.read_again_if_missing();
        match self.journal(Mode::Create)? {
            Some(journal) => self.shared(journal),
            None => Ledger::open_with(&self.file, &self.config, Arc::new(SystemClock), &self.options)
                .map_err(|error| self.with_own_hint(error)),
        }
    }

    /// Opens the ledger, if it exists.
    pub fn open(&self) -> Result<Option<Ledger>> {
        if self.config.server.is_none() {
            return self.open_file();
        }
        let journal = self.journal(Mode::Existing)?;
        journal.map(|journal| self.shared(journal)).transpose()
    }

    /// Opens the ledger for a caller that never writes and waits for no server: as this machine has it. One that does not
    /// exist is empty, unless it is shared: other machines may have used tokens.
    pub fn open_to_read(&self) -> Result<Ledger> {
        match self.open_file()? {
            Some(ledger) => Ok(ledger),
            None if self.config.server.is_some() => {
                let message = "this machine has not read the shared token ledger yet";
                Err(Refusal::new(Code::ServerUnavailable, message)
                    .hint("read it: blackboard quota status")
                    .into())
            }
            None => self.empty(),
        }
    }

    /// A ledger without usage.
    pub fn empty(&self) -> Result<Ledger> {
        Ledger::empty(&self.config, Arc::new(SystemClock))
    }

    fn open_file(&self) -> Result<Option<Ledger>> {
        Ledger::open_existing(&self.file, &self.config, Arc::new(SystemClock), &self.options)
            .map_err(|error| self.with_own_hint(error))
    }

    fn shared(&self, journal: Board) -> Result<Ledger> {
        Ledger::shared(&self.file, &self.config, journal, &self.options)
            .map_err(|error| self.with_own_hint(error))
    }

    /// The hints about the file of a board name options that the ledger does not have.
    fn with_own_hint(&self, error: Error) -> Error {
        match error {
            Error::Refusal(mut refusal)
                if matches!(refusal.hint, Some(Hint::UseRealFile | Hint::UseAnotherBoard)) =>
            {
                let file = shell_word(&printable(&self.file)).into_owned();
                refusal.hint =
                    Some(Hint::Advice(format!("check the file of the ledger: ls -ld {file}").into()));
                Error::Refusal(refusal)
            }
            error => error,
        }
    }

    /// The board with the journal. `None` if the ledger is not shared, or if the board does not exist and is not created.
    fn journal(&self, mode: Mode) -> Result<Option<Board>> {
        let Some(server) = &self.config.server else { return Ok(None) };
        let board =
            ResolvedBoard::unconfigured_on(&journal_url(server)?, &self.home, &self.request.environment)?;
        let patience = if self.waits_briefly { PATIENCE_BESIDE_THE_BOARD } else { Patience::Usual };
        let opening = Opening { patience, ..Opening::new(mode) };
        Ok(board.open(opening.noting_waits(self.notes_waiting))?.existing())
    }
}

/// Refuses what is not the URL of a server, and one with a password.
pub fn check_server(server: &str) -> Result<()> {
    journal_url(server).map(drop)
}

/// The URL of the board with the journal. A password comes from the environment, as for boards.
fn journal_url(server: &str) -> Result<String> {
    let address: Address = server.parse().map_err(|error: Error| {
        Error::from(
            Refusal::new(Code::InvalidValue, format!("quota.server is not the URL of a server: {error}"))
                .hint("example: redis://redis.example:6379"),
        )
    })?;
    if address.has_password() {
        return Err(Refusal::new(Code::InvalidValue, "quota.server has a password")
            .hint("remove it from the configuration and set BLACKBOARD_REDIS_PASSWORD")
            .into());
    }
    if address.board() != DEFAULT_BOARD {
        return Ok(server.to_owned());
    }
    let separator = if server.contains('?') { '&' } else { '?' };
    Ok(format!("{server}{separator}board={JOURNAL_BOARD}"))
}
