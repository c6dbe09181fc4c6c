//! `work append-event`: adds an event of the caller's own type to the history of an item.

use serde::Serialize;

use super::{Work, WorkItem, existing};
use crate::agent::prefetch_agent;
use crate::clock::Timestamp;
use crate::error::{Code, Error, Refusal, Result};
use crate::event::{EventType, NewEvent, TargetType};
use crate::metadata::Metadata;
use crate::revision::{Pending, Revision};
use crate::store::{Changes, Key, Prefetch};
use crate::text::{Cleaner, Kind, TextChanges};

/// The most characters of an event type.
const MAX_TYPE: usize = 64;

/// The event to add.
#[derive(Clone, Debug)]
pub struct AppendEvent {
    /// The item.
    pub id: String,
    /// The type, in lower case with `_`, for example `review_requested`. It is none that the board writes itself.
    pub event_type: String,
    /// One line.
    pub summary: String,
    /// Details.
    pub metadata: Option<Metadata>,
    /// The session that adds it; none if an operator does.
    pub session: Option<String>,
}

/// An added event.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AppendedEvent {
    /// The item.
    pub item_id: String,
    /// The id of the event.
    pub event_id: Revision,
    /// Its type.
    pub event_type: String,
    /// Its summary.
    pub summary: String,
    /// When it was added.
    pub at: Timestamp,
    /// The changes to the summary.
    #[serde(flatten)]
    pub text: TextChanges,
}

impl Pending for AppendedEvent {
    fn resolve(&mut self, first: Revision) {
        self.event_id.resolve(first);
    }
}

impl Work<'_> {
    /// Adds an event to the history of an item. The item does not change.
    ///
    /// ```
    /// # use blackboard::{Board, work::{AppendEvent, Create}};
    /// # let board = Board::memory();
    /// # board.work().create(&Create::new("fix-tests", "Fix the tests"))?;
    /// let append = AppendEvent {
    ///     id: "fix-tests".to_owned(),
    ///     event_type: "review_requested".to_owned(),
    ///     summary: "Oak, please review".to_owned(),
    ///     metadata: None,
    ///     session: None,
    /// };
    /// board.work().append_event(&append)?;
    /// assert_eq!(board.work().status("fix-tests")?.history[1].summary, "Oak, please review");
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn append_event(&self, append: &AppendEvent) -> Result<AppendedEvent> {
        check_type(&append.event_type)?;
        let rules = &self.board.settings().text;
        rules.check_json(append.metadata.as_ref().map(Metadata::as_str))?;
        let mut cleaner = Cleaner::new(rules);
        let summary = cleaner.clean("summary", Kind::Summary, &append.summary)?;
        if summary.is_empty() {
            return Err(Error::invalid("the summary of an event cannot be empty"));
        }
        let (append, text) = (AppendEvent { summary, ..append.clone() }, cleaner.changes());
        let session = append.session.as_deref();
        let mut prefetch = vec![Prefetch::Row(Key::WorkItem(append.id.clone()))];
        prefetch.extend(prefetch_agent(session));
        self.board.commit_as(session.as_slice(), "work append-event", &prefetch, |tx| {
            let (mut changes, mut appended) = decide(&append, &existing(tx, &append.id)?, tx.now());
            appended.text.clone_from(&text);
            self.board.agents().record_activity_of(tx, session, &mut changes)?;
            Ok((changes, appended))
        })
    }
}

fn decide(append: &AppendEvent, item: &WorkItem, now: Timestamp) -> (Changes, AppendedEvent) {
    let mut changes = Changes::new();
    let event_type = EventType::from_name(&append.event_type);
    let event = NewEvent::new(event_type, TargetType::WorkItem, &item.item_id, append.summary.as_str());
    let mut event = event.by(append.session.as_deref());
    if let Some(metadata) = &append.metadata {
        event = event.with_all(metadata.to_map());
    }
    let appended = AppendedEvent {
        item_id: item.item_id.clone(),
        event_id: changes.event(event),
        event_type: append.event_type.clone(),
        summary: append.summary.clone(),
        at: now,
        text: TextChanges::default(),
    };
    (changes, appended)
}

/// Refuses a type that means something to the board: its rules and readers rely on those.
fn check_type(event_type: &str) -> Result<()> {
    let is_word = event_type.bytes().next().is_some_and(|byte| byte.is_ascii_lowercase())
        && event_type.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_'))
        && event_type.len() <= MAX_TYPE;
    let shown = crate::text::escape_for_terminal(event_type);
    if !is_word {
        let message = format!("\"{shown}\" is not an event type");
        return Err(Refusal::new(Code::InvalidValue, message)
            .hint(format!("use lower case letters, digits and _, at most {MAX_TYPE}: review_requested"))
            .into());
    }
    let is_own = matches!(EventType::from_name(event_type), EventType::Other(_));
    if !is_own || event_type == EventType::UNREADABLE {
        let message = format!("events of type {shown} are written by the board itself");
        return Err(Refusal::new(Code::InvalidValue, message).hint("use a type of your own").into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_words_that_the_board_does_not_write_itself() {
        testkit::limit_test();
        let long = "x".repeat(MAX_TYPE + 1);
        for (event_type, expected) in [
            ("review_requested", true),
            ("step2", true),
            ("work_quarantined", true),
            ("work_claimed", false),
            ("heartbeat_received", false),
            ("metadata_updated", false),
            ("unreadable", false),
            ("", false),
            ("2nd", false),
            ("Review", false),
            ("a b", false),
            (&long, false),
        ] {
            assert_eq!(check_type(event_type).is_ok(), expected, "{event_type}");
        }
    }
}
