//! Edits and file conflicts: see `file/edit.rs`.

use super::{Fixture, on_every_engine};
use crate::agent::{CheckIn, Register};
use crate::file::{Check, Edit, Edited, FileActivity, FileConflict, Reserve};
use crate::store::{Key, Range};

on_every_engine!(
    recent_editor_of_a_file_is_named_with_its_work,
    edit_causes_no_conflict_after_fifteen_minutes,
    reservations_conflict_and_edits_of_stale_agents_do_not,
    session_and_its_delegates_do_not_conflict,
    shared_reservations_cause_no_warning,
    denied_edit_causes_no_conflict,
    denied_session_keeps_its_earlier_edit,
    file_name_may_look_like_a_pattern,
    edits_are_removed_after_a_day_and_with_their_session,
    edits_are_found_by_file_session_and_age,
);

const TREE: &str = "/home/ivy/project";

fn edit(fixture: &Fixture, session: &str, path: &str, denied: bool) {
    let edited = Edited {
        worktree: TREE.to_owned(),
        paths: vec![path.to_owned()],
        tool: Some("Edit".to_owned()),
        denied,
    };
    fixture.board.agents().check_in(&CheckIn { edited: Some(edited), ..CheckIn::of(session) }).unwrap();
}

fn others(fixture: &Fixture, path: &str, session: &str) -> Vec<FileConflict> {
    fixture.board.files().conflicts(&Check::of(TREE, &[path], Some(session))).unwrap()
}

fn names(others: &[FileConflict]) -> Vec<&str> {
    others.iter().map(|other| other.agent_name.as_str()).collect()
}

fn recent_editor_of_a_file_is_named_with_its_work(fixture: &Fixture) {
    let ivy = fixture
        .register(&Register { work: Some("The engine".to_owned()), ..Register::named("Ivy") })
        .session_id;
    let oak = fixture.session("Oak");
    let before = fixture.revision();
    edit(fixture, &ivy, "src/lib.rs", false);
    assert_eq!(fixture.revision(), before, "no event tells of an edit");
    let found = others(fixture, "src/lib.rs", &oak);
    assert_eq!(names(&found), ["Ivy"]);
    assert_eq!((found[0].current_work.as_deref(), found[0].since), (Some("The engine"), fixture.now()));
    assert_eq!(found[0].activity, FileActivity::Edited { tool: Some("Edit".to_owned()) });
    assert!(others(fixture, "src/lib.rs", &ivy).is_empty(), "its own edit is not in its way");
    assert!(others(fixture, "src/main.rs", &oak).is_empty());
    let elsewhere = Check::of("/other", &["src/lib.rs"], Some(&oak));
    assert!(fixture.board.files().conflicts(&elsewhere).unwrap().is_empty());
    let unknown = Check::of(TREE, &["src/lib.rs"], None);
    assert_eq!(names(&fixture.board.files().conflicts(&unknown).unwrap()), ["Ivy"]);
}

fn edit_causes_no_conflict_after_fifteen_minutes(fixture: &Fixture) {
    let (ivy, oak) = (fixture.session("Ivy"), fixture.session("Oak"));
    edit(fixture, &ivy, "a", false);
    fixture.pass(15 * 60 - 1);
    assert_eq!(names(&others(fixture, "a", &oak)), ["Ivy"]);
    fixture.pass(1);
    assert!(others(fixture, "a", &oak).is_empty());
    edit(fixture, &ivy, "a", false);
    assert_eq!(names(&others(fixture, "a", &oak)), ["Ivy"], "until it is edited again");
}

fn reservations_conflict_and_edits_of_stale_agents_do_not(fixture: &Fixture) {
    let (ivy, oak, elm) = (fixture.session("Ivy"), fixture.session("Oak"), fixture.session("Elm"));
    let note = Some("rewriting".to_owned());
    fixture.board.files().reserve(&Reserve { note, ..Reserve::of(TREE, &["src/**"], &ivy) }).unwrap();
    edit(fixture, &ivy, "src/lib.rs", false);
    edit(fixture, &oak, "src/lib.rs", false);
    let found = others(fixture, "src/lib.rs", &elm);
    assert_eq!(names(&found), ["Ivy", "Oak"], "each once, and first who said so");
    let (pattern, note) = ("src/**".to_owned(), Some("rewriting".to_owned()));
    assert_eq!(found[0].activity, FileActivity::Reserved { pattern, note });
    fixture.board.agents().deregister(&oak).unwrap();
    assert_eq!(names(&others(fixture, "src/lib.rs", &elm)), ["Ivy"]);
}

fn session_and_its_delegates_do_not_conflict(fixture: &Fixture) {
    let ivy = fixture.session("Ivy");
    let delegate = |name: &str| {
        let parent = Some(ivy.clone());
        fixture.register(&Register { parent, ..Register::named(name) }).session_id
    };
    let (first, second) = (delegate("First"), delegate("Second"));
    edit(fixture, &first, "a", false);
    assert!(others(fixture, "a", &ivy).is_empty());
    assert_eq!(names(&others(fixture, "a", &second)), ["First"]);
    edit(fixture, &ivy, "b", false);
    assert!(others(fixture, "b", &first).is_empty());
}

