//! The token ledger of this user, as the edges use it.
//!
//! The library has the ledger itself ([`blackboard::quota`]). Here is where its file is, who calls, and how usage gets into it:
//!
//! | File | Content |
//! |---|---|
//! | `ledger_location.rs` | where the ledger is; the only way to open it |
//! | `board_names.rs` | the names of boards in the ledger |
//! | `ended.rs` | reservations of sessions that have ended |
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
mod ended;
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

use blackboard::quota::{Check, Ledger, Status};
use blackboard::text::escape_for_terminal;
use blackboard::{Board, Code, Error, Refusal, Result};

pub use self::board_names::BoardNames;
pub use self::ended::{OwnBoard, release_after_hook};
pub use self::fold::Folded;
pub use self::ledger_location::{LedgerLocation, check_server};
pub use self::reader::{ProviderSummary, QuotaReader, summarize};
use crate::commands::arguments::Session;
use crate::config::InvalidQuota;
use crate::context::{Context, warn};
use crate::location;
use crate::open::Access;

/// The error with the file, or the kind of file, that it is about.
fn of_file(what: impl std::fmt::Display, error: &std::io::Error) -> std::io::Error {
    std::io::Error::new(error.kind(), format!("{what}: {error}"))
}

/// The ledger of this user, which is created if it does not exist. Refused unless the quota is configured.
pub fn ledger(context: &Context) -> Result<Ledger> {
    let location = located(context)?;
    folded(&location, || location.create().map(Some))?
        .map_or_else(|| location.create(), |folded| Ok(folded.ledger))
}

/// The ledger of this user, if it exists, and its configuration.
pub fn existing_ledger(context: &Context) -> Result<(LedgerLocation, Option<Ledger>)> {
    let (location, folded) = folded_ledger(context)?;
    Ok((location, folded.map(|folded| folded.ledger)))
}

/// The same, and how many messages were counted that were not known.
pub fn folded_ledger(context: &Context) -> Result<(LedgerLocation, Option<Folded>)> {
    let location = located(context)?;
    let folded = folded(&location, || location.open())?;
    Ok((location, folded))
}

/// Folds what hooks have read into the ledger, then returns it. Usage that cannot be folded now stays in the spool.
fn folded(location: &LedgerLocation, open: impl Fn() -> Result<Option<Ledger>>) -> Result<Option<Folded>> {
    location.read_again_if_missing();
    let folded = folded_once(location, &open)?;
    // A reader that cannot write leaves this to the next call.
    let is_due = |folded: &Folded| fold::read_again_if_due(location.home(), &folded.ledger).unwrap_or(false);
    match folded {
        Some(folded) if is_due(&folded) => {
            let recorded = folded.recorded;
            drop(folded);
            let again = folded_once(location, &open)?;
            Ok(again.map(|again| Folded { recorded: recorded + again.recorded, ..again }))
        }
        folded => Ok(folded),
    }
}

fn folded_once(
    location: &LedgerLocation,
    open: &impl Fn() -> Result<Option<Ledger>>,
) -> Result<Option<Folded>> {
    let unchanged = |ledger| Folded { ledger, recorded: 0 };
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
    if let Some(ledger) = &ledger {
        // The state is shown, whether or not the board can be read.
        let _ = Caller::without_session(context).and_then(|caller| caller.release_ended(ledger, &location));
    }
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
        Caller::with(context, Access::peek(session.named()), session.named())
    }

    /// The same for a call whose session does not matter, and which needs no board.
    pub fn without_session(context: &Context) -> Result<Caller> {
        let engine = &context.resolve()?.engine;
        if engine.exists() {
            return Caller::with(context, Access::wait(), None);
        }
        let (names, name) = Caller::names_in_ledger(context)?;
        Ok(Caller { board: None, names, name, session: None, agent: None })
    }

    fn with(
        context: &Context,
        access: Access<'_, (Board, Option<String>)>,
        given: Option<&str>,
    ) -> Result<Caller> {
        let engine = &context.resolve()?.engine;
        let (names, name) = Caller::names_in_ledger(context)?;
        let is_missing = |file: &Path| {
            let found = std::fs::symlink_metadata(file);
            found.is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound)
        };
        if given.is_none() && engine.file().is_some_and(is_missing) {
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

    /// Releases what sessions have reserved that have ended or are stale.
    pub fn release_ended(&self, ledger: &Ledger, location: &LedgerLocation) -> Result<usize> {
        let own = self.board.as_ref().map(|board| OwnBoard {
            board,
            name: &self.name,
            caller: self.session.as_deref(),
        });
        ended::release_ended(ledger, location, own.as_ref())
    }
}
