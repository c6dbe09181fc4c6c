//! File reservations: conflicts, reports, and expiry.

use std::collections::BTreeSet;

use super::*;
use crate::agent::{ShortIds, short_id};
use crate::entry::{Actor, EntryEditor, EventWording, FILES, Write};
use crate::file::{
    Check, CheckedPath, FileFilter, Mode, Release as ReleaseFiles, Reservation, Reserve, Reserved,
};
use crate::store::{Key, Prefetch};

on_every_engine![
    reservation_has_all_fields,
    overlapping_patterns_of_two_sessions_conflict,
    shared_reservations_do_not_conflict,
    several_patterns_are_reserved_atomically,
    session_never_conflicts_with_itself,
    repeated_reservation_has_an_event_only_if_something_changed,
    upgrade_to_exclusive_needs_the_other_reservations_released,
    reservations_in_other_worktrees_of_the_repository_are_reported,
    files_are_released_once,
    all_files_of_a_session_are_released_atomically,
    reservations_expire,
    reservations_end_with_their_session,
    sweep_releases_reservations_of_stale_agents,
    check_names_the_other_holders,
    only_a_live_session_reserves,
    only_file_verbs_change_reservations,
    invalid_reservations_are_refused,
    nothing_is_free_while_a_reservation_cannot_be_read,
];

const HERE: &str = "/home/ivy/project";
const THERE: &str = "/home/ivy/project-2";

fn reserve(fixture: &Fixture, patterns: &[&str], session: &str) -> Reserved {
    fixture.board.files().reserve(&Reserve::of(HERE, patterns, session)).unwrap()
}

fn refused(fixture: &Fixture, patterns: &[&str], session: &str) -> crate::Error {
    fixture.board.files().reserve(&Reserve::of(HERE, patterns, session)).unwrap_err()
}

fn shared(patterns: &[&str], session: &str) -> Reserve {
    Reserve { shared: true, ..Reserve::of(HERE, patterns, session) }
}

fn reserved(fixture: &Fixture) -> Vec<Reservation> {
    fixture.board.files().list(&FileFilter::default()).unwrap()
}

fn patterns(fixture: &Fixture) -> Vec<String> {
    reserved(fixture).into_iter().map(|reservation| reservation.pattern).collect()
}

fn last_summary(fixture: &Fixture) -> String {
    fixture.events().pop().unwrap().summary
}

fn reservation_has_all_fields(fixture: &Fixture) {
    let ivy = fixture.session("Ivy");
    let request = Reserve {
        note: Some("rewriting the engine".to_owned()),
        ttl: Some(Duration::from_mins(1)),
        ..Reserve::of(HERE, &["src/store/"], &ivy)
    };
    let (made, recorded) = fixture.events_of(|| fixture.board.files().reserve(&request).unwrap());
    assert_eq!(recorded, [EventType::EntryWritten]);
    assert_eq!(last_summary(fixture), "Agent \"Ivy\" reserved files \"src/store/**\": rewriting the engine");
    let [one] = &made.reservations[..] else { panic!("{made:?}") };
    assert!(one.reserved && !one.already_held && !one.renewed && made.elsewhere.is_empty());
    let expected = Reservation {
        pattern: "src/store/**".to_owned(),
        mode: Mode::Exclusive,
        note: Some("rewriting the engine".to_owned()),
        repository: HERE.to_owned(),
        worktree: HERE.to_owned(),
        session_id: ivy.clone(),
        agent_name: "Ivy".to_owned(),
        since: fixture.now(),
        expires_at: Some(fixture.now().plus(Duration::from_mins(1))),
        fence: fixture.revision(),
    };
    assert_eq!(one.reservation, expected);
    assert_eq!(reserved(fixture), [expected]);
    let event = fixture.events().pop().unwrap();
    let entry = fixture.board.scope(FILES).entry(&event.target_id.unwrap()).unwrap().unwrap();
    assert_eq!(entry.session_id, Some(ivy));
    let value: serde_json::Value = entry.value.to().unwrap();
    assert_eq!((&value["pattern"], &value["mode"]), (&"src/store/**".into(), &"exclusive".into()));
}

