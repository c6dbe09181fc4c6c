use serde_json::json;

use crate::scratch::Scratch;
use crate::shapes::{AGENT, EVENT, PROJECT, WORK_ITEM, is_object};
use crate::transcript;

testkit::on_each_engine![
    human_output_matches_transcript,
    json_has_the_complete_state,
    a_scope_is_exported_alone_and_can_be_imported,
    yaml_has_agents_tasks_and_complete_progress_notes,
    exported_tasks_are_imported_as_the_same_items,
    yaml_needs_the_name_of_a_file_and_no_scope,
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

fn yaml_has_agents_tasks_and_complete_progress_notes() {
    let scratch = Scratch::new();
    scratch.json(["agent", "register", "--name", "Ivy", "--session-hint", "ivy"]);
    let session = scratch.json(["agent", "show", "ivy"])["session_id"].as_str().unwrap().to_owned();
    scratch.json(["project", "register", "pai", "--name", "PAI"]);
    let create =
        ["work", "create", "pr-56", "--title", "No: 12:30", "--source", "github", "--source-ref", "o/r#56"];
    scratch.json(create.iter().chain(&["-P", "pai", "-p", "P1", "--estimate", "30k", "--label", "yes"]));
    scratch.json(["work", "create", "test-run", "--title", "Run", "--blocked-by", "pr-56"]);
    scratch.json(["work", "claim", "pr-56", "--session", "ivy"]);
    let note = format!("Two of three: \"done\" {}", "and more ".repeat(100)).trim().to_owned();
    scratch.json(["agent", "heartbeat", "--session", "ivy", "--progress", &note, "--work-item", "pr-56"]);
    let yaml = |what: &str| {
        let text = scratch.run(["export", "--format", "yaml", "--what", what]).success().stdout;
        let json = scratch.json(["export", "--format", "yaml", "--what", what]);
        assert_eq!(json["yaml"].as_str().unwrap(), text);
        text
    };
    let agents = yaml("agents");
    for line in [
        "agents:",
        "status: 'active'",
        "currentWork:",
        "project: 'pai'",
        "issueRef: 'o/r#56'",
        "claimedAt: '20",
    ] {
        assert!(agents.contains(line), "{line}: {agents}");
    }
    let tasks = yaml("tasks");
    for line in [
        "id: 'pr-56'",
        "source: 'github:o/r#56'",
        "title: 'No: 12:30'",
        "status: 'claimed'",
        &format!("claimedBy: '{session}'"),
        "estimatedTokens: 30000",
        "blockedBy: 'pr-56'",
    ] {
        assert!(tasks.contains(line), "{line}: {tasks}");
    }
    let progress = yaml("progress");
    for line in ["event: 'claimed'", "event: 'progress'", "task: 'pr-56'", &note] {
        assert!(progress.contains(line), "{line}: {progress}");
    }
    let saved = scratch.json(["export", "--format", "yaml", "--what", "tasks", "--output", "tasks.yaml"]);
    assert_eq!(saved["output"], "tasks.yaml");
    assert_eq!(std::fs::read_to_string(scratch.path().join("tasks.yaml")).unwrap(), tasks);
}

fn exported_tasks_are_imported_as_the_same_items() {
    let scratch = Scratch::new();
    scratch.json([
        "work",
        "create",
        "a",
        "--title",
        "A \u{2028} 'b'",
        "--description",
        "1\n\n2",
        "--label",
        "no,1e3",
    ]);
    scratch.json([
        "work",
        "create",
        "b",
        "--title",
        "true",
        "--blocked-by",
        "a,missing",
        "-p",
        "P3",
        "--estimate",
        "7",
    ]);
    scratch.json(["export", "--format", "yaml", "--what", "tasks", "--output", "tasks.yaml"]);
    let file = scratch.path().join("tasks.yaml");
    let import = ["work", "import", "--from", "tasks", file.to_str().unwrap()];
    assert_eq!(scratch.json(import)["unchanged"], 2);
    let elsewhere = Scratch::new();
    assert_eq!(elsewhere.json(import)["created"], 2);
    let items = |scratch: &Scratch| scratch.json(["work", "export", "--to", "jsonl"])["items"].take();
    assert_eq!(items(&elsewhere), items(&scratch));
}

fn yaml_needs_the_name_of_a_file_and_no_scope() {
    let scratch = Scratch::new();
    for call in [
        &["--format", "yaml"][..],
        &["--format", "json", "--what", "tasks"],
        &["--format", "yaml", "--what", "tasks", "--scope", "team"],
        &["--format", "yaml", "--what", "everything"],
    ] {
        assert_eq!(scratch.run(["export"].iter().chain(call)).code, 2, "{call:?}");
    }
}
