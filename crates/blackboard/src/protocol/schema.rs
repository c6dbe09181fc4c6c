//! [`Schema`]: a JSON Schema for the value of an entry, in the part of the language that a board checks.
//!
//! A keyword that is not known here could change the verdict, so it is refused and not ignored. The reasons for an own
//! validator are in `docs/decisions/0022`.

use std::cmp::Ordering;
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::{Map, Number, Value as Json};

use crate::entry::Value;
use crate::error::{Code, Error, Refusal, Result};
use crate::metadata::Metadata;
use crate::store::record::{Cell, Column, StoredCell};
use crate::text::shown;

/// The most bytes of a schema.
pub const MAX_SCHEMA_BYTES: usize = 16 * 1024;
/// How deep schemas may be nested in a schema.
const MAX_DEPTH: usize = 16;
/// The most mismatches that are reported for a value.
const MAX_MISMATCHES: usize = 10;

/// Keywords that describe a value and never refuse one.
const ANNOTATIONS: &[&str] = &[
    "$comment",
    "$id",
    "$schema",
    "default",
    "deprecated",
    "description",
    "examples",
    "readOnly",
    "title",
    "writeOnly",
];

/// A JSON Schema: an object with the keywords `type`, `enum`, `const`, `properties`, `required`,
/// `additionalProperties`, `items`, `minimum` and `maximum`, and with titles and descriptions. It is stored and
/// returned unchanged.
///
/// ```
/// use blackboard::entry::Value;
/// use blackboard::protocol::Schema;
///
/// let schema = Schema::parse(r#"{"type": "object", "required": ["score"],
///     "properties": {"score": {"type": "number", "minimum": 0, "maximum": 1}}}"#)?;
/// assert!(schema.mismatches(&Value::parse(r#"{"score": 0.5}"#, 1024)?)?.is_empty());
/// let mismatches = schema.mismatches(&Value::parse(r#"{"score": 2}"#, 1024)?)?;
/// assert_eq!(mismatches[0].to_string(), "/score: expected at most 1, found 2");
/// assert!(Schema::parse(r#"{"pattern": "^a"}"#).is_err());
/// # Ok::<(), blackboard::Error>(())
/// ```
#[derive(Clone)]
pub struct Schema {
    text: Metadata,
    root: Node,
}

/// One reason why a value does not match a schema.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Mismatch {
    /// The JSON Pointer of the part that does not match; empty for the complete value.
    pub path: String,
    /// What was expected, and what was found.
    pub problem: String,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.path.as_str() {
            "" => formatter.write_str(&self.problem),
            path => write!(formatter, "{path}: {}", self.problem),
        }
    }
}

#[derive(Clone, Debug)]
enum Node {
    Anything,
    Nothing,
    Rules(Box<Rules>),
}

#[derive(Clone, Debug, Default)]
struct Rules {
    types: Option<Vec<Type>>,
    allowed: Option<Vec<Json>>,
    constant: Option<Json>,
    properties: Vec<(String, Node)>,
    required: Vec<String>,
    additional: Option<Node>,
    items: Option<Node>,
    minimum: Option<Number>,
    maximum: Option<Number>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Type {
    Null,
    Boolean,
    Object,
    Array,
    Number,
    Integer,
    String,
}

impl Schema {
    /// Reads a schema, and refuses one with a keyword that a board does not check.
    pub fn parse(text: &str) -> Result<Schema> {
        if text.len() > MAX_SCHEMA_BYTES {
            let message = format!("the schema has {} bytes; {MAX_SCHEMA_BYTES} are allowed", text.len());
            return Err(Error::invalid(message));
        }
        let json: Json = serde_json::from_str(text)
            .map_err(|error| Error::invalid(format!("the schema is not JSON: {error}")))?;
        if !json.is_object() {
            return Err(Error::invalid(
                "the schema is JSON, but not an object such as {\"type\": \"string\"}",
            ));
        }
        let root = read_node(&json, "", 0)?;
        // The text was parsed above, which bounds its depth.
        Ok(Schema { text: Metadata::from_stored(text.trim().to_owned())?, root })
    }

