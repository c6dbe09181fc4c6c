//! [`Metadata`]: a JSON object that belongs to the caller.

use std::fmt;

use serde::de::{MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::error::{Error, Result};

/// A JSON object that the board stores and returns unchanged. It interprets only the labels, the estimate and the source of
/// a work item ([`WorkItem::labels`](crate::work::WorkItem::labels)). In an answer it is on one line.
///
/// ```
/// use blackboard::Metadata;
///
/// let metadata = Metadata::parse(r#"{"branch": "main", "tries": 1.0}"#)?;
/// assert_eq!(metadata.as_str(), r#"{"branch": "main", "tries": 1.0}"#);
/// assert!(Metadata::parse("[1, 2]").is_err());
/// # Ok::<(), blackboard::Error>(())
/// ```
#[derive(Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Metadata(#[serde(serialize_with = "crate::json::serialize_on_one_line")] Box<RawValue>);

/// The most bytes of metadata.
const MAX_BYTES: usize = 64 * 1024;

impl Metadata {
    /// Checks that the text is a JSON object of an allowed size.
    pub fn parse(text: &str) -> Result<Metadata> {
        if text.len() > MAX_BYTES {
            return Err(Error::invalid(format!(
                "metadata has {} bytes; {MAX_BYTES} are allowed",
                text.len()
            )));
        }
        // Parsing into values bounds the depth, which `RawValue` alone does not.
        match serde_json::from_str::<Value>(text) {
            Ok(Value::Object(_)) => Metadata::from_stored(text.trim().to_owned()),
            Ok(_) => {
                Err(Error::invalid("metadata is JSON, but not an object such as {\"branch\": \"main\"}"))
            }
            Err(error) => Err(Error::invalid(format!("metadata is not JSON: {error}"))),
        }
    }

    /// From text that an engine stored.
    pub(crate) fn from_stored(text: String) -> Result<Metadata> {
        RawValue::from_string(text)
            .map(Metadata)
            .map_err(|_| crate::Fault::new(crate::Code::Corrupt, "stored metadata is not JSON").into())
    }

    /// The text, unchanged.
    pub fn as_str(&self) -> &str {
        self.0.get()
    }

    /// The object with the members of another one added or replaced. The other members keep their text: numbers are
    /// not parsed.
    pub(crate) fn merged_with(&self, more: &Metadata) -> Result<Metadata> {
        let mut members = self.members()?;
        for (name, value) in more.members()? {
            match members.iter_mut().find(|(known, _)| *known == name) {
                Some(known) => known.1 = value,
                None => members.push((name, value)),
            }
        }
        let members: Vec<_> = members
            .iter()
            .map(|(name, value)| format!("{}:{}", Value::from(name.as_str()), value.get()))
            .collect();
        Metadata::parse(&format!("{{{}}}", members.join(",")))
    }

    /// The object with this member added, replaced or removed; `None` if no member is left. The other members keep
    /// their text.
    pub(crate) fn with_member(
        stored: Option<&Metadata>,
        name: &str,
        value: Option<&Value>,
    ) -> Result<Option<Metadata>> {
        let members = stored.map(Metadata::members).transpose()?.unwrap_or_default();
        let member = |name: &str, text: &str| format!("{}:{text}", Value::from(name));
        let others = members.iter().filter(|(known, _)| known != name);
        let mut texts: Vec<_> = others.map(|(name, text)| member(name, text.get())).collect();
        texts.extend(value.map(|value| member(name, &value.to_string())));
        if texts.is_empty() {
            return Ok(None);
        }
        Metadata::from_stored(format!("{{{}}}", texts.join(","))).map(Some)
    }

    /// One member of the object.
    pub(crate) fn member(&self, name: &str) -> Option<Value> {
        // Most metadata does not have it: then nothing is parsed.
        self.as_str().contains(name).then(|| self.to_map().remove(name)).flatten()
    }

    fn members(&self) -> Result<Vec<(String, &RawValue)>> {
        let Members(members) = serde_json::from_str(self.as_str()).map_err(|error| {
            crate::Fault::new(crate::Code::Corrupt, "metadata is not an object").because(error)
        })?;
        Ok(members)
    }

    /// The object.
    pub fn to_map(&self) -> Map<String, Value> {
        serde_json::from_str(self.as_str()).unwrap_or_default()
    }
}

/// The members of an object in their order, each value as its text.
struct Members<'a>(Vec<(String, &'a RawValue)>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Members<'de>, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Members<'de>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<Members<'de>, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(InOrder)
    }
}

