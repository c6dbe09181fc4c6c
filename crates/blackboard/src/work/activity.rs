//! The activity of sessions: which items they held in the last hours, from the event log.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use serde::Serialize;

use super::{Status, Work, WorkItem};
use crate::agent::Agent;
use crate::clock::Timestamp;
use crate::error::Result;
use crate::event::{Event, EventType};
use crate::revision::Revision;
use crate::store::{Key, Page, Prefetch, Range, Tx};

/// The effect of an event on the span of an item.
enum Effect {
    /// Its actor begins a span.
    Begins,
    /// Its actor completes the item.
    Completes,
    /// The holder releases the item, or another session reassigns it.
    Releases,
    /// The item no longer has a holder.
    Frees,
    /// The holder is blocked.
    Blocks,
    /// The holder continues.
    Unblocks,
    /// A session that was marked stale loses all of its items.
    LosesAll,
}

/// The effect of events of this type on a span; `None` if they begin or end none.
fn effect(event_type: &EventType) -> Option<Effect> {
    match event_type {
        EventType::WorkClaimed => Some(Effect::Begins),
        EventType::WorkCompleted => Some(Effect::Completes),
        EventType::WorkReleased => Some(Effect::Releases),
        EventType::WorkReset | EventType::WorkDeleted => Some(Effect::Frees),
        EventType::WorkBlocked => Some(Effect::Blocks),
        EventType::WorkUnblocked => Some(Effect::Unblocks),
        EventType::StaleLocksReleased => Some(Effect::LosesAll),
        EventType::AgentRegistered
        | EventType::AgentDeregistered
        | EventType::AgentStale
        | EventType::AgentRecovered
        | EventType::AgentUpdated
        | EventType::WorkCreated
        | EventType::WorkUpdated
        | EventType::MetadataUpdated
        | EventType::ProjectRegistered
        | EventType::ProjectUpdated
        | EventType::ProjectRemoved
        | EventType::ProtocolDefined
        | EventType::ProtocolRemoved
        | EventType::HeartbeatReceived
        | EventType::EntryWritten
        | EventType::EntryDeleted
        | EventType::EntryExpired
        | EventType::EntryPurged
        | EventType::EntryEvicted
        | EventType::EntriesCleared
        | EventType::ScopeCreated
        | EventType::ScopeUpdated
        | EventType::ScopeDeleted
        | EventType::ScopeMapped
        | EventType::ScopeUnmapped
        | EventType::PageAdded
        | EventType::PageReplaced
        | EventType::PageInvalidated
        | EventType::QuotaWarning
        | EventType::Other(_) => None,
    }
}

/// How many events are read together.
const PAGE: usize = 1000;

/// The most spans: the last ones.
const MAX_SPANS: usize = 5000;

/// The activity of all sessions.
#[derive(Clone, Debug, PartialEq)]
pub struct Activity {
    /// One lane per session, the one that began first comes first.
    pub lanes: Vec<AgentActivity>,
    /// The start of the period.
    pub since: Timestamp,
    /// The board's revision when it was read.
    pub revision: Revision,
}

/// The activity of one session.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AgentActivity {
    /// The session.
    pub session_id: String,
    /// The name of its agent; `None` if the session was pruned.
    pub agent_name: Option<String>,
    /// Its project.
    pub project: Option<String>,
    /// Its spans, in the order in which they began.
    pub spans: Vec<Span>,
}

/// A time in which a session held an item.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Span {
    /// The item.
    pub item_id: String,
    /// Its title; `None` if the item was deleted.
    pub title: Option<String>,
    /// When it began. A span that began before the period starts with it, if the real start is unknown.
    pub from: Timestamp,
    /// When it ended; `None` if the item is held now.
    pub to: Option<Timestamp>,
    /// How it ended.
    pub ended: Option<SpanEnd>,
}