    /// The same schema with a shorter text.
    pub(crate) fn without_white_space(&self) -> Schema {
        let text = String::from_utf8(crate::json::without_white_space(self.as_str()).collect());
        let text = text.ok().and_then(|text| Metadata::from_stored(text).ok());
        Schema { text: text.unwrap_or_else(|| self.text.clone()), root: self.root.clone() }
    }

    /// The text, unchanged.
    pub fn as_str(&self) -> &str {
        self.text.as_str()
    }

    /// Why a value does not match: the first 10 reasons, none if it matches.
    pub fn mismatches(&self, value: &Value) -> Result<Vec<Mismatch>> {
        let mut mismatches = Vec::new();
        check(&self.root, &value.to::<Json>()?, &mut String::new(), &mut mismatches);
        Ok(mismatches)
    }
}

impl fmt::Debug for Schema {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl PartialEq for Schema {
    fn eq(&self, other: &Schema) -> bool {
        self.text == other.text
    }
}

impl Eq for Schema {}

impl<'de> Deserialize<'de> for Schema {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Schema, D::Error> {
        let text = Metadata::deserialize(deserializer)?;
        Schema::parse(text.as_str()).map_err(de::Error::custom)
    }
}

impl Serialize for Schema {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.text.serialize(serializer)
    }
}

impl Column for Option<Schema> {
    fn cell(&self) -> Cell<'_> {
        self.as_ref().map_or(Cell::Null, |schema| Cell::Text(schema.as_str()))
    }

    fn read(cell: &StoredCell<'_>) -> Result<Option<Schema>> {
        if cell.is_null() {
            return Ok(None);
        }
        Schema::parse(cell.text()?).map(Some).map_err(|error| cell.damaged(error))
    }
}

fn read_node(json: &Json, path: &str, depth: usize) -> Result<Node> {
    if depth > MAX_DEPTH {
        return Err(Error::invalid(format!("the schema is nested more than {MAX_DEPTH} levels deep")));
    }
    match json {
        Json::Bool(true) => Ok(Node::Anything),
        Json::Bool(false) => Ok(Node::Nothing),
        Json::Object(keywords) => read_rules(keywords, path, depth),
        _ => invalid(path, "a schema is an object, true or false"),
    }
}

fn read_rules(keywords: &Map<String, Json>, path: &str, depth: usize) -> Result<Node> {
    let mut rules = Rules::default();
    for (keyword, given) in keywords {
        let path = format!("{path}/{}", pointer_part(keyword));
        match keyword.as_str() {
            "type" => rules.types = Some(read_types(given, &path)?),
            "enum" => match given {
                Json::Array(values) if !values.is_empty() => rules.allowed = Some(values.clone()),
                _ => return invalid(&path, "a list of at least one value was expected"),
            },
            "const" => rules.constant = Some(given.clone()),
            "properties" => match given {
                Json::Object(properties) => {
                    for (name, schema) in properties {
                        let path = format!("{path}/{}", pointer_part(name));
                        rules.properties.push((name.clone(), read_node(schema, &path, depth + 1)?));
                    }
                }
                _ => return invalid(&path, "an object of schemas was expected"),
            },
            "required" => {
                let names =
                    given.as_array().map(|names| names.iter().map(|name| name.as_str().map(str::to_owned)));
                match names.and_then(Iterator::collect) {
                    Some(names) => rules.required = names,
                    None => return invalid(&path, "a list of names was expected"),
                }
            }
            "additionalProperties" => rules.additional = Some(read_node(given, &path, depth + 1)?),
            "items" => rules.items = Some(read_node(given, &path, depth + 1)?),
            "minimum" | "maximum" => match (given, keyword.as_str()) {
                (Json::Number(number), "minimum") => rules.minimum = Some(number.clone()),
                (Json::Number(number), _) => rules.maximum = Some(number.clone()),
                _ => return invalid(&path, "a number was expected"),
            },
            annotation if ANNOTATIONS.contains(&annotation) => {}
            _ => {
                let message = format!(
                    "the schema has the keyword \"{}\", which a board does not check",
                    shown(keyword)
                );
                return Err(Refusal::new(Code::InvalidValue, message)
                    .hint(
                        "use type, enum, const, properties, required, additionalProperties, items, minimum and maximum",
                    )
                    .detail("path", path)
                    .into());
            }
        }
    }
    Ok(Node::Rules(Box::new(rules)))
}

