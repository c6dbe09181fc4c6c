//! [`Template`]: the form of a key, from which keys and patterns are built and values are read.

mod forms;

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

pub(super) use self::forms::{KeyForm, KnownValue};
use super::escape::{Colons, escape, unescape};
use crate::entry::{ABSOLUTE_PREFIX, check_key, check_pattern};
use crate::error::{Code, Error, Refusal, Result};
use crate::store::record::{Cell, Column, StoredCell};
use crate::text::shown;

/// The most bytes of a template.
pub const MAX_TEMPLATE_BYTES: usize = 512;
/// The most parts of a template.
const MAX_PARTS: usize = 32;

/// The values of a key, by their names.
pub type Values = BTreeMap<String, String>;

/// The form of a key: parts with colons between them. A part is a word, or a value in braces.
///
/// | Part | Meaning |
/// |---|---|
/// | `request` | this word |
/// | `{id}` | a value |
/// | `{ns?}` | a value that may be missing, together with one of its colons |
/// | `{id...}` | the rest of the key, colons included; only at the end |
///
/// A template begins with a word, so that a value never looks like the name of a scope. It has at most one value that
/// may be missing or is the rest, so that a key has one meaning: the number of its parts decides.
///
/// Values may be any text. What a key cannot contain is escaped as in a URL, and the empty text is `%`. So
/// [`parse`](Template::parse) returns exactly what was given to [`key`](Template::key).
///
/// ```
/// use blackboard::protocol::Template;
///
/// let request = Template::new("request:run:{ns?}:{id}")?;
/// let key = request.key(&[("ns", "compliance"), ("id", "a:b")])?;
/// assert_eq!(key, "request:run:compliance:a%3Ab");
/// assert_eq!(request.parse(&key).unwrap()["id"], "a:b");
/// assert_eq!(request.key(&[("id", "req_abc")])?, "request:run:req_abc");
/// assert_eq!(request.pattern(&[("ns", "compliance")])?, "request:run:compliance:*");
/// # Ok::<(), blackboard::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    text: String,
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Word(String),
    Value { name: String, kind: Kind },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Required,
    Optional,
    Rest,
}

impl Kind {
    fn colons(self) -> Colons {
        if self == Kind::Rest { Colons::Keep } else { Colons::Escape }
    }
}