impl From<Map<String, Value>> for Metadata {
    fn from(map: Map<String, Value>) -> Metadata {
        let text = Value::Object(map).to_string();
        #[expect(clippy::expect_used, reason = "the text of a JSON value is JSON")]
        Metadata(RawValue::from_string(text).expect("a JSON value"))
    }
}

/// Metadata in an answer: an empty object if there is none, so that a reader always finds an object.
///
/// ```
/// use blackboard::metadata::OrEmpty;
///
/// assert_eq!(serde_json::to_string(&OrEmpty(None))?, "{}");
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct OrEmpty<'a>(pub Option<&'a Metadata>);

impl Serialize for OrEmpty<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        match self.0 {
            Some(metadata) => metadata.serialize(serializer),
            None => serializer.serialize_map(Some(0))?.end(),
        }
    }
}

/// Serializes a field as [`OrEmpty`].
#[expect(clippy::ref_option, reason = "the form in which serde calls it")]
pub(crate) fn or_empty<S: Serializer>(
    metadata: &Option<Metadata>,
    serializer: S,
) -> std::result::Result<S::Ok, S::Error> {
    OrEmpty(metadata.as_ref()).serialize(serializer)
}

impl PartialEq for Metadata {
    fn eq(&self, other: &Metadata) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Metadata {}

impl fmt::Debug for Metadata {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_has_to_be_a_bounded_object() {
        testkit::limit_test();
        let deep = format!("{{\"a\":{}{}}}", "[".repeat(1000), "]".repeat(1000));
        let long = format!("{{\"a\":\"{}\"}}", "x".repeat(MAX_BYTES));
        for text in ["", "null", "\"text\"", "{", "{\"a\":}", &deep, &long] {
            assert!(Metadata::parse(text).is_err(), "{}", &text[..text.len().min(40)]);
        }
    }

    #[test]
    fn setting_a_member_keeps_the_text_of_the_others() {
        let set = |text: &str, value: Option<Value>| {
            let before = Metadata::parse(text).unwrap();
            Metadata::with_member(Some(&before), "a", value.as_ref())
                .unwrap()
                .map(|after| after.as_str().to_owned())
        };
        for (before, value, expected) in [
            (r#"{"a":1,"b":2.50}"#, Some(Value::from(3)), Some(r#"{"b":2.50,"a":3}"#)),
            (r#"{"b":2.50}"#, Some(Value::from("x")), Some(r#"{"b":2.50,"a":"x"}"#)),
            (r#"{"a":1,"b":2.50}"#, None, Some(r#"{"b":2.50}"#)),
            (r#"{"a":1}"#, None, None),
        ] {
            assert_eq!(set(before, value).as_deref(), expected, "{before}");
        }
        assert_eq!(Metadata::with_member(None, "a", None).unwrap(), None);
    }

    #[test]
    fn metadata_is_one_line_in_an_answer() {
        let metadata = Metadata::parse("{\n\"a\":1,\r\n\"b\":\"\\n\"}").unwrap();
        assert_eq!(metadata.as_str(), "{\n\"a\":1,\r\n\"b\":\"\\n\"}");
        assert_eq!(serde_json::to_string(&metadata).unwrap(), "{ \"a\":1,  \"b\":\"\\n\"}");
    }
}
