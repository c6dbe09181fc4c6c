//! `work claim`: claims an item for exactly one session.

use std::collections::BTreeSet;

use serde::Serialize;

use super::contention::{Contention, FIRST_CHOICE};
use super::create::{NewItem, new_item};
use super::dependencies::{blockers_of, list_blockers, missing_among, named_blockers, open_among};
use super::{Create, Priority, Status, Work, WorkItem, not_found};
use crate::agent::{Agent, Register, existing as existing_agent};
use crate::board::Board;
use crate::clock::Timestamp;
use crate::error::{AgeKind, Code, Error, Refusal, Result};
use crate::event::{EventType, NewEvent, TargetType};
use crate::hint::Hint;
use crate::revision::{Pending, Revision};
use crate::store::{Changes, Key, Prefetch, Range, Tx};
use crate::text::TextChanges;
use crate::unreadable::if_readable;

/// How many items at the head of the queue are read together.
const NEXT_BATCH: usize = FIRST_CHOICE;

/// How many claimed items are read if none is available.
const MOST_CLAIMED: usize = 1000;

/// How many of their holders are read.
const MOST_HOLDERS: usize = 100;

/// The item to claim, and for which session.
#[derive(Clone, Debug)]
pub struct Claim {
    /// The item.
    pub id: String,
    /// The session that claims it. Empty if `register` has one.
    pub session: String,
    /// A new session to claim it for. The session is registered in the commit that claims the item, so that a refusal
    /// leaves none behind.
    pub register: Option<Register>,
    /// The item to create if the id does not exist. It gets the id of the claim, whatever its own id is.
    pub create: Option<Create>,
}

impl Claim {
    /// An item that exists.
    pub fn of(id: &str, session: &str) -> Claim {
        Claim { id: id.to_owned(), session: session.to_owned(), register: None, create: None }
    }

    /// An item that exists, for a session that is registered together with the claim.
    pub fn registering(id: &str, register: Register) -> Claim {
        Claim { register: Some(register), ..Claim::of(id, "") }
    }
}

/// A claim of the next matching item.
#[derive(Clone, Debug, Default)]
pub struct ClaimNext {
    /// The session that claims it.
    pub session: String,
    /// Only of this project.
    pub project: Option<String>,
    /// Only of this priority.
    pub priority: Option<Priority>,
    /// Only items whose estimate is not larger. An item without an estimate matches.
    pub most_tokens: Option<u64>,
}

/// An item that the session holds now.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Claimed {
    /// The item.
    #[serde(flatten)]
    pub item: WorkItem,
    /// Whether this call claimed it.
    pub claimed: bool,
    /// Whether the session held it already.
    pub already_held: bool,
    /// Whether this call created it.
    pub created: bool,
    /// When the session claimed it.
    pub since: Timestamp,
    /// The items that block it: a session keeps an item that is blocked after it was claimed.
    pub open_blockers: Vec<String>,
    /// Those of them that do not exist yet.
    pub missing_blockers: Vec<String>,
    /// The fields of the request that differ from an item that existed already. They changed nothing.
    pub ignored: Vec<&'static str>,
    /// The changes to the text of an item that this call created, and of a session that it registered.
    #[serde(flatten)]
    pub text: TextChanges,
}

impl Pending for Claimed {
    fn resolve(&mut self, first: Revision) {
        self.item.resolve(first);
    }
}

