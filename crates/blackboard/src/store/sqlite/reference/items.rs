//! The status of its work items: it has three more, and an item can be blocked there by nothing.
//!
//! A dependency that would close a cycle is left out: the items of the cycle would block each other forever.
//!
//! An open item is blocked here if one of its blockers is open, or if it is [on hold](crate::work::Hold). What could not be
//! claimed there cannot be claimed here.

use serde_json::Value;

use crate::clock::Timestamp;
use crate::work::{Hold, Status};

/// The columns of an item that are converted.
pub(super) const KNOWN: &[&str] = &[
    "item_id",
    "project_id",
    "title",
    "description",
    "source",
    "source_ref",
    "status",
    "priority",
    "claimed_by",
    "claimed_at",
    "completed_at",
    "blocked_by",
    "created_at",
    "metadata",
    "failure_count",
    "failure_reason",
    "failed_at",
    "depends_on",
];

/// What an item has there.
#[derive(Clone, Debug, Default)]
pub(super) struct StoredItem {
    pub(super) status: String,
    pub(super) claimed_by: Option<String>,
    /// Whether the session of `claimed_by` exists.
    pub(super) has_holder: bool,
    pub(super) blocked_by: Option<String>,
    /// Ids, separated by commas.
    pub(super) depends_on: Option<String>,
    pub(super) failure_count: u32,
    pub(super) failure_reason: Option<String>,
    pub(super) failed_at: Option<Timestamp>,
}

/// The state of an item that may block another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BlockerState {
    Missing,
    Open,
    Completed,
}

