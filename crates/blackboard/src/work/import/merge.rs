//! The rule of an import: how an item of a tracker changes the item of the board.

use serde_json::json;

use super::ImportItems;
use crate::clock::Timestamp;
use crate::error::{Code, Refusal, Result};
use crate::work::change::{FieldChange, NewFields};
use crate::work::create::{Create, blank_item};
use crate::work::details::Outside;
use crate::work::{Hold, Priority, Status, WorkItem};

/// An item of a tracker, with filtered text.
#[derive(Clone, Debug, Default)]
pub(super) struct TrackedItem {
    /// Its position in the import.
    pub(super) at: usize,
    pub(super) id: String,
    pub(super) fields: NewFields,
    pub(super) is_closed: bool,
    /// Its blockers, without itself.
    pub(super) blocked_by: Option<Vec<String>>,
    pub(super) blocks_itself: bool,
    /// Why it is on hold; an empty one if it is not.
    pub(super) on_hold: Option<String>,
}

impl TrackedItem {
    /// Whether the source has put it on hold since the last import, or has ended that.
    pub(super) fn changes_hold(&self, seen: &Outside) -> bool {
        self.on_hold.as_ref().is_some_and(|reason| *reason != *seen.on_hold.as_deref().unwrap_or_default())
    }
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
/// The source decides about text, labels and estimate. About the priority, the closed state and dependencies it decides
/// only when they change there: what agents and people do with an item on the board stays. An item that imports of another
/// form wrote, or none, is changed only if the import adopts it.
pub(super) fn merge(
    before: Option<&WorkItem>,
    blockers: &[&str],
    tracked: &TrackedItem,
    import: &ImportItems,
    now: Timestamp,
) -> Result<Merged> {
    let from = Some(&import.from);
    let is_adopted = before.is_some_and(|before| before.outside().from.as_ref() != from);
    if let Some(before) = before.filter(|_| is_adopted && !import.adopt) {
        return refuse_difference(before, blockers, tracked, import);
    }
    let is_new = before.is_none();
    let mut item = match before {
        Some(before) => before.clone(),
        None => blank_item(&Create::new(&tracked.id, ""), now),
    };
    let before_seen = item.outside();
    let mut seen = before_seen.clone();
    let mut changed = set_fields(&mut item, &mut seen, tracked, is_new || is_adopted)?;
    if is_new && tracked.fields.source.is_none() {
        item.source = format!("{}:{}", import.from, tracked.id);
    }
    seen.from = from.cloned();
    let is_held = item.claimed_by.is_some() && item.status != Status::Completed;
    let status = match (before_seen.is_closed, tracked.is_closed) {
        (false, true) if item.status == Status::Completed => StatusChange::Stays,
        (false, true) if is_held => StatusChange::CompletesOnRelease,
        (false, true) => StatusChange::Completes,
        (true, false) if item.status == Status::Completed => StatusChange::Reopens,
        _ => StatusChange::Stays,
    };
    seen.is_closed = tracked.is_closed;
    seen.was_closed_before = tracked.is_closed && (is_new || seen.was_closed_before);
    if !is_held && tracked.changes_hold(&seen) {
        changed.push(set_hold(&mut item, &mut seen, tracked));
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
        seen.blocked_by.clone_from(named);
    }
    // What the board notes of the source has no event of its own if nothing else on the board follows from it.
    if !is_new {
        let is_only_noted = (add.is_empty() && remove.is_empty()) || item.status == Status::Completed;
        let is_changed = |field: &str, changed: &[FieldChange]| changed.iter().any(|one| one.field == field);
        for (field, old, new, is_noted) in [
            ("imported_from", json!(before_seen.from), json!(seen.from), true),
            (
                "closed_outside",
                json!(before_seen.is_closed),
                json!(seen.is_closed),
                status == StatusChange::Stays,
            ),
            ("blocked_by", json!(before_seen.blocked_by), json!(seen.blocked_by), is_only_noted),
            (
                "priority_outside",
                json!(before_seen.priority),
                json!(seen.priority),
                !is_changed("priority", &changed),
            ),
            (
                "estimate_outside",
                json!(before_seen.estimate),
                json!(seen.estimate),
                !is_changed("estimate", &changed),
            ),
        ] {
            if is_noted && old != new {
                changed.push(FieldChange::new(field, &old, &new));
            }
        }
    }
    item.set_outside(&seen)?;
    Ok(Merged { item, changed, status, add, remove })
}

/// Puts an item on hold, or ends that if the last import has put it on hold and the reason is still the same.
fn set_hold(item: &mut WorkItem, seen: &mut Outside, tracked: &TrackedItem) -> FieldChange {
    let new = tracked.on_hold.clone().filter(|reason| !reason.is_empty());
    let was = std::mem::replace(&mut seen.on_hold, new.clone());
    let hold = item.hold();
    let old = hold.on_hold.clone();
    if old != was || old == new {
        // A note of the source alone, so that its next change is recognized.
        return FieldChange::new("on_hold_outside", &json!(was), &json!(new));
    }
    item.set_hold(&Hold { on_hold: new.clone(), ..hold });
    FieldChange::new("on_hold", &json!(old), &json!(new))
}

/// Sets the fields of an item, and what is noted of them. Returns those that changed.
///
/// A priority that is the same as at the last import follows the source, and one that was changed on the board stays.
/// A source whose labels mean no priority or estimate has none, unless the import is the first one of an item.
fn set_fields(
    item: &mut WorkItem,
    seen: &mut Outside,
    tracked: &TrackedItem,
    is_first: bool,
) -> Result<Vec<FieldChange>> {
    let NewFields { priority, labels, estimate, .. } = &tracked.fields;
    let follows = is_first || item.priority == seen.priority;
    let is_without = |is_missing: bool| is_missing && labels.is_some() && !is_first;
    let at_source = priority.or_else(|| is_without(true).then(Priority::default));
    let fields = NewFields { priority: at_source.filter(|_| follows), ..tracked.fields.clone() };
    let mut changed = fields.apply(item)?;
    seen.priority = at_source.unwrap_or(if is_first { Priority::default() } else { seen.priority });
    let noted = seen.estimate;
    if is_without(estimate.is_none()) {
        seen.estimate = None;
        if noted.is_some() && item.estimate() == noted {
            item.set_estimate(None)?;
            changed.push(FieldChange::new("estimate", &json!(noted), &json!(null)));
        }
    } else {
        seen.estimate = estimate.or(noted.filter(|_| !is_first));
    }
    Ok(changed)
}

/// Refuses to change an item that the import does not own. Values that the item has are accepted, so that an export of
/// the board can be imported again.
fn refuse_difference(
    before: &WorkItem,
    blockers: &[&str],
    tracked: &TrackedItem,
    import: &ImportItems,
) -> Result<Merged> {
    let mut item = before.clone();
    let changed = tracked.fields.apply(&mut item)?;
    let mut different: Vec<String> = changed.iter().map(|change| change.field.replace('_', " ")).collect();
    if tracked.is_closed && before.status != Status::Completed {
        different.push("closed state".to_owned());
    }
    if tracked.blocked_by.iter().flatten().any(|id| !blockers.contains(&id.as_str())) {
        different.push("blockers".to_owned());
    }
    if tracked.on_hold.as_ref().is_some_and(|reason| !reason.is_empty()) && !before.is_on_hold() {
        different.push("hold".to_owned());
    }
    if different.is_empty() {
        let item = before.clone();
        return Ok(Merged {
            item,
            changed: Vec::new(),
            status: StatusChange::Stays,
            add: Vec::new(),
            remove: Vec::new(),
        });
    }
    let origin = match before.imported_from() {
        Some(from) => format!("was imported from {from}"),
        None => "was not imported".to_owned(),
    };
    let message = format!(
        "the item on the board {origin}, and an import from {} may not change its {}",
        import.from,
        different.join(", ")
    );
    Err(Refusal::new(Code::AlreadyExists, message).into())
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

    fn from(form: &str) -> ImportItems {
        ImportItems { from: form.to_owned(), ..ImportItems::default() }
    }

    fn merged(before: &WorkItem, blockers: &[&str], tracked: &TrackedItem) -> Merged {
        merge(Some(before), blockers, tracked, &from("github"), Timestamp::EPOCH).unwrap()
    }

    /// An item that an import of this form wrote.
    fn imported(form: &str) -> WorkItem {
        let mut item = an_item("x");
        item.set_outside(&Outside { from: Some(form.to_owned()), ..Outside::default() }).unwrap();
        item
    }

    fn fields_of(merged: &Merged) -> Vec<&'static str> {
        merged.changed.iter().map(|change| change.field).collect()
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
    fn a_hold_follows_the_source_and_one_of_the_board_stays() {
        testkit::limit_test();
        let text = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        // The hold that the last import saw, that of the board, whether it has a holder, that of the source; then those of
        // the board and of the note.
        for (seen, board, holder, source, expected, noted) in [
            ("", "", None, None, "", ""),
            ("", "", None, Some(""), "", ""),
            ("", "", None, Some("later"), "later", "later"),
            ("later", "later", None, Some("later"), "later", "later"),
            ("later", "later", None, None, "later", "later"),
            ("later", "later", None, Some(""), "", ""),
            // It was unblocked on the board.
            ("later", "", None, Some("later"), "", "later"),
            ("later", "", None, Some(""), "", ""),
            // It failed on the board.
            ("", "failed", None, Some("later"), "failed", "later"),
            ("later", "failed", None, Some(""), "failed", ""),
            // A session holds it.
            ("", "", Some("ivy"), Some("later"), "", ""),
        ] {
            let mut before = WorkItem { claimed_by: holder.map(str::to_owned), ..an_item("x") };
            before.set_hold(&Hold { on_hold: text(board), ..Hold::default() });
            let from = Some("beads".to_owned());
            before.set_outside(&Outside { from, on_hold: text(seen), ..Outside::default() }).unwrap();
            let tracked = TrackedItem { on_hold: source.map(str::to_owned), ..tracked(false, None) };
            let import = self::from("beads");
            let after = merge(Some(&before), &[], &tracked, &import, Timestamp::EPOCH).unwrap();
            let context = format!("{seen:?}, {board:?}, {holder:?}, {source:?}");
            assert_eq!(after.item.hold().on_hold, text(expected), "{context}");
            assert_eq!(after.item.outside().on_hold, text(noted), "{context}");
            assert_eq!(after.is_unchanged(), after.item == before, "{context}");
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
    fn unknown_fields_stay() {
        testkit::limit_test();
        let mut before = WorkItem { description: Some("Ours".to_owned()), ..imported("github") };
        before.set_labels(&["ours".to_owned()]).unwrap();
        before.set_estimate(Some(5)).unwrap();
        assert!(merged(&before, &[], &tracked(false, None)).is_unchanged());
        let mut other = tracked(false, None);
        other.fields.description = Some("Theirs".to_owned());
        let after = merged(&before, &[], &other);
        assert_eq!(fields_of(&after), ["description"]);
        assert_eq!((after.item.labels(), after.item.estimate()), (vec!["ours".to_owned()], Some(5)));
        let new = merge(None, &[], &tracked(true, None), &from("beads"), Timestamp::EPOCH).unwrap();
        assert_eq!(
            (new.status, new.item.imported_from().as_deref()),
            (StatusChange::Completes, Some("beads"))
        );
    }

    #[test]
    fn an_item_that_the_import_does_not_own_is_refused_if_a_value_differs() {
        testkit::limit_test();
        let mut renamed = tracked(false, None);
        renamed.fields.title = Some("Other".to_owned());
        let mut demoted = tracked(false, None);
        demoted.fields.priority = Some(Priority::P3);
        for (before, is_completed) in [
            (an_item("x"), false),
            (imported("github"), false),
            (an_item("x"), true),
            (imported("github"), true),
        ] {
            let status = if is_completed { Status::Completed } else { Status::Available };
            let before = WorkItem { status, ..before };
            for (tracked, different) in [
                (tracked(false, None), None),
                (tracked(false, Some(&["a"])), None),
                (tracked(false, Some(&[])), None),
                (tracked(true, None), (!is_completed).then_some("closed state")),
                (tracked(false, Some(&["a", "b"])), Some("blockers")),
                (renamed.clone(), Some("title")),
                (demoted.clone(), Some("priority")),
            ] {
                let import = from("markdown");
                let merged = merge(Some(&before), &["a"], &tracked, &import, Timestamp::EPOCH);
                let context = format!("{before:?}, {tracked:?}");
                match (merged, different) {
                    (Ok(merged), None) => {
                        assert!(merged.is_unchanged() && merged.item == before, "{context}");
                    }
                    (Err(refused), Some(different)) => {
                        assert_eq!(refused.code(), Code::AlreadyExists, "{context}");
                        assert!(refused.to_string().ends_with(&format!("its {different}")), "{refused}");
                    }
                    (merged, _) => panic!("{context}: {merged:?}"),
                }
                let adopts = ImportItems { adopt: true, ..from("markdown") };
                let adopted = merge(Some(&before), &["a"], &tracked, &adopts, Timestamp::EPOCH).unwrap();
                assert_eq!(adopted.item.imported_from().as_deref(), Some("markdown"), "{context}");
                assert!(!adopted.is_unchanged(), "{context}");
                let again = merge(Some(&adopted.item), &["a"], &renamed, &from("markdown"), Timestamp::EPOCH);
                assert!(again.is_ok(), "later imports own it: {context}");
            }
        }
    }

    #[test]
    fn a_priority_and_an_estimate_of_the_source_follow_it_and_a_priority_of_the_board_stays() {
        use Priority::{P1, P2, P3};
        testkit::limit_test();
        // Priority and estimate that the last import saw, those of the board, those of the source and whether it has
        // labels; then those of the board.
        for (seen, board, source, has_labels, expected) in [
            ((P1, Some(5)), (P1, Some(5)), (Some(P1), Some(5)), true, (P1, Some(5))),
            ((P1, Some(5)), (P1, Some(5)), (Some(P3), Some(6)), true, (P3, Some(6))),
            // The labels were removed.
            ((P1, Some(5)), (P1, Some(5)), (None, None), true, (P2, None)),
            ((P3, None), (P3, None), (None, None), true, (P2, None)),
            // The form has no labels here.
            ((P1, Some(5)), (P1, Some(5)), (None, None), false, (P1, Some(5))),
            ((P2, None), (P2, None), (Some(P1), Some(5)), false, (P1, Some(5))),
            // They were changed on the board.
            ((P1, Some(5)), (P3, Some(6)), (Some(P1), Some(5)), true, (P3, Some(5))),
            ((P1, Some(5)), (P3, Some(6)), (None, None), true, (P3, Some(6))),
            ((P2, None), (P1, Some(6)), (None, None), true, (P1, Some(6))),
            ((P2, None), (P1, None), (Some(P3), None), true, (P1, None)),
        ] {
            let mut before = WorkItem { priority: board.0, ..an_item("x") };
            before.set_estimate(board.1).unwrap();
            let from = Some("github".to_owned());
            let outside = Outside { from, priority: seen.0, estimate: seen.1, ..Outside::default() };
            before.set_outside(&outside).unwrap();
            let mut tracked = tracked(false, None);
            tracked.fields.priority = source.0;
            tracked.fields.estimate = source.1;
            tracked.fields.labels = has_labels.then(Vec::new);
            let after = merged(&before, &[], &tracked);
            let context = format!("{seen:?}, {board:?}, {source:?}, {has_labels}");
            assert_eq!((after.item.priority, after.item.estimate()), expected, "{context}");
            assert_eq!(after.is_unchanged(), after.item == before, "{context}");
            assert!(merged(&after.item, &[], &tracked).is_unchanged(), "{context}");
        }
    }
}