impl Work<'_> {
    /// Claims one item. For its holder nothing changes. An existing item is claimed unchanged: the answer lists the
    /// fields of `create` that it ignored.
    ///
    /// ```
    /// # use blackboard::{Board, Code, agent::Register, work::{Claim, Create}};
    /// # let board = Board::memory();
    /// let ivy = board.agents().register(&Register::named("Ivy"))?.agent.session_id;
    /// let oak = board.agents().register(&Register::named("Oak"))?.agent.session_id;
    /// board.work().create(&Create::new("fix-tests", "Fix the tests"))?;
    ///
    /// let claimed = board.work().claim(&Claim::of("fix-tests", &ivy))?;
    /// assert_eq!(claimed.item.fence, Some(claimed.item.revision));
    /// let refused = board.work().claim(&Claim::of("fix-tests", &oak)).unwrap_err();
    /// assert_eq!(refused.code(), Code::AlreadyClaimed);
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn claim(&self, claim: &Claim) -> Result<Claimed> {
        let rules = &self.board.settings().text;
        let registration =
            claim.register.as_ref().map(|new| self.board.agents().registration(new)).transpose()?;
        let create = claim.create.as_ref().map(|create| {
            let creator = registration.as_ref().map(|new| new.session().to_owned());
            let session = creator.or_else(|| create.session.clone());
            Create { id: claim.id.clone(), session, ..create.clone() }
        });
        let (create, text) = match create.map(|create| create.cleaned(rules)).transpose()? {
            Some((create, text)) => (Some(create), text),
            None => (None, TextChanges::default()),
        };
        crate::text::check_known_id("work item", &claim.id)?;
        let key = Key::WorkItem(claim.id.clone());
        let mut prefetch = vec![Prefetch::Row(key.clone())];
        let callers = if let Some(new) = &registration {
            prefetch.extend(new.prefetch(self.board));
            new.callers()
        } else {
            prefetch.push(Prefetch::Row(Key::Agent(claim.session.clone())));
            vec![claim.session.as_str()]
        };
        prefetch.extend(create.iter().flat_map(Create::prefetch));
        self.board.commit_as(&callers, "work claim", &prefetch, |tx| {
            let (before, agent, session_text) = match &registration {
                Some(new) => {
                    let (changes, registered) = new.changes(self.board, tx)?;
                    (changes, registered.agent, registered.text)
                }
                None => (Changes::new(), existing_agent(tx, &claim.session)?, TextChanges::default()),
            };
            let candidate = match (tx.row::<WorkItem>(&key)?, &create) {
                (Some(item), create) => ClaimTarget::existing(tx, item, create.as_ref(), before)?,
                (None, Some(create)) => {
                    create.its_project_must_exist(tx)?;
                    let named = named_blockers(tx, &create.id, &create.blocked_by)?;
                    ClaimTarget::created(new_item(create, named, tx.now(), before)?)
                }
                (None, None) => return Err(not_found(&claim.id)),
            };
            let (mut changes, mut claimed) = decide(&agent, candidate, tx.now())?;
            claimed.text = session_text;
            if claimed.created {
                claimed.text.extend(&text);
            }
            self.board.agents().record_activity(&agent, tx.now(), &mut changes);
            Ok((changes, claimed))
        })
    }

    /// Claims the first available item: P1 before P2 before P3, oldest first. If there is none, holders of matching
    /// items whose process is provably gone are swept, and the queue is read once more.
    ///
    /// On an engine without a writer lock, another session may claim the chosen item first. The call then chooses one
    /// of the first items of the same priority, and so do all calls of the next seconds, so that concurrent claims do
    /// not conflict again.
    ///
    /// ```
    /// # use blackboard::{Board, agent::Register, work::{ClaimNext, Create}};
    /// # let board = Board::memory();
    /// let ivy = board.agents().register(&Register::named("Ivy"))?.agent.session_id;
    /// board.work().create(&Create::new("fix-tests", "Fix the tests"))?;
    /// let next = board.work().claim_next(&ClaimNext { session: ivy, ..ClaimNext::default() })?;
    /// assert_eq!(next.item.item_id, "fix-tests");
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn claim_next(&self, next: &ClaimNext) -> Result<Claimed> {
        match self.try_claim_next(next) {
            Err(error) if error.code() == Code::NothingAvailable && self.free_claims_of_gone(next) => {
                self.try_claim_next(next)
            }
            answer => answer,
        }
    }

    /// The item that [`Work::claim_next`] would claim if no other session was faster. Refused as that one is, but for its
    /// session, which is not read.
    ///
    /// ```
    /// # use blackboard::{Board, Code, work::{ClaimNext, Create}};
    /// # let board = Board::memory();
    /// board.work().create(&Create { estimate: Some(900), ..Create::new("fix-tests", "Fix the tests") })?;
    /// let next = ClaimNext { most_tokens: Some(900), ..ClaimNext::default() };
    /// assert_eq!(board.work().next(&next)?.item_id, "fix-tests");
    /// let less = ClaimNext { most_tokens: Some(899), ..next };
    /// assert_eq!(board.work().next(&less).unwrap_err().code(), Code::QuotaExceeded);
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn next(&self, next: &ClaimNext) -> Result<WorkItem> {
        let queue = next.queue(Status::Available);
        let first = Prefetch::Candidates(queue.clone(), NEXT_BATCH);
        self.board.read(&[first], |tx| {
            match tx.candidate_rows::<WorkItem>(&queue, NEXT_BATCH) {
                Err(error) if error.is_unreadable_row() => {}
                candidates => {
                    if let Some(item) = candidates?.into_iter().find(|item| next.fits(item)) {
                        return Ok(item);
                    }
                }
            }
            first_in_queue(self.board, tx, next, &queue)?.map_err(|skipped| nothing_available(next, skipped))
        })
    }

    /// Refuses an item that no other session can claim now, as [`Work::claim`] does.
    ///
    /// ```
    /// # use blackboard::{Board, Code, agent::Register, work::{Claim, Create}};
    /// # let board = Board::memory();
    /// let ivy = board.agents().register(&Register::named("Ivy"))?.agent.session_id;
    /// board.work().create(&Create::new("fix-tests", "Fix the tests"))?;
    /// assert!(board.work().check_claimable("fix-tests").is_ok());
    /// board.work().claim(&Claim::of("fix-tests", &ivy))?;
    /// assert_eq!(board.work().check_claimable("fix-tests").unwrap_err().code(), Code::AlreadyClaimed);
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn check_claimable(&self, id: &str) -> Result<()> {
        let key = Key::WorkItem(id.to_owned());
        self.board.read(&[Prefetch::Row(key.clone())], |tx| {
            let item = tx.row::<WorkItem>(&key)?.ok_or_else(|| not_found(id))?;
            ClaimTarget::existing(tx, item, None, Changes::new())?.must_be_available()
        })
    }

    fn try_claim_next(self, next: &ClaimNext) -> Result<Claimed> {
        let mut prefetch = vec![
            Prefetch::Row(Key::Agent(next.session.clone())),
            Prefetch::Candidates(next.queue(Status::Available), NEXT_BATCH),
        ];
        prefetch.extend(next.project.iter().map(|project| Prefetch::Row(Key::Project(project.clone()))));
        let mut contention = Contention::on(self.board.store());
        prefetch.extend(contention.prefetch());
        self.board.commit_as(&[&next.session], "work claim --next", &prefetch, |tx| {
            let agent = existing_agent(tx, &next.session)?;
            // Before the queue: a session that has ended gets no item.
            agent.must_be_live()?;
            if let Some(project) = &next.project {
                crate::project::existing(tx, project)?;
            }
            let item = first_available(self.board, tx, next, &mut contention)?
                .map_err(|skipped| nothing_available(next, skipped))?;
            let (mut changes, claimed) =
                decide(&agent, ClaimTarget::existing(tx, item, None, Changes::new())?, tx.now())?;
            self.board.agents().record_activity(&agent, tx.now(), &mut changes);
            contention.record(tx, &next.session, &mut changes)?;
            Ok((changes, claimed))
        })
    }

    /// Sweeps holders of matching items whose process is gone. Returns whether one of them no longer holds anything. An
    /// error here does not change the answer that nothing is available.
    fn free_claims_of_gone(self, next: &ClaimNext) -> bool {
        let claimed = next.queue(Status::Claimed);
        let prefetch = [Prefetch::Candidates(claimed.clone(), MOST_CLAIMED)];
        let Ok(items) =
            self.board.read(&prefetch, |tx| tx.candidate_rows::<WorkItem>(&claimed, MOST_CLAIMED))
        else {
            return false;
        };
        let holders: BTreeSet<&str> = items
            .iter()
            // Whatever their estimates are: the caller decides again about what is available then.
            .filter(|item| next.matches(item))
            .filter_map(|item| item.claimed_by.as_deref())
            .filter(|holder| *holder != next.session)
            .collect();
        self.board.sweep_gone(holders.into_iter().take(MOST_HOLDERS))
    }
}

