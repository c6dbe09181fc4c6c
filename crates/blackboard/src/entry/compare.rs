//! `txn`: if all of this is so, do that, else something else, at one moment.

use serde::{Deserialize, Serialize};

use super::rules::check_not_reserved;
use super::write::check_count;
use super::{
    By, Deleted, Entry, EntryEditor, EventWording, Value, Write, Written, check_known_key, check_known_scope,
};
use crate::board::Board;
use crate::error::{Code, Error, Refusal, Result};
use crate::fingerprint::Fingerprint;
use crate::revision::{Pending, Revision};
use crate::store::{Operation as RememberedCall, Prefetch};

/// What has to be so, and what happens then, or else.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Compare {
    /// All of these have to hold.
    pub conditions: Vec<Condition>,
    /// What happens if they do.
    pub then: Vec<Operation>,
    /// What happens if they don't; without it that is a refusal.
    pub otherwise: Option<Vec<Operation>>,
}

/// What has to be so about one key.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    /// The scope.
    pub scope: String,
    /// The key.
    pub key: String,
    /// What about it.
    pub test: Test,
}

/// What is compared.
#[derive(Clone, Debug, PartialEq)]
pub enum Test {
    /// Whether anybody can see it.
    Exists(bool),
    /// The revision; zero means that there is none.
    Revision(Revision),
    /// The version; zero means that there is none. It begins at 1 again once retention has forgotten a removal, so that
    /// another entry may have the same: the revision is what is safe to compare.
    Version(u64),
    /// The value: the same text but for white space between its parts.
    Value(Value),
}

/// What happens to one key.
#[derive(Clone, Debug, PartialEq)]
pub enum Operation {
    /// It is written.
    Write {
        /// The scope.
        scope: String,
        /// What.
        write: Write,
    },
    /// It is deleted, if it is there.
    Delete {
        /// The scope.
        scope: String,
        /// The key.
        key: String,
    },
    /// It is read, with what came before in the list.
    Read {
        /// The scope.
        scope: String,
        /// The key.
        key: String,
    },
}

/// What came of it. Under an operation id all of it is remembered for a day, with the values that were read: whoever
/// asks again gets what was so then.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Compared {
    /// Whether all conditions held.
    pub succeeded: bool,
    /// The result of each operation, in order.
    pub results: Vec<OperationResult>,
    /// The last event of the commit, or the board's revision if it changed nothing.
    pub revision: Revision,
}

/// What came of one operation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OperationResult {
    /// What was written.
    Write(Written),
    /// What was deleted, if there was something.
    Delete(Option<Deleted>),
    /// What is there, if there is something.
    Read(Option<Entry>),
}

/// A remembered call without the value of a key that its answer has read; `None` if its answer holds none.
pub(super) fn forget_value(call: RememberedCall, scope: &str, key: &str) -> Option<RememberedCall> {
    // No other verb answers with the value of an entry.
    let mut compared: Compared = serde_json::from_str(&call.answer).ok()?;
    let mut held = false;
    for result in &mut compared.results {
        if let OperationResult::Read(Some(entry)) = result
            && (entry.scope.as_str(), entry.key.as_str()) == (scope, key)
            && !(entry.value == Value::null() && entry.tags.is_empty() && entry.metadata.is_none())
        {
            (entry.value, entry.tags, entry.metadata) = (Value::null(), Vec::new(), None);
            held = true;
        }
    }
    let answer = held.then(|| serde_json::to_string(&compared).ok()).flatten()?;
    Some(RememberedCall { answer, ..call })
}

impl Pending for Compared {
    fn resolve(&mut self, first: Revision) {
        self.revision.resolve(first);
        for result in &mut self.results {
            match result {
                OperationResult::Write(written) => written.resolve(first),
                OperationResult::Delete(deleted) => deleted.resolve(first),
                OperationResult::Read(entry) => entry.resolve(first),
            }
        }
    }
}

impl Board {
    /// Does one thing or the other, depending on what is so, at one moment.
    ///
    /// ```
    /// # use blackboard::{Board, entry::{By, Compare, Condition, Operation, Test, Value, Write}};
    /// # let board = Board::memory();
    /// let scope = || "team-1".to_owned();
    /// let first_come = Compare {
    ///     conditions: vec![Condition { scope: scope(), key: "leader".to_owned(), test: Test::Exists(false) }],
    ///     then: vec![Operation::Write { scope: scope(), write: Write::new("leader", Value::of("me")?) }],
    ///     otherwise: Some(vec![Operation::Read { scope: scope(), key: "leader".to_owned() }]),
    /// };
    /// assert!(board.compare(&first_come, &By::default())?.succeeded);
    /// assert!(!board.compare(&first_come, &By::default())?.succeeded);
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn compare(&self, compare: &Compare, by: &By) -> Result<Compared> {
        let compare = self.checked_compare(compare)?;
        let by = self.checked_by(by)?;
        let conditions = compare.conditions.iter().map(|at| Prefetch::Entry(&at.scope, &at.key));
        let operations = compare.then.iter().chain(compare.otherwise.iter().flatten());
        let prefetch: Vec<_> = conditions
            .chain(operations.map(Operation::prefetch))
            .chain(by.prefetch())
            .chain([Prefetch::Revision])
            .collect();
        self.commit_once(
            by.operation.as_deref(),
            by.session.as_deref(),
            "txn",
            || compare.asked(),
            &prefetch,
            |tx| {
                let mut editor = EntryEditor::new(self, tx, &by)?;
                let failed = compare.first_that_fails(&mut editor)?;
                let operations = match (&failed, &compare.otherwise) {
                    (None, _) => &compare.then,
                    (Some(_), Some(otherwise)) => otherwise,
                    (Some((condition, found)), None) => return Err(condition.fails(found.as_ref())),
                };
                let results =
                    operations.iter().map(|operation| operation.run(&mut editor)).collect::<Result<_>>()?;
                let revision = match editor.changes.events.len() {
                    0 => tx.revision()?,
                    count => Revision::of_event(count - 1),
                };
                Ok((editor.finish()?, Compared { succeeded: failed.is_none(), results, revision }))
            },
        )
    }