fn read_types(given: &Json, path: &str) -> Result<Vec<Type>> {
    let names: Vec<_> = match given {
        Json::Array(names) if !names.is_empty() => names.iter().map(Json::as_str).collect(),
        other => vec![other.as_str()],
    };
    let types: Option<Vec<_>> = names.into_iter().map(|name| Type::named(name?)).collect();
    match types {
        Some(types) => Ok(types),
        None => {
            invalid(path, "allowed: null, boolean, object, array, number, integer, string, or a list of them")
        }
    }
}

fn invalid<T>(path: &str, problem: &str) -> Result<T> {
    let at = if path.is_empty() { String::new() } else { format!(" at {}", shown(path)) };
    Err(Error::invalid(format!("the schema is not valid{at}: {problem}")))
}

/// Each value is compared with one schema, so a check takes as long as the value and the schema are large.
fn check(node: &Node, value: &Json, path: &mut String, mismatches: &mut Vec<Mismatch>) {
    if mismatches.len() >= MAX_MISMATCHES {
        return;
    }
    let mut mismatch = |problem: String| mismatches.push(Mismatch { path: path.clone(), problem });
    let rules = match node {
        Node::Anything => return,
        Node::Nothing => return mismatch(format!("expected nothing, found {}", brief(value))),
        Node::Rules(rules) => rules,
    };
    if let Some(types) = rules.types.as_ref().filter(|types| !types.iter().any(|each| each.includes(value))) {
        let names: Vec<_> = types.iter().map(|each| each.as_str()).collect();
        // The other rules are about values of these types.
        return mismatch(format!("expected {}, found {}", names.join(" or "), brief(value)));
    }
    let choices = rules.allowed.iter().flatten().chain(&rules.constant);
    let is_refused =
        rules.allowed.as_ref().is_some_and(|allowed| !allowed.iter().any(|each| equal(each, value)))
            || rules.constant.as_ref().is_some_and(|constant| !equal(constant, value));
    if is_refused {
        let choices: Vec<_> = choices.map(brief).collect();
        mismatch(format!("expected {}, found {}", shown(&choices.join(" or ")), brief(value)));
    }
    if let Json::Number(number) = value {
        for (bound, refused, text) in
            [(&rules.minimum, Ordering::Less, "at least"), (&rules.maximum, Ordering::Greater, "at most")]
        {
            if let Some(bound) = bound.as_ref().filter(|bound| compare(number, bound) == Some(refused)) {
                mismatch(format!("expected {text} {bound}, found {number}"));
            }
        }
    }
    match value {
        Json::Object(members) => check_members(rules, members, path, mismatches),
        Json::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                let Some(node) = &rules.items else { break };
                below(path, &index.to_string(), |path| check(node, item, path, mismatches));
            }
        }
        _ => {}
    }
}

fn check_members(
    rules: &Rules,
    members: &Map<String, Json>,
    path: &mut String,
    mismatches: &mut Vec<Mismatch>,
) {
    for name in rules.required.iter().filter(|name| !members.contains_key(*name)) {
        if mismatches.len() < MAX_MISMATCHES {
            mismatches
                .push(Mismatch { path: path.clone(), problem: format!("\"{}\" is missing", shown(name)) });
        }
    }
    for (name, value) in members {
        let node = rules.properties.iter().find(|(known, _)| known == name).map(|(_, node)| node);
        let Some(node) = node.or(rules.additional.as_ref()) else { continue };
        below(path, &pointer_part(name), |path| match node {
            Node::Nothing if mismatches.len() < MAX_MISMATCHES => {
                mismatches.push(Mismatch { path: path.clone(), problem: "is not allowed".to_owned() });
            }
            node => check(node, value, path, mismatches),
        });
    }
}

