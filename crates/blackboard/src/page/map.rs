//! `page map`: maps a scope into pages.

use serde::{Deserialize, Serialize};

use super::pack::{DEFAULT_TOKENS, check_limit};
use super::{Grouping, PageMap, Pages};
use crate::agent::prefetch_agent;
use crate::clock::Timestamp;
use crate::entry::{Actor, EntryEditor, check_not_reserved, check_scope};
use crate::error::Result;
use crate::event::{EventType, NewEvent, TargetType};
use crate::revision::{Pending, Revision};
use crate::scope::prefetch_policies;
use crate::store::{Changes, Prefetch};

/// A scope to map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MapScope {
    /// The scope.
    pub scope: String,
    /// How its entries are grouped.
    pub grouping: Option<Grouping>,
    /// The most tokens of a page.
    pub max_tokens: Option<u64>,
    /// The session that acts.
    pub session: Option<String>,
}

impl MapScope {
    /// A scope, by tags and with the default limit.
    pub fn of(scope: &str) -> MapScope {
        MapScope { scope: scope.to_owned(), grouping: None, max_tokens: None, session: None }
    }
}

/// What a call to map a scope did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MapOutcome {
    /// The scope is mapped from now on.
    Mapped,
    /// It was mapped before. Nothing was changed.
    AlreadyMapped,
}

/// The result of a call to map a scope.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Mapped {
    /// What the call did.
    pub outcome: MapOutcome,
    /// The scope.
    pub scope: String,
    /// How its entries are grouped.
    pub by: Grouping,
    /// The most tokens of a page.
    pub max_tokens: u64,
    /// The options of the call that the existing mapping does not have.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ignored: Vec<&'static str>,
    /// The number of its pages.
    pub pages: u64,
    /// The number of entries in them.
    pub entries: u64,
    /// How many changed entries are not in them yet.
    pub behind: u64,
    /// The event, if the call mapped it.
    pub revision: Option<Revision>,
}

impl Pending for Mapped {
    fn resolve(&mut self, first: Revision) {
        self.revision.resolve(first);
    }
}

impl Pages<'_> {
    /// Maps a scope: its entries are packed into pages, from now on until it is unmapped. A scope that is mapped already
    /// stays as it is.
    ///
    /// ```
    /// # use blackboard::{Board, entry::{Value, Write}, page::{Grouping, MapOutcome, MapScope}};
    /// # let board = Board::memory();
    /// board.scope("team-1").write(&Write::new("lesson:1", Value::of("the tests need a server")?))?;
    /// let by_prefix = MapScope { grouping: Some(Grouping::Prefix), ..MapScope::of("team-1") };
    /// let mapped = board.pages().map(&by_prefix)?;
    /// assert_eq!((mapped.outcome, mapped.pages, mapped.entries), (MapOutcome::Mapped, 1, 1));
    /// assert_eq!(board.pages().map(&by_prefix)?.outcome, MapOutcome::AlreadyMapped);
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn map(&self, request: &MapScope) -> Result<Mapped> {
        let MapScope { scope, max_tokens, session, .. } = request;
        check_scope(scope)?;
        check_not_reserved(scope)?;
        check_limit(max_tokens.unwrap_or(DEFAULT_TOKENS))?;
        let prefetch = [Prefetch::Row(PageMap::key_of(scope)), Prefetch::Revision]
            .into_iter()
            .chain(prefetch_agent(session.as_deref()));
        let prefetch: Vec<_> = prefetch.chain(prefetch_policies(scope)).collect();
        let actor = Actor { session: session.clone(), ..Actor::default() };
        let callers = session.as_deref();
        let mut mapped = self.board.commit_as(callers.as_slice(), "page map", &prefetch, |tx| {
            let mut editor = EntryEditor::new(self.board, tx, &actor)?;
            editor.check_member_of(scope)?;
            let before = PageMap::read(self.board, tx, scope)?;
            let (changes, mapped) = decide(request, before, &editor.author, tx.now(), tx.revision()?);
            editor.changes = changes;
            Ok((editor.finish()?, mapped))
        })?;
        mapped.behind = self.update_all(scope)?.behind;
        if let Some(state) = self.state(scope)? {
            mapped.pages = state.pages.len() as u64;
            mapped.entries = state.pages.iter().map(|page| page.entries.len() as u64).sum();
        }
        Ok(mapped)
    }
}

