//! The key `quota`: an object that the library parses ([`quota::Config`]).
//!
//! A mistake in the file must not remove a limit: if claims are refused without it, or if that cannot be known, all of them
//! are refused until it is corrected.

use std::path::Path;

use blackboard::quota::{self, Enforcement};
use jsonc_parser::JsonValue;
use serde_json::Value;

use super::Config;
use super::file::{ConfigFile, Origin, printable};

/// The name of the key.
pub(super) const KEY: &str = "quota";

/// A quota that is not valid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct InvalidQuota {
    /// The file that has it.
    pub(crate) file: String,
    /// What is wrong with it.
    pub(crate) reason: String,
    /// Whether claims are refused because of it.
    pub(crate) denies: bool,
}

/// Applies the value, and returns warnings about what is ignored.
pub(super) fn apply(value: JsonValue<'_>, file: ConfigFile<'_>, config: &mut Config) -> Vec<String> {
    let value = to_json(value);
    let denies = denies(&value);
    if !value.is_object() {
        note(file, "it must be an object", denies, config);
        return vec!["quota must be an object (default none), so this value is ignored".to_owned()];
    }
    let parsed = match file.origin {
        Origin::Home => quota::Config::from_json(value),
        Origin::Project => quota::Config::of_project(value),
    };
    let parsed = match parsed {
        Ok(parsed) => parsed,
        Err(error) => {
            note(file, &error.to_string(), denies, config);
            return vec![format!("quota is ignored: {error}")];
        }
    };
    match (file.origin, &mut config.quota) {
        (Origin::Home, quota) => {
            *quota = Some(Box::new(parsed));
            Vec::new()
        }
        // A clone must not cause that a ledger is created.
        (Origin::Project, None) => {
            vec!["quota has no effect: the home configuration does not have it".to_owned()]
        }
        (Origin::Project, Some(home)) => {
            let reasons = home.restrict(&parsed).into_iter();
            reasons.map(|reason| format!("quota.{reason}, so it is ignored here")).collect()
        }
    }
}

/// Considers a file that is ignored, and its text if it can be read.
pub(super) fn note_ignored_file(file: ConfigFile<'_>, reason: &str, text: Option<&str>, config: &mut Config) {
    match text {
        Some(text) if words_after_key(&without_comments(text)).next().is_none() => {}
        Some(text) => note(file, reason, text_denies(text), config),
        // A user who has never had a quota has no ledger.
        None if file.origin == Origin::Home && has_ledger_beside(file.path) => {
            note(file, reason, true, config);
        }
        None => {}
    }
}

/// Considers a key that is probably meant to be this one.
pub(super) fn note_unknown_key(
    file: ConfigFile<'_>,
    problem: &str,
    value: JsonValue<'_>,
    config: &mut Config,
) {
    let value = to_json(value);
    if value.is_object() {
        note(file, problem, denies(&value), config);
    }
}

/// Notes that the quota of a file is not valid. That of a project matters only if the home configuration has a quota, and if
/// a limit may be missing without it.
fn note(file: ConfigFile<'_>, reason: &str, denies: bool, config: &mut Config) {
    let denies = match (file.origin, &config.quota) {
        (Origin::Home, _) => denies,
        (Origin::Project, Some(home)) if denies || home.enforcement() == Enforcement::Deny => true,
        (Origin::Project, _) => return,
    };
    if config.invalid_quota.as_ref().is_none_or(|known| !known.denies) {
        let file = printable(file.path);
        config.invalid_quota = Some(InvalidQuota { file, reason: reason.to_owned(), denies });
    }
}

/// Whether a value that is not valid means that claims are refused. Only what clearly says otherwise does not.
fn denies(quota: &Value) -> bool {
    let is = |value: &Value, word: &str| value.as_str().is_some_and(|text| text == word);
    match quota {
        // A misspelled name is no reason to ignore what it says.
        Value::Object(members) => members.iter().any(|(name, value)| {
            let says_deny = value.as_str().is_some_and(|text| text.trim().eq_ignore_ascii_case("deny"));
            says_deny || (name == "enforce" && !is(value, "warn"))
        }),
        // None is wanted.
        Value::Null | Value::Bool(false) => false,
        other => {
            let text = other.to_string();
            !words(&text).any(|word| word == "warn") || words(&text).any(|word| word == "deny")
        }
    }
}

