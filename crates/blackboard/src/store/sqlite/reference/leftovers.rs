//! What has no column on a board of this program: it goes into the metadata of its row, and is counted.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::source::{SourceRow, is_exact, parse_time};
use crate::clock::Timestamp;

/// The member of metadata that has them.
const MEMBER: &str = "ivy_blackboard";

/// The member of an item's metadata that this program reads: a [hold](crate::work::Hold).
const HOLD: &str = "blackboard";

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

    /// Keeps a value that its column cannot have here. The value that was kept first stays: it is the one of the row.
    pub(super) fn keep(&mut self, column: &str, value: impl Into<Value>) {
        if !self.has(column) {
            self.count(column);
            self.members.insert(column.to_owned(), value.into());
        }
    }

    /// Whether a value of this column is kept.
    pub(super) fn has(&self, column: &str) -> bool {
        self.members.contains_key(column)
    }

    /// Lists a column whose value the caller keeps.
    pub(super) fn count(&mut self, column: &str) {
        self.tally.count(format!("{}.{column}", self.table));
    }

    /// Keeps the columns of a row that are not converted, and bytes that are no text.
    pub(super) fn keep_unknown(&mut self, row: &SourceRow<'_>) -> rusqlite::Result<()> {
        for column in row.unknown() {
            let value = row.json(column)?;
            if !value.is_null() {
                self.keep(column, value);
            }
        }
        for (column, bytes) in row.bytes() {
            if self.members.insert(column.to_owned(), bytes).is_none() {
                self.count(column);
            }
        }
        Ok(())
    }

    /// The number of failures in a column. Everything else is kept, and counts as none.
    pub(super) fn failure_count(&mut self, row: &SourceRow<'_>, column: &str) -> rusqlite::Result<u32> {
        let count = row.integer(column)?.and_then(|count| u32::try_from(count).ok());
        if count.is_none() {
            let value = row.json(column)?;
            if !value.is_null() {
                self.keep(column, value);
            }
        }
        Ok(count.unwrap_or(0))
    }

    /// The time in a column. A text that is no time is kept, and `otherwise` replaces it. So is a text that says more than the
    /// stored form.
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
        if time.is_none_or(|time| !is_exact(time, &text)) {
            self.keep(column, text);
        }
        Ok(time)
    }

    /// The text of an object with these leftovers, and with a member that is JSON already; `None` if there is neither.
    pub(super) fn into_object(self, more: Option<(&str, &str)>) -> Option<String> {
        let object = (!self.members.is_empty()).then(|| Value::Object(self.members).to_string());
        match more {
            Some((name, json)) => Some(with_member(object.as_deref(), name, json)),
            None => object,
        }
    }

    /// The metadata of the row with these leftovers, and with `more` members, which are JSON. Its own text stays as it is.
    /// Text that is not an object is kept as a leftover, and so is an object that has one of these members.
    pub(super) fn into_metadata(
        mut self,
        stored: Option<String>,
        more: Option<(&str, &str)>,
    ) -> Option<String> {
        let mut object = stored.and_then(|text| {
            let Ok(members) = serde_json::from_str::<Map<String, Value>>(&text) else {
                // An empty text and `null` say nothing.
                if !["", "null"].contains(&text.trim()) {
                    self.keep("metadata", text);
                }
                return None;
            };
            let is_taken = |name: &str| {
                (name == MEMBER && !self.members.is_empty())
                    || (name == HOLD && self.table == "work_items")
                    || more.is_some_and(|(more, _)| name == more)
            };
            if !members.keys().any(|name| is_taken(name)) {
                return Some(text.trim().to_owned());
            }
            let others = without(&text, |name| name == MEMBER || is_taken(name));
            self.keep("metadata", text);
            others
        });
        if let Some((name, json)) = more {
            object = Some(with_member(object.as_deref(), name, json));
        }
        match self.into_object(None) {
            Some(leftovers) => Some(with_member(object.as_deref(), MEMBER, &leftovers)),
            None => object,
        }
    }
}

/// The text of an object without some of its members.
fn without(object: &str, is_removed: impl Fn(&str) -> bool) -> Option<String> {
    let members: BTreeMap<String, Box<RawValue>> = serde_json::from_str(object).ok()?;
    let others: BTreeMap<_, _> = members.into_iter().filter(|(name, _)| !is_removed(name)).collect();
    serde_json::to_string(&others).ok()
}

/// The text of an object with one more member, which is JSON. The other members keep their text: numbers are not parsed.
fn with_member(object: Option<&str>, name: &str, json: &str) -> String {
    let members = object.and_then(|text| text.strip_suffix('}')).unwrap_or("{").trim_end();
    let separator = if members.ends_with('{') && members.len() == 1 { "" } else { "," };
    format!("{members}{separator}{}:{json}}}", Value::from(name))
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
            let metadata = leftovers.into_metadata(stored.map(str::to_owned), None);
            assert_eq!(metadata.as_deref(), expected, "{stored:?}, {left:?}");
            assert_eq!(tally.into_list().iter().map(|kept| kept.rows).sum::<u64>() > 0, {
                left.is_some() || stored == Some("[1]")
            });
        }
    }

    #[test]
    fn metadata_with_a_member_of_ours_is_kept_as_text() {
        let hold = crate::work::Hold { failure_count: 1, ..Default::default() };
        assert_eq!(hold.to_member().unwrap().0, HOLD);
        for (table, stored, more, expected) in [
            ("agents", r#"{"heartbeats":1.0}"#, None, r#"{"heartbeats":1.0}"#),
            ("agents", r#"{"blackboard":1}"#, None, r#"{"blackboard":1}"#),
            (
                "agents",
                r#"{"heartbeats":1,"a":1.0}"#,
                Some(("heartbeats", "[2]")),
                r#"{"a":1.0,"heartbeats":[2],"ivy_blackboard":{"metadata":"{\"heartbeats\":1,\"a\":1.0}"}}"#,
            ),
            (
                "work_items",
                r#"{"blackboard":1}"#,
                None,
                r#"{"ivy_blackboard":{"metadata":"{\"blackboard\":1}"}}"#,
            ),
        ] {
            let mut tally = Tally::default();
            let leftovers = Leftovers::of(table, &mut tally);
            let metadata = leftovers.into_metadata(Some(stored.to_owned()), more);
            assert_eq!(metadata.as_deref(), Some(expected), "{stored}");
        }
    }
}