/// What it becomes.
#[derive(Debug, PartialEq)]
pub(super) struct ConvertedItem {
    pub(super) status: Status,
    pub(super) keeps_holder: bool,
    /// Its first open blocker.
    pub(super) blocked_by: Option<String>,
    pub(super) blockers: Vec<String>,
    /// The member of its metadata that this program reads.
    pub(super) own: Option<(&'static str, Value)>,
    pub(super) leftovers: Vec<(&'static str, Value)>,
    /// Blockers that are left out, because they are blocked by this item, or are the item itself.
    pub(super) left_out: Vec<String>,
}

/// Converts an item. `state` is that of another item, and `closes_cycle` says whether another item is blocked by this one.
pub(super) fn convert(
    id: &str,
    stored: &StoredItem,
    state: impl Fn(&str) -> BlockerState,
    closes_cycle: impl Fn(&str) -> bool,
) -> ConvertedItem {
    let closes_cycle = |blocker: &str| blocker == id || closes_cycle(blocker);
    let is_completed = stored.status == Status::Completed.as_str();
    let cannot_be_claimed =
        ["blocked", "waiting_for_response", "failed", "quarantined"].contains(&stored.status.as_str());
    let mut leftovers = Vec::new();
    let mut blockers: Vec<String> = Vec::new();
    let mut left_out: Vec<String> = Vec::new();
    let mut has_unstored = false;
    for blocker in stored.depends_on.iter().flat_map(|ids| ids.split(',')).map(str::trim) {
        // There, a dependency on an item that was deleted does not block.
        let is_stored = cannot_be_claimed || state(blocker) != BlockerState::Missing;
        if blocker.is_empty() || blockers.iter().chain(&left_out).any(|known| known == blocker) {
            continue;
        }
        if is_stored && !closes_cycle(blocker) {
            blockers.push(blocker.to_owned());
            continue;
        }
        has_unstored = true;
        if is_stored {
            left_out.push(blocker.to_owned());
        }
    }
    if let Some(ids) = stored.depends_on.as_ref().filter(|_| has_unstored) {
        leftovers.push(("depends_on", ids.as_str().into()));
    }
    match &stored.blocked_by {
        Some(blocker) if blockers.contains(blocker) => {}
        Some(blocker) if cannot_be_claimed && !blocker.is_empty() && !closes_cycle(blocker) => {
            blockers.push(blocker.clone());
        }
        Some(blocker) => {
            leftovers.push(("blocked_by", blocker.as_str().into()));
            if cannot_be_claimed && !blocker.is_empty() && !left_out.contains(blocker) {
                left_out.push(blocker.clone());
            }
        }
        None => {}
    }
    // In the order of the index, so that the first one stays the first.
    blockers.sort();
    let open = blockers.iter().find(|blocker| state(blocker) != BlockerState::Completed).cloned();
    // What only its cycle has blocked is available.
    let is_blocked_by_nothing = open.is_none() && left_out.is_empty();
    let reason =
        (!is_completed && cannot_be_claimed && (is_blocked_by_nothing || stored.status != "blocked"))
            .then(|| reason_of_hold(stored));
    let hold = Hold {
        failure_count: stored.failure_count,
        failure_reason: stored.failure_reason.clone(),
        failed_at: stored.failed_at,
        on_hold: reason,
    };
    let keeps_holder = stored.has_holder && stored.status != Status::Available.as_str();
    let status = match (is_completed, open.is_some() || hold.on_hold.is_some(), keeps_holder) {
        (true, ..) => Status::Completed,
        (false, true, _) => Status::Blocked,
        (false, false, true) => Status::Claimed,
        (false, false, false) => Status::Available,
    };
    if status.as_str() != stored.status {
        leftovers.push(("status", stored.status.as_str().into()));
    }
    if let Some(holder) = stored.claimed_by.as_ref().filter(|_| !keeps_holder) {
        leftovers.push(("claimed_by", holder.as_str().into()));
    }
    ConvertedItem {
        status,
        keeps_holder,
        blocked_by: open.filter(|_| status == Status::Blocked),
        blockers,
        own: hold.to_member(),
        leftovers,
        left_out,
    }
}

/// Why an item stays blocked that no open item blocks.
fn reason_of_hold(stored: &StoredItem) -> String {
    match (stored.status.as_str(), &stored.failure_reason, &stored.blocked_by) {
        ("failed" | "quarantined", Some(reason), _) => reason.clone(),
        ("waiting_for_response", ..) => "waiting for a response".to_owned(),
        ("blocked", _, Some(blocker)) => format!("blocked by {blocker}"),
        (status, ..) => status.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_that_could_not_be_claimed_stay_blocked() {
        let state = |id: &str| match id {
            "open" => BlockerState::Open,
            "gh:owner/repo#78" | "done" => BlockerState::Completed,
            _ => BlockerState::Missing,
        };
        for (status, held, blocked_by, depends_on, expected, open, blockers, reason) in [
            ("available", false, None, None, Status::Available, None, 0, None),
            ("claimed", true, None, None, Status::Claimed, None, 0, None),
            ("claimed", false, None, None, Status::Available, None, 0, None),
            ("available", false, None, Some("done, open"), Status::Blocked, Some("open"), 2, None),
            ("claimed", true, None, Some("open"), Status::Blocked, Some("open"), 1, None),
            ("available", false, None, Some("gone"), Status::Available, None, 0, None),
            ("available", false, None, Some("x"), Status::Available, None, 0, None),
            ("blocked", false, None, Some("gone"), Status::Blocked, Some("gone"), 1, None),
            ("blocked", true, Some("open"), Some("open,open"), Status::Blocked, Some("open"), 1, None),
            ("blocked", false, None, None, Status::Blocked, None, 0, Some("blocked")),
            ("blocked", false, Some("done"), None, Status::Blocked, None, 1, Some("blocked by done")),
            ("blocked", false, None, Some("gh:owner/repo#78"), Status::Blocked, None, 1, Some("blocked")),
            (
                "waiting_for_response",
                true,
                None,
                None,
                Status::Blocked,
                None,
                0,
                Some("waiting for a response"),
            ),
            ("failed", false, None, None, Status::Blocked, None, 0, Some("failed")),
            ("quarantined", false, None, Some("open"), Status::Blocked, Some("open"), 1, Some("quarantined")),
            ("completed", true, None, Some("open"), Status::Completed, None, 1, None),
        ] {
            let stored = StoredItem {
                status: status.to_owned(),
                claimed_by: held.then(|| "me".to_owned()),
                has_holder: held,
                blocked_by: blocked_by.map(str::to_owned),
                depends_on: depends_on.map(str::to_owned),
                ..StoredItem::default()
            };
            let item = convert("x", &stored, state, |_| false);
            let context = format!("{status}, {blocked_by:?}, {depends_on:?}: {item:?}");
            assert_eq!((item.status, item.blocked_by.as_deref()), (expected, open), "{context}");
            assert_eq!((item.blockers.len(), item.keeps_holder), (blockers, held), "{context}");
            let on_hold = item.own.and_then(|(_, own)| own.get("on_hold")?.as_str().map(str::to_owned));
            assert_eq!(on_hold.as_deref(), reason, "{context}");
            let keeps_status = item.leftovers.iter().any(|(column, _)| *column == "status");
            assert_eq!(keeps_status, status != expected.as_str(), "{context}");
        }
    }

    #[test]
    fn an_item_that_only_its_cycle_blocks_is_available() {
        testkit::limit_test();
        // In a cycle are `cycle` and the item itself.
        for (status, blocked_by, depends_on, expected, blockers, left_out) in [
            ("blocked", Some("cycle"), Some("cycle"), Status::Available, &[][..], &["cycle"][..]),
            ("blocked", Some("cycle"), None, Status::Available, &[], &["cycle"]),
            ("blocked", None, Some("x"), Status::Available, &[], &["x"]),
            ("available", None, Some("x, cycle"), Status::Available, &[], &["x", "cycle"]),
            ("blocked", None, Some("open,cycle"), Status::Blocked, &["open"], &["cycle"]),
            ("quarantined", None, Some("cycle"), Status::Blocked, &[], &["cycle"]),
            ("completed", None, Some("cycle"), Status::Completed, &[], &["cycle"]),
        ] {
            let stored = StoredItem {
                status: status.to_owned(),
                blocked_by: blocked_by.map(str::to_owned),
                depends_on: depends_on.map(str::to_owned),
                ..StoredItem::default()
            };
            let item = convert("x", &stored, |_| BlockerState::Open, |blocker| blocker == "cycle");
            let context = format!("{status}, {blocked_by:?}, {depends_on:?}: {item:?}");
            assert_eq!(item.status, expected, "{context}");
            assert_eq!(
                (&item.blockers[..], &item.left_out[..]),
                (&owned(blockers)[..], &owned(left_out)[..]),
                "{context}"
            );
            let keeps = |column: &str| item.leftovers.iter().any(|(kept, _)| *kept == column);
            assert_eq!(keeps("depends_on"), depends_on.is_some(), "{context}");
            assert_eq!(keeps("blocked_by"), blocked_by.is_some(), "{context}");
        }
    }

    fn owned(ids: &[&str]) -> Vec<String> {
        ids.iter().map(|&id| id.to_owned()).collect()
    }
}
