//! Work items: find, claim and update them.

use blackboard::agent::Heartbeat;
use blackboard::work::{
    Block, Claim as Claiming, ClaimNext, Complete, Create, Priority, Release, Status, WorkFilter,
};
use blackboard::{Result, Revision};
use rmcp::schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::reply::{ItemList, Reply, ShownEvent, shortened};
use super::tools::{ActionArgument, Arguments, Call, Tool, check_arguments, wrong};
use crate::quota::claims;
use crate::quota::item_tokens::WithTokens;

/// The default and the maximum number of items in a list.
const LIMIT: usize = 20;
const MOST: usize = 100;

/// How many events of its history are shown with an item.
const HISTORY: usize = 20;

/// List work items by priority, or show one with its history by `id`.
#[derive(Clone, Deserialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
#[serde(deny_unknown_fields)]
pub struct Find {
    id: Option<String>,
    /// available, claimed, blocked, completed; default: all but completed
    #[serde(default)]
    status: Vec<String>,
    project: Option<String>,
    /// Only what you hold
    #[serde(default)]
    mine: bool,
    /// At most 100; default 20
    limit: Option<usize>,
}

impl Arguments for Find {
    const NAME: &'static str = "work_find";
    const READS: bool = true;
}

#[derive(Serialize)]
struct One {
    item: blackboard::work::WorkItem,
    open_blockers: Vec<String>,
    missing_blockers: Vec<String>,
    dependents: Vec<String>,
    history: ItemList,
}

impl Tool for Find {
    fn call(self, call: &Call) -> Result<Reply> {
        let (board, session) = call.reading()?;
        if let Some(id) = self.id {
            let found = board.work().status(&id)?;
            // The last events explain the current state.
            let skipped = found.history.len().saturating_sub(HISTORY);
            let history = found.history.into_iter().skip(skipped).map(ShownEvent::of);
            return Reply::new(&One {
                item: found.item,
                open_blockers: found.open_blockers,
                missing_blockers: found.missing_blockers,
                dependents: found.dependents,
                history: ItemList::of(history, HISTORY)?,
            });
        }
        let claimed_by = match (self.mine, session) {
            (false, _) => None,
            (true, Some(session)) => Some(session),
            // A caller without a session holds nothing.
            (true, None) => return Reply::new(&ItemList::of(Vec::<()>::new(), 0)?),
        };
        let limit = self.limit.unwrap_or(LIMIT).clamp(1, MOST);
        let statuses = match &self.status[..] {
            [] => Status::OPEN.to_vec(),
            names => names.iter().map(|name| name.parse()).collect::<Result<_>>()?,
        };
        let filter = WorkFilter {
            statuses,
            project: self.project,
            priority: None,
            claimed_by,
            limit: Some(limit + 1),
        };
        Reply::new(&ItemList::of(board.work().list(&filter)?.into_iter().map(shortened), limit)?)
    }
}

/// Claim a work item before you start; exactly one agent gets it. Pass `id`, or `next: true` for the most urgent, or `id` and
/// `title` to create and claim. Keep the returned `fence`.
#[derive(Clone, Deserialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
#[serde(deny_unknown_fields)]
pub struct Claim {
    id: Option<String>,
    #[serde(default)]
    next: bool,
    title: Option<String>,
    description: Option<String>,
    project: Option<String>,
    #[schemars(extend("enum" = ["P1", "P2", "P3"]))]
    priority: Option<String>,
}

impl Arguments for Claim {
    const NAME: &'static str = "work_claim";
    const READS: bool = false;
}

impl Tool for Claim {
    fn call(self, call: &Call) -> Result<Reply> {
        let priority = priority(self.priority.as_deref())?;
        let id = match (self.id, self.next) {
            (Some(id), false) => id,
            (None, true) if self.title.is_none() && self.description.is_none() => {
                let (board, session) = call.acting()?;
                let next = ClaimNext { session, project: self.project, priority, most_tokens: None };
                let (claimed, tokens) =
                    claims::claim_next(call.state.claim_quota()?.as_ref(), &board, &next)?;
                return Reply::new(&WithTokens { answer: &claimed, tokens: tokens.as_deref() });
            }
            (Some(_), true) => {
                return Err(wrong("both id and next are given", "pass either id or next: true"));
            }
            (None, true) => {
                let hint = "pass an id to create the item";
                return Err(wrong("title and description require an id", hint));
            }
            (None, false) => return Err(wrong("no item given", "pass either id or next: true")),
        };
        if self.title.is_none()
            && (self.description.is_some() || self.project.is_some() || priority.is_some())
        {
            let hint = "pass a title to create the item, or id alone";
            return Err(wrong("description, project and priority require a title", hint));
        }
        let (board, session) = call.acting()?;
        let create = self.title.map(|title| Create {
            description: self.description,
            project: self.project,
            priority,
            session: Some(session.clone()),
            ..Create::new(&id, &title)
        });
        let claim = Claiming { id, session, register: None, create };
        let (claimed, tokens) = claims::claim(call.state.claim_quota()?.as_ref(), &board, &claim)?;
        Reply::new(&WithTokens { answer: &claimed, tokens: tokens.as_deref() })
    }
}

