//! `memory promote`: moves named records to another level.

use serde::Serialize;

use super::Memories;
use super::levels::Level;
use super::moving::{Move, move_record};
use super::rules::Declined;
use crate::entry::{Actor, EntryEditor, MAX_OPERATIONS};
use crate::error::{Code, Error, Refusal, Result};
use crate::revision::{Pending, Revision};
use crate::store::Prefetch;

/// Records to move.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Promote {
    /// Their keys.
    pub keys: Vec<String>,
    /// The level in which they are; by default the only one that has such a key.
    pub from: Option<String>,
    /// The level to which they move.
    pub to: String,
    /// On whose behalf.
    pub actor: Actor,
}

/// The result of a promotion.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Promoted {
    /// The level that has the records now.
    pub to: String,
    /// How many moved.
    pub moved: usize,
    /// Their keys there, in the order of the request.
    pub keys: Vec<String>,
    /// Keys that were in this level already.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub already_there: Vec<String>,
}

impl Pending for Promoted {
    fn resolve(&mut self, _first: Revision) {}
}

impl Memories<'_> {
    /// Moves records to another level, all of them or none. The level takes them whatever their relevance and tags, because the
    /// caller has chosen them.
    ///
    /// ```
    /// # use blackboard::{Board, memory::{Promote, Remember}};
    /// # let board = Board::memory();
    /// board.memories().define_seed(None)?;
    /// let key = board.memories().remember(&Remember::text("Never edit schema.sql by hand"))?.key;
    /// let promote = Promote { keys: vec![key.clone()], to: "collective".to_owned(), ..Promote::default() };
    /// assert_eq!(board.memories().promote(&promote)?.keys, [key]);
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn promote(&self, request: &Promote) -> Result<Promoted> {
        let Promote { keys, from, to, actor } = request;
        check_keys(keys)?;
        let places = self.places_of(keys, from.as_deref(), Some(to))?;
        let mut prefetch: Vec<_> = Level::prefetch(to).into_iter().collect();
        let mut scopes = Vec::new();
        for (level, key) in &places {
            prefetch.extend(Level::prefetch(level));
            scopes.push((super::levels::scope_of(level), super::levels::scope_of(to), key));
        }
        prefetch.extend(
            scopes.iter().flat_map(|(from, to, key)| [Prefetch::Entry(from, key), Prefetch::Entry(to, key)]),
        );
        prefetch.extend(actor.prefetch());
        let callers = actor.session.as_deref();
        self.board.commit_as(callers.as_slice(), "memory promote", &prefetch, |tx| {
            let mut editor = EntryEditor::new(self.board, tx, actor)?;
            let target = Level::existing(tx, to)?;
            let mut promoted =
                Promoted { to: to.clone(), moved: 0, keys: Vec::new(), already_there: Vec::new() };
            for (level, key) in &places {
                let level = Level::existing(tx, level)?;
                let entry = editor.read(&level.scope, key)?.ok_or_else(|| missing(key))?;
                if level.name == target.name {
                    promoted.already_there.push(key.clone());
                    continue;
                }
                match move_record(&mut editor, &level, &target, &entry, true)? {
                    Move::To(key) => promoted.keys.push(key),
                    Move::Declined(reason) => return Err(declined(key, to, reason)),
                    Move::Refused(code) => {
                        let message = format!("memory record {key} cannot move to level {to}");
                        return Err(Refusal::new(code, message).into());
                    }
                }
            }
            promoted.moved = promoted.keys.len();
            Ok((editor.finish()?, promoted))
        })
    }

    /// In which level each key is: the given one, or the only one that the caller sees and that has it. A key that is also in
    /// the target is moved from the other level.
    pub(super) fn places_of(
        self,
        keys: &[String],
        level: Option<&str>,
        target: Option<&str>,
    ) -> Result<Vec<(String, String)>> {
        if let Some(level) = level {
            return Ok(keys.iter().map(|key| (level.to_owned(), key.clone())).collect());
        }
        let range = crate::store::Range::scope_policies();
        self.board.read(&[Prefetch::Range(range)], |tx| {
            let guard = crate::scope::Guard::of_board(self.board, tx);
            let levels = Level::visible(tx, &guard)?;
            let pairs = || levels.iter().flat_map(|level| keys.iter().map(move |key| (level, key)));
            let rows: Vec<_> = pairs().map(|(level, key)| Prefetch::Entry(&level.scope, key)).collect();
            if !rows.is_empty() {
                tx.prefetch(&rows)?;
            }
            let mut places = Vec::with_capacity(keys.len());
            for key in keys {
                let mut found = Vec::new();
                for level in &levels {
                    let row = crate::store::Key::Entry(level.scope.clone(), key.clone());
                    let entry = tx.row::<crate::entry::Entry>(&row)?;
                    let is_there = entry.is_some_and(|entry| !entry.is_expired(tx.now()));
                    if is_there && guard.may_read(&level.scope, key)? {
                        found.push(level.name.as_str());
                    }
                }
                if found.len() > 1 {
                    found.retain(|level| Some(*level) != target);
                }
                match found[..] {
                    [] => return Err(missing(key)),
                    [level] => places.push((level.to_owned(), key.clone())),
                    _ => return Err(ambiguous(key, &found)),
                }
            }
            Ok(places)
        })
    }
}

/// Refuses no keys, and more than one commit may have.
pub(super) fn check_keys(keys: &[String]) -> Result<()> {
    match keys.len() {
        0 => Err(Error::invalid("no key is given")),
        count if count > MAX_OPERATIONS => {
            Err(Error::invalid(format!("{count} keys are too many; {MAX_OPERATIONS} are allowed")))
        }
        _ => keys.iter().try_for_each(|key| crate::entry::check_known_key("", key)),
    }
}

/// The refusal of a key that no level has.
pub(super) fn missing(key: &str) -> Error {
    let key = crate::text::shown(key);
    Refusal::new(Code::EntryNotFound, format!("memory record {key} not found"))
        .hint(crate::hint::Hint::ListLevels)
        .into()
}

/// The refusal of a key that several levels have.
fn ambiguous(key: &str, levels: &[&str]) -> Error {
    let levels = levels.join(", ");
    Refusal::new(Code::InvalidValue, format!("several memory levels have a record {key}: {levels}"))
        .hint("name the level")
        .into()
}

fn declined(key: &str, to: &str, reason: Declined) -> Error {
    let why = match reason {
        Declined::Key => "its patterns do not match the key",
        Declined::Relevance => "its relevance is too small",
        Declined::Tag => "it has a tag that the level does not take",
    };
    Refusal::new(Code::InvalidValue, format!("memory level {to} does not take {key}: {why}")).into()
}
