use testkit::process::RunToEnd as _;

use super::repository;
use crate::scratch::Output;
use crate::shapes::is_object;
use crate::transcript;

testkit::on_each_engine![
    human_output_matches_transcript,
    json_has_what_was_released,
    listed_pattern_is_released_from_every_directory,
];

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

fn listed_pattern_is_released_from_every_directory() {
    let scratch = repository();
    let inside = scratch.path().join("src/store");
    std::fs::create_dir_all(&inside).unwrap();
    scratch.json(["agent", "register", "--name", "Ivy", "--session-hint", "ivy"]);
    scratch.json(["agent", "register", "--name", "Oak", "--session-hint", "oak"]);
    let release = |pattern: &str, session: &str| {
        let mut command = scratch.command(["file", "release", pattern, "--session", session, "--json"]);
        Output::of(command.current_dir(&inside).run_to_end())
    };
    for pattern in ["src/", "src/store/*.rs", "README.md"] {
        scratch.json(["file", "reserve", pattern, "--session", "ivy"]);
        let listed = scratch.json(["file", "list"])["items"][0]["pattern"].as_str().unwrap().to_owned();
        release(&listed, "oak").refused(blackboard::Code::NotHolder);
        assert_eq!(release(&listed, "ivy").success().json()["released"], serde_json::json!([listed]));
    }
    // What is relative to the directory comes first.
    scratch.json(["file", "reserve", "a.rs", "src/store/a.rs", "--session", "ivy"]);
    assert_eq!(release("a.rs", "ivy").success().json()["released"], serde_json::json!(["src/store/a.rs"]));
    assert_eq!(release("a.rs", "ivy").success().json()["released"], serde_json::json!(["a.rs"]));
    assert_eq!(release("a.rs", "ivy").success().json()["not_held"], serde_json::json!(["src/store/a.rs"]));
}
