//! What the brief of a session says about memory: how much is known, and the best records for its work.

use std::time::Duration;

use serde::Serialize;

use super::levels::Level;
use super::{COLLECTIVE, Memories, Recall, RecalledRecord};
use crate::brief::Brief;
use crate::entry::Actor;
use crate::error::Result;
use crate::scope::Guard;
use crate::search::{CatchUp, IndexLocation};
use crate::store::{Prefetch, Range};

/// How many records a brief has.
const BEST: usize = 3;

/// How many records are looked at for those of a project.
const LOOKED_AT: usize = 50;

/// How much a brief does to bring the search index up to date: an agent waits for it.
const CATCH_UP: CatchUp = CatchUp { time: Duration::from_millis(30), rows: 2_000 };

/// What the brief of a session says about memory.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MemoryBrief {
    /// How many records there are in the levels that the session sees.
    pub records: u64,
    /// The best ones: for the item that the session has claimed, else of the collective memory of its project.
    pub best: Vec<RecalledRecord>,
}

impl Memories<'_> {
    /// What the brief of a session says about memory; `None` if nothing is remembered.
    ///
    /// ```
    /// # use blackboard::{Board, agent::Register, memory::Remember, search::IndexLocation};
    /// # let board = Board::memory();
    /// let ivy = board.agents().register(&Register::named("Ivy"))?.agent.session_id;
    /// let remember = Remember { level: Some("collective".to_owned()), ..Remember::text("Use make ci") };
    /// board.memories().remember(&remember)?;
    /// let known = board.memories().for_brief(&board.brief(&ivy)?, &IndexLocation::Memory)?.unwrap();
    /// assert_eq!((known.records, known.best[0].text.as_str()), (1, "Use make ci"));
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn for_brief(&self, brief: &Brief, index: &IndexLocation) -> Result<Option<MemoryBrief>> {
        let session = &brief.agent.session_id;
        let board = self.board.with_caller(Actor::session(session));
        let (levels, records) = board.read_list(&[Prefetch::Range(Range::scope_policies())], |tx| {
            let levels = Level::visible(tx, &Guard::of_board(&board, tx))?;
            let ranges: Vec<_> = levels.iter().map(|level| Range::entries(&level.scope, "")).collect();
            if !ranges.is_empty() {
                tx.prefetch(&ranges.iter().cloned().map(Prefetch::Count).collect::<Vec<_>>())?;
            }
            let mut records = 0;
            for range in &ranges {
                records += tx.count(range)?;
            }
            Ok((levels, records))
        })?;
        if records == 0 {
            return Ok(None);
        }
        let own = brief.claimed.iter().find(|item| item.claimed_by.as_ref() == Some(session));
        let project = &brief.agent.project;
        let best = match own {
            Some(item) => {
                let words = Some(item.title.chars().take(500).collect());
                let recall =
                    Recall { words, limit: Some(BEST), catch_up: Some(CATCH_UP), ..Recall::default() };
                // A title may have no word to look for.
                board.memories().recall(&recall, index).map(|found| found.records).unwrap_or_default()
            }
            None if levels.iter().any(|level| level.name == COLLECTIVE) => {
                let levels = vec![COLLECTIVE.to_owned()];
                let recall = Recall { levels, limit: Some(LOOKED_AT), ..Recall::default() };
                let mut found = board.memories().recall(&recall, index)?.records;
                found.retain(|record| record.project.is_none() || record.project == *project);
                found.truncate(BEST);
                found
            }
            None => Vec::new(),
        };
        Ok(Some(MemoryBrief { records, best }))
    }
}
