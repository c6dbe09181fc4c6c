use crate::scratch::Scratch;
use crate::shapes::{PROJECT, is_object};
use crate::transcript;

#[test]
fn human_output_matches_transcript() {
    transcript::check("project status");
}

#[test]
fn json_has_a_project_with_its_agents_and_work_items() {
    let scratch = Scratch::new();
    scratch.json(["project", "register", "pai", "--name", "PAI"]);
    scratch.json(["work", "create", "item", "--title", "Item", "--project", "pai"]);
    let status = scratch.json(["project", "status", "--id", "pai"]);
    is_object(&status, PROJECT);
    assert_eq!(status["work_items"][0]["item_id"], "item");
    assert_eq!(status["active_agents"], serde_json::json!([]));
}
