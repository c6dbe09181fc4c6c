//! Scripts of ivy-blackboard's users find the fields that they read: every command of that program, with the fields of its
//! JSON output beside those of the source documents.

use serde_json::{Value, json};

use crate::scratch::Scratch;

testkit::on_each_engine![
    every_answer_has_the_fields_that_scripts_read,
    a_claim_without_a_session_creates_the_item,
    a_claimed_item_is_deleted_only_with_force,
];

/// The commands, in an order in which each succeeds, and the fields: a value that is given has to be equal.
fn table() -> Vec<(Vec<&'static str>, Value)> {
    let any = Value::Null;
    vec![
        (vec!["project", "register", "--id", "pai", "--name", "PAI"], json!({"updated": false})),
        (vec!["project", "register", "--id", "pai", "--name", "PAI Collab"], json!({"updated": true})),
        (
            vec!["work", "create", "--id", "a", "--title", "A", "--project", "pai"],
            json!({"status": "available", "claimed_by": null, "created_at": any}),
        ),
        (
            vec!["work", "create", "--id", "c", "--title", "C", "--depends-on", "a"],
            json!({"status": "blocked"}),
        ),
        (
            vec!["work", "claim", "--id", "a", "--session", "ivy"],
            json!({"claimed": true, "claimed_by": any, "claimed_at": any}),
        ),
        (
            vec!["work", "claim", "--id", "b", "--title", "B", "--session", "ivy"],
            json!({"claimed": true, "claimed_by": any, "claimed_at": any, "title": "B", "status": "claimed", "created_at": any}),
        ),
        (
            vec!["work", "release", "--id", "b", "--session", "ivy"],
            json!({"released": true, "previous_status": "claimed"}),
        ),
        (
            vec!["work", "block", "--id", "b", "--blocked-by", "a"],
            json!({"blocked": true, "blocked_by": "a", "previous_status": "available"}),
        ),
        (vec!["work", "unblock", "--id", "b"], json!({"unblocked": true, "restored_status": "available"})),
        (
            vec!["work", "status", "c"],
            json!({
                "item_id": "c", "title": "C", "status": "blocked", "depends_on": "a", "failure_count": 0,
                "failure_reason": null, "failed_at": null, "history": any,
            }),
        ),
        (
            vec!["project", "list"],
            json!({"items": [{
                "project_id": "pai", "active_agents": 0, "work_available": 0, "work_claimed": 1,
                "work_completed": 0, "work_blocked": 0, "last_activity": any,
            }]}),
        ),
        (
            vec!["project", "status", "pai"],
            json!({"project": {"project_id": "pai"}, "agents": [], "work_items": [{"item_id": "a"}]}),
        ),
        (
            vec!["work", "complete", "--id", "a", "--session", "ivy"],
            json!({"completed": true, "completed_at": any, "claimed_by": any}),
        ),
        (
            vec!["work", "update-metadata", "--id", "b", "--metadata", "{\"x\": 1}"],
            json!({"item_id": "b", "updated": true, "metadata": {"x": 1}}),
        ),
        (
            vec!["work", "append-event", "--id", "b", "--event-type", "built", "--summary", "Build 7"],
            json!({"item_id": "b", "event_id": any, "event_type": "built", "timestamp": any}),
        ),
        (
            vec!["work", "list", "--show-scores"],
            json!({"items": [{"item_id": "c", "effective_score": 40.0}, {"item_id": "b"}]}),
        ),
        (
            vec!["work", "complete", "--id", "c", "--force"],
            json!({"item_id": "c", "completed": true, "completed_at": any}),
        ),
        (
            vec!["work", "delete", "b"],
            json!({"deleted": true, "previous_status": "available", "was_claimed_by": null, "title": "B"}),
        ),
        (
            vec!["work", "complete", "--all", "--project", "pai", "--yes"],
            json!({"completed_count": 0, "failed_count": 0, "items": []}),
        ),
        (vec!["status"], json!({"database": any, "database_size": any, "database_size_bytes": any})),
        (vec!["sweep", "--dry-run"], json!({"dryRun": true, "candidates": []})),
        (vec!["export", "--output", "state.json"], json!({"file": "state.json", "export_version": 1})),
        (
            vec!["export", "--pretty"],
            json!({"export_version": 1, "exported_at": any, "status": any, "agents": any, "projects": any, "work_items": any, "events": any}),
        ),
        (
            vec!["agent", "deregister", "--session", "ivy"],
            json!({"released_count": 0, "duration_seconds": any}),
        ),
    ]
}

/// Checks that a value has what is expected: for each member that one, for each element the one at its place. `null` at an
/// outer member means any value, and that it exists.
#[track_caller]
fn assert_has(found: &Value, expected: &Value, path: &str) {
    match expected {
        Value::Object(members) => {
            for (name, value) in members {
                let found = found.get(name).unwrap_or_else(|| panic!("{path}.{name} is missing in {found}"));
                if !value.is_null() {
                    assert_has(found, value, &format!("{path}.{name}"));
                }
            }
        }
        Value::Array(elements) => {
            let found = found.as_array().unwrap_or_else(|| panic!("{path} is no list: {found}"));
            assert!(found.len() >= elements.len(), "{path}: {found:?}");
            for (place, value) in elements.iter().enumerate() {
                assert_has(&found[place], value, &format!("{path}[{place}]"));
            }
        }
        value => assert_eq!(found, value, "{path}"),
    }
}

fn every_answer_has_the_fields_that_scripts_read() {
    let scratch = Scratch::new();
    scratch.json(["agent", "register", "--name", "Ivy", "--session-hint", "ivy"]);
    for (call, expected) in table() {
        assert_has(&scratch.json(&call), &expected, &call.join(" "));
    }
    let stored = std::fs::read_to_string(scratch.path().join("state.json")).unwrap();
    let stored: Value = serde_json::from_str(&stored).unwrap();
    assert_has(&stored, &json!({"export_version": 1, "exported_at": null, "status": null}), "state.json");
    let size = scratch.json(["status"])["database_size"].as_str().unwrap().to_owned();
    let (number, unit) = size.split_once(' ').unwrap();
    assert!(["B", "KB", "MB"].contains(&unit) && number.parse::<f64>().is_ok(), "{size}");
    assert_eq!(scratch.run(["--version"]).success().stdout.trim(), env!("CARGO_PKG_VERSION"));
}

fn a_claim_without_a_session_creates_the_item() {
    let scratch = Scratch::new();
    let created = scratch.json(["work", "claim", "--id", "a", "--title", "A"]);
    assert_eq!((&created["status"], &created["claimed_by"]), (&json!("available"), &Value::Null));
    assert_eq!(scratch.json(["work", "status", "a"])["status"], "available");
}

fn a_claimed_item_is_deleted_only_with_force() {
    let scratch = Scratch::new();
    scratch.json(["agent", "register", "--name", "Ivy", "--session-hint", "ivy"]);
    let claimed = scratch.json(["work", "claim", "a", "--title", "A", "--session", "ivy"]);
    let refusal = scratch.run(["work", "delete", "a", "--json"]).refused(blackboard::Code::InUse);
    assert!(refusal["error"].as_str().unwrap().contains("claimed"), "{refusal}");
    let deleted = scratch.json(["work", "delete", "a", "--force"]);
    assert_eq!(
        (&deleted["previous_status"], &deleted["was_claimed_by"]),
        (&json!("claimed"), &claimed["claimed_by"])
    );
}
