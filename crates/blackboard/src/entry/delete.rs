//! `delete`: deletes a key.

use serde::{Deserialize, Serialize};

use super::rules::check_not_reserved;
use super::wording::conflict;
use super::{EventWording, Scope};
use crate::error::{Code, Error, Refusal, Result};
use crate::hint::Hint;
use crate::revision::{Pending, Revision};
use crate::scope::AccessOperation;
use crate::store::Prefetch;

/// The result of a delete.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deleted {
    /// The scope.
    pub scope: String,
    /// The key.
    pub key: String,
    /// The version that it had.
    pub version: u64,
    /// The event of the deletion.
    pub revision: Revision,
}

impl Pending for Deleted {
    fn resolve(&mut self, first: Revision) {
        self.revision.resolve(first);
    }
}

impl Scope<'_> {
    /// Deletes an entry, with one event. A key that is not visible is not found.
    ///
    /// ```
    /// # use blackboard::{Board, Code, entry::{Value, Write}};
    /// # let board = Board::memory();
    /// let scope = board.scope("team-1");
    /// scope.write(&Write::new("signal:ready", Value::of(&true)?))?;
    /// assert_eq!(scope.delete("signal:ready")?.version, 1);
    /// assert_eq!(scope.delete("signal:ready").unwrap_err().code(), Code::EntryNotFound);
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn delete(&self, key: &str) -> Result<Deleted> {
        self.delete_at(key, None)
    }

    /// Deletes an entry, if it still has this revision.
    ///
    /// ```
    /// # use blackboard::{Board, Code, entry::{Value, Write}};
    /// # let board = Board::memory();
    /// let scope = board.scope("team-1");
    /// let first = scope.write(&Write::new("task:a", Value::of(&1)?))?;
    /// scope.write(&Write::new("task:a", Value::of(&2)?))?;
    /// let refused = scope.delete_if_revision("task:a", first.revision).unwrap_err();
    /// assert_eq!(refused.code(), Code::Conflict);
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn delete_if_revision(&self, key: &str, revision: Revision) -> Result<Deleted> {
        self.delete_at(key, Some(revision))
    }

    fn delete_at(&self, key: &str, expected: Option<Revision>) -> Result<Deleted> {
        check_not_reserved(&self.name)?;
        self.check_known(key)?;
        let prefetch = [Prefetch::Entry(&self.name, key)];
        self.commit(
            "delete",
            |asked| asked.text(key).maybe(expected),
            &prefetch,
            |editor| {
                editor.check_access(AccessOperation::Delete, &self.name, key)?;
                editor.refuse_if_held(&self.name, key)?;
                let found = editor.entry(&self.name, key)?;
                match expected {
                    Some(expected) if found.as_ref().is_some_and(|found| found.revision != expected) => {
                        return Err(conflict(&self.name, key, expected, found.as_ref()));
                    }
                    _ => {}
                }
                let deleted = editor.delete(&self.name, key, EventWording::AsEntry)?;
                deleted.ok_or_else(|| self.check_new(key).err().unwrap_or_else(|| not_found(&self.name, key)))
            },
        )
    }
}

/// The refusal of a key that does not exist.
pub(super) fn not_found(scope: &str, key: &str) -> Error {
    Refusal::new(Code::EntryNotFound, format!("key {key} not found in scope {scope}"))
        .hint(Hint::ListKeys(scope.to_owned()))
        .into()
}