fn overlapping_patterns_of_two_sessions_conflict(fixture: &Fixture) {
    let (ivy, oak) = (fixture.session("Ivy"), fixture.session("Oak"));
    let note = Some("the engine".to_owned());
    let request = Reserve { note, ..Reserve::of(HERE, &["src/store/**"], &ivy) };
    let fence = fixture.board.files().reserve(&request).unwrap().reservations[0].reservation.fence;
    let since = fixture.now();
    fixture.pass(10);
    for pattern in ["src/store/**", "src/store/memory.rs", "src/*/mod.rs", "**/*.rs", "**"] {
        let (refused, recorded) = fixture.events_of(|| refused(fixture, &[pattern], &oak));
        assert!(recorded.is_empty());
        assert_eq!((refused.code(), refused.code().exit_code()), (Code::Held, 4), "{pattern}");
        let details = refused.details().unwrap();
        assert_eq!((&details["held_by"], &details["held_by_name"]), (&(*ivy).into(), &"Ivy".into()));
        assert_eq!((&details["pattern"], &details["note"]), (&"src/store/**".into(), &"the engine".into()));
        assert_eq!(details["since"], since.to_string());
        assert_eq!(details["fence"], fence.get());
    }
    for pattern in ["src/stores", "src/*.rs", "docs/**", "src/store.rs"] {
        reserve(fixture, &[pattern], &oak);
    }
}

fn shared_reservations_do_not_conflict(fixture: &Fixture) {
    let [ivy, oak, elm] = ["Ivy", "Oak", "Elm"].map(|name| fixture.session(name));
    for session in [&ivy, &oak] {
        fixture.board.files().reserve(&shared(&["src/**"], session)).unwrap();
    }
    assert!(last_summary(fixture).ends_with("\"src/**\" (shared)"));
    let refused = refused(fixture, &["src/lib.rs"], &elm);
    assert_eq!((refused.code(), &refused.details().unwrap()["mode"]), (Code::Held, &"shared".into()));
    reserve(fixture, &["docs/**"], &elm);
    let refused = fixture.board.files().reserve(&shared(&["docs/cli.md"], &ivy));
    assert_eq!(code(refused), Code::Held, "a shared reservation allows only shared ones");
}

fn several_patterns_are_reserved_atomically(fixture: &Fixture) {
    let (ivy, oak) = (fixture.session("Ivy"), fixture.session("Oak"));
    let made = reserve(fixture, &["src/a.rs", "src/b.rs", "src/a.rs"], &ivy);
    assert_eq!(made.reservations.len(), 2, "each once");
    let events = fixture.events();
    let [.., first, second] = &events[..] else { panic!("{events:?}") };
    assert_eq!(first.commit_id, second.commit_id);
    let fences: Vec<_> = made.reservations.iter().map(|one| one.reservation.fence).collect();
    assert_eq!(fences, [first.id, second.id]);
    assert_eq!(refused(fixture, &["docs/**", "src/*.rs"], &oak).code(), Code::Held);
    assert_eq!(refused(fixture, &["docs/**", "not/../plain"], &oak).code(), Code::InvalidValue);
    assert_eq!(patterns(fixture), ["src/a.rs", "src/b.rs"], "nothing of the others");
}

fn session_never_conflicts_with_itself(fixture: &Fixture) {
    let ivy = fixture.session("Ivy");
    reserve(fixture, &["src/**"], &ivy);
    reserve(fixture, &["src/lib.rs"], &ivy);
    reserve(fixture, &["**"], &ivy);
    assert_eq!(patterns(fixture), ["**", "src/**", "src/lib.rs"]);
}

