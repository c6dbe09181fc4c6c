//! `list` and `snapshot`: the entries of a scope, by key.

use serde::Serialize;

use super::query::Values;
use super::{Entry, Order, Query, Scope};
use crate::clock::Timestamp;
use crate::error::Result;
use crate::revision::Revision;

/// An entry in a list of keys.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ListedKey {
    /// The key.
    pub key: String,
    /// When it expires.
    pub expires_at: Option<Timestamp>,
}

/// Keys, and how many there are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CountedKeys {
    /// The keys.
    pub keys: Vec<ListedKey>,
    /// How many keys the query finds without its limit.
    pub total: usize,
}

/// The entries of a scope at one revision.
#[derive(Clone, Debug, PartialEq)]
pub struct Snapshot {
    /// The entries, sorted by key.
    pub entries: Vec<Entry>,
    /// The revision of the snapshot: a subscription continues from here.
    pub revision: Revision,
}

impl Scope<'_> {
    /// The keys that a query finds, sorted; all of them if it has no limit. Values are read only if the query has an
    /// author, a time or more than one tag.
    ///
    /// ```
    /// # use blackboard::{Board, entry::{Query, Value, Write}};
    /// # let board = Board::memory();
    /// let scope = board.scope("team-1");
    /// for key in ["task:b", "task:a", "result:a"] {
    ///     scope.write(&Write::new(key, Value::null()))?;
    /// }
    /// let tasks = scope.list(&Query { prefix: Some("task:".to_owned()), ..Query::default() })?;
    /// assert_eq!(tasks.iter().map(|listed| &listed.key[..]).collect::<Vec<_>>(), ["task:a", "task:b"]);
    /// let rest = Query { after: Some("result:a".to_owned()), limit: Some(1), ..Query::default() };
    /// assert_eq!(scope.list(&rest)?[0].key, "task:a");
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn list(&self, query: &Query) -> Result<Vec<ListedKey>> {
        self.keys(query, false).map(|counted| counted.keys)
    }

    /// The same keys, and how many there are without the limit.
    ///
    /// ```
    /// # use blackboard::{Board, entry::{Query, Value, Write}};
    /// # let board = Board::memory();
    /// let scope = board.scope("team-1");
    /// for key in ["a", "b", "c"] {
    ///     scope.write(&Write::new(key, Value::null()))?;
    /// }
    /// let counted = scope.list_counted(&Query { limit: Some(1), ..Query::default() })?;
    /// assert_eq!((counted.keys.len(), counted.total), (1, 3));
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn list_counted(&self, query: &Query) -> Result<CountedKeys> {
        self.keys(query, true)
    }

    /// The keys that a query finds, with the number of all matches if `counts`.
    fn keys(&self, query: &Query, counts: bool) -> Result<CountedKeys> {
        let checked = Query { order: Order::Key, ..query.clone() }.checked(&self.name)?;
        self.list_guarded(checked.prefetch(&self.name), |tx, guard| {
            let (mut keys, mut skipped, mut total) = (Vec::new(), 0, 0);
            checked.each(tx, guard, &self.name, Values::Compared, |found| {
                if skipped < query.offset {
                    skipped += 1;
                    return Ok(true);
                }
                total += 1;
                if query.limit.is_some_and(|limit| keys.len() >= limit) {
                    return Ok(counts);
                }
                keys.push(ListedKey { key: found.head.key.clone(), expires_at: found.head.expires_at });
                Ok(true)
            })?;
            Ok(CountedKeys { keys, total })
        })
    }

    /// All entries that a query finds, sorted by key. A subscription from its revision on gets every later event,
    /// each once.
    ///
    /// ```
    /// # use blackboard::{Board, entry::{Query, Value, Write}};
    /// # let board = Board::memory();
    /// let scope = board.scope("team-1");
    /// scope.write(&Write::new("a", Value::of(&1)?))?;
    /// assert_eq!(scope.snapshot(&Query::default())?.entries[0].value.as_str(), "1");
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn snapshot(&self, query: &Query) -> Result<Snapshot> {
        let query = query.checked(&self.name)?;
        self.list_guarded(query.prefetch_by_key(&self.name), |tx, guard| {
            let mut entries = Vec::new();
            query.each_by_key(tx, guard, &self.name, &mut |found| {
                entries.extend(found.entry()?);
                Ok(())
            })?;
            Ok(Snapshot { entries, revision: tx.revision()? })
        })
    }
}
