//! Work items: what is to be done, and which session holds it.
//!
//! A work item is available, claimed, blocked or completed. Of any number of sessions that claim it, one gets it,
//! with a *fence token*: the revision of the claim, which only grows. A session that has lost the item is refused
//! later.

mod activity;
mod append_event;
mod block;
mod change;
mod claim;
mod closed;
mod complete;
mod contention;
mod create;
mod delete;
mod dependencies;
mod details;
mod edit;
mod export;
mod force_complete;
mod hold;
mod import;
mod last_completed;
mod list;
mod newest;
mod reassign;
mod release;
mod reset;
mod score;
mod status;
mod unblock;
mod update_metadata;
mod wait;

use serde::{Deserialize, Serialize};

pub use self::activity::{Activity, AgentActivity, Span, SpanEnd};
pub use self::append_event::{AppendEvent, AppendedEvent};
pub use self::block::{Block, Blocked};
pub use self::change::FieldChange;
pub use self::claim::{Claim, ClaimNext, Claimed};
pub(crate) use self::closed::ClosedItems;
pub use self::complete::{Complete, Completed};
#[cfg(any(test, feature = "conformance"))]
pub(crate) use self::create::blank_item;
pub use self::create::{Create, Created, SOURCES};
pub use self::delete::Deleted;
pub use self::dependencies::list_blockers;
pub(crate) use self::dependencies::{missing_blockers, prefetch_missing_blockers, with_blockers};
pub use self::edit::{Edit, Edited};
pub use self::export::ExportItems;
pub use self::force_complete::{CompletedOne, CompletedProject, ForceComplete};
pub use self::hold::Hold;
pub use self::import::{ImportItems, ImportedAs, ImportedItem, OutsideItem};
pub use self::last_completed::LastCompleted;
pub use self::list::{CountedItems, ListedItem, WorkFilter};
pub use self::newest::{NewestWork, WorkPage};
pub use self::reassign::{Reassign, Reassigned};
pub(crate) use self::release::give_back;
pub use self::release::{Release, Released};
pub use self::reset::Reset;
pub use self::score::{ScoredItem, ScoredItems};
pub use self::status::WorkHistory;
pub use self::unblock::Unblocked;
pub use self::update_metadata::{UpdateMetadata, UpdatedMetadata};
pub use self::wait::WaitForItem;
use crate::agent::{Agent, AgentStatus, label};
use crate::board::Board;
use crate::clock::Timestamp;
use crate::entry::check_own_fence;
use crate::error::{AgeKind, Code, Error, Refusal, Result};
use crate::event::NewEvent;
use crate::hint::Hint;
use crate::metadata::Metadata;
use crate::revision::Revision;
use crate::store::record::record;
use crate::store::{Changes, Key, Prefetch, Range, Tx};
use crate::text::{Cleaner, Kind};

/// The work of a board: `board.work()`.
#[derive(Clone, Copy)]
pub struct Work<'a> {
    pub(crate) board: &'a Board,
}

/// A unit of work.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WorkItem {
    /// Its id, for example `design-schema` or `gh:owner/repo#78`.
    pub item_id: String,
    /// The registered project that it belongs to.
    pub project_id: Option<String>,
    /// Its title.
    pub title: String,
    /// Its description.
    pub description: Option<String>,
    /// Its source: one of [`SOURCES`], or `word:…`.
    pub source: String,
    /// Its reference at the source.
    pub source_ref: Option<String>,
    /// Its status.
    pub status: Status,
    /// Its priority.
    pub priority: Priority,
    /// The session that holds it, or that completed it.
    pub claimed_by: Option<String>,
    /// The name of that session, kept after the session was pruned.
    pub claimed_by_name: Option<String>,
    /// When it was claimed.
    pub claimed_at: Option<Timestamp>,
    /// The revision of the claim.
    pub fence: Option<Revision>,
    /// When it was completed.
    pub completed_at: Option<Timestamp>,
    /// The summary that the completing session gave, if any.
    pub summary: Option<String>,
    /// Its first open blocker.
    pub blocked_by: Option<String>,
    /// When it was created.
    pub created_at: Timestamp,
    /// Its metadata.
    #[serde(serialize_with = "crate::metadata::or_empty")]
    pub metadata: Option<Metadata>,
    /// The event that changed it last.
    pub revision: Revision,
}

/// The status of a work item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// No session holds it.
    Available,
    /// A session holds it.
    Claimed,
    /// It is blocked by other items. A session may still hold it.
    Blocked,
    /// It is done.
    Completed,
}

