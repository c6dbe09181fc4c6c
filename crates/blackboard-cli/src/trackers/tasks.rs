//! A `tasks.yaml`: the list of tasks that agents of one operator share.

use blackboard::work::OutsideItem;
use blackboard::{Code, Refusal, Result};

use super::{TrackerFile, labels};
use crate::yaml::{Limits, Node, tree_within};

/// Reads the tasks.
pub fn read(text: &str) -> Result<TrackerFile> {
    let not_tasks = |why: &str| {
        Refusal::new(Code::InvalidValue, format!("this is not a tasks.yaml: {why}")).hint(
            "it is a mapping with a list of tasks, as blackboard export --format yaml --what tasks writes it",
        )
    };
    let document = tree_within(text, Limits::LIST).map_err(|error| not_tasks(&error.to_string()))?;
    let tasks = document.get("tasks").ok_or_else(|| not_tasks("it has no list of tasks"))?;
    let mut file = TrackerFile::default();
    if tasks.is_null() {
        return Ok(file);
    }
    let tasks = tasks.items().ok_or_else(|| not_tasks("tasks is not a list"))?;
    for task in tasks {
        file.add(task.line, item(task));
    }
    Ok(file)
}

fn item(task: &Node) -> std::result::Result<OutsideItem, String> {
    if !task.is_map() {
        return Err("it is not a mapping".to_owned());
    }
    let given = texts(task, "labels")?;
    let known = given.as_deref().unwrap_or_default();
    let id = required(task, "id")?;
    let (source, source_ref) = source(text(task, "source")?);
    let priority = match text(task, "priority")? {
        None => labels::priority(known),
        Some(name) => Some(labels::priority(&[name]).ok_or("priority is not P1, P2 or P3")?),
    };
    let estimate = match text(task, "estimatedTokens")? {
        None => labels::estimate(known),
        Some(number) => Some(labels::tokens(&number).ok_or("estimatedTokens is not a number")?),
    };
    let is_closed = match text(task, "status")?.as_deref() {
        None | Some("available" | "claimed" | "blocked") => false,
        Some("completed") => true,
        Some(other) => return Err(format!("status {other} is not available, claimed, completed or blocked")),
    };
    Ok(OutsideItem {
        title: required(task, "title")?,
        description: text(task, "description")?,
        priority,
        project: text(task, "project")?,
        source,
        source_ref,
        estimate,
        is_closed,
        // Only a blocked task names its blockers.
        blocked_by: Some(texts(task, "blockedBy")?.unwrap_or_default()),
        labels: given,
        on_hold: None,
        id,
    })
}

/// `github:owner/repo#7` is the source `github` with a reference. Any other source is one word.
fn source(source: Option<String>) -> (Option<String>, Option<String>) {
    match source.as_deref().and_then(|source| source.split_once(':')) {
        Some(("github", reference)) if !reference.is_empty() => {
            (Some("github".to_owned()), Some(reference.to_owned()))
        }
        _ => (source, None),
    }
}

fn text(task: &Node, key: &str) -> std::result::Result<Option<String>, String> {
    match task.get(key) {
        None => Ok(None),
        Some(node) if node.is_null() => Ok(None),
        Some(node) => {
            let text = node.text().ok_or_else(|| format!("{key} in line {} is not a text", node.line))?;
            Ok(Some(text.to_owned()))
        }
    }
}

fn required(task: &Node, key: &str) -> std::result::Result<String, String> {
    let text = text(task, key)?.filter(|text| !text.trim().is_empty());
    text.ok_or_else(|| format!("it has no {key}"))
}

/// A list of texts; one text is a list too.
fn texts(task: &Node, key: &str) -> std::result::Result<Option<Vec<String>>, String> {
    let Some(node) = task.get(key).filter(|node| !node.is_null()) else { return Ok(None) };
    let Some(items) = node.items() else { return Ok(text(task, key)?.map(|text| vec![text])) };
    let texts = items.iter().map(|item| {
        item.text().map(str::to_owned).ok_or_else(|| format!("{key} in line {} has no text", item.line))
    });
    texts.collect::<std::result::Result<_, _>>().map(Some)
}

#[cfg(test)]
mod tests {
    use blackboard::work::Priority;

    use super::*;

    #[test]
    fn tasks_of_the_sample_are_read() {
        let file = read(include_str!("../../tests/fixtures/trackers/tasks.yaml")).unwrap();
        assert_eq!(file.problems, []);
        let [claimed, available, blocked] = &file.items[..] else { panic!("{file:?}") };
        assert_eq!(
            (&*claimed.id, claimed.source.as_deref(), claimed.source_ref.as_deref(), claimed.estimate),
            ("collab-pr-56", Some("github"), Some("mellanon/pai-collab#56"), Some(30_000))
        );
        assert_eq!((available.priority, &available.blocked_by), (Some(Priority::P2), &Some(vec![])));
        assert_eq!(blocked.blocked_by.as_deref(), Some(&["collab-pr-56".to_owned()][..]));
        assert_eq!((blocked.source.as_deref(), blocked.is_closed), (Some("local"), false));
    }

    #[test]
    fn damaged_tasks_are_reported_with_their_line() {
        let file =
            read("tasks:\n  - id: a\n    title: A\n  - title: B\n  - text\n  - id: c\n    title: [x]\n")
                .unwrap();
        assert_eq!((file.items.len(), file.unread), (1, 3));
        let problems: Vec<_> = file.problems.iter().map(|one| (one.line, one.problem.as_str())).collect();
        assert_eq!(
            problems,
            [(4, "it has no id"), (5, "it is not a mapping"), (6, "title in line 7 is not a text")]
        );
    }

    #[test]
    fn what_is_not_a_list_of_tasks_is_refused() {
        testkit::limit_test();
        let level = |level: u32| {
            format!("a{level}: &a{level} [{}]\n", vec![format!("*a{}", level - 1); 10].join(","))
        };
        let levels = (1..12).map(level).collect::<Vec<_>>().concat();
        let bomb = format!("a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n{levels}tasks: *a11\n");
        let deep = format!("tasks: {}", "[".repeat(100_000));
        for text in ["", "[]", "tasks: 7", "tasks: [", "other: []", &bomb, &deep] {
            assert_eq!(read(text).unwrap_err().code(), Code::InvalidValue, "{}", &text[..text.len().min(40)]);
        }
        assert_eq!(read("tasks:\n").unwrap(), TrackerFile::default());
    }
}