impl Template {
    /// Reads a template.
    pub fn new(text: &str) -> Result<Template> {
        let invalid = |problem: &str, hint: &'static str| {
            let message = format!("the template {problem}: \"{}\"", shown(text));
            Err(Refusal::new(Code::InvalidValue, message).hint(hint).into())
        };
        if text.is_empty() {
            return invalid("is empty", "write words and values, such as \"review:{id}\"");
        }
        if text.len() > MAX_TEMPLATE_BYTES {
            return invalid(&format!("has more than {MAX_TEMPLATE_BYTES} bytes"), "shorten it");
        }
        let mut parts = Vec::new();
        for part in text.split(':') {
            match read_part(part) {
                Some(part) => parts.push(part),
                None if part.is_empty() => {
                    return invalid("has an empty part", "write a word or a {value} between two colons");
                }
                None => {
                    let problem = format!("has the part \"{}\"", shown(part));
                    let hint = "a part is a word, {name}, {name?} or {name...}, with a name of letters, digits and _";
                    return invalid(&problem, hint);
                }
            }
        }
        if parts.len() > MAX_PARTS {
            return invalid(&format!("has more than {MAX_PARTS} parts"), "shorten it");
        }
        match parts.first() {
            Some(Part::Word(word)) if Some(word.as_str()) == ABSOLUTE_PREFIX.strip_suffix(':') => {
                return invalid("begins with the name of a scope", "begin with another word");
            }
            Some(Part::Word(_)) => {}
            _ => return invalid("begins with a value", "begin with a word, such as \"review:{id}\""),
        }
        let values = || parts.iter().filter_map(Part::value);
        let mut names: Vec<_> = values().map(|(name, _)| name).collect();
        names.sort_unstable();
        if names.windows(2).any(|pair| pair[0] == pair[1]) {
            return invalid("has two values of the same name", "give each value a name of its own");
        }
        let unlike_others: Vec<_> = values().filter(|(_, kind)| *kind != Kind::Required).collect();
        if unlike_others.len() > 1 {
            return invalid(
                "has more than one value that may be missing or is the rest",
                "keep one, so that each key has one meaning",
            );
        }
        let rest_is_last = matches!(parts.last(), Some(Part::Value { kind: Kind::Rest, .. }));
        if unlike_others.iter().any(|(_, kind)| *kind == Kind::Rest) && !rest_is_last {
            return invalid("has a part after the rest", "put {name...} at the end");
        }
        Ok(Template { text: text.to_owned(), parts })
    }

    /// The text that it was read from.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The names of its values in their order, and whether each is required.
    ///
    /// ```
    /// # use blackboard::protocol::Template;
    /// let names = Template::new("request:run:{ns?}:{id}")?;
    /// assert_eq!(names.names().collect::<Vec<_>>(), [("ns", false), ("id", true)]);
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn names(&self) -> impl Iterator<Item = (&str, bool)> {
        self.parts.iter().filter_map(Part::value).map(|(name, kind)| (name, kind != Kind::Optional))
    }

    /// The first word.
    pub fn first_word(&self) -> &str {
        self.text.split(':').next().unwrap_or_default()
    }

    /// The key with these values. A key that no scope accepts, for example one that is too long, is refused.
    ///
    /// ```
    /// # use blackboard::protocol::Template;
    /// let task = Template::new("task:{id...}")?;
    /// assert_eq!(task.key(&[("id", "q4:analysis")])?, "task:q4:analysis");
    /// assert!(task.key(&[]).is_err());
    /// assert!(task.key(&[("id", &"x".repeat(1024))]).is_err());
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn key(&self, values: &[(&str, &str)]) -> Result<String> {
        self.check_names(values)?;
        let mut parts = Vec::with_capacity(self.parts.len());
        for part in &self.parts {
            match part {
                Part::Word(word) => parts.push(word.clone()),
                Part::Value { name, kind } => match (given(values, name), kind) {
                    (Some(value), kind) => parts.push(escape(value, kind.colons())),
                    (None, Kind::Optional) => {}
                    (None, Kind::Required | Kind::Rest) => {
                        let message = format!("the template {} needs a value for {name}", self.text);
                        return Err(Refusal::new(Code::InvalidValue, message)
                            .hint(self.list_names())
                            .detail("template", self.text.as_str())
                            .detail("missing", name.as_str())
                            .into());
                    }
                },
            }
        }
        let key = parts.join(":");
        check_key("", &key)?;
        Ok(key)
    }

    /// The pattern of all keys with these values. A value that is not given may be anything.
    ///
    /// `*` in a pattern also matches colons, so a pattern may match keys that are not of this template: `state:*`
    /// matches `state:working_set:cluster`. [`parse`](Template::parse) decides.
    ///
    /// ```
    /// # use blackboard::protocol::Template;
    /// let request = Template::new("request:run:{ns?}:{id}")?;
    /// assert_eq!(request.pattern(&[])?, "request:run:*");
    /// // The namespace may be missing, so the pattern has no colon after it.
    /// assert_eq!(request.pattern(&[("id", "7")])?, "request:run:*7");
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn pattern(&self, values: &[(&str, &str)]) -> Result<String> {
        self.check_names(values)?;
        let mut pattern = String::with_capacity(self.text.len());
        let mut omits_colon = true;
        for (index, part) in self.parts.iter().enumerate() {
            let is_last = index + 1 == self.parts.len();
            let (text, is_missing) = match part {
                Part::Word(word) => (word.clone(), false),
                Part::Value { name, kind } => match given(values, name) {
                    Some(value) => (escape(value, kind.colons()), false),
                    None => ("*".to_owned(), *kind == Kind::Optional),
                },
            };
            if !(omits_colon || is_missing && is_last) {
                pattern.push(':');
            }
            // The colon of a missing part is missing too: the one after it, or the one before it at the end.
            omits_colon = is_missing;
            if !(text == "*" && pattern.ends_with('*')) {
                pattern.push_str(&text);
            }
        }
        check_pattern("", &pattern)?;
        Ok(pattern)
    }

    /// The values of a key; `None` if it is not a key of this template. A key is one only if [`key`](Template::key)
    /// builds it from these values: with other escapes it would be a second key for the same values.
    ///
    /// ```
    /// # use blackboard::protocol::Template;
    /// let state = Template::new("state:{game}")?;
    /// assert_eq!(state.parse("state:chess%3A1").unwrap()["game"], "chess:1");
    /// assert!(state.parse("state:working_set:cluster").is_none());
    /// assert!(state.parse("state:50%").is_none());
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn parse(&self, key: &str) -> Option<Values> {
        let has_rest = matches!(self.parts.last(), Some(Part::Value { kind: Kind::Rest, .. }));
        let texts: Vec<&str> =
            if has_rest { key.splitn(self.parts.len(), ':').collect() } else { key.split(':').collect() };
        let omits_optional = texts.len() + 1 == self.parts.len();
        let mut texts = texts.into_iter();
        let mut values = Values::new();
        for part in &self.parts {
            match part {
                Part::Value { kind: Kind::Optional, .. } if omits_optional => {}
                Part::Word(word) => {
                    if texts.next()? != word {
                        return None;
                    }
                }
                Part::Value { name, kind } => {
                    values.insert(name.clone(), unescape(texts.next()?, kind.colons())?);
                }
            }
        }
        texts.next().is_none().then_some(values)
    }

    /// How precisely it describes its keys, for sorting: the smallest value is the most precise.
    pub(super) fn vagueness(&self) -> impl Ord + use<> {
        let words = self.parts.iter().filter(|part| matches!(part, Part::Word(_))).count();
        let has_rest = matches!(self.parts.last(), Some(Part::Value { kind: Kind::Rest, .. }));
        (std::cmp::Reverse(words), has_rest, self.parts.len())
    }

    /// Refuses values that the template does not have: a mistyped name would be ignored.
    fn check_names(&self, values: &[(&str, &str)]) -> Result<()> {
        for (index, (name, _)) in values.iter().enumerate() {
            let problem = if !self.names().any(|(known, _)| known == *name) {
                format!("the template {} has no value {}", self.text, shown(name))
            } else if values[..index].iter().any(|(earlier, _)| earlier == name) {
                format!("the value {name} is given twice")
            } else {
                continue;
            };
            return Err(Refusal::new(Code::InvalidValue, problem)
                .hint(self.list_names())
                .detail("template", self.text.as_str())
                .into());
        }
        Ok(())
    }

    /// The names of its values for a hint.
    fn list_names(&self) -> String {
        let names: Vec<_> = self.names().map(|(name, _)| name).collect();
        if names.is_empty() {
            "it has no values".to_owned()
        } else {
            format!("its values: {}", names.join(", "))
        }
    }
}

