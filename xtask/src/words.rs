//! Counts words that the texts of this project do not use: words that hide the actor of a sentence (docs/glossary.md has the
//! words that name it), idioms, contractions and British spelling.

use std::fs;
use std::path::{Path, PathBuf};

/// The words, in two parts each, so that this file has none of them.
const BANNED: [(&str, &str); 12] = [
    ("who", "ever"),
    ("no", "body"),
    ("some", "body"),
    ("every", "body"),
    ("an", "ew"),
    ("in ", "passing"),
    ("told", " of"),
    ("taken for", " dead"),
    ("can", "'t"),
    ("all the", " same"),
    ("without a", " word"),
    ("set-", "up"),
];

/// The beginnings of words that no text has, in any form: British spelling, and "subagent" with a hyphen.
const BANNED_BEGINNINGS: [(&str, &str); 5] =
    [("colo", "ur"), ("seriali", "s"), ("summari", "s"), ("recogni", "s"), ("sub-", "agent")];

/// Files that people read: no line may have one of the words.
const READ_BY_PEOPLE: [&str; 8] = [
    "README.md",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "docs",
    "crates/blackboard/src",
    "crates/blackboard-cli/src",
    "xtask/src",
];

/// The maximum number of such lines in the rest of the tree.
const MOST_ELSEWHERE: usize = 20;

const TEXTS: [&str; 8] = ["rs", "md", "js", "html", "css", "txt", "toml", "sql"];

#[test]
fn texts_for_people_have_no_banned_word_and_the_tree_has_few() {
    testkit::limit_test();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut lines = Vec::new();
    let parts = ["README.md", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "Cargo.toml"];
    for part in parts.into_iter().chain(["crates", "docs", "xtask"]) {
        count(&root.join(part), &mut lines);
    }
    let is_read = |file: &Path| READ_BY_PEOPLE.iter().any(|part| file.starts_with(root.join(part)));
    let read: Vec<_> = lines.iter().filter(|(file, _)| is_read(file)).collect();
    assert!(read.is_empty(), "use the words of docs/glossary.md instead: {read:#?}");
    assert!(lines.len() <= MOST_ELSEWHERE, "{} lines: {lines:#?}", lines.len());
}

#[test]
fn words_are_found_alone_and_not_inside_others() {
    let word = format!("{}{}", BANNED[1].0, BANNED[1].1);
    assert!(has_banned_word(&format!("{word} knows")) && has_banned_word(&format!("(\"{word}\")")));
    assert!(!has_banned_word(&format!("{word}s knows")) && !has_banned_word("renewed, any body"));
    let beginning = format!("{}{}", BANNED_BEGINNINGS[0].0, BANNED_BEGINNINGS[0].1);
    assert!(has_banned_word(&format!("two {beginning}s")) && !has_banned_word(&format!("tri{beginning}")));
}

/// The lines below a path that have one of the words.
fn count(path: &Path, lines: &mut Vec<(PathBuf, String)>) {
    if path.is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            count(&entry.unwrap().path(), lines);
        }
        return;
    }
    if !path.extension().is_some_and(|ending| TEXTS.iter().any(|text| ending == *text)) {
        return;
    }
    let text = fs::read_to_string(path).unwrap_or_default();
    lines.extend(
        text.lines().filter(|line| has_banned_word(line)).map(|line| (path.to_owned(), line.to_owned())),
    );
}

fn has_banned_word(line: &str) -> bool {
    let line = line.to_lowercase();
    let is_letter = |character: char| character.is_alphanumeric();
    let has = |(begin, end): &(&str, &str), in_any_form: bool| {
        let word = format!("{begin}{end}");
        line.match_indices(&word).any(|(start, _)| {
            !line[..start].ends_with(is_letter)
                && (in_any_form || !line[start + word.len()..].starts_with(is_letter))
        })
    };
    BANNED.iter().any(|word| has(word, false)) || BANNED_BEGINNINGS.iter().any(|word| has(word, true))
}
