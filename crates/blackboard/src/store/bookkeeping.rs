//! Rows without a noun of their own: cursors, remembered calls, and the board's bookkeeping. None of them has an
//! event.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::Range;
use super::record::record;
use crate::clock::Timestamp;
use crate::revision::Revision;

/// How far a reader has read the event log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cursor {
    /// Whose cursor it is: a session id, or [`Cursor::OWNERLESS`].
    pub owner: String,
    /// The name of the reader: `observe` and `hook` never share one. The name of a cursor without an owner.
    pub reader: String,
    /// The last revision that was read.
    pub revision: Revision,
    /// When the cursor was moved.
    pub updated_at: Timestamp,
}

impl Cursor {
    /// The owner of named cursors: no session can have this id.
    pub const OWNERLESS: &'static str = "";
}

record! {
    Cursor in "cursors", generation 0 {
        key { owner, reader }
        columns { revision, updated_at }
    }
    indexes {
        /// The cursors of a session.
        BY_OWNER: by (reader) of (owner);
    }
}

/// The remembered answer of a call with an idempotency key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RememberedCall {
    /// The idempotency key.
    pub operation_id: String,
    /// The verb that ran.
    pub verb: String,
    /// Its answer, as JSON.
    pub answer: String,
    /// The first event of its commit: pending revisions in the answer are resolved with it.
    pub revision: Revision,
    /// When it ran; remembered for 24 hours.
    pub created_at: Timestamp,
}

record! {
    RememberedCall in "operations", generation 0 {
        key { operation_id }
        columns { verb, answer, revision, created_at }
    }
    indexes {
        /// Remembered calls, oldest first.
        OLDEST: by (created_at, operation_id);
    }
}

/// One bookkeeping row of the board.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BookkeepingRow {
    /// Its name.
    pub name: Cow<'static, str>,
    /// Its value, as JSON.
    pub value: String,
}

record! {
    BookkeepingRow in "marks", generation 0 {
        key { name }
        columns { value }
    }
    indexes {
        /// Bookkeeping rows by name.
        BY_NAME: by (name);
    }
}

impl Range {
    /// The cursors of a session, or those without an owner.
    pub fn cursors_of(session: &str) -> Range {
        Range::of(Cursor::BY_OWNER, [session])
    }

    /// The bookkeeping rows whose names start with a prefix.
    pub fn bookkeeping_rows(prefix: &str) -> Range {
        Range::all(BookkeepingRow::BY_NAME).starting_with(prefix)
    }

    /// All remembered calls.
    pub fn operations() -> Range {
        Range::all(RememberedCall::OLDEST)
    }

    /// Calls that were remembered before `moment`.
    pub fn operations_before(moment: Timestamp) -> Range {
        Range::operations().before(moment)
    }
}