fn repeated_reservation_has_an_event_only_if_something_changed(fixture: &Fixture) {
    let ivy = fixture.session("Ivy");
    let first = Reserve {
        note: Some("one".to_owned()),
        ttl: Some(Duration::from_mins(1)),
        ..Reserve::of(HERE, &["src/**"], &ivy)
    };
    let made = fixture.board.files().reserve(&first).unwrap().reservations.remove(0).reservation;
    fixture.pass(10);
    let again = Reserve::of(HERE, &["src/"], &ivy);
    let (kept, recorded) = fixture.events_of(|| fixture.board.files().reserve(&again).unwrap());
    assert!(recorded.is_empty());
    assert!(kept.reservations[0].already_held && !kept.reservations[0].renewed);
    assert_eq!(kept.reservations[0].reservation, made, "what is not said stays");
    for (request, expected) in [
        (
            Reserve { note: Some("two".to_owned()), ..again.clone() },
            Reservation { note: Some("two".to_owned()), ..made.clone() },
        ),
        (
            Reserve { ttl: Some(Duration::from_mins(1)), ..again.clone() },
            Reservation {
                note: Some("two".to_owned()),
                expires_at: Some(fixture.now().plus(Duration::from_mins(1))),
                ..made.clone()
            },
        ),
        (
            Reserve { shared: true, ..again.clone() },
            Reservation {
                note: Some("two".to_owned()),
                expires_at: Some(fixture.now().plus(Duration::from_mins(1))),
                mode: Mode::Shared,
                ..made.clone()
            },
        ),
    ] {
        let (renewed, recorded) = fixture.events_of(|| fixture.board.files().reserve(&request).unwrap());
        assert_eq!(recorded, [EventType::EntryWritten]);
        let [one] = &renewed.reservations[..] else { panic!("{renewed:?}") };
        assert!(one.already_held && one.renewed && !one.reserved);
        assert_eq!(one.reservation, expected, "since when and under which fence stays");
        assert_eq!(reserved(fixture), [expected]);
    }
    assert_eq!(
        last_summary(fixture),
        "Agent \"Ivy\" renewed the reservation of files \"src/**\" (shared): two"
    );
}

fn upgrade_to_exclusive_needs_the_other_reservations_released(fixture: &Fixture) {
    let (ivy, oak) = (fixture.session("Ivy"), fixture.session("Oak"));
    for session in [&ivy, &oak] {
        fixture.board.files().reserve(&shared(&["src/**"], session)).unwrap();
    }
    assert_eq!(refused(fixture, &["src/**"], &ivy).code(), Code::Held);
    assert_eq!(reserved(fixture)[0].mode, Mode::Shared, "what it has it keeps");
    fixture.board.files().release(&ReleaseFiles::all(&oak)).unwrap();
    assert!(reserve(fixture, &["src/**"], &ivy).reservations[0].renewed);
    assert_eq!(reserved(fixture)[0].mode, Mode::Exclusive);
}

fn reservations_in_other_worktrees_of_the_repository_are_reported(fixture: &Fixture) {
    let [ivy, oak, elm] = ["Ivy", "Oak", "Elm"].map(|name| fixture.session(name));
    reserve(fixture, &["src/**"], &ivy);
    let there = |session: &str| Reserve {
        repository: HERE.to_owned(),
        ..Reserve::of(THERE, &["src/lib.rs"], session)
    };
    let made = fixture.board.files().reserve(&there(&oak)).unwrap();
    let [recorded] = &made.elsewhere[..] else { panic!("{made:?}") };
    assert_eq!((&*recorded.agent_name, &*recorded.worktree, &*recorded.pattern), ("Ivy", HERE, "src/**"));
    let refused = fixture.board.files().reserve(&there(&elm));
    assert_eq!(code(refused), Code::Held, "in one worktree it is a conflict");
    assert!(fixture.board.files().reserve(&there(&oak)).unwrap().reservations[0].already_held);
    // The session's own reservations, and those of another repository, are not reported.
    assert!(fixture.board.files().reserve(&there(&ivy)).is_err());
    let another = fixture.board.files().reserve(&Reserve::of("/another", &["src/**"], &elm)).unwrap();
    assert!(another.elsewhere.is_empty());
    let own = Reserve { repository: HERE.to_owned(), ..Reserve::of("/third", &["src/**"], &oak) };
    let own = fixture.board.files().reserve(&own).unwrap();
    assert_eq!(own.elsewhere.len(), 1, "Ivy's alone: {own:?}");

    let of =
        |repository: &str| FileFilter { repository: Some(repository.to_owned()), ..FileFilter::default() };
    assert_eq!(fixture.board.files().list(&of(HERE)).unwrap().len(), 3);
    assert_eq!(fixture.board.files().list(&of("/another")).unwrap().len(), 1);
    let of_oak = FileFilter { session: Some(oak.clone()), ..FileFilter::default() };
    assert_eq!(fixture.board.files().list(&of_oak).unwrap().len(), 2);
}

