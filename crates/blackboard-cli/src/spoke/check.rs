//! Reads the fields of a mapping, and collects everything that is wrong with them.

use std::fmt::Display;

use blackboard::clock::Timestamp;
use blackboard::text::TextRules;

use crate::yaml::{self, Node, YamlError};

/// How many errors of a file are reported.
const MOST_ERRORS: usize = 100;

/// How many items of a list are read.
const MOST_ITEMS: usize = 1000;

/// A file that was read, with everything that is wrong with it.
#[derive(Clone, Debug, PartialEq)]
pub struct Checked<T> {
    /// The content. A field that is wrong is missing or empty. `None` if the file is not a YAML mapping.
    pub value: Option<T>,
    /// Why the file is invalid, in the order of the file.
    pub errors: Vec<YamlError>,
    /// What a reader may want to know although the file is valid.
    pub notes: Vec<YamlError>,
}

impl<T> Checked<T> {
    /// Reads a text with `read`, if it is a mapping.
    pub(super) fn of(text: &str, read: impl FnOnce(&mut Fields<'_, '_>) -> T) -> Checked<T> {
        let mut problems = Problems::default();
        let value = match yaml::tree(text) {
            Ok(root) if root.is_null() => {
                problems.error(&root, &"the file is empty");
                None
            }
            Ok(root) => Fields::of(&root, String::new(), &mut problems).map(|mut fields| {
                let value = read(&mut fields);
                fields.note_unknown_keys();
                value
            }),
            Err(error) => {
                problems.errors.push(error);
                None
            }
        };
        let Problems { mut errors, mut notes } = problems;
        for list in [&mut errors, &mut notes] {
            list.sort_by_key(|problem| (problem.line, problem.column));
        }
        Checked { value, errors, notes }
    }
}

/// What is wrong with a file.
#[derive(Default)]
pub(super) struct Problems {
    errors: Vec<YamlError>,
    notes: Vec<YamlError>,
}

impl Problems {
    fn error(&mut self, node: &Node, message: &dyn Display) {
        if self.errors.len() < MOST_ERRORS {
            self.errors.push(node.error(&message.to_string()));
        }
    }
}

/// Whether a field has to be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Need {
    Required,
    Optional,
}

/// The fields of one mapping.
pub(super) struct Fields<'node, 'problems> {
    node: &'node Node,
    /// The keys that lead to the mapping, each followed by a dot.
    path: String,
    asked: Vec<&'static str>,
    has_errors: bool,
    problems: &'problems mut Problems,
}

impl<'node, 'problems> Fields<'node, 'problems> {
    fn of(
        node: &'node Node,
        path: String,
        problems: &'problems mut Problems,
    ) -> Option<Fields<'node, 'problems>> {
        if !node.is_map() {
            let name = path.trim_end_matches('.');
            let name = if name.is_empty() { "the file" } else { name };
            problems.error(node, &format_args!("{name}: expected a mapping, found {}", node.kind()));
            return None;
        }
        Some(Fields { node, path, asked: Vec::new(), has_errors: false, problems })
    }

