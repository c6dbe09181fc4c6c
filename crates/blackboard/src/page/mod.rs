//! Pages: a mapped scope, packed into parts of a bounded number of tokens.
//!
//! Pages are derived from entries. Packing is a pure function (`pack.rs`): the same entries make the same pages, whatever
//! happened before. The pages that a board stores belong to one revision, the cursor of their scope's map, and both
//! change in one commit. No writer of entries knows of pages: the fold (`update.rs`) reads what happened after the
//! cursor, packs without a lock, and commits the pages that differ if no other fold was faster. Readers do the same in
//! memory (`state.rs`), so what they show never depends on how far the stored pages are (`docs/decisions/0027`).
//!
//! A stored page has the keys and revisions of its entries, never their values. Its events have no text of an entry at all.
//!
//! | File | What it is about |
//! |---|---|
//! | `map.rs`, `unmap.rs`, `list.rs`, `show.rs`, `update.rs` | the verbs |
//! | `grouping.rs` | to which group of pages an entry belongs |
//! | `pack.rs` | packs the entries of a group into pages |
//! | `tokens.rs` | the estimate of tokens |
//! | `state.rs` | the pages of a scope in one state of the board, and which stored ones differ |
//! | `repack.rs` | what a change of entries replaces |
//! | `view.rs` | the pages that a caller sees |
//! | `check.rs` | for tests: the stored pages are those that a new board would store |

#[cfg(any(test, feature = "conformance"))]
pub(crate) mod check;
mod grouping;
mod list;
mod map;
mod pack;
mod repack;
mod show;
mod state;
#[cfg(test)]
mod tests;
mod tokens;
mod unmap;
mod update;
mod view;

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

pub use self::grouping::Grouping;
pub use self::list::{ListedPages, MappedScope, PageSummary};
pub use self::map::{MapOutcome, MapScope, Mapped};
pub use self::pack::{DEFAULT_TOKENS, MAX_TOKENS, MIN_TOKENS};
pub use self::show::ShownPage;
pub use self::tokens::tokens_of;
pub use self::unmap::{UnmapOutcome, Unmapped};
pub use self::update::UpdatedPages;
use crate::board::Board;
use crate::clock::Timestamp;
use crate::error::{Code, Error, Fault, Refusal, Result};
use crate::hint::Hint;
use crate::revision::Revision;
use crate::store::record::{Cell, Column, StoredCell, checked_revision, record};
use crate::store::{BookkeepingRow, Key, Range, Tx};

/// The pages of mapped scopes: `board.pages()`.
#[derive(Clone, Copy)]
pub struct Pages<'a> {
    pub(crate) board: &'a Board,
}

/// A scope that is mapped into pages. It is stored as a bookkeeping row: a table of its own would cost the start of every
/// command, which parses the schema.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PageMap {
    /// The scope.
    #[serde(skip)]
    pub(crate) scope: String,
    /// How its entries are grouped.
    pub(crate) by: Grouping,
    /// The most tokens of a page.
    pub(crate) max_tokens: u64,
    /// The revision of the board before it was mapped, which another mapping of the scope does not have.
    pub(crate) mapping: Revision,
    /// The revision up to which the stored pages contain what happened; zero before they are complete for the first time.
    pub(crate) cursor: Revision,
    /// How often the stored pages were changed. A fold that was decided before another one changed them is dropped.
    pub(crate) folds: u64,
    /// When the scope was mapped.
    pub(crate) mapped_at: Timestamp,
    /// Its author.
    pub(crate) mapped_by: String,
}

/// How the names of the rows of maps begin.
const MAP: &str = "page-map:";

impl PageMap {
    /// The key of the row of a scope.
    pub(crate) fn key_of(scope: &str) -> Key {
        Key::BookkeepingRow(Cow::Owned(format!("{MAP}{scope}")))
    }

    /// The row.
    fn row(&self) -> BookkeepingRow {
        let value = serde_json::to_string(self).unwrap_or_default();
        BookkeepingRow { name: Cow::Owned(format!("{MAP}{}", self.scope)), value }
    }

    /// The map of a scope, if it is mapped. A row that another program has made unreadable is reported, and counts as none.
    pub(crate) fn read(board: &Board, tx: &dyn Tx, scope: &str) -> Result<Option<PageMap>> {
        let key = PageMap::key_of(scope);
        match tx.row::<BookkeepingRow>(&key) {
            Err(error) if error.is_unreadable_row() => {
                board.report_unreadable(&key, &error);
                Ok(None)
            }
            row => Ok(row?.and_then(|row| PageMap::of(board, &row))),
        }
    }

