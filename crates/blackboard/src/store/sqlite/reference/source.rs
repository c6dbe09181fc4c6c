//! Values of its rows. SQLite checks no types, and older versions have fewer columns: a missing column has no value.

use std::fmt::Write as _;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row};
use serde_json::{Value, json};

use crate::clock::Timestamp;

/// A row, whose values are found by the names of their columns.
pub(super) struct SourceRow<'a> {
    row: &'a Row<'a>,
    columns: &'a [String],
    unknown: &'a [String],
}

/// Calls `with` for each row of a query. `known` are the columns that it converts.
pub(super) fn for_each(
    connection: &Connection,
    sql: &str,
    known: &[&str],
    mut with: impl FnMut(&SourceRow<'_>) -> rusqlite::Result<()>,
) -> rusqlite::Result<()> {
    let mut statement = connection.prepare(sql)?;
    let columns: Vec<String> = statement.column_names().map(str::to_owned).collect();
    let unknown: Vec<String> =
        columns.iter().filter(|column| !known.contains(&column.as_str())).cloned().collect();
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        with(&SourceRow { row, columns: &columns, unknown: &unknown })?;
    }
    Ok(())
}

/// Whether the database has this table.
pub(super) fn has_table(connection: &Connection, table: &str) -> rusqlite::Result<bool> {
    const FIND: &str = "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = ?1";
    connection.query_row(FIND, [table], |row| row.get::<_, i64>(0)).map(|count| count > 0)
}

impl SourceRow<'_> {
    fn value(&self, column: &str) -> rusqlite::Result<ValueRef<'_>> {
        match self.columns.iter().position(|known| known == column) {
            Some(place) => self.row.get_ref(place),
            None => Ok(ValueRef::Null),
        }
    }

    /// The text of a column. Bytes that are no text are replaced.
    pub(super) fn text(&self, column: &str) -> rusqlite::Result<Option<String>> {
        Ok(match self.value(column)? {
            ValueRef::Null => None,
            ValueRef::Integer(number) => Some(number.to_string()),
            ValueRef::Real(number) => Some(number.to_string()),
            ValueRef::Text(bytes) | ValueRef::Blob(bytes) => {
                Some(String::from_utf8_lossy(bytes).into_owned())
            }
        })
    }

    /// The text of a column that every row has.
    pub(super) fn required_text(&self, column: &str) -> rusqlite::Result<String> {
        self.text(column).map(Option::unwrap_or_default)
    }

    /// The integer in a column.
    pub(super) fn integer(&self, column: &str) -> rusqlite::Result<Option<i64>> {
        Ok(match self.value(column)? {
            ValueRef::Integer(number) => Some(number),
            _ => None,
        })
    }

    /// The value of a column as JSON, from which it can be restored.
    pub(super) fn json(&self, column: &str) -> rusqlite::Result<Value> {
        let value = self.value(column)?;
        if let Some(bytes) = not_text(value) {
            return Ok(in_hex(bytes));
        }
        Ok(match value {
            ValueRef::Null => Value::Null,
            ValueRef::Integer(number) => number.into(),
            ValueRef::Real(number) if number.is_finite() => number.into(),
            // JSON has no infinity.
            ValueRef::Real(_) | ValueRef::Text(_) | ValueRef::Blob(_) => self.text(column)?.into(),
        })
    }

    /// The names of its columns.
    pub(super) fn columns(&self) -> impl Iterator<Item = &str> {
        self.columns.iter().map(String::as_str)
    }

    /// The columns that are not converted: a user may have added them.
    pub(super) fn unknown(&self) -> impl Iterator<Item = &str> {
        self.unknown.iter().map(String::as_str)
    }

    /// The columns whose bytes are no text, with these bytes.
    pub(super) fn bytes(&self) -> impl Iterator<Item = (&str, Value)> {
        let columns = self.columns.iter().enumerate();
        columns.filter_map(|(place, column)| {
            let bytes = not_text(self.row.get_ref(place).ok()?)?;
            Some((column.as_str(), in_hex(bytes)))
        })
    }
}

fn not_text(value: ValueRef<'_>) -> Option<&[u8]> {
    match value {
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => std::str::from_utf8(bytes).is_err().then_some(bytes),
        ValueRef::Null | ValueRef::Integer(_) | ValueRef::Real(_) => None,
    }
}

fn in_hex(bytes: &[u8]) -> Value {
    let digits = bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut digits, byte| {
        // Writing to a `String` cannot fail.
        let _ = write!(digits, "{byte:02x}");
        digits
    });
    json!({ "hex": digits })
}

/// Whether the stored form of a time says all that this text says. A zone and a part of a millisecond are lost there.
pub(super) fn is_exact(time: Timestamp, text: &str) -> bool {
    let stored = time.to_string();
    stored == text
        || stored.strip_suffix(".000Z").is_some_and(|seconds| {
            let text = text.strip_suffix('Z').unwrap_or(text);
            text.len() == seconds.len() && text.replacen(' ', "T", 1) == seconds
        })
}

/// A time in one of its two forms: ISO 8601, or `YYYY-MM-DD HH:MM:SS` in UTC.
pub(super) fn parse_time(text: &str) -> Option<Timestamp> {
    let parsed = text.parse().ok();
    parsed.or_else(|| format!("{}Z", text.trim().replacen(' ', "T", 1)).parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_of_time_are_parsed() {
        for (text, expected) in [
            ("2026-02-03T15:30:00.250Z", Some("2026-02-03T15:30:00.250Z")),
            ("2026-02-03T16:30:00+01:00", Some("2026-02-03T15:30:00.000Z")),
            ("2026-02-03 15:30:00", Some("2026-02-03T15:30:00.000Z")),
            ("yesterday", None),
            ("", None),
        ] {
            let parsed = parse_time(text).map(|time| time.to_string());
            assert_eq!(parsed.as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn a_time_is_exact_if_its_stored_form_says_the_same() {
        for (text, expected) in [
            ("2026-02-03T15:30:00.250Z", true),
            ("2026-02-03T15:30:00Z", true),
            ("2026-02-03 15:30:00", true),
            ("2026-02-03T15:30:00.250123Z", false),
            ("2026-02-03T16:30:00+01:00", false),
            ("1969-02-03T15:30:00.000Z", false),
        ] {
            assert_eq!(is_exact(parse_time(text).unwrap(), text), expected, "{text}");
        }
    }
}