impl Status {
    /// Every status.
    pub const ALL: &'static [Status] =
        &[Status::Available, Status::Claimed, Status::Blocked, Status::Completed];

    /// Every status except `completed`.
    pub const OPEN: &'static [Status] = &[Status::Available, Status::Claimed, Status::Blocked];

    /// The name.
    pub fn as_str(self) -> &'static str {
        match self {
            Status::Available => "available",
            Status::Claimed => "claimed",
            Status::Blocked => "blocked",
            Status::Completed => "completed",
        }
    }
}

crate::names::impl_names!(Status, "status");

/// The priority of a work item.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Priority {
    /// Urgent.
    P1,
    /// Normal.
    #[default]
    P2,
    /// Low.
    P3,
}

impl Priority {
    /// Every priority, most urgent first.
    pub const ALL: &'static [Priority] = &[Priority::P1, Priority::P2, Priority::P3];

    /// The name.
    pub fn as_str(self) -> &'static str {
        match self {
            Priority::P1 => "P1",
            Priority::P2 => "P2",
            Priority::P3 => "P3",
        }
    }
}

crate::names::impl_names!(Priority, "priority");

/// A dependency: one item is blocked by another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Dependency {
    /// The blocked item.
    pub item_id: String,
    /// Its blocker, which may not exist yet.
    pub blocked_by: String,
    /// When it was added.
    pub created_at: Timestamp,
}

impl WorkItem {
    /// Whether this session holds the item now.
    pub fn is_held_by(&self, session: &str) -> bool {
        self.status != Status::Completed && self.claimed_by.as_deref() == Some(session)
    }

    /// Removes the holder of the item. Its blockers stay.
    pub(crate) fn set_free(&mut self) {
        self.claimed_by = None;
        self.claimed_by_name = None;
        self.claimed_at = None;
        self.fence = None;
        if self.status == Status::Claimed {
            self.status = Status::Available;
        }
    }

    /// Makes a session the holder, with the revision of this event as the fence token. The actor of a `work_claimed`
    /// event is always the session that gets the item: followers of the event log read the holder from it.
    pub(crate) fn give_to(&mut self, agent: &Agent, event: NewEvent, now: Timestamp, changes: &mut Changes) {
        self.status = Status::Claimed;
        self.claimed_by = Some(agent.session_id.clone());
        self.claimed_by_name = Some(agent.agent_name.clone());
        self.claimed_at = Some(now);
        self.revision = changes.event(event.by(Some(&agent.session_id)));
        self.fence = Some(self.revision);
        let current_work = Some(self.title.clone());
        changes.put_again(Agent { current_work, revision: self.revision, ..agent.clone() });
        changes.put(self.clone());
    }

    /// The agent that holds or has completed it, as messages name it: `Ivy (84a674b5)`.
    pub fn holder_label(&self) -> Option<String> {
        let name = self.claimed_by_name.as_ref()?;
        Some(self.claimed_by.as_ref().map_or_else(|| name.clone(), |session| label(name, session)))
    }

    /// The same for a message that needs a holder.
    pub(crate) fn holder(&self) -> String {
        self.holder_label().unwrap_or_else(|| "no session".to_owned())
    }

    /// Refuses unless the session holds the item, with this fence token if one is given.
    pub(crate) fn must_be_held_by(&self, agent: &Agent, fence: Option<Revision>) -> Result<()> {
        let (id, session) = (&self.item_id, &agent.session_id);
        if agent.status == AgentStatus::Stale && !self.is_held_by(session) {
            agent.must_be_live()?;
        }
        if self.status == Status::Completed {
            return Err(self.is_completed());
        }
        if !self.is_held_by(session) {
            let refusal = match &self.claimed_by {
                Some(holder) => {
                    let name = self.claimed_by_name.as_deref().unwrap_or_default();
                    let (holder, you) = agent.beside_holder(name, holder);
                    Refusal::new(Code::NotHolder, format!("work item {id} is claimed by {holder}"))
                        .age(AgeKind::Held, self.claimed_at, &format!(", not by {you}"))
                        .held_by(self.claimed_by.clone(), self.claimed_by_name.clone(), self.claimed_at)
                }
                None => Refusal::new(Code::NotHolder, format!("work item {id} is not claimed"))
                    .hint(Hint::ClaimItem(id.clone())),
            };
            return Err(refusal.into());
        }
        self.must_be_held_at(fence)
    }

