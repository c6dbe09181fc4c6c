use crate::scratch::Scratch;
use crate::shapes::{AGENT, is_list};
use crate::transcript;

#[test]
fn people_see_what_the_transcript_shows() {
    transcript::check("agent list");
}

#[test]
fn programs_get_a_list_of_agents() {
    let scratch = Scratch::new();
    scratch.json(["agent", "register", "--name", "Ivy", "--session-hint", "ivy"]);
    scratch.json(["agent", "register", "--parent", "ivy"]);
    let agents = scratch.json(["agent", "list", "--status", "active"]);
    is_list(&agents, AGENT);
    assert_eq!(agents["items"][1]["parent_id"], agents["items"][0]["session_id"]);
}
