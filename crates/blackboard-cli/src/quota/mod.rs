//! The token ledger of this user, as the edges use it.
//!
//! The library has the ledger itself ([`blackboard::quota`]). Here is where its file is, who calls, and how usage gets into it:
//!
//! | File | Content |
//! |---|---|
//! | `reading.rs` | usage in the lines of a platform, in one form for all of them |
//! | `transcript.rs` | the files of a platform, read from where the last call stopped |
//! | `collect.rs` | what a hook does: it reads new lines, and appends their numbers to the spool |
//! | `spool.rs` | what hooks have read, until it is folded |
//! | `fold.rs` | moves the spool, and what no hook has read, to the ledger |
//! | `notices.rs` | warnings: events on the board, and lines for agents |

pub mod collect;
pub mod fold;
pub mod notices;
pub mod reading;
mod spool;
#[cfg(test)]
mod tests;
mod transcript;

pub mod claims;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use blackboard::agent::AgentStatus;
use blackboard::clock::SystemClock;
use blackboard::quota::{Config, Ledger, Status};
use blackboard::store::redis::{Address, DEFAULT_BOARD};
use blackboard::store::sqlite::SqliteOptions;
use blackboard::{Board, Code, Error, Refusal, Result};
use uuid::Uuid;

use crate::commands::arguments::Session;
use crate::context::{Context, warn};
use crate::engine::{Mode, Opening};
use crate::location;
use crate::open::{Access, ResolvedBoard};

/// The name of the ledger in the home of boards.
const LEDGER_FILE: &str = "quota.db";

/// The name of the board with the journal of a shared ledger, unless the URL names another one.
const JOURNAL_BOARD: &str = "token-quota";

/// The name space of the files of shared ledgers. It never changes: a file is found by it.
const SHARED_FILES: Uuid = Uuid::from_u128(0x6d1f_0b8e_52c7_4e19_9a43_71d8_c05b_e92a);

/// The ledger of this user, which is created if it does not exist. Refused unless the quota is configured.
pub fn ledger(context: &Context) -> Result<Ledger> {
    let located = Located::find(context)?;
    let create = || located.create(context);
    folded(&located.home, create, || create().map(Some))?.map_or_else(create, Ok)
}

/// The ledger of this user, if it exists.
pub fn existing_ledger(context: &Context) -> Result<(&Config, Option<Ledger>)> {
    let located = Located::find(context)?;
    let folded = folded(&located.home, || located.create(context), || located.open(context))?;
    Ok((located.config, folded))
}

/// Folds what hooks have read into the ledger, then returns it. Usage that cannot be folded now stays in the spool.
fn folded(
    home: &Path,
    create: impl Fn() -> Result<Ledger>,
    open: impl Fn() -> Result<Option<Ledger>>,
) -> Result<Option<Ledger>> {
    match fold::fold(home, create) {
        Ok(None) => open(),
        Ok(Some(folded)) => Ok(Some(folded.ledger)),
        Err(error) => {
            // A ledger that cannot be opened is the error of the call.
            let ledger = open()?;
            warn(&format!("usage that hooks have read is not counted yet: {error}"));
            Ok(ledger)
        }
    }
}

/// The state of the quota. A ledger that does not exist is empty, and not created.
pub fn status_of(context: &Context) -> Result<(&Config, Status)> {
    let (config, ledger) = existing_ledger(context)?;
    let ledger = ledger.map_or_else(|| Ledger::empty(config, Arc::new(SystemClock)), Ok)?;
    Ok((config, ledger.status()?))
}

/// Where the ledger of this user is.
struct Located<'a> {
    config: &'a Config,
    /// The home of boards.
    home: PathBuf,
    file: PathBuf,
    options: SqliteOptions,
    /// The URL of the board with the journal, if several machines share the ledger.
    server: Option<String>,
}

