//! [`Value`]: JSON text that is stored and returned unchanged.

use std::fmt;
use std::sync::Arc;

use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::error::{Code, Error, Fault, Refusal, Result};
use crate::json::{self, Shape};
use crate::text::shown;

/// How deep arrays and objects may be nested.
const MAX_DEPTH: usize = 128;

/// A JSON value as its text: checked, bounded, and never rewritten. The order of keys, `1.0` and large numbers are
/// returned unchanged. It is cheap to clone, and equal to a value with the same text.
///
/// In an answer the text is on one line: its raw line breaks, which can only be white space, are written as spaces.
///
/// As a field of a struct that serde reads, it has two limits of serde. An `Option<Value>` reads `null` as `None`,
/// and flattened or untagged types cannot contain raw JSON.
///
/// ```
/// use blackboard::entry::Value;
///
/// let value = Value::parse(r#" {"b": 1.0, "a": 123456789012345678901234567890} "#, 1024)?;
/// assert_eq!(value.as_str(), r#"{"b": 1.0, "a": 123456789012345678901234567890}"#);
/// assert!(Value::parse("{b: 1}", 1024).is_err());
/// # Ok::<(), blackboard::Error>(())
/// ```
#[derive(Clone)]
pub struct Value(Arc<RawValue>);

impl Value {
    /// Checks that the text is JSON of at most `max_bytes`, not counting the white space around it.
    pub fn parse(text: &str, max_bytes: usize) -> Result<Value> {
        let text = json::trim(text);
        check_size(text, max_bytes)?;
        match json::check_syntax(text) {
            Ok(raw) => Value::of_checked_syntax(raw.to_owned()),
            Err(error) => Err(Refusal::new(Code::InvalidValue, format!("the value is not JSON: {error}"))
                .hint("a string needs quotation marks, inside those of the shell: '\"text\"'")
                .into()),
        }
    }

    /// Parses JSON, and makes any other text a string.
    ///
    /// JSON that is too large or too deep is refused; it does not become a string.
    ///
    /// ```
    /// use blackboard::entry::Value;
    ///
    /// assert_eq!(Value::from_text_or_string("42", 1024)?.as_str(), "42");
    /// assert_eq!(Value::from_text_or_string("null", 1024)?, Value::null());
    /// assert_eq!(Value::from_text_or_string("say \"hi\"", 1024)?.as_str(), r#""say \"hi\"""#);
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn from_text_or_string(text: &str, max_bytes: usize) -> Result<Value> {
        let trimmed = json::trim(text);
        if let Ok(raw) = json::check_syntax(trimmed) {
            check_size(trimmed, max_bytes)?;
            return Value::of_checked_syntax(raw.to_owned());
        }
        check_size(text, max_bytes)?;
        let value = Value::of(text)?;
        value.check_size(max_bytes)?;
        Ok(value)
    }

    /// From text that an engine stored. It was checked when it was written, but text of a damaged file that is not
    /// JSON must not get into an answer.
    pub(crate) fn from_stored(text: String) -> Result<Value> {
        RawValue::from_string(text)
            .map(|raw| Value(raw.into()))
            .map_err(|_| Fault::new(Code::Corrupt, "a stored value is not JSON").into())
    }

    /// The JSON `null`.
    ///
    /// ```
    /// assert_eq!(blackboard::entry::Value::null().as_str(), "null");
    /// ```
    pub fn null() -> Value {
        Value(RawValue::NULL.to_owned().into())
    }

    /// The JSON of any serializable value. Its size is checked where it is stored.
    ///
    /// ```
    /// use blackboard::entry::Value;
    ///
    /// assert_eq!(Value::of(&["a", "b"])?.as_str(), r#"["a","b"]"#);
    /// assert_eq!(Value::of("text")?.as_str(), r#""text""#);
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn of<T: Serialize + ?Sized>(value: &T) -> Result<Value> {
        match serde_json::value::to_raw_value(value) {
            Ok(raw) => Value::of_checked_syntax(raw),
            Err(error) => {
                Err(Error::invalid(format!("the value has no form in JSON: {}", shown(&error.to_string()))))
            }
        }
    }

    fn of_checked_syntax(raw: Box<RawValue>) -> Result<Value> {
        let shape = Shape::of(raw.get());
        check_depth(shape.depth)?;
        if shape.has_lone_surrogate {
            let message = "the value contains a lone surrogate escape, for example \\ud800";
            return Err(Refusal::new(Code::InvalidValue, message)
                .hint("write the character itself, or both halves, as in \\ud83d\\ude00")
                .into());
        }
        Ok(Value(raw.into()))
    }

    /// The text, unchanged.
    pub fn as_str(&self) -> &str {
        self.0.get()
    }

    /// Whether both are the same text except for the white space between their parts. Numbers are compared digit by
    /// digit, so `1.0` is not `1`.
    ///
    /// ```
    /// use blackboard::entry::Value;
    ///
    /// let spaced = Value::parse(r#"{"a": [1, "b c"]}"#, 1024)?;
    /// assert!(spaced.says_the_same_as(&Value::parse(r#"{"a":[1,"b c"]}"#, 1024)?));
    /// assert!(!spaced.says_the_same_as(&Value::parse(r#"{"a":[1,"bc"]}"#, 1024)?));
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn says_the_same_as(&self, other: &Value) -> bool {
        self == other
            || json::without_white_space(self.as_str()).eq(json::without_white_space(other.as_str()))
    }

