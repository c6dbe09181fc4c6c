//! An event as browsers get it: the same in a list and in the stream.

use std::collections::HashMap;

use blackboard::clock::Timestamp;
use blackboard::event::{Event, EventType, TargetType};
use blackboard::metadata::OrEmpty;
use blackboard::{Board, Result, Revision};
use serde::Serialize;

/// A line of the log: the columns of seed 000, and ours behind.
#[derive(Serialize)]
pub struct EventView<'a> {
    id: Revision,
    timestamp: Timestamp,
    event_type: &'a EventType,
    actor_id: Option<&'a str>,
    target_id: Option<&'a str>,
    target_type: Option<TargetType>,
    summary: &'a str,
    metadata: OrEmpty<'a>,
    actor_name: Option<String>,
    revision: Revision,
    commit_id: Revision,
}

impl<'a> EventView<'a> {
    /// This event, with the name of its actor.
    pub fn of(event: &'a Event, names: &mut Names<'_>) -> Result<EventView<'a>> {
        let actor_id = event.actor_id.as_deref();
        Ok(EventView {
            id: event.id,
            timestamp: event.timestamp,
            event_type: &event.event_type,
            actor_id,
            target_id: event.target_id.as_deref(),
            target_type: event.target_type,
            summary: &event.summary,
            metadata: OrEmpty(event.metadata.as_ref()),
            actor_name: actor_id.map(|session| names.of(session)).transpose()?.flatten(),
            revision: event.id,
            commit_id: event.commit_id,
        })
    }
}

/// The names of agents, each looked up once for a batch.
pub struct Names<'a> {
    board: &'a Board,
    known: HashMap<String, Option<String>>,
}

impl<'a> Names<'a> {
    /// Those of a board.
    pub fn new(board: &'a Board) -> Names<'a> {
        Names { board, known: HashMap::new() }
    }

    fn of(&mut self, session: &str) -> Result<Option<String>> {
        if let Some(known) = self.known.get(session) {
            return Ok(known.clone());
        }
        let name = self.board.agents().get(session)?.map(|agent| agent.agent_name);
        self.known.insert(session.to_owned(), name.clone());
        Ok(name)
    }
}