impl<'a> Located<'a> {
    fn find(context: &'a Context) -> Result<Located<'a>> {
        let resolved = context.resolve()?;
        let Some(config) = resolved.config.quota.as_deref() else { return Err(not_configured()) };
        let Some(home) = location::home(&context.request()) else { return Err(not_configured()) };
        let database = &resolved.config.database;
        let options = SqliteOptions {
            stays_open: false,
            allow_network_filesystem: database.allow_network_filesystem,
            ..SqliteOptions::default()
        };
        let server = config.server.as_deref().map(journal_url).transpose()?;
        let name = match &server {
            // Each server has its own journal, and so its own file.
            Some(url) => format!("quota-{}.db", Uuid::new_v5(&SHARED_FILES, url.as_bytes()).simple()),
            None => LEDGER_FILE.to_owned(),
        };
        let file = home.join(name);
        Ok(Located { config, home, file, options, server })
    }

    /// Opens the ledger, and creates it if it does not exist.
    fn create(&self, context: &Context) -> Result<Ledger> {
        let Located { config, file, options, .. } = self;
        match self.journal(context, Mode::Create)? {
            Some(journal) => Ledger::shared(file, config, journal, options),
            None => Ledger::open_with(file, config, Arc::new(SystemClock), options),
        }
    }

    /// Opens the ledger, if it exists.
    fn open(&self, context: &Context) -> Result<Option<Ledger>> {
        let Located { config, file, options, .. } = self;
        if self.server.is_none() {
            return Ledger::open_existing(file, config, Arc::new(SystemClock), options);
        }
        let journal = self.journal(context, Mode::Existing)?;
        journal.map(|journal| Ledger::shared(file, config, journal, options)).transpose()
    }

    /// The board with the journal. `None` if the ledger is not shared, or if the board does not exist and is not created.
    fn journal(&self, context: &Context, mode: Mode) -> Result<Option<Board>> {
        let Some(url) = &self.server else { return Ok(None) };
        let board = ResolvedBoard::unconfigured_on(url, &self.home, context.environment())?;
        Ok(board.open(Opening::new(mode).noting_waits(!context.json()))?.existing())
    }
}

/// The URL of the board with the journal. A password comes from the environment, as for boards.
fn journal_url(server: &str) -> Result<String> {
    let address: Address = server.parse()?;
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

/// The refusal of a command that needs a quota.
pub fn not_configured() -> Error {
    Refusal::new(Code::QuotaNotConfigured, "the token quota is not configured")
        .hint("write an example into your configuration: blackboard quota init")
        .into()
}

/// Who calls: the board, unless it does not exist, its name in the ledger, and the session that acts.
pub struct Caller {
    board: Option<Board>,
    pub name: String,
    pub session: Option<String>,
    pub agent: Option<String>,
}

impl Caller {
    /// Opens the board of this call. A quota does not need one, so a board that does not exist is not reported.
    pub fn find(context: &Context, session: &Session) -> Result<Caller> {
        let engine = &context.resolve()?.engine;
        let name = engine.name();
        let is_missing = |file: &Path| {
            let found = std::fs::symlink_metadata(file);
            found.is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound)
        };
        if session.named().is_none() && engine.file().is_some_and(is_missing) {
            return Ok(Caller { board: None, name, session: None, agent: None });
        }
        let (board, session) = context.open(Access::peek(session.named()))?;
        let shown = session.as_deref().and_then(|session| board.agents().show(session).ok());
        let agent = shown.map(|shown| shown.agent.agent_name);
        Ok(Caller { board: Some(board), name, session, agent })
    }

    /// Announces the thresholds that were passed, on the board of this call. Without a board they stay for a later call.
    pub fn announce(&self, context: &Context, ledger: &Ledger) -> Result<usize> {
        let board = self.board.as_ref().filter(|_| context.missing_board().is_none());
        match (board, location::home(&context.request())) {
            (Some(board), Some(home)) => notices::announce(ledger, board, &self.name, &home),
            _ => Ok(0),
        }
    }

    /// Releases what sessions of this board have reserved that have ended or are stale.
    pub fn release_ended(&self, ledger: &Ledger) -> Result<usize> {
        let Some(board) = &self.board else { return Ok(0) };
        release_ended(ledger, board, &self.name)
    }
}

/// Releases what sessions of a board have reserved that have ended or are stale.
fn release_ended(ledger: &Ledger, board: &Board, name: &str) -> Result<usize> {
    let has_ended = |session: &str| {
        board
            .agents()
            .show(session)
            .is_ok_and(|shown| matches!(shown.agent.status, AgentStatus::Completed | AgentStatus::Stale))
    };
    ledger.release_ended(|of, session| of == name && has_ended(session))
}
