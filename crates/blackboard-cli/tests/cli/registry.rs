use std::time::Duration;

use blackboard::Code;
use serde_json::{Value, json};

use crate::pull::hub::{FILE, TestHub, status_of_a_board};
use crate::shapes::is_object;
use crate::transcript;

testkit::on_each_engine![human_output_matches_transcript];

const MINUTE: Duration = Duration::from_mins(1);

fn human_output_matches_transcript() {
    transcript::check("registry");
}

const OPERATOR: &str = "schemaVersion: '1.0'
handle: ivy
name: Ivy
signing: {publicKey: 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAbcdefgh'}
identities: []
skills: [Rust]
availability: busy
hives: []
";

#[test]
fn projects_and_operators_have_their_health() {
    let Some(hub) = TestHub::new("a registry") else { return };
    hub.spoke("fresh", &status_of_a_board(MINUTE, 1, 1));
    hub.spoke("stale", &status_of_a_board(8 * 24 * 60 * MINUTE, 1, 1));
    hub.project("none", "");
    let status = status_of_a_board(MINUTE, 1, 1);
    let files = [
        (FILE, ".collab/status.yaml", status.as_bytes()),
        (FILE, ".collab/operator.yaml", OPERATOR.as_bytes()),
    ];
    hub.commit("fresh", "main", &files);
    hub.registry(&["| fresh | @ivy | building | | @oak (review) |"]);
    let answer = hub.json(&["registry"]);
    is_object(&answer, &["hub", "offline", "projects", "operators", "problems"]);
    let health: Vec<_> = answer["projects"]
        .as_array()
        .unwrap()
        .iter()
        .map(|project| (project["project"].as_str().unwrap(), project["health"].as_str().unwrap()))
        .collect();
    assert_eq!(health, [("fresh", "fresh"), ("none", "no_source"), ("stale", "stale")]);
    // The repository of a project may have another name: rows are in the order of the projects, which are shown.
    hub.project("a-last", &format!("source: {{repo: '{}'}}\n", hub.url("fresh")));
    hub.project("b-first", "source: {repo: ssh://git@example.org/A/a}\n");
    let sorted = hub.json(&["registry", "--offline"]);
    let names: Vec<_> = sorted["projects"].as_array().unwrap().iter().map(|one| &one["project"]).collect();
    assert_eq!(names, ["a-last", "b-first", "fresh", "none", "stale"]);
    let operators = answer["operators"].as_array().unwrap();
    let handles: Vec<_> = operators.iter().map(|operator| operator["handle"].as_str().unwrap()).collect();
    assert_eq!(handles, ["ivy", "oak"]);
    let (ivy, oak) = (&operators[0], &operators[1]);
    assert_eq!((&ivy["availability"], &ivy["health"]), (&json!("busy"), &json!("stale")));
    assert_eq!((&ivy["skills"], &ivy["maintains"]), (&json!(["Rust"]), &json!(["fresh", "none", "stale"])));
    assert_eq!((&oak["agents"], &oak["availability"]), (&json!(["Luna"]), &json!("open")));
    assert_eq!((&oak["skills"], &oak["health"]), (&json!(["Rust", "SQL"]), &Value::Null));
}

#[test]
fn a_registry_that_differs_is_refused_with_every_difference() {
    let Some(hub) = TestHub::new("a registry") else { return };
    hub.project("signal", "source: {repo: ivy/signal}\n");
    hub.project("tools", "");
    hub.registry(&[
        "| signal | @ivy | building | [PROJECT.yaml](projects/signal/PROJECT.yaml) | @ivy |",
        "| tools | @ivy | building | | |",
    ]);
    let same = hub.json(&["registry", "--check"]);
    assert_eq!((&same["projects"], &same["differences"]), (&json!(2), &json!([])));
    hub.project("new", "");
    hub.registry(&[
        "| signal | @oak | shipped | elm/signal | @ivy, @elm |",
        "| tools | @ivy | building | | |",
        "| gone | @ivy | building | | |",
    ]);
    let refused = hub.run(&["registry", "--check", "--json"]).refused(Code::RegistryMismatch);
    let differences: Vec<_> = refused["differences"]
        .as_array()
        .unwrap()
        .iter()
        .map(|difference| (difference["project"].as_str().unwrap(), difference["field"].as_str().unwrap()))
        .collect();
    assert_eq!(
        differences,
        [
            ("new", "project"),
            ("signal", "maintainer"),
            ("signal", "status"),
            ("signal", "source"),
            ("signal", "contributors"),
            ("gone", "project"),
        ]
    );
    let shown = hub.run(&["registry", "--check"]);
    assert_eq!((shown.code, shown.stdout.as_str()), (4, ""));
    assert!(
        shown.stderr.contains("\n  signal: status is shipped in REGISTRY.md, building in PROJECT.yaml\n")
    );
    std::fs::remove_file(hub.directory().join("REGISTRY.md")).unwrap();
    hub.run(&["registry", "--check", "--json"]).refused(Code::InvalidValue);
}
