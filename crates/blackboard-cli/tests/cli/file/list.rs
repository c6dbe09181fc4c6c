use super::repository;
use crate::shapes::{RESERVATION, is_list};
use crate::transcript;

testkit::on_each_engine![human_output_matches_transcript, json_has_a_list_of_reservations,];

fn human_output_matches_transcript() {
    transcript::check("file list");
}

fn json_has_a_list_of_reservations() {
    let scratch = repository();
    scratch.json(["agent", "register", "--name", "Ivy", "--session-hint", "ivy"]);
    scratch.json(["file", "reserve", "src/", "docs/", "--shared", "--ttl", "1h", "--session", "ivy"]);
    let reserved = scratch.json(["file", "list"]);
    is_list(&reserved, RESERVATION);
    assert_eq!((&reserved["count"], &reserved["items"][0]["pattern"]), (&2.into(), &"docs/**".into()));
    assert_eq!(reserved["items"][0]["mode"], "shared");
    // It is released when its session ends.
    scratch.json(["agent", "deregister", "ivy"]);
    assert_eq!(scratch.json(["file", "list"])["count"], 0);
}