    /// All maps, by scope. The caller has announced [`Range::page_maps`].
    pub(crate) fn all(board: &Board, tx: &dyn Tx) -> Result<Vec<PageMap>> {
        let rows = tx.rows::<BookkeepingRow>(&Range::page_maps())?;
        Ok(rows.iter().filter_map(|row| PageMap::of(board, row)).collect())
    }

    fn of(board: &Board, row: &BookkeepingRow) -> Option<PageMap> {
        let scope = row.name.strip_prefix(MAP)?.to_owned();
        let map = serde_json::from_str::<PageMap>(&row.value);
        let map = map.ok().filter(|map| {
            let revisions = [map.mapping, map.cursor].into_iter();
            revisions.map(Revision::get).all(|id| checked_revision(id).is_some())
        });
        if map.is_none() {
            let error = Fault::new(Code::Corrupt, "another program has changed a page map").into();
            board.report_unreadable(&PageMap::key_of(&scope), &error);
        }
        map.map(|map| PageMap { scope, ..map })
    }
}

/// A stored page: a part of a group of entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContextPage {
    /// The scope.
    pub scope: String,
    /// The group.
    pub locality: String,
    /// A digest of its entries.
    pub hash: String,
    /// Its entries.
    pub content: PageContent,
}

record! {
    ContextPage in "pages", generation 0 {
        key { scope, locality, hash }
        columns { content }
    }
    indexes {
        /// All pages, by scope and group.
        ALL: by (scope, locality, hash);
        /// The pages of a scope, by group.
        IN_SCOPE: by (locality, hash) of (scope);
    }
}

impl Range {
    /// All mapped scopes, by name.
    pub(crate) fn page_maps() -> Range {
        Range::bookkeeping_rows(MAP)
    }

    /// All pages of all scopes.
    pub fn all_pages() -> Range {
        Range::all(ContextPage::ALL)
    }

    /// The pages of a scope, by group.
    pub fn pages_of(scope: &str) -> Range {
        Range::of(ContextPage::IN_SCOPE, [scope])
    }
}

/// An entry of a page, without its value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PackedEntry {
    /// The key.
    pub key: String,
    /// The event that wrote the version that was packed.
    pub revision: Revision,
    /// How many tokens it has in a page.
    pub tokens: u64,
}

/// The entries of a stored page, with their stored form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageContent {
    /// The mapping that the page belongs to. A page of an earlier one that is left over counts as none.
    pub mapping: Revision,
    /// By key.
    pub entries: Vec<PackedEntry>,
    json: String,
}

/// The stored form: the mapping, and keys, revisions and tokens.
type StoredContent = (i64, Vec<(String, i64, u64)>);

impl PageContent {
    /// With its stored form.
    pub(crate) fn new(mapping: Revision, entries: Vec<PackedEntry>) -> PageContent {
        let cells = entries.iter().map(|entry| (entry.key.clone(), entry.revision.get(), entry.tokens));
        let stored: StoredContent = (mapping.get(), cells.collect());
        PageContent { mapping, json: serde_json::to_string(&stored).unwrap_or_default(), entries }
    }
}

impl Column for PageContent {
    fn cell(&self) -> Cell<'_> {
        Cell::Text(&self.json)
    }

    fn read(cell: &StoredCell<'_>) -> Result<PageContent> {
        let json = cell.text()?.to_owned();
        let (mapping, cells): StoredContent =
            serde_json::from_str(&json).map_err(|error| cell.damaged(error))?;
        let checked = |id| checked_revision(id).ok_or_else(|| cell.damaged("no revision of a board"));
        let entries = cells
            .into_iter()
            .map(|(key, revision, tokens)| Ok(PackedEntry { key, revision: checked(revision)?, tokens }));
        Ok(PageContent { mapping: checked(mapping)?, entries: entries.collect::<Result<_>>()?, json })
    }
}

/// The refusal of a scope that is not mapped.
fn not_mapped(scope: &str) -> Error {
    Refusal::new(Code::NotMapped, format!("scope {scope} is not mapped into pages"))
        .hint(Hint::MapScope(scope.to_owned()))
        .detail("scope", scope)
        .into()
}
