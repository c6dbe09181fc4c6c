//! `work reassign`: reassigns an item from one session to another.

use serde::Serialize;

use super::claim::{is_blocked, is_claimed};
use super::dependencies::{Blocker, blockers_of, missing_among, open_among};
use super::{Holder, Status, Work, WorkItem, clean_reason, existing};
use crate::agent::{Agent, ShortIds, existing as existing_agent};
use crate::clock::Timestamp;
use crate::error::{Error, Result};
use crate::event::{EventType, NewEvent, TargetType};
use crate::hint::Hint;
use crate::revision::{Pending, Revision};
use crate::store::{Changes, Key, Prefetch, Range};
use crate::text::{Cleaner, IN_A_SENTENCE, TextChanges, excerpt};

/// The item to reassign, and its new session.
#[derive(Clone, Debug)]
pub struct Reassign {
    /// The item.
    pub id: String,
    /// The session that reassigns it.
    pub session: String,
    /// The session that gets it.
    pub to: String,
    /// The fence token that the holder is expected to have.
    pub fence: Option<Revision>,
    /// The reason.
    pub reason: Option<String>,
    /// Whether to reassign an item that another session holds.
    pub force: bool,
}

impl Reassign {
    /// An item that the session holds or that is available, whatever its fence token, without a reason.
    pub fn of(id: &str, session: &str, to: &str) -> Reassign {
        Reassign {
            id: id.to_owned(),
            session: session.to_owned(),
            to: to.to_owned(),
            fence: None,
            reason: None,
            force: false,
        }
    }
}

/// The result of a reassignment.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Reassigned {
    /// The item.
    #[serde(flatten)]
    pub item: WorkItem,
    /// Whether this call reassigned it. `false` if the session held it already.
    pub reassigned: bool,
    /// The name of the agent that held it before this call; `None` if it was available.
    pub previously_held_by: Option<String>,
    /// The session of that agent.
    pub previously_held_by_session: Option<String>,
    /// The given fields that changed nothing: the reason, if the session held the item already.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ignored: Vec<&'static str>,
    /// The changes to the reason.
    #[serde(flatten)]
    pub text: TextChanges,
}

impl Pending for Reassigned {
    fn resolve(&mut self, first: Revision) {
        self.item.resolve(first);
    }
}

impl Work<'_> {
    /// Reassigns an item to another session, in one commit. The session that gets it has a new fence token, and the
    /// old one is stale. An available item is claimed for that session. If the session holds it already, nothing
    /// changes.
    ///
    /// ```
    /// # use blackboard::{Board, agent::Register, work::{Claim, Create, Reassign}};
    /// # let board = Board::memory();
    /// # let ivy = board.agents().register(&Register::named("Ivy"))?.agent.session_id;
    /// # let oak = board.agents().register(&Register::named("Oak"))?.agent.session_id;
    /// # board.work().create(&Create::new("fix-tests", "Fix the tests"))?;
    /// let claimed = board.work().claim(&Claim::of("fix-tests", &ivy))?;
    /// let reassigned = board.work().reassign(&Reassign::of("fix-tests", &ivy, &oak))?;
    /// assert!(reassigned.item.is_held_by(&oak));
    /// assert!(reassigned.item.fence > claimed.item.fence);
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn reassign(&self, reassign: &Reassign) -> Result<Reassigned> {
        let mut cleaner = Cleaner::new(&self.board.settings().text);
        let reason = clean_reason(&mut cleaner, reassign.reason.as_ref())?;
        let reassign = Reassign { reason, ..reassign.clone() };
        let text = cleaner.changes();
        let prefetch = [
            Prefetch::Row(Key::Agent(reassign.session.clone())),
            Prefetch::Row(Key::Agent(reassign.to.clone())),
            Prefetch::Row(Key::WorkItem(reassign.id.clone())),
            Prefetch::Range(Range::held_by(&reassign.session)),
        ];
        self.board.commit_as(&[&reassign.session], "work reassign", &prefetch, |tx| {
            let agent = existing_agent(tx, &reassign.session)?;
            let target = existing_agent(tx, &reassign.to)?;
            let item = existing(tx, &reassign.id)?;
            let holder = Holder::of(tx, &item)?;
            let blockers = match item.status {
                Status::Blocked => blockers_of(tx, &reassign.id)?,
                Status::Available | Status::Claimed | Status::Completed => Vec::new(),
            };
            let (mut changes, mut reassigned) =
                decide(&reassign, &agent, &target, item, holder.as_ref(), &blockers, tx.now())?;
            if reassigned.reassigned {
                reassigned.text.clone_from(&text);
            }
            self.board.agents().record_activity(&agent, tx.now(), &mut changes);
            Ok((changes, reassigned))
        })
    }
}

