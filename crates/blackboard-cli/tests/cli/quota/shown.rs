//! Where the quota is shown besides its own commands.

use std::fs;

use serde_json::{Value, json};

use super::{break_ledger, configured, with_quota};
use crate::mcp::client::Client;
use crate::scratch::{Output, Scratch};

testkit::on_each_engine![
    status_has_a_line_for_each_provider,
    status_warns_of_a_passed_threshold,
    status_without_a_quota_has_nothing_of_it,
    a_ledger_that_cannot_be_read_is_a_note_of_status_and_a_line_of_the_hook_log,
    a_brief_has_what_is_used_and_what_to_do,
    the_mcp_tool_who_has_the_quota,
    tables_and_charts_fit_their_terminal,
];

const TWO_PROVIDERS: &str = r#"{"models": {"claude-*": "anthropic", "gpt-*": "openai"}, "providers": {
    "anthropic": {"windows": {"5h": {"budget": 500000}, "7d": {"budget": 5000000}}, "reservation": {"operator": 20000}},
    "openai": {"windows": {"1h": {"budget": 1000}}, "warnAt": [0.5]}
}}"#;

fn use_tokens(scratch: &Scratch, model: &str, tokens: &str) {
    scratch.json(["quota", "record", "--model", model, "--input-tokens", tokens]);
}

/// What the hook of a session that starts prints.
fn brief(scratch: &Scratch, session: &str) -> String {
    let call = json!({"cwd": scratch.path(), "session_id": session, "hook_event_name": "SessionStart", "source": "startup"});
    let output = Output::fed(&mut scratch.command(["hook", "claude"]), call.to_string());
    assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{output:?}");
    output.stdout
}

fn status_has_a_line_for_each_provider() {
    let scratch = with_quota(TWO_PROVIDERS);
    let shown = scratch.run(["status"]).success().stdout;
    assert!(shown.contains("\nQuota:     anthropic 5h 0 of 500k (0%), 7d 0 of 5M (0%)\n"), "{shown}");
    assert!(!scratch.home_file("quota.db").exists(), "a reader creates no ledger");
    use_tokens(&scratch, "claude-opus", "320000");
    let shown = scratch.run(["status"]).success().stdout;
    let expected = "\nQuota:     anthropic 5h 320k of 500k (64%), 7d 320k of 5M (6%)\n           openai 1h 0 of 1k (0%)\n";
    assert!(shown.contains(expected) && !shown.contains("warning"), "{shown}");
    let own = scratch.json(["quota", "status"]);
    let status = scratch.json(["status"]);
    assert_eq!(status["quota"]["enforce"], own["enforce"]);
    for (shown, own) in
        status["quota"]["providers"].as_array().unwrap().iter().zip(own["providers"].as_array().unwrap())
    {
        for member in ["provider", "operator", "agents", "items", "reservations"] {
            assert_eq!(shown[member], own[member], "{member}");
        }
        assert_eq!(shown["windows"][0]["used"], own["windows"][0]["used"]);
    }
}

fn status_warns_of_a_passed_threshold() {
    let scratch = with_quota(TWO_PROVIDERS);
    use_tokens(&scratch, "gpt-5", "640");
    let shown = scratch.run(["status"]).success().stdout;
    let expected = "           openai 1h 640 of 1k (64%)\n           warning: the 1h window has passed 50% of its budget\n";
    assert!(shown.contains(expected), "{shown}");
}

fn status_without_a_quota_has_nothing_of_it() {
    let scratch = Scratch::new();
    scratch.json(["agent", "register", "--name", "Ivy"]);
    let shown = scratch.run(["status"]).success();
    assert!(!format!("{}{}", shown.stdout, shown.stderr).to_lowercase().contains("quota"), "{shown:?}");
    assert_eq!(scratch.json(["status"]).get("quota"), None);
    assert!(!brief(&scratch, "s1").contains("quota"));
    assert_eq!(Client::new(&scratch).call("who", json!({})).get("quota"), None);
    assert!(!scratch.home_file("quota.db").exists());
}