/// How a span ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SpanEnd {
    /// The session completed the item.
    Completed,
    /// The session released the item, or another one reassigned or reset it.
    Released,
    /// The session was marked stale.
    Stale,
    /// The item became blocked. The session may still hold it.
    Blocked,
}

impl Work<'_> {
    /// The activity of this period until now.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use blackboard::{Board, agent::Register, work::{Claim, Create}};
    /// # let board = Board::memory();
    /// # let ivy = board.agents().register(&Register::named("Ivy"))?.agent.session_id;
    /// # board.work().create(&Create::new("fix-tests", "Fix the tests"))?;
    /// board.work().claim(&Claim::of("fix-tests", &ivy))?;
    /// let lanes = board.work().lanes(Duration::from_secs(3600))?.lanes;
    /// assert_eq!((lanes[0].spans[0].item_id.as_str(), lanes[0].spans[0].to), ("fix-tests", None));
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn lanes(&self, time: Duration) -> Result<Activity> {
        let types: Vec<_> =
            EventType::ALL.iter().filter(|event_type| effect(event_type).is_some()).cloned().collect();
        let held = [Status::Claimed, Status::Blocked].map(Range::work_queue);
        let prefetch = [
            Prefetch::Revision,
            Prefetch::RevisionAged(time),
            Prefetch::Range(held[0].clone()),
            Prefetch::Range(held[1].clone()),
        ];
        self.board.read_list(&prefetch, |tx| {
            let since = tx.now().minus(time);
            let revision = tx.revision()?;
            let mut drawing = ActivityBuilder::new(since);
            let mut after = tx.revision_before(since)?;
            loop {
                let page = Page { after, until: revision, types: &types, limit: PAGE };
                tx.prefetch(&[Prefetch::Events(page)])?;
                let events = tx.events(&page)?;
                for event in &events {
                    drawing.take(event);
                }
                match events.last() {
                    Some(last) if events.len() >= PAGE => after = last.id,
                    _ => break,
                }
            }
            for range in &held {
                for item in tx.rows::<WorkItem>(range)? {
                    drawing.held_now(&item);
                }
            }
            Ok(Activity { lanes: named(tx, drawing.finish())?, since, revision })
        })
    }
}

/// The state so far. A span is identified by its item: one session holds it at a time.
struct ActivityBuilder {
    since: Timestamp,
    /// Open spans: item to session and start.
    open: HashMap<String, (String, Timestamp)>,
    /// The holders of blocked items.
    waiting: HashMap<String, String>,
    done: Vec<(String, Span)>,
}

impl ActivityBuilder {
    fn new(since: Timestamp) -> ActivityBuilder {
        ActivityBuilder { since, open: HashMap::new(), waiting: HashMap::new(), done: Vec::new() }
    }

    fn take(&mut self, event: &Event) {
        let (item, actor) = (event.target_id.as_deref().unwrap_or(""), event.actor_id.as_deref());
        let at = event.timestamp;
        match effect(&event.event_type) {
            Some(Effect::Begins) => {
                self.waiting.remove(item);
                if let Some(session) = actor {
                    self.open.insert(item.to_owned(), (session.to_owned(), at));
                }
            }
            Some(Effect::Completes) => self.end(item, actor, at, SpanEnd::Completed),
            Some(Effect::Releases) => {
                // Another session than the holder may have reassigned the item.
                let holder = event.named_session("held_by");
                self.end(item, holder.as_deref().or(actor), at, SpanEnd::Released);
            }
            Some(Effect::Frees) => self.end(item, None, at, SpanEnd::Released),
            Some(Effect::Blocks) => {
                let holder = self.open.get(item).map(|(session, _)| session.clone());
                self.end(item, None, at, SpanEnd::Blocked);
                if let Some(session) = holder {
                    self.waiting.insert(item.to_owned(), session);
                }
            }
            Some(Effect::Unblocks) => {
                if let Some(session) = self.waiting.remove(item) {
                    self.open.insert(item.to_owned(), (session, at));
                }
            }
            Some(Effect::LosesAll) => {
                for item in event.released_items() {
                    self.end(&item, event.target_id.as_deref(), at, SpanEnd::Stale);
                }
            }
            None => {}
        }
    }

