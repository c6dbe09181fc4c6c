//! Editing `quota` in the home configuration, with its comments kept.

use std::fs::File;
use std::io::ErrorKind;
use std::path::Path;
use std::time::Duration;

use blackboard::quota::Config;
use blackboard::store::create_private_directory;
use blackboard::text::{escape_for_terminal, shell_word};
use blackboard::{Code, Error, Fault, Refusal, Result};
use jsonc_parser::cst::{CstInputValue, CstObject, CstRootNode};
use jsonc_parser::{JsonValue, parse_to_value};
use serde_json::Value;

use crate::config::{JSON_WITH_COMMENTS, printable, to_json};
use crate::disk::{self, Access};
use crate::setup::files;

const KEY: &str = "quota";
/// Held by a process that edits the configuration, and for how long another one waits for it.
const LOCK: &str = "config.lock";
const PATIENCE: Duration = Duration::from_secs(10);
const NEW_FILE: &str = "{\n}\n";
/// Stands for the example until the text is complete: a value cannot have comments.
const PLACEHOLDER: &str = "blackboard:quota:example";

/// The text of a configuration with the commented example; `None` if it has a quota already.
pub fn with_example(file: &Path, text: &str, example: &str) -> Result<Option<String>> {
    let (root, object) = parse(file, text)?;
    if object.get(KEY).is_some() {
        return Ok(None);
    }
    object.append(KEY, CstInputValue::String(PLACEHOLDER.to_owned()));
    let example = example.trim_end().replace('\n', "\n  ");
    Ok(Some(root.to_string().replace(&format!("\"{PLACEHOLDER}\""), &example)))
}

/// The text of a configuration with another value at this path in the quota. `null` removes it.
pub fn with_value(file: &Path, text: &str, path: &str, value: &Value) -> Result<String> {
    let (root, object) = parse(file, text)?;
    let Some(mut object) = object.object_value(KEY) else { return Err(super::not_configured()) };
    let mut names = names_of(path);
    let last = names.pop().filter(|last| !last.is_empty());
    let Some(last) = last.filter(|_| names.iter().all(|name| !name.is_empty())) else {
        return Err(Error::invalid("a key has names with dots between them"));
    };
    for name in names {
        object = object
            .object_value_or_create(name)
            .ok_or_else(|| Error::invalid(format!("{name} is not an object, so it has no {last}")))?;
    }
    match object.get(last) {
        Some(member) if value.is_null() => member.remove(),
        None if value.is_null() => {
            return Err(Refusal::new(
                Code::InvalidValue,
                format!("quota.{} is not set", escape_for_terminal(path)),
            )
            .hint(format!("see {}", printable(file)))
            .into());
        }
        Some(member) => member.set_value(input(value)),
        None => drop(object.append(last, input(value))),
    }
    Ok(root.to_string())
}

/// The names in a path. A pattern of a model may have dots.
fn names_of(path: &str) -> Vec<&str> {
    match path.split_once('.') {
        Some((models @ "models", pattern)) => vec![models, pattern],
        _ => path.split('.').collect(),
    }
}

/// The quota in the text of a configuration. Refuses one that is not valid.
pub fn quota_in(text: &str) -> Result<Config> {
    match parse_to_value(without_mark(text), &JSON_WITH_COMMENTS) {
        Ok(Some(JsonValue::Object(mut object))) => match object.take(KEY) {
            Some(quota) => Config::from_json(to_json(quota)),
            None => Err(super::not_configured()),
        },
        _ => Err(Error::invalid("the configuration is not a JSON object")),
    }
}

/// The text of the home configuration.
pub fn read(file: &Path) -> Result<String> {
    match files::to_edit(file) {
        Ok(found) => Ok(found.map_or_else(|| NEW_FILE.to_owned(), |found| found.text)),
        Err(error) => {
            let message = format!("{} cannot be edited: {}", printable(file), error.0);
            Err(Refusal::new(Code::UnsafePermissions, message)
                .hint("edit it by hand; see docs/quota.md")
                .into())
        }
    }
}

/// Waits until no other process edits the home configuration, and creates its directory.
pub fn lock(file: &Path) -> Result<File> {
    let directory = file.parent().unwrap_or(file);
    let locked =
        create_private_directory(directory).and_then(|_| disk::lock_within(&directory.join(LOCK), PATIENCE));
    locked.map_err(|error| match error.kind() {
        ErrorKind::WouldBlock => {
            Refusal::new(Code::Busy, "another process edits the configuration").hint("retry").into()
        }
        _ => not_written(file, error),
    })
}

/// Replaces the home configuration.
pub fn write(file: &Path, text: &str) -> Result<()> {
    disk::replace(file, Access::Private, |out| std::io::Write::write_all(out, text.as_bytes()))
        .map_err(|error| not_written(file, error))
}

fn not_written(file: &Path, error: std::io::Error) -> Error {
    let message = format!("{} cannot be written", printable(file));
    match error.kind() {
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => Refusal::new(Code::ReadOnly, message)
            .hint(format!("check the permissions: ls -ld {}", shell_word(&printable(file))))
            .into(),
        _ => Fault::new(Code::Io, message).because(error).into(),
    }
}

fn parse(file: &Path, text: &str) -> Result<(CstRootNode, CstObject)> {
    let invalid = |line: usize, problem: &str| {
        Refusal::new(Code::InvalidValue, format!("{} line {line}: {problem}", printable(file)))
            .hint("correct it by hand first")
    };
    let root = CstRootNode::parse(without_mark(text), &JSON_WITH_COMMENTS)
        .map_err(|error| invalid(error.line_display(), &error.kind().to_string()))?;
    let object =
        root.object_value_or_create().ok_or_else(|| invalid(1, "the configuration is not a JSON object"))?;
    Ok((root, object))
}

fn without_mark(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

fn input(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(on) => CstInputValue::Bool(*on),
        Value::Number(number) => CstInputValue::Number(number.to_string()),
        Value::String(text) => CstInputValue::String(text.clone()),
        Value::Array(items) => CstInputValue::Array(items.iter().map(input).collect()),
        Value::Object(members) => {
            CstInputValue::Object(members.iter().map(|(name, value)| (name.clone(), input(value))).collect())
        }
    }
}
