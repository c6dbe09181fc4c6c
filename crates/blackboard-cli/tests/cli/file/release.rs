use super::repository;
use crate::shapes::is_object;
use crate::transcript;

testkit::on_each_engine![human_output_matches_transcript, json_has_what_was_released,];

fn human_output_matches_transcript() {
    transcript::check("file release");
}

fn json_has_what_was_released() {
    let scratch = repository();
    scratch.json(["agent", "register", "--name", "Ivy", "--session-hint", "ivy"]);
    scratch.json(["file", "reserve", "src/", "docs/", "--session", "ivy"]);
    let released = scratch.json(["file", "release", "src/", "tests/", "--session", "ivy"]);
    is_object(&released, &["released", "not_held", "released_by"]);
    assert_eq!((&released["released"][0], &released["not_held"][0]), (&"src/**".into(), &"tests/**".into()));
    let released = scratch.json(["file", "release", "--all", "--session", "ivy"]);
    assert_eq!(released["released"], serde_json::json!(["docs/**"]));
    assert_eq!(scratch.json(["file", "list"])["count"], 0);
}