impl ClaimNext {
    /// The matching items of a status, in the order of the queue. The index excludes the others, so a call that finds
    /// nothing depends on no item of another project or priority.
    fn queue(&self, status: Status) -> Range {
        match (&self.project, self.priority) {
            (None, None) => Range::work_queue(status),
            (None, Some(priority)) => Range::work_queue_of(status, priority),
            (Some(project), None) => Range::project_queue(status, project),
            (Some(project), Some(priority)) => Range::project_queue_of(status, project, priority),
        }
    }

    fn fits(&self, item: &WorkItem) -> bool {
        self.matches(item) && self.allows_estimate_of(item)
    }

    fn matches(&self, item: &WorkItem) -> bool {
        self.project.as_ref().is_none_or(|project| item.project_id.as_ref() == Some(project))
            && self.priority.is_none_or(|priority| item.priority == priority)
    }

    fn allows_estimate_of(&self, item: &WorkItem) -> bool {
        self.most_tokens.is_none_or(|most| item.estimate().is_none_or(|tokens| tokens <= most))
    }
}

/// An item that a session wants to claim.
struct ClaimTarget {
    item: WorkItem,
    open_blockers: Vec<String>,
    missing_blockers: Vec<String>,
    /// The fields of the request that differ from the item.
    ignored: Vec<&'static str>,
    /// Whether it is created in the same commit.
    created: bool,
    /// The changes before the claim: a session is registered, the item is created.
    before: Changes,
}

