//! The rules of entries, as tables of cases.

use super::*;
use crate::entry::Value;
use crate::store::conformance::an_entry;

const NOW: Timestamp = Timestamp::EPOCH;

fn circumstances(session: Option<&'static str>) -> Circumstances<'static> {
    Circumstances {
        scope: "team",
        author: "Oak",
        session,
        last: LastVersion { version: 3, revision: Some(Revision::new(7)) },
        revision: Revision::new(9),
        now: NOW.plus(Duration::from_secs(10)),
        default_ttl: None,
    }
}

fn stored() -> Entry {
    Entry { version: 3, revision: Revision::new(7), created_by: "Ivy".to_owned(), ..an_entry("team", "a") }
}

fn a_write() -> Write {
    Write::new("a", Value::null())
}

#[test]
fn a_write_is_refused_unless_its_conditions_hold() {
    for (exists, if_absent, if_revision, expected) in [
        (false, false, None, None),
        (true, false, None, None),
        (false, true, None, None),
        (true, true, None, Some(Code::AlreadyExists)),
        (false, false, Some(0), None),
        (false, false, Some(7), Some(Code::Conflict)),
        (true, false, Some(0), Some(Code::Conflict)),
        (true, false, Some(6), Some(Code::Conflict)),
        (true, false, Some(7), None),
    ] {
        let write = Write { if_absent, if_revision: if_revision.map(Revision::new), ..a_write() };
        let before = exists.then(stored);
        let refusal = decide(&write, before.as_ref(), &circumstances(None)).err().map(|error| error.code());
        assert_eq!(refusal, expected, "exists {exists}, if absent {if_absent}, if revision {if_revision:?}");
    }
}

#[test]
fn the_creator_stays_and_the_author_is_the_last_writer() {
    let created = decide(&a_write(), None, &circumstances(None)).unwrap();
    assert_eq!((created.created_by.as_str(), created.updated_by.as_str()), ("Oak", "Oak"));
    assert_eq!(created.created_at, created.updated_at);
    let updated = decide(&a_write(), Some(&stored()), &circumstances(None)).unwrap();
    assert_eq!((updated.created_by.as_str(), updated.updated_by.as_str()), ("Ivy", "Oak"));
    assert_eq!((updated.version, updated.revision), (4, Revision::new(9)));
    assert_eq!(updated.created_at, stored().created_at);
}

#[test]
fn lease_keeps_the_fence_token_of_its_first_write() {
    let leased = || Entry { session_id: Some("oak".to_owned()), fence: Some(Revision::new(5)), ..stored() };
    for (before, lease, session, expected) in [
        (None, false, Some("oak"), None),
        (None, true, Some("oak"), Some(("oak", 9))),
        (Some(stored()), false, Some("oak"), None),
        (Some(stored()), true, Some("oak"), Some(("oak", 9))),
        (Some(leased()), true, Some("oak"), Some(("oak", 5))),
        (Some(leased()), false, Some("oak"), Some(("oak", 5))),
    ] {
        let write = Write { lease, ..a_write() };
        let entry = decide(&write, before.as_ref(), &circumstances(session)).unwrap();
        let held = entry.session_id.as_deref().zip(entry.fence.map(Revision::get));
        assert_eq!(held, expected, "before {before:?}, lease {lease}");
    }
}

#[test]
fn leased_entry_can_be_changed_only_by_its_session() {
    for (holder, session, expected) in [
        (None, None, true),
        (None, Some("oak"), true),
        (Some("oak"), Some("oak"), true),
        (Some("oak"), Some("ivy"), false),
        (Some("oak"), None, false),
    ] {
        assert_eq!(may_change(holder, session), expected, "leased by {holder:?}, session {session:?}");
    }
}

#[test]
fn a_write_replaces_the_time_to_live_unless_it_merges() {
    let at = |seconds| Some(NOW.plus(Duration::from_secs(seconds)));
    let before = Entry { expires_at: at(60), ..stored() };
    for (ttl, merge, expected) in
        [(None, false, None), (None, true, at(60)), (Some(5), false, at(15)), (Some(5), true, at(15))]
    {
        let write = Write { ttl: ttl.map(Duration::from_secs), merge, ..a_write() };
        let entry = decide(&write, Some(&before), &circumstances(None)).unwrap();
        assert_eq!(entry.expires_at, expected, "ttl {ttl:?}, merge {merge}");
    }
    let too_short = Write { ttl: Some(Duration::from_nanos(1)), ..a_write() };
    assert!(decide(&too_short, None, &circumstances(None)).is_err());
}

#[test]
fn a_write_replaces_tags_unless_it_merges() {
    let tags = |tags: &[&str]| tags.iter().map(|tag| (*tag).to_owned()).collect::<Vec<_>>();
    let before = Entry { tags: tags(&["b"]), ..stored() };
    for (merge, expected) in [(false, &["a"][..]), (true, &["a", "b"])] {
        let write = Write { tags: tags(&["a"]), merge, ..a_write() };
        assert_eq!(decide(&write, Some(&before), &circumstances(None)).unwrap().tags, expected);
    }
}

#[test]
fn a_fence_token_is_current_stale_or_unknown() {
    for (given, expected) in [
        (7, None),
        (6, Some("fence token 6 is stale: work item x was claimed again with token 7")),
        (8, Some("fence token 8 does not exist: work item x was claimed with token 7")),
    ] {
        let given = Some(Revision::new(given));
        let checked =
            check_own_fence("work item x was claimed", Some(Revision::new(7)), given, Hint::CheckLostLock);
        assert_eq!(checked.err().map(|error| error.to_string()).as_deref(), expected);
    }
}
