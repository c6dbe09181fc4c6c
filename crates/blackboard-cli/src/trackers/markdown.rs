//! A Markdown task list: `- [ ]` is an open item, `- [x]` a closed one.
//!
//! Indented lines below an item are its description. Nested tasks are items of their own, and text in code blocks is not read.
//! The id of an item is made from the key of its file and its text, so that the same line is the same item in every import,
//! wherever it is in the file. An item that the board wrote has its fields in a comment behind the title, which is not displayed:
//! `- [ ] Ship it <!-- blackboard {"id":"ship","priority":"P1"} -->`. Its description is quoted (`> …`), and exact. A comment that
//! is not complete is a problem, because the id of the item would be another one.

use std::collections::HashMap;

use blackboard::text::{escape_for_terminal, escape_json_for_terminal};
use blackboard::work::OutsideItem;
use serde_json::Value;

use super::TrackerFile;
use super::jsonl;

/// What the comment behind a title begins with.
const COMMENT: &str = "<!-- blackboard {";

/// What the comment of the board is recognized by, even if the rest of it is damaged.
const MARK: &str = "<!-- blackboard";

/// The member of a comment that says that the quoted lines have escapes.
const ESCAPED: &str = "escaped";

/// The most characters of the words in an id.
const LONGEST_WORDS: usize = 60;

/// Reads the items of the list with this [key](super::list_key).
pub fn read(text: &str, key: &str) -> TrackerFile {
    let mut file = TrackerFile::default();
    let mut ids = Ids { key, counts: HashMap::new() };
    let mut fence: Option<&str> = None;
    let mut open: Option<Task> = None;
    for (index, line) in text.trim_start_matches('\u{feff}').lines().enumerate() {
        let trimmed = line.trim_start();
        let indent = line.len() - trimmed.len();
        if let Some(mark) = fence {
            if trimmed.trim_end().chars().all(|letter| mark.contains(letter)) && trimmed.starts_with(mark) {
                fence = None;
            }
            continue_with(&mut open, indent, line);
            continue;
        }
        if let Some(mark) = ["```", "~~~"].into_iter().find(|mark| trimmed.starts_with(mark)) {
            fence = Some(mark);
            continue_with(&mut open, indent, line);
        } else if let Some((is_closed, rest)) = task(trimmed) {
            finish(&mut file, open.take(), &mut ids);
            open = Some(Task { line: index + 1, indent, is_closed, rest, description: Vec::new() });
        } else {
            let is_outside = !trimmed.is_empty() && open.as_ref().is_some_and(|task| indent <= task.indent);
            if is_outside {
                finish(&mut file, open.take(), &mut ids);
            }
            continue_with(&mut open, indent, line);
        }
    }
    finish(&mut file, open, &mut ids);
    file
}

/// A task whose description may go on.
struct Task<'t> {
    line: usize,
    indent: usize,
    is_closed: bool,
    rest: &'t str,
    description: Vec<&'t str>,
}

/// The rest of a line that begins a task, and whether the task is closed.
fn task(line: &str) -> Option<(bool, &str)> {
    let rest = line.strip_prefix(['-', '*', '+']).or_else(|| {
        let digits =
            line.find(|letter: char| !letter.is_ascii_digit()).filter(|&count| (1..=9).contains(&count))?;
        line[digits..].strip_prefix(['.', ')'])
    })?;
    let rest = rest.strip_prefix(' ')?.trim_start();
    let is_closed = match rest.get(..3)? {
        "[ ]" => false,
        "[x]" | "[X]" => true,
        _ => return None,
    };
    let title = rest[3..].strip_prefix([' ', '\t'])?;
    Some((is_closed, title.trim()))
}

/// Adds a line to the description of the task, if there is one.
fn continue_with<'t>(open: &mut Option<Task<'t>>, indent: usize, line: &'t str) {
    if let Some(task) = open
        && (line.trim().is_empty() || indent > task.indent)
    {
        task.description.push(line);
    }
}

