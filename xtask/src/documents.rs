//! Checks that the documents for developers name files, functions and types that exist.

use std::fs;
use std::path::{Path, PathBuf};

use crate::guarantees::{root, sources};

const DOCUMENTS: [&str; 2] = ["ARCHITECTURE.md", "CONTRIBUTING.md"];

/// The placeholders of the recipes in CONTRIBUTING.md, and an example of each.
const PLACEHOLDERS: [(&str, &str); 6] = [
    ("NNNN_name", "0001_ledger"),
    ("schema-N", "schema-1"),
    ("NOUN", "work"),
    ("VERB", "release"),
    ("ENGINE", "sqlite"),
    ("ID", "gemini"),
];

/// The most words of ARCHITECTURE.md without its drawing: two pages.
const MOST_WORDS: usize = 1200;

/// The most lines of README.md.
const MOST_README_LINES: usize = 120;

#[test]
fn documents_for_developers_name_existing_files_and_code() {
    testkit::limit_test();
    let mut paths: Vec<_> = DOCUMENTS.map(PathBuf::from).into();
    for part in ["README.md", "CHANGELOG.md", "crates", "docs", "xtask", ".ci", ".config"] {
        add_paths(Path::new(part), &mut paths);
    }
    let mut code = Vec::new();
    for part in ["crates", "xtask"] {
        sources(&root().join(part), &mut code);
    }
    let own = Path::new(file!()).file_name();
    let code: String =
        code.into_iter().filter(|(path, _)| path.file_name() != own).map(|(_, text)| text).collect();
    for document in DOCUMENTS {
        let text = fs::read_to_string(root().join(document)).unwrap();
        let names = names(&text);
        assert!(names.len() > 50, "{document}: {names:?}");
        for name in names {
            let exists = match &name {
                Name::Path(path) => paths.iter().any(|known| is_path_of(known, path)),
                Name::Code(name) => has_word(&code, name),
            };
            assert!(exists, "{document} has {name:?}, which does not exist");
        }
    }
}

#[test]
fn readme_has_at_most_120_lines() {
    testkit::limit_test();
    let lines = fs::read_to_string(root().join("README.md")).unwrap().lines().count();
    assert!(lines <= MOST_README_LINES, "{lines} lines");
}

#[test]
fn architecture_has_two_pages() {
    testkit::limit_test();
    let text = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let words = text.split("```").step_by(2).flat_map(str::split_whitespace);
    let words = words.filter(|word| word.contains(char::is_alphanumeric)).count();
    assert!(words <= MOST_WORDS, "{words} words");
}

#[test]
fn names_are_paths_or_code_with_examples_for_placeholders() {
    let text = "Write `NOUN/{a,b}.rs`, `src/web/` and `fn decide`.\n```\nnot `this.rs`\n```\n`Board::commit`, \
                `record!`, `limit_test`, `cargo xtask test`, `README.md`, `--json`, `/w`, `work`";
    let path = |text: &str| Name::Path(text.to_owned());
    let code = |text: &str| Name::Code(text.to_owned());
    assert_eq!(
        names(text),
        [
            path("work/a.rs"),
            path("work/b.rs"),
            path("src/web/"),
            code("commit"),
            code("record"),
            code("limit_test"),
            path("README.md")
        ]
    );
    assert!(is_path_of(Path::new("docs/decisions/0017-gaps.md"), "decisions/0017"));
    assert!(!is_path_of(Path::new("docs/decisions/00170.md"), "decisions/0017"));
    assert!(is_path_of(Path::new("crates/a/src/web"), "src/web/"));
    assert!(!is_path_of(Path::new("crates/a/web/open.rs"), "eb/open.rs"));
    assert!(has_word("fn limit_test()", "limit_test") && !has_word("fn limit_tests()", "limit_test"));
}

/// What a document names.
#[derive(Debug, PartialEq)]
enum Name {
    /// A file or a directory: the end of its path.
    Path(String),
    /// A function, type, constant, macro or module.
    Code(String),
}

/// The names in a Markdown text, which are between backquotes. Commands and other text are left out.
fn names(text: &str) -> Vec<Name> {
    let outside_of_blocks = text.split("```").step_by(2);
    let quoted = outside_of_blocks.flat_map(|part| part.split('`').skip(1).step_by(2));
    quoted.flat_map(named).collect()
}

fn named(quoted: &str) -> Vec<Name> {
    let mut text = quoted.to_owned();
    for (placeholder, example) in PLACEHOLDERS {
        text = text.replace(placeholder, example);
    }
    if text.contains(char::is_whitespace) || text.starts_with(['/', '-']) {
        return Vec::new();
    }
    if text.contains('/') || has_extension(&text) {
        return alternatives(&text).into_iter().map(Name::Path).collect();
    }
    let name = text.trim_end_matches('!').rsplit("::").next().unwrap_or(&text);
    let is_identifier = !name.is_empty() && name.chars().all(is_of_identifier);
    // A word without any of these is a word of the text, of a command or of a file.
    let is_code = text.contains(['_', ':', '!']) || name.contains(char::is_uppercase);
    if is_identifier && is_code { vec![Name::Code(name.to_owned())] } else { Vec::new() }
}

fn has_extension(text: &str) -> bool {
    [".rs", ".md", ".toml", ".js", ".sql", ".snap", ".jsonl"].iter().any(|end| text.ends_with(end))
}

/// The paths that a pattern such as `src/{open,session}.rs` stands for.
fn alternatives(pattern: &str) -> Vec<String> {
    let Some((before, rest)) = pattern.split_once('{') else { return vec![pattern.to_owned()] };
    let Some((inside, after)) = rest.split_once('}') else { return vec![pattern.to_owned()] };
    inside.split(',').flat_map(|one| alternatives(&format!("{before}{one}{after}"))).collect()
}

/// Every file and directory of the repository from a path on.
fn add_paths(path: &Path, found: &mut Vec<PathBuf>) {
    let full = root().join(path);
    if full.is_dir() {
        for entry in fs::read_dir(full).unwrap() {
            add_paths(&path.join(entry.unwrap().file_name()), found);
        }
    }
    found.push(path.to_owned());
}

/// Whether this is the file or directory with that name. A decision is named by its number alone.
fn is_path_of(known: &Path, name: &str) -> bool {
    let name = Path::new(name.trim_end_matches("*.rs"));
    let number = name.file_name().filter(|number| number.len() == 4).and_then(|number| number.to_str());
    let is_decision = number.is_some_and(|number| {
        let file = known.file_name().unwrap_or_default().to_string_lossy();
        file.starts_with(&format!("{number}-"))
            && known.parent().zip(name.parent()).is_some_and(|(known, name)| known.ends_with(name))
    });
    known.ends_with(name) || is_decision
}

fn has_word(code: &str, word: &str) -> bool {
    code.match_indices(word).any(|(place, _)| {
        let after = &code[place + word.len()..];
        !code[..place].ends_with(is_of_identifier) && !after.starts_with(is_of_identifier)
    })
}

fn is_of_identifier(character: char) -> bool {
    character == '_' || character.is_alphanumeric()
}
