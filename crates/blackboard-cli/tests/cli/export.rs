use serde_json::json;

use crate::scratch::Scratch;
use crate::shapes::{AGENT, EVENT, PROJECT, WORK_ITEM, is_object};
use crate::transcript;

testkit::on_each_engine![
    human_output_matches_transcript,
    json_has_the_complete_state,
    a_scope_is_exported_alone_and_can_be_imported,
];

fn human_output_matches_transcript() {
    transcript::check("export");
}

fn json_has_the_complete_state() {
    let scratch = Scratch::new();
    scratch.json(["agent", "register", "--name", "Ivy", "--session-hint", "ivy"]);
    scratch.json(["project", "register", "pai", "--name", "PAI"]);
    scratch.json(["work", "create", "item", "--title", "Item", "--blocked-by", "later"]);
    let state = scratch.json(["export"]);
    is_object(&state, &["revision", "work_dependencies"]);
    for (rows, fields) in
        [("agents", AGENT), ("projects", PROJECT), ("work_items", WORK_ITEM), ("events", EVENT)]
    {
        for field in fields {
            assert!(state[rows][0].get(field).is_some(), "{rows} have no {field}: {state}");
        }
    }
    let saved = scratch.json(["export", "--output", "board.json", "--pretty"]);
    let written = std::fs::read(scratch.path().join("board.json")).unwrap();
    let written: serde_json::Value = serde_json::from_slice(&written).unwrap();
    assert_eq!((&saved["revision"], &written["agents"]), (&state["revision"], &state["agents"]));
}

fn a_scope_is_exported_alone_and_can_be_imported() {
    let scratch = Scratch::new();
    scratch.json(["scope", "create", "team", "--ttl", "1h"]);
    for (key, scope) in [("a", "team"), ("b", "team"), ("c", "other")] {
        scratch.json(["write", key, "1", "--scope", scope]);
    }
    let state = scratch.json(["export", "--scope", "team"]);
    let keys = |rows: &str, field: &str| -> Vec<_> {
        state[rows].as_array().unwrap().iter().map(|row| row[field].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(
        (keys("entries", "key"), keys("scopes", "scope")),
        (vec!["a".into(), "b".into()], vec!["team".into()])
    );
    assert_eq!(keys("events", "target_id"), ["team", "a", "b"]);
    assert_eq!((&state["agents"], &state["work_items"]), (&json!([]), &json!([])));
    scratch.json(["export", "--scope", "team", "--output", "team.json"]);
    let elsewhere = Scratch::new();
    let file = scratch.path().join("team.json");
    elsewhere.json(["import", file.to_str().unwrap()]);
    assert_eq!(elsewhere.json(["list", "--scope", "team"]), json!(["a", "b"]));
}