fn decide(
    request: &MapScope,
    before: Option<PageMap>,
    author: &str,
    now: Timestamp,
    revision: Revision,
) -> (Changes, Mapped) {
    let mut changes = Changes::new();
    let result = |outcome, map: &PageMap, ignored, revision| Mapped {
        outcome,
        scope: map.scope.clone(),
        by: map.by,
        max_tokens: map.max_tokens,
        ignored,
        pages: 0,
        entries: 0,
        behind: 0,
        revision,
    };
    if let Some(map) = before {
        let mut ignored = Vec::new();
        if request.grouping.is_some_and(|grouping| grouping != map.by) {
            ignored.push("by");
        }
        if request.max_tokens.is_some_and(|limit| limit != map.max_tokens) {
            ignored.push("max_tokens");
        }
        return (changes, result(MapOutcome::AlreadyMapped, &map, ignored, None));
    }
    let scope = &request.scope;
    let by = request.grouping.unwrap_or_default();
    let max_tokens = request.max_tokens.unwrap_or(DEFAULT_TOKENS);
    let summary = format!("Agent \"{author}\" mapped scope \"{scope}\" into pages by {by}");
    let event = changes.event(
        NewEvent::new(EventType::ScopeMapped, TargetType::Scope, scope, summary)
            .by(request.session.as_deref())
            .with("by", by.as_str())
            .with("max_tokens", max_tokens),
    );
    let map = PageMap {
        scope: scope.clone(),
        by,
        max_tokens,
        mapping: revision,
        cursor: Revision::ZERO,
        folds: 0,
        mapped_at: now,
        mapped_by: author.to_owned(),
    };
    changes.put(map.row());
    (changes, result(MapOutcome::Mapped, &map, Vec::new(), Some(event)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scope_is_mapped_once_and_other_options_are_reported() {
        let known = PageMap {
            scope: "s".to_owned(),
            by: Grouping::Tag,
            max_tokens: 100,
            mapping: Revision::new(7),
            cursor: Revision::new(9),
            folds: 2,
            mapped_at: Timestamp::EPOCH,
            mapped_by: "cli".to_owned(),
        };
        let by = |grouping, max_tokens| MapScope { grouping, max_tokens, ..MapScope::of("s") };
        for (request, before, expected) in [
            (by(None, None), None, (MapOutcome::Mapped, Grouping::Tag, 4096, vec![])),
            (by(Some(Grouping::Time), Some(64)), None, (MapOutcome::Mapped, Grouping::Time, 64, vec![])),
            (by(None, None), Some(&known), (MapOutcome::AlreadyMapped, Grouping::Tag, 100, vec![])),
            (
                by(Some(Grouping::Tag), Some(100)),
                Some(&known),
                (MapOutcome::AlreadyMapped, Grouping::Tag, 100, vec![]),
            ),
            (
                by(Some(Grouping::Prefix), Some(101)),
                Some(&known),
                (MapOutcome::AlreadyMapped, Grouping::Tag, 100, vec!["by", "max_tokens"]),
            ),
        ] {
            let (changes, mapped) =
                decide(&request, before.cloned(), "Ivy", Timestamp::EPOCH, Revision::new(9));
            let is_new = usize::from(before.is_none());
            assert_eq!((changes.events.len(), changes.put.len()), (is_new, is_new), "{request:?}");
            assert_eq!(
                (mapped.outcome, mapped.by, mapped.max_tokens, mapped.ignored),
                expected,
                "{request:?}"
            );
        }
    }
}
