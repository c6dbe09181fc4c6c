//! The token ledger of this user, as the edges use it.
//!
//! The library has the ledger itself ([`blackboard::quota`]). Here is where its file is, who calls, and how usage gets into it:
//!
//! | File | Content |
//! |---|---|
//! | `ledger_location.rs` | where the ledger is; the only way to open it |
//! | `board_names.rs` | the names of boards in the ledger |
//! | `reader.rs` | the ledger for edges that only show it |
//! | `claims.rs` | claims of work items within the quota |
//! | `item_tokens.rs` | what work items have used |
//! | `reading.rs` | usage in the lines of a platform, in one form for all of them |
//! | `transcript.rs` | the files of a platform, read from where the last call stopped |
//! | `collect.rs` | what a hook does: it reads new lines, and appends their numbers to the spool |
//! | `spool.rs` | what hooks have read, until it is folded |
//! | `fold.rs` | moves the spool, and what no hook has read, to the ledger |
//! | `notices.rs` | warnings: events on the board, and lines for agents |

mod board_names;
pub mod claims;
pub mod collect;
pub mod fold;
pub mod item_tokens;
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
use blackboard::quota::{Check, Ledger, Status};
use blackboard::{Board, Code, Error, Refusal, Result};

pub use self::board_names::BoardNames;
pub use self::ledger_location::{LedgerLocation, check_server};
pub use self::reader::{ProviderSummary, QuotaReader, summarize};
use crate::commands::arguments::Session;
use crate::config::InvalidQuota;
use crate::context::{Context, warn};
use crate::location;
use crate::open::Access;

/// The ledger of this user, which is created if it does not exist. Refused unless the quota is configured.
pub fn ledger(context: &Context) -> Result<Ledger> {
    let location = located(context)?;
    folded(&location, || location.create().map(Some))?
        .map_or_else(|| location.create(), |folded| Ok(folded.ledger))
}

/// The ledger of this user, if it exists, and its configuration.
pub fn existing_ledger(context: &Context) -> Result<(LedgerLocation, Option<Ledger>)> {
    let location = located(context)?;
    let folded = folded(&location, || location.open())?;
    Ok((location, folded.map(|folded| folded.ledger)))
}

/// Folds what hooks have read into the ledger, then returns it. Usage that cannot be folded now stays in the spool.
fn folded(
    location: &LedgerLocation,
    open: impl Fn() -> Result<Option<Ledger>>,
) -> Result<Option<fold::Folded>> {
    let unchanged = |ledger| fold::Folded { ledger, recorded: 0 };
    match fold::fold(location) {
        Ok(None) => Ok(open()?.map(unchanged)),
        Ok(folded) => Ok(folded),
        Err(error) => {
            // A ledger that cannot be opened is the error of the call.
            let ledger = open()?;
            warn(&format!("usage that hooks have read is not counted yet: {error}"));
            Ok(ledger.map(unchanged))
        }
    }
}

/// The state of the quota, and its configuration. A ledger that does not exist is empty, and not created.
pub fn status_of(context: &Context) -> Result<(LedgerLocation, Status)> {
    let (location, ledger) = existing_ledger(context)?;
    let status = ledger.map_or_else(|| location.empty(), Ok)?.status()?;
    Ok((location, status))
}

/// Where the ledger is. Refused unless the quota is configured.
pub fn located(context: &Context) -> Result<LedgerLocation> {
    let config = &context.resolve()?.config;
    let location = LedgerLocation::of(config, || context.request());
    let location = location.ok_or_else(|| match &config.invalid_quota {
        Some(invalid) => refusal_of(invalid),
        None => not_configured(),
    });
    Ok(location?.noting_waits(!context.json()))
}

/// The refusal of a command that needs the quota, if the configured one is not valid.
fn refusal_of(invalid: &InvalidQuota) -> Error {
    let InvalidQuota { file, reason, .. } = invalid;
    let message = format!("the configured token quota is not valid: {reason}");
    Refusal::new(Code::InvalidValue, message).hint(format!("correct quota by hand in {file}")).into()
}

/// The refusal of a command that needs a quota.
pub fn not_configured() -> Error {
    Refusal::new(Code::QuotaNotConfigured, "the token quota is not configured")
        .hint("write an example into your configuration: blackboard quota init")
        .into()
}

/// The refusal of tokens that do not fit, with what programs read.
pub fn does_not_fit(message: String, check: &Check) -> Refusal {
    Refusal::new(Code::QuotaExceeded, message)
        .detail("provider", check.provider.as_str())
        .detail("tokens", check.tokens)
        .detail("available", check.available)
        .detail("reason", serde_json::to_value(&check.reason).unwrap_or_default())
        .detail("fits_at", check.fits_at.map(|moment| moment.to_string()))
}

/// Who calls: the board, unless it does not exist, its name in the ledger, and the session that acts.
pub struct Caller {
    board: Option<Board>,
    names: BoardNames,
    pub name: String,
    pub session: Option<String>,
    pub agent: Option<String>,
}

impl Caller {
    /// Opens the board of this call. A quota does not need one, so a board that does not exist is not reported.
    pub fn find(context: &Context, session: &Session) -> Result<Caller> {
        let (access, named) = (Access::peek(session.named()), session.named());
        let engine = &context.resolve()?.engine;
        let (names, name) = Caller::names_in_ledger(context)?;
        let is_missing = |file: &Path| {
            let found = std::fs::symlink_metadata(file);
            found.is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound)
        };
        if named.is_none() && engine.file().is_some_and(is_missing) {
            return Ok(Caller { board: None, names, name, session: None, agent: None });
        }
        let (board, session) = context.open(access)?;
        let shown = session.as_deref().and_then(|session| board.agents().show(session).ok());
        let agent = shown.map(|shown| shown.agent.agent_name);
        Ok(Caller { board: Some(board), names, name, session, agent })
    }

    /// How the ledger names boards, and the name of the board of this call.
    fn names_in_ledger(context: &Context) -> Result<(BoardNames, String)> {
        let resolved = context.resolve()?;
        let location = LedgerLocation::of(&resolved.config, || context.request());
        let names = location.map_or(BoardNames::Locations, |location| location.board_names());
        let name = names.of(&resolved.engine.name());
        Ok((names, name))
    }

    /// The name of the board at this location in the ledger; that of the call if there is none.
    pub fn name_of(&self, board: Option<String>) -> String {
        board.map_or_else(|| self.name.clone(), |board| self.names.of(&board))
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
