//! `read`: reads the current value of a key.

use std::collections::BTreeMap;

use super::{Entry, Scope, Value, check_key, check_known_key, check_known_scope, check_scope, visible};
use crate::error::Result;
use crate::scope::{AccessOperation, Guard};
use crate::store::{Key, Prefetch, Tx};

impl Scope<'_> {
    /// The value of a key; `None` if no entry is visible. A stored JSON null is `Some`.
    ///
    /// ```
    /// # use blackboard::{Board, entry::{Value, Write}};
    /// # let board = Board::memory();
    /// let scope = board.scope("team-1");
    /// scope.write(&Write::new("present", Value::null()))?;
    /// assert_eq!(scope.read("present")?, Some(Value::null()));
    /// assert_eq!(scope.read("absent")?, None);
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn read(&self, key: &str) -> Result<Option<Value>> {
        Ok(self.entry(key)?.map(|entry| entry.value))
    }

    /// The complete entry; `None` if no entry is visible.
    ///
    /// ```
    /// # use blackboard::{Board, entry::{Value, Write}};
    /// # let board = Board::memory();
    /// let scope = board.scope("team-1");
    /// scope.write(&Write::new("result:q4", Value::of("up 15%")?))?;
    /// let entry = scope.entry("result:q4")?.unwrap();
    /// assert_eq!((entry.version, entry.updated_by.as_str()), (1, "cli"));
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn entry(&self, key: &str) -> Result<Option<Entry>> {
        self.check_known(key)?;
        let row = Key::Entry(self.name.clone(), key.to_owned());
        let entry = self.read_guarded(vec![Prefetch::Row(row.clone())], |tx, guard| {
            guard.check(AccessOperation::Read, &self.name, key)?;
            visible(tx, &row)
        })?;
        if entry.is_none() {
            self.check_new(key)?;
        }
        Ok(entry)
    }

    /// Reads one state of the board for the caller, with what its guard needs.
    pub(super) fn read_guarded<'p, T>(
        &'p self,
        prefetch: Vec<Prefetch<'p>>,
        mut f: impl FnMut(&dyn Tx, &Guard<'_>) -> Result<T>,
    ) -> Result<T> {
        self.board.read(&self.with_policies(prefetch), |tx| f(tx, &Guard::new(self.board, tx, &self.actor)))
    }

    /// The same for a verb that lists entries: it leaves out rows that cannot be read, and refuses a scope that the caller may
    /// not use.
    pub(super) fn list_guarded<'p, T>(
        &'p self,
        prefetch: Vec<Prefetch<'p>>,
        mut f: impl FnMut(&dyn Tx, &Guard<'_>) -> Result<T>,
    ) -> Result<T> {
        self.board.read_list(&self.with_policies(prefetch), |tx| {
            let guard = Guard::new(self.board, tx, &self.actor);
            guard.check_scope(&self.name)?;
            f(tx, &guard)
        })
    }

    fn with_policies<'p>(&self, mut prefetch: Vec<Prefetch<'p>>) -> Vec<Prefetch<'p>> {
        prefetch.extend(Guard::prefetch(self.board, &self.actor, [self.name.as_str()]));
        prefetch
    }

    /// Refuses a key that the caller may not read.
    pub(crate) fn check_readable(&self, key: &str) -> Result<()> {
        self.read_guarded(Vec::new(), |_, guard| guard.check(AccessOperation::Read, &self.name, key))
    }

    /// Refuses a name that no version has accepted.
    pub(super) fn check_known(&self, key: &str) -> Result<()> {
        check_known_scope(&self.name)?;
        check_known_key(&self.name, key)
    }

    /// Refuses a name that is not accepted for a new entry.
    pub(super) fn check_new(&self, key: &str) -> Result<()> {
        check_scope(&self.name)?;
        check_key(&self.name, key)
    }

    /// The values of several keys at one revision, without those that do not exist.
    ///
    /// ```
    /// # use blackboard::{Board, entry::{Value, Write}};
    /// # let board = Board::memory();
    /// let scope = board.scope("team-1");
    /// scope.write(&Write::new("a", Value::of(&1)?))?;
    /// assert_eq!(scope.read_batch(&["a", "b"])?.into_keys().collect::<Vec<_>>(), ["a"]);
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn read_batch(&self, keys: &[&str]) -> Result<BTreeMap<String, Value>> {
        check_known_scope(&self.name)?;
        keys.iter().try_for_each(|key| check_known_key(&self.name, key))?;
        let keys: Vec<_> = keys.iter().map(|key| Key::Entry(self.name.clone(), (*key).to_owned())).collect();
        let prefetch: Vec<_> = keys.iter().cloned().map(Prefetch::Row).collect();
        let names =
            || keys.iter().filter_map(|key| if let Key::Entry(_, key) = key { Some(key) } else { None });
        self.read_guarded(prefetch, |tx, guard| {
            names().try_for_each(|key| guard.check(AccessOperation::Read, &self.name, key))?;
            let mut found = BTreeMap::new();
            for key in &keys {
                if let Some(entry) = visible(tx, key)? {
                    found.insert(entry.key, entry.value);
                }
            }
            Ok(found)
        })
    }
}
