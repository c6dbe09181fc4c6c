//! `txn`: updates several keys atomically, if conditions hold.

use serde::{Deserialize, Serialize};

use super::rules::check_not_reserved;
use super::write::check_count;
use super::{
    Actor, Deleted, Entry, EntryEditor, EventWording, Value, Write, Written, check_known_key,
    check_known_scope,
};
use crate::board::Board;
use crate::error::{Code, Error, Refusal, Result};
use crate::fingerprint::Fingerprint;
use crate::hint::Hint;
use crate::revision::{Pending, Revision};
use crate::scope::{AccessOperation, Guard, prefetch_all_policies};
use crate::store::{Prefetch, RememberedCall};

/// Comparisons, and the operations to run if they hold or fail.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Txn {
    /// The comparisons. All have to hold.
    pub comparisons: Vec<Comparison>,
    /// The operations to run if they hold.
    pub then: Vec<Operation>,
    /// The operations to run if one fails. Without it, a failed comparison is a refusal.
    pub otherwise: Option<Vec<Operation>>,
}

/// A condition on one key.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// The scope.
    pub scope: String,
    /// The key.
    pub key: String,
    /// The expected state.
    pub expected: Expected,
}

/// The kinds of conditions.
#[derive(Clone, Debug, PartialEq)]
pub enum Expected {
    /// Whether it is visible.
    Exists(bool),
    /// The revision; zero means that the key does not exist.
    Revision(Revision),
    /// The version; zero means that the key does not exist. It begins at 1 again when the tombstone is pruned, so
    /// another entry may have the same version. The revision is safe to compare.
    Version(u64),
    /// The value: the same text except for white space between its parts.
    Value(Value),
}

/// An operation on one key.
#[derive(Clone, Debug, PartialEq)]
pub enum Operation {
    /// Writes the key.
    Write {
        /// The scope.
        scope: String,
        /// The write.
        write: Write,
    },
    /// Deletes the key, if it exists.
    Delete {
        /// The scope.
        scope: String,
        /// The key.
        key: String,
    },
    /// Reads the key, with the earlier operations of the list applied.
    Read {
        /// The scope.
        scope: String,
        /// The key.
        key: String,
    },
}

/// The result of a txn. With an idempotency key it is remembered for a day, including the values that were read. A
/// repeated call gets the same result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TxnResult {
    /// Whether all comparisons held.
    pub succeeded: bool,
    /// The result of each operation, in order.
    pub results: Vec<OperationResult>,
    /// The last event of the commit, or the board's revision if it changed nothing.
    pub revision: Revision,
}

/// The result of one operation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OperationResult {
    /// What was written.
    Write(Written),
    /// What was deleted, if the key existed.
    Delete(Option<Deleted>),
    /// The entry, if it exists.
    Read(Option<Entry>),
}

