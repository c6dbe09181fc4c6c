use blackboard::Code;
use serde_json::json;
use testkit::process::RunToEnd as _;

use crate::scratch::{Output, Scratch};
use crate::shapes::is_object;
use crate::transcript;

testkit::on_each_engine![
    human_output_matches_transcript,
    a_purge_erases_the_value_and_its_history_and_reports_it_once,
    a_key_without_value_and_history_is_not_found,
    a_key_that_another_session_holds_is_not_purged,
    a_lock_is_purged_only_after_it_was_released,
    purge_and_its_help_are_about_entries_only,
    a_dry_run_continues_without_an_ended_session_as_the_purge_does,
];

fn human_output_matches_transcript() {
    transcript::check("purge");
}

fn a_purge_erases_the_value_and_its_history_and_reports_it_once() {
    let scratch = Scratch::new();
    scratch.json(["write", "token", "\"s3cret-1\"", "--tag", "s3cret-tag"]);
    let second = scratch.json(["write", "token", "\"s3cret-2\"", "--metadata", r#"{"note": "s3cret-3"}"#]);
    let would = scratch.json(["purge", "token", "--dry-run"]);
    is_object(&would, &["scope", "key", "versions", "answers", "dry_run"]);
    assert_eq!((&would["versions"], &would["dry_run"]), (&json!(2), &json!(true)));
    assert_eq!(scratch.json(["history", "token"])["count"], 2, "a dry run changes nothing");

    let purged = scratch.json(["purge", "token"]);
    is_object(&purged, &["scope", "key", "versions", "answers", "revision", "scrubbed"]);
    assert_eq!((&purged["versions"], &purged["scrubbed"]), (&json!(2), &json!(true)));
    assert_eq!(scratch.run(["read", "token", "--json"]).code, 3);
    let history = scratch.json(["history", "token"]);
    assert_eq!((&history["count"], &history["items"][0]["what"]), (&json!(1), &json!("purged")));
    let as_of = second["revision"].to_string();
    let refusal = scratch.run(["read", "token", "--as-of", &as_of, "--json"]).refused(Code::Compacted);
    assert_eq!(refusal["purged_at"], purged["revision"]);
    for call in [&["export"][..], &["observe", "--since", "1h"], &["history", "token"], &["list", "--long"]] {
        let answer = scratch.json(call).to_string();
        assert!(!answer.contains("s3cret"), "{call:?}: {answer}");
    }
    let events = scratch.json(["observe", "--since", "1h"]);
    let told: Vec<_> = events["items"].as_array().unwrap().iter().map(|event| &event["event_type"]).collect();
    assert_eq!(told, ["entry_written", "entry_written", "entry_purged"]);
    let filtered = scratch.json(["observe", "--since", "1h", "--filter", "purge"]);
    assert_eq!(filtered["count"], 1);

    let again = scratch.json(["purge", "token"]);
    assert_eq!((&again["versions"], &again["revision"]), (&json!(0), &purged["revision"]), "no second event");
    let written = scratch.json(["write", "token", "1"]);
    assert_eq!((&written["version"], &written["created"]), (&json!(3), &json!(true)), "versions go on");
}

fn a_key_without_value_and_history_is_not_found() {
    let scratch = Scratch::new();
    scratch.json(["write", "other", "1"]);
    for call in [&["purge", "token", "--json"][..], &["purge", "token", "--dry-run", "--json"]] {
        scratch.run(call).refused(Code::EntryNotFound);
    }
}

fn a_key_that_another_session_holds_is_not_purged() {
    let scratch = Scratch::new();
    for name in ["Ivy", "Oak"] {
        scratch.json(["agent", "register", "--name", name, "--session-hint", &name.to_lowercase()]);
    }
    scratch.json(["write", "token", "1", "--lease", "--session", "ivy"]);
    let refusal = scratch.run(["purge", "token", "--session", "oak", "--json"]).refused(Code::Held);
    assert_eq!(refusal["held_by_name"], "Ivy");
    scratch.run(["purge", "token", "--dry-run", "--session", "oak", "--json"]).refused(Code::Held);
    assert_eq!(scratch.json(["purge", "token", "--session", "ivy"])["versions"], 1);
}

fn a_lock_is_purged_only_after_it_was_released() {
    let scratch = Scratch::new();
    scratch.json(["agent", "register", "--name", "Ivy", "--session-hint", "ivy"]);
    scratch.json(["lock", "acquire", "deploy", "--note", "with s3cret", "--session", "ivy"]);
    let purge = ["purge", "deploy", "--scope", "locks", "--session", "ivy", "--json"];
    scratch.run(purge).refused(Code::InvalidValue);
    scratch.json(["lock", "release", "deploy", "--session", "ivy"]);
    assert_eq!(scratch.run(purge).success().json()["versions"], 2);
    assert!(!scratch.json(["observe", "--since", "1h"]).to_string().contains("s3cret"));
}

fn purge_and_its_help_are_about_entries_only() {
    let scratch = Scratch::new();
    scratch.json(["work", "create", "item", "--title", "The secret title"]);
    scratch.json(["work", "delete", "item"]);
    scratch.run(["purge", "item", "--json"]).refused(Code::EntryNotFound);
    let events = scratch.run(["observe", "--since", "1h", "--json"]).success().stdout;
    assert!(events.contains("The secret title"), "{events}");
    let help = scratch.run(["purge", "--help"]).success().stdout.replace('\n', " ");
    assert!(
        help.contains("Titles, notes and agent names stay in the event log until it is pruned"),
        "{help}"
    );
}

fn a_dry_run_continues_without_an_ended_session_as_the_purge_does() {
    let scratch = Scratch::new();
    let ivy = scratch.json(["agent", "register", "--name", "Ivy"])["session_id"].clone();
    scratch.json(["write", "token", "1"]);
    scratch.json(["agent", "deregister", "--session", ivy.as_str().unwrap()]);
    for options in [&["--dry-run"][..], &[]] {
        let mut command = scratch.command(["purge", "token"].iter().chain(options));
        command.env("BLACKBOARD_SESSION_ID", ivy.as_str().unwrap());
        let purged = Output::of(command.run_to_end()).success();
        assert!(purged.stderr.contains("continuing without a session"), "{options:?}: {purged:?}");
    }
}
