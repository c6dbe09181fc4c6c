//! `memory feedback`: says whether a record was useful.

use serde::Serialize;

use super::Memories;
use super::levels::{Level, scope_of};
use super::promote::missing;
use super::record::Facts;
use super::rules::Relevance;
use crate::entry::{Actor, EntryEditor, EventWording, Write};
use crate::error::Result;
use crate::names::impl_names;
use crate::revision::{Pending, Revision};
use crate::store::Prefetch;

/// Whether a record was useful.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Usefulness {
    /// It was.
    Useful,
    /// It was not.
    Useless,
}

impl Usefulness {
    /// Both.
    pub const ALL: &'static [Usefulness] = &[Usefulness::Useful, Usefulness::Useless];

    /// The name.
    pub fn as_str(self) -> &'static str {
        match self {
            Usefulness::Useful => "useful",
            Usefulness::Useless => "useless",
        }
    }
}

impl_names!(Usefulness, "rating");

/// A record after a rating.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Rated {
    /// Its key.
    pub key: String,
    /// Its level.
    pub level: String,
    /// The moving average of its ratings: 0.9 of the one before, and 0.1 of this one.
    pub usefulness: Relevance,
    /// How many there were.
    pub ratings: u64,
    /// The event.
    pub revision: Revision,
}

impl Pending for Rated {
    fn resolve(&mut self, first: Revision) {
        self.revision.resolve(first);
    }
}

impl Memories<'_> {
    /// Rates a record. A repeated call counts twice.
    ///
    /// ```
    /// # use blackboard::{Board, entry::Actor, memory::{Remember, Usefulness}};
    /// # let board = Board::memory();
    /// let key = board.memories().remember(&Remember::text("CI needs 12 minutes"))?.key;
    /// let rated = board.memories().feedback(&key, None, Usefulness::Useful, &Actor::default())?;
    /// assert_eq!(rated.usefulness.value(), 0.55);
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn feedback(
        &self,
        key: &str,
        level: Option<&str>,
        rating: Usefulness,
        actor: &Actor,
    ) -> Result<Rated> {
        let keys = [key.to_owned()];
        super::promote::check_keys(&keys)?;
        let (level, _) = self.places_of(&keys, level, None)?.swap_remove(0);
        let scope = scope_of(&level);
        let mut prefetch: Vec<_> = Level::prefetch(&level).into_iter().collect();
        prefetch.push(Prefetch::Entry(&scope, key));
        prefetch.extend(actor.prefetch());
        self.board.commit_as(actor.session.as_deref().as_slice(), "memory feedback", &prefetch, |tx| {
            let mut editor = EntryEditor::new(self.board, tx, actor)?;
            Level::existing(tx, &level)?;
            let entry = editor.read(&scope, key)?.ok_or_else(|| missing(key))?;
            let facts = Facts::of(&entry).rated(rating == Usefulness::Useful);
            let write = Write {
                tags: entry.tags.clone(),
                metadata: Some(facts.to_metadata()),
                ..Write::new(key, entry.value.clone())
            };
            let words = format!("Agent \"{}\" rated memory record {key} as {rating}", editor.author);
            let written = editor.write(&scope, &write, EventWording::InWords(words))?;
            let rated = Rated {
                key: key.to_owned(),
                level: level.clone(),
                usefulness: facts.usefulness,
                ratings: facts.ratings,
                revision: written.revision,
            };
            Ok((editor.finish()?, rated))
        })
    }
}
