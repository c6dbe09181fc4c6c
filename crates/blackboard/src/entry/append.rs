//! `append`: adds an item to an array that many callers write.

use super::rules::check_not_reserved;
use super::{EventWording, Scope, Value, Write, Written};
use crate::error::Result;
use crate::scope::AccessOperation;
use crate::store::Prefetch;

impl Scope<'_> {
    /// Adds an item to the array under a key, and creates the array if the key does not exist. Tags, metadata and the
    /// time to live stay. The caller need not read the array first, so concurrent appends do not conflict.
    ///
    /// ```
    /// # use blackboard::{Board, entry::Value};
    /// # let board = Board::memory();
    /// let scope = board.scope("team-1");
    /// scope.append("trace:a", &Value::of("started")?)?;
    /// scope.append("trace:a", &Value::of("done")?)?;
    /// assert_eq!(scope.read("trace:a")?.unwrap().as_str(), r#"["started","done"]"#);
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn append(&self, key: &str, item: &Value) -> Result<Written> {
        self.rewrite("append", key, item, |before| match before {
            Some(array) => array.appended_to(key, item),
            None => Value::of::<[()]>(&[])?.appended(item),
        })
    }

    /// Replaces a value by the result of `change`, in one commit.
    pub(super) fn rewrite(
        &self,
        name: &'static str,
        key: &str,
        element: &Value,
        change: impl Fn(Option<&Value>) -> Result<Value>,
    ) -> Result<Written> {
        check_not_reserved(&self.name)?;
        self.check_known(key)?;
        let settings = self.board.settings();
        settings.text.check_unaltered([self.name.as_str(), key])?;
        settings.text.check_json([element.as_str()])?;
        let prefetch = [Prefetch::Entry(&self.name, key)];
        self.commit(
            name,
            |asked| asked.text(key).text(element.as_str()),
            &prefetch,
            |editor| {
                // The new value, and the refusal of a value of another type, show what was there.
                editor.check_access(AccessOperation::Read, &self.name, key)?;
                editor.check_access(AccessOperation::Write, &self.name, key)?;
                // The holder is checked first, also if the value cannot be changed in this way.
                editor.refuse_if_held(&self.name, key)?;
                let before = editor.entry(&self.name, key)?.map(|entry| entry.value);
                let value = change(before.as_ref())?;
                value.check_size(settings.max_value_bytes)?;
                editor.write(
                    &self.name,
                    &Write { merge: true, ..Write::new(key, value) },
                    EventWording::AsEntry,
                )
            },
        )
    }
}
