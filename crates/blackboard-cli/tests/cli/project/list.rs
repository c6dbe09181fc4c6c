use crate::scratch::Scratch;
use crate::shapes::{PROJECT, is_list};
use crate::transcript;

testkit::on_each_engine![human_output_matches_transcript, json_has_a_list_of_projects,];

fn human_output_matches_transcript() {
    transcript::check("project list");
}

fn json_has_a_list_of_projects() {
    let scratch = Scratch::new();
    scratch.json(["project", "register", "pai", "--name", "PAI"]);
    scratch.json(["agent", "register", "--name", "Ivy", "--project", "pai"]);
    let projects = scratch.json(["project", "list"]);
    is_list(&projects, PROJECT);
    assert_eq!(projects["items"][0]["active_agents"], 1);
}
