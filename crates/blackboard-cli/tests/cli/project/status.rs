use crate::scratch::Scratch;
use crate::shapes::{PROJECT, is_object};
use crate::transcript;

testkit::on_each_engine![
    human_output_matches_transcript,
    json_has_a_project_with_its_agents_and_work_items,
    blockers_are_complete_on_a_narrow_terminal,
];

fn human_output_matches_transcript() {
    transcript::check("project status");
}

fn json_has_a_project_with_its_agents_and_work_items() {
    let scratch = Scratch::new();
    scratch.json(["project", "register", "pai", "--name", "PAI"]);
    scratch.json(["work", "create", "item", "--title", "Item", "--project", "pai"]);
    let status = scratch.json(["project", "status", "--id", "pai"]);
    is_object(&status, PROJECT);
    assert_eq!(status["work_items"][0]["item_id"], "item");
    assert_eq!(status["active_agents"], serde_json::json!([]));
}

fn blockers_are_complete_on_a_narrow_terminal() {
    let scratch = Scratch::new();
    scratch.json(["project", "register", "pai", "--name", "PAI"]);
    let blockers = ["design-the-database-schema", "review-the-design-document", "gh:mellanon/pai-collab#77"];
    let (title, project) = ("A title that is longer than the space that a line has", "--project=pai");
    let blocked_by = blockers.join(",");
    scratch.json(["work", "create", "post", "--title", title, project, "--blocked-by", &blocked_by]);
    scratch.json(["work", "create", "short", "--title", title, project, "--blocked-by", "post"]);
    let shown = scratch.on_terminal(80, ["project", "status", "pai"]);
    for blocker in blockers {
        assert!(shown.contains(blocker), "{shown}");
    }
    assert!(shown.lines().all(|line| line.trim_end().chars().count() <= 80), "{shown}");
    assert!(shown.contains("… (blocked by: post)"), "{shown}");
}
