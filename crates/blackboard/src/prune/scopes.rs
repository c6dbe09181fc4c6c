//! Policies of scopes that have ended: they hide the history of the scope, and are removed when the event log has none.

use super::{Pruned, readable};
use crate::error::Result;
use crate::scope::{past_scopes, prefetch_past, prune_past};
use crate::store::{Changes, Key, Prefetch, Tx};

/// How many of the oldest ones are checked.
const LOOKED_AT: usize = 100;

/// What the search reads first.
pub(super) fn prefetch() -> Prefetch<'static> {
    Prefetch::Keys(past_scopes(), LOOKED_AT)
}

/// Those among the oldest ones that are not needed any more.
pub(super) fn scopes_to_prune(tx: &dyn Tx) -> Result<Vec<Key>> {
    let mut listed = readable(tx.keys(&past_scopes(), LOOKED_AT)?)?;
    if !listed.is_empty() {
        tx.prefetch(&listed.iter().flat_map(prefetch_past).collect::<Vec<_>>())?;
    }
    // One whose row cannot be read stays.
    listed.retain(|key| prune_past(tx, key, &mut Changes::new()).unwrap_or(false));
    Ok(listed)
}

/// Removes those that are still not needed.
pub(super) fn prune_scopes(
    tx: &dyn Tx,
    due: &[Key],
    changes: &mut Changes,
    pruned: &mut Pruned,
) -> Result<()> {
    pruned.more |= due.len() == LOOKED_AT;
    for key in due {
        if tx.get(key)?.is_some() {
            match prune_past(tx, key, changes) {
                Err(error) if !error.is_unreadable_row() => return Err(error),
                _ => {}
            }
        }
    }
    Ok(())
}