impl ClaimTarget {
    fn existing(
        tx: &dyn Tx,
        item: WorkItem,
        create: Option<&Create>,
        before: Changes,
    ) -> Result<ClaimTarget> {
        let names_blockers = create.is_some_and(|create| !create.blocked_by.is_empty());
        let blockers = if item.status == Status::Blocked || names_blockers {
            blockers_of(tx, &item.item_id)?
        } else {
            Vec::new()
        };
        let ignored = create.map(|create| create.differing_from(&item, &blockers)).unwrap_or_default();
        Ok(ClaimTarget {
            open_blockers: open_among(&blockers),
            missing_blockers: missing_among(&blockers),
            item,
            ignored,
            created: false,
            before,
        })
    }

    fn created(new: NewItem) -> ClaimTarget {
        let NewItem { item, open_blockers, missing_blockers, changes: before } = new;
        ClaimTarget { item, open_blockers, missing_blockers, ignored: Vec::new(), created: true, before }
    }

    fn must_be_available(&self) -> Result<()> {
        let ClaimTarget { item, open_blockers, missing_blockers, created, .. } = self;
        match item.status {
            Status::Available => Ok(()),
            Status::Completed => Err(item.is_completed()),
            Status::Blocked if *created => Err(would_be_blocked(item, open_blockers, missing_blockers)),
            Status::Blocked => Err(is_blocked(item, open_blockers, missing_blockers)),
            Status::Claimed => Err(is_claimed(item).hint(Hint::ClaimNext).into()),
        }
    }
}