fn finish(file: &mut TrackerFile, task: Option<Task<'_>>, ids: &mut Ids<'_>) {
    let Some(task) = task else { return };
    let (title, comment) = split_comment(task.rest);
    if comment.is_none() && has_broken_comment(title) {
        let problem = "its comment <!-- blackboard … --> is not complete, or not at the end of the line";
        return file.add(task.line, Err(problem.to_owned()));
    }
    let (mut item, is_escaped) = match comment.map(fields).transpose() {
        Ok(fields) => fields.unwrap_or_default(),
        Err(problem) => return file.add(task.line, Err(format!("its comment cannot be read: {problem}"))),
    };
    let description = description(&task, is_escaped);
    if item.title.is_empty() {
        title.clone_into(&mut item.title);
    }
    if item.title.is_empty() {
        return file.add(task.line, Err("it has no title".to_owned()));
    }
    if item.id.is_empty() {
        item.id = ids.generate(&item.title);
    }
    item.is_closed = task.is_closed;
    item.description = Some(description.unwrap_or_default());
    file.add(task.line, Ok(item));
}

/// The title, and the JSON object of the comment behind it. The JSON has no `<`, so the last comment is the right one.
fn split_comment(rest: &str) -> (&str, Option<&str>) {
    let comment = rest.rfind(COMMENT).zip(rest.strip_suffix("-->"));
    match comment {
        Some((start, before)) if start + COMMENT.len() <= before.len() => {
            (rest[..start].trim_end(), Some(before[start + COMMENT.len() - 1..].trim_end()))
        }
        _ => (rest, None),
    }
}

/// Whether a title without a comment has a part of one: a damaged one, or the beginning of one at its end.
fn has_broken_comment(title: &str) -> bool {
    let is_cut_off = |start: usize| start > 1 && MARK.starts_with(&title[start..]);
    title.contains(MARK) || title.rfind("<!").is_some_and(is_cut_off)
}

/// The fields of a comment: those of a line of JSON, of which none is needed. Also whether the description has escapes.
fn fields(json: &str) -> Result<(OutsideItem, bool), String> {
    let mut object: serde_json::Map<String, Value> =
        serde_json::from_str(json).map_err(|error| error.to_string())?;
    let is_escaped = object.remove(ESCAPED) == Some(Value::Bool(true));
    let has_title = object.contains_key("title");
    // These two may be missing here.
    object.entry("id").or_insert_with(|| "-".into());
    object.entry("title").or_insert_with(|| "-".into());
    let mut read = jsonl::read(&Value::Object(object).to_string());
    let item = read.items.pop();
    let mut item = item.ok_or_else(|| read.problems.pop().map_or(String::new(), |one| one.problem))?;
    if item.id == "-" {
        item.id.clear();
    } else {
        // The board leaves out empty lists.
        item.labels.get_or_insert_default();
        item.blocked_by.get_or_insert_default();
    }
    if !has_title {
        item.title.clear();
    }
    Ok((item, is_escaped))
}

/// The indented lines without their common indent. Quoted lines (`> …`) are what the board writes, and exact.
fn description(task: &Task<'_>, is_escaped: bool) -> Option<String> {
    let mut lines = &task.description[..];
    let is_quoted = |line: &&&str| line.trim_start().starts_with('>');
    let is_blank = |line: &&&str| line.trim().is_empty();
    if lines.iter().any(|line| is_quoted(&line))
        && lines.iter().all(|line| is_quoted(&line) || is_blank(&line))
    {
        let quoted = lines.iter().filter(is_quoted).map(|line| {
            let text = line.trim_start().strip_prefix('>').unwrap_or_default();
            text.strip_prefix(' ').unwrap_or(text)
        });
        let text = quoted.collect::<Vec<_>>().join("\n");
        return Some(if is_escaped { without_escapes(&text) } else { text });
    }
    while let [first, rest @ ..] = lines
        && first.trim().is_empty()
    {
        lines = rest;
    }
    while let [rest @ .., last] = lines
        && last.trim().is_empty()
    {
        lines = rest;
    }
    let indents =
        lines.iter().filter(|line| !line.trim().is_empty()).map(|line| line.len() - line.trim_start().len());
    let indent = indents.min()?;
    Some(lines.iter().map(|line| line.get(indent..).unwrap_or_default()).collect::<Vec<_>>().join("\n"))
}

