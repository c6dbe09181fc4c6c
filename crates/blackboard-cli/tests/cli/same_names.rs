//! Agents with the same name are told apart in every output, also if their ids begin with the same 8 characters.

use blackboard::Code;
use blackboard::id::session_id_from_hint;
use serde_json::json;

use crate::mcp::client::Client;
use crate::scratch::Scratch;

testkit::on_each_engine![
    lists_tell_agents_with_the_same_name_apart,
    events_tell_agents_with_the_same_name_apart,
    an_agent_is_told_apart_from_one_that_the_output_does_not_name,
    refusals_tell_agents_with_the_same_name_apart,
    messages_name_the_session_of_an_agent,
    mcp_results_have_the_sessions_of_agents_with_the_same_name,
];

/// The ids of these session hints have their first 9 characters in common.
const HINTS: [&str; 2] = ["ivy-27195", "ivy-59999"];
const LABELS: [&str; 2] = ["Ivy (159561bc-2c)", "Ivy (159561bc-2b)"];

/// Two agents called Ivy and one called Sage, each with a claimed item, a lock and a reserved file.
fn board() -> Scratch {
    let scratch = Scratch::new();
    scratch.json(["project", "register", "pai", "--name", "PAI"]);
    for (item, name, hint) in [("a", "Ivy", HINTS[0]), ("b", "Ivy", HINTS[1]), ("c", "Sage", "sage")] {
        scratch.json(["agent", "register", "--name", name, "--session-hint", hint, "--project", "pai"]);
        scratch.json(["work", "claim", item, "--title", item, "--project", "pai", "--session", hint]);
        scratch.json(["lock", "acquire", item, "--session", hint]);
        scratch.json(["file", "reserve", item, "--session", hint]);
    }
    for (hint, label) in HINTS.into_iter().zip(LABELS) {
        let id = label.trim_start_matches("Ivy (").trim_end_matches(')');
        assert!(session_id_from_hint(hint).starts_with(id), "{hint}");
    }
    scratch
}

fn lists_tell_agents_with_the_same_name_apart() {
    let scratch = board();
    for call in [
        &["work", "list"][..],
        &["file", "list"],
        &["status"],
        &["project", "status", "pai"],
        &["sweep", "--dry-run", "--threshold", "0"],
    ] {
        let shown = scratch.run(call).success().stdout;
        if call[0] == "sweep" {
            // It keeps them, because their process runs.
            assert!(shown.contains("159561bc-2c") && shown.contains("159561bc-2b"), "{shown}");
            continue;
        }
        for label in LABELS {
            assert!(shown.contains(label), "{call:?}: {shown}");
        }
        // In a list of names, an agent with its own name has no id.
        assert!(["status", "project"].contains(&call[0]) || !shown.contains("Sage ("), "{call:?}: {shown}");
    }
    for call in [["agent", "list"], ["lock", "list"]] {
        let shown = scratch.run(call).success().stdout;
        for label in LABELS {
            let id = label.trim_start_matches("Ivy (").trim_end_matches(')');
            assert!(shown.lines().any(|line| line.contains(id) && line.contains("Ivy")), "{call:?}: {shown}");
        }
    }
}

fn events_tell_agents_with_the_same_name_apart() {
    let shown = board().run(["observe", "--since", "1h"]).success().stdout;
    assert!(shown.contains("Agent \"Ivy\" (159561bc-2c) claimed \"a\""), "{shown}");
    assert!(shown.contains("Agent \"Ivy\" (159561bc-2b) claimed \"b\""), "{shown}");
    assert!(shown.contains("Agent \"Sage\" claimed \"c\""), "{shown}");
}

