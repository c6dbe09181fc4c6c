//! `memory list`: the levels of a board and their rules.

use serde::Serialize;

use super::Memories;
use super::rules::LevelRules;
use crate::error::{Code, Error, Refusal, Result};
use crate::hint::Hint;
use crate::scope::{Guard, ScopePolicies, policies_of};
use crate::store::{Prefetch, Range, Tx};

/// How the names of the scopes begin that are levels.
pub(crate) const LEVEL_SCOPES: &str = "memory:";

/// A level: a scope with rules.
#[derive(Clone, Debug)]
pub(crate) struct Level {
    pub(crate) name: String,
    pub(crate) scope: String,
    pub(crate) rules: LevelRules,
}

/// The scope of a level.
pub(super) fn scope_of(level: &str) -> String {
    format!("{LEVEL_SCOPES}{level}")
}

impl Level {
    /// From the policies of a scope, if they make it a level.
    pub(crate) fn of(row: &ScopePolicies) -> Option<Level> {
        let name = row.scope.strip_prefix(LEVEL_SCOPES).filter(|_| row.is_live())?;
        let rules = row.policies.level.clone()?;
        Some(Level { name: name.to_owned(), scope: row.scope.clone(), rules })
    }

    /// Announces the level with this name.
    pub(super) fn prefetch(name: &str) -> Option<Prefetch<'static>> {
        crate::scope::prefetch_policies(&scope_of(name))
    }

    /// The level with this name, if it exists.
    pub(super) fn find(tx: &dyn Tx, name: &str) -> Result<Option<Level>> {
        Ok(policies_of(tx, &scope_of(name))?.as_ref().and_then(Level::of))
    }

    /// The level with this name.
    pub(super) fn existing(tx: &dyn Tx, name: &str) -> Result<Level> {
        Level::find(tx, name)?.ok_or_else(|| not_found(name))
    }

    /// All levels, by name. [`Range::scope_policies`] is announced.
    pub(crate) fn all(tx: &dyn Tx) -> Result<Vec<Level>> {
        let rows = tx.rows::<ScopePolicies>(&Range::scope_policies())?;
        Ok(rows.iter().filter_map(Level::of).collect())
    }

    /// Those that the caller sees.
    pub(super) fn visible(tx: &dyn Tx, guard: &Guard<'_>) -> Result<Vec<Level>> {
        let mut visible = Vec::new();
        for row in tx.rows::<ScopePolicies>(&Range::scope_policies())? {
            if let Some(level) = Level::of(&row)
                && guard.may_see_row(&row)?
            {
                visible.push(level);
            }
        }
        Ok(visible)
    }
}

/// The refusal of a level that does not exist.
pub(super) fn not_found(name: &str) -> Error {
    Refusal::new(Code::ScopeNotFound, format!("memory level {name} not found"))
        .hint(Hint::ListLevels)
        .detail("level", name)
        .into()
}

/// A level with its rules.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ListedLevel {
    /// Its name.
    pub level: String,
    /// Its scope.
    pub scope: String,
    /// Its rules.
    #[serde(flatten)]
    pub rules: LevelRules,
}

impl From<Level> for ListedLevel {
    fn from(Level { name, scope, rules }: Level) -> ListedLevel {
        ListedLevel { level: name, scope, rules }
    }
}

impl Memories<'_> {
    /// The levels that the caller sees, by name.
    ///
    /// ```
    /// # use blackboard::{Board, memory::SEED_LEVELS};
    /// # let board = Board::memory();
    /// board.memories().define_seed(None)?;
    /// assert_eq!(board.memories().levels()?.len(), SEED_LEVELS.len());
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn levels(&self) -> Result<Vec<ListedLevel>> {
        self.board.read_list(&[Prefetch::Range(Range::scope_policies())], |tx| {
            let guard = Guard::of_board(self.board, tx);
            Ok(Level::visible(tx, &guard)?.into_iter().map(ListedLevel::from).collect())
        })
    }
}