fn decide(
    reassign: &Reassign,
    agent: &Agent,
    target: &Agent,
    mut item: WorkItem,
    holder: Option<&Holder>,
    blockers: &[Blocker],
    now: Timestamp,
) -> Result<(Changes, Reassigned)> {
    agent.must_be_live()?;
    must_be_able_to_take_work(target)?;
    let (previously_held_by, previously_held_by_session) =
        (item.claimed_by_name.clone(), item.claimed_by.clone());
    let mut changes = Changes::new();
    if item.is_held_by(&target.session_id) {
        let ignored = if reassign.reason.is_some() { vec!["reason"] } else { Vec::new() };
        let text = TextChanges::default();
        return Ok((
            changes,
            Reassigned {
                item,
                reassigned: false,
                previously_held_by,
                previously_held_by_session,
                ignored,
                text,
            },
        ));
    }
    match item.status {
        // Only a claim has a fence token.
        Status::Available if reassign.fence.is_some() => item.must_be_held_by(agent, reassign.fence)?,
        Status::Available => {}
        Status::Completed => return Err(item.is_completed()),
        Status::Blocked => return Err(is_blocked(&item, &open_among(blockers), &missing_among(blockers))),
        Status::Claimed if reassign.force || item.is_held_by(&agent.session_id) => {
            item.must_be_held_at(reassign.fence)?;
            changes.event(loss(reassign, agent, target, &item));
        }
        Status::Claimed => {
            return Err(is_claimed(&item).hint(Hint::ReassignAnyway(item.item_id.clone())).into());
        }
    }
    let event = gain(reassign, agent, target, &item);
    item.give_to(target, event, now, &mut changes);
    if let Some(loser) = holder.and_then(|holder| holder.without(&item)) {
        changes.put(loser);
    }
    let (ignored, text) = (Vec::new(), TextChanges::default());
    Ok((
        changes,
        Reassigned { item, reassigned: true, previously_held_by, previously_held_by_session, ignored, text },
    ))
}

fn must_be_able_to_take_work(target: &Agent) -> Result<()> {
    target.must_be_live().map_err(|error| match error {
        Error::Refusal(refusal) => refusal.hint(Hint::ListActiveAgents).into(),
        fault @ Error::Fault(_) => fault,
    })
}

/// The other agents that the summaries of a reassignment name. Readers get the session of the first agent with the event,
/// and those of the others only here: agents may have the same name.
struct OtherAgents {
    from: String,
    to: String,
}

impl OtherAgents {
    fn of(agent: &Agent, target: &Agent, item: &WorkItem) -> OtherAgents {
        let holder = item.claimed_by.as_deref().unwrap_or_default();
        let ids = ShortIds::of([holder, &agent.session_id, &target.session_id]);
        let named = |name: &str, session| format!("\"{name}\" ({})", ids.shorten(session));
        OtherAgents {
            from: named(item.claimed_by_name.as_deref().unwrap_or_default(), holder),
            to: named(&target.agent_name, &target.session_id),
        }
    }
}

/// The event by which the holder loses the item.
fn loss(reassign: &Reassign, agent: &Agent, target: &Agent, item: &WorkItem) -> NewEvent {
    let (title, by) = (&item.title, &agent.agent_name);
    let OtherAgents { from, to } = OtherAgents::of(agent, target, item);
    let summary = if item.is_held_by(&agent.session_id) {
        format!("Agent \"{by}\" handed \"{title}\" over to agent {to}")
    } else if agent.session_id == target.session_id {
        format!("Agent \"{by}\" took \"{title}\" from agent {from}")
    } else {
        format!("Agent \"{by}\" took \"{title}\" from agent {from} for agent {to}")
    };
    let mut event = event(EventType::WorkReleased, reassign, item, summary)
        .by(Some(&agent.session_id))
        .with("held_by", item.claimed_by.as_deref())
        .with("to", target.session_id.as_str());
    if let Some(fence) = item.fence {
        event = event.with("fence", fence.get());
    }
    event
}