    /// Refuses if the item is held with another fence token.
    pub(crate) fn must_be_held_at(&self, fence: Option<Revision>) -> Result<()> {
        let claimed = format!("work item {} was claimed", self.item_id);
        check_own_fence(&claimed, self.fence, fence, Hint::CheckLostItem(self.item_id.clone()))
    }

    pub(crate) fn is_completed(&self) -> Error {
        let by = self.holder_label().map(|holder| format!(" by {holder}")).unwrap_or_default();
        let message = format!("work item {} is already completed{by}", self.item_id);
        let mut refusal = Refusal::new(Code::AlreadyCompleted, message)
            .age(AgeKind::Completed, self.completed_at, "")
            .hint(Hint::ResetItem(self.item_id.clone()));
        if self.claimed_by_name.is_some() {
            refusal = refusal.held_by(self.claimed_by.clone(), self.claimed_by_name.clone(), self.claimed_at);
        }
        if let Some(completed) = self.completed_at {
            refusal = refusal.detail("completed_at", completed.to_string());
        }
        refusal.into()
    }
}

record! {
    WorkItem in "work_items", generation 1 {
        key { item_id }
        columns {
            project_id, title, description, source, source_ref, status, priority, claimed_by, claimed_at,
            completed_at, blocked_by, created_at, metadata, claimed_by_name, fence, revision, summary,
        }
    }
    indexes {
        /// All work items, by id.
        ALL: by (item_id);
        /// Work items of one status, P1 first, then oldest first.
        QUEUE: by (priority, created_at, item_id) of (status);
        /// Work items of one status and project, P1 first, then oldest first. SQLite has no separate index for it,
        /// because each would cost every write of an item. The index of the queue gives the order, and other projects
        /// are skipped.
        PROJECT_QUEUE: by (priority, created_at, item_id) of (status, project_id);
        /// Work items of one status and priority, the newest first.
        NEWEST: backwards_by (created_at, item_id) of (status, priority);
        /// Work items of every status that a session claimed.
        CLAIMED: by (item_id) of (claimed_by);
        /// Work items that a session holds.
        HELD: by (item_id) of (claimed_by)
            where "work_items.status <> 'completed'" = |item| item.status != Status::Completed;
        /// Work items of a project.
        OF_PROJECT: by (item_id) of (project_id);
        /// Completed work items, by the time of completion.
        COMPLETED: by (completed_at, item_id) where "work_items.completed_at IS NOT NULL";
        /// Completed work items, the last completed first.
        LAST_COMPLETED: backwards_by (completed_at, item_id) where "work_items.completed_at IS NOT NULL";
    }
}

record! {
    Dependency in "work_dependencies", generation 2 {
        key { item_id, blocked_by }
        columns { created_at }
    }
    indexes {
        /// All dependencies, by the blocked item and its blocker.
        ALL: by (item_id, blocked_by);
        /// The blockers of an item, in the order in which they were added.
        BLOCKERS: by (created_at, blocked_by) of (item_id);
        /// The items that an item blocks.
        DEPENDENTS: by (item_id) of (blocked_by);
    }
}

impl Range {
    /// All work items.
    pub fn work_items() -> Range {
        Range::all(WorkItem::ALL)
    }

    /// Work items of one status, in the order of the queue.
    pub fn work_queue(status: Status) -> Range {
        Range::of(WorkItem::QUEUE, [status.as_str()])
    }

    /// The part of [`Range::work_queue`] with one priority.
    pub fn work_queue_of(status: Status, priority: Priority) -> Range {
        Range::work_queue(status).from(priority.as_str()).up_to(priority.as_str())
    }

    /// Work items of one status and project, in the order of the queue.
    pub fn project_queue(status: Status, project: &str) -> Range {
        Range::of(WorkItem::PROJECT_QUEUE, [status.as_str(), project])
    }

    /// The part of [`Range::project_queue`] with one priority.
    pub fn project_queue_of(status: Status, project: &str, priority: Priority) -> Range {
        Range::project_queue(status, project).from(priority.as_str()).up_to(priority.as_str())
    }

    /// Work items of one status and priority, the newest first.
    pub fn newest_work(status: Status, priority: Priority) -> Range {
        Range::of(WorkItem::NEWEST, [status.as_str(), priority.as_str()])
    }

    /// Work items that a session claimed, including completed ones.
    pub fn claimed_by(session: &str) -> Range {
        Range::of(WorkItem::CLAIMED, [session])
    }

