use blackboard::Code;
use serde_json::json;

use crate::scratch::Scratch;
use crate::shapes::is_object;
use crate::transcript;

testkit::on_each_engine![
    human_output_matches_transcript,
    delete_removes_a_key_once_and_its_versions_continue,
    calls_with_a_stale_fence_change_no_entry,
];

fn human_output_matches_transcript() {
    transcript::check("delete");
}

fn delete_removes_a_key_once_and_its_versions_continue() {
    let scratch = Scratch::new();
    scratch.json(["write", "key", "1"]);
    let deleted = scratch.json(["delete", "key"]);
    is_object(&deleted, &["scope", "key", "version", "revision"]);
    assert_eq!((&deleted["key"], &deleted["version"]), (&json!("key"), &json!(1)));
    scratch.run(["delete", "key", "--json"]).refused(Code::EntryNotFound);
    let again = scratch.json(["write", "key", "2", "--if-absent"]);
    assert_eq!((&again["created"], &again["version"]), (&json!(true), &json!(2)));
}

fn calls_with_a_stale_fence_change_no_entry() {
    let scratch = Scratch::new();
    scratch.json(["agent", "register", "--name", "Ivy", "--session-hint", "ivy"]);
    let claimed = scratch.json(["work", "claim", "item", "--title", "Item", "--session", "ivy"]);
    let fence = format!("work:item={}", claimed["fence"]);
    scratch.json(["write", "result:item", "1", "--fence", &fence, "--session", "ivy"]);
    scratch.json(["work", "release", "item", "--session", "ivy"]);
    for call in [
        &["write", "result:item", "2"][..],
        &["delete", "result:item"],
        &["append", "result:list", "2"],
        &["increment", "result:count"],
        &["clear", "result:*"],
        &["purge", "result:item"],
    ] {
        let fenced = ["--fence", &fence, "--session", "ivy", "--json"];
        scratch.run(call.iter().chain(&fenced)).refused(Code::StaleFence);
    }
    assert_eq!(scratch.run(["list", "--json"]).stdout, "[\"result:item\"]\n");
}
