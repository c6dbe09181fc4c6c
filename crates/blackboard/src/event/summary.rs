//! The agent that the summary of an event names. Summaries have only its name, which several sessions may have.

use std::borrow::Cow;
use std::ops::Range;

use super::{Event, EventType, TargetType};
use crate::agent::{SHORT_ID, ShortIds};

/// The agent that a summary names first.
struct NamedAgent {
    /// Where its name is in the summary.
    name: Range<usize>,
    session: String,
}

impl Event {
    /// The name and the session of the agent that its summary names first; `None` if it names none whose session is known.
    ///
    /// ```
    /// # use blackboard::{Board, agent::Register, event::Since};
    /// # let board = Board::memory();
    /// let ivy = board.agents().register(&Register::named("Ivy"))?.agent.session_id;
    /// # let newest = board.events().observe(&Since::Last(1), &[])?;
    /// # let registered = board.events().next(&newest, newest.after, 1)?.expect("one event").events.remove(0);
    /// assert_eq!(registered.named_agent(), Some(("Ivy", ivy)));
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn named_agent(&self) -> Option<(&str, String)> {
        self.find_agent().map(|found| (&self.summary[found.name], found.session))
    }

    /// Its summary, with the short id of that agent behind the name: `Agent "Ivy" (84a674b5) claimed "Design"`.
    pub fn summary_with_session(&self, ids: ShortIds) -> Cow<'_, str> {
        let Some(found) = self.find_agent() else { return Cow::Borrowed(&self.summary) };
        let (before, after) = self.summary.split_at(found.name.end + 1);
        Cow::Owned(format!("{before} ({}){after}", ids.shorten(&found.session)))
    }

    /// The same for the session that reads it: `Agent "Ivy" (84a674b5) assigned "Design" to you`.
    pub fn summary_for(&self, reader: &str, ids: ShortIds) -> Cow<'_, str> {
        let is_reader = self.find_agent().filter(|found| found.session == reader);
        if let Some(found) = is_reader {
            let (before, after) = self.summary.split_at(found.name.end + 1);
            return Cow::Owned(if after.starts_with(" got ") {
                format!("You{after}")
            } else {
                format!("{before} (you){after}")
            });
        }
        let summary = self.summary_with_session(ids);
        let fields = ["to", "held_by"].map(|field| self.named_session(field));
        let names_reader = self.is_assignment_to(reader)
            || (self.event_type == EventType::WorkReleased
                && fields.iter().flatten().any(|session| session == reader));
        match names_reader.then(|| find_other_agent(&summary, reader)).flatten() {
            Some(named) => Cow::Owned(format!("{}you{}", &summary[..named.start], &summary[named.end..])),
            None => summary,
        }
    }

    fn find_agent(&self) -> Option<NamedAgent> {
        let start = match &self.event_type {
            EventType::StaleLocksReleased => self.summary.find(FROM_STALE)? + FROM_STALE.len(),
            _ if self.summary.starts_with(BEGINNING) => BEGINNING.len(),
            _ => return None,
        };
        let rest = &self.summary[start..];
        let mut quotes = rest.match_indices('"').map(|(at, _)| at);
        // A name may contain quotation marks.
        let length = quotes.find(|at| rest[at + 1..].starts_with([' ', ':']))?;
        let is_assignment =
            self.event_type == EventType::WorkClaimed && rest[length + 1..].starts_with(" assigned ");
        let session = match self.target_type {
            Some(TargetType::Agent) => self.target_id.clone(),
            // The actor of a claim is the session that gets the item.
            _ if is_assignment => self.named_session("assigned_by"),
            _ => self.actor_id.clone(),
        };
        Some(NamedAgent { name: start..start + length, session: session? })
    }
}

/// Where a summary names this session behind the first agent: `agent "NAME" (SHORT)`.
fn find_other_agent(summary: &str, session: &str) -> Option<Range<usize>> {
    const AGENT: &str = " agent \"";
    let is_session = |at: usize| {
        let (id, _) = summary[at + "\" (".len()..].split_once(')')?;
        (id.len() >= SHORT_ID.min(session.len()) && session.starts_with(id)).then_some(id.len())
    };
    let mut ids = summary.match_indices("\" (").filter_map(|(at, _)| Some((at, is_session(at)?)));
    let (at, length) = ids.next()?;
    let start = summary[..at].rfind(AGENT)? + 1;
    Some(start..at + "\" (".len() + length + 1)
}

