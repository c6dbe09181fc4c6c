//! `page list`: the pages of mapped scopes.

use serde::Serialize;

use super::state::{PageState, prefetch_state};
use super::view::{id_of, visible_pages};
use super::{Grouping, PageMap, Pages, not_mapped};
use crate::board::Board;
use crate::clock::Timestamp;
use crate::entry::{Actor, check_known_scope};
use crate::error::Result;
use crate::revision::Revision;
use crate::scope::Guard;
use crate::store::{Prefetch, Range, Tx};

/// A page without its entries.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PageSummary {
    /// Its name: `bb:SCOPE:LOCALITY:HASH`.
    pub id: String,
    /// The scope.
    pub scope: String,
    /// The group: tags, a time, or a prefix of keys.
    pub locality: String,
    /// A digest of its entries, which names the page as well.
    pub hash: String,
    /// How many entries it has.
    pub entries: u64,
    /// About how many tokens it has.
    pub tokens: u64,
    /// The revision of its newest entry.
    pub revision: Revision,
}

/// A mapped scope.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MappedScope {
    /// The scope.
    pub scope: String,
    /// How its entries are grouped.
    pub by: Grouping,
    /// The most tokens of a page.
    pub max_tokens: u64,
    /// How many pages it has.
    pub pages: u64,
    /// How many changed entries are not in them yet, because there are too many for one call.
    pub behind: u64,
    /// When it was mapped.
    pub mapped_at: Timestamp,
    /// The author of the mapping.
    pub mapped_by: String,
}

/// The pages of one or of all mapped scopes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ListedPages {
    /// The mapped scopes, by name.
    pub scopes: Vec<MappedScope>,
    /// Their pages, by scope, group and first key.
    pub pages: Vec<PageSummary>,
    /// The revision of the board that the pages belong to.
    pub revision: Revision,
}

impl ListedPages {
    /// How many changed entries are not in the pages yet.
    pub fn behind(&self) -> u64 {
        self.scopes.iter().map(|scope| scope.behind).sum()
    }
}

impl Pages<'_> {
    /// The pages of a mapped scope, or of all mapped scopes that the caller sees, as of now. Changes nothing: what is not
    /// stored yet is packed in memory, up to 1,000 changed entries of a scope.
    ///
    /// ```
    /// # use blackboard::{Board, Code, entry::{Value, Write}, page::MapScope};
    /// # let board = Board::memory();
    /// let tags = vec!["login".to_owned()];
    /// board.pages().map(&MapScope::of("team-1"))?;
    /// board.scope("team-1").write(&Write { tags, ..Write::new("lesson:1", Value::of(&1)?) })?;
    /// let listed = board.pages().list(Some("team-1"))?;
    /// assert!(listed.pages[0].id.starts_with("bb:team-1:login:"));
    /// assert_eq!((listed.pages[0].entries, listed.behind()), (1, 0));
    /// assert_eq!(board.pages().list(Some("team-2")).unwrap_err().code(), Code::NotMapped);
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn list(&self, scope: Option<&str>) -> Result<ListedPages> {
        let mut prefetch = vec![Prefetch::Revision];
        if let Some(scope) = scope {
            check_known_scope(scope)?;
            prefetch.push(Prefetch::Row(PageMap::key_of(scope)));
            prefetch.extend(Guard::prefetch(self.board, &Actor::default(), [scope]));
        } else {
            prefetch.push(Prefetch::Range(Range::page_maps()));
        }
        self.board.read_list(&prefetch, |tx| {
            let guard = Guard::of_board(self.board, tx);
            let maps = match scope {
                Some(scope) => {
                    guard.check_scope(scope)?;
                    let map = PageMap::read(self.board, tx, scope)?;
                    vec![map.ok_or_else(|| not_mapped(scope))?]
                }
                None => seen_maps(self.board, tx, &guard)?,
            };
            let next: Vec<_> = maps.iter().flat_map(prefetch_state).collect();
            tx.prefetch(&next)?;
            let mut listed = ListedPages { revision: tx.revision()?, ..ListedPages::default() };
            for map in maps {
                let state = PageState::read(tx, map)?;
                listed.add(state, &guard)?;
            }
            Ok(listed)
        })
    }
}

/// The mapped scopes that the caller sees.
pub(super) fn seen_maps(board: &Board, tx: &dyn Tx, guard: &Guard<'_>) -> Result<Vec<PageMap>> {
    let maps = PageMap::all(board, tx)?;
    let next = guard.prefetch_of(maps.iter().map(|map| map.scope.as_str()));
    if !next.is_empty() {
        tx.prefetch(&next)?;
    }
    let mut seen = Vec::with_capacity(maps.len());
    for map in maps {
        if guard.may_see(&map.scope)? {
            seen.push(map);
        }
    }
    Ok(seen)
}

impl ListedPages {
    fn add(&mut self, state: PageState, guard: &Guard<'_>) -> Result<()> {
        let (map, behind) = (state.map.clone(), state.behind);
        let pages = visible_pages(state, guard)?;
        let PageMap { scope, by, max_tokens, mapped_at, mapped_by, .. } = map;
        self.scopes.push(MappedScope {
            scope: scope.clone(),
            by,
            max_tokens,
            pages: pages.len() as u64,
            behind,
            mapped_at,
            mapped_by,
        });
        self.pages.extend(pages.into_iter().map(|page| PageSummary {
            id: id_of(&scope, &page),
            scope: scope.clone(),
            revision: page.newest(),
            entries: page.entries.len() as u64,
            tokens: page.tokens,
            locality: page.locality,
            hash: page.hash,
        }));
        Ok(())
    }
}