/// Complete or release an item you hold (pass its `fence`), block, unblock or create one, or report progress.
#[derive(Clone, Deserialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
#[serde(deny_unknown_fields)]
pub struct Update {
    action: Action,
    /// create: generated if missing
    id: Option<String>,
    fence: Option<i64>,
    /// complete: result; block: reason; create: description; progress: note
    text: Option<String>,
    /// block, unblock, create: ids of blockers
    #[serde(default)]
    blocked_by: Vec<String>,
    /// create
    title: Option<String>,
    /// create
    project: Option<String>,
    #[schemars(extend("enum" = ["P1", "P2", "P3"]))]
    priority: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Deserialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
#[serde(rename_all = "lowercase")]
enum Action {
    Complete,
    Release,
    Block,
    Unblock,
    Create,
    Progress,
}

impl Arguments for Update {
    const NAME: &'static str = "work_update";
    const READS: bool = false;
}

impl Update {
    fn check(&self) -> Result<()> {
        use Action::{Block, Complete, Create, Progress, Release, Unblock};
        let argument =
            |name, is_given, used_by, needed_by| ActionArgument { name, is_given, used_by, needed_by };
        let all = &[Complete, Release, Block, Unblock, Create, Progress][..];
        check_arguments(
            &self.action,
            &[
                argument("id", self.id.is_some(), all, &[Complete, Release, Block, Unblock][..]),
                argument("fence", self.fence.is_some(), &[Complete, Release], &[]),
                argument("text", self.text.is_some(), &[Complete, Block, Create, Progress], &[Progress]),
                argument("blocked_by", !self.blocked_by.is_empty(), &[Block, Unblock, Create], &[Block]),
                argument("title", self.title.is_some(), &[Create], &[Create]),
                argument("project", self.project.is_some(), &[Create], &[]),
                argument("priority", self.priority.is_some(), &[Create], &[]),
            ],
        )
    }
}

impl Tool for Update {
    fn call(self, call: &Call) -> Result<Reply> {
        self.check()?;
        let fence = self.fence.map(Revision::new);
        let priority = priority(self.priority.as_deref())?;
        let (board, session) = call.acting()?;
        let work = board.work();
        let id = self.id.clone().unwrap_or_default();
        match self.action {
            Action::Complete => {
                let completed =
                    work.complete(&Complete { id: id.clone(), session, fence, summary: self.text })?;
                claims::release_items(call.state.item_quota().as_ref(), [id.as_str()]);
                Reply::new(&completed)
            }
            Action::Release => {
                let released = work.release(&Release { fence, ..Release::of(&id, &session) })?;
                claims::release_claim(call.state.item_quota().as_ref(), &session, &id);
                Reply::new(&released)
            }
            Action::Block => {
                let (blocked_by, reason) = (self.blocked_by, self.text);
                Reply::new(&work.block(&Block { id, blocked_by, reason, session: Some(session) })?)
            }
            Action::Unblock => Reply::new(&work.unblock(&id, &self.blocked_by, Some(&session))?),
            Action::Create => {
                let item = Create {
                    description: self.text,
                    project: self.project,
                    priority,
                    blocked_by: self.blocked_by,
                    session: Some(session),
                    ..Create::new(&id, &self.title.unwrap_or_default())
                };
                Reply::new(&if self.id.is_some() {
                    work.create(&item)?
                } else {
                    work.create_with_generated_id(&item)?
                })
            }
            Action::Progress => {
                let (progress, work_item) = (self.text, self.id);
                let beat = Heartbeat { progress, work_item, ..Heartbeat::of(&session) };
                Reply::new(&board.agents().heartbeat(&beat)?)
            }
        }
    }
}

fn priority(name: Option<&str>) -> Result<Option<Priority>> {
    name.map(str::parse).transpose()
}
