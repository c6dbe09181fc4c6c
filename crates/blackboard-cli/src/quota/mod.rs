//! The token ledger of this user, as the edges use it.
//!
//! The library has the ledger itself ([`blackboard::quota`]). Here is where its file is, and who calls.

mod reader;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use blackboard::agent::AgentStatus;
use blackboard::clock::SystemClock;
use blackboard::quota::{Config, Ledger, Status};
use blackboard::store::sqlite::SqliteOptions;
use blackboard::{Board, Code, Error, Refusal, Result};

use crate::commands::arguments::Session;
use crate::context::Context;
use crate::location;
use crate::open::Access;

pub use self::reader::{ProviderSummary, QuotaReader, summarize};

/// The name of the ledger in the home of boards.
const LEDGER_FILE: &str = "quota.db";

/// The ledger of this user, which is created if it does not exist. Refused unless the quota is configured.
pub fn ledger(context: &Context) -> Result<Ledger> {
    let (config, file, options) = located(context)?;
    Ledger::open_with(&file, config, Arc::new(SystemClock), &options)
}

/// The ledger of this user, if it exists.
pub fn existing_ledger(context: &Context) -> Result<(&Config, Option<Ledger>)> {
    let (config, file, options) = located(context)?;
    Ok((config, Ledger::open_existing(&file, config, Arc::new(SystemClock), &options)?))
}

/// The state of the quota. A ledger that does not exist is empty, and not created.
pub fn status_of(context: &Context) -> Result<(&Config, Status)> {
    let (config, ledger) = existing_ledger(context)?;
    let ledger = ledger.map_or_else(|| Ledger::empty(config, Arc::new(SystemClock)), Ok)?;
    Ok((config, ledger.status()?))
}

fn located(context: &Context) -> Result<(&Config, PathBuf, SqliteOptions)> {
    let resolved = context.resolve()?;
    let Some(config) = resolved.config.quota.as_deref() else { return Err(not_configured()) };
    let Some(home) = location::home(&context.request()) else { return Err(not_configured()) };
    let database = &resolved.config.database;
    let options = SqliteOptions {
        stays_open: false,
        allow_network_filesystem: database.allow_network_filesystem,
        ..SqliteOptions::default()
    };
    Ok((config, home.join(LEDGER_FILE), options))
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

    /// Releases what sessions of this board have reserved that have ended or are stale.
    pub fn release_ended(&self, ledger: &Ledger) -> Result<usize> {
        let Some(board) = &self.board else { return Ok(0) };
        let has_ended = |session: &str| {
            board
                .agents()
                .show(session)
                .is_ok_and(|shown| matches!(shown.agent.status, AgentStatus::Completed | AgentStatus::Stale))
        };
        ledger.release_ended(|of, session| of == self.name && has_ended(session))
    }
}