/// Decides whether this session gets this item.
fn decide(agent: &Agent, candidate: ClaimTarget, now: Timestamp) -> Result<(Changes, Claimed)> {
    agent.must_be_live()?;
    let is_held = candidate.item.is_held_by(&agent.session_id);
    if !is_held {
        candidate.must_be_available()?;
    }
    let ClaimTarget { mut item, open_blockers, missing_blockers, ignored, created, before: mut changes } =
        candidate;
    if is_held {
        let since = item.claimed_at.unwrap_or(now);
        let held = Claimed {
            item,
            claimed: false,
            already_held: true,
            created,
            since,
            open_blockers,
            missing_blockers,
            ignored,
            text: TextChanges::default(),
        };
        return Ok((changes, held));
    }
    let summary = format!("Agent \"{}\" claimed \"{}\"", agent.agent_name, item.title);
    let event = NewEvent::new(EventType::WorkClaimed, TargetType::WorkItem, &item.item_id, summary);
    item.give_to(agent, event, now, &mut changes);
    let claimed = Claimed {
        item,
        claimed: true,
        already_held: false,
        created,
        since: now,
        open_blockers,
        missing_blockers,
        ignored,
        text: TextChanges::default(),
    };
    Ok((changes, claimed))
}

pub(super) fn is_claimed(item: &WorkItem) -> Refusal {
    let mut refusal = Refusal::new(
        Code::AlreadyClaimed,
        format!("work item {} is already claimed by {}", item.item_id, item.holder()),
    )
    .age(AgeKind::Held, item.claimed_at, "")
    .held_by(item.claimed_by.clone(), item.claimed_by_name.clone(), item.claimed_at);
    if let Some(fence) = item.fence {
        refusal = refusal.detail("fence", fence.get());
    }
    refusal
}

pub(super) fn is_blocked(item: &WorkItem, open_blockers: &[String], missing_blockers: &[String]) -> Error {
    if let Some(reason) = item.hold().on_hold.filter(|_| open_blockers.is_empty()) {
        return Refusal::new(Code::WorkBlocked, format!("work item {} is on hold: {reason}", item.item_id))
            .hint(Hint::EndHold(item.item_id.clone()))
            .detail("on_hold", reason)
            .into();
    }
    let blockers = list_blockers(open_blockers, missing_blockers);
    Refusal::new(Code::WorkBlocked, format!("work item {} is blocked by {blockers}", item.item_id))
        .hint(Hint::ClaimNext)
        .detail("blocked_by", open_blockers.to_vec())
        .into()
}

fn would_be_blocked(item: &WorkItem, open_blockers: &[String], missing_blockers: &[String]) -> Error {
    let (id, blockers) = (&item.item_id, list_blockers(open_blockers, missing_blockers));
    let message = format!("cannot claim {id}: it would be blocked by {blockers}; nothing was created");
    Refusal::new(Code::WorkBlocked, message)
        .hint(Hint::CreateBlocked { item: id.clone(), blocked_by: open_blockers.to_vec() })
        .detail("blocked_by", open_blockers.to_vec())
        .into()
}

/// The refusal if no item matches. `skipped` counts those that need too many tokens.
fn nothing_available(next: &ClaimNext, skipped: usize) -> Error {
    let where_from =
        next.project.as_ref().map(|project| format!(" in project {project}")).unwrap_or_default();
    let how_soon = next.priority.map(|priority| format!(" with priority {priority}")).unwrap_or_default();
    if let Some(most) = next.most_tokens.filter(|_| skipped > 0) {
        let needs = if skipped == 1 { "1 needs" } else { &format!("{skipped} need") };
        let message =
            format!("no available work item{where_from}{how_soon} fits into {most} tokens: {needs} more");
        return Refusal::new(Code::QuotaExceeded, message)
            .hint(Hint::ListOpenItems)
            .detail("skipped", skipped)
            .detail("most_tokens", most)
            .into();
    }
    Refusal::new(Code::NothingAvailable, format!("no available work item{where_from}{how_soon}"))
        .hint(Hint::ListOpenItems)
        .into()
}