/// The same for the text of a file that has the key. A configuration without `enforce` does not refuse claims.
fn text_denies(text: &str) -> bool {
    let text = without_comments(text);
    let words: Vec<&str> = words_after_key(&text).collect();
    let is_enforce = |word: &&str| word.eq_ignore_ascii_case("enforce");
    if words.iter().any(is_enforce) {
        let mut values = words.iter().enumerate().filter(|(_, word)| is_enforce(word));
        return values.any(|(place, _)| words.get(place + 1) != Some(&"warn"));
    }
    words.iter().any(|word| word.eq_ignore_ascii_case("deny"))
}

/// The words of a text after the name of this key.
fn words_after_key(text: &str) -> impl Iterator<Item = &str> {
    words(text).skip_while(|word| !word.eq_ignore_ascii_case(KEY)).skip(1)
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|character: char| !(character.is_alphanumeric() || character == '_'))
        .filter(|word| !word.is_empty())
}

/// A text without its comments, as far as they can be found in what is no JSON. One that does not end is no comment.
fn without_comments(text: &str) -> String {
    let mut without_blocks = String::new();
    let mut rest = text;
    while let Some((before, (_, after))) =
        rest.split_once("/*").and_then(|(before, block)| Some((before, block.split_once("*/")?)))
    {
        without_blocks.push_str(before);
        without_blocks.push(' ');
        rest = after;
    }
    without_blocks.push_str(rest);
    // The slashes of a URL are not after a space.
    let is_comment = |line: &str, at: usize| line[..at].chars().next_back().is_none_or(char::is_whitespace);
    let lines = without_blocks.lines().map(|line| {
        let end = line.match_indices("//").map(|(at, _)| at).find(|at| is_comment(line, *at));
        &line[..end.unwrap_or(line.len())]
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Whether there is a token ledger in the directory of a file.
fn has_ledger_beside(file: &Path) -> bool {
    let entries = file.parent().and_then(|directory| std::fs::read_dir(directory).ok());
    entries.into_iter().flatten().flatten().any(|entry| {
        let path = entry.path();
        let name = path.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
        name.starts_with("quota") && path.extension().is_some_and(|extension| extension == "db")
    })
}

/// The same value for another parser. The depth of a value is limited by its own one.
pub(crate) fn to_json(value: JsonValue<'_>) -> Value {
    match value {
        JsonValue::String(text) => Value::String(text.into_owned()),
        JsonValue::Number(digits) => serde_json::from_str(digits).unwrap_or(Value::Null),
        JsonValue::Boolean(on) => Value::Bool(on),
        JsonValue::Null => Value::Null,
        JsonValue::Array(items) => items.into_iter().map(to_json).collect(),
        JsonValue::Object(members) => {
            members.into_iter().map(|(name, value)| (name.into_owned(), to_json(value))).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_that_is_no_configuration_denies_unless_it_clearly_warns() {
        testkit::limit_test();
        for (text, expected) in [
            (r#"{"quota": {"enforce": "deny", }"#, true),
            (r#"{"quota": {"enforce": "warn", }"#, false),
            (r#"{"quota": {"enforce": "Warn", }"#, true),
            (r#"{"quota": {"enforce": deny"#, true),
            (r#"{"quota": {"enforce": "#, true),
            (r#"{"quota": {"enfroce": "deny""#, true),
            (r#"{"quota": {"providers": {}"#, false),
            ("{\"quota\": {\n// warn: reported. deny: refused.\n\"enforce\": \"warn\",", false),
            ("{\"quota\": {\n// \"enforce\": \"deny\",\n\"providers\": {", false),
            ("{\"quota\": {/* \"enforce\": \"deny\" */ \"providers\": {", false),
            ("{\"quota\": {/* \"enforce\": \"deny\", \"providers\": {", true),
            (r#"{"quota": {"server: "redis://host", "enforce": "deny"}"#, true),
        ] {
            assert_eq!(text_denies(text), expected, "{text}");
        }
    }
}