const BEGINNING: &str = "Agent \"";
const FROM_STALE: &str = " from stale agent \"";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Timestamp;
    use crate::metadata::Metadata;
    use crate::revision::Revision;

    fn event(event_type: EventType, actor: Option<&str>, target: (TargetType, &str), summary: &str) -> Event {
        Event {
            id: Revision::new(1),
            timestamp: Timestamp::EPOCH,
            event_type,
            actor_id: actor.map(str::to_owned),
            target_id: Some(target.1.to_owned()),
            target_type: Some(target.0),
            summary: summary.to_owned(),
            metadata: None,
            commit_id: Revision::new(1),
            entry: None,
        }
    }

    #[test]
    fn the_short_id_is_behind_the_name_of_the_agent() {
        use EventType::{AgentStale, EntryWritten, StaleLocksReleased, WorkClaimed, WorkCreated};
        let item = (TargetType::WorkItem, "x");
        let agent = (TargetType::Agent, "stale-session");
        for (event_type, actor, target, summary, expected) in [
            (
                WorkClaimed,
                Some("ivys-session"),
                item,
                "Agent \"Ivy\" claimed \"X\"",
                "Agent \"Ivy\" (ivys-ses) claimed \"X\"",
            ),
            (WorkClaimed, None, item, "Agent \"Ivy\" claimed \"X\"", "Agent \"Ivy\" claimed \"X\""),
            (
                WorkClaimed,
                Some("ivys-session"),
                item,
                "Agent \"Ivy \"x\"\" claimed \"X\"",
                "Agent \"Ivy \"x\"\" (ivys-ses) claimed \"X\"",
            ),
            (
                AgentStale,
                None,
                agent,
                "Agent \"Ivy\" marked stale (x)",
                "Agent \"Ivy\" (stale-se) marked stale (x)",
            ),
            (
                StaleLocksReleased,
                None,
                agent,
                "Released 1 work item(s) from stale agent \"Ivy\": X",
                "Released 1 work item(s) from stale agent \"Ivy\" (stale-se): X",
            ),
            (
                EntryWritten,
                Some("ivys-session"),
                item,
                "Agent \"Ivy\": done",
                "Agent \"Ivy\" (ivys-ses): done",
            ),
            (WorkCreated, Some("ivys-session"), item, "Work item \"X\" created", "Work item \"X\" created"),
        ] {
            let event = event(event_type, actor, target, summary);
            assert_eq!(event.summary_with_session(ShortIds::DEFAULT), expected);
        }
    }

    #[test]
    fn an_assignment_names_the_session_that_assigned() {
        let summary = "Agent \"Ivy\" assigned \"X\" to agent \"Oak\" (oaks-ses)";
        let mut event =
            event(EventType::WorkClaimed, Some("oaks-session"), (TargetType::WorkItem, "x"), summary);
        event.metadata = Some(Metadata::parse(r#"{"assigned_by": "ivys-session"}"#).unwrap());
        assert_eq!(event.named_agent(), Some(("Ivy", "ivys-session".to_owned())));
    }

    #[test]
    fn an_event_addresses_the_session_that_reads_it() {
        testkit::limit_test();
        let [ivy, oak, elm] = ["ivys-session", "oaks-session", "elms-session"];
        let item = (TargetType::WorkItem, "x");
        for (event_type, actor, metadata, summary, reader, expected) in [
            (
                EventType::WorkClaimed,
                oak,
                r#"{"assigned_by": "ivys-session"}"#,
                "Agent \"Ivy\" assigned \"X\" to agent \"Oak\" (oaks-ses) (Lunch)",
                oak,
                "Agent \"Ivy\" (ivys-ses) assigned \"X\" to you (Lunch)",
            ),
            (
                EventType::WorkClaimed,
                oak,
                r#"{"assigned_by": "ivys-session"}"#,
                "Agent \"Ivy\" assigned \"X\" to agent \"Oak\" (oaks-ses)",
                elm,
                "Agent \"Ivy\" (ivys-ses) assigned \"X\" to agent \"Oak\" (oaks-ses)",
            ),
            (
                EventType::WorkClaimed,
                oak,
                r#"{"assigned_by": "ivys-session"}"#,
                "Agent \"Oak\" got \"X\" from agent \"Ivy\" (ivys-ses)",
                oak,
                "You got \"X\" from agent \"Ivy\" (ivys-ses)",
            ),
            (
                EventType::WorkReleased,
                elm,
                r#"{"held_by": "ivys-session", "to": "oaks-session"}"#,
                "Agent \"Elm\" took \"X\" from agent \"Ivy\" (ivys-ses) for agent \"Oak\" (oaks-ses)",
                ivy,
                "Agent \"Elm\" (elms-ses) took \"X\" from you for agent \"Oak\" (oaks-ses)",
            ),
        ] {
            let mut event = event(event_type, Some(actor), item, summary);
            event.metadata = Some(Metadata::parse(metadata).unwrap());
            assert_eq!(event.summary_for(reader, ShortIds::DEFAULT), expected);
        }
        let summary = "Agent \"Ivy\" marked stale (x)";
        let event = event(EventType::AgentStale, None, (TargetType::Agent, ivy), summary);
        assert_eq!(event.summary_for(ivy, ShortIds::DEFAULT), "Agent \"Ivy\" (you) marked stale (x)");
    }
}
