use blackboard::Code;
use serde_json::json;

use crate::scratch::Scratch;
use crate::shapes::{WORK_ITEM, is_object};
use crate::transcript;

testkit::on_each_engine![
    human_output_matches_transcript,
    json_has_the_item_and_what_changed,
    labels_and_estimate_can_be_given_to_a_new_item,
];

fn human_output_matches_transcript() {
    transcript::check("work edit");
}

fn json_has_the_item_and_what_changed() {
    let scratch = Scratch::new();
    scratch.json(["agent", "register", "--name", "Ivy", "--session-hint", "ivy"]);
    let claimed = scratch.json(["work", "claim", "item", "--title", "Item", "--session", "ivy"]);
    let call =
        ["work", "edit", "item", "--title", "New", "--priority", "p1", "--label", "a,b", "--estimate", "20k"];
    let edited = scratch.json(call);
    is_object(&edited, WORK_ITEM);
    assert_eq!(
        edited["changes"],
        json!([
            {"field": "title", "old": "Item", "new": "New"},
            {"field": "priority", "old": "P2", "new": "P1"},
            {"field": "labels", "old": [], "new": ["a", "b"]},
            {"field": "estimate", "old": null, "new": 20_000},
        ])
    );
    assert_eq!((&edited["fence"], &edited["claimed_by"]), (&claimed["fence"], &claimed["claimed_by"]));
    assert_eq!(scratch.json(["agent", "show", "ivy"])["current_work"], "New");
    assert_eq!(scratch.json(call)["changes"], json!([]));
    let listed = scratch.json(["work", "list"])["items"][0]["metadata"].clone();
    assert_eq!(listed, json!({"labels": ["a", "b"], "estimate": 20_000}));
    let edited =
        scratch.json(["work", "edit", "item", "--no-label", "a", "--label", "c", "--description", "Text"]);
    assert_eq!((&edited["metadata"]["labels"], &edited["description"]), (&json!(["b", "c"]), &json!("Text")));
    assert!(scratch.json(["work", "edit", "item", "--description", ""])["description"].is_null());
    scratch.json(["project", "register", "pai", "--name", "PAI"]);
    scratch.json(["work", "edit", "item", "--project", "pai"]);
    let edited = scratch.json(["work", "edit", "item", "--no-project", "--no-estimate"]);
    assert_eq!((&edited["project_id"], &edited["metadata"]["estimate"]), (&json!(null), &json!(null)));
    assert_eq!(edited["changes"][1], json!({"field": "estimate", "old": 20_000, "new": null}));
    let refused = scratch.run(["work", "edit", "item", "--project", "", "--json"]).refused(Code::Usage);
    assert!(refused["hint"].as_str().unwrap().ends_with("--no-project"), "{refused}");
    assert_eq!(
        scratch.run(["work", "edit", "item"]).code,
        i32::from(Code::Usage.exit_code()),
        "nothing to change"
    );
}

fn labels_and_estimate_can_be_given_to_a_new_item() {
    let scratch = Scratch::new();
    let call = [
        "work",
        "create",
        "item",
        "--title",
        "Item",
        "--label",
        "b",
        "--label",
        "a",
        "--estimate",
        "5k",
        "--metadata",
        "{\"x\":1}",
    ];
    let created = scratch.json(call);
    assert_eq!(created["metadata"], json!({"x": 1, "labels": ["a", "b"], "estimate": 5000}));
    assert_eq!(scratch.json(call)["created"], false);
    assert_eq!(scratch.run(["work", "create", "x", "--title", "X", "--estimate", "soon"]).code, 2);
}
