//! Files: which session works on which part of a worktree, as a [`PathPattern`] that other sessions see.
//!
//! A reservation is a leased entry in the scope `files`: it is released when its session ends, and may have a time to
//! live. Two reservations conflict if they are of the same worktree and different sessions, overlap, and are not both
//! shared. A reservation does not block writes: it informs agents that check. Reservations in other worktrees of the
//! repository do not conflict, but are reported.

mod check;
mod edit;
mod list;
mod pattern;
mod release;
mod reserve;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use self::check::MAX_PATHS;
pub use self::check::{Check, Checked, CheckedPath, ReservationHolder};
pub use self::edit::{Edit, Edited, FileActivity, FileConflict, JUST_NOW};
pub(crate) use self::edit::{KEPT as EDITS_KEPT, MAX_EDITS, conflicts_of_session};
pub use self::list::FileFilter;
pub use self::pattern::PathPattern;
pub use self::release::{Release, ReleasedFiles, Selection};
pub use self::reserve::{MAX_PATTERNS, MAX_PATTERNS_HELD, Reserve, Reserved, ReservedPattern};
use crate::agent::Agent;
use crate::board::Board;
use crate::clock::Timestamp;
use crate::entry::{Entry, FILES, held_since};
use crate::error::{Code, Error, Fault, Result};
use crate::revision::{Pending, Revision};
use crate::store::{Key, Prefetch, Range, Tx};

/// The most bytes of the path of a repository or worktree.
const MAX_PATH_BYTES: usize = 4096;

/// The UUID namespace of the keys of reservations, which are derived from their content. It never changes.
const KEYS: Uuid = Uuid::from_u128(0x2f8e_31c4_9d5b_4f0a_8a77_5c4e_b1d2_06f3);

/// The file reservations of a board: `board.files()`.
#[derive(Clone, Copy)]
pub struct Files<'a> {
    pub(crate) board: &'a Board,
}

/// Whether other sessions may reserve the same files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// No other session may.
    Exclusive,
    /// Other sessions may, if theirs is shared too.
    Shared,
}

impl Mode {
    /// Every mode.
    pub const ALL: &'static [Mode] = &[Mode::Exclusive, Mode::Shared];

    /// The name.
    pub fn as_str(self) -> &'static str {
        match self {
            Mode::Exclusive => "exclusive",
            Mode::Shared => "shared",
        }
    }
}

crate::names::impl_names!(Mode, "mode");

/// A file reservation of a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Reservation {
    /// The files, relative to the root of the worktree.
    pub pattern: String,
    /// Whether other sessions may reserve them too.
    pub mode: Mode,
    /// The note of the session.
    pub note: Option<String>,
    /// The common path of all worktrees of the repository: that of its main worktree.
    pub repository: String,
    /// The root of the worktree.
    pub worktree: String,
    /// The session that reserved them.
    pub session_id: String,
    /// The name of its agent.
    pub agent_name: String,
    /// When it was made.
    pub since: Timestamp,
    /// When it expires.
    pub expires_at: Option<Timestamp>,
    /// The revision at which it was made.
    pub fence: Revision,
}

/// The value of the entry of a reservation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Stored {
    repository: String,
    worktree: String,
    pattern: String,
    mode: Mode,
    note: Option<String>,
}

/// A reservation in the form that the rules use.
#[derive(Clone, Debug)]
pub(crate) struct ActiveReservation {
    pub(crate) reservation: Reservation,
    pub(crate) pattern: PathPattern,
}

impl ActiveReservation {
    /// The reservation of an entry. Only the file verbs write this scope. An entry that cannot be read is an error,
    /// because it is unknown which files are free.
    pub(crate) fn of(tx: &dyn Tx, entry: &Entry) -> Result<ActiveReservation> {
        let stored = entry.value.to::<Stored>().map_err(|error| unreadable(entry, error))?;
        let session = entry.session_id.clone();
        Ok(ActiveReservation {
            pattern: PathPattern::parse_stored(&stored.pattern).map_err(|error| unreadable(entry, error))?,
            reservation: Reservation {
                pattern: stored.pattern,
                mode: stored.mode,
                note: stored.note,
                repository: stored.repository,
                worktree: stored.worktree,
                session_id: session.ok_or_else(|| unreadable(entry, "it has no session"))?,
                agent_name: entry.created_by.clone(),
                since: held_since(tx, entry)?,
                expires_at: entry.expires_at,
                fence: entry.fence.unwrap_or(entry.revision),
            },
        })
    }

    /// Every current reservation, validated.
    pub(crate) fn all(tx: &dyn Tx) -> Result<Vec<ActiveReservation>> {
        ActiveReservation::among(tx, &tx.rows::<Entry>(&every_reservation())?)
    }

    /// The same for information only, not validated.
    pub(crate) fn peek_all(tx: &dyn Tx) -> Result<Vec<ActiveReservation>> {
        ActiveReservation::among(tx, &tx.candidate_rows::<Entry>(&every_reservation(), usize::MAX)?)
    }

    fn among(tx: &dyn Tx, entries: &[Entry]) -> Result<Vec<ActiveReservation>> {
        let live = entries.iter().filter(|entry| !entry.is_expired(tx.now()));
        live.map(|entry| ActiveReservation::of(tx, entry)).collect()
    }
}

/// The pattern of a reservation, if its text differs from the path that it matches.
fn as_pattern(path: &str, pattern: &str) -> String {
    if path == pattern { String::new() } else { format!(" as {pattern}") }
}

fn unreadable(entry: &Entry, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Fault::new(Code::Corrupt, format!("file reservation {} cannot be read", entry.key))
        .hint("it is released when its session ends or releases all of its files")
        .because(source)
        .into()
}

impl Reservation {
    /// The same with the current name of its agent.
    pub(crate) fn with_name_of_today(mut self, tx: &dyn Tx) -> Result<Reservation> {
        let holder = Key::Agent(self.session_id.clone());
        tx.prefetch(&[Prefetch::Row(holder.clone())])?;
        if let Some(agent) = tx.peek_row::<Agent>(&holder)? {
            self.agent_name = agent.agent_name;
        }
        Ok(self)
    }
}

impl Pending for Reservation {
    fn resolve(&mut self, first: Revision) {
        self.fence.resolve(first);
    }
}

pub(crate) fn every_reservation() -> Range {
    Range::entries(FILES, "")
}

/// The key of a reservation: a pattern has characters that no key may have.
fn key_of(worktree: &str, pattern: &str, session: &str) -> String {
    // None of the three contains a zero byte, so two different triples never make the same text.
    Uuid::new_v5(&KEYS, [worktree, pattern, session].join("\0").as_bytes()).to_string()
}

/// Refuses paths that cannot be a repository and a worktree.
fn check_place(repository: &str, worktree: &str) -> Result<()> {
    for (what, path) in [("repository", repository), ("worktree", worktree)] {
        if path.is_empty() {
            return Err(Error::invalid(format!("the path of the {what} is empty")));
        }
        if path.contains('\0') {
            return Err(Error::invalid(format!("the path of the {what} contains a zero byte")));
        }
        if path.len() > MAX_PATH_BYTES {
            let message =
                format!("the path of the {what} has {} bytes; {MAX_PATH_BYTES} are allowed", path.len());
            return Err(Error::invalid(message));
        }
    }
    Ok(())
}