fn files_are_released_once(fixture: &Fixture) {
    let (ivy, oak) = (fixture.session("Ivy"), fixture.session("Oak"));
    reserve(fixture, &["src/**", "docs/**"], &ivy);
    let release =
        |session: &str| fixture.board.files().release(&ReleaseFiles::of(HERE, &["src/"], session)).unwrap();
    reserve(fixture, &["tests/**"], &oak);
    let both = ReleaseFiles::of(HERE, &["tests/**", "src/"], &oak);
    let (refused, recorded) = fixture.events_of(|| fixture.board.files().release(&both).unwrap_err());
    assert_eq!((refused.code(), recorded.len()), (Code::NotHolder, 0), "what another one has stays");
    let ids = ShortIds::of([ivy.as_str(), &oak]);
    let expected = format!("src/** is reserved by {}, not by ", ids.label("Ivy", &ivy));
    assert!(refused.to_string().starts_with(&expected), "{refused}");
    assert_eq!(patterns(fixture), ["docs/**", "src/**", "tests/**"], "nothing is released");
    fixture.board.files().release(&ReleaseFiles::of(HERE, &["tests/**"], &oak)).unwrap();
    let (released, recorded) = fixture.events_of(|| release(&ivy));
    assert_eq!(recorded, [EventType::EntryDeleted]);
    assert_eq!((&released.released[..], released.not_held.len()), (&["src/**".to_owned()][..], 0));
    assert_eq!(last_summary(fixture), "Agent \"Ivy\" released files \"src/**\"");
    let (again, recorded) = fixture.events_of(|| release(&ivy));
    assert_eq!((again.released.len(), &again.not_held[..]), (0, &["src/**".to_owned()][..]));
    assert!(recorded.is_empty());
    let elsewhere = ReleaseFiles::of(THERE, &["docs/**"], &ivy);
    assert!(fixture.board.files().release(&elsewhere).unwrap().released.is_empty());
    assert_eq!(patterns(fixture), ["docs/**"]);
    reserve(fixture, &["src/lib.rs"], &oak);
}

fn all_files_of_a_session_are_released_atomically(fixture: &Fixture) {
    let (ivy, oak) = (fixture.session("Ivy"), fixture.session("Oak"));
    reserve(fixture, &["a", "b"], &ivy);
    fixture.board.files().reserve(&Reserve::of(THERE, &["c"], &ivy)).unwrap();
    fixture.board.locks().acquire(&crate::lock::Acquire::of("deploy", &ivy)).unwrap();
    reserve(fixture, &["d"], &oak);
    let (released, recorded) =
        fixture.events_of(|| fixture.board.files().release(&ReleaseFiles::all(&ivy)).unwrap());
    assert_eq!(recorded, [EventType::EntryDeleted, EventType::EntryDeleted, EventType::EntryDeleted]);
    assert_eq!(released.released, ["a", "b", "c"]);
    assert_eq!(patterns(fixture), ["d"]);
    assert_eq!(fixture.board.locks().list().unwrap().len(), 1, "a lock is no file");
    let again = fixture.board.files().release(&ReleaseFiles::all(&ivy)).unwrap();
    assert!(again.released.is_empty() && again.not_held.is_empty());
}

fn reservations_expire(fixture: &Fixture) {
    let (ivy, oak) = (fixture.session("Ivy"), fixture.session("Oak"));
    let brief = Reserve { ttl: Some(Duration::from_secs(10)), ..Reserve::of(HERE, &["src/**"], &ivy) };
    fixture.board.files().reserve(&brief).unwrap();
    fixture.pass(9);
    assert_eq!(refused(fixture, &["src/**"], &oak).code(), Code::Held);
    fixture.pass(1);
    assert!(reserved(fixture).is_empty());
    let late = ReleaseFiles::of(HERE, &["src/**"], &ivy);
    assert_eq!(fixture.board.files().release(&late).unwrap().not_held, ["src/**"]);
    assert!(fixture.board.files().release(&ReleaseFiles::all(&ivy)).unwrap().released.is_empty());
    let (made, recorded) = fixture.events_of(|| reserve(fixture, &["src/**"], &oak));
    assert_eq!(recorded, [EventType::EntryWritten], "the other one has a key of its own");
    assert!(made.reservations[0].reserved);
    let (swept, recorded) = fixture.events_of(|| fixture.sweep());
    assert_eq!((swept.entries_expired, recorded), (1, vec![EventType::EntryExpired]));
    assert_eq!(last_summary(fixture), "File reservation \"src/**\" expired");
    fixture.board.files().release(&ReleaseFiles::all(&oak)).unwrap();

    // The session's own expired reservation is reported as expired before it is made again.
    fixture.board.files().reserve(&brief).unwrap();
    fixture.pass(10);
    let (made, recorded) = fixture.events_of(|| reserve(fixture, &["src/**"], &ivy));
    assert_eq!(recorded, [EventType::EntryExpired, EventType::EntryWritten]);
    let made = &made.reservations[0];
    assert!(made.reserved && !made.already_held);
    assert_eq!((made.reservation.fence, made.reservation.expires_at), (fixture.revision(), None));
}

