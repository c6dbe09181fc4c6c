//! The resources that a client can read and subscribe to.

use blackboard::agent::AgentFilter;
use blackboard::event::Since;
use blackboard::work::{Status, WorkFilter};
use blackboard::{Board, Result};
use rmcp::model::Resource as Described;

use super::reply::{ItemList, Reply, ShownEvent, shortened};
use super::watcher::LatestRevisions;
use crate::zone;

/// The maximum number of items in a resource.
const LIMIT: usize = 50;

/// A resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Resource {
    Board,
    Agents,
    Work,
    Events,
}

impl Resource {
    /// Every resource.
    pub const ALL: [Resource; 4] = [Resource::Board, Resource::Agents, Resource::Work, Resource::Events];

    /// Its URI.
    pub const fn uri(self) -> &'static str {
        match self {
            Resource::Board => "blackboard://board",
            Resource::Agents => "blackboard://agents",
            Resource::Work => "blackboard://work",
            Resource::Events => "blackboard://events",
        }
    }

    /// The resource with this URI.
    pub fn with_uri(uri: &str) -> Option<Resource> {
        Resource::ALL.into_iter().find(|resource| resource.uri() == uri)
    }

    /// Its entry in the list of resources.
    pub fn described(self) -> Described {
        let (name, description) = match self {
            Resource::Board => ("board", "Counts, active agents and revision of the board"),
            Resource::Agents => ("agents", "Active and idle agents"),
            Resource::Work => ("work", "Open work items by priority"),
            Resource::Events => ("events", "The newest events"),
        };
        Described::new(self.uri(), name).with_description(description).with_mime_type("application/json")
    }

    /// Its current content.
    pub fn read(self, board: &Board) -> Result<Reply> {
        match self {
            Resource::Board => Reply::new(&board.status_since(zone::today())?),
            Resource::Agents => {
                Reply::new(&ItemList::of(board.agents().list(&AgentFilter::default())?, LIMIT)?)
            }
            Resource::Work => {
                let filter = WorkFilter {
                    statuses: Status::OPEN.to_vec(),
                    limit: Some(LIMIT + 1),
                    ..WorkFilter::default()
                };
                Reply::new(&ItemList::of(board.work().list(&filter)?.into_iter().map(shortened), LIMIT)?)
            }
            Resource::Events => {
                let observation = board.events().observe(&Since::Last(LIMIT as u64), &[])?;
                let batch = board.events().next(&observation, observation.after, LIMIT)?;
                let events = batch.map(|batch| batch.events).unwrap_or_default();
                Reply::new(&ItemList::of(events.into_iter().rev().map(ShownEvent::of), LIMIT)?)
            }
        }
    }

    /// Whether it changed between two states of the event log.
    pub fn changed(self, before: &LatestRevisions, now: &LatestRevisions) -> bool {
        let has_grown = match self {
            Resource::Board | Resource::Events => now.board > before.board,
            Resource::Agents => now.agents > before.agents,
            Resource::Work => now.work > before.work,
        };
        has_grown || now.boards_before > before.boards_before
    }
}
