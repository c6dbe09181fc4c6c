//! One JSON object per line.

use blackboard::text::escape_json_for_terminal;
use blackboard::work::{OutsideItem, Priority};
use serde::Serialize;
use serde_json::Value;

use super::object::Object;
use super::{TrackerFile, labels};

/// Reads the items.
pub fn read(text: &str) -> TrackerFile {
    let mut file = TrackerFile::default();
    let lines = text.trim_start_matches('\u{feff}').lines().enumerate();
    for (index, line) in lines.filter(|(_, line)| !line.trim().is_empty()) {
        file.add(index + 1, Object::parse(line).and_then(|object| item(&object)));
    }
    file
}

fn item(object: &Object) -> Result<OutsideItem, String> {
    let given = object.texts(&["labels", "tags"], "name")?;
    let known = given.as_deref().unwrap_or_default();
    let estimate = match object.get(&["estimate", "estimatedTokens", "estimated_tokens"]) {
        None => labels::estimate(known),
        Some(Value::Number(number)) if number.is_u64() => number.as_u64(),
        Some(Value::String(text)) if labels::tokens(text).is_some() => labels::tokens(text),
        Some(_) => return Err("estimate is not a number of tokens".to_owned()),
    };
    let priority = match object.get(&["priority"]) {
        None => labels::priority(known),
        Some(value) => Some(priority(value)?),
    };
    Ok(OutsideItem {
        id: object.required(&["id", "item_id"])?,
        title: object.required(&["title", "name"])?,
        description: object.text(&["description", "body"])?,
        priority,
        project: object.text(&["project", "project_id"])?,
        source: object.text(&["source"])?,
        source_ref: object.text(&["source_ref"])?,
        estimate,
        is_closed: is_closed(object)?,
        blocked_by: object.texts(&["blocked_by", "blockedBy", "depends_on"], "id")?,
        labels: given,
        on_hold: None,
    })
}

fn priority(value: &Value) -> Result<Priority, String> {
    let priority = match value {
        Value::Number(number) => number.as_u64().and_then(labels::priority_of_number),
        Value::String(text) => labels::priority(&[text.clone(), format!("priority:{text}")]),
        _ => None,
    };
    priority.ok_or_else(|| "priority is not P1, P2, P3 or a number from 0 to 4".to_owned())
}

fn is_closed(object: &Object) -> Result<bool, String> {
    if let Some(Value::Bool(is_closed)) = object.get(&["closed", "done", "completed"]) {
        return Ok(*is_closed);
    }
    let status = object.text(&["status", "state"])?.unwrap_or_default().to_ascii_lowercase();
    Ok(matches!(status.as_str(), "closed" | "completed" | "done" | "resolved" | "cancelled" | "canceled"))
}

/// The items as lines that [`read`] reads.
pub fn write(items: &[OutsideItem]) -> Result<String, serde_json::Error> {
    let mut text = String::new();
    for item in items {
        text += &escape_json_for_terminal(&serde_json::to_string(&Line::of(item))?);
        text.push('\n');
    }
    Ok(text)
}

/// An item as an object.
#[derive(Serialize)]
pub struct Line<'a> {
    id: &'a str,
    title: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'a str>,
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    priority: Option<Priority>,
    #[serde(skip_serializing_if = "Option::is_none")]
    project: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    source_ref: Option<&'a str>,
    labels: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    estimate: Option<u64>,
    blocked_by: &'a [String],
}