fn a_ledger_that_cannot_be_read_is_a_note_of_status_and_a_line_of_the_hook_log() {
    let scratch = configured();
    scratch.json(["agent", "register", "--name", "Ivy"]);
    break_ledger(&scratch);
    let shown = scratch.run(["status"]).success();
    assert!(shown.stderr.contains("note: the token quota is not shown: "), "{shown:?}");
    assert!(shown.stdout.contains("Agents:") && !shown.stdout.contains("Quota:"), "{shown:?}");
    let json = scratch.json(["status"]);
    assert!(json["quota_error"].is_string() && json.get("quota").is_none(), "{json}");
    let text = brief(&scratch, "s1");
    assert!(text.contains("You share a board") && !text.contains("quota"), "{text}");
    let log = fs::read_to_string(scratch.sidecar("hook.log")).unwrap();
    assert!(log.contains("the token quota is not shown: foreign_database"), "{log}");
    let who = Client::new(&scratch).call("who", json!({}));
    assert!(who["quota_error"].is_string() && who["agents"]["count"].as_u64() >= Some(1), "{who}");
    assert_eq!(fs::read_to_string(scratch.home_file("quota.db")).unwrap(), "no database");
}

fn a_brief_has_what_is_used_and_what_to_do() {
    let scratch = with_quota(TWO_PROVIDERS);
    scratch.json(["agent", "register", "--name", "Ivy"]);
    use_tokens(&scratch, "claude-opus", "320000");
    let text = brief(&scratch, "s1");
    let expected = "Token quota: anthropic 5h 64% used (160k left for agents), 7d 6%; openai 1h 0% used (1k left for agents).";
    assert!(text.contains(expected) && !text.contains("Prefer small items"), "{text}");
    use_tokens(&scratch, "claude-opus", "150000");
    let text = brief(&scratch, "s2");
    assert!(
        text.contains("Prefer small items") && text.contains("quota check --tokens N --reserve"),
        "{text}"
    );
    use_tokens(&scratch, "claude-opus", "100000");
    let text = brief(&scratch, "s3");
    assert!(text.contains("5h 114% used (0 left for agents)"), "{text}");
    assert!(text.contains("Finish what you hold and claim no new work"), "{text}");
}

fn the_mcp_tool_who_has_the_quota() {
    let scratch = with_quota(TWO_PROVIDERS);
    use_tokens(&scratch, "claude-opus", "320000");
    let who = Client::new(&scratch).call("who", json!({}));
    let provider = &who["quota"][0];
    assert_eq!(provider["provider"], "anthropic");
    let window = &provider["windows"][0];
    assert_eq!((&window["window"], &window["used"]), (&json!("5h"), &json!(320_000)));
    assert_eq!(window["available"], 160_000);
    assert_eq!(who.get("quota_error"), None::<&Value>);
}

fn tables_and_charts_fit_their_terminal() {
    let scratch = with_quota(TWO_PROVIDERS);
    scratch.json(["agent", "register", "--name", "Ivy"]);
    let item = "design-schema";
    let record = ["quota", "record", "--model", "claude-opus", "--input-tokens", "470000", "--item", item];
    scratch.json([&record[..], &["--session", "Ivy"]].concat());
    scratch.json([
        "quota",
        "check",
        "--provider",
        "openai",
        "--tokens",
        "50",
        "--reserve",
        "--session",
        "Ivy",
    ]);
    for columns in [40, 80, 120] {
        for call in [&["quota", "status"][..], &["quota", "history"], &["quota", "history", "--since", "2h"]]
        {
            let shown = scratch.on_terminal(columns, call);
            for line in shown.lines() {
                let width = line.trim_end().chars().count();
                assert!(width <= usize::from(columns), "{call:?} at {columns}: {line:?} of\n{shown}");
            }
            assert!(shown.contains("anthropic"), "{shown}");
        }
        let shown = scratch.on_terminal(columns, ["quota", "history"]);
        assert!(shown.contains("██"), "a chart at {columns}: {shown}");
        let shown = scratch.on_terminal(columns, ["quota", "status"]);
        // Lines may be wrapped.
        let words: Vec<_> = shown.split_whitespace().collect();
        let text = words.join(" ");
        assert!(text.contains("At this rate the 5h window is used up in"), "{shown}");
    }
}
