//! How a record moves: one commit writes it into another level and deletes it from this one.

use super::levels::Level;
use super::record::{Facts, joined_tags, tags_of};
use super::rules::Declined;
use crate::entry::{Entry, EntryEditor, EventWording, MAX_KEY_BYTES, Write};
use crate::error::{Code, Result};
use crate::fingerprint::Fingerprint;
use crate::store::Prefetch;

/// How many records one commit moves.
pub(super) const BATCH: usize = 200;

/// A part of the bytes that a commit may have: moving reads a value, writes it, and deletes it.
const PART_OF_COMMIT: usize = 8;

/// What became of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Move {
    /// It is in another level, under this key.
    To(String),
    /// The level does not take it.
    Declined(Declined),
    /// A policy of the scope that it leaves or enters does not allow it, or another session leases it.
    Refused(Code),
}

/// The entries of a batch, as many as one commit can move.
pub(super) struct BatchOfEntries {
    pub(super) entries: Vec<Entry>,
    /// Whether there are others that did not fit.
    pub(super) is_cut: bool,
}

/// Reads these keys of a level, the first of them that one commit can move. The caller may not see some of them.
pub(super) fn read_batch(
    editor: &mut EntryEditor<'_>,
    scope: &str,
    keys: &[String],
) -> Result<BatchOfEntries> {
    let most = editor.max_commit_bytes() / PART_OF_COMMIT;
    let (mut bytes, mut entries) = (0, Vec::new());
    // Values are large or small: a part of them at a time.
    for part in keys.chunks(32) {
        editor.prefetch_entries(scope, part.iter())?;
        for key in part {
            let Some(entry) = editor.peek_entry(scope, key)? else { continue };
            bytes += entry.bytes();
            if bytes > most && !entries.is_empty() {
                return Ok(BatchOfEntries { entries, is_cut: true });
            }
            entries.push(entry);
        }
    }
    Ok(BatchOfEntries { entries, is_cut: false })
}

/// Announces where these entries go, and the policies of that level.
pub(super) fn prefetch_targets<'a>(
    editor: &EntryEditor<'_>,
    to: &'a str,
    entries: impl Iterator<Item = &'a Entry>,
) -> Result<()> {
    let next: Vec<_> = entries.map(|entry| Prefetch::Entry(to, &entry.key)).collect();
    if next.is_empty() { Ok(()) } else { editor.tx().prefetch(&next) }
}

/// Moves a record, if the level takes it. `forced` moves it in spite of the rules of the level.
pub(super) fn move_record(
    editor: &mut EntryEditor<'_>,
    from: &Level,
    to: &Level,
    entry: &Entry,
    forced: bool,
) -> Result<Move> {
    let facts = Facts::of(entry);
    let tags = tags_of(entry);
    if let Err(declined) = to.rules.takes(&entry.key, &tags, facts.relevance)
        && (!forced || declined == Declined::Key)
    {
        return Ok(Move::Declined(declined));
    }
    let moved = try_move(editor, from, to, entry, (facts, tags));
    match moved {
        Ok(key) => Ok(Move::To(key)),
        Err(error) if is_about_one_record(error.code()) => Ok(Move::Refused(error.code())),
        Err(error) => Err(error),
    }
}

/// Whether a refusal is about one record, so that others can still be moved.
fn is_about_one_record(code: Code) -> bool {
    matches!(
        code,
        Code::NotAllowed
            | Code::InvalidValue
            | Code::ScopeFull
            | Code::ScopeEnded
            | Code::Held
            | Code::Conflict
    )
}

fn try_move(
    editor: &mut EntryEditor<'_>,
    from: &Level,
    to: &Level,
    entry: &Entry,
    (facts, tags): (Facts, Vec<String>),
) -> Result<String> {
    // Before the write: a record that cannot be deleted here must not be in two levels.
    editor.check_delete(&from.scope, &entry.key)?;
    let there = editor.entry(&to.scope, &entry.key)?;
    let (key, facts, tags) = match there {
        None => (entry.key.clone(), facts, tags),
        Some(there) if there.value == entry.value => {
            let merged = Facts::of(&there).merged(&facts);
            (entry.key.clone(), merged, joined_tags(&tags_of(&there), &tags))
        }
        // Another record has the key: neither replaces the other.
        Some(_) => {
            let key = another_key(entry);
            editor.prefetch_entries(&to.scope, [&key].into_iter())?;
            (key, facts, tags)
        }
    };
    let write = Write { tags, metadata: Some(facts.to_metadata()), ..Write::new(&key, entry.value.clone()) };
    let words = |verb: &str| {
        let (from, to) = (&from.name, &to.name);
        EventWording::InWords(format!("Memory record {} {verb} level {from} to {to}", entry.key))
    };
    editor.write(&to.scope, &write, words("moved from"))?;
    editor.delete(&from.scope, &entry.key, words("left for its move from"))?;
    Ok(key)
}

/// A key for a record whose own key another record has. It depends on what the record says, so it is the same on every engine.
fn another_key(entry: &Entry) -> String {
    let suffix = format!(":{}", Fingerprint::new().text(entry.value.as_str()));
    let mut beginning = entry.key.as_str();
    while beginning.len() + suffix.len() > MAX_KEY_BYTES {
        let mut characters = beginning.chars();
        characters.next_back();
        beginning = characters.as_str();
    }
    format!("{}{suffix}", beginning.trim_end_matches(':'))
}