/// Runs `f` with the path of a part.
fn below(path: &mut String, part: &str, f: impl FnOnce(&mut String)) {
    let length = path.len();
    path.push('/');
    path.push_str(part);
    f(path);
    path.truncate(length);
}

/// A name in a JSON Pointer, with its invisible characters made visible.
fn pointer_part(name: &str) -> String {
    shown(&name.replace('~', "~0").replace('/', "~1"))
}

/// A value in a message.
fn brief(value: &Json) -> String {
    match value {
        Json::Object(_) => "an object".to_owned(),
        Json::Array(_) => "an array".to_owned(),
        scalar => shown(&scalar.to_string()),
    }
}

/// Equal as in JSON Schema: `1` and `1.0` are the same number.
fn equal(one: &Json, other: &Json) -> bool {
    match (one, other) {
        (Json::Number(one), Json::Number(other)) => compare(one, other) == Some(Ordering::Equal),
        (Json::Array(one), Json::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| equal(one, other))
        }
        (Json::Object(one), Json::Object(other)) => {
            let in_other = |(name, value)| other.get(name).is_some_and(|found| equal(value, found));
            one.len() == other.len() && one.iter().all(in_other)
        }
        _ => one == other,
    }
}

/// Integers are compared exactly, other numbers as floating point numbers.
fn compare(one: &Number, other: &Number) -> Option<Ordering> {
    match (one.as_i128(), other.as_i128()) {
        (Some(one), Some(other)) => Some(one.cmp(&other)),
        _ => one.as_f64()?.partial_cmp(&other.as_f64()?),
    }
}

impl Type {
    const ALL: [Type; 7] =
        [Type::Null, Type::Boolean, Type::Object, Type::Array, Type::Number, Type::Integer, Type::String];

