//! Rows that belong to no noun: cursors, remembered calls, and facts about the board itself. None of them has an event.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::Range;
use super::record::record;
use crate::clock::Timestamp;
use crate::revision::Revision;

/// How far a reader has read the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cursor {
    /// Whose cursor it is: a session id, or [`Cursor::OWNERLESS`].
    pub owner: String,
    /// Which of its readers: `observe` and `hook` never share one. The name of a cursor that has no owner.
    pub reader: String,
    /// The last revision that was read.
    pub revision: Revision,
    /// When that was.
    pub updated_at: Timestamp,
}

impl Cursor {
    /// The owner of the cursors that have a name instead: no session can be called that.
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

/// The remembered answer of an operation that its caller named.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Operation {
    /// The caller's name for it.
    pub operation_id: String,
    /// The verb that ran.
    pub verb: String,
    /// Its answer, as JSON.
    pub answer: String,
    /// The first event of its commit: what is pending in the answer is resolved against it.
    pub revision: Revision,
    /// When it ran; remembered for 24 hours.
    pub created_at: Timestamp,
}

record! {
    Operation in "operations", generation 0 {
        key { operation_id }
        columns { verb, answer, revision, created_at }
    }
    indexes {
        /// Remembered operations, oldest first.
        OLDEST: by (created_at, operation_id);
    }
}

/// One fact about the board itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BookkeepingRow {
    /// Which fact.
    pub name: Cow<'static, str>,
    /// What is known, as JSON.
    pub value: String,
}

record! {
    BookkeepingRow in "marks", generation 0 {
        key { name }
        columns { value }
    }
    indexes {}
}

impl Range {
    /// The cursors of a session, or those without an owner.
    pub fn cursors_of(session: &str) -> Range {
        Range::of(Cursor::BY_OWNER, [session])
    }

    /// All operations that are remembered.
    pub fn operations() -> Range {
        Range::all(Operation::OLDEST)
    }

    /// Operations that were remembered before `moment`.
    pub fn operations_before(moment: Timestamp) -> Range {
        Range::operations().before(moment)
    }
}