/// A remembered call with the value of a key removed from its answer; `None` if its answer holds none.
pub(super) fn forget_value(call: RememberedCall, scope: &str, key: &str) -> Option<RememberedCall> {
    // No other verb returns the value of an entry.
    let mut compared: TxnResult = serde_json::from_str(&call.answer).ok()?;
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

impl Pending for TxnResult {
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
    /// Runs the operations of a txn, depending on its comparisons, atomically.
    ///
    /// ```
    /// # use blackboard::{Board, entry::{Actor, Txn, Comparison, Operation, Expected, Value, Write}};
    /// # let board = Board::memory();
    /// let scope = || "team-1".to_owned();
    /// let first_come = Txn {
    ///     comparisons: vec![Comparison { scope: scope(), key: "leader".to_owned(), expected: Expected::Exists(false) }],
    ///     then: vec![Operation::Write { scope: scope(), write: Write::new("leader", Value::of("me")?) }],
    ///     otherwise: Some(vec![Operation::Read { scope: scope(), key: "leader".to_owned() }]),
    /// };
    /// assert!(board.txn(&first_come, &Actor::default())?.succeeded);
    /// assert!(!board.txn(&first_come, &Actor::default())?.succeeded);
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn txn(&self, txn: &Txn, actor: &Actor) -> Result<TxnResult> {
        let txn = self.checked_txn(txn)?;
        let actor = self.checked_actor(actor)?;
        let comparisons = txn.comparisons.iter().map(|at| Prefetch::Entry(&at.scope, &at.key));
        let operations = txn.then.iter().chain(txn.otherwise.iter().flatten());
        let scopes = txn.comparisons.iter().map(|at| at.scope.as_str());
        let scopes = scopes.chain(operations.clone().map(Operation::scope));
        let prefetch: Vec<_> = comparisons
            .chain(operations.map(Operation::prefetch))
            .chain(actor.prefetch())
            .chain(prefetch_all_policies(scopes))
            .chain([Prefetch::Revision])
            .collect();
        self.commit_once_if(
            |tx, answer| txn.check_repeated(&Guard::new(self, tx, &actor), answer),
            actor.operation.as_deref(),
            actor.session.as_deref(),
            "txn",
            || txn.asked(self.stated_caller(&actor)),
            &prefetch,
            |tx| {
                let mut editor = EntryEditor::new(self, tx, &actor)?;
                let failed = txn.first_that_fails(&mut editor)?;
                let operations = match (&failed, &txn.otherwise) {
                    (None, _) => &txn.then,
                    (Some(_), Some(otherwise)) => otherwise,
                    (Some((comparison, found)), None) => return Err(comparison.fails(found.as_ref())),
                };
                let results =
                    operations.iter().map(|operation| operation.run(&mut editor)).collect::<Result<_>>()?;
                let revision = match editor.changes.events.len() {
                    0 => tx.revision()?,
                    count => Revision::of_event(count - 1),
                };
                Ok((editor.finish()?, TxnResult { succeeded: failed.is_none(), results, revision }))
            },
        )
    }

    fn checked_txn(&self, txn: &Txn) -> Result<Txn> {
        let otherwise = txn.otherwise.as_deref().unwrap_or_default();
        check_count(txn.comparisons.len() + txn.then.len() + otherwise.len())?;
        for Comparison { scope, key, .. } in &txn.comparisons {
            check_known_scope(scope)?;
            check_known_key(scope, key)?;
        }
        let check = |operations: &[Operation]| {
            operations.iter().map(|operation| operation.checked(self)).collect::<Result<Vec<_>>>()
        };
        Ok(Txn {
            comparisons: txn.comparisons.clone(),
            then: check(&txn.then)?,
            otherwise: txn.otherwise.as_deref().map(check).transpose()?,
        })
    }
}

impl Txn {
    /// Refuses to repeat an answer to a caller that may not read what it shows.
    fn check_repeated(&self, guard: &Guard<'_>, answer: &TxnResult) -> Result<()> {
        let check = |scope: &str, key: &str| guard.check(AccessOperation::Read, scope, key);
        self.comparisons.iter().try_for_each(|compared| check(&compared.scope, &compared.key))?;
        let otherwise = self.otherwise.as_deref().unwrap_or_default();
        let operations = if answer.succeeded { self.then.as_slice() } else { otherwise };
        for operation in operations {
            if let Operation::Read { scope, key } = operation {
                check(scope, key)?;
            }
        }
        for result in &answer.results {
            match result {
                OperationResult::Write(Written { scope, evicted: Some(evicted), .. }) => {
                    check(scope, evicted)?;
                }
                OperationResult::Read(Some(entry)) => guard.check_shown(&entry.scope, entry.revision)?,
                OperationResult::Write(_) | OperationResult::Delete(_) | OperationResult::Read(None) => {}
            }
        }
        Ok(())
    }

    /// The fingerprint of the request. An answer with values is only for the caller that got it first.
    fn asked(&self, actor: &Actor) -> Fingerprint {
        let operations = |asked: Fingerprint, operations: &[Operation]| {
            asked.each(operations, |asked, operation| operation.asked(asked))
        };
        let asked = Fingerprint::new().each(&self.comparisons, |asked, comparison| comparison.asked(asked));
        let asked = operations(asked, &self.then).of(self.otherwise.is_some());
        let asked = operations(asked, self.otherwise.as_deref().unwrap_or_default());
        let mut all = self.then.iter().chain(self.otherwise.iter().flatten());
        if all.any(|operation| matches!(operation, Operation::Read { .. })) {
            asked.maybe(actor.author.as_deref()).maybe(actor.session.as_deref())
        } else {
            asked
        }
    }

    fn first_that_fails(&self, editor: &mut EntryEditor<'_>) -> Result<Option<(&Comparison, Option<Entry>)>> {
        for comparison in &self.comparisons {
            editor.check_access(AccessOperation::Read, &comparison.scope, &comparison.key)?;
            let found = editor.entry(&comparison.scope, &comparison.key)?;
            if !comparison.expected.holds(found.as_ref()) {
                return Ok(Some((comparison, found)));
            }
        }
        Ok(None)
    }
}

impl Expected {
    fn holds(&self, found: Option<&Entry>) -> bool {
        match self {
            Expected::Exists(exists) => found.is_some() == *exists,
            Expected::Revision(revision) => found.map_or(Revision::ZERO, |entry| entry.revision) == *revision,
            Expected::Version(version) => found.map_or(0, |entry| entry.version) == *version,
            Expected::Value(value) => found.is_some_and(|entry| entry.value.says_the_same_as(value)),
        }
    }
}

impl Comparison {
    fn asked(&self, asked: Fingerprint) -> Fingerprint {
        let asked = asked.text(&self.scope).text(&self.key);
        match &self.expected {
            Expected::Exists(exists) => asked.text("exists").of(exists),
            Expected::Revision(revision) => asked.text("revision").of(revision),
            Expected::Version(version) => asked.text("version").of(version),
            Expected::Value(value) => asked.text("value").text(value.as_str()),
        }
    }

    fn fails(&self, found: Option<&Entry>) -> Error {
        let what = match (&self.expected, found) {
            (Expected::Exists(false), Some(_)) => "exists".to_owned(),
            (_, None) => "does not exist".to_owned(),
            (Expected::Value(_), Some(_)) => "has a different value".to_owned(),
            (Expected::Version(expected), Some(found)) => {
                format!("is at version {}, not {expected}", found.version)
            }
            (_, Some(found)) => format!("is at revision {}", found.revision),
        };
        Refusal::new(Code::Conflict, format!("comparison failed: {} {what}; nothing was changed", self.key))
            .hint(Hint::ReadAndRetryOrElse { scope: self.scope.clone(), key: self.key.clone() })
            .detail("scope", self.scope.clone())
            .detail("key", self.key.clone())
            .detail("revision", found.map_or(0, |found| found.revision.get()))
            .detail("version", found.map_or(0, |found| found.version))
            .into()
    }
}

impl Operation {
    /// The scope of its entry.
    fn scope(&self) -> &str {
        match self {
            Operation::Write { scope, .. }
            | Operation::Delete { scope, .. }
            | Operation::Read { scope, .. } => scope,
        }
    }

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
