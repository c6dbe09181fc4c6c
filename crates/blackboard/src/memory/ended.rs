//! What becomes of the records of a session that ends: they leave its working memory.
//!
//! A bookkeeping row lists the levels in which a session has records. The commit that ends the session, or marks it stale,
//! renames the row (`scope/end.rs`). Then the records are moved, a batch in a commit: by the call that ended it, or by a later
//! sweep. A kill between the two loses nothing, because the row is still there.

use super::levels::Level;
use super::moving::{BATCH, Move, move_record, prefetch_targets, read_batch};
use super::record::tags_of;
use crate::entry::{Entry, EntryEditor, EventWording, Write};
use crate::error::Result;
use crate::store::{Prefetch, Range};

/// How the tag begins that says to which session a record belongs.
const SESSION: &str = "session:";

/// The tag of the records of a session.
pub(crate) fn tag_of_session(session: &str) -> String {
    format!("{SESSION}{session}")
}

/// Whether a tag says to which session a record belongs.
pub(super) fn is_tag_of_session(tag: &str) -> bool {
    tag.starts_with(SESSION)
}

/// Moves a batch of the records of a session that has ended out of a level. Returns whether there may be more.
pub(crate) fn drain_session(editor: &mut EntryEditor<'_>, level: &Level, session: &str) -> Result<bool> {
    let range = Range::entries_tagged(&level.scope, &tag_of_session(session), "");
    editor.tx().prefetch(&[Prefetch::Heads(range.clone(), BATCH)])?;
    let heads = editor.heads(&range, BATCH)?;
    let keys: Vec<_> = heads.iter().map(|head| head.key.clone()).collect();
    let batch = read_batch(editor, &level.scope, &keys)?;
    let mut targets = Vec::new();
    let next: Vec<_> = level.rules.targets().filter_map(Level::prefetch).collect();
    if !next.is_empty() {
        editor.tx().prefetch(&next)?;
    }
    for name in level.rules.targets() {
        targets.extend(Level::find(editor.tx(), name)?.filter(|target| !target.rules.by_summary));
    }
    for target in &targets {
        prefetch_targets(editor, &target.scope, batch.entries.iter())?;
    }
    let mut is_any_done = false;
    for entry in &batch.entries {
        is_any_done |= move_or_keep(editor, level, &targets, entry)?;
    }
    // If nothing of a batch can be done, nothing of the next one can: the records stay where they are.
    Ok(is_any_done && (batch.is_cut || !heads.is_empty()))
}

/// Moves a record to the first level that takes it. If none does, it stays, without a session. Returns whether it did either.
fn move_or_keep(
    editor: &mut EntryEditor<'_>,
    level: &Level,
    targets: &[Level],
    entry: &Entry,
) -> Result<bool> {
    for target in targets {
        if let Move::To(_) = move_record(editor, level, target, entry, false)? {
            return Ok(true);
        }
    }
    let write = Write {
        tags: tags_of(entry),
        metadata: entry.metadata.clone(),
        ..Write::new(&entry.key, entry.value.clone())
    };
    let words = format!("Memory record {} stays in level {}: its session has ended", entry.key, level.name);
    match editor.write(&level.scope, &write, EventWording::InWords(words)) {
        Ok(_) => Ok(true),
        Err(crate::Error::Refusal(_)) => Ok(false),
        Err(error) => Err(error),
    }
}
