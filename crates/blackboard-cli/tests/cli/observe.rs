use std::process::Stdio;

use blackboard::event::EventType;
use blackboard::work::Create;
use serde_json::{Value, json};
use testkit::process::RunToEnd as _;

use crate::scratch::{Output, Scratch};
use crate::shapes::{EVENT, has_fields, is_list};
use crate::transcript;

testkit::on_each_engine![
    human_output_matches_transcript,
    help_lists_every_event_type,
    json_has_events_and_the_cursor,
    observe_shows_events_again_after_a_reader_closed_the_pipe,
    filters_do_not_move_the_cursor,
    a_named_reader_moves_no_cursor,
    keys_and_tags_match_one_scope_unless_all_scopes_is_given,
    json_follow_has_one_event_per_line_with_changes_of_entries,
    follow_starts_at_the_cursor_of_the_session_and_moves_it,
    named_cursor_moves_also_with_filters,
    follower_reports_pruned_events_once_and_continues,
    follower_exits_with_0_when_its_reader_is_gone_and_no_event_comes,
    follower_sees_expirations_without_any_other_command,
    observe_with_a_limit_reports_that_more_events_follow,
    last_shows_the_newest_events_and_keeps_the_cursor,
    others_leaves_out_what_the_session_did_and_moves_the_cursor,
    cursor_and_timeout_need_follow,
    note_about_more_events_names_since_only_if_it_was_given,
    events_of_an_agent_are_found_by_name_id_and_short_id,
];

fn human_output_matches_transcript() {
    transcript::check("observe");
}

fn help_lists_every_event_type() {
    let scratch = Scratch::new();
    let help = scratch.run(["observe", "--help"]).success().stdout;
    let shown = ["progress", "lock_acquired", "lock_released", "files_reserved", "files_released"];
    for name in EventType::ALL.iter().map(EventType::as_str).chain(shown) {
        let is_listed =
            help.split(|other: char| !other.is_alphabetic() && other != '_').any(|word| word == name);
        assert!(is_listed, "{name}: {help}");
        scratch.run(["observe", "--since", "1h", "--filter", name]).success();
    }
}

fn json_has_events_and_the_cursor() {
    let scratch = Scratch::new();
    scratch.json(["agent", "register", "--name", "Ivy", "--session-hint", "ivy"]);
    scratch.json(["work", "claim", "item", "--title", "Item", "--session", "ivy"]);
    let seen = scratch.json(["observe", "--session", "ivy"]);
    is_list(&seen, EVENT);
    assert_eq!((seen["revision"].as_u64(), seen["compacted"].as_bool()), (Some(3), Some(false)));
    assert_eq!(
        seen["items"][0]["commit_id"], seen["items"][1]["commit_id"],
        "created and claimed in one step"
    );
    assert_eq!(scratch.json(["observe", "--session", "ivy"])["count"], 0);
}

/// Appends events as other commands would, only faster.
fn append_events(scratch: &Scratch, count: u32) {
    let board = scratch.board();
    let before = board.revision().unwrap();
    for number in 1..=count {
        let create = Create::new(&format!("item-{before}-{number}"), &format!("Number {number}"));
        board.work().create(&create).unwrap();
    }
}

fn observe_shows_events_again_after_a_reader_closed_the_pipe() {
    let scratch = Scratch::new();
    scratch.json(["agent", "register", "--name", "Ivy", "--session-hint", "ivy"]);
    // More than a pipe holds, so that the reader is gone before everything is written.
    append_events(&scratch, 5000);
    for flag in ["", "--json"] {
        let line = format!("blackboard observe --session ivy {flag} | head -c 100 >/dev/null");
        let output = crate::scratch::Output::of(scratch.shell(&line).run_to_end()).success();
        assert_eq!(output.stderr, "");
    }
    assert_eq!(scratch.json(["observe", "--session", "ivy"])["count"], 5000);
    assert_eq!(scratch.json(["observe", "--session", "ivy"])["count"], 0);
}

fn filters_do_not_move_the_cursor() {
    let scratch = Scratch::new();
    scratch.json(["agent", "register", "--name", "Ivy", "--session-hint", "ivy"]);
    append_events(&scratch, 10);
    for more in [
        &["--peek"][..],
        &["--filter", "work_created"],
        &["--since", "1h"],
        &["--filter", "agent_stale"],
        &["--after", "1"],
        &["--key", "*"],
        &["--scope", "team"],
        &["--agent", "Ivy"],
        &["--tag", "urgent"],
    ] {
        scratch.json(["observe", "--session", "ivy"].iter().chain(more));
        // A follower that reads to the end does not either.
        let follow = ["observe", "--session", "ivy", "--follow", "--timeout", "0s"];
        scratch.run(follow.iter().chain(more)).success();
    }
    assert_eq!(scratch.json(["observe", "--session", "ivy", "--limit", "3"])["count"], 3);
    assert_eq!(scratch.json(["observe", "--session", "ivy"])["count"], 7);
}

