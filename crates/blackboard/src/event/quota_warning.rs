//! [`QuotaWarning`]: a threshold of the token quota was passed.
//!
//! The ledger of the quota is not on the board (`quota`). Its owner announces a crossing here, for readers of the event log.

use serde_json::{Map, Value};

use super::{EventType, Events, NewEvent, TargetType};
use crate::error::Result;
use crate::revision::Revision;
use crate::store::Changes;
use crate::text::escape_for_terminal;

/// The field of the metadata with the sessions that are notified in another way.
pub(crate) const NOTIFIED: &str = "notified";

/// The maximum number of characters of a summary.
const LONGEST_SUMMARY: usize = 400;

/// The maximum number of sessions in an event.
const MOST_SESSIONS: usize = 100;

/// A threshold that was passed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct QuotaWarning {
    /// One line for human output.
    pub summary: String,
    /// The provider.
    pub provider: String,
    /// The length of the window; `None` if it is about a session.
    pub window: Option<String>,
    /// The share of the budget of the window that was passed.
    pub threshold: Option<f64>,
    /// The session that passed its cap.
    pub session: Option<String>,
    /// The sessions that get no update about it, because they are notified in another way.
    pub notified: Vec<String>,
}

impl Events<'_> {
    /// Records that a threshold of the token quota was passed. Returns the revision of its event.
    ///
    /// ```
    /// # use blackboard::{Board, event::QuotaWarning};
    /// # let board = Board::memory();
    /// let warning = QuotaWarning {
    ///     summary: "Quota: 5h window of anthropic is at 82%".to_owned(),
    ///     provider: "anthropic".to_owned(),
    ///     window: Some("5h".to_owned()),
    ///     ..QuotaWarning::default()
    /// };
    /// assert_eq!(board.events().warn_of_quota(&warning)?, board.revision()?);
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn warn_of_quota(&self, warning: &QuotaWarning) -> Result<Revision> {
        self.board.commit("quota_warning", &[], |_| {
            let mut changes = Changes::new();
            changes.events.push(warning.event());
            Ok((changes, Revision::of_event(0)))
        })
    }
}

impl QuotaWarning {
    fn event(&self) -> NewEvent {
        let summary: String = escape_for_terminal(&self.summary).chars().take(LONGEST_SUMMARY).collect();
        let mut details = Map::new();
        details.insert("provider".to_owned(), self.provider.clone().into());
        if let Some(window) = &self.window {
            details.insert("window".to_owned(), window.clone().into());
        }
        if let Some(threshold) = self.threshold {
            details.insert("threshold".to_owned(), threshold.into());
        }
        let notified: Vec<Value> =
            self.notified.iter().take(MOST_SESSIONS).map(|session| session.clone().into()).collect();
        if !notified.is_empty() {
            details.insert(NOTIFIED.to_owned(), notified.into());
        }
        NewEvent {
            event_type: EventType::QuotaWarning,
            actor_id: None,
            target_id: self.session.clone(),
            target_type: self.session.is_some().then_some(TargetType::Agent),
            summary,
            metadata: Some(details.into()),
            version: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Board;
    use crate::agent::Register;
    use crate::event::Since;

    #[test]
    fn a_warning_is_an_event_of_one_line() {
        testkit::limit_test();
        let board = Board::memory();
        let ivy = board.agents().register(&Register::named("Ivy")).unwrap().agent.session_id;
        for session in [None, Some(ivy)] {
            let warning = QuotaWarning {
                summary: format!("a\nb{}", "x".repeat(1000)),
                provider: "a".to_owned(),
                session: session.clone(),
                ..QuotaWarning::default()
            };
            let revision = board.events().warn_of_quota(&warning).unwrap();
            let since = Since::Revision(revision.previous());
            let observation = board.events().observe(&since, &[EventType::QuotaWarning]).unwrap();
            let batch = board.events().next(&observation, observation.after, 10).unwrap().unwrap();
            let event = &batch.events[0];
            assert_eq!((event.id, &event.target_id), (revision, &session));
            assert_eq!(event.summary.chars().count(), LONGEST_SUMMARY);
            assert!(!event.summary.contains('\n'));
        }
    }
}
