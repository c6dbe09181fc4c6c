//! `scope list`: the scopes that have policies or entries.

use std::collections::BTreeMap;

use super::{Guard, ScopeDetails, ScopePolicies, ScopeStatus, Scopes};
use crate::entry::{ScopeSize, first_scope_from, scopes_from};
use crate::error::Result;
use crate::store::{Prefetch, Range, Tx};

impl Scopes<'_> {
    /// The scopes that have policies or entries, by name, without those of locks and files.
    ///
    /// ```
    /// # use blackboard::{Board, entry::{Value, Write}, scope::{CreateScope, Policies}};
    /// # let board = Board::memory();
    /// board.scopes().create(&CreateScope::new("cache", Policies::default()))?;
    /// board.scope("team-1").write(&Write::new("a", Value::of(&1)?))?;
    /// let scopes = board.scopes().list()?;
    /// assert_eq!((scopes[0].scope.as_str(), scopes[0].entries), ("cache", 0));
    /// assert_eq!((scopes[1].scope.as_str(), scopes[1].entries), ("team-1", 1));
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn list(&self) -> Result<Vec<ScopeDetails>> {
        let prefetch = [Prefetch::Range(Range::scope_policies()), Prefetch::Heads(first_scope_from(None), 1)];
        self.board.read_list(&prefetch, |tx| {
            let rows = tx.rows::<ScopePolicies>(&Range::scope_policies())?;
            let mut scopes: BTreeMap<_, _> =
                rows.into_iter().map(|row| (row.scope.clone(), (0, Some(row)))).collect();
            let known = |scope: &str| scopes.get(scope).and_then(|(_, row)| row.as_ref()?.entries);
            for ScopeSize { scope, entries } in sizes(tx, known)? {
                scopes.entry(scope).or_insert((0, None)).0 = entries;
            }
            let guard = Guard::of_board(self.board, tx);
            let mut details = Vec::with_capacity(scopes.len());
            for (scope, (entries, row)) in scopes {
                let is_gone = entries == 0 && row.as_ref().is_some_and(|row| !row.is_live());
                if is_gone || !row.as_ref().map_or(Ok(true), |row| guard.may_see_row(row))? {
                    continue;
                }
                let row = row.filter(|row| row.policies.status != ScopeStatus::Deleted);
                details.push(ScopeDetails::of(scope, entries, row.as_ref()));
            }
            Ok(details)
        })
    }

    /// The scopes that have entries, by name, without those of locks and files.
    ///
    /// ```
    /// # use blackboard::{Board, entry::{Value, Write}};
    /// # let board = Board::memory();
    /// board.scope("team-1").write(&Write::new("a", Value::of(&1)?))?;
    /// assert_eq!(board.scopes().sizes()?[0].scope, "team-1");
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn sizes(&self) -> Result<Vec<ScopeSize>> {
        self.board.read_list(&[Prefetch::Heads(first_scope_from(None), 1)], |tx| {
            let guard = Guard::of_board(self.board, tx);
            let mut sizes = sizes(tx, |_| None)?;
            if !guard.is_operator() {
                tx.prefetch(&guard.prefetch_of(sizes.iter().map(|size| size.scope.as_str())))?;
                let seen = sizes.iter().map(|size| guard.may_see(&size.scope)).collect::<Result<Vec<_>>>()?;
                let mut seen = seen.into_iter();
                sizes.retain(|_| seen.next().unwrap_or(false));
            }
            Ok(sizes)
        })
    }
}

/// The scopes that have entries. What `known` does not have is counted.
fn sizes(tx: &dyn Tx, known: impl Fn(&str) -> Option<u64>) -> Result<Vec<ScopeSize>> {
    let scopes = scopes_from(tx, None)?;
    let unknown = scopes.iter().filter(|scope| known(scope).is_none());
    let counts: Vec<_> = unknown.map(|scope| Prefetch::Count(Range::entries(scope, ""))).collect();
    if !counts.is_empty() {
        tx.prefetch(&counts)?;
    }
    let sizes = scopes.into_iter().map(|scope| {
        let entries = known(&scope).map_or_else(|| tx.count(&Range::entries(&scope, "")), Ok)?;
        Ok(ScopeSize { scope, entries })
    });
    sizes.collect()
}