    fn as_str(self) -> &'static str {
        match self {
            Type::Null => "null",
            Type::Boolean => "boolean",
            Type::Object => "object",
            Type::Array => "array",
            Type::Number => "number",
            Type::Integer => "integer",
            Type::String => "string",
        }
    }

    fn named(name: &str) -> Option<Type> {
        Type::ALL.into_iter().find(|each| each.as_str() == name)
    }

    fn includes(self, value: &Json) -> bool {
        match (self, value) {
            (Type::Integer, Json::Number(number)) => {
                number.as_i128().is_some() || number.as_f64().is_some_and(|number| number.fract() == 0.0)
            }
            (Type::Null, Json::Null)
            | (Type::Boolean, Json::Bool(_))
            | (Type::Object, Json::Object(_))
            | (Type::Array, Json::Array(_))
            | (Type::Number, Json::Number(_))
            | (Type::String, Json::String(_)) => true,
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mismatches(schema: &str, value: &str) -> Vec<String> {
        let schema = Schema::parse(schema).unwrap();
        let mismatches = schema.mismatches(&Value::parse(value, 100_000).unwrap()).unwrap();
        mismatches.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn values_are_compared_with_each_keyword() {
        testkit::limit_test();
        for (schema, value, expected) in [
            ("{}", "[1]", &[][..]),
            (r#"{"type": "string"}"#, "1", &["expected string, found 1"]),
            (r#"{"type": ["string", "null"]}"#, "null", &[]),
            (r#"{"type": ["string", "null"]}"#, "{}", &["expected string or null, found an object"]),
            (r#"{"type": "integer"}"#, "1.0", &[]),
            (r#"{"type": "integer"}"#, "1.5", &["expected integer, found 1.5"]),
            (r#"{"type": "number"}"#, "18446744073709551616", &[]),
            (r#"{"enum": ["a", 1, [1.0]]}"#, "1.0", &[]),
            (r#"{"enum": ["a", 1, [1.0]]}"#, "[1]", &[]),
            (r#"{"enum": ["a", "b"]}"#, "\"c\"", &["expected \"a\" or \"b\", found \"c\""]),
            (r#"{"const": {"a": 1}}"#, r#"{"a": 1.0}"#, &[]),
            (r#"{"const": true}"#, "false", &["expected true, found false"]),
            (r#"{"minimum": 0, "maximum": 1}"#, "0.95", &[]),
            (r#"{"minimum": 0, "maximum": 1}"#, "-1", &["expected at least 0, found -1"]),
            (
                r#"{"maximum": 9007199254740992}"#,
                "9007199254740993",
                &["expected at most 9007199254740992, found 9007199254740993"],
            ),
            (r#"{"minimum": 5}"#, "\"no number\"", &[]),
            (r#"{"required": ["a", "b"]}"#, r#"{"a": 1}"#, &["\"b\" is missing"]),
            (r#"{"required": ["a"]}"#, "[]", &[]),
            (
                r#"{"properties": {"a/b": {"type": "string"}}}"#,
                r#"{"a/b": 1}"#,
                &["/a~1b: expected string, found 1"],
            ),
            (
                r#"{"properties": {"a": {}}, "additionalProperties": false}"#,
                r#"{"a": 1, "b": 2}"#,
                &["/b: is not allowed"],
            ),
            (r#"{"additionalProperties": {"type": "null"}}"#, r#"{"b": 2}"#, &["/b: expected null, found 2"]),
            (r#"{"items": {"properties": {"a": false}}}"#, r#"[{}, {"a": 1}]"#, &["/1/a: is not allowed"]),
            (r#"{"items": false}"#, "[1]", &["/0: expected nothing, found 1"]),
            (r#"{"title": "T", "description": "D", "$schema": "x", "default": 1}"#, "2", &[]),
        ] {
            assert_eq!(mismatches(schema, value), expected, "{schema} {value}");
        }
    }

    #[test]
    fn at_most_ten_mismatches_are_reported() {
        testkit::limit_test();
        let many = format!("[{}1]", "1,".repeat(1000));
        assert_eq!(mismatches(r#"{"items": {"type": "string"}}"#, &many).len(), MAX_MISMATCHES);
        let names: Vec<_> = (0..100).map(|number| format!("\"n{number}\"")).collect();
        let required = format!("{{\"required\": [{}]}}", names.join(","));
        assert_eq!(mismatches(&required, "{}").len(), MAX_MISMATCHES);
    }

    #[test]
    fn schemas_that_cannot_be_checked_are_refused() {
        testkit::limit_test();
        let deep = format!("{}true{}", "{\"items\":".repeat(MAX_DEPTH + 2), "}".repeat(MAX_DEPTH + 2));
        let long = format!("{{\"title\": \"{}\"}}", "x".repeat(MAX_SCHEMA_BYTES));
        for (schema, problem) in [
            ("", "is not JSON"),
            ("true", "not an object"),
            (r#"{"type": "text"}"#, "at /type: allowed: null, boolean"),
            (r#"{"type": []}"#, "at /type"),
            (r#"{"pattern": "^a"}"#, "the keyword \"pattern\", which a board does not check"),
            (r#"{"format": "date-time"}"#, "the keyword \"format\""),
            (r##"{"$ref": "#"}"##, "the keyword \"$ref\""),
            (r#"{"properties": {"a": {"anyOf": []}}}"#, "the keyword \"anyOf\""),
            (r#"{"properties": {"a": 1}}"#, "at /properties/a: a schema is an object"),
            (r#"{"properties": []}"#, "at /properties"),
            (r#"{"required": [1]}"#, "at /required"),
            (r#"{"enum": 1}"#, "at /enum"),
            (r#"{"enum": []}"#, "at /enum: a list of at least one value was expected"),
            (r#"{"minimum": "1"}"#, "at /minimum"),
            (&deep, "nested more than 16 levels"),
            (&long, "16384 are allowed"),
        ] {
            let error = Schema::parse(schema).unwrap_err();
            assert_eq!(error.code(), Code::InvalidValue);
            assert!(error.to_string().contains(problem), "{problem}: {error}");
        }
    }
}
