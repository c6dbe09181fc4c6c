//! The token ledger of this user, as the edges use it.
//!
//! The library has the ledger itself ([`blackboard::quota`]). Here is where its file is, who calls, and how usage gets into it:
//!
//! | File | Content |
//! |---|---|
//! | `ledger_location.rs` | where the ledger is; the only way to open it |
//! | `reader.rs` | the ledger for edges that only show it |
//! | `claims.rs` | claims of work items within the quota |
//! | `reading.rs` | usage in the lines of a platform, in one form for all of them |
//! | `transcript.rs` | the files of a platform, read from where the last call stopped |
//! | `collect.rs` | what a hook does: it reads new lines, and appends their numbers to the spool |
//! | `spool.rs` | what hooks have read, until it is folded |
//! | `fold.rs` | moves the spool, and what no hook has read, to the ledger |
//! | `notices.rs` | warnings: events on the board, and lines for agents |

pub mod claims;
pub mod collect;
pub mod fold;
mod ledger_location;
pub mod notices;
mod reader;
pub mod reading;
mod spool;
#[cfg(test)]
mod tests;
mod transcript;

use std::path::Path;

use blackboard::agent::AgentStatus;
use blackboard::quota::{Ledger, Status};
use blackboard::text::escape_for_terminal;
use blackboard::{Board, Code, Error, Refusal, Result};

pub use self::ledger_location::{LedgerLocation, check_server};
pub use self::reader::{ProviderSummary, QuotaReader, summarize};
use crate::commands::arguments::Session;
use crate::config::{CONFIG_FILE, InvalidQuota, printable};
use crate::context::{Context, warn};
use crate::location::{self, Request};
use crate::open::Access;

/// The error with the file, or the kind of file, that it is about.
fn of_file(what: impl std::fmt::Display, error: &std::io::Error) -> std::io::Error {
    std::io::Error::new(error.kind(), format!("{what}: {error}"))
}

/// The ledger of this user, which is created if it does not exist. Refused unless the quota is configured.
pub fn ledger(context: &Context) -> Result<Ledger> {
    let location = located(context)?;
    let create = || location.create();
    folded(&location, || create().map(Some))?.map_or_else(create, Ok)
}

/// The ledger of this user, if it exists, and its configuration.
pub fn existing_ledger(context: &Context) -> Result<(LedgerLocation, Option<Ledger>)> {
    let location = located(context)?;
    let ledger = folded(&location, || location.open())?;
    Ok((location, ledger))
}

/// Folds what hooks have read into the ledger, then returns it. Usage that cannot be folded now stays in the spool.
fn folded(location: &LedgerLocation, open: impl Fn() -> Result<Option<Ledger>>) -> Result<Option<Ledger>> {
    location.read_again_if_missing();
    let ledger = folded_once(location, &open)?;
    // A reader that cannot write leaves this to the next call.
    let is_due = |ledger: &Ledger| fold::read_again_if_due(location.home(), ledger).unwrap_or(false);
    if ledger.as_ref().is_some_and(is_due) {
        drop(ledger);
        return folded_once(location, &open);
    }
    Ok(ledger)
}

fn folded_once(
    location: &LedgerLocation,
    open: &impl Fn() -> Result<Option<Ledger>>,
) -> Result<Option<Ledger>> {
    match fold::fold(location.home(), || location.create()) {
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

/// The state of the quota, and its configuration. A ledger that does not exist is empty, and not created.
pub fn status_of(context: &Context) -> Result<(LedgerLocation, Status)> {
    let (location, ledger) = existing_ledger(context)?;
    let status = ledger.map_or_else(|| location.empty(), Ok)?.status()?;
    Ok((location, status))
}

fn located(context: &Context) -> Result<LedgerLocation> {
    let config = &context.resolve()?.config;
    let location = LedgerLocation::of(config, || context.request());
    let location = location.ok_or_else(|| match &config.invalid_quota {
        Some(invalid) => refusal_of(invalid, &context.request()),
        None => not_configured(),
    });
    Ok(location?.noting_waits(!context.json()))
}

/// The refusal of a command that needs the quota, if the configured one is not valid.
fn refusal_of(invalid: &InvalidQuota, request: &Request) -> Error {
    let message = format!("the configured token quota is not valid: {}", invalid.reason);
    let file = location::home(request).map(|home| printable(&home.join(CONFIG_FILE)));
    let file = file.unwrap_or_else(|| CONFIG_FILE.to_owned());
    Refusal::new(Code::InvalidValue, message).hint(format!("correct quota by hand in {file}")).into()
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

    /// Notes that the board of this call has no such work item: the name may be mistyped.
    pub fn note_unknown_item(&self, context: &Context, item: &str) {
        let is_unknown =
            |board: &Board| board.work().show(item).is_err_and(|error| error.code() == Code::WorkNotFound);
        if self.board.as_ref().is_some_and(is_unknown) {
            context.note(&format!("this board has no work item {}", escape_for_terminal(item)));
        }
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
        release_ended(ledger, board, &self.name, self.session.as_deref())
    }
}

/// Releases what sessions of a board have reserved that have ended or are stale. Those whose process is gone become stale,
/// except for the caller.
fn release_ended(ledger: &Ledger, board: &Board, name: &str, caller: Option<&str>) -> Result<usize> {
    let has_ended = |session: &str| {
        let shown = board.agents().show(session);
        shown.is_ok_and(|shown| match shown.agent.status {
            AgentStatus::Completed | AgentStatus::Stale => true,
            AgentStatus::Active | AgentStatus::Idle => {
                caller != Some(session) && board.sweep_gone([session].into_iter())
            }
        })
    };
    ledger.release_ended(|of, session| of == name && has_ended(session))
}