    /// Ends the span of an item. A span that began before the period belongs to the session that ended it, if that is
    /// known.
    fn end(&mut self, item: &str, session: Option<&str>, at: Timestamp, ended: SpanEnd) {
        let waited = self.waiting.remove(item).is_some();
        let begun = match (self.open.remove(item), session) {
            (Some(begun), _) => Some(begun),
            (None, Some(session)) if !waited => Some((session.to_owned(), self.since)),
            _ => None,
        };
        if let Some((session, from)) = begun {
            let span = Span { item_id: item.to_owned(), title: None, from, to: Some(at), ended: Some(ended) };
            self.done.push((session, span));
        }
    }

    /// An item that is held at the end of the event log, perhaps since before the period.
    fn held_now(&mut self, item: &WorkItem) {
        let Some(session) = &item.claimed_by else { return };
        if item.status == Status::Blocked || self.open.contains_key(&item.item_id) {
            return;
        }
        let from = item.claimed_at.unwrap_or(self.since);
        self.open.insert(item.item_id.clone(), (session.clone(), from));
    }

    /// The spans of each session.
    fn finish(self) -> Vec<(String, Vec<Span>)> {
        let held = self.open.into_iter().map(|(item_id, (session, from))| {
            (session, Span { item_id, title: None, from, to: None, ended: None })
        });
        let mut spans: Vec<_> = self.done.into_iter().chain(held).collect();
        spans.sort_by(|(_, a), (_, b)| (a.from, &a.item_id).cmp(&(b.from, &b.item_id)));
        spans.drain(..spans.len().saturating_sub(MAX_SPANS));
        let mut lanes: BTreeMap<String, Vec<Span>> = BTreeMap::new();
        for (session, span) in spans {
            lanes.entry(session).or_default().push(span);
        }
        let mut lanes: Vec<_> = lanes.into_iter().collect();
        lanes.sort_by_key(|(_, spans)| spans.first().map(|span| span.from));
        lanes
    }
}

