//! `memory drain`: moves records to the next levels, all of them, a batch in a commit.
//!
//! A bookkeeping row for each edge says up to which revision records were offered to its target. The commit that moves a batch
//! also moves this cursor. So a record that the target does not take is not read again until it is written again.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Memories;
use super::levels::Level;
use super::moving::{BATCH, Move, move_record, prefetch_targets, read_batch};
use super::rules::LevelRules;
use crate::board::Board;
use crate::entry::{Actor, EntryEditor};
use crate::error::{Code, Result};
use crate::revision::{Pending, Revision};
use crate::scope::Guard;
use crate::store::{BookkeepingRow, Key, OnBusy, Prefetch, Range, Tx};

/// How the names of rows begin that are cursors of edges.
const CURSORS: &str = "memory-cursor:";

/// Up to how many records that are left are counted.
const MAX_LEFT: usize = 100_000;

/// How many commits an automatic move makes at most. The cursor is stored: the next one continues.
const AUTOMATIC_COMMITS: usize = 8;

/// Which records to move.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Drain {
    /// All records of this level that a next level takes; by default what is due in every level.
    pub level: Option<String>,
    /// To this level only.
    pub to: Option<String>,
    /// On whose behalf.
    pub actor: Actor,
}

/// The records that moved along one edge.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MovedBetween {
    /// The level that they left.
    pub from: String,
    /// The level that has them.
    pub to: String,
    /// How many moved.
    pub moved: u64,
    /// How many the target did not take: their key, relevance or tags.
    pub declined: u64,
    /// How many could not be moved, because a policy refused it or another session leases them.
    pub refused: u64,
}

/// The result of a drain.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Drained {
    /// How many records moved.
    pub moved: u64,
    /// The edges that were followed.
    pub edges: Vec<MovedBetween>,
    /// How many records are still in the level, if the call names one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left: Option<u64>,
    /// Next levels that do not exist.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
}

/// What one commit did.
#[derive(Clone, Debug)]
struct Step {
    moved: u64,
    declined: u64,
    refused: u64,
    /// The last record that it offered.
    position: Revision,
    /// Whether there are more.
    more: bool,
}

impl Pending for Step {
    fn resolve(&mut self, _first: Revision) {}
}

/// An edge, and which records are offered.
pub(super) struct Edge {
    pub(super) from: String,
    pub(super) to: String,
}

impl Edge {
    pub(super) fn cursor_key(&self) -> Key {
        Key::BookkeepingRow(Cow::Owned(format!("{CURSORS}{}:{}", self.from, self.to)))
    }
}

impl Memories<'_> {
    /// Moves records to the next levels: those of one level, whatever is due, or in every level what is due. It continues until
    /// nothing is left to move, a batch in a commit.
    ///
    /// ```
    /// # use blackboard::{Board, memory::{Drain, Remember}};
    /// # let board = Board::memory();
    /// board.memories().define_seed(None)?;
    /// board.memories().remember(&Remember { level: Some("short-term".to_owned()), ..Remember::text("Use nextest") })?;
    /// let drained = board.memories().drain(&Drain { level: Some("short-term".to_owned()), ..Drain::default() })?;
    /// assert_eq!((drained.moved, drained.left), (1, Some(0)));
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn drain(&self, request: &Drain) -> Result<Drained> {
        let edges = match &request.level {
            Some(level) => self.edges_of(level, request)?,
            None => self.board.due_edges()?,
        };
        let mut drained = Drained { missing: edges.missing, ..Drained::default() };
        for edge in edges.found {
            let forced = request.level.is_some();
            let moved = self.board.follow_edge(&edge, &request.actor, forced, OnBusy::Wait, usize::MAX)?;
            drained.moved += moved.moved;
            drained.edges.push(moved);
        }
        if let Some(level) = &request.level {
            drained.left = Some(self.left_in(level, &request.actor)?);
        }
        Ok(drained)
    }

    /// How many records of a level the caller may read.
    fn left_in(self, level: &str, actor: &Actor) -> Result<u64> {
        let scope = super::levels::scope_of(level);
        let whole = Range::entries(&scope, "");
        let mut prefetch = vec![Prefetch::Heads(whole.clone(), MAX_LEFT)];
        prefetch.extend(Level::prefetch(level));
        self.board.read(&prefetch, |tx| {
            let guard = Guard::new(self.board, tx, actor);
            let mut left = 0;
            for head in tx.heads(&whole, MAX_LEFT)? {
                left += u64::from(!head.is_expired(tx.now()) && guard.may_read(&scope, &head.key)?);
            }
            Ok(left)
        })
    }

    fn edges_of(self, name: &str, request: &Drain) -> Result<Edges> {
        let (to, actor) = (request.to.as_deref(), &request.actor);
        let mut prefetch = vec![Prefetch::Range(Range::scope_policies())];
        prefetch.extend(Level::prefetch(name));
        let levels = self.board.read(&prefetch, |tx| {
            let levels = Level::all(tx)?;
            Guard::new(self.board, tx, actor).check_scope(&super::levels::scope_of(name))?;
            Ok(levels)
        })?;
        let level =
            levels.iter().find(|level| level.name == name).ok_or_else(|| super::levels::not_found(name))?;
        let mut edges = Edges::default();
        match to {
            Some(to) if levels.iter().any(|level| level.name == to) => {
                if to == name {
                    return Err(crate::Error::invalid("a level cannot be drained into itself"));
                }
                edges.found.push(Edge { from: name.to_owned(), to: to.to_owned() });
            }
            Some(to) => return Err(super::levels::not_found(to)),
            None => {
                for next in &level.rules.next {
                    match levels.iter().find(|level| level.name == *next) {
                        Some(next) if next.rules.by_summary => {}
                        Some(_) => edges.found.push(Edge { from: name.to_owned(), to: next.clone() }),
                        None => edges.missing.push(next.clone()),
                    }
                }
            }
        }
        Ok(edges)
    }
}

