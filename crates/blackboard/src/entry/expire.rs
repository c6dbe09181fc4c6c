//! Expired entries: the sweep removes them, with one event each.

use serde::Serialize;

use super::{Actor, Entry, EntryEditor};
use crate::board::Board;
use crate::error::Result;
use crate::scope::{policies_of, prefetch_all_policies};
use crate::store::{Key, OnBusy, Prefetch, Range, Tx};

/// How many entries one commit removes.
const BATCH: usize = 100;

/// The result of removing expired entries.
#[derive(Debug, Default)]
pub(crate) struct Expired {
    /// How many were removed.
    pub(crate) count: u64,
    /// The entries that cannot be read.
    pub(crate) skipped: Vec<SkippedEntry>,
}

/// An expired entry that a sweep cannot read, and therefore cannot remove.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SkippedEntry {
    /// Its scope; empty if that cannot be read either.
    pub scope: String,
    /// Its key; empty if that cannot be read either.
    pub key: String,
    /// Why it cannot be read.
    pub error: String,
}

/// Expired entries, in the order in which they expired.
#[derive(Default)]
struct Due {
    /// Scope and key of the entries that can be removed.
    readable: Vec<(String, String)>,
    skipped: Vec<SkippedEntry>,
}

impl Board {
    /// Removes one batch of expired entries at most.
    pub(crate) fn expire_entries(&self, on_busy: OnBusy) -> Result<Expired> {
        let Due { readable, skipped } = self.expired_entries(BATCH, self.settings().max_commit_bytes)?;
        if readable.is_empty() {
            return Ok(Expired { count: 0, skipped });
        }
        let entries = readable.iter().map(|(scope, key)| Prefetch::Entry(scope, key));
        let scopes = readable.iter().map(|(scope, _)| scope.as_str());
        let prefetch: Vec<_> = entries.chain(prefetch_all_policies(scopes)).collect();
        let count = self.commit_with_on_busy(on_busy, "expire", &prefetch, |tx| {
            let mut editor = EntryEditor::new(self, tx, &Actor::default())?;
            let mut expired = 0;
            for (scope, key) in &readable {
                // The next sweep removes the rest.
                if editor.is_full() {
                    break;
                }
                // Rewritten meanwhile, or removed by another sweep: then there is nothing to report.
                expired += u64::from(editor.expire(scope, key)?);
            }
            Ok((editor.finish()?, expired))
        })?;
        Ok(Expired { count, skipped })
    }

    /// What a sweep would remove if it ran now.
    pub(crate) fn count_expired_entries(&self) -> Result<Expired> {
        let due = self.expired_entries(usize::MAX, usize::MAX)?;
        Ok(Expired { count: due.readable.len() as u64, skipped: due.skipped })
    }

    /// The first expired entries: at most `limit` readable ones, with about `max_bytes` of values, and every
    /// unreadable one before them. Each is read here, without the write lock. Otherwise an unreadable entry would
    /// cost every other writer that lock, at every sweep.
    fn expired_entries(&self, limit: usize, max_bytes: usize) -> Result<Due> {
        self.read(&[], |tx| {
            let range = Range::entries_expired_at(tx.now());
            let mut due = Due::default();
            let (mut seen, mut bytes) = (0, 0);
            loop {
                let asked = limit.saturating_add(due.skipped.len());
                tx.prefetch(&[Prefetch::Keys(range.clone(), asked)])?;
                let keys = tx.keys(&range, asked)?;
                let is_last_page = keys.len() < asked;
                let places = keys.iter().skip(seen).filter_map(|key| match key {
                    Ok(Key::Entry(scope, key)) => Some((scope.as_str(), key.as_str())),
                    _ => None,
                });
                let rows = places.clone().map(|(scope, key)| Prefetch::Entry(scope, key));
                let scopes = prefetch_all_policies(places.map(|(scope, _)| scope));
                tx.prefetch(&rows.chain(scopes).collect::<Vec<_>>())?;
                for key in keys.into_iter().skip(std::mem::take(&mut seen)) {
                    bytes += due.add(tx, key)?;
                    if bytes > max_bytes {
                        return Ok(due);
                    }
                }
                seen = due.readable.len() + due.skipped.len();
                if is_last_page || due.readable.len() >= limit {
                    return Ok(due);
                }
            }
        })
    }
}

impl Due {
    /// Reads an entry, and returns how many bytes its value has.
    fn add(&mut self, tx: &dyn Tx, key: Result<Key>) -> Result<usize> {
        let (scope, key) = match key {
            Ok(Key::Entry(scope, key)) => (scope, key),
            Ok(_) => return Ok(0),
            Err(error) if error.is_unreadable_row() => {
                let (scope, key) = Default::default();
                self.skipped.push(SkippedEntry { scope, key, error: error.to_string() });
                return Ok(0);
            }
            Err(error) => return Err(error),
        };
        match read(tx, &scope, &key) {
            Ok(entry) => {
                self.readable.push((scope, key));
                Ok(entry.map_or(0, |entry| entry.value.as_str().len()))
            }
            Err(error) if error.is_unreadable_row() => {
                self.skipped.push(SkippedEntry { scope, key, error: error.to_string() });
                Ok(0)
            }
            Err(error) => Err(error),
        }
    }
}

/// Reads everything that removing an entry reads.
fn read(tx: &dyn Tx, scope: &str, key: &str) -> Result<Option<Entry>> {
    policies_of(tx, scope)?;
    tx.get(&Key::Tombstone(scope.to_owned(), key.to_owned()))?;
    tx.row::<Entry>(&Key::Entry(scope.to_owned(), key.to_owned()))
}
