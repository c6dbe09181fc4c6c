//! `work release`: a session gives an item back.

use std::time::Duration;

use serde::Serialize;

use super::{Status, Work, WorkItem, existing};
use crate::agent::{Agent, existing as existing_agent};
use crate::error::Result;
use crate::event::{EventType, NewEvent, TargetType};
use crate::revision::{Pending, Revision};
use crate::store::{Changes, Key, Wanted};

/// Which item to give back.
#[derive(Clone, Debug)]
pub struct Release {
    /// The item.
    pub id: String,
    /// The session that holds it.
    pub session: String,
    /// The fence at which it thinks to hold it.
    pub fence: Option<Revision>,
}

impl Release {
    /// An item, whatever its fence.
    pub fn of(id: &str, session: &str) -> Release {
        Release { id: id.to_owned(), session: session.to_owned(), fence: None }
    }
}

/// An item that the session holds no more.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Released {
    /// The item.
    #[serde(flatten)]
    pub item: WorkItem,
    /// Whether this call gave it back. It did not if nobody held it.
    pub released: bool,
    /// How long it was held.
    pub held_seconds: u64,
    /// Who held it.
    pub released_by: String,
}

impl Pending for Released {
    fn resolve(&mut self, first: Revision) {
        self.item.resolve(first);
    }
}

impl Work<'_> {
    /// Gives an item back. An item that nobody holds stays as it is.
    ///
    /// ```
    /// # use blackboard::{Board, agent::Register, work::{Claim, Create, Release}};
    /// # let board = Board::memory();
    /// # let ivy = board.agents().register(&Register::named("Ivy"))?.agent.session_id;
    /// # board.work().create(&Create::new("fix-tests", "Fix the tests"))?;
    /// board.work().claim(&Claim::of("fix-tests", &ivy))?;
    /// assert!(board.work().release(&Release::of("fix-tests", &ivy))?.released);
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn release(&self, release: &Release) -> Result<Released> {
        let wanted = [
            Wanted::Row(Key::Agent(release.session.clone())),
            Wanted::Row(Key::WorkItem(release.id.clone())),
        ];
        self.board.commit("work release", &wanted, |tx| {
            let agent = existing_agent(tx, &release.session)?;
            let item = existing(tx, &release.id)?;
            let mut changes = Changes::new();
            let released_by = agent.agent_name.clone();
            if item.status != Status::Completed && item.claimed_by.is_none() {
                return Ok((changes, Released { item, released: false, held_seconds: 0, released_by }));
            }
            item.must_be_held_by(&release.session, release.fence)?;
            let held = item.claimed_at.map_or(Duration::ZERO, |since| tx.now().since(since));
            let item = give_back(item, &agent, &mut changes);
            let before = agent.clone();
            self.board.agents().saw(agent, &before, tx.now(), &mut changes);
            Ok((changes, Released { item, released: true, held_seconds: held.as_secs(), released_by }))
        })
    }
}

/// Sets an item free on behalf of the session that holds it.
pub(crate) fn give_back(mut item: WorkItem, agent: &Agent, changes: &mut Changes) -> WorkItem {
    let summary = format!("Agent \"{}\" released \"{}\"", agent.agent_name, item.title);
    let mut event = NewEvent::new(EventType::WorkReleased, TargetType::WorkItem, &item.item_id, summary)
        .by(Some(&agent.session_id));
    if let Some(fence) = item.fence {
        event = event.with("fence", fence.get());
    }
    item.set_free();
    item.revision = changes.event(event);
    changes.put(item.clone());
    item
}