/// Edges to follow.
#[derive(Default)]
pub(super) struct Edges {
    pub(super) found: Vec<Edge>,
    pub(super) missing: Vec<String>,
}

impl Board {
    /// Moves what is due, without waiting and without failing: the next call continues.
    pub(super) fn settle_memory(&self) -> Vec<MovedBetween> {
        // Moves by rule ask no caller, as expiry does not.
        let operator = self.with_caller(Actor::default());
        let Ok(edges) = operator.due_edges() else { return Vec::new() };
        let mut moved = Vec::new();
        for edge in edges.found {
            let actor = Actor::default();
            match operator.follow_edge(&edge, &actor, false, OnBusy::Fail, AUTOMATIC_COMMITS) {
                Ok(edge) if edge.moved > 0 => moved.push(edge),
                Ok(_) => {}
                Err(_) => break,
            }
        }
        moved
    }

    /// The edges along which records are due.
    fn due_edges(&self) -> Result<Edges> {
        let cursors = Range::bookkeeping_rows(CURSORS);
        let prefetch = [Prefetch::Range(Range::scope_policies()), Prefetch::Range(cursors.clone())];
        self.read(&prefetch, |tx| {
            let levels = Level::all(tx)?;
            let mut known = BTreeMap::new();
            for row in tx.rows::<BookkeepingRow>(&cursors)? {
                known.insert(row.name.to_string(), position_of(&row));
            }
            let mut probes = Vec::new();
            for level in &levels {
                for next in &level.rules.next {
                    let Some(target) = levels.iter().find(|target| target.name == *next) else { continue };
                    if target.rules.by_summary {
                        continue;
                    }
                    let edge = Edge { from: level.name.clone(), to: next.clone() };
                    let after = known.get(&format!("{CURSORS}{}:{}", edge.from, edge.to));
                    probes.push(Probe::of(edge, level, &target.rules, after.copied().unwrap_or_default()));
                }
            }
            let next: Vec<_> = probes.iter().flat_map(Probe::prefetch).collect();
            if !next.is_empty() {
                tx.prefetch(&next)?;
            }
            let mut found = Vec::new();
            for probe in probes {
                if probe.is_due(tx)? {
                    found.push(probe.edge);
                }
            }
            Ok(Edges { found, missing: Vec::new() })
        })
    }

    /// Offers the records of a level to another one, a batch in a commit, from the cursor of the edge on. `forced` starts with
    /// the first record.
    fn follow_edge(
        &self,
        edge: &Edge,
        actor: &Actor,
        forced: bool,
        on_busy: OnBusy,
        most_commits: usize,
    ) -> Result<MovedBetween> {
        let mut moved =
            MovedBetween { from: edge.from.clone(), to: edge.to.clone(), ..MovedBetween::default() };
        let mut position = forced.then_some(Revision::ZERO);
        for _ in 0..most_commits {
            let step = self.drain_batch(edge, position, actor, on_busy)?;
            moved.moved += step.moved;
            moved.declined += step.declined;
            moved.refused += step.refused;
            position = Some(step.position);
            if !step.more {
                break;
            }
        }
        Ok(moved)
    }

