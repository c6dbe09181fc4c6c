//! The rule of an import: how an item of a tracker changes the item of the board.

use serde_json::json;

use crate::clock::Timestamp;
use crate::error::Result;
use crate::work::change::{FieldChange, NewFields};
use crate::work::create::{Create, blank_item};
use crate::work::{Status, WorkItem};

/// An item of a tracker, with filtered text.
#[derive(Clone, Debug, Default)]
pub(super) struct TrackedItem {
    /// Its position in the import.
    pub(super) at: usize,
    pub(super) id: String,
    pub(super) fields: NewFields,
    pub(super) is_closed: bool,
    pub(super) blocked_by: Option<Vec<String>>,
}

/// What an import does with the status of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StatusChange {
    /// Nothing.
    Stays,
    /// It completes the item.
    Completes,
    /// A session holds the item: its release completes it.
    CompletesOnRelease,
    /// It makes the item available again.
    Reopens,
}

/// What an import does with an item.
#[derive(Clone, Debug)]
pub(super) struct Merged {
    /// The item with its new fields. Its status is that before.
    pub(super) item: WorkItem,
    /// The changed fields, without those that have an event of their own.
    pub(super) changed: Vec<FieldChange>,
    pub(super) status: StatusChange,
    /// New blockers.
    pub(super) add: Vec<String>,
    /// Blockers that the source no longer names.
    pub(super) remove: Vec<String>,
}

impl Merged {
    /// Whether the board stays as it is.
    pub(super) fn is_unchanged(&self) -> bool {
        self.changed.is_empty()
            && self.status == StatusChange::Stays
            && self.add.is_empty()
            && self.remove.is_empty()
    }
}

