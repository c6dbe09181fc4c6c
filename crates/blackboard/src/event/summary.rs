//! The agent that the summary of an event names. Summaries have only its name, which several sessions may have.

use std::borrow::Cow;
use std::ops::Range;

use super::{Event, EventType, TargetType};
use crate::agent::ShortIds;

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
}
