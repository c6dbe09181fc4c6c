//! What has no column on a board of this program: it goes into the metadata of its row, and is counted.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Map, Value};

use super::source::{SourceRow, parse_time};
use crate::clock::Timestamp;

/// The member of metadata that has them.
const MEMBER: &str = "ivy_blackboard";

/// A column whose values are kept in metadata.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct KeptInMetadata {
    /// The table and the column, for example `work_items.status`; or the table.
    pub what: String,
    /// The number of rows.
    pub rows: u64,
}

/// How many rows have leftovers of each kind.
#[derive(Default)]
pub(super) struct Tally(BTreeMap<String, u64>);

impl Tally {
    pub(super) fn count(&mut self, what: impl Into<String>) {
        *self.0.entry(what.into()).or_default() += 1;
    }

    pub(super) fn into_list(self) -> Vec<KeptInMetadata> {
        self.0.into_iter().map(|(what, rows)| KeptInMetadata { what, rows }).collect()
    }
}

/// The leftovers of one row.
pub(super) struct Leftovers<'t> {
    table: &'static str,
    tally: &'t mut Tally,
    members: Map<String, Value>,
}

impl<'t> Leftovers<'t> {
    pub(super) fn of(table: &'static str, tally: &'t mut Tally) -> Leftovers<'t> {
        Leftovers { table, tally, members: Map::new() }
    }

    /// Keeps a value that its column cannot have here.
    pub(super) fn keep(&mut self, column: &str, value: impl Into<Value>) {
        self.tally.count(format!("{}.{column}", self.table));
        self.members.insert(column.to_owned(), value.into());
    }

    /// Keeps the columns of a row that are not known: a user may have added them.
    pub(super) fn keep_unknown(&mut self, row: &SourceRow<'_>, known: &[&str]) -> rusqlite::Result<()> {
        for column in row.columns().filter(|column| !known.contains(column)) {
            let value = row.json(column)?;
            if !value.is_null() {
                self.keep(column, value);
            }
        }
        Ok(())
    }

    /// The time in a column. A text that is no time is kept, and `otherwise` replaces it.
    pub(super) fn time(
        &mut self,
        row: &SourceRow<'_>,
        column: &str,
        otherwise: Timestamp,
    ) -> rusqlite::Result<Timestamp> {
        Ok(self.optional_time(row, column)?.unwrap_or(otherwise))
    }

    /// The same for a column that may be empty.
    pub(super) fn optional_time(
        &mut self,
        row: &SourceRow<'_>,
        column: &str,
    ) -> rusqlite::Result<Option<Timestamp>> {
        let Some(text) = row.text(column)? else { return Ok(None) };
        let time = parse_time(&text);
        if time.is_none() {
            self.keep(column, text);
        }
        Ok(time)
    }

    /// The metadata of the row with these leftovers, and with `more` members. Its own text stays as it is. Text that is not
    /// an object is kept as a leftover.
    pub(super) fn into_metadata(
        mut self,
        stored: Option<String>,
        more: impl IntoIterator<Item = (&'static str, Value)>,
    ) -> Option<String> {
        let is_object = |text: &String| serde_json::from_str::<Map<String, Value>>(text).is_ok();
        let mut object = match stored {
            Some(text) if is_object(&text) => Some(text.trim().to_owned()),
            Some(text) => {
                // An empty text and `null` say nothing.
                if !["", "null"].contains(&text.trim()) {
                    self.keep("metadata", text);
                }
                None
            }
            None => None,
        };
        for (name, value) in more {
            object = Some(with_member(object.as_deref(), name, &value));
        }
        if !self.members.is_empty() {
            object = Some(with_member(object.as_deref(), MEMBER, &Value::Object(self.members)));
        }
        object
    }
}

/// The text of an object with one more member. The other members keep their text: numbers are not parsed.
pub(super) fn with_member(object: Option<&str>, name: &str, value: &Value) -> String {
    let members = object.and_then(|text| text.strip_suffix('}')).unwrap_or("{").trim_end();
    let separator = if members.ends_with('{') && members.len() == 1 { "" } else { "," };
    format!("{members}{separator}{}:{value}}}", Value::from(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leftovers_are_added_to_the_text_of_metadata() {
        for (stored, left, expected) in [
            (None, None, None),
            (Some(r#"{"a": 1.0}"#), None, Some(r#"{"a": 1.0}"#)),
            (Some(r#"{"a": 1.0}"#), Some(7), Some(r#"{"a": 1.0,"ivy_blackboard":{"pid":7}}"#)),
            (Some("{ }"), Some(7), Some(r#"{"ivy_blackboard":{"pid":7}}"#)),
            (None, Some(7), Some(r#"{"ivy_blackboard":{"pid":7}}"#)),
            (Some("[1]"), None, Some(r#"{"ivy_blackboard":{"metadata":"[1]"}}"#)),
            (Some("null"), None, None),
            (Some(" "), None, None),
        ] {
            let mut tally = Tally::default();
            let mut leftovers = Leftovers::of("agents", &mut tally);
            if let Some(pid) = left {
                leftovers.keep("pid", pid);
            }
            let metadata = leftovers.into_metadata(stored.map(str::to_owned), []);
            assert_eq!(metadata.as_deref(), expected, "{stored:?}, {left:?}");
            assert_eq!(tally.into_list().iter().map(|kept| kept.rows).sum::<u64>() > 0, {
                left.is_some() || stored == Some("[1]")
            });
        }
    }
}
