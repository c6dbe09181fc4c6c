//! Makes space in a scope that is full: the entry that is evicted for a write.

use super::{EntryEditor, KeyState};
use crate::entry::wording::{EventWording, Removal};
use crate::error::Result;
use crate::scope::{EVICTION_CANDIDATES, EvictionPolicy, ScopePolicies, eviction_order, scope_full};
use crate::store::{Prefetch, Range};

impl EntryEditor<'_> {
    /// Removes one entry if the scope is full, and returns its key if it had not expired. Leased entries stay, and so does
    /// what this commit wrote.
    pub(super) fn make_space(
        &mut self,
        scope: &str,
        policies: Option<&ScopePolicies>,
    ) -> Result<Option<String>> {
        let stored =
            policies.and_then(|row| Some((row.policies.max_entries?, row.entries.unwrap_or_default())));
        let (limit, before) = match (stored, self.guard.custom().max_entries(scope)) {
            (Some(stored), _) => stored,
            (None, Some(limit)) => (limit, self.counted(scope, limit)?),
            (None, None) => return Ok(None),
        };
        if before.saturating_add_signed(self.scope_state(scope).added) < limit {
            return Ok(None);
        }
        if policies.is_some_and(|row| row.policies.evicts_nothing()) {
            return Err(scope_full(scope, limit, false));
        }
        if let Some(policy) = self.guard.custom().eviction(scope) {
            let evicted = self.evict_by(&*policy, scope, limit)?;
            return self.if_shown(scope, evicted);
        }
        let order = || policies.map(eviction_order).unwrap_or_default();
        while let Some(at) = self.next_evictable(scope, order)? {
            if self.expire_at(at) {
                return Ok(None);
            }
            if let Some(key) = self.evict(at) {
                return self.if_shown(scope, Some(key));
            }
        }
        Err(scope_full(scope, limit, true))
    }

    /// An evicted key. The caller may be allowed to write, and not to learn of other keys.
    fn if_shown(&mut self, scope: &str, evicted: Option<String>) -> Result<Option<String>> {
        match evicted {
            Some(key) => Ok(self.may_read(scope, &key)?.then_some(key)),
            None => Ok(None),
        }
    }

    /// Evicts an entry that a policy of the program chooses from the first ones of its order.
    fn evict_by(&mut self, policy: &dyn EvictionPolicy, scope: &str, limit: u64) -> Result<Option<String>> {
        let mut offered = std::mem::take(&mut self.scope_state(scope).offered);
        offered.retain(|&at| self.is_evictable(at));
        while offered.len() < EVICTION_CANDIDATES {
            let Some(at) = self.next_evictable(scope, || policy.order().ranges(scope))? else { break };
            if self.expire_at(at) {
                self.scope_state(scope).offered = offered;
                return Ok(None);
            }
            if self.is_evictable(at) && !offered.contains(&at) {
                offered.push(at);
            }
        }
        let entries: Vec<_> = offered.iter().filter_map(|&at| self.states[at].current.clone()).collect();
        let chosen = policy.candidates(&entries, 1);
        let has_key =
            |at: usize, key: &str| self.states[at].current.as_ref().is_some_and(|entry| entry.key == key);
        let at = chosen.iter().find_map(|key| offered.iter().copied().find(|&at| has_key(at, key)));
        self.scope_state(scope).offered = offered;
        let evicted = at.and_then(|at| self.evict(at));
        evicted.map(Some).ok_or_else(|| scope_full(scope, limit, true))
    }

    /// The next entry in the order of evictions that this commit has not changed.
    fn next_evictable(&mut self, scope: &str, order: impl Fn() -> Vec<Range>) -> Result<Option<usize>> {
        let tx = self.tx;
        while let Some(head) = self.scope_state(scope).evictable.next(tx, &order)? {
            let known = self.keys.contains_key(&(head.scope.clone(), head.key.clone()));
            let at = self.open(&head.scope, &head.key)?;
            if !known {
                self.evictions += 1;
                // A leased entry is passed over: the commit does nothing with its value.
                let now = self.tx.now();
                let leased = self.states[at].current.as_ref();
                let leased = leased.filter(|entry| entry.session_id.is_some() && !entry.is_expired(now));
                self.bytes -= leased.map_or(0, |entry| entry.value.as_str().len());
            }
            if !self.states[at].changed {
                return Ok(Some(at));
            }
        }
        Ok(None)
    }

    /// Whether an entry is without a lease, and as it was before the commit.
    fn is_evictable(&self, at: usize) -> bool {
        let KeyState { current, changed, .. } = &self.states[at];
        !changed && current.as_ref().is_some_and(|entry| entry.session_id.is_none())
    }

    /// Evicts an entry and returns its key, unless it has a lease.
    fn evict(&mut self, at: usize) -> Option<String> {
        if !self.is_evictable(at) {
            return None;
        }
        self.remove_at(at, Removal::Evicted, EventWording::AsEntry).map(|removed| removed.key)
    }

    /// How many entries a scope had before the commit, at most one more than `limit`. The commit validates it.
    fn counted(&mut self, scope: &str, limit: u64) -> Result<u64> {
        if let Some(counted) = self.scope_state(scope).counted {
            return Ok(counted);
        }
        let most = usize::try_from(limit).unwrap_or(usize::MAX).saturating_add(1);
        let whole = Range::entries(scope, "");
        self.tx.prefetch(&[Prefetch::Heads(whole.clone(), most)])?;
        let counted = self.tx.heads(&whole, most)?.len() as u64;
        self.scope_state(scope).counted = Some(counted);
        Ok(counted)
    }
}
