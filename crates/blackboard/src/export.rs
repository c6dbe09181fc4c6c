//! `export`: the complete state of the board, as values.

use serde::Serialize;

use crate::agent::Agent;
use crate::board::Board;
use crate::entry::Entry;
use crate::error::Result;
use crate::project::Project;
use crate::protocol::CustomProtocol;
use crate::revision::Revision;
use crate::scope::{Guard, ScopeDetails, ScopePolicies};
use crate::store::{Prefetch, Range};
use crate::work::{Dependency, WorkItem};

/// One state of the board, without the event log, which is read in batches with [`Board::events`].
#[derive(Clone, Debug, PartialEq, Serialize)]
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
    /// All entries of all scopes, including locks, file reservations, and expired entries that were not swept yet.
    pub entries: Vec<Entry>,
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
            for row in &rows {
                if guard.may_see_row(row)? {
                    scopes.push(ScopeDetails::among(&entries, row));
                }
            }
            Ok(Exported {
                revision: tx.revision()?,
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
}