/// The first matching item of the queue, or another one of its priority under contention. The first items are read as
/// candidates, so that concurrent claims conflict only over the same item. Each candidate is read again by its key.
/// Without one, returns how many items were skipped because of their estimate.
fn first_available(
    board: &Board,
    tx: &dyn Tx,
    next: &ClaimNext,
    contention: &mut Contention,
) -> Result<std::result::Result<WorkItem, usize>> {
    let queue = next.queue(Status::Available);
    let mut candidates = match tx.candidate_rows::<WorkItem>(&queue, NEXT_BATCH) {
        Err(error) if error.is_unreadable_row() => return first_in_queue(board, tx, next, &queue),
        candidates => candidates?,
    };
    contention.begin(tx, &candidates)?;
    if let Some(item) = farther_in_queue(tx, next, &candidates, contention)? {
        contention.choose(&item);
        return Ok(Ok(item));
    }
    contention.spread(tx, &mut candidates, &next.session)?;
    // An item that is skipped is not read again, so that a change of it causes no further run.
    for candidate in candidates.into_iter().filter(|candidate| next.allows_estimate_of(candidate)) {
        let item = tx.row::<WorkItem>(&Key::WorkItem(candidate.item_id))?;
        if let Some(item) = item.filter(|item| item.status == Status::Available && next.fits(item)) {
            contention.choose(&item);
            return Ok(Ok(item));
        }
    }
    // Candidates may be outdated, and no call is refused because of them: only the queue itself shows that nothing is
    // available.
    first_in_queue(board, tx, next, &queue)
}

/// Under contention, an item after the candidates. All of them have to be as urgent as the first one, so that no more urgent
/// item is skipped.
fn farther_in_queue(
    tx: &dyn Tx,
    next: &ClaimNext,
    candidates: &[WorkItem],
    contention: &Contention,
) -> Result<Option<WorkItem>> {
    let Some(priority) = candidates.first().map(|first| first.priority) else { return Ok(None) };
    if candidates.len() < NEXT_BATCH || candidates.iter().any(|item| item.priority != priority) {
        return Ok(None);
    }
    let queue = ClaimNext { priority: Some(priority), ..next.clone() }.queue(Status::Available);
    let Some(key) = contention.farther(tx, &queue, &next.session)? else { return Ok(None) };
    let item = if_readable(tx.row::<WorkItem>(&key))?;
    Ok(item.filter(|item| item.status == Status::Available && next.fits(item)))
}

