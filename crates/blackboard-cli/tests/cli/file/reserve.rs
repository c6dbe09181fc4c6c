use std::fs;

use blackboard::Code;
use blackboard::agent::label;
use blackboard::id::session_id_from_hint;
use testkit::process::RunToEnd as _;

use super::repository;
use crate::scratch::{Output, Scratch};
use crate::shapes::{RESERVATION, is_object};
use crate::transcript;

testkit::on_each_engine![
    human_output_matches_transcript,
    json_has_what_was_reserved,
    patterns_are_relative_to_the_current_directory_and_mean_the_same_everywhere,
    reservations_of_another_worktree_are_shown_and_do_not_conflict,
    outside_of_a_repository_a_file_is_the_same_from_everywhere,
    a_directory_that_does_not_exist_yet_conflicts_with_files_in_it,
];

fn human_output_matches_transcript() {
    transcript::check("file reserve");
}

fn json_has_what_was_reserved() {
    let scratch = repository();
    scratch.json(["agent", "register", "--name", "Ivy", "--session-hint", "ivy"]);
    scratch.json(["agent", "register", "--name", "Oak", "--session-hint", "oak"]);
    let call = ["file", "reserve", "src/", "docs/*.md", "--note", "rewriting", "--session", "ivy"];
    let reserved = scratch.json(call);
    is_object(&reserved, &["reservations", "elsewhere"]);
    let first = &reserved["reservations"][0];
    for field in RESERVATION.iter().chain(&["reserved", "already_held", "renewed"]) {
        assert!(first.get(field).is_some(), "{field} is missing: {first}");
    }
    assert_eq!((&first["pattern"], &first["mode"]), (&"src/**".into(), &"exclusive".into()));
    let again = scratch.json(call);
    assert_eq!(again["reservations"][1]["already_held"], true);
    let refusal = scratch.run(["file", "reserve", "**/*.rs", "--session", "oak", "--json"]);
    let refusal = refusal.refused(Code::Held);
    assert_eq!((&refusal["held_by_name"], &refusal["pattern"]), (&"Ivy".into(), &"src/**".into()));
    assert_eq!((&refusal["note"], &refusal["since"]), (&"rewriting".into(), &first["since"]));
}

/// A repository with a worktree, made as git does but without git.
fn two_worktrees() -> Scratch {
    let scratch = Scratch::new();
    for directory in ["project/.git/worktrees/other", "project/src/deep", "other/src"] {
        fs::create_dir_all(scratch.path().join(directory)).unwrap();
    }
    let git = scratch.path().join("project/.git/worktrees/other");
    fs::write(git.join("commondir"), "../..\n").unwrap();
    fs::write(scratch.path().join("other/.git"), format!("gitdir: {}\n", git.display())).unwrap();
    for name in ["Ivy", "Oak", "Elm"] {
        let hint = name.to_lowercase();
        scratch.json(["agent", "register", "--name", name, "--session-hint", &hint]);
    }
    scratch
}

fn run_in(scratch: &Scratch, directory: &str, call: &[&str]) -> Output {
    let mut command = scratch.command(call);
    Output::of(command.current_dir(scratch.path().join(directory)).run_to_end())
}

fn patterns_are_relative_to_the_current_directory_and_mean_the_same_everywhere() {
    let scratch = two_worktrees();
    let reserve = |directory: &str, pattern: &str| {
        let call = ["file", "reserve", pattern, "--session", "ivy", "--json"];
        let reserved = run_in(&scratch, directory, &call).success().json();
        reserved["reservations"][0]["pattern"].as_str().unwrap().to_owned()
    };
    let absolute = scratch.path().canonicalize().unwrap().join("project/src/lib.rs");
    for (directory, pattern, expected) in [
        ("project/src", "deep", "src/deep/**"),
        ("project", "src/deep/", "src/deep/**"),
        ("project/src/deep", ".", "src/deep/**"),
        ("project/src/deep", "../*.rs", "src/*.rs"),
        ("project/src/deep", "../..", "**"),
        ("project/src/deep", absolute.to_str().unwrap(), "src/lib.rs"),
    ] {
        assert_eq!(reserve(directory, pattern), expected, "{pattern} in {directory}");
    }
    let call = ["file", "reserve", "../../x", "--session", "ivy", "--json"];
    let refusal = run_in(&scratch, "project/src", &call).refused(Code::InvalidValue);
    assert!(refusal["error"].as_str().unwrap().contains("is outside of"), "{refusal}");
}

fn reservations_of_another_worktree_are_shown_and_do_not_conflict() {
    let scratch = two_worktrees();
    run_in(&scratch, "project", &["file", "reserve", "src/**", "--session", "ivy"]).success();
    let call = ["file", "reserve", "lib.rs", "--session", "oak", "--json"];
    let reserved = run_in(&scratch, "other/src", &call).success().json();
    let elsewhere = &reserved["elsewhere"][0];
    assert_eq!((&elsewhere["agent_name"], &elsewhere["pattern"]), (&"Ivy".into(), &"src/**".into()));
    assert_eq!(reserved["reservations"][0]["repository"], elsewhere["repository"]);
    assert_ne!(reserved["reservations"][0]["worktree"], elsewhere["worktree"]);
    let call = ["file", "reserve", "src/**", "--session", "elm", "--json"];
    assert_eq!(run_in(&scratch, "other", &call).refused(Code::Held)["held_by_name"], "Oak");
    let call = ["file", "check", "src/lib.rs", "--session", "oak"];
    let checked = run_in(&scratch, "other", &call).success();
    assert!(
        checked.stdout.starts_with(&format!(
            "Not reserved by another session.\nReserved by you: src/lib.rs\nIn another worktree: {} reserved src/** in ",
            label("Ivy", &session_id_from_hint("ivy"))
        )),
        "{checked:?}"
    );
}

