//! `read`: reads the current value of a key.

use std::collections::BTreeMap;

use super::{Entry, Scope, Value, check_key, check_known_key, check_known_scope, check_scope, visible};
use crate::error::Result;
use crate::store::{Key, Prefetch};

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
        self.policies().check_read(&self.name, key)?;
        let row = Key::Entry(self.name.clone(), key.to_owned());
        let entry = self.board.read(&[Prefetch::Row(row.clone())], |tx| visible(tx, &row))?;
        if entry.is_none() {
            self.check_new(key)?;
        }
        Ok(entry)
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
        let policies = self.policies();
        keys.iter().try_for_each(|key| {
            check_known_key(&self.name, key)?;
            policies.check_read(&self.name, key)
        })?;
        let keys: Vec<_> = keys.iter().map(|key| Key::Entry(self.name.clone(), (*key).to_owned())).collect();
        let prefetch: Vec<_> = keys.iter().cloned().map(Prefetch::Row).collect();
        self.board.read(&prefetch, |tx| {
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
