//! The shapes of JSON output that other programs rely on.

use serde_json::Value;

/// An agent, as the proposal for a local blackboard defines it.
pub const AGENT: &[&str] = &[
    "session_id",
    "agent_name",
    "pid",
    "parent_id",
    "project",
    "current_work",
    "status",
    "started_at",
    "last_seen_at",
];

/// A work item, the same.
pub const WORK_ITEM: &[&str] = &[
    "item_id",
    "project_id",
    "title",
    "description",
    "source",
    "source_ref",
    "status",
    "priority",
    "claimed_by",
    "claimed_at",
    "completed_at",
    "blocked_by",
    "created_at",
];

/// A lock.
pub const LOCK: &[&str] = &["name", "fence", "session_id", "agent_name", "since", "note", "expires_at"];

/// Reserved files.
pub const RESERVATION: &[&str] = &[
    "pattern",
    "mode",
    "note",
    "repository",
    "worktree",
    "session_id",
    "agent_name",
    "since",
    "expires_at",
    "fence",
];

/// An event, the same.
pub const EVENT: &[&str] =
    &["id", "timestamp", "event_type", "actor_id", "target_id", "target_type", "summary"];

/// A project, by the columns of its table.
pub const PROJECT: &[&str] =
    &["project_id", "display_name", "local_path", "remote_repo", "registered_at", "metadata"];

/// A scope with its policies.
pub const SCOPE: &[&str] = &[
    "scope",
    "entries",
    "visibility",
    "members",
    "owner",
    "work_item",
    "access",
    "ttl",
    "max_entries",
    "eviction",
    "validation",
    "created_at",
    "created_by",
    "updated_at",
    "updated_by",
    "revision",
];

/// An entry: the fields of the script that `read`, `list` and `snapshot` come from, and those that are new.
pub const ENTRY: &[&str] = &[
    "key",
    "value",
    "source_agent",
    "timestamp",
    "ttl",
    "version",
    "revision",
    "created_at",
    "updated_at",
    "created_by",
    "updated_by",
    "tags",
    "metadata",
];

/// Checks `{ok, …fields, timestamp}`: all fields exist, also with the value null.
#[track_caller]
pub fn is_object(answer: &Value, fields: &[&str]) {
    assert_eq!(answer["ok"], true, "{answer}");
    assert!(answer["timestamp"].as_str().is_some_and(|time| time.ends_with('Z')), "{answer}");
    has_fields(answer, fields);
}

/// Checks `{ok, count, items, timestamp}`.
#[track_caller]
pub fn is_list(answer: &Value, fields: &[&str]) {
    is_object(answer, &["count", "items"]);
    let items = answer["items"].as_array().unwrap();
    assert_eq!(answer["count"], items.len(), "{answer}");
    for item in items {
        has_fields(item, fields);
    }
}

/// Checks an object that has no envelope.
#[track_caller]
pub fn has_fields(object: &Value, fields: &[&str]) {
    for field in fields {
        assert!(object.get(field).is_some(), "{field} is missing: {object}");
    }
    let metadata = object.get("metadata").unwrap_or(&Value::Null);
    assert!(metadata.is_null() || metadata.is_object(), "metadata is no text: {object}");
}
