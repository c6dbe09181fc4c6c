use serde_json::{Value, json};

use crate::scratch::Scratch;
use crate::shapes::is_object;
use crate::transcript;

testkit::on_each_engine![
    human_output_matches_transcript,
    json_has_the_items,
    exported_files_are_imported_as_the_same_items,
];

fn human_output_matches_transcript() {
    transcript::check("work export");
}

/// A board with items in every status, and hostile text.
fn board() -> Scratch {
    let scratch = Scratch::new();
    scratch.json(["agent", "register", "--name", "Ivy", "--session-hint", "ivy"]);
    scratch.json(["project", "register", "pai", "--name", "PAI"]);
    scratch.json([
        "work",
        "create",
        "a",
        "--title",
        "A",
        "-P",
        "pai",
        "-p",
        "P1",
        "--label",
        "x,y",
        "--estimate",
        "5k",
    ]);
    scratch.json(["work", "create", "b", "--title", "B `code` *bold*", "--blocked-by", "a,missing"]);
    let description = "- [ ] not an item\n\n```\nopen\n> quoted\n\n  indented -->";
    scratch.json(["work", "create", "c", "--title", "C --> [x]", "--description", description]);
    scratch.json(["work", "claim", "done", "--title", "Done", "--session", "ivy"]);
    scratch.json(["work", "complete", "done", "--session", "ivy"]);
    scratch.json(["work", "claim", "c", "--session", "ivy"]);
    scratch.json(["work", "create", "d", "--title", "D", "--blocked-by", "c", "--source", "jira:PROJ-7"]);
    scratch
}

fn json_has_the_items() {
    let scratch = board();
    let exported = scratch.json(["work", "export", "--to", "jsonl"]);
    is_object(&exported, &["count", "items"]);
    let ids: Vec<_> = exported["items"].as_array().unwrap().iter().map(|item| item["id"].clone()).collect();
    assert_eq!(ids, ["a", "b", "c", "d"].map(Value::from));
    assert_eq!(
        exported["items"][0],
        json!({"id": "a", "title": "A", "status": "open", "priority": "P1", "project": "pai", "source": "local",
            "labels": ["x", "y"], "estimate": 5000, "blocked_by": []})
    );
    let project = scratch.json(["work", "export", "--to", "jsonl", "--project", "pai"]);
    assert_eq!(project["count"], 1);
    let saved = scratch.json(["work", "export", "--to", "jsonl", "--all", "--output", "all.jsonl"]);
    assert_eq!((&saved["count"], &saved["output"]), (&json!(5), &json!("all.jsonl")));
}

fn exported_files_are_imported_as_the_same_items() {
    let scratch = board();
    for form in ["jsonl", "markdown"] {
        let export = ["work", "export", "--to", form, "--all", "--output", "items"];
        scratch.run(export).success();
        let first = std::fs::read_to_string(scratch.path().join("items")).unwrap();
        let import = ["work", "import", "--from", form, "--all", "items"];
        // On its own board it changes nothing.
        let own = scratch.json(import);
        assert_eq!((&own["unchanged"], &own["unread"]), (&json!(5), &json!(0)), "{form}: {own}");
        let other = Scratch::new();
        other.json(["project", "register", "pai", "--name", "PAI"]);
        std::fs::write(other.path().join("items"), &first).unwrap();
        assert_eq!(other.json(import)["created"], 5);
        other.run(export).success();
        assert_eq!(std::fs::read_to_string(other.path().join("items")).unwrap(), first, "{form}");
        assert_eq!(other.json(["work", "status", "b"])["open_blockers"], json!(["a", "missing"]));
        assert_eq!(other.json(["work", "status", "done"])["status"], "completed");
    }
}
