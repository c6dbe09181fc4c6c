//! `memory delete`: deletes records.

use serde::Serialize;

use super::Memories;
use super::levels::{Level, scope_of};
use super::promote::{check_keys, missing};
use crate::entry::{Actor, EntryEditor, EventWording};
use crate::error::Result;
use crate::revision::{Pending, Revision};
use crate::store::Prefetch;

/// Records that were deleted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Forgotten {
    /// How many.
    pub deleted: usize,
    /// Their keys, in the order of the request.
    pub keys: Vec<String>,
}

impl Pending for Forgotten {
    fn resolve(&mut self, _first: Revision) {}
}

impl Memories<'_> {
    /// Deletes records, all of them or none. Their text stays in the history of their keys: `Scope::purge` erases it.
    ///
    /// ```
    /// # use blackboard::{Board, entry::Actor, memory::Remember};
    /// # let board = Board::memory();
    /// let key = board.memories().remember(&Remember::text("wrong"))?.key;
    /// assert_eq!(board.memories().delete(&[key], None, &Actor::default())?.deleted, 1);
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn delete(&self, keys: &[String], level: Option<&str>, actor: &Actor) -> Result<Forgotten> {
        check_keys(keys)?;
        let places = self.places_of(keys, level, None)?;
        let scopes: Vec<_> = places.iter().map(|(level, key)| (level, scope_of(level), key)).collect();
        let mut prefetch: Vec<_> = actor.prefetch().collect();
        for (level, scope, key) in &scopes {
            prefetch.extend(Level::prefetch(level));
            prefetch.push(Prefetch::Entry(scope, key));
        }
        self.board.commit_as(actor.session.as_deref().as_slice(), "memory delete", &prefetch, |tx| {
            let mut editor = EntryEditor::new(self.board, tx, actor)?;
            for (level, scope, key) in &scopes {
                Level::existing(tx, level)?;
                let words = format!("Agent \"{}\" deleted memory record {key}", editor.author);
                editor.delete(scope, key, EventWording::InWords(words))?.ok_or_else(|| missing(key))?;
            }
            let keys = scopes.iter().map(|(_, _, key)| (*key).clone()).collect::<Vec<_>>();
            Ok((editor.finish()?, Forgotten { deleted: keys.len(), keys }))
        })
    }
}