    fn checked_compare(&self, compare: &Compare) -> Result<Compare> {
        let otherwise = compare.otherwise.as_deref().unwrap_or_default();
        check_count(compare.conditions.len() + compare.then.len() + otherwise.len())?;
        for Condition { scope, key, .. } in &compare.conditions {
            check_known_scope(scope)?;
            check_known_key(scope, key)?;
        }
        let check = |operations: &[Operation]| {
            operations.iter().map(|operation| operation.checked(self)).collect::<Result<Vec<_>>>()
        };
        Ok(Compare {
            conditions: compare.conditions.clone(),
            then: check(&compare.then)?,
            otherwise: compare.otherwise.as_deref().map(check).transpose()?,
        })
    }
}

impl Compare {
    /// What it asks for.
    fn asked(&self) -> Fingerprint {
        let operations = |asked: Fingerprint, operations: &[Operation]| {
            asked.each(operations, |asked, operation| operation.asked(asked))
        };
        let asked = Fingerprint::new().each(&self.conditions, |asked, condition| condition.asked(asked));
        let asked = operations(asked, &self.then).of(self.otherwise.is_some());
        operations(asked, self.otherwise.as_deref().unwrap_or_default())
    }

    fn first_that_fails(&self, editor: &mut EntryEditor<'_>) -> Result<Option<(&Condition, Option<Entry>)>> {
        for condition in &self.conditions {
            let found = editor.entry(&condition.scope, &condition.key)?;
            if !condition.test.holds(found.as_ref()) {
                return Ok(Some((condition, found)));
            }
        }
        Ok(None)
    }
}

impl Test {
    fn holds(&self, found: Option<&Entry>) -> bool {
        match self {
            Test::Exists(exists) => found.is_some() == *exists,
            Test::Revision(revision) => found.map_or(Revision::ZERO, |entry| entry.revision) == *revision,
            Test::Version(version) => found.map_or(0, |entry| entry.version) == *version,
            Test::Value(value) => found.is_some_and(|entry| entry.value.says_the_same_as(value)),
        }
    }
}

impl Condition {
    fn asked(&self, asked: Fingerprint) -> Fingerprint {
        let asked = asked.text(&self.scope).text(&self.key);
        match &self.test {
            Test::Exists(exists) => asked.text("exists").of(exists),
            Test::Revision(revision) => asked.text("revision").of(revision),
            Test::Version(version) => asked.text("version").of(version),
            Test::Value(value) => asked.text("value").text(value.as_str()),
        }
    }

    fn fails(&self, found: Option<&Entry>) -> Error {
        let what = match (&self.test, found) {
            (Test::Exists(false), Some(_)) => "exists".to_owned(),
            (_, None) => "is not there".to_owned(),
            (Test::Value(_), Some(_)) => "has another value".to_owned(),
            (Test::Version(expected), Some(found)) => {
                format!("is at version {}, not {expected}", found.version)
            }
            (_, Some(found)) => format!("is at revision {}", found.revision),
        };
        Refusal::new(Code::Conflict, format!("a comparison failed: {} {what}; nothing was changed", self.key))
            .hint("read it again, then retry; \"else\" says what to do instead")
            .detail("scope", self.scope.clone())
            .detail("key", self.key.clone())
            .detail("revision", found.map_or(0, |found| found.revision.get()))
            .detail("version", found.map_or(0, |found| found.version))
            .into()
    }
}

impl Operation {
    fn prefetch(&self) -> Prefetch<'_> {
        match self {
            Operation::Write { scope, write } => Prefetch::Entry(scope, &write.key),
            Operation::Delete { scope, key } | Operation::Read { scope, key } => Prefetch::Entry(scope, key),
        }
    }

    fn asked(&self, asked: Fingerprint) -> Fingerprint {
        match self {
            Operation::Write { scope, write } => write.asked(asked.text("write").text(scope)),
            Operation::Delete { scope, key } => asked.text("delete").text(scope).text(key),
            Operation::Read { scope, key } => asked.text("read").text(scope).text(key),
        }
    }

    fn checked(&self, board: &Board) -> Result<Operation> {
        match self {
            Operation::Write { scope, write } => {
                check_known_scope(scope)?;
                check_not_reserved(scope)?;
                let write = write.checked(scope, board.settings())?;
                return Ok(Operation::Write { scope: scope.clone(), write });
            }
            Operation::Delete { scope, key } => {
                check_not_reserved(scope)?;
                check_known_scope(scope)?;
                check_known_key(scope, key)?;
            }
            Operation::Read { scope, key } => {
                check_known_scope(scope)?;
                check_known_key(scope, key)?;
            }
        }
        Ok(self.clone())
    }

    fn run(&self, editor: &mut EntryEditor<'_>) -> Result<OperationResult> {
        Ok(match self {
            Operation::Write { scope, write } => {
                OperationResult::Write(editor.write(scope, write, EventWording::AsEntry)?)
            }
            Operation::Delete { scope, key } => {
                OperationResult::Delete(editor.delete(scope, key, EventWording::AsEntry)?)
            }
            Operation::Read { scope, key } => OperationResult::Read(editor.read(scope, key)?),
        })
    }
}