impl Part {
    fn value(&self) -> Option<(&str, Kind)> {
        match self {
            Part::Word(_) => None,
            Part::Value { name, kind } => Some((name, *kind)),
        }
    }
}

fn read_part(part: &str) -> Option<Part> {
    if let Some(inner) = part.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) {
        let (name, kind) = match (inner.strip_suffix('?'), inner.strip_suffix("...")) {
            (Some(name), _) => (name, Kind::Optional),
            (None, Some(name)) => (name, Kind::Rest),
            (None, None) => (inner, Kind::Required),
        };
        return is_name(name).then(|| Part::Value { name: name.to_owned(), kind });
    }
    is_word(part).then(|| Part::Word(part.to_owned()))
}

/// Whether a text is a name of a value.
fn is_name(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && text.chars().all(|each| each.is_ascii_alphanumeric() || each == '_')
}

/// Whether a text is a word of a template: a part of a key that needs no escape.
pub(super) fn is_word(text: &str) -> bool {
    !text.contains(['{', '}']) && escape(text, Colons::Escape) == text
}

fn given<'a>(values: &[(&str, &'a str)], name: &str) -> Option<&'a str> {
    values.iter().find(|(given, _)| *given == name).map(|(_, value)| *value)
}

impl fmt::Display for Template {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

impl FromStr for Template {
    type Err = Error;

    fn from_str(text: &str) -> Result<Template> {
        Template::new(text)
    }
}

impl Serialize for Template {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

impl Column for Template {
    fn cell(&self) -> Cell<'_> {
        Cell::Text(&self.text)
    }

    fn read(cell: &StoredCell<'_>) -> Result<Template> {
        cell.parse()
    }
}

#[cfg(test)]
mod tests;
