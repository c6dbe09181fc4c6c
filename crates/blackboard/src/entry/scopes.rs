//! Entries of every scope, page by page, and how scopes are found.

use serde::Serialize;

use super::{Entry, FILES, LOCKS, Order, Query};
use crate::board::Board;
use crate::error::Result;
use crate::revision::Revision;
use crate::scope::Guard;
use crate::store::{Prefetch, Range, Tx};

/// A scope that has entries.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ScopeSize {
    /// Its name.
    pub scope: String,
    /// How many entries it has, including expired ones that were not swept yet.
    pub entries: u64,
}

/// Conditions for entries of every scope.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EveryScope {
    /// The keys start with this.
    pub prefix: Option<String>,
    /// Continues after this scope and key: those of the last entry of the page before.
    pub after: Option<(String, String)>,
    /// The most entries; 100 by default.
    pub limit: Option<usize>,
    /// A page ends with the entry whose value and metadata make it this many bytes; unlimited by default.
    pub most_bytes: Option<usize>,
}

/// A page of entries.
#[derive(Clone, Debug, PartialEq)]
pub struct EveryScopePage {
    /// The entries, by scope and key.
    pub entries: Vec<Entry>,
    /// Whether there is more.
    pub more: bool,
    /// The board's revision when the page was read.
    pub revision: Revision,
}

impl Board {
    /// The entries of every scope except locks and files, by scope and key. No entry is missed or seen twice from
    /// page to page, whatever others write.
    ///
    /// ```
    /// # use blackboard::{Board, entry::{EveryScope, Value, Write}};
    /// # let board = Board::memory();
    /// for scope in ["team-1", "team-2"] {
    ///     board.scope(scope).write(&Write::new("a", Value::of(&1)?))?;
    /// }
    /// let first = board.entries(&EveryScope { limit: Some(1), ..EveryScope::default() })?;
    /// let after = first.entries.last().map(|entry| (entry.scope.clone(), entry.key.clone()));
    /// let rest = board.entries(&EveryScope { after, ..EveryScope::default() })?;
    /// assert_eq!((first.more, rest.entries[0].scope.as_str(), rest.more), (true, "team-2", false));
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn entries(&self, wanted: &EveryScope) -> Result<EveryScopePage> {
        let limit = wanted.limit.unwrap_or(super::DEFAULT_LIMIT);
        let query = |scope: &str, after, limit, most_bytes| {
            let query = Query {
                prefix: wanted.prefix.clone(),
                order: Order::Key,
                after,
                limit: Some(limit),
                most_bytes: Some(most_bytes),
                ..Query::default()
            };
            query.checked_in_stored_scope(scope)
        };
        let most_bytes = wanted.most_bytes.unwrap_or(usize::MAX);
        // A wrong prefix is reported here, also if there is no scope at all.
        query(super::DEFAULT_SCOPE, None, limit, most_bytes)?;
        let from = wanted.after.as_ref().map(|(scope, _)| scope.as_str());
        let prefetch = [Prefetch::Revision, Prefetch::Heads(first_scope_from(from), 1)];
        self.read_list(&prefetch, |tx| {
            let guard = Guard::of_board(self, tx);
            let (mut entries, mut bytes, mut more) = (Vec::<Entry>::new(), 0_usize, false);
            for scope in scopes_from(tx, from)? {
                let after = wanted.after.as_ref().filter(|(last, _)| *last == scope);
                let (room, bytes_left) = (limit - entries.len(), most_bytes.saturating_sub(bytes));
                let is_full = room == 0 || (bytes_left == 0 && !entries.is_empty());
                // If no space is left, one more entry shows that there is more.
                let room = if is_full { 1 } else { room };
                let checked = query(&scope, after.map(|(_, key)| key.clone()), room, bytes_left)?;
                let mut next = checked.prefetch(&scope);
                next.extend(guard.prefetch_of([scope.as_str()]));
                tx.prefetch(&next)?;
                let page = checked.page(tx, &guard, &scope)?;
                if is_full {
                    more |= !page.entries.is_empty();
                } else {
                    more |= page.next.is_some();
                    bytes =
                        page.entries.iter().fold(bytes, |bytes, entry| bytes.saturating_add(entry.bytes()));
                    entries.extend(page.entries);
                }
                if more {
                    break;
                }
            }
            Ok(EveryScopePage { entries, more, revision: tx.revision()? })
        })
    }
}

/// Where the search for scopes begins: after this known scope.
pub(crate) fn first_scope_from(first: Option<&str>) -> Range {
    first.map_or_else(Range::all_entries, Range::entries_of_scopes_after)
}

/// The names of the scopes that have entries, from this one on. Each is found from the one before, so each is a round
/// trip on a remote engine.
pub(crate) fn scopes_from(tx: &dyn Tx, first: Option<&str>) -> Result<Vec<String>> {
    let mut scopes = Vec::new();
    if let Some(first) = first.filter(|first| !matches!(*first, LOCKS | FILES)) {
        scopes.push(first.to_owned());
    }
    let mut range = first_scope_from(first);
    loop {
        tx.prefetch(&[Prefetch::Heads(range.clone(), 1)])?;
        let Some(head) = tx.heads(&range, 1)?.into_iter().next() else { return Ok(scopes) };
        range = Range::entries_of_scopes_after(&head.scope);
        if !matches!(head.scope.as_str(), LOCKS | FILES) {
            scopes.push(head.scope);
        }
    }
}