    /// The value of a key. A key without a value is missing.
    pub(super) fn node(&mut self, key: &'static str, need: Need) -> Option<&'node Node> {
        self.asked.push(key);
        let found = self.node.get(key);
        let value = found.filter(|value| !value.is_null());
        if value.is_none() && need == Need::Required {
            self.has_errors = true;
            let path = &self.path;
            self.problems
                .error(found.unwrap_or(self.node), &format_args!("{path}{key}: required, but missing"));
        }
        value
    }

    /// Adds an error about a key.
    pub(super) fn error(&mut self, node: &Node, key: &str, message: impl Display) {
        let path = &self.path;
        self.problems.error(node, &format_args!("{path}{key}: {message}"));
        self.has_errors = true;
    }

    /// The value of a mapping, unless one of its own fields is wrong or missing: it would show what the file does not say.
    pub(super) fn unless_wrong<T>(&self, value: T) -> Option<T> {
        (!self.has_errors).then_some(value)
    }

    /// Adds a note about a key.
    pub(super) fn note(&mut self, node: &Node, key: &str, message: impl Display) {
        let path = &self.path;
        if self.problems.notes.len() < MOST_ERRORS {
            self.problems.notes.push(node.error(&format!("{path}{key}: {message}")));
        }
    }

    /// One line of text, without characters that forge its display.
    pub(super) fn text(&mut self, key: &'static str, need: Need) -> Option<String> {
        self.checked_text(key, need, |_| Ok(()))
    }

    /// The same, if `check` accepts it.
    pub(super) fn checked_text(
        &mut self,
        key: &'static str,
        need: Need,
        check: impl FnOnce(&str) -> Result<(), String>,
    ) -> Option<String> {
        let node = self.node(key, need)?;
        let Some(text) = node.text().map(one_line) else {
            self.error(node, key, format_args!("expected text, found {}", node.kind()));
            return None;
        };
        if let Err(message) = check(&text) {
            self.error(node, key, message);
            return None;
        }
        self.note_other_kind(node, key);
        Some(text)
    }

    fn note_other_kind(&mut self, node: &Node, key: &str) {
        if let Some(kind) = node.other_kind() {
            self.note(node, key, format_args!("{kind} to some readers: write it in quotes"));
        }
    }

    /// One of a few words.
    pub(super) fn word(&mut self, key: &'static str, need: Need, words: &[&str]) -> Option<String> {
        self.checked_text(key, need, |text| {
            if words.contains(&text) {
                return Ok(());
            }
            Err(format!("unknown word {text}; expected {}", words.join(", ")))
        })
    }

    /// `true` or `false`.
    pub(super) fn boolean(&mut self, key: &'static str, need: Need) -> Option<bool> {
        self.parsed(key, need, "true or false", Node::boolean)
    }

    /// A whole number.
    pub(super) fn count(&mut self, key: &'static str, need: Need) -> Option<u64> {
        self.parsed(key, need, "a whole number that is not negative", Node::count)
    }

    /// A time with a zone.
    pub(super) fn time(&mut self, key: &'static str, need: Need) -> Option<Timestamp> {
        let time = |node: &Node| node.text().and_then(moment);
        self.parsed(key, need, "an ISO 8601 time with a zone", time)
    }

    fn parsed<T>(
        &mut self,
        key: &'static str,
        need: Need,
        expected: &str,
        parse: impl FnOnce(&Node) -> Option<T>,
    ) -> Option<T> {
        let node = self.node(key, need)?;
        let value = parse(node);
        if value.is_none() {
            let found =
                node.text().map_or_else(|| node.kind().to_owned(), |text| format!("\"{}\"", one_line(text)));
            self.error(node, key, format_args!("expected {expected}, found {found}"));
        }
        value
    }

    /// The fields of a mapping inside of this one.
    pub(super) fn section<T>(
        &mut self,
        key: &'static str,
        need: Need,
        read: impl FnOnce(&mut Fields<'_, '_>) -> T,
    ) -> Option<T> {
        let node = self.node(key, need)?;
        let mut fields = Fields::of(node, format!("{}{key}.", self.path), self.problems)?;
        let value = read(&mut fields);
        fields.note_unknown_keys();
        Some(value)
    }

    /// The items of a list. `read` is called for the mappings among them, and anything else is an error.
    pub(super) fn sections<T>(
        &mut self,
        key: &'static str,
        mut read: impl FnMut(&mut Fields<'_, '_>) -> Option<T>,
    ) -> Vec<T> {
        let mut values = Vec::new();
        for (number, node) in self.items(key).iter().enumerate() {
            let path = format!("{}{key}[{number}].", self.path);
            let Some(mut fields) = Fields::of(node, path, self.problems) else { continue };
            values.extend(read(&mut fields));
            fields.note_unknown_keys();
        }
        values
    }

    /// The texts of a list.
    pub(super) fn texts(&mut self, key: &'static str) -> Vec<String> {
        let mut texts = Vec::new();
        for (number, node) in self.items(key).iter().enumerate() {
            match node.text() {
                Some(text) => {
                    texts.push(one_line(text));
                    self.note_other_kind(node, &format!("{key}[{number}]"));
                }
                None => self.error(
                    node,
                    &format!("{key}[{number}]"),
                    format_args!("expected text, found {}", node.kind()),
                ),
            }
        }
        texts
    }

    /// The items of an optional list.
    pub(super) fn items(&mut self, key: &'static str) -> &'node [Node] {
        let Some(node) = self.node(key, Need::Optional) else { return &[] };
        let Some(items) = node.items() else {
            self.error(node, key, format_args!("expected a list, found {}", node.kind()));
            return &[];
        };
        if items.len() > MOST_ITEMS {
            self.error(node, key, format_args!("has {} items, at most {MOST_ITEMS} are read", items.len()));
        }
        &items[..items.len().min(MOST_ITEMS)]
    }

    fn note_unknown_keys(&mut self) {
        let unknown = self.node.entries().iter().filter(|(key, _)| !self.asked.contains(&key.text.as_str()));
        for (key, _) in unknown.take(MOST_ERRORS) {
            let message = format!("{}{}: unknown key, ignored", self.path, key.text);
            self.problems.notes.push(YamlError::new(key.line, key.column, &message));
        }
    }
}

/// The version of a schema, which all files have.
pub(super) fn schema_version(fields: &mut Fields<'_, '_>) -> Option<String> {
    fields.word("schemaVersion", Need::Required, &[super::SCHEMA_VERSION])
}

/// A moment as other programs write it: also as a day alone, which begins at 00:00 UTC.
pub(super) fn moment(text: &str) -> Option<Timestamp> {
    text.parse().ok().or_else(|| format!("{text}T00:00:00Z").parse().ok())
}

/// Text of others on one line, without characters that forge its display. Markup and what looks like a credential stay: it
/// is only shown.
pub(super) fn one_line(text: &str) -> String {
    let rules = TextRules {
        strip_code_blocks: false,
        strip_html_tags: false,
        allow_secret_looking: true,
        ..TextRules::default()
    };
    rules.summary(text).unwrap_or_default()
}
