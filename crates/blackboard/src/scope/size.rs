//! The number of entries of a scope with a limit, and which entry is evicted.
//!
//! The number is in the row of the scope. Every commit that adds or removes entries there changes it, and the engine validates
//! the row, so no interleaving of commits exceeds the limit. It is counted once, when the limit is set.

use std::collections::{BTreeSet, VecDeque};

use super::{Eviction, ScopePolicies};
use crate::entry::{EntryHead, FILES, LOCKS};
use crate::error::{Code, Refusal, Result};
use crate::hint::Hint;
use crate::store::{Changes, Key, Prefetch, Range, Row, Tx};

/// How many entries a scope may have when a limit is set: they are counted in one commit.
pub const MAX_COUNTED: usize = 100_000;

/// How many entries are looked at first to find one that can be evicted.
const FIRST_PAGE: usize = 4;

/// Whether a scope can have policies: those of locks and file reservations have rules of their own.
fn can_have_policies(scope: &str) -> bool {
    !matches!(scope, LOCKS | FILES)
}

/// Announces the policies of a scope.
pub(crate) fn prefetch_policies(scope: &str) -> Option<Prefetch<'static>> {
    can_have_policies(scope).then(|| Prefetch::Row(Key::ScopePolicies(scope.to_owned())))
}

/// Announces the policies of these scopes, each once.
pub(crate) fn prefetch_all_policies<'s>(
    scopes: impl Iterator<Item = &'s str>,
) -> impl Iterator<Item = Prefetch<'s>> {
    scopes.collect::<BTreeSet<_>>().into_iter().filter_map(|scope| prefetch_policies(scope))
}

/// The policies of a scope, if it has some.
pub(crate) fn policies_of(tx: &dyn Tx, scope: &str) -> Result<Option<ScopePolicies>> {
    if can_have_policies(scope) { tx.row(&Key::ScopePolicies(scope.to_owned())) } else { Ok(None) }
}

/// Announces what [`count`] reads.
pub(super) fn prefetch_count(scope: &str) -> Prefetch<'static> {
    Prefetch::Heads(Range::entries(scope, ""), MAX_COUNTED + 1)
}

/// How many entries a scope has. The commit validates that none was added or removed.
pub(super) fn count(tx: &dyn Tx, scope: &str) -> Result<u64> {
    let entries = tx.heads(&Range::entries(scope, ""), MAX_COUNTED + 1)?.len();
    if entries <= MAX_COUNTED {
        return Ok(entries as u64);
    }
    let message =
        format!("scope {scope} has more than {MAX_COUNTED} entries, too many to count in one commit");
    Err(Refusal::new(Code::InvalidValue, message).hint(Hint::FreeSpaceIn(scope.to_owned())).into())
}

/// Changes the number of entries of a scope, if it has a limit.
pub(crate) fn add_to_size(row: &ScopePolicies, added: i64, changes: &mut Changes) {
    let Some(entries) = row.entries.filter(|_| added != 0) else { return };
    let put_before = changes.put.iter_mut().find_map(|put| match put {
        Row::ScopePolicies(put) if put.scope == row.scope => Some(put),
        _ => None,
    });
    if let Some(put) = put_before {
        put.entries = put.entries.map(|entries| entries.saturating_add_signed(added));
    } else {
        let entries = Some(entries.saturating_add_signed(added));
        changes.put(ScopePolicies { entries, ..row.clone() });
    }
}

/// The entries of a scope in the order in which they are evicted, leased ones included. `order` has the ranges that it reads,
/// and is called once.
#[derive(Default)]
pub(crate) struct EvictionQueue {
    /// The ranges that follow the current one.
    ranges: Option<VecDeque<Range>>,
    /// How many entries of the first range were read, and how many of them were returned.
    limit: usize,
    heads: VecDeque<EntryHead>,
    returned: usize,
}

impl EvictionQueue {
    /// The next entry. Every one of a range is returned once.
    pub(crate) fn next(
        &mut self,
        tx: &dyn Tx,
        order: impl FnOnce() -> Vec<Range>,
    ) -> Result<Option<EntryHead>> {
        let ranges = self.ranges.get_or_insert_with(|| order().into());
        loop {
            if let Some(head) = self.heads.pop_front() {
                self.returned += 1;
                return Ok(Some(head));
            }
            let Some(range) = ranges.front() else { return Ok(None) };
            if self.limit > self.returned {
                // The last page was not full.
                ranges.pop_front();
                (self.limit, self.returned) = (0, 0);
                continue;
            }
            // A page twice as long as before costs no more than to continue, and no index has to be read from its middle.
            self.limit = (2 * self.limit).max(FIRST_PAGE);
            tx.prefetch(&[Prefetch::Heads(range.clone(), self.limit)])?;
            self.heads = tx.heads(range, self.limit)?.into_iter().skip(self.returned).collect();
            tx.prefetch(
                &self.heads.iter().map(|head| Prefetch::Entry(&head.scope, &head.key)).collect::<Vec<_>>(),
            )?;
            if self.heads.is_empty() {
                ranges.pop_front();
                (self.limit, self.returned) = (0, 0);
            }
        }
    }
}

/// The ranges whose entries are evicted, in this order.
pub(crate) fn eviction_order(row: &ScopePolicies) -> Vec<Range> {
    let ScopePolicies { scope, policies, evicting_since, .. } = row;
    match policies.eviction {
        Eviction::Lru => vec![Range::oldest_entries(scope)],
        // An entry from before this policy may have no count, and counts as least used.
        Eviction::Lfu => {
            vec![Range::oldest_entries(scope).before(*evicting_since), Range::least_used_entries(scope)]
        }
        Eviction::Refuse => Vec::new(),
    }
}
