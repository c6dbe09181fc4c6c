use blackboard::Code;
use serde_json::json;

use crate::scratch::Scratch;
use crate::shapes::is_object;
use crate::transcript;

#[test]
fn human_output_matches_transcript() {
    transcript::check("clear");
}

#[test]
fn clear_deletes_all_matching_entries_or_none() {
    let scratch = Scratch::new();
    scratch.json(["agent", "register", "--name", "Ivy", "--session-hint", "ivy"]);
    scratch.json(["write", "cache:a", "1"]);
    scratch.json(["write", "cache:b", "1", "--lease", "--session", "ivy"]);
    scratch.json(["write", "result:a", "1"]);
    let would = scratch.json(["clear", "cache:*", "--dry-run"]);
    is_object(&would, &["scope", "count", "keys", "dry_run"]);
    assert_eq!(would["keys"], json!(["cache:a", "cache:b"]));
    let refusal = scratch.run(["clear", "cache:*", "--json"]).refused(Code::Held);
    assert_eq!(refusal["held_by_name"], "Ivy");
    assert_eq!(scratch.json(["list"]), json!(["cache:a", "cache:b", "result:a"]));
    let cleared = scratch.json(["clear", "cache:*", "--session", "ivy"]);
    is_object(&cleared, &["scope", "count", "keys", "revision"]);
    assert_eq!((&cleared["keys"], cleared.get("dry_run")), (&would["keys"], None));
    assert_eq!(scratch.json(["list"]), json!(["result:a"]));
}
