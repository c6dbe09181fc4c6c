//! `memory map`: the levels, what is in them, and the edges between them.

use serde::Serialize;

use super::Memories;
use super::levels::Level;
use super::pending::batches_of;
use super::recall::{Recall, examine};
use super::record::{text_of, tokens_of};
use super::rules::LevelRules;
use crate::error::Result;
use crate::revision::Revision;
use crate::scope::Guard;
use crate::store::{Prefetch, Range, Tx};

/// The levels that the caller sees, and their edges.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MemoryMap {
    /// The levels, by name.
    pub levels: Vec<LevelState>,
    /// The edges, by level.
    pub edges: Vec<LevelEdge>,
    /// Levels that an edge names and that do not exist.
    pub missing: Vec<String>,
    /// The revision of the board at that moment.
    pub revision: Revision,
}

/// A level, and what is in it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LevelState {
    /// Its name.
    pub level: String,
    /// How many records it has that the caller may read.
    pub records: usize,
    /// How many tokens they have together.
    pub tokens: u64,
    /// Whether only the newest records were counted.
    pub incomplete: bool,
    /// How many batches wait for a summary.
    pub pending: usize,
    /// Its rules.
    #[serde(flatten)]
    pub rules: LevelRules,
}

/// An edge.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LevelEdge {
    /// The level that records leave.
    pub from: String,
    /// The level that they enter.
    pub to: String,
    /// `move`, `summary`, or `session end`.
    pub by: &'static str,
    /// Whether the target does not exist.
    pub missing: bool,
}

impl Memories<'_> {
    /// The levels with their numbers of records and tokens, and the edges between them.
    ///
    /// ```
    /// # use blackboard::{Board, memory::Remember};
    /// # let board = Board::memory();
    /// board.memories().remember(&Remember::text("Use nextest"))?;
    /// let map = board.memories().map()?;
    /// let short_term = map.levels.iter().find(|level| level.level == "short-term").unwrap();
    /// assert_eq!((short_term.records, short_term.tokens), (1, 4));
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn map(&self) -> Result<MemoryMap> {
        let prefetch = [Prefetch::Range(Range::scope_policies()), Prefetch::Revision];
        self.board.read_list(&prefetch, |tx| {
            let guard = Guard::of_board(self.board, tx);
            map_in(tx, &guard)
        })
    }
}

fn map_in(tx: &dyn Tx, guard: &Guard<'_>) -> Result<MemoryMap> {
    let levels = Level::visible(tx, guard)?;
    // Whether a level exists is no secret: an edge names it.
    let all: Vec<_> = Level::all(tx)?.into_iter().map(|level| level.name).collect();
    let mut states = Vec::with_capacity(levels.len());
    let mut edges = Vec::new();
    for level in &levels {
        let (entries, incomplete) = examine(tx, guard, level, &Recall::default())?;
        let pending = batches_of(level, &levels, &entries, tx.now()).len();
        states.push(LevelState {
            level: level.name.clone(),
            records: entries.len(),
            tokens: entries.iter().map(|entry| tokens_of(&text_of(&entry.value))).sum(),
            incomplete,
            pending,
            rules: level.rules.clone(),
        });
        edges.extend(edges_of(level, &levels, &all));
    }
    let mut missing: Vec<_> = edges.iter().filter(|edge| edge.missing).map(|edge| edge.to.clone()).collect();
    missing.sort_unstable();
    missing.dedup();
    Ok(MemoryMap { levels: states, edges, missing, revision: tx.revision()? })
}

fn edges_of<'a>(
    level: &'a Level,
    levels: &'a [Level],
    all: &'a [String],
) -> impl Iterator<Item = LevelEdge> + 'a {
    let edge = move |to: &'a String, by: &'static str| LevelEdge {
        from: level.name.clone(),
        to: to.clone(),
        by,
        missing: !all.contains(to),
    };
    let at_end = level.rules.at_end.iter().map(move |to| edge(to, "session end"));
    let next = level.rules.next.iter().map(move |to| {
        let target = levels.iter().find(|target| target.name == *to);
        edge(to, if target.is_some_and(|target| target.rules.by_summary) { "summary" } else { "move" })
    });
    at_end.chain(next)
}
