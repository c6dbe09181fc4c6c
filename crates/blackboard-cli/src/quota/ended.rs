//! Reservations of sessions that have ended.
//!
//! A session may end in many ways, and most of them know nothing of the ledger. So each call that needs tokens, shows them or
//! counts usage releases what was reserved by sessions that have ended or are stale: those of its board, and those of other
//! boards of this machine, which it only reads.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use blackboard::agent::AgentStatus;
use blackboard::quota::Ledger;
use blackboard::sweep::Sweep;
use blackboard::{Board, Result};

use super::fold;
use super::ledger_location::LedgerLocation;
use crate::engine::{Mode, Opening};
use crate::location::{self, Request};
use crate::open::ResolvedBoard;

/// The board of a call.
pub struct OwnBoard<'a> {
    /// The board.
    pub board: &'a Board,
    /// Its name in the ledger.
    pub name: &'a str,
    /// The session that acts. Its process is not gone.
    pub caller: Option<&'a str>,
}

/// Releases what sessions have reserved that have ended or are stale. On the board of the call, those whose process is gone
/// become stale.
pub fn release_ended(
    ledger: &Ledger,
    location: &LedgerLocation,
    own: Option<&OwnBoard<'_>>,
) -> Result<usize> {
    let mut others = BTreeMap::new();
    ledger.release_ended(|name, session| match own {
        Some(own) if own.name == name => own.has_ended(session) || own.is_gone(session),
        _ => {
            let other = others.entry(name.to_owned()).or_insert_with(|| OtherBoard::open(name, location));
            other.has_ended(session)
        }
    })
}

/// Releases what sessions of a board have reserved that have ended or are stale, for a hook: only if there are any, and without
/// waiting for a server. A process does that.
pub fn release_after_hook(location: &LedgerLocation, own: &OwnBoard<'_>) -> Result<()> {
    let known = location.open_to_read()?;
    let ended = |ledger: &Ledger| -> Result<bool> {
        let held = ledger.reservations()?;
        Ok(held.iter().any(|held| held.board == own.name && own.has_ended(&held.session)))
    };
    if !ended(&known)? {
        return Ok(());
    }
    if location.config().server.is_some() {
        // A hook that cannot start it leaves it to the next call.
        let _ = fold::start(location);
        return Ok(());
    }
    known.release_ended(|name, session| name == own.name && own.has_ended(session)).map(drop)
}

impl OwnBoard<'_> {
    fn has_ended(&self, session: &str) -> bool {
        status_of(self.board, session).is_some_and(|status| !status.is_live())
    }

    /// Whether the process of a session is gone, which becomes stale then.
    fn is_gone(&self, session: &str) -> bool {
        self.caller != Some(session)
            && status_of(self.board, session).is_some()
            && self.board.sweep_gone([session].into_iter())
    }
}

fn status_of(board: &Board, session: &str) -> Option<AgentStatus> {
    board.agents().get(session).ok().flatten().map(|agent| agent.status)
}

/// Another board, which is only read.
enum OtherBoard {
    Open {
        board: Box<Board>,
        /// The sessions that its next sweep will mark stale.
        stale: BTreeSet<String>,
    },
    /// Its file was deleted.
    Deleted,
    /// It is on a server or on another machine, or cannot be read.
    Unknown,
}

impl OtherBoard {
    fn open(name: &str, location: &LedgerLocation) -> OtherBoard {
        let file = Path::new(name);
        if !file.is_absolute() {
            return OtherBoard::Unknown;
        }
        // In a container, a board of the host may have no directory, and its sessions have not ended.
        let is_deleted =
            || file.parent().is_some_and(Path::is_dir) && std::fs::symlink_metadata(file).is_err();
        let open = || -> Result<Option<Board>> {
            let request =
                Request { db: Some(file.as_os_str().to_owned().into()), ..location.request().clone() };
            let found = location::find(&request)?;
            let resolved = ResolvedBoard::at(&found, &request.environment, false, |_| {})?;
            // To upgrade it is left to commands on it.
            let resolved = ResolvedBoard { upgrades: false, ..resolved };
            Ok(resolved.open(Opening::new(Mode::ReadOnly))?.existing())
        };
        match open() {
            Ok(Some(board)) => {
                let swept = board.sweep(&Sweep { dry_run: true, ..Sweep::default() }).unwrap_or_default();
                let stale = swept.stale_agents.into_iter().map(|agent| agent.session_id).collect();
                OtherBoard::Open { board: Box::new(board), stale }
            }
            Ok(None) if is_deleted() => OtherBoard::Deleted,
            _ => OtherBoard::Unknown,
        }
    }

    fn has_ended(&self, session: &str) -> bool {
        match self {
            OtherBoard::Open { board, stale } => {
                stale.contains(session) || status_of(board, session).is_some_and(|status| !status.is_live())
            }
            OtherBoard::Deleted => true,
            OtherBoard::Unknown => false,
        }
    }
}
