//! `clear`: deletes every entry that matches a pattern, atomically.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::rules::check_not_reserved;
use super::write::check_count;
use super::{
    EntryEditor, EntryHead, EventWording, Glob, RepeatedAnswer, Scope, check_known_scope, check_pattern,
};
use crate::error::Result;
use crate::event::{EventType, NewEvent, TargetType};
use crate::revision::{Pending, Revision};
use crate::scope::prefetch_policies;
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

impl RepeatedAnswer for Cleared {
    fn shown_keys(&self) -> Vec<&str> {
        self.keys.iter().map(String::as_str).collect()
    }
}

/// What a clear would delete.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ClearPlan {
    /// The scope.
    pub scope: String,
    /// The keys.
    pub keys: Vec<String>,
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
        let matches = self.compare_keys(pattern)?;
        self.commit(
            "clear",
            |asked| asked.text(pattern),
            &[Prefetch::Heads(matches.range.clone(), usize::MAX), Prefetch::Revision],
            |editor| {
                let keys = matches.delete(editor, &self.name)?;
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

    /// What a clear of the pattern would delete. It is refused as the clear would be.
    ///
    /// ```
    /// # use blackboard::{Board, entry::{Value, Write}};
    /// # let board = Board::memory();
    /// let scope = board.scope("team-1");
    /// scope.write(&Write::new("cache:a", Value::null()))?;
    /// assert_eq!(scope.plan_clear("cache:*")?.keys, ["cache:a"]);
    /// assert!(scope.read("cache:a")?.is_some());
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn plan_clear(&self, pattern: &str) -> Result<ClearPlan> {
        let matches = self.compare_keys(pattern)?;
        check_known_scope(&self.name)?;
        let actor = self.board.checked_actor(&self.actor)?;
        let heads = Prefetch::Heads(matches.range.clone(), usize::MAX);
        let prefetch = [heads].into_iter().chain(actor.prefetch());
        let prefetch: Vec<_> = prefetch.chain(prefetch_policies(&self.name)).collect();
        self.board.read(&prefetch, |tx| {
            // Its changes are dropped.
            let mut editor = EntryEditor::new(self.board, tx, &actor)?;
            Ok(ClearPlan { scope: self.name.clone(), keys: matches.delete(&mut editor, &self.name)? })
        })
    }

    /// The keys that match the pattern, compared without a lock: a long pattern and many long keys take seconds to
    /// compare. Only keys that are written meanwhile are compared under the lock.
    fn compare_keys(&self, pattern: &str) -> Result<KeyMatches> {
        check_not_reserved(&self.name)?;
        check_pattern(&self.name, pattern)?;
        let glob = Glob::new(pattern);
        let range = Range::entries(&self.name, glob.literal_prefix());
        let mut compared = HashMap::new();
        if !glob.is_prefix() {
            self.board.read(&[Prefetch::Heads(range.clone(), usize::MAX)], |tx| {
                compared.clear();
                for head in tx.heads(&range, usize::MAX)? {
                    let fits = glob.matches(&head.key);
                    compared.insert(head.key, fits);
                }
                Ok(())
            })?;
        }
        Ok(KeyMatches { glob, range, compared })
    }
}

/// A pattern, with the keys that were compared with it.
struct KeyMatches {
    glob: Glob,
    /// The keys that begin like the pattern.
    range: Range,
    compared: HashMap<String, bool>,
}

impl KeyMatches {
    /// Deletes every visible entry whose key matches, and returns the keys.
    fn delete(&self, editor: &mut EntryEditor<'_>, scope: &str) -> Result<Vec<String>> {
        let fits = |key: &str| self.compared.get(key).copied().unwrap_or_else(|| self.glob.matches(key));
        editor.check_member_of(scope)?;
        let heads = editor.tx.heads(&self.range, usize::MAX)?;
        let now = editor.now();
        let heads = heads.into_iter().filter(|head| fits(&head.key) && !head.is_expired(now));
        let mut keys = Vec::new();
        for EntryHead { key, .. } in heads {
            // What the caller may not read does not exist for it.
            if editor.may_read(scope, &key)? {
                keys.push(key);
            }
        }
        check_count(keys.len())?;
        editor.prefetch_entries(scope, keys.iter())?;
        for key in &keys {
            editor.delete(scope, key, EventWording::AsEntry)?;
        }
        Ok(keys)
    }
}
