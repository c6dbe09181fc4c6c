//! `page show`: one page with its entries.

use serde::Serialize;

use super::list::seen_maps;
use super::state::{PageState, prefetch_state};
use super::view::{id_of, may_be_of, named, visible_pages};
use super::{Grouping, Pages};
use crate::entry::Entry;
use crate::error::{Code, Refusal, Result};
use crate::hint::Hint;
use crate::revision::Revision;
use crate::scope::Guard;
use crate::store::{Key, Prefetch, Range};
use crate::text::shown;

/// A page with its entries.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ShownPage {
    /// Its name: `bb:SCOPE:LOCALITY:HASH`.
    pub id: String,
    /// The scope.
    pub scope: String,
    /// How the entries of the scope are grouped.
    pub by: Grouping,
    /// The group: tags, a time, or a prefix of keys.
    pub locality: String,
    /// A digest of its entries, which names the page as well.
    pub hash: String,
    /// About how many tokens it has.
    pub tokens: u64,
    /// The revision of its newest entry.
    pub revision: Revision,
    /// How many changed entries of the scope are in no page yet, because there are too many for one call.
    pub behind: u64,
    /// Its entries, by key, without expired ones that no sweep has removed yet.
    pub entries: Vec<Entry>,
}

impl Pages<'_> {
    /// A page, by its name or by its hash alone, with its entries as of now. A change of its entries gives a page another
    /// hash, so an old one is refused. The name of a group, `bb:SCOPE:LOCALITY`, is enough if the group has one page.
    ///
    /// ```
    /// # use blackboard::{Board, Code, entry::{Value, Write}, page::MapScope};
    /// # let board = Board::memory();
    /// board.pages().map(&MapScope::of("team-1"))?;
    /// board.scope("team-1").write(&Write::new("lesson:1", Value::of("use the fixture")?))?;
    /// let id = board.pages().list(None)?.pages[0].id.clone();
    /// assert_eq!(board.pages().show(&id)?.entries[0].key, "lesson:1");
    /// assert_eq!(board.pages().show("bb:team-1:other")?.id, id);
    /// board.scope("team-1").delete("lesson:1")?;
    /// assert_eq!(board.pages().show(&id).unwrap_err().code(), Code::PageNotFound);
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn show(&self, page: &str) -> Result<ShownPage> {
        self.board.read_list(&[Prefetch::Range(Range::page_maps())], |tx| {
            let guard = Guard::of_board(self.board, tx);
            let mut maps = seen_maps(self.board, tx, &guard)?;
            maps.retain(|map| may_be_of(page, &map.scope));
            let next: Vec<_> = maps.iter().flat_map(prefetch_state).collect();
            if !next.is_empty() {
                tx.prefetch(&next)?;
            }
            for map in maps {
                let (scope, by) = (map.scope.clone(), map.by);
                let state = PageState::read(tx, map)?;
                let behind = state.behind;
                let pages = visible_pages(state, &guard)?;
                let Some(found) = named(page, &scope, &pages) else { continue };
                let keys = || found.entries.iter().map(|entry| entry.key.as_str());
                tx.prefetch(&keys().map(|key| Prefetch::Entry(&scope, key)).collect::<Vec<_>>())?;
                let mut entries = Vec::with_capacity(found.entries.len());
                for key in keys() {
                    let entry = tx.row::<Entry>(&Key::Entry(scope.clone(), key.to_owned()))?;
                    entries.extend(entry.filter(|entry| !entry.is_expired(tx.now())));
                }
                return Ok(ShownPage {
                    id: id_of(&scope, found),
                    by,
                    revision: found.newest(),
                    tokens: found.tokens,
                    locality: found.locality.clone(),
                    hash: found.hash.clone(),
                    scope,
                    behind,
                    entries,
                });
            }
            Err(Refusal::new(Code::PageNotFound, format!("page \"{}\" not found", shown(page)))
                .hint(Hint::ListPages)
                .into())
        })
    }
}
