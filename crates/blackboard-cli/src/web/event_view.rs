//! An event in the form that browsers get, the same in a list and in the stream.

use std::collections::BTreeMap;

use blackboard::clock::Timestamp;
use blackboard::event::{Event, EventType, TargetType};
use blackboard::metadata::OrEmpty;
use blackboard::{Board, Result, Revision};
use serde::Serialize;

/// One event: the columns of seed 000, followed by ours.
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
    actor_name: Option<&'a str>,
    /// The agent that the summary names.
    named_agent: Option<NamedAgent<'a>>,
    /// The name of its type in human output.
    shown_type: &'a str,
    revision: Revision,
    commit_id: Revision,
}

/// An agent that the summary of an event names.
#[derive(Serialize)]
pub struct NamedAgent<'a> {
    name: &'a str,
    session_id: String,
}

impl<'a> NamedAgent<'a> {
    /// The agent that the summary of this event names, if it names one.
    pub fn of(event: &'a Event) -> Option<NamedAgent<'a>> {
        event.named_agent().map(|(name, session_id)| NamedAgent { name, session_id })
    }
}

impl<'a> EventView<'a> {
    /// This event, with the name of its actor.
    pub fn of(event: &'a Event, names: &'a Names) -> EventView<'a> {
        let actor_id = event.actor_id.as_deref();
        EventView {
            id: event.id,
            timestamp: event.timestamp,
            event_type: &event.event_type,
            actor_id,
            target_id: event.target_id.as_deref(),
            target_type: event.target_type,
            summary: &event.summary,
            metadata: OrEmpty(event.metadata.as_ref()),
            actor_name: actor_id.and_then(|session| names.0.get(session)).map(String::as_str),
            named_agent: NamedAgent::of(event),
            shown_type: event.shown_type(),
            revision: event.id,
            commit_id: event.commit_id,
        }
    }
}

/// The names of agents by session.
pub struct Names(BTreeMap<String, String>);

impl Names {
    /// The names of the actors of these events, in one read.
    pub fn of_actors(board: &Board, events: &[Event]) -> Result<Names> {
        let actors = events.iter().filter_map(|event| event.actor_id.as_deref());
        board.agents().names_of(actors).map(Names)
    }
}