impl Line<'_> {
    /// The object of an item.
    pub fn of(item: &OutsideItem) -> Line<'_> {
        Line {
            id: &item.id,
            title: &item.title,
            description: item.description.as_deref(),
            status: if item.is_closed { "closed" } else { "open" },
            priority: item.priority,
            project: item.project.as_deref(),
            source: item.source.as_deref(),
            source_ref: item.source_ref.as_deref(),
            labels: item.labels.as_deref().unwrap_or_default(),
            estimate: item.estimate,
            blocked_by: item.blocked_by.as_deref().unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_have_the_names_of_several_trackers() {
        let text = r#"{"id":"a","title":"A","status":"open","priority":"high","labels":["x"],"estimate":"5k"}

{"id":7,"name":"B","body":"Text","state":"CLOSED","tags":[{"name":"P3"},{"name":"tokens:9"}],"depends_on":["a"]}
{"item_id":"c","title":"C","done":true,"priority":0,"blockedBy":"a","estimatedTokens":30000}
"#;
        let file = read(text);
        assert_eq!(file.problems, []);
        let [a, b, c] = &file.items[..] else { panic!("{file:?}") };
        assert_eq!(
            (a.priority, a.estimate, a.is_closed, &a.blocked_by),
            (Some(Priority::P1), Some(5000), false, &None)
        );
        assert_eq!((&*b.id, b.description.as_deref(), b.is_closed), ("7", Some("Text"), true));
        assert_eq!((b.priority, b.estimate), (Some(Priority::P3), Some(9)));
        assert_eq!((c.priority, c.estimate, c.is_closed), (Some(Priority::P1), Some(30_000), true));
        assert_eq!(c.blocked_by.as_deref(), Some(&["a".to_owned()][..]));
    }

    #[test]
    fn lines_that_cannot_be_read_are_reported_and_do_not_stop_the_others() {
        testkit::limit_test();
        let deep = format!("{{\"id\":{}", "[".repeat(100_000));
        for (line, problem) in [
            ("nonsense", "it is not JSON: expected"),
            ("[1]", "it is not a JSON object"),
            (r#"{"title":"A"}"#, "it has no id"),
            (r#"{"id":"a","title":" "}"#, "it has no title"),
            (r#"{"id":"a","title":["A"]}"#, "title is not a text"),
            (r#"{"id":"a","title":"A","priority":"soon"}"#, "priority is not"),
            (r#"{"id":"a","title":"A","labels":[1]}"#, "labels is not a list of texts"),
            (r#"{"id":"a","title":"A","estimate":-1}"#, "estimate is not a number of tokens"),
            (deep.as_str(), "it is not JSON: recursion limit"),
        ] {
            let file = read(&format!("{line}\n{{\"id\":\"b\",\"title\":\"B\"}}"));
            assert_eq!((file.items.len(), file.unread), (1, 1), "{problem}");
            let shown = &file.problems[0];
            assert!(shown.line == 1 && shown.problem.starts_with(problem), "{shown:?}");
        }
        let many = read(&"x\n".repeat(1000));
        assert_eq!((many.problems.len(), many.unread, many.unreported), (100, 1000, 900));
    }

    #[test]
    fn written_lines_are_read_as_the_same_items() {
        let item = OutsideItem {
            id: "a".to_owned(),
            title: "A \"quoted\"\u{2028}title".to_owned(),
            description: Some("one\ntwo\n".to_owned()),
            priority: Some(Priority::P3),
            project: Some("pai".to_owned()),
            source: Some("github".to_owned()),
            source_ref: Some("o/r#1".to_owned()),
            labels: Some(vec!["x".to_owned()]),
            estimate: Some(7),
            is_closed: true,
            blocked_by: Some(vec!["b".to_owned()]),
            on_hold: None,
        };
        let open = OutsideItem { id: "b".to_owned(), is_closed: false, description: None, ..item.clone() };
        let items = vec![item, open];
        assert_eq!(read(&write(&items).unwrap()).items, items);
    }

    #[test]
    fn an_id_that_comes_again_is_reported_with_both_lines() {
        testkit::limit_test();
        let file = read("{\"id\":\"a\",\"title\":\"A\"}\n\n{\"id\":\"a\",\"title\":\"B\"}\n");
        let problems: Vec<_> =
            file.problems.iter().map(|one| (one.line, one.place.as_str(), one.problem.as_str())).collect();
        assert_eq!(problems, [(1, "line 1", "it is skipped, because line 3 has the same id a again")]);
        assert_eq!((file.items.len(), file.unread), (2, 0));
    }
}
