//! The form of a configuration, so that a wrong value is refused with its key, in plain words.

use serde_json::{Map, Value};

use crate::text::shown;

/// What a value may be.
enum Shape {
    /// An object with these members only.
    Members(&'static [(&'static str, Shape)]),
    /// An object whose members have any names.
    Any(&'static Shape),
    Text,
    /// One of these texts.
    OneOf(&'static [&'static str]),
    Number,
    WholeNumber,
    Numbers,
    /// A whole number that has to be there.
    Required,
}

const CONFIG: Shape = Shape::Members(&[
    ("enforce", Shape::OneOf(&["warn", "deny"])),
    ("cacheReadFactor", Shape::Number),
    ("cacheWriteFactor", Shape::Number),
    ("server", Shape::Text),
    ("defaultProvider", Shape::Text),
    ("models", Shape::Any(&Shape::Text)),
    ("providers", Shape::Any(&PROVIDER)),
]);

const PROVIDER: Shape = Shape::Members(&[
    ("tier", Shape::Text),
    (
        "rateLimit",
        Shape::Members(&[("tokensPerMinute", Shape::WholeNumber), ("requestsPerMinute", Shape::WholeNumber)]),
    ),
    ("windows", Shape::Any(&Shape::Members(&[("budget", Shape::Required)]))),
    (
        "reservation",
        Shape::Members(&[
            ("operator", Shape::WholeNumber),
            (
                "agents",
                Shape::Members(&[("maxConcurrent", Shape::WholeNumber), ("maxPerAgent", Shape::WholeNumber)]),
            ),
        ]),
    ),
    ("warnAt", Shape::Numbers),
]);

/// What is wrong with the form of a configuration.
pub(super) fn problem(config: &Value) -> Option<String> {
    CONFIG.problem("", config)
}

impl Shape {
    fn problem(&self, key: &str, value: &Value) -> Option<String> {
        let is = |expected: &str| Some(format!("{} is not {expected}", name_of(key)));
        match self {
            Shape::Members(members) => match value {
                Value::Object(object) => members_problem(members, key, object),
                _ => is("an object"),
            },
            Shape::Any(member) => match value {
                Value::Object(object) => {
                    object.iter().find_map(|(name, value)| member.problem(&below(key, name), value))
                }
                _ => is("an object"),
            },
            Shape::Text if value.is_string() => None,
            Shape::Text => is("a text"),
            Shape::OneOf(texts) if value.as_str().is_some_and(|text| texts.contains(&text)) => None,
            Shape::OneOf(texts) => is(&texts.join(" or ")),
            Shape::Number if value.is_number() => None,
            Shape::Number => is("a number"),
            Shape::WholeNumber | Shape::Required if value.is_u64() => None,
            Shape::WholeNumber | Shape::Required => is("a whole number"),
            Shape::Numbers => match value {
                Value::Array(items) if items.iter().all(Value::is_number) => None,
                _ => is("a list of numbers"),
            },
        }
    }
}

fn members_problem(
    members: &[(&'static str, Shape)],
    key: &str,
    object: &Map<String, Value>,
) -> Option<String> {
    for (name, value) in object {
        let Some((_, shape)) = members.iter().find(|(known, _)| known == name) else {
            let known: Vec<_> = members.iter().map(|(known, _)| *known).collect();
            let of = if key.is_empty() { String::new() } else { format!("{key}: ") };
            return Some(format!("{of}unknown field `{}`; known: {}", shown(name), known.join(", ")));
        };
        if let Some(problem) = shape.problem(&below(key, name), value) {
            return Some(problem);
        }
    }
    let is_missing =
        |(name, shape): &&(&str, Shape)| matches!(shape, Shape::Required) && !object.contains_key(*name);
    let (missing, _) = members.iter().find(is_missing)?;
    Some(format!("{} has no {missing}", name_of(key)))
}

fn below(key: &str, name: &str) -> String {
    let name = shown(name);
    if key.is_empty() { name } else { format!("{key}.{name}") }
}

/// The key, or what all of it is.
fn name_of(key: &str) -> &str {
    if key.is_empty() { "quota" } else { key }
}