fn outside_of_a_repository_a_file_is_the_same_from_everywhere() {
    let scratch = Scratch::new();
    fs::create_dir_all(scratch.path().join("work/src")).unwrap();
    for hint in ["ivy", "oak"] {
        scratch.json(["agent", "register", "--name", hint, "--session-hint", hint]);
    }
    run_in(&scratch, "work", &["file", "reserve", "src/**", "--session", "ivy"]).success();
    for (directory, path) in [("work/src", "a.rs"), ("work", "src/a.rs"), ("", "work/src/a.rs")] {
        for verb in ["check", "reserve"] {
            let call = ["file", verb, path, "--session", "oak", "--json"];
            run_in(&scratch, directory, &call).refused(Code::Held);
        }
    }
}

fn a_directory_that_does_not_exist_yet_conflicts_with_files_in_it() {
    let scratch = repository();
    for name in ["Ivy", "Oak"] {
        scratch.json(["agent", "register", "--name", name, "--session-hint", name]);
    }
    for (held, asked) in [("lib/a.rs", "lib"), ("new", "new/a.rs"), ("d2/**", "d2"), ("d3", "d3/*.rs")] {
        scratch.json(["file", "reserve", held, "--session", "Ivy"]);
        for verb in ["reserve", "check"] {
            scratch.run(["file", verb, asked, "--session", "Oak", "--json"]).refused(Code::Held);
        }
    }
    scratch.run(["file", "check", "library", "d3x/a.rs", "--session", "Oak"]).success();
    // A pattern is about no file but those that match.
    scratch.json(["file", "reserve", "**/*.md", "src/**/*.toml", "--session", "Ivy"]);
    scratch.run(["file", "check", "main.c", "src/a.rs", "--session", "Oak"]).success();
    scratch.run(["file", "reserve", "main.c", "src/a.rs", "--session", "Oak"]).success();
    scratch.run(["file", "check", "docs/a.md", "--session", "Oak", "--json"]).refused(Code::Held);
}

/// What an older version wrote into the file.
mod of_a_file {
    use super::*;

    #[test]
    fn patterns_with_too_many_wildcards_are_refused_and_those_of_an_older_version_still_work() {
        let scratch = repository();
        scratch.json(["agent", "register", "--name", "Ivy", "--session-hint", "ivy"]);
        scratch.json(["agent", "register", "--name", "Oak", "--session-hint", "oak"]);
        let wild = |number: usize| format!("{}q{number:03}", "*a".repeat(495));
        for (pattern, part) in [
            (wild(1), "has 994 characters"),
            ("*a".repeat(9), "has 9 wildcards"),
            ("d/".repeat(65), "66 segments"),
            ("x".repeat(300), "has 300 characters"),
        ] {
            let refusal = scratch.run(["file", "reserve", &pattern, "--session", "ivy", "--json"]);
            let refusal = refusal.refused(Code::InvalidValue);
            assert!(refusal["error"].as_str().unwrap().contains(part), "{refusal}");
        }
        // What an earlier version accepted.
        let names: Vec<_> = (0..60).map(|number| format!("old{number}")).collect();
        let call =
            ["file", "reserve", "--session", "ivy"].into_iter().chain(names.iter().map(String::as_str));
        scratch.json(call);
        let database = rusqlite::Connection::open(scratch.database()).unwrap();
        for (number, name) in names.iter().enumerate() {
            let update =
                "UPDATE entry_versions SET value = replace(value, ?1, ?2) WHERE value LIKE '%' || ?1 || '%'";
            let quoted = |text: &str| format!("\"{text}\"");
            assert_eq!(database.execute(update, [quoted(name), quoted(&wild(number))]).unwrap(), 1);
        }
        drop(database);
        assert_eq!(scratch.json(["file", "list"])["count"], 60);
        let path = "a".repeat(600) + "q059";
        let checked = scratch.run(["file", "check", &path, "--session", "oak", "--json"]).refused(Code::Held);
        assert_eq!(checked["pattern"], wild(59));
        let refusal =
            scratch.run(["file", "reserve", "*q007", "--session", "oak", "--json"]).refused(Code::Held);
        assert_eq!(refusal["pattern"], wild(7));
        scratch.json(["file", "reserve", "src/", "*a*a*a*a*a*a*b", "--session", "oak"]);
        // Such a pattern can be named, too.
        let refusal = scratch.run(["file", "release", &wild(7), "--session", "oak", "--json"]);
        assert_eq!(refusal.refused(Code::NotHolder)["pattern"], wild(7));
        scratch.json(["file", "release", "--all", "--session", "ivy"]);
        scratch.json(["file", "reserve", "*q007", "--session", "oak"]);
    }
}
