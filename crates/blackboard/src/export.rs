//! `export`: the complete state of the board or of one scope, as values.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::agent::Agent;
use crate::board::Board;
use crate::clock::Timestamp;
use crate::entry::{Entry, check_known_scope};
use crate::error::Result;
use crate::page::{Grouping, PageMap};
use crate::project::Project;
use crate::protocol::{CustomProtocol, protocol_name};
use crate::revision::Revision;
use crate::scope::{Guard, ScopeDetails, ScopePolicies, not_found as scope_not_found};
use crate::store::{Key, Prefetch, Range, Tx};
use crate::work::{Dependency, WorkItem};

/// One state of the board or of a scope, without the event log, which is read in batches with [`Board::events`].
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Exported {
    /// The revision of this state.
    pub revision: Revision,
    /// All agents.
    pub agents: Vec<Agent>,
    /// All projects.
    pub projects: Vec<Project>,
    /// All protocols that were defined on the board.
    pub protocols: Vec<CustomProtocol>,
    /// All work items.
    pub work_items: Vec<WorkItem>,
    /// All dependencies between work items.
    pub work_dependencies: Vec<Dependency>,
    /// The scopes that have policies.
    pub scopes: Vec<ScopeDetails>,
    /// The scopes that are mapped into pages. The pages are derived from the entries.
    pub page_maps: Vec<ExportedMap>,
    /// All entries of all scopes, including locks, file reservations, and expired entries that were not swept yet.
    pub entries: Vec<Entry>,
}

/// A scope that is mapped into pages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ExportedMap {
    /// The scope.
    pub scope: String,
    /// How its entries are grouped.
    pub by: Grouping,
    /// The most tokens of a page.
    pub max_tokens: u64,
    /// When it was mapped.
    pub mapped_at: Timestamp,
    /// The author of the mapping.
    pub mapped_by: String,
}

impl From<PageMap> for ExportedMap {
    fn from(map: PageMap) -> ExportedMap {
        let PageMap { scope, by, max_tokens, mapped_at, mapped_by, .. } = map;
        ExportedMap { scope, by, max_tokens, mapped_at, mapped_by }
    }
}

impl Board {
    /// The complete state of the board at one revision.
    ///
    /// ```
    /// # use blackboard::{Board, work::Create};
    /// # let board = Board::memory();
    /// board.work().create(&Create::new("fix-tests", "Fix the tests"))?;
    /// assert_eq!(board.export()?.work_items.len(), 1);
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn export(&self) -> Result<Exported> {
        let ranges = [
            Range::agents(),
            Range::projects(),
            Range::protocols(),
            Range::work_items(),
            Range::scope_policies(),
            Range::page_maps(),
            Range::all_entries(),
        ];
        let prefetch: Vec<_> = ranges.map(Prefetch::Range).into_iter().chain([Prefetch::Revision]).collect();
        self.read_list(&prefetch, |tx| {
            let work_items = tx.rows::<WorkItem>(&Range::work_items())?;
            let blockers = work_items.iter().map(|item| Prefetch::Range(Range::blockers_of(&item.item_id)));
            tx.prefetch(&blockers.collect::<Vec<_>>())?;
            let mut work_dependencies = Vec::new();
            for item in &work_items {
                work_dependencies.extend(tx.rows::<Dependency>(&Range::blockers_of(&item.item_id))?);
            }
            let entries = tx.rows::<Entry>(&Range::all_entries())?;
            let rows = tx.rows::<ScopePolicies>(&Range::scope_policies())?;
            let guard = Guard::of_board(self, tx);
            let entries = guard.readable(entries)?;
            let mut scopes = Vec::with_capacity(rows.len());
            for row in rows.iter().filter(|row| row.is_live()) {
                if guard.may_see_row(row)? {
                    scopes.push(ScopeDetails::among(&entries, row));
                }
            }
            let mut page_maps = Vec::new();
            for map in PageMap::all(self, tx)? {
                let policies = rows.iter().find(|row| row.scope == map.scope);
                if policies.map_or(Ok(true), |row| guard.may_see_row(row))? {
                    page_maps.push(map.into());
                }
            }
            Ok(Exported {
                revision: tx.revision()?,
                page_maps,
                agents: tx.rows(&Range::agents())?,
                projects: tx.rows(&Range::projects())?,
                protocols: tx.rows(&Range::protocols())?,
                work_items,
                work_dependencies,
                scopes,
                entries,
            })
        })
    }

    /// The entries and the policies of one scope at one revision, and the protocols that the policies name. The rest of the
    /// result is empty.
    ///
    /// ```
    /// # use blackboard::{Board, entry::{Value, Write}};
    /// # let board = Board::memory();
    /// for scope in ["team-1", "team-2"] {
    ///     board.scope(scope).write(&Write::new("a", Value::of(&1)?))?;
    /// }
    /// assert_eq!(board.export_scope("team-1")?.entries.len(), 1);
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn export_scope(&self, scope: &str) -> Result<Exported> {
        check_known_scope(scope)?;
        let (policies, range) = (Key::ScopePolicies(scope.to_owned()), Range::entries(scope, ""));
        let prefetch = [
            Prefetch::Row(policies.clone()),
            Prefetch::Row(PageMap::key_of(scope)),
            Prefetch::Range(range.clone()),
            Prefetch::Revision,
        ];
        self.read_list(&prefetch, |tx| {
            let row = tx.row::<ScopePolicies>(&policies)?;
            let stored = tx.rows::<Entry>(&range)?;
            if row.as_ref().is_none_or(|row| !row.is_live()) && stored.is_empty() {
                return Err(scope_not_found(scope));
            }
            let guard = Guard::of_board(self, tx);
            guard.check_scope(scope)?;
            let entries = guard.readable(stored)?;
            let live = || row.iter().filter(|row| row.is_live());
            let scopes = live().map(|row| ScopeDetails::among(&entries, row)).collect();
            let protocols =
                live().next().map(|row| named_protocols(tx, row)).transpose()?.unwrap_or_default();
            let page_maps = PageMap::read(self, tx, scope)?.into_iter().map(ExportedMap::from).collect();
            let revision = tx.revision()?;
            Ok(Exported { revision, protocols, scopes, page_maps, entries, ..Exported::default() })
        })
    }
}

/// The protocols of the board that the rules of a scope name.
fn named_protocols(tx: &dyn Tx, row: &ScopePolicies) -> Result<Vec<CustomProtocol>> {
    let names: BTreeSet<_> = row.policies.validation.protocols().map(protocol_name).collect();
    let keys: Vec<_> = names.into_iter().map(|name| Key::CustomProtocol(name.to_owned())).collect();
    if !keys.is_empty() {
        tx.prefetch(&keys.iter().cloned().map(Prefetch::Row).collect::<Vec<_>>())?;
    }
    keys.iter().filter_map(|key| tx.row(key).transpose()).collect()
}