    fn drain_batch(
        &self,
        edge: &Edge,
        position: Option<Revision>,
        actor: &Actor,
        on_busy: OnBusy,
    ) -> Result<Step> {
        let cursor = edge.cursor_key();
        let mut prefetch: Vec<_> = Level::prefetch(&edge.from).into_iter().collect();
        prefetch.extend(Level::prefetch(&edge.to));
        prefetch.push(Prefetch::Row(cursor.clone()));
        prefetch.extend(actor.prefetch());
        self.commit_with_on_busy(on_busy, "memory drain", &prefetch, |tx| {
            let mut editor = EntryEditor::new(self, tx, actor)?;
            let (Some(from), Some(to)) = (Level::find(tx, &edge.from)?, Level::find(tx, &edge.to)?) else {
                // Another call has deleted one of them.
                return Ok((editor.finish()?, Step::end(position.unwrap_or_default())));
            };
            let stored = tx.row::<BookkeepingRow>(&cursor)?.map_or(Revision::ZERO, |row| position_of(&row));
            let start = position.unwrap_or(stored);
            let range = Range::oldest_entries(&from.scope).after(start);
            tx.prefetch(&[Prefetch::Heads(range.clone(), BATCH)])?;
            let heads = tx.heads(&range, BATCH)?;
            let keys: Vec<_> = heads.iter().map(|head| head.key.clone()).collect();
            let batch = read_batch(&mut editor, &from.scope, &keys)?;
            let takes = |entry: &&crate::entry::Entry| from.rules.has_key(&entry.key);
            prefetch_targets(&editor, &to.scope, batch.entries.iter().filter(takes))?;
            let mut step = Step::end(start);
            for entry in &batch.entries {
                step.position = entry.revision;
                if !from.rules.has_key(&entry.key) {
                    continue;
                }
                match move_record(&mut editor, &from, &to, entry, false)? {
                    Move::To(_) => step.moved += 1,
                    Move::Declined(_) => step.declined += 1,
                    Move::Refused(_) => step.refused += 1,
                }
            }
            step.more = batch.is_cut || heads.len() == BATCH;
            if !batch.is_cut {
                // Expired ones, too.
                step.position = heads.last().map_or(step.position, |head| head.revision.max(step.position));
            }
            // A refusal may be over the next time, so its records stay before the cursor only if there are others to move.
            if step.position > stored && (step.refused == 0 || step.moved > 0) {
                editor.changes.put(BookkeepingRow {
                    name: Cow::Owned(format!("{CURSORS}{}:{}", edge.from, edge.to)),
                    value: step.position.to_string(),
                });
            }
            Ok((editor.finish()?, step))
        })
    }
}

impl Step {
    fn end(position: Revision) -> Step {
        Step { moved: 0, declined: 0, refused: 0, position, more: false }
    }
}

/// The revision of a cursor. One that another program damaged is at the beginning: no record is passed over.
fn position_of(row: &BookkeepingRow) -> Revision {
    row.value.parse().map_or(Revision::ZERO, Revision::new)
}

/// What shows whether records of an edge are due.
struct Probe {
    edge: Edge,
    /// The records that were not offered yet, oldest first.
    new: Range,
    /// So many of them are due.
    at: Option<usize>,
    /// One of this age is due.
    after: Option<Duration>,
}

impl Probe {
    fn of(edge: Edge, level: &Level, target: &LevelRules, position: Revision) -> Probe {
        let (at, after) = due_at(&level.rules, target);
        Probe { edge, new: Range::oldest_entries(&level.scope).after(position), at, after }
    }

    /// How many records are read to see whether any, or enough of them, are due.
    fn looked_at(&self) -> usize {
        self.at.unwrap_or(1)
    }

    fn prefetch(&self) -> Vec<Prefetch<'static>> {
        let heads = Prefetch::Heads(self.new.clone(), self.looked_at());
        [heads].into_iter().chain(self.after.map(Prefetch::RevisionAged)).collect()
    }

    fn is_due(&self, tx: &dyn Tx) -> Result<bool> {
        let heads = tx.heads(&self.new, self.looked_at())?;
        let Some(first) = heads.first() else { return Ok(false) };
        if self.at.is_some_and(|at| heads.len() >= at) {
            return Ok(true);
        }
        match self.after {
            Some(after) => Ok(first.revision <= tx.revision_before(tx.now().minus(after))?),
            None => Ok(false),
        }
    }
}

/// From how many new records on, and from which age on, they are due: what the target says, or what the level itself allows.
fn due_at(level: &LevelRules, target: &LevelRules) -> (Option<usize>, Option<Duration>) {
    let at = target.takes_at.into_iter().chain(level.max_entries.map(|most| most.saturating_add(1))).min();
    let after = target.takes_after.into_iter().chain(level.ttl).min();
    (at.map(|at| usize::try_from(at).unwrap_or(usize::MAX).min(10_000)), after)
}

/// Whether a code means that the level of a call does not exist.
pub(super) fn is_missing_level(code: Code) -> bool {
    code == Code::ScopeNotFound
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_due_by_number_or_by_age() {
        let rules = |at, after: Option<u64>, most, ttl: Option<u64>| {
            let (after, ttl) = (after.map(Duration::from_secs), ttl.map(Duration::from_secs));
            let target = LevelRules { takes_at: at, takes_after: after, ..LevelRules::default() };
            (LevelRules { max_entries: most, ttl, ..LevelRules::default() }, target)
        };
        for ((level, target), expected) in [
            (rules(None, None, None, None), (None, None)),
            (rules(Some(5), Some(120), None, Some(3600)), (Some(5), Some(120))),
            (rules(None, None, Some(100), Some(3600)), (Some(101), Some(3600))),
            (rules(Some(200), Some(7200), Some(100), Some(3600)), (Some(101), Some(3600))),
        ] {
            let expected = (expected.0, expected.1.map(Duration::from_secs));
            assert_eq!(due_at(&level, &target), expected, "{level:?}, {target:?}");
        }
    }
}