/// The first matching item of the complete queue, or how many were skipped because of their estimate. An item that cannot be
/// read does not keep the others from being claimed.
fn first_in_queue(
    board: &Board,
    tx: &dyn Tx,
    next: &ClaimNext,
    queue: &Range,
) -> Result<std::result::Result<WorkItem, usize>> {
    tx.prefetch(&[Prefetch::Range(queue.clone())])?;
    let mut skipped = 0;
    let mut is_chosen = |item: &WorkItem| {
        let (matches, is_allowed) = (next.matches(item), next.allows_estimate_of(item));
        skipped += usize::from(matches && !is_allowed);
        matches && is_allowed
    };
    // A read that fails is validated too, so that no item has entered the queue when this answer is given. The keys
    // alone are not validated.
    match tx.rows::<WorkItem>(queue) {
        Err(error) if error.is_unreadable_row() => {}
        items => {
            let item = items?.into_iter().find(|item| is_chosen(item));
            return Ok(item.ok_or(skipped));
        }
    }
    tx.prefetch(&[Prefetch::Keys(queue.clone(), usize::MAX)])?;
    let keys = tx.keys(queue, usize::MAX)?;
    tx.prefetch(&keys.iter().flatten().cloned().map(Prefetch::Row).collect::<Vec<_>>())?;
    for key in keys {
        // A key that cannot be read cannot be claimed by its id either.
        let Ok(key) = key else { continue };
        match tx.row::<WorkItem>(&key) {
            Err(error) if error.is_unreadable_row() => board.report_unreadable(&key, &error),
            item => {
                if let Some(item) = item?.filter(|item| is_chosen(item)) {
                    return Ok(Ok(item));
                }
            }
        }
    }
    Ok(Err(skipped))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::AgentStatus;
    use crate::store::conformance::{an_agent, an_item};

    #[test]
    fn claim_decision_depends_on_agent_and_item() {
        use AgentStatus::{Active, Completed, Idle, Stale};
        let outcomes = |agent: AgentStatus, item: Status, holder: Option<&str>| {
            let agent = Agent { status: agent, ..an_agent("me") };
            let item = WorkItem { status: item, claimed_by: holder.map(str::to_owned), ..an_item("x") };
            let candidate = ClaimTarget {
                item,
                open_blockers: Vec::new(),
                missing_blockers: Vec::new(),
                ignored: Vec::new(),
                created: false,
                before: Changes::new(),
            };
            decide(&agent, candidate, Timestamp::EPOCH)
                .map(|(changes, claimed)| (claimed.claimed, changes.events.len()))
                .map_err(|error| error.code())
        };
        let (taken, held) = (Ok((true, 1)), Ok((false, 0)));
        for (agent, item, holder, expected) in [
            (Active, Status::Available, None, taken),
            (Idle, Status::Available, None, taken),
            (Stale, Status::Available, None, Err(Code::SessionStale)),
            (Completed, Status::Available, None, Err(Code::SessionEnded)),
            (Active, Status::Claimed, Some("me"), held),
            (Active, Status::Claimed, Some("other"), Err(Code::AlreadyClaimed)),
            (Stale, Status::Claimed, Some("me"), Err(Code::SessionStale)),
            (Active, Status::Blocked, None, Err(Code::WorkBlocked)),
            (Active, Status::Blocked, Some("me"), held),
            (Active, Status::Blocked, Some("other"), Err(Code::WorkBlocked)),
            (Active, Status::Completed, Some("me"), Err(Code::AlreadyCompleted)),
            (Active, Status::Completed, Some("other"), Err(Code::AlreadyCompleted)),
        ] {
            assert_eq!(outcomes(agent, item, holder), expected, "{agent} agent, {item} item of {holder:?}");
        }
    }

    #[test]
    fn claim_does_not_create_a_blocked_item() {
        let item = WorkItem { status: Status::Blocked, ..an_item("x") };
        let candidate = ClaimTarget {
            item,
            open_blockers: vec!["a".to_owned()],
            missing_blockers: Vec::new(),
            ignored: Vec::new(),
            created: true,
            before: Changes::new(),
        };
        let refused = decide(&an_agent("me"), candidate, Timestamp::EPOCH).unwrap_err();
        assert_eq!(refused.code(), Code::WorkBlocked);
        assert_eq!(refused.to_string(), "cannot claim x: it would be blocked by a; nothing was created");
    }

    #[test]
    fn refusal_marks_blockers_that_do_not_exist() {
        for (created, expected) in [
            (false, "work item x is blocked by a, b (not created)"),
            (true, "cannot claim x: it would be blocked by a, b (not created); nothing was created"),
        ] {
            let candidate = ClaimTarget {
                item: WorkItem { status: Status::Blocked, ..an_item("x") },
                open_blockers: vec!["a".to_owned(), "b".to_owned()],
                missing_blockers: vec!["b".to_owned()],
                ignored: Vec::new(),
                created,
                before: Changes::new(),
            };
            let refused = decide(&an_agent("me"), candidate, Timestamp::EPOCH).unwrap_err();
            assert_eq!(refused.to_string(), expected);
            let Error::Refusal(refusal) = refused else { panic!("a fault") };
            assert_eq!(refusal.details["blocked_by"], serde_json::json!(["a", "b"]), "ids without a mark");
        }
    }
}