    /// Work items that a session holds.
    pub fn held_by(session: &str) -> Range {
        Range::of(WorkItem::HELD, [session])
    }

    /// Work items of a project.
    pub fn work_of_project(project: &str) -> Range {
        Range::of(WorkItem::OF_PROJECT, [project])
    }

    /// Work items that were completed at `moment` or later.
    pub fn completed_since(moment: Timestamp) -> Range {
        Range::all(WorkItem::COMPLETED).from(moment)
    }

    /// Completed work items, the last one first.
    pub fn last_completed() -> Range {
        Range::all(WorkItem::LAST_COMPLETED)
    }

    /// All dependencies.
    pub fn dependencies() -> Range {
        Range::all(Dependency::ALL)
    }

    /// The blockers of an item.
    pub fn blockers_of(item: &str) -> Range {
        Range::of(Dependency::BLOCKERS, [item])
    }

    /// The items that an item blocks.
    pub fn dependents_of(item: &str) -> Range {
        Range::of(Dependency::DEPENDENTS, [item])
    }
}

/// The items that a session holds, if this one is its current work and it will need another.
fn held_beside(tx: &dyn Tx, agent: &Agent, item: &WorkItem) -> Result<Vec<WorkItem>> {
    if agent.works_on(item) { tx.rows(&Range::held_by(&agent.session_id)) } else { Ok(Vec::new()) }
}

/// The session that holds an item, and its other items.
struct Holder {
    agent: Agent,
    held: Vec<WorkItem>,
}

impl Holder {
    /// The holder of an item that another session may change.
    fn of(tx: &dyn Tx, item: &WorkItem) -> Result<Option<Holder>> {
        let session = item.claimed_by.as_ref().filter(|session| item.is_held_by(session));
        let agent = match session {
            Some(session) => {
                tx.prefetch(&[
                    Prefetch::Row(Key::Agent(session.clone())),
                    Prefetch::Range(Range::held_by(session)),
                ])?;
                tx.row::<Agent>(&Key::Agent(session.clone()))?
            }
            None => None,
        };
        agent.map(|agent| Ok(Holder { held: held_beside(tx, &agent, item)?, agent })).transpose()
    }

    /// The session after it lost the item, if that was its current work.
    fn without(&self, item: &WorkItem) -> Option<Agent> {
        self.agent.without_current_work(item, &self.held)
    }
}

/// The reason of a change, if something is left of it.
fn clean_reason(cleaner: &mut Cleaner<'_>, reason: Option<&String>) -> Result<Option<String>> {
    let reason = cleaner.maybe("reason", Kind::Summary, reason)?;
    Ok(reason.filter(|reason| !reason.is_empty()))
}

/// The item, or a refusal that says it does not exist.
pub(crate) fn existing(tx: &dyn Tx, item: &str) -> Result<WorkItem> {
    tx.row::<WorkItem>(&Key::WorkItem(item.to_owned()))?.ok_or_else(|| not_found(item))
}

pub(crate) fn not_found(item: &str) -> Error {
    Refusal::new(Code::WorkNotFound, format!("work item {item} not found")).hint(Hint::ListAllItems).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::conformance::{an_agent, an_item};

    #[test]
    fn holder_check_needs_the_right_session_and_fence_token() {
        for (status, holder, fence, expected) in [
            (Status::Claimed, Some("me"), None, Ok(())),
            (Status::Claimed, Some("me"), Some(7), Ok(())),
            (Status::Claimed, Some("me"), Some(6), Err(Code::StaleFence)),
            (Status::Claimed, Some("me"), Some(8), Err(Code::StaleFence)),
            (Status::Blocked, Some("me"), Some(7), Ok(())),
            (Status::Claimed, Some("other"), Some(7), Err(Code::NotHolder)),
            (Status::Available, None, None, Err(Code::NotHolder)),
            (Status::Available, None, Some(7), Err(Code::NotHolder)),
            (Status::Completed, Some("me"), Some(7), Err(Code::AlreadyCompleted)),
        ] {
            let item = WorkItem {
                status,
                claimed_by: holder.map(str::to_owned),
                fence: holder.map(|_| Revision::new(7)),
                ..an_item("x")
            };
            let outcome =
                item.must_be_held_by(&an_agent("me"), fence.map(Revision::new)).map_err(|error| error.code());
            assert_eq!(outcome, expected, "{status} item of {holder:?} at fence {fence:?}");
        }
    }
}