/// Whether a description can be quoted as it is. A line break of another system would end its line.
fn is_plain(description: &str) -> bool {
    description.split(['\n', '\t']).all(|part| escape_for_terminal(part) == part)
}

/// The text that [`without_escapes`] reads, without hidden characters.
fn with_escapes(line: &str) -> String {
    let parts = line.split('\t').map(|part| escape_for_terminal(&part.replace('\\', r"\\")).into_owned());
    parts.collect::<Vec<_>>().join("\t")
}

/// The text of escapes as Rust has them. What is no escape stays: it was added by hand.
fn without_escapes(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\\') {
        plain.push_str(before);
        let code = after.strip_prefix("u{").and_then(|code| code.split_once('}'));
        let code = code
            .and_then(|(code, after)| Some((char::from_u32(u32::from_str_radix(code, 16).ok()?)?, after)));
        let escape = code.or_else(|| {
            let (name, after) = after.split_at_checked(1)?;
            let character = match name {
                "\\" => '\\',
                "r" => '\r',
                "t" => '\t',
                _ => return None,
            };
            Some((character, after))
        });
        let (character, after) = escape.unwrap_or(('\\', after));
        plain.push(character);
        rest = after;
    }
    plain + rest
}

/// The ids of a list.
struct Ids<'k> {
    key: &'k str,
    /// How often each name was used.
    counts: HashMap<String, usize>,
}

impl Ids<'_> {
    /// The id of the next item with this text. The same text again is another item.
    fn generate(&mut self, title: &str) -> String {
        let name = generated_name(title);
        let count = self.counts.entry(name.clone()).or_default();
        *count += 1;
        let key = self.key;
        // No name contains `#`.
        if *count == 1 { format!("md:{key}:{name}") } else { format!("md:{key}:{name}#{count}") }
    }
}