fn reservations_end_with_their_session(fixture: &Fixture) {
    let (ivy, oak) = (fixture.session("Ivy"), fixture.session("Oak"));
    reserve(fixture, &["src/**"], &ivy);
    let (_, recorded) = fixture.events_of(|| fixture.board.agents().deregister(&ivy).unwrap());
    assert_eq!(recorded, [EventType::EntryDeleted, EventType::AgentDeregistered]);
    let released = fixture.events().into_iter().rfind(|event| event.event_type == EventType::EntryDeleted);
    assert_eq!(
        released.unwrap().summary,
        format!("File reservation \"src/**\" of agent \"Ivy\" ({}) released (session ended)", short_id(&ivy))
    );
    reserve(fixture, &["src/**"], &oak);
}

fn sweep_releases_reservations_of_stale_agents(fixture: &Fixture) {
    let (ivy, oak) = (fixture.session_of_process("Ivy", 10), fixture.session_of_process("Oak", 11));
    reserve(fixture, &["src/**"], &ivy);
    fixture.processes.end(10);
    assert_eq!(refused(fixture, &["src/**"], &oak).code(), Code::Held, "it was alive a moment ago");
    fixture.pass(301);
    fixture.sweep();
    assert_eq!(
        last_summary(fixture),
        format!("File reservation \"src/**\" of agent \"Ivy\" ({}) released (marked stale)", short_id(&ivy))
    );
    reserve(fixture, &["src/**"], &oak);
    let late = ReleaseFiles::all(&ivy);
    assert_eq!(code(fixture.board.files().release(&late)), Code::SessionStale);
    let back = fixture.beat(&ivy);
    assert!(back.recovered);
    assert_eq!(refused(fixture, &["src/lib.rs"], &ivy).code(), Code::Held);
}

fn check_names_the_other_holders(fixture: &Fixture) {
    let [ivy, oak, elm] = ["Ivy", "Oak", "Elm"].map(|name| fixture.session(name));
    fixture.item("x");
    fixture.claim("x", &ivy);
    let note = Some("the engine".to_owned());
    fixture.board.files().reserve(&Reserve { note, ..Reserve::of(HERE, &["src/**"], &ivy) }).unwrap();
    fixture.board.files().reserve(&shared(&["docs/**"], &oak)).unwrap();
    let there = Reserve { repository: HERE.to_owned(), ..Reserve::of(THERE, &["README.md"], &elm) };
    fixture.board.files().reserve(&there).unwrap();
    let check = |session: Option<&str>, paths: &[&str]| {
        fixture.board.files().check(&Check::of(HERE, paths, session)).unwrap()
    };
    let (checked, recorded) =
        fixture.events_of(|| check(None, &["src/lib.rs", "docs/cli.md", "README.md", "docs/", "**/*.md"]));
    assert!(recorded.is_empty() && !checked.free);
    let names = |path: &CheckedPath| {
        let names: BTreeSet<_> =
            path.reserved_by.iter().map(|by| by.reservation.agent_name.clone()).collect();
        names.into_iter().collect::<Vec<_>>().join(" and ")
    };
    let names: Vec<_> = checked.paths.iter().map(names).collect();
    assert_eq!(names, ["Ivy", "Oak", "", "Oak", "Ivy and Oak"]);
    let ivys = &checked.paths[0].reserved_by[0];
    assert_eq!(ivys.current_work.as_deref(), Some("Title of x"));
    assert_eq!(ivys.reservation.note.as_deref(), Some("the engine"));
    let readme = &checked.paths[2];
    assert!(readme.free);
    assert_eq!(readme.elsewhere[0].reservation.worktree, THERE);
    assert!(check(Some(&ivy), &["src/lib.rs", "README.md"]).free, "one's own are not in the way");
    assert!(!check(Some(&oak), &["src/lib.rs"]).free);
    assert!(check(None, &[]).free);
}