fn shared_reservations_cause_no_warning(fixture: &Fixture) {
    let (ivy, oak) = (fixture.session("Ivy"), fixture.session("Oak"));
    let share = |session: &str| {
        let reserve = Reserve { shared: true, ..Reserve::of(TREE, &["src/**"], session) };
        fixture.board.files().reserve(&reserve).unwrap();
    };
    share(&ivy);
    assert_eq!(names(&others(fixture, "src/lib.rs", &oak)), ["Ivy"]);
    share(&oak);
    assert!(others(fixture, "src/lib.rs", &oak).is_empty());
}

fn denied_edit_causes_no_conflict(fixture: &Fixture) {
    let (ivy, oak) = (fixture.session("Ivy"), fixture.session("Oak"));
    edit(fixture, &ivy, "a", true);
    assert!(others(fixture, "a", &oak).is_empty());
    edit(fixture, &ivy, "a", false);
    assert_eq!(names(&others(fixture, "a", &oak)), ["Ivy"]);
}

fn denied_session_keeps_its_earlier_edit(fixture: &Fixture) {
    let (ivy, oak) = (fixture.session("Ivy"), fixture.session("Oak"));
    edit(fixture, &ivy, "a", false);
    let edited = fixture.now();
    fixture.pass(60);
    edit(fixture, &ivy, "a", true);
    let found = others(fixture, "a", &oak);
    assert_eq!((names(&found), found[0].since), (vec!["Ivy"], edited));
}

fn file_name_may_look_like_a_pattern(fixture: &Fixture) {
    let (ivy, oak) = (fixture.session("Ivy"), fixture.session("Oak"));
    fixture.board.files().reserve(&Reserve::of(TREE, &["src/**"], &ivy)).unwrap();
    edit(fixture, &ivy, "a*b", false);
    let paths = ["a**b", "src/a**b", "src/*", "a*b", "axb"];
    let found = fixture.board.files().conflicts(&Check::of(TREE, &paths, Some(&oak))).unwrap();
    let paths: Vec<&str> = found.iter().map(|other| other.path.as_str()).collect();
    assert_eq!(paths, ["src/a**b", "src/*", "a*b"]);
}

fn all_edits(fixture: &Fixture) -> usize {
    let end = fixture.now().plus(std::time::Duration::from_hours(1));
    fixture.read(|tx| tx.count(&Range::edits_before(end))).unwrap().try_into().unwrap()
}

fn edits_are_removed_after_a_day_and_with_their_session(fixture: &Fixture) {
    let (ivy, oak) = (fixture.session("Ivy"), fixture.session("Oak"));
    edit(fixture, &ivy, "a", false);
    fixture.pass(12 * 3600);
    edit(fixture, &oak, "b", false);
    fixture.board.agents().deregister(&oak).unwrap();
    fixture.pass(12 * 3600 + 1);
    fixture.board.prune().unwrap();
    assert_eq!(all_edits(fixture), 1, "the first one is a day old");
    edit(fixture, &ivy, "c", false);
    let soon = fixture.with_settings(|settings| settings.keep_completed_agents /= 2);
    fixture.pass(2 * 3600);
    soon.prune().unwrap();
    assert_eq!(all_edits(fixture), 1, "the second one went with its session");
    let rows = fixture.read(|tx| tx.rows::<Edit>(&Range::edits_of_session(&ivy))).unwrap();
    assert_eq!(rows[0].path, "c");
}

fn edits_are_found_by_file_session_and_age(fixture: &Fixture) {
    let (ivy, oak) = (fixture.session("Ivy"), fixture.session("Oak"));
    let start = fixture.now();
    for (session, path) in [(&ivy, "b"), (&oak, "b"), (&ivy, "a b"), (&oak, "c")] {
        fixture.pass(20);
        edit(fixture, session, path, false);
    }
    let found = |range: Range| -> Vec<(String, String)> {
        let rows = fixture.read(|tx| tx.rows::<Edit>(&range)).unwrap();
        rows.into_iter().map(|edit| (edit.path, edit.session_id)).collect()
    };
    let expected = |edits: &[(&str, &String)]| -> Vec<(String, String)> {
        edits.iter().map(|(path, session)| ((*path).to_owned(), (*session).clone())).collect()
    };
    assert_eq!(found(Range::edits_of_file(TREE, "b")), expected(&[("b", &ivy), ("b", &oak)]));
    assert_eq!(found(Range::edits_of_session(&ivy)), expected(&[("a b", &ivy), ("b", &ivy)]));
    let first_two = Range::edits_before(start.plus(std::time::Duration::from_mins(1)));
    assert_eq!(found(first_two), expected(&[("b", &ivy), ("b", &oak)]));
    let key = Key::Edit(TREE.to_owned(), "c".to_owned(), oak.clone());
    let row = fixture.read(|tx| tx.row::<Edit>(&key)).unwrap().unwrap();
    assert_eq!(
        (row.tool.as_deref(), row.edited_at, row.denied_at),
        (Some("Edit"), Some(fixture.now()), None)
    );
}
