//! The failures of an item, and why it is on hold: a member of its metadata, because few items have it.
//!
//! An item that is on hold stays blocked, whatever its blockers do, until `work unblock` or `work reset`.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Status, WorkItem};
use crate::clock::Timestamp;
use crate::metadata::Metadata;
use crate::text::{IN_A_SENTENCE, excerpt};

/// The member of an item's metadata.
pub(super) const MEMBER: &str = "blackboard";

/// After how many failures an item is put on hold.
pub(super) const MAX_FAILURES: u32 = 3;

/// The failures of an item, and why it is on hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Hold {
    /// How often it was released as failed.
    pub failure_count: u32,
    /// The reason of the last failure.
    pub failure_reason: Option<String>,
    /// When it failed last.
    pub failed_at: Option<Timestamp>,
    /// Why it is on hold; `None` if it is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_hold: Option<String>,
}

impl Hold {
    fn of(metadata: &Metadata) -> Hold {
        // Nearly no item has it, and every item of a list is asked.
        if !metadata.as_str().contains(MEMBER) {
            return Hold::default();
        }
        let member = metadata.to_map().remove(MEMBER);
        member.and_then(|member| serde_json::from_value(member).ok()).unwrap_or_default()
    }

    /// The member of metadata that stores it; `None` if there is nothing to store.
    pub(crate) fn to_member(&self) -> Option<(&'static str, Value)> {
        if *self == Hold::default() {
            return None;
        }
        let mut member = Map::new();
        let mut put = |name: &str, value: Option<Value>| {
            if let Some(value) = value {
                member.insert(name.to_owned(), value);
            }
        };
        put("failure_count", (self.failure_count > 0).then(|| self.failure_count.into()));
        put("failure_reason", self.failure_reason.clone().map(Value::from));
        put("failed_at", self.failed_at.map(|time| time.to_string().into()));
        put("on_hold", self.on_hold.clone().map(Value::from));
        Some((MEMBER, Value::Object(member)))
    }

    /// The same after one more failure. The last one that is allowed puts the item on hold.
    #[must_use]
    pub(super) fn after_failure(self, reason: Option<String>, now: Timestamp) -> Hold {
        let failure_count = self.failure_count.saturating_add(1);
        let why = reason.as_ref().map(|reason| format!(": {}", excerpt(reason, IN_A_SENTENCE)));
        let on_hold = (failure_count >= MAX_FAILURES)
            .then(|| format!("failed {failure_count} times{}", why.unwrap_or_default()));
        Hold {
            failure_count,
            failure_reason: reason,
            failed_at: Some(now),
            on_hold: on_hold.or(self.on_hold),
        }
    }
}

impl WorkItem {
    /// Its failures, and why it is on hold.
    ///
    /// ```
    /// # use blackboard::{Board, agent::Register, work::{Claim, Create, Release, Status}};
    /// # let board = Board::memory();
    /// # let ivy = board.agents().register(&Register::named("Ivy"))?.agent.session_id;
    /// # board.work().create(&Create::new("fix-tests", "Fix the tests"))?;
    /// for _ in 0..3 {
    ///     board.work().claim(&Claim::of("fix-tests", &ivy))?;
    ///     board.work().release(&Release { failed: true, ..Release::of("fix-tests", &ivy) })?;
    /// }
    /// let item = board.work().status("fix-tests")?.item;
    /// assert_eq!((item.status, item.hold().failure_count), (Status::Blocked, 3));
    /// assert_eq!(item.hold().on_hold.as_deref(), Some("failed 3 times"));
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn hold(&self) -> Hold {
        self.metadata.as_ref().map(Hold::of).unwrap_or_default()
    }

    /// Whether it stays blocked without an open blocker.
    pub(crate) fn is_on_hold(&self) -> bool {
        self.status != Status::Completed && self.hold().on_hold.is_some()
    }

    /// Stores its failures, and why it is on hold. Metadata that cannot be read stays as it is.
    pub(super) fn set_hold(&mut self, hold: &Hold) {
        let member = hold.to_member().map(|(_, member)| member);
        if let Ok(metadata) = Metadata::with_member(self.metadata.as_ref(), MEMBER, member.as_ref()) {
            self.metadata = metadata;
        }
    }

    /// Forgets its failures, and that it is on hold. Returns whether there was something to forget.
    pub(super) fn clear_hold(&mut self) -> bool {
        let has_hold = self.hold() != Hold::default();
        if has_hold {
            self.set_hold(&Hold::default());
        }
        has_hold
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::conformance::an_item;

    #[test]
    fn third_failure_puts_an_item_on_hold() {
        let mut item =
            WorkItem { metadata: Some(Metadata::parse(r#"{"size": 3.0}"#).unwrap()), ..an_item("x") };
        for (failures, expected) in [(1, None), (2, None), (3, Some("failed 3 times: broken"))] {
            let hold = item.hold().after_failure(Some("broken".to_owned()), Timestamp::EPOCH);
            item.set_hold(&hold);
            assert_eq!((item.hold().failure_count, item.hold().on_hold.as_deref()), (failures, expected));
        }
        assert!(item.is_on_hold());
        assert!(item.clear_hold() && !item.clear_hold());
        assert_eq!(item.metadata.unwrap().as_str(), r#"{"size":3.0}"#);
    }
}