/// The words of a text, and a checksum if not all of them fit. The words contain no `~`, so no text is another one with its
/// checksum.
fn generated_name(title: &str) -> String {
    let words: Vec<String> = title
        .split(|letter: char| !letter.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect();
    let all = words.join("-");
    if !all.is_empty() && all.chars().count() <= LONGEST_WORDS {
        return all;
    }
    let beginning: String = all.chars().take(LONGEST_WORDS).collect();
    let checksum = uuid::Uuid::new_v5(&uuid::Uuid::NAMESPACE_OID, title.as_bytes()).as_fields().0;
    format!("{}~{checksum:08x}", beginning.trim_end_matches('-'))
}

/// The items as a task list that [`read`] reads.
pub fn write(items: &[OutsideItem]) -> Result<String, serde_json::Error> {
    let mut lines = vec!["# Work items".to_owned(), String::new()];
    for item in items {
        let title = &*escape_for_terminal(item.title.trim());
        let description = item.description.as_deref();
        let is_plain = description.is_none_or(is_plain);
        let mut object = serde_json::to_value(jsonl::Line::of(item))?;
        if let Value::Object(fields) = &mut object {
            fields.remove("status");
            fields.remove("description");
            if title == item.title && !title.is_empty() && split_comment(title).1.is_none() {
                fields.remove("title");
            }
            fields.retain(|_, value| *value != Value::Array(Vec::new()));
            if !is_plain {
                fields.insert(ESCAPED.to_owned(), true.into());
            }
        }
        // Without these, a value cannot end the comment or begin another one.
        let comment =
            escape_json_for_terminal(&object.to_string()).replace('<', "\\u003c").replace('>', "\\u003e");
        let mark = if item.is_closed { 'x' } else { ' ' };
        lines.push(format!("- [{mark}] {title} <!-- blackboard {comment} -->"));
        for line in description.iter().flat_map(|description| description.split('\n')) {
            let line = if is_plain { line } else { &with_escapes(line) };
            lines.push(format!("  > {line}"));
        }
    }
    lines.push(String::new());
    Ok(lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use blackboard::work::{Create, ExportItems, ImportItems, ImportedAs, Priority};
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn items_of_the_sample_are_read() {
        testkit::limit_test();
        let file = read(include_str!("../../tests/fixtures/trackers/tasks.md"), "key");
        assert_eq!(file.problems, []);
        let items: Vec<_> = file
            .items
            .iter()
            .map(|item| (item.id.as_str(), item.is_closed, item.description.as_deref().unwrap_or_default()))
            .collect();
        assert_eq!(
            items,
            [
                (
                    "md:key:fix-the-login",
                    false,
                    "It fails with an empty password.\n\nSee the log:\n\n```\n- [ ] not a task\n```"
                ),
                ("md:key:write-a-test-for-it", true, ""),
                ("md:key:fix-the-login#2", false, ""),
                ("md:key:ärger-mit-ümläuten", false, ""),
                ("md:key:release-1-2", false, ""),
            ]
        );
    }

    #[test]
    fn the_id_depends_on_the_list_and_the_text_alone() {
        testkit::limit_test();
        let ids = |text: &str| -> Vec<String> {
            read(text, "1a2b").items.into_iter().map(|item| item.id).collect()
        };
        assert_eq!(ids("- [ ] A b\n- [ ] C"), ["md:1a2b:a-b", "md:1a2b:c"]);
        assert_eq!(ids("# Later\n\n* [x] C\n1. [ ] A  b!"), ["md:1a2b:c", "md:1a2b:a-b"]);
        assert_eq!(read("- [ ] C", "other").items[0].id, "md:other:c");
        let long = "word ".repeat(30);
        let [one, other] =
            [format!("- [ ] {long} 1"), format!("- [ ] {long} 2")].map(|text| ids(&text).remove(0));
        assert!(one != other && one.chars().count() <= 80, "{one} {other}");
        assert_eq!(ids("- [] a\n- [y] b\n-[ ] c\n- [ ]d\ntext - [ ] e\n- [ ]"), [""; 0]);
    }

    #[test]
    fn no_text_has_the_id_of_another_one() {
        testkit::limit_test();
        let mut text =
            "- [ ] Fix the login\n- [ ] Fix the login 2\n- [ ] Fix the login#2\n- [ ] !?\n".repeat(2);
        // What the ids of these would be without a separator that texts do not have.
        for line in text.clone().lines() {
            let name = Ids { key: "k", counts: HashMap::new() }.generate(&line[6..]);
            text.extend(["- [ ] ", &name["md:k:".len()..], "\n- [ ] ", &name, "#2\n"]);
        }
        let items = read(&text, "k").items;
        let ids: std::collections::BTreeSet<_> = items.iter().map(|item| &item.id).collect();
        assert_eq!((items.len(), ids.len()), (24, 24), "{ids:?}");
    }

    #[test]
    fn written_lists_are_read_as_the_same_items() {
        testkit::limit_test();
        let item = |id: &str, title: &str, description: Option<&str>| OutsideItem {
            id: id.to_owned(),
            title: title.to_owned(),
            description: Some(description.unwrap_or_default().to_owned()),
            labels: Some(Vec::new()),
            blocked_by: Some(Vec::new()),
            priority: Some(Priority::P1),
            source: Some("local".to_owned()),
            ..OutsideItem::default()
        };
        let items = vec![
            item("a", "Plain", None),
            item(
                "b",
                "With <!-- blackboard {\"id\":\"x\"} -->",
                Some("one\n\n- [ ] two\n> three\n  four\n\n"),
            ),
            item("c", " spaces ", Some("\n")),
            OutsideItem {
                project: Some("p-->q".to_owned()),
                source_ref: Some("<r>".to_owned()),
                labels: Some(vec!["x".to_owned()]),
                blocked_by: Some(vec!["a".to_owned()]),
                estimate: Some(5),
                is_closed: true,
                ..item("d", "- [ ] nested?", Some("```\nopen code block"))
            },
        ];
        let read = read(&write(&items).unwrap(), "key");
        assert_eq!((read.problems, read.items), (vec![], items));
    }

    #[test]
    fn any_description_of_a_board_survives_an_export_and_an_import() {
        testkit::limit_test();
        let piece = prop_oneof![
            3 => proptest::sample::select(vec![
                "\t", "\n", "\r", "\r\n", " ", "\u{a0}", "\\", r"\t", r"\\", r"\u{9}", "\u{b}", "\u{85}", "\u{2028}",
                "\u{202e}", "\u{feff}", "\u{200d}", "> ", "- [ ] x", "```", "~~~", "<!-- blackboard {", "-->", "}", "a",
            ]).prop_map(str::to_owned),
            1 => any::<char>().prop_map(String::from),
        ];
        let description = proptest::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat());
        let run = |description: &str| {
            let board = blackboard::Board::memory();
            let given = Some(description.to_owned());
            let create = Create { description: given, ..Create::new("x", "X") };
            // What looks like a credential is refused.
            let Ok(created) = board.work().create(&create) else { return };
            let exported = board.work().export(&ExportItems::default()).unwrap();
            let file = read(&write(&exported).unwrap(), "key");
            assert_eq!((file.problems, file.items.len()), (vec![], 1), "{description:?}");
            let import = ImportItems {
                items: file.items,
                from: "markdown".into(),
                adopt: true,
                ..ImportItems::default()
            };
            assert_eq!(board.work().import(&import).unwrap()[0].outcome, ImportedAs::Updated);
            let item = board.work().status("x").unwrap().item;
            // An empty one is none.
            let [before, after] = [created.item.description, item.description].map(Option::unwrap_or_default);
            assert_eq!(after, before, "{description:?}");
        };
        run("all:\n\tmake");
        proptest!(ProptestConfig::with_cases(256), |(description in description)| run(&description));
    }

    #[test]
    fn escapes_that_were_written_by_hand_stay() {
        testkit::limit_test();
        for (text, expected) in [
            (r"a\\b\t\r\u{2028}", "a\\b\t\r\u{2028}"),
            (r"C:\dir \u{zz} \u{110000} \é \", r"C:\dir \u{zz} \u{110000} \é \"),
        ] {
            assert_eq!(without_escapes(text), expected);
        }
    }

    #[test]
    fn an_item_whose_comment_is_cut_off_or_not_at_the_end_is_reported() {
        testkit::limit_test();
        let whole = "- [ ] two <!-- blackboard {\"id\":\"two\"} -->";
        let title = "- [ ] two <".len();
        for end in title + 1..whole.len() {
            for line_end in ["", "\n", "\r\n"] {
                let text = format!("- [ ] one{line_end}\n{}{line_end}", &whole[..end]);
                let file = read(&text, "key");
                let problem_lines: Vec<_> = file.problems.iter().map(|one| one.line).collect();
                assert_eq!((file.items.len(), file.unread), (1, 1), "{text:?}");
                assert_eq!(problem_lines, [text.trim_end().lines().count()], "{text:?}");
            }
        }
        assert_eq!(read(&format!("{whole} more"), "key").unread, 1);
        assert_eq!(read(whole, "key").items[0].id, "two");
    }

    #[test]
    fn damaged_comments_are_reported() {
        testkit::limit_test();
        let file = read(
            "- [ ] a <!-- blackboard {x} -->\n- [ ] b <!-- blackboard {\"labels\":7} -->\n- [ ] c <!-- note -->",
            "key",
        );
        assert_eq!((file.items.len(), file.unread), (1, 2));
        assert_eq!(file.items[0].title, "c <!-- note -->");
    }
}
