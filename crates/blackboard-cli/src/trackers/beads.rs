//! `issues.jsonl` of beads: one issue per line.
//!
//! A deferred issue is on hold here, so that no agent claims it. An issue in progress is available: a board has its own claims.

use blackboard::work::OutsideItem;
use serde_json::Value;

use super::object::Object;
use super::{TrackerFile, labels};

/// Texts of an issue besides its description, and their headings.
const SECTIONS: [(&str, &str); 3] =
    [("design", "Design"), ("acceptance_criteria", "Acceptance criteria"), ("notes", "Notes")];

/// Why a deferred issue is on hold.
const DEFERRED: &str = "deferred in beads";

/// Reads the issues.
pub fn read(text: &str) -> TrackerFile {
    let mut file = TrackerFile::default();
    let lines = text.trim_start_matches('\u{feff}').lines().enumerate();
    for (index, line) in lines.filter(|(_, line)| !line.trim().is_empty()) {
        file.add(index + 1, Object::parse(line).and_then(|object| item(&object)));
    }
    file
}

fn item(issue: &Object) -> Result<OutsideItem, String> {
    let id = issue.required(&["id"])?;
    let given = issue.texts(&["labels"], "name")?.unwrap_or_default();
    let status = issue.text(&["status"])?.unwrap_or_default();
    let priority = match issue.get(&["priority"]) {
        None => labels::priority(&given),
        Some(number) => {
            let priority = number.as_u64().and_then(labels::priority_of_number);
            Some(priority.ok_or("priority is not a number from 0 to 4")?)
        }
    };
    Ok(OutsideItem {
        title: issue.required(&["title"])?,
        description: Some(description(issue)?),
        priority,
        source: Some(format!("beads:{id}")),
        source_ref: issue.text(&["external_ref"])?,
        estimate: labels::estimate(&given),
        is_closed: matches!(status.as_str(), "closed" | "tombstone"),
        blocked_by: Some(blockers(issue)?),
        labels: Some(given),
        on_hold: Some(if status == "deferred" { DEFERRED.to_owned() } else { String::new() }),
        project: None,
        id,
    })
}

fn description(issue: &Object) -> Result<String, String> {
    let mut description = issue.text(&["description"])?.unwrap_or_default();
    for (name, heading) in SECTIONS {
        if let Some(text) = issue.text(&[name])?.filter(|text| !text.trim().is_empty()) {
            let gap = if description.is_empty() { "" } else { "\n\n" };
            for part in [gap, "## ", heading, "\n\n", &text] {
                description.push_str(part);
            }
        }
    }
    Ok(description)
}

/// The issues that block this one. Parents and related issues do not.
fn blockers(issue: &Object) -> Result<Vec<String>, String> {
    let list = match issue.get(&["dependencies"]) {
        None => return Ok(Vec::new()),
        Some(Value::Array(list)) => list,
        Some(_) => return Err("dependencies is not a list".to_owned()),
    };
    let mut blockers = Vec::new();
    for dependency in list {
        let kind = dependency.get("type").and_then(Value::as_str).unwrap_or("blocks");
        if kind == "blocks" {
            let id = dependency.get("depends_on_id").and_then(Value::as_str);
            blockers.push(id.ok_or("a dependency has no depends_on_id")?.to_owned());
        }
    }
    Ok(blockers)
}

#[cfg(test)]
mod tests {
    use blackboard::work::Priority;

    use super::*;

    #[test]
    fn issues_of_the_sample_are_read() {
        let file = read(include_str!("../../tests/fixtures/trackers/beads.jsonl"));
        assert_eq!(file.problems, []);
        let items: Vec<_> = file
            .items
            .iter()
            .map(|item| {
                let blockers = item.blocked_by.as_deref().unwrap_or_default().join(",");
                (item.id.as_str(), item.priority, item.is_closed, blockers)
            })
            .collect();
        assert_eq!(
            items,
            [
                ("bd-a1b2", Some(Priority::P1), false, String::new()),
                ("bd-c3d4", Some(Priority::P2), false, "bd-a1b2".to_owned()),
                ("bd-e5f6", Some(Priority::P3), true, String::new()),
                ("bd-0f1e", Some(Priority::P2), true, String::new()),
            ]
        );
        let first = &file.items[0];
        assert_eq!(
            (first.source.as_deref(), first.source_ref.as_deref()),
            (Some("beads:bd-a1b2"), Some("gh-9"))
        );
        assert_eq!(
            first.description.as_deref(),
            Some(
                "Tokens expire too early.\n\n## Design\n\nRefresh them.\n\n## Acceptance criteria\n\nNo logout."
            )
        );
        assert_eq!(first.labels.as_deref(), Some(&["auth".to_owned(), "tokens:20k".to_owned()][..]));
        assert_eq!(first.estimate, Some(20_000));
    }

    #[test]
    fn a_deferred_issue_is_on_hold_and_no_other_one_is() {
        testkit::limit_test();
        for (status, expected) in [
            ("open", ""),
            ("in_progress", ""),
            ("blocked", ""),
            ("deferred", "deferred in beads"),
            ("closed", ""),
        ] {
            let line = format!("{{\"id\":\"a\",\"title\":\"A\",\"status\":\"{status}\"}}");
            assert_eq!(read(&line).items[0].on_hold.as_deref(), Some(expected), "{status}");
        }
    }

    #[test]
    fn damaged_issues_are_reported() {
        for (line, problem) in [
            (r#"{"id":"a","title":"A","priority":9}"#, "priority is not a number from 0 to 4"),
            (r#"{"id":"a","title":"A","dependencies":7}"#, "dependencies is not a list"),
            (
                r#"{"id":"a","title":"A","dependencies":[{"type":"blocks"}]}"#,
                "a dependency has no depends_on_id",
            ),
            (r#"{"id":"a"}"#, "it has no title"),
        ] {
            assert_eq!(read(line).problems[0].problem, problem);
        }
    }
}