fn a_named_reader_moves_no_cursor() {
    let scratch = Scratch::new();
    scratch.json(["agent", "register", "--name", "Oak", "--session-hint", "oak"]);
    scratch.json(["agent", "register", "--name", "Ivy", "--session-hint", "ivy"]);
    append_events(&scratch, 3);
    for more in [&[][..], &["--others"]] {
        let look = ["observe", "--session", "ivy", "--as", "Oak"];
        assert_eq!(scratch.json(look.iter().chain(more))["count"], 3, "{more:?}");
        let follow = ["observe", "--session", "ivy", "--as", "Oak", "--follow", "--timeout", "0s", "--json"];
        let followed = scratch.run(follow.iter().chain(more)).success();
        assert_eq!(ids(&followed.stdout), [3, 4, 5], "{more:?}");
    }
    assert_eq!(scratch.json(["observe", "--session", "oak"])["count"], 4);
    assert_eq!(scratch.json(["observe", "--session", "ivy"])["count"], 3);
}

fn keys_and_tags_match_one_scope_unless_all_scopes_is_given() {
    let scratch = Scratch::new();
    scratch.json(["write", "task:a", "1", "--tag", "x"]);
    scratch.json(["write", "task:a", "1", "--tag", "x", "--scope", "team"]);
    let count = |more: &[&str], scope: Option<&str>| {
        let mut command = scratch.command(["observe", "--after", "0", "--json"].iter().chain(more));
        let output = Output::of(command.envs(scope.map(|scope| ("BLACKBOARD_SCOPE", scope))).run_to_end());
        output.success().json()["count"].as_i64().unwrap()
    };
    for filter in [["--key", "task:*"], ["--tag", "x"]] {
        let with = |more: &[&'static str]| filter.iter().chain(more).copied().collect::<Vec<_>>();
        assert_eq!(count(&with(&[]), None), 1);
        assert_eq!(count(&with(&[]), Some("team")), 1);
        assert_eq!(count(&with(&[]), Some("other")), 0);
        assert_eq!(count(&with(&["--scope", "default", "--scope", "team"]), None), 2);
        assert_eq!(count(&with(&["--all-scopes"]), Some("other")), 2);
    }
    assert_eq!(count(&["--filter", "write"], Some("other")), 2, "only keys and tags are relative to a scope");
}

/// The events that a follower has printed.
fn lines(output: &str) -> Vec<Value> {
    output.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn ids(output: &str) -> Vec<i64> {
    lines(output).iter().map(|event| event["id"].as_i64().unwrap()).collect()
}

fn json_follow_has_one_event_per_line_with_changes_of_entries() {
    let scratch = Scratch::new();
    for value in [r#"{"b": 1.0,\n"a": 2}"#, "null"] {
        scratch.json(["write", "config", &value.replace("\\n", "\n"), "--agent", "Oak"]);
    }
    scratch.json(["delete", "config", "--agent", "Elm"]);
    let followed =
        scratch.run(["observe", "--follow", "--after", "0", "--limit", "3", "--json"]).success().stdout;
    let events = lines(&followed);
    for event in &events {
        has_fields(event, EVENT);
    }
    let told: Vec<_> = events.iter().map(|event| event["entry"].clone()).collect();
    let fields = ["scope", "key", "value", "version", "author", "tags", "metadata", "expires_at"];
    has_fields(&told[0], &fields);
    assert_eq!(told[0].get("old_value"), None, "there was none");
    assert_eq!(told[1]["old_value"], told[0]["value"]);
    assert_eq!(told[1].get("value"), Some(&Value::Null), "a null that was written");
    assert_eq!((told[2].get("value"), told[2].get("old_value")), (None, Some(&Value::Null)));
    assert_eq!(told[2]["author"], "Elm");
    assert!(followed.contains(r#""value":{"b": 1.0, "a": 2}"#), "as it came, on one line: {followed}");
}

fn follow_starts_at_the_cursor_of_the_session_and_moves_it() {
    let scratch = Scratch::new();
    scratch.json(["agent", "register", "--name", "Ivy", "--session-hint", "ivy"]);
    append_events(&scratch, 3);
    let follow = ["observe", "--session", "ivy", "--follow", "--timeout", "0s", "--json"];
    assert_eq!(ids(&scratch.run(follow).success().stdout), [2, 3, 4]);
    assert_eq!(scratch.json(["observe", "--session", "ivy"])["count"], 0);
    append_events(&scratch, 2);
    assert_eq!(scratch.json(["observe", "--session", "ivy"])["count"], 2);
    assert_eq!(scratch.run(follow).success().stdout, "");
}

fn named_cursor_moves_also_with_filters() {
    let scratch = Scratch::new();
    scratch.json(["write", "before", "1"]);
    let follow =
        ["observe", "--follow", "--cursor", "mirror", "--key", "task:*", "--timeout", "0s", "--json"];
    assert_eq!(scratch.run(follow).success().stdout, "", "a new one starts now");
    for key in ["task:1", "other", "task:2"] {
        scratch.json(["write", key, "1"]);
    }
    assert_eq!(ids(&scratch.run(follow).success().stdout), [2, 4]);
    assert_eq!(scratch.run(follow).success().stdout, "");
}

fn follower_reports_pruned_events_once_and_continues() {
    let scratch = Scratch::new();
    for value in ["1", "2", "3"] {
        scratch.json(["write", "config", value]);
    }
    scratch.prune(2, &[]);
    let follow = ["observe", "--follow", "--after", "0", "--timeout", "0s"];
    let told = lines(&scratch.run(follow.iter().chain(&["--json"])).success().stdout);
    assert_eq!(told.len(), 2);
    assert_eq!(
        (&told[0]["ok"], &told[0]["code"], &told[0]["floor"]),
        (&json!(false), &json!("compacted"), &json!(2))
    );
    assert_eq!(told[1]["id"], 3);
    let text = scratch.run(follow).success().stdout;
    assert!(text.starts_with("Older events have been pruned;") && text.lines().count() == 2, "{text}");
}

fn follower_exits_with_0_when_its_reader_is_gone_and_no_event_comes() {
    let scratch = Scratch::new();
    scratch.json(["write", "config", "1"]);
    for flag in ["", "--json"] {
        let line = format!("blackboard observe --follow --after 0 {flag} | head -n 1");
        let output = crate::scratch::Output::of(scratch.shell(&line).run_to_end()).success();
        assert_eq!((output.stdout.lines().count(), output.stderr.as_str()), (1, ""));
    }
}

fn follower_sees_expirations_without_any_other_command() {
    let scratch = Scratch::new();
    scratch.json(["write", "short", "\"soon gone\"", "--ttl", "1h"]);
    let follow = ["observe", "--follow", "--after", "1", "--limit", "1", "--filter", "expire", "--json"];
    let mut follow = scratch.command(follow);
    let follower = follow.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    scratch.wait_until_followed();
    scratch.let_time_pass();
    let events = lines(&Output::of(follower.run_to_end()).success().stdout);
    assert_eq!(
        (&events[0]["event_type"], &events[0]["entry"]["old_value"]),
        (&json!("entry_expired"), &json!("soon gone"))
    );
}

fn observe_with_a_limit_reports_that_more_events_follow() {
    let scratch = Scratch::new();
    scratch.json(["agent", "register", "--name", "Ivy", "--session-hint", "ivy"]);
    append_events(&scratch, 10);
    let look = |more: &[&str]| {
        let call: Vec<_> = ["observe", "--session", "ivy", "--peek"].iter().chain(more).copied().collect();
        (scratch.json(&call), scratch.run(&call).success().stdout)
    };
    for (limit, more) in [("5", true), ("9", true), ("10", false), ("100", false)] {
        let (answer, text) = look(&["--limit", limit]);
        assert_eq!(answer["more"], more, "{limit}: {answer}");
        assert_eq!(text.contains("More events follow."), more, "{limit}: {text}");
    }
    let (answer, text) = look(&["--limit", "5"]);
    let hint = format!("Add --after {}, or use --limit N for more.", answer["revision"]);
    assert!(text.contains(&hint), "{text}");
    // What a filter leaves out does not follow.
    assert_eq!(look(&["--filter", "agent_registered", "--since", "1h", "--limit", "1"]).0["more"], false);
    assert_eq!(look(&[]).0["more"], false);
    let first = scratch.run(["observe", "--session", "ivy", "--limit", "5"]).success().stdout;
    assert!(first.ends_with("More events follow. Check again, or use --limit N for more.\n"), "{first}");
    assert_eq!(scratch.json(["observe", "--session", "ivy"])["count"], 5);
}

/// A board with five items, each with an event after the registration.
fn board_with_items() -> Scratch {
    let scratch = Scratch::new();
    scratch.json(["agent", "register", "--name", "Ivy", "--session-hint", "ivy"]);
    for (id, session) in [("a", "ivy"), ("b", ""), ("c", "ivy"), ("d", ""), ("e", "ivy")] {
        let mut call = vec!["work", "create", id, "--title", id];
        if !session.is_empty() {
            call.extend(["--session", session]);
        }
        scratch.json(call);
    }
    scratch
}

fn targets(answer: &serde_json::Value) -> Vec<&str> {
    answer["items"].as_array().unwrap().iter().map(|event| event["target_id"].as_str().unwrap()).collect()
}

fn last_shows_the_newest_events_and_keeps_the_cursor() {
    let scratch = board_with_items();
    scratch.json(["write", "key", "1"]);
    let last = |options: &[&str]| {
        let call = ["observe", "--session", "ivy"].iter().chain(options);
        targets(&scratch.json(call)).join(" ")
    };
    assert_eq!(last(&["--last", "2"]), "e key");
    assert_eq!(last(&["-n", "3", "--filter", "work_created"]), "c d e");
    assert_eq!(last(&["-n", "3", "--limit", "2", "--filter", "work_created"]), "d e");
    assert_eq!(last(&["-n", "2", "--others", "--filter", "work_created"]), "b d");
    assert_eq!(last(&["-n", "99", "--filter", "work_created"]), "a b c d e");
    assert_eq!(last(&["-n", "99"]).split(' ').count(), 7);
    assert_eq!(last(&["-n", "1", "--key", "none"]), "");
    assert_eq!(scratch.json(["observe", "--session", "ivy"])["count"], 6, "the cursor has not moved");
    assert_eq!(scratch.run(["observe", "--last", "2", "--since", "1h"]).code, 2);
    let follow = ["observe", "--follow", "--last", "2", "--timeout", "0s", "--json"];
    assert_eq!(scratch.run(follow).success().stdout.lines().count(), 2);
}

fn others_leaves_out_what_the_session_did_and_moves_the_cursor() {
    let scratch = board_with_items();
    let others = ["observe", "--session", "ivy", "--others"];
    let follow = ["observe", "--session", "ivy", "--others", "--follow", "--peek", "--timeout", "0s"];
    assert_eq!(scratch.run(follow).success().stdout.lines().count(), 2);
    assert_eq!(targets(&scratch.json(others)), ["b", "d"]);
    assert_eq!(targets(&scratch.json(others)), [""; 0]);
    assert_eq!(scratch.json(["observe", "--session", "ivy"])["count"], 0);
    let other = Scratch::new();
    other.run(["observe", "--others", "--json"]).refused(blackboard::Code::NoSession);
    other.run(["init"]).success();
    other.run(["observe", "--others", "--follow", "--json"]).refused(blackboard::Code::NoSession);
}

fn cursor_and_timeout_need_follow() {
    let scratch = Scratch::new();
    for option in ["--cursor", "--timeout"] {
        let refused = scratch.run(["observe", option, "1s", "--json"]).refused(blackboard::Code::Usage);
        assert_eq!(refused["error"], format!("{option} needs --follow"));
    }
}

fn note_about_more_events_names_since_only_if_it_was_given() {
    let scratch = Scratch::new();
    for value in ["1", "2", "3"] {
        scratch.json(["write", "key", value]);
    }
    for (start, expected) in [
        (&[][..], "More events follow. Use --after 1, or use --limit N for more."),
        (&["--after", "0"], "More events follow. Use --after 1, or use --limit N for more."),
        (
            &["--since", "1h"],
            "More events follow. Use --after 1 instead of --since, or use --limit N for more.",
        ),
    ] {
        let shown = scratch.run(["observe", "--limit", "1"].iter().chain(start)).success().stdout;
        assert_eq!(shown.lines().last(), Some(expected), "{start:?}");
    }
}

fn events_of_an_agent_are_found_by_name_id_and_short_id() {
    let scratch = Scratch::new();
    let ivy = scratch.json(["agent", "register", "--name", "Ivy", "--session-hint", "ivy"]);
    let ivy = ivy["session_id"].as_str().unwrap();
    scratch.json(["agent", "register", "--name", "Oak", "--session-hint", "oak"]);
    scratch.json(["work", "claim", "item", "--title", "Item", "--session", "ivy"]);
    let claims = |agent: &str| {
        let call = ["observe", "--since", "1h", "--filter", "work_claimed", "--agent", agent];
        scratch.json(call)["count"].clone()
    };
    for agent in ["Ivy", ivy, &ivy[..8], &ivy[..6]] {
        assert_eq!(claims(agent), 1, "{agent}");
    }
    for agent in ["Oak", "Elm", &ivy[..5]] {
        assert_eq!(claims(agent), 0, "{agent}");
    }
}
