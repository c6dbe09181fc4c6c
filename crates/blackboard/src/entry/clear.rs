//! `clear`: deletes every entry that matches a pattern, atomically.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::rules::check_not_reserved;
use super::write::check_count;
use super::{EventWording, Glob, Scope, check_pattern};
use crate::error::Result;
use crate::event::{EventType, NewEvent, TargetType};
use crate::revision::{Pending, Revision};
use crate::store::{Prefetch, Range};

/// The result of a clear.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cleared {
    /// The scope.
    pub scope: String,
    /// The deleted keys.
    pub keys: Vec<String>,
    /// The event of the clear; the board's revision if nothing was deleted.
    pub revision: Revision,
}

impl Pending for Cleared {
    fn resolve(&mut self, first: Revision) {
        self.revision.resolve(first);
    }
}

impl Scope<'_> {
    /// Deletes every entry whose key matches the pattern. Each has its own event, and one more event reports the
    /// clear.
    ///
    /// ```
    /// # use blackboard::{Board, entry::{Value, Write}};
    /// # let board = Board::memory();
    /// let scope = board.scope("team-1");
    /// for key in ["cache:a", "cache:b", "result:a"] {
    ///     scope.write(&Write::new(key, Value::null()))?;
    /// }
    /// assert_eq!(scope.clear("cache:*")?.keys, ["cache:a", "cache:b"]);
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn clear(&self, pattern: &str) -> Result<Cleared> {
        check_not_reserved(&self.name)?;
        check_pattern(&self.name, pattern)?;
        let glob = Glob::new(pattern);
        let range = Range::entries(&self.name, glob.literal_prefix());
        let compared = self.compare_keys(&glob, &range)?;
        let fits = |key: &str| compared.get(key).copied().unwrap_or_else(|| glob.matches(key));
        self.commit(
            "clear",
            |asked| asked.text(pattern),
            &[Prefetch::Heads(range.clone(), usize::MAX), Prefetch::Revision],
            |editor| {
                let heads = editor.tx.heads(&range, usize::MAX)?;
                let keys: Vec<_> = heads
                    .into_iter()
                    .filter(|head| fits(&head.key) && !head.is_expired(editor.now()))
                    .map(|head| head.key)
                    .collect();
                check_count(keys.len())?;
                editor.prefetch_entries(&self.name, keys.iter())?;
                for key in &keys {
                    editor.delete(&self.name, key, EventWording::AsEntry)?;
                }
                let revision = match keys.len() {
                    0 => editor.tx.revision()?,
                    count => editor.add_event(|author, session| {
                        let entries = if count == 1 { "entry" } else { "entries" };
                        let summary =
                            format!("Agent \"{author}\" cleared {count} {entries} that match \"{pattern}\"");
                        NewEvent::new(EventType::EntriesCleared, TargetType::Scope, &self.name, summary)
                            .by(session)
                            .with("pattern", pattern)
                            .with("count", count)
                    }),
                };
                Ok(Cleared { scope: self.name.clone(), keys, revision })
            },
        )
    }

    /// The keys that match the pattern, compared without a lock: a long pattern and many long keys take seconds to
    /// compare. Only keys that are written meanwhile are compared under the lock.
    fn compare_keys(&self, glob: &Glob, range: &Range) -> Result<HashMap<String, bool>> {
        let mut compared = HashMap::new();
        if glob.is_prefix() {
            return Ok(compared);
        }
        self.board.read(&[Prefetch::Heads(range.clone(), usize::MAX)], |tx| {
            compared.clear();
            for head in tx.heads(range, usize::MAX)? {
                let fits = glob.matches(&head.key);
                compared.insert(head.key, fits);
            }
            Ok(())
        })?;
        Ok(compared)
    }
}
