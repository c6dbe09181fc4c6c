use crate::scratch::Scratch;
use crate::shapes::{AGENT, EVENT, PROJECT, WORK_ITEM, is_object};
use crate::transcript;

testkit::on_each_engine![human_output_matches_transcript, json_has_the_complete_state,];

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
