//! `blackboard quota`: the ledger of tokens.

pub mod check;
mod edit;
pub mod history;
pub mod init;
pub mod record;
pub mod release;
pub mod set;
pub mod status;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use blackboard::agent::AgentStatus;
use blackboard::clock::SystemClock;
use blackboard::quota::{Config, Ledger, Status};
use blackboard::store::sqlite::SqliteOptions;
use blackboard::{Board, Code, Error, Refusal, Result};

use crate::commands::arguments::Session;
use crate::config::CONFIG_FILE;
use crate::context::Context;
use crate::location;
use crate::open::Access;

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

fn not_configured() -> Error {
    Refusal::new(Code::QuotaNotConfigured, "the token quota is not configured")
        .hint("write an example into your configuration: blackboard quota init")
        .into()
}

/// The home configuration.
fn home_config(context: &Context) -> Result<PathBuf> {
    match location::home(&context.request()) {
        Some(home) => Ok(home.join(CONFIG_FILE)),
        None => Err(not_configured()),
    }
}

/// Who calls: the board, unless it does not exist, its name in the ledger, and the session that acts.
pub struct Caller {
    board: Option<Board>,
    name: String,
    session: Option<String>,
    agent: Option<String>,
}

impl Caller {
    /// Opens the board of this call. A quota does not need one, so a board that does not exist is not reported.
    fn find(context: &Context, session: &Session) -> Result<Caller> {
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
    fn release_ended(&self, ledger: &Ledger) -> Result<usize> {
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

/// Parses a number of tokens: `30000`, `30_000`, `30k` or `1.5M`.
fn tokens(text: &str) -> Result<u64, String> {
    const ALLOWED: &str = "allowed: a whole number of tokens, for example 30000, 30k or 1.5M";
    let plain: String = text.trim().chars().filter(|character| *character != '_').collect();
    let (digits, factor) = match plain.strip_suffix(['k', 'K']) {
        Some(digits) => (digits, 1_000_u64),
        None => match plain.strip_suffix(['m', 'M']) {
            Some(digits) => (digits, 1_000_000),
            None => (plain.as_str(), 1),
        },
    };
    let (whole, decimals) = digits.split_once('.').unwrap_or((digits, ""));
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty()
        || !is_number(whole)
        || !is_number(decimals)
        || (digits.contains('.') && decimals.is_empty())
    {
        return Err(ALLOWED.to_owned());
    }
    let number = || {
        let mut number = whole.parse::<u64>().ok()?.checked_mul(factor)?;
        let mut part = factor;
        for digit in decimals.bytes() {
            if part % 10 != 0 {
                return None;
            }
            part /= 10;
            number = number.checked_add(u64::from(digit - b'0') * part)?;
        }
        (number <= 1_000_000_000_000_000).then_some(number)
    };
    number().ok_or_else(|| ALLOWED.to_owned())
}

#[cfg(test)]
mod tests {
    use super::tokens;

    #[test]
    fn tokens_may_have_a_unit() {
        for (text, expected) in [
            ("0", Some(0)),
            ("30000", Some(30_000)),
            ("30_000", Some(30_000)),
            ("30k", Some(30_000)),
            ("1.5M", Some(1_500_000)),
            ("1.234567M", Some(1_234_567)),
            ("1.2345678M", None),
            ("1.5", None),
            ("", None),
            ("k", None),
            ("-1", None),
            ("1.k", None),
            ("99999999999999999999", None),
            ("1000000000000001", None),
        ] {
            assert_eq!(tokens(text).ok(), expected, "{text}");
        }
    }
}