    /// Refuses a text of more than `max_bytes`.
    ///
    /// ```
    /// use blackboard::entry::Value;
    ///
    /// let error = Value::of("four")?.check_size(5).unwrap_err();
    /// assert_eq!(error.to_string(), "the value has 6 bytes; 5 are allowed");
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn check_size(&self, max_bytes: usize) -> Result<()> {
        check_size(self.as_str(), max_bytes)
    }

    /// Deserializes it.
    ///
    /// ```
    /// use blackboard::entry::Value;
    ///
    /// let value = Value::parse("[1, 2]", 1024)?;
    /// assert_eq!(value.to::<Vec<u8>>()?, [1, 2]);
    /// assert!(value.to::<String>().is_err());
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn to<T: DeserializeOwned>(&self) -> Result<T> {
        let mut deserializer = serde_json::Deserializer::from_str(self.as_str());
        // The depth was checked when the value was made. The limit is a little above the parser's own.
        deserializer.disable_recursion_limit();
        T::deserialize(&mut deserializer).map_err(|error| {
            Error::invalid(format!("the value is not what was expected here: {}", shown(&error.to_string())))
        })
    }

    /// The array with one more item at its end. The rest of the text stays unchanged.
    ///
    /// ```
    /// use blackboard::entry::Value;
    ///
    /// let list = Value::parse("[1.0, 2]", 1024)?;
    /// assert_eq!(list.appended(&Value::of("x")?)?.as_str(), r#"[1.0, 2,"x"]"#);
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn appended(&self, item: &Value) -> Result<Value> {
        self.append(item, || "cannot append: the value".to_owned())
    }

    /// The same for the value of a key, which the refusal names.
    pub(super) fn appended_to(&self, key: &str, item: &Value) -> Result<Value> {
        self.append(item, || format!("cannot append to key {}: its value", shown(key)))
    }

    /// `subject` begins the refusal of a value that is not an array.
    fn append(&self, item: &Value, subject: impl FnOnce() -> String) -> Result<Value> {
        let Some(items) = self.as_str().strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) else {
            return Err(Refusal::new(
                Code::InvalidValue,
                format!("{} is not an array (found {})", subject(), shown(self.as_str())),
            )
            .hint("write an array first, such as []")
            .into());
        };
        check_depth(1 + Shape::of(item.as_str()).depth)?;
        // White space at the end, such as the line break before the bracket, stays at the end.
        let kept = items.trim_end_matches(json::WHITE_SPACE);
        let after = &items[kept.len()..];
        let comma = if kept.is_empty() { "" } else { "," };
        Value::of_own_text(format!("[{kept}{comma}{}{after}]", item.as_str()))
    }

    /// The integer, plus another one.
    ///
    /// ```
    /// use blackboard::entry::Value;
    ///
    /// assert_eq!(Value::of(&41)?.incremented(1)?.as_str(), "42");
    /// assert!(Value::parse("1.5", 1024)?.incremented(1).is_err());
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn incremented(&self, by: i64) -> Result<Value> {
        self.increment(by, || "cannot increment: the value".to_owned())
    }

    /// The same for the value of a key, which the refusal names.
    pub(super) fn incremented_in(&self, key: &str, by: i64) -> Result<Value> {
        self.increment(by, || format!("cannot increment key {}: its value", shown(key)))
    }

    /// `subject` begins the refusal of a value that is not an integer.
    fn increment(&self, by: i64, subject: impl FnOnce() -> String) -> Result<Value> {
        let Ok(number) = self.as_str().parse::<i64>() else {
            return Err(Refusal::new(
                Code::InvalidValue,
                format!("{} is not a 64-bit integer (found {})", subject(), shown(self.as_str())),
            )
            .hint("write an integer first, such as 0")
            .into());
        };
        let sum = number
            .checked_add(by)
            .ok_or_else(|| Error::invalid(format!("adding {by} to {number} exceeds a 64-bit integer")))?;
        Value::of_own_text(sum.to_string())
    }

    /// From text that was assembled here from values.
    fn of_own_text(text: String) -> Result<Value> {
        match RawValue::from_string(text) {
            Ok(raw) => Ok(Value(raw.into())),
            Err(error) => Err(Fault::new(Code::Internal, "a value that was put together is not JSON")
                .because(error)
                .into()),
        }
    }
}

fn check_size(text: &str, max_bytes: usize) -> Result<()> {
    if text.len() <= max_bytes {
        return Ok(());
    }
    let message = format!("the value has {} bytes; {max_bytes} are allowed", text.len());
    Err(Refusal::new(Code::InvalidValue, message)
        .hint("write it to a file and store its path, or split it over several keys")
        .detail("bytes", text.len())
        .detail("allowed_bytes", max_bytes)
        .into())
}

fn check_depth(depth: usize) -> Result<()> {
    if depth <= MAX_DEPTH {
        return Ok(());
    }
    let message = format!("the value is nested {depth} levels deep; the maximum is {MAX_DEPTH}");
    Err(Refusal::new(Code::InvalidValue, message)
        .hint("store the inner parts under keys of their own")
        .into())
}

impl PartialEq for Value {
    fn eq(&self, other: &Value) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Value {}

impl fmt::Debug for Value {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        json::serialize_on_one_line(&self.0, serializer)
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Value, D::Error> {
        Value::of_checked_syntax(Box::<RawValue>::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests;