fn only_a_live_session_reserves(fixture: &Fixture) {
    let (stale, ended) = (fixture.session("Stale"), fixture.session("Ended"));
    fixture.board.agents().deregister(&ended).unwrap();
    fixture.pass(301);
    fixture.sweep();
    for (session, expected) in
        [(&*stale, Code::SessionStale), (&ended, Code::SessionEnded), ("unknown", Code::AgentNotFound)]
    {
        assert_eq!(refused(fixture, &["src/**"], session).code(), expected);
    }
    assert!(reserved(fixture).is_empty());
}

fn only_file_verbs_change_reservations(fixture: &Fixture) {
    let ivy = fixture.session("Ivy");
    reserve(fixture, &["src/**"], &ivy);
    let key = fixture.events().pop().unwrap().target_id.unwrap();
    let scope = fixture.board.scope(FILES).acting_as(Actor::session(&ivy));
    assert_eq!(code(scope.write(&Write::new(&key, Value::null()))), Code::InvalidValue);
    assert_eq!(code(scope.delete(&key)), Code::InvalidValue);
    assert_eq!(code(scope.clear("*")), Code::InvalidValue);
    assert_eq!(patterns(fixture), ["src/**"]);
}

fn invalid_reservations_are_refused(fixture: &Fixture) {
    let ivy = fixture.session("Ivy");
    let good = Reserve::of(HERE, &["src/**"], &ivy);
    for (what, request) in [
        ("no pattern", Reserve { patterns: Vec::new(), ..good.clone() }),
        ("too many", Reserve { patterns: vec!["a".to_owned(); 257], ..good.clone() }),
        ("a class", Reserve { patterns: owned(&["src/[ab]"]), ..good.clone() }),
        ("no time", Reserve { ttl: Some(Duration::ZERO), ..good.clone() }),
        ("no worktree", Reserve { worktree: String::new(), ..good.clone() }),
        ("no repository", Reserve { repository: String::new(), ..good.clone() }),
        ("a long path", Reserve { worktree: "/x".repeat(2049), ..good.clone() }),
        ("a zero byte", Reserve { worktree: "/x\0y".to_owned(), ..good.clone() }),
    ] {
        assert_eq!(code(fixture.board.files().reserve(&request)), Code::InvalidValue, "{what}");
    }
    let secret = format!("ghp_{}", "a1B2c3D4e5F6".repeat(3));
    assert_eq!(refused(fixture, &[&secret], &ivy).code(), Code::SecretLooking);
    assert!(reserved(fixture).is_empty());
}

fn nothing_is_free_while_a_reservation_cannot_be_read(fixture: &Fixture) {
    let (ivy, oak) = (fixture.session("Ivy"), fixture.session("Oak"));
    let odd = Write { lease: true, ..a_write("odd", "1") };
    let prefetch = [Prefetch::Row(Key::Agent(ivy.clone())), Prefetch::Entry(FILES, "odd")];
    fixture
        .board
        .commit("test", &prefetch, |tx| {
            let mut editor = EntryEditor::new(&fixture.board, tx, &Actor::session(&ivy))?;
            editor.write(FILES, &odd, EventWording::AsEntry)?;
            Ok((editor.finish()?, ()))
        })
        .unwrap();
    let error = refused(fixture, &["src/**"], &oak);
    assert_eq!(error.code(), Code::Corrupt);
    assert_eq!(error.to_string(), "file reservation odd cannot be read");
    assert_eq!(code(fixture.board.files().check(&Check::of("/w", &["src/lib.rs"], None))), Code::Corrupt);
    assert_eq!(fixture.board.files().release(&ReleaseFiles::all(&ivy)).unwrap().released, ["odd"]);
    reserve(fixture, &["src/**"], &oak);
}