/// The item of the board after an import, if the board has this one, with these blockers.
///
/// The source decides about text, labels, priority and estimate. About the closed state and dependencies it decides
/// only when they change there: what agents do with an item on the board stays.
pub(super) fn merge(
    before: Option<&WorkItem>,
    blockers: &[&str],
    tracked: &TrackedItem,
    from: &str,
    now: Timestamp,
) -> Result<Merged> {
    let is_new = before.is_none();
    let mut item = match before {
        Some(before) => before.clone(),
        None => blank_item(&Create::new(&tracked.id, ""), now),
    };
    let mut changed = tracked.fields.apply(&mut item)?;
    if is_new && tracked.fields.source.is_none() {
        item.source = format!("{from}:{}", tracked.id);
    }
    let mut seen = item.outside();
    let before_seen = seen.clone();
    if is_new || changed.iter().any(|change| matches!(change.field, "title" | "description" | "labels")) {
        seen.from = Some(from.to_owned());
    }
    let is_held = item.claimed_by.is_some() && item.status != Status::Completed;
    let status = match (before_seen.is_closed, tracked.is_closed) {
        (false, true) if item.status == Status::Completed => StatusChange::Stays,
        (false, true) if is_held => StatusChange::CompletesOnRelease,
        (false, true) => StatusChange::Completes,
        (true, false) if item.status == Status::Completed => StatusChange::Reopens,
        _ => StatusChange::Stays,
    };
    // Of an item that no import wrote, only what changes it is noted: its own export changes nothing.
    let is_noted = is_new || before_seen.from.is_some();
    if is_noted || status != StatusChange::Stays || before_seen.is_closed {
        seen.is_closed = tracked.is_closed;
    }
    seen.completes_on_release = match status {
        StatusChange::CompletesOnRelease => true,
        _ => seen.completes_on_release && tracked.is_closed,
    };
    let (mut add, mut remove) = (Vec::new(), Vec::new());
    if let Some(named) = &tracked.blocked_by {
        let is_blocker = |id: &String| blockers.contains(&id.as_str());
        add.extend(named.iter().filter(|id| !is_blocker(id) && !seen.blocked_by.contains(id)).cloned());
        remove.extend(seen.blocked_by.iter().filter(|id| !named.contains(id) && is_blocker(id)).cloned());
        if is_noted || !add.is_empty() || !remove.is_empty() {
            seen.blocked_by.clone_from(named);
        }
    }
    // These two have no event of their own if nothing else on the board follows from them.
    if status == StatusChange::Stays && seen.is_closed != before_seen.is_closed && !is_new {
        let (old, new) = (json!(before_seen.is_closed), json!(seen.is_closed));
        changed.push(FieldChange::new("closed_outside", &old, &new));
    }
    let is_only_noted = (add.is_empty() && remove.is_empty()) || item.status == Status::Completed;
    if is_only_noted && seen.blocked_by != before_seen.blocked_by && !is_new {
        let (old, new) = (json!(before_seen.blocked_by), json!(seen.blocked_by));
        changed.push(FieldChange::new("blocked_by", &old, &new));
    }
    item.set_outside(&seen)?;
    Ok(Merged { item, changed, status, add, remove })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::conformance::an_item;
    use crate::work::details::Outside;

    fn tracked(is_closed: bool, blocked_by: Option<&[&str]>) -> TrackedItem {
        TrackedItem {
            id: "x".to_owned(),
            fields: NewFields { title: Some(an_item("x").title), ..NewFields::default() },
            is_closed,
            blocked_by: blocked_by.map(owned),
            ..TrackedItem::default()
        }
    }

    fn owned(ids: &[&str]) -> Vec<String> {
        ids.iter().map(|&id| id.to_owned()).collect()
    }

    fn merged(before: &WorkItem, blockers: &[&str], tracked: &TrackedItem) -> Merged {
        merge(Some(before), blockers, tracked, "github", Timestamp::EPOCH).unwrap()
    }

    #[test]
    fn closed_state_changes_the_item_only_when_it_changes_at_the_source() {
        use Status::{Available, Blocked, Claimed, Completed};
        use StatusChange::{Completes, CompletesOnRelease, Reopens, Stays};
        for (status, holder, was_closed, is_closed, expected, on_release, is_unchanged) in [
            (Available, None, false, false, Stays, false, true),
            (Available, None, false, true, Completes, false, false),
            (Blocked, None, false, true, Completes, false, false),
            (Claimed, Some("ivy"), false, true, CompletesOnRelease, true, false),
            (Blocked, Some("ivy"), false, true, CompletesOnRelease, true, false),
            (Claimed, Some("ivy"), false, false, Stays, false, true),
            // An agent completed it before the source closed it: only noted, so that a reopened one is recognized.
            (Completed, Some("ivy"), false, true, Stays, false, false),
            (Completed, Some("ivy"), false, false, Stays, false, true),
            (Completed, None, true, true, Stays, false, true),
            (Completed, None, true, false, Reopens, false, false),
            (Completed, Some("ivy"), true, false, Reopens, false, false),
            // It was reset on the board, which the source does not change again.
            (Available, None, true, true, Stays, false, true),
            (Available, None, true, false, Stays, false, false),
            (Claimed, Some("ivy"), true, false, Stays, false, false),
        ] {
            let mut before = WorkItem { status, claimed_by: holder.map(str::to_owned), ..an_item("x") };
            let on_release_before = was_closed && status == Claimed;
            let seen = Outside {
                from: Some("github".to_owned()),
                is_closed: was_closed,
                completes_on_release: on_release_before,
                ..Outside::default()
            };
            before.set_outside(&seen).unwrap();
            let after = merged(&before, &[], &tracked(is_closed, None));
            let context = format!("{status} item of {holder:?}, closed {was_closed} then {is_closed}");
            assert_eq!(
                (after.status, after.item.outside().completes_on_release),
                (expected, on_release),
                "{context}"
            );
            assert_eq!(after.is_unchanged(), is_unchanged, "{context}");
            assert_eq!(after.item.outside().is_closed, is_closed, "{context}");
            assert_eq!((after.item.status, &after.item.claimed_by), (before.status, &before.claimed_by));
        }
    }

    #[test]
    fn dependencies_follow_the_source_and_those_of_the_board_stay() {
        for (seen, stored, named, add, remove) in [
            (&[][..], &[][..], Some(&["a", "b"][..]), &["a", "b"][..], &[][..]),
            (&["a", "b"], &["a", "b"], Some(&["a", "b"]), &[], &[]),
            (&["a", "b"], &["a", "b"], Some(&["b", "c"]), &["c"], &["a"]),
            // One that was added on the board stays, and one that was removed there is not added again.
            (&["a"], &["a", "local"], Some(&["a"]), &[], &[]),
            (&["a", "b"], &["a"], Some(&["a", "b"]), &[], &[]),
            (&["a", "b"], &["a"], Some(&["a"]), &[], &[]),
            (&[], &["a"], Some(&["a"]), &[], &[]),
            (&["a"], &["a"], Some(&[]), &[], &["a"]),
            (&["a"], &["a"], None, &[], &[]),
        ] {
            let mut before = an_item("x");
            let blocked_by = owned(seen);
            let from = Some("github".to_owned());
            before.set_outside(&Outside { from, blocked_by, ..Outside::default() }).unwrap();
            let after = merged(&before, stored, &tracked(false, named));
            let context = format!("{seen:?}, {stored:?}, {named:?}");
            assert_eq!((after.add, after.remove), (owned(add), owned(remove)), "{context}");
            let again = merged(&after.item, named.unwrap_or(stored), &tracked(false, named));
            assert!(again.is_unchanged(), "{again:?}");
        }
    }

    #[test]
    fn unknown_fields_stay_and_changed_text_is_marked_with_its_form() {
        let mut before = WorkItem { description: Some("Ours".to_owned()), ..an_item("x") };
        before.set_labels(&["ours".to_owned()]).unwrap();
        before.set_estimate(Some(5)).unwrap();
        assert!(merged(&before, &[], &tracked(false, None)).is_unchanged());
        let mut other = tracked(false, None);
        other.fields.description = Some("Theirs".to_owned());
        let after = merged(&before, &[], &other);
        assert_eq!(after.changed.iter().map(|change| change.field).collect::<Vec<_>>(), ["description"]);
        assert_eq!(after.item.imported_from().as_deref(), Some("github"));
        assert_eq!((after.item.labels(), after.item.estimate()), (vec!["ours".to_owned()], Some(5)));
        let new = merge(None, &[], &tracked(true, None), "beads", Timestamp::EPOCH).unwrap();
        assert_eq!(
            (new.status, new.item.imported_from().as_deref()),
            (StatusChange::Completes, Some("beads"))
        );
    }
}