/// The event by which the target gets the item.
fn gain(reassign: &Reassign, agent: &Agent, target: &Agent, item: &WorkItem) -> NewEvent {
    let (title, by, name) = (&item.title, &agent.agent_name, &target.agent_name);
    let OtherAgents { from, to } = OtherAgents::of(agent, target, item);
    let summary = match &item.claimed_by_name {
        Some(_) => format!("Agent \"{name}\" got \"{title}\" from agent {from}"),
        None if agent.session_id == target.session_id => format!("Agent \"{name}\" claimed \"{title}\""),
        None => format!("Agent \"{by}\" assigned \"{title}\" to agent {to}"),
    };
    event(EventType::WorkClaimed, reassign, item, summary).with("assigned_by", agent.session_id.as_str())
}

fn event(kind: EventType, reassign: &Reassign, item: &WorkItem, summary: String) -> NewEvent {
    let event = |summary| NewEvent::new(kind, TargetType::WorkItem, &item.item_id, summary);
    match &reassign.reason {
        Some(reason) => {
            event(format!("{summary} ({})", excerpt(reason, IN_A_SENTENCE))).with("reason", reason.as_str())
        }
        None => event(summary),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::AgentStatus;
    use crate::error::Code;
    use crate::store::Row;
    use crate::store::conformance::{an_agent, an_item};

    fn agent(session: &str, status: AgentStatus) -> Agent {
        Agent { status, agent_name: session.to_uppercase(), ..an_agent(session) }
    }

    fn item(status: Status, holder: Option<&str>) -> WorkItem {
        WorkItem {
            status,
            claimed_by: holder.map(str::to_owned),
            claimed_by_name: holder.map(str::to_uppercase),
            fence: holder.map(|_| Revision::new(7)),
            ..an_item("x")
        }
    }

    #[test]
    fn reassignment_depends_on_holder_target_and_force() {
        use AgentStatus::{Active, Completed as Ended, Idle, Stale};
        use Status::{Available, Blocked, Claimed, Completed};
        let (handed_over, claimed, unchanged) = (Ok((true, 2)), Ok((true, 1)), Ok((false, 0)));
        for (by, to, status, holder, fence, force, expected) in [
            (Active, Active, Claimed, Some("me"), None, false, handed_over),
            (Idle, Idle, Claimed, Some("me"), Some(7), false, handed_over),
            (Active, Active, Claimed, Some("me"), Some(6), false, Err(Code::StaleFence)),
            (Active, Active, Available, None, None, false, claimed),
            (Active, Active, Available, None, Some(7), false, Err(Code::NotHolder)),
            (Active, Active, Claimed, Some("third"), None, false, Err(Code::AlreadyClaimed)),
            (Active, Active, Claimed, Some("third"), None, true, handed_over),
            (Active, Active, Claimed, Some("third"), Some(6), true, Err(Code::StaleFence)),
            (Active, Active, Claimed, Some("other"), None, false, unchanged),
            (Active, Active, Claimed, Some("other"), Some(6), true, unchanged),
            (Active, Active, Blocked, Some("other"), None, false, unchanged),
            (Active, Active, Blocked, Some("me"), None, false, Err(Code::WorkBlocked)),
            (Active, Active, Blocked, None, None, true, Err(Code::WorkBlocked)),
            (Active, Active, Completed, Some("me"), None, true, Err(Code::AlreadyCompleted)),
            (Active, Active, Completed, Some("other"), None, false, Err(Code::AlreadyCompleted)),
            (Stale, Active, Available, None, None, true, Err(Code::SessionStale)),
            (Ended, Active, Available, None, None, true, Err(Code::SessionEnded)),
            (Active, Stale, Claimed, Some("me"), None, true, Err(Code::SessionStale)),
            (Active, Ended, Claimed, Some("me"), None, true, Err(Code::SessionEnded)),
        ] {
            let reassign =
                Reassign { fence: fence.map(Revision::new), force, ..Reassign::of("x", "me", "other") };
            let (me, other) = (agent("me", by), agent("other", to));
            let outcome = decide(&reassign, &me, &other, item(status, holder), None, &[], Timestamp::EPOCH)
                .map(|(changes, reassigned)| (reassigned.reassigned, changes.events.len()))
                .map_err(|error| error.code());
            let context =
                format!("{by} to {to}, {status} item of {holder:?}, fence {fence:?}, force {force}");
            assert_eq!(outcome, expected, "{context}");
        }
    }

    #[test]
    fn reassignment_events_name_both_agents_and_the_new_holder_acts_second() {
        for (by, to, holder, expected) in [
            (
                "ivy",
                "oak",
                Some("ivy"),
                &[
                    "Agent \"IVY\" handed \"Title of x\" over to agent \"OAK\" (oak)",
                    "Agent \"OAK\" got \"Title of x\" from agent \"IVY\" (ivy)",
                ][..],
            ),
            (
                "elm",
                "oak",
                Some("ivy"),
                &[
                    "Agent \"ELM\" took \"Title of x\" from agent \"IVY\" (ivy) for agent \"OAK\" (oak)",
                    "Agent \"OAK\" got \"Title of x\" from agent \"IVY\" (ivy)",
                ],
            ),
            (
                "oak",
                "oak",
                Some("ivy"),
                &[
                    "Agent \"OAK\" took \"Title of x\" from agent \"IVY\" (ivy)",
                    "Agent \"OAK\" got \"Title of x\" from agent \"IVY\" (ivy)",
                ],
            ),
            ("ivy", "oak", None, &["Agent \"IVY\" assigned \"Title of x\" to agent \"OAK\" (oak)"]),
            ("oak", "oak", None, &["Agent \"OAK\" claimed \"Title of x\""]),
        ] {
            let reassign =
                Reassign { force: true, reason: Some("Lunch".to_owned()), ..Reassign::of("x", by, to) };
            let (by, to) = (agent(by, AgentStatus::Active), agent(to, AgentStatus::Active));
            let status = if holder.is_some() { Status::Claimed } else { Status::Available };
            let item = WorkItem { title: "Title of x".to_owned(), ..item(status, holder) };
            let (changes, _) = decide(&reassign, &by, &to, item, None, &[], Timestamp::EPOCH).unwrap();
            let summary: Vec<_> = changes.events.iter().map(|event| event.summary.clone()).collect();
            let expected: Vec<_> = expected.iter().map(|summary| format!("{summary} (Lunch)")).collect();
            assert_eq!(summary, expected);
            assert_eq!(changes.events.last().unwrap().actor_id.as_deref(), Some("oak"));
            assert_eq!(
                changes.events[0].actor_id.as_deref(),
                Some(if holder.is_some() { by.session_id.as_str() } else { "oak" })
            );
        }
    }

    #[test]
    fn reassignment_changes_the_current_work_of_both_sessions() {
        let x = WorkItem { title: "X".to_owned(), ..item(Status::Claimed, Some("me")) };
        let y = WorkItem { item_id: "y".to_owned(), title: "Y".to_owned(), ..x.clone() };
        let me = Agent { current_work: Some("X".to_owned()), ..agent("me", AgentStatus::Active) };
        let other = agent("other", AgentStatus::Active);
        let holder = Holder { agent: me.clone(), held: vec![x.clone(), y] };
        let reassign = Reassign::of("x", "me", "other");
        let (changes, _) = decide(&reassign, &me, &other, x, Some(&holder), &[], Timestamp::EPOCH).unwrap();
        let mut work: Vec<_> = changes
            .put
            .iter()
            .filter_map(|row| match row {
                Row::Agent(agent) => Some((agent.session_id.as_str(), agent.current_work.as_deref())),
                _ => None,
            })
            .collect();
        work.sort_unstable();
        assert_eq!(work, [("me", Some("Y")), ("other", Some("X"))]);
    }
}