/// The lanes with the current names.
fn named(tx: &dyn Tx, lanes: Vec<(String, Vec<Span>)>) -> Result<Vec<AgentActivity>> {
    let items = lanes.iter().flat_map(|(_, spans)| spans).map(|span| &span.item_id).collect::<BTreeSet<_>>();
    let items = items.into_iter().map(|item| Key::WorkItem(item.clone()));
    let agents = lanes.iter().map(|(session, _)| Key::Agent(session.clone()));
    tx.prefetch(&items.chain(agents).map(Prefetch::Row).collect::<Vec<_>>())?;
    let mut titles: HashMap<String, Option<String>> = HashMap::new();
    let named = lanes.into_iter().map(|(session_id, mut spans)| {
        for span in &mut spans {
            if !titles.contains_key(&span.item_id) {
                let item = tx.row::<WorkItem>(&Key::WorkItem(span.item_id.clone()))?;
                titles.insert(span.item_id.clone(), item.map(|item| item.title));
            }
            span.title = titles.get(&span.item_id).cloned().flatten();
        }
        let agent = tx.row::<Agent>(&Key::Agent(session_id.clone()))?;
        let (agent_name, project) =
            agent.map_or((None, None), |agent| (Some(agent.agent_name), agent.project));
        Ok(AgentActivity { session_id, agent_name, project, spans })
    });
    named.collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::event::{NewEvent, TargetType};
    use crate::store::conformance::an_item;

    fn at(minute: u64) -> Timestamp {
        Timestamp::EPOCH.plus(Duration::from_mins(minute))
    }

    fn drawn(events: Vec<(u64, NewEvent)>, held: &[WorkItem]) -> Vec<(String, Vec<Span>)> {
        let mut drawing = ActivityBuilder::new(at(10));
        for (minute, event) in events {
            drawing.take(&event.at(Revision::ZERO, Revision::ZERO, at(minute)));
        }
        for item in held {
            drawing.held_now(item);
        }
        drawing.finish()
    }

    fn event(kind: EventType, actor: Option<&str>) -> NewEvent {
        NewEvent::new(kind, TargetType::WorkItem, "x", "").by(actor)
    }

    fn span(from: u64, to: Option<u64>, ended: Option<SpanEnd>) -> Span {
        Span { item_id: "x".to_owned(), title: None, from: at(from), to: to.map(at), ended }
    }

    #[test]
    fn every_way_to_lose_an_item_ends_its_span() {
        use EventType::{WorkBlocked, WorkClaimed, WorkCompleted, WorkDeleted, WorkReleased, WorkReset};
        for (kind, actor, ended) in [
            (WorkCompleted, Some("me"), SpanEnd::Completed),
            (WorkReleased, Some("me"), SpanEnd::Released),
            (WorkReset, Some("other"), SpanEnd::Released),
            (WorkDeleted, None, SpanEnd::Released),
            (WorkBlocked, Some("other"), SpanEnd::Blocked),
        ] {
            let events = vec![(11, event(WorkClaimed, Some("me"))), (15, event(kind.clone(), actor))];
            let expected = vec![("me".to_owned(), vec![span(11, Some(15), Some(ended))])];
            assert_eq!(drawn(events, &[]), expected, "{kind}");
        }
    }

    #[test]
    fn reassigned_item_ends_one_span_and_begins_another() {
        let released = event(EventType::WorkReleased, Some("third")).with("held_by", "me");
        let handed_over = vec![(15, released), (15, event(EventType::WorkClaimed, Some("other")))];
        let claimed = (11, event(EventType::WorkClaimed, Some("me")));
        for (from, events) in [(11, [vec![claimed], handed_over.clone()].concat()), (10, handed_over)] {
            let expected = vec![
                ("me".to_owned(), vec![span(from, Some(15), Some(SpanEnd::Released))]),
                ("other".to_owned(), vec![span(15, None, None)]),
            ];
            assert_eq!(drawn(events, &[]), expected, "claimed at {from}");
        }
    }

    #[test]
    fn stale_agent_loses_the_items_of_its_event() {
        let stale = NewEvent::new(EventType::StaleLocksReleased, TargetType::Agent, "me", "")
            .with("items", json!([{"item_id": "x", "fence": 1}]));
        let claimed = event(EventType::WorkClaimed, Some("me"));
        let expected = vec![("me".to_owned(), vec![span(11, Some(15), Some(SpanEnd::Stale))])];
        assert_eq!(drawn(vec![(11, claimed), (15, stale)], &[]), expected);
    }

    #[test]
    fn holder_of_a_blocked_item_continues_when_it_is_unblocked() {
        let events = vec![
            (11, event(EventType::WorkClaimed, Some("me"))),
            (12, event(EventType::WorkBlocked, None)),
            (14, event(EventType::WorkUnblocked, Some("other"))),
        ];
        let spans = vec![span(11, Some(12), Some(SpanEnd::Blocked)), span(14, None, None)];
        assert_eq!(drawn(events, &[]), vec![("me".to_owned(), spans)]);
    }

    #[test]
    fn spans_that_began_before_the_period_are_included() {
        let completed = event(EventType::WorkCompleted, Some("me"));
        let expected = vec![("me".to_owned(), vec![span(10, Some(15), Some(SpanEnd::Completed))])];
        assert_eq!(drawn(vec![(15, completed)], &[]), expected);
        let held = WorkItem {
            status: Status::Claimed,
            claimed_by: Some("me".to_owned()),
            claimed_at: Some(at(3)),
            ..an_item("x")
        };
        assert_eq!(drawn(vec![], &[held]), vec![("me".to_owned(), vec![span(3, None, None)])]);
    }
}