fn an_agent_is_told_apart_from_one_that_the_output_does_not_name() {
    let scratch = Scratch::new();
    scratch.json(["project", "register", "pai", "--name", "PAI"]);
    for hint in HINTS {
        scratch.json(["agent", "register", "--name", "Ivy", "--session-hint", hint, "--project", "pai"]);
    }
    scratch.json(["work", "claim", "a", "--title", "A", "--project", "pai", "--session", HINTS[0]]);
    scratch.json(["file", "reserve", "a", "--session", HINTS[0]]);
    for call in [
        &["work", "list"][..],
        &["file", "list"],
        &["status"],
        &["project", "status", "pai"],
        &["work", "status", "a"],
    ] {
        let shown = scratch.run(call).success().stdout;
        assert!(shown.contains("(159561bc"), "{call:?}: {shown}");
        let claimed = shown.lines().filter(|line| line.contains("(Ivy,") || line.ends_with("by Ivy"));
        assert_eq!(claimed.count(), 0, "{call:?}: {shown}");
    }
    let table = scratch.run(["work", "list"]).success().stdout;
    assert!(table.contains(LABELS[0]), "{table}");
    let shown = scratch.run(["observe", "--last", "1", "--filter", "work_claimed"]).success().stdout;
    assert!(shown.contains("Agent \"Ivy\" (159561bc-2c) claimed \"A\""), "{shown}");
    // As long as one of them is left.
    scratch.json(["agent", "deregister", "--session", HINTS[1]]);
    let table = scratch.run(["work", "list"]).success().stdout;
    assert!(!table.contains("159561bc"), "{table}");
}

fn refusals_tell_agents_with_the_same_name_apart() {
    let scratch = board();
    for call in [["work", "complete"], ["work", "release"], ["lock", "release"], ["file", "release"]] {
        let call = call.into_iter().chain(["b", "--session", HINTS[0], "--json"]);
        let refusal = scratch.run(call.clone()).refused(Code::NotHolder);
        let message = refusal["error"].as_str().unwrap();
        assert!(message.contains(LABELS[1]), "{message}");
        assert!(message.ends_with(", not by you (Ivy, 159561bc-2c)"), "{message}");
    }
    let refusal = scratch.run(["work", "list", "--session", "Ivy", "--json"]).refused(Code::AmbiguousSession);
    let message = refusal["error"].as_str().unwrap();
    assert!(LABELS.iter().all(|label| message.contains(label)), "{message}");
}

fn messages_name_the_session_of_an_agent() {
    let scratch = board();
    let sage = format!("Sage ({})", &session_id_from_hint("sage")[..8]);
    scratch.json(["work", "complete", "c", "--session", "sage"]);
    let completed = scratch.run(["work", "claim", "c", "--session", HINTS[0]]);
    assert!(completed.stderr.contains(&format!("already completed by {sage} (")), "{completed:?}");
    let waited = scratch.run(["work", "wait", "c"]).success().stdout;
    assert_eq!(waited, format!("Waited for work item: c (completed by {sage})\n"));
    let reset = scratch.run(["work", "reset", "c"]).success().stdout;
    assert_eq!(reset, format!("Reset work item: c (was completed by {sage})\n"));
    let label = format!("Ivy ({})", &session_id_from_hint(HINTS[0])[..8]);
    let reassigned = scratch.run(["work", "reassign", "a", "--to", "sage", "--session", HINTS[0]]).success();
    assert!(
        reassigned.stdout.starts_with(&format!("Reassigned work item: a (from {label} to {sage}, fence ")),
        "{reassigned:?}"
    );
    let again = ["work", "reassign", "a", "--to", "sage", "--session", HINTS[0], "--reason", "x"];
    let again = scratch.run(again).success();
    assert!(again.stderr.contains(&format!("note: {sage} already holds work item a")), "{again:?}");
    let shown = scratch.run(["work", "status", "a"]).success().stdout;
    assert!(shown.contains(&format!("over to agent \"{}", sage.replace(" (", "\" ("))), "{shown}");
    // What a session loses when it ends.
    scratch.json(["agent", "deregister", "--session", HINTS[1]]);
    let shown = scratch.run(["observe", "--last", "9"]).success().stdout;
    assert!(shown.contains("Lock \"b\" of agent \"Ivy\" (159561bc) released (session ended)"), "{shown}");
}

fn mcp_results_have_the_sessions_of_agents_with_the_same_name() {
    let scratch = board();
    let mut client = Client::new(&scratch);
    let who = client.call("who", json!({}));
    let named: Vec<_> = who["agents"]["items"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|agent| agent["agent_name"] == "Ivy")
        .map(|agent| agent["session_id"].as_str().unwrap().to_owned())
        .collect();
    for hint in HINTS {
        assert!(named.contains(&session_id_from_hint(hint)), "{who}");
    }
    let refusal = client.refused("work_claim", json!({"id": "b"}), Code::AlreadyClaimed);
    assert_eq!(refusal["held_by"], session_id_from_hint(HINTS[1]), "{refusal}");
    assert!(refusal["error"].as_str().unwrap().contains("claimed by Ivy (159561bc)"), "{refusal}");
}
