//! The stored form of a row, for engines that store rows as text.
//!
//! It is a JSON array: the version of this form, the name of the table, and the values of the columns in their order.
//! A pending revision is an object with the index of its event. So an engine may store a row before the commit has
//! ids, and resolve it when it reads it: see [`Pending`](crate::revision::Pending). New columns come last: a row that
//! was stored without them has no value there.

use serde_json::{Value, json};

use super::record::{Cell, Record, Stored, StoredCells, StoredRow, checked_revision};
use super::{Row, TABLES, VersionHead};
use crate::entry::{Entry, EntryVersion};
use crate::error::{Code, Fault, Result};
use crate::event::Event;
use crate::revision::Revision;

/// The version of the form. A row with a higher one was stored by a newer program.
const FORM: u64 = 1;

/// The table names of what is not a row: versions, each stored under the id of its event, and events.
const VERSIONS: &str = "entry_versions";
const EVENTS: &str = "events";

impl Row {
    /// The row as a text.
    pub fn to_stored(&self) -> String {
        let table = self.table();
        to_text(table.name, &self.cells()[..table.columns.len() - table.computed])
    }

    /// The row of a text. An entry is stored without its value, which is in its version.
    pub fn from_stored(
        text: &str,
        version: impl FnOnce(Revision) -> Result<Option<EntryVersion>>,
    ) -> Result<Row> {
        let (name, cells) = from_text(text)?;
        let Some(table) = TABLES.iter().find(|table| table.name == name) else {
            return Err(unreadable(format!("no rows are stored in {name}")));
        };
        let mut row = StoredRow::new(table.name, &cells);
        if table.name != Entry::TABLE.name {
            return (table.read)(&mut row);
        }
        let (_, _, revision) = (row.take::<String>()?, row.take::<String>()?, row.take()?);
        match version(revision)? {
            Some(version) if !version.removed => Ok(Row::Entry(version.entry)),
            Some(_) | None => Err(row.damaged("an entry points at a version without a value")),
        }
    }
}

impl EntryVersion {
    /// The version as a text.
    pub fn to_stored(&self) -> String {
        to_text(VERSIONS, &self.cells())
    }

    /// The head of the version with this revision. Values that cannot be read are absent.
    pub(crate) fn head_of_stored(revision: Revision, text: &str) -> Result<VersionHead> {
        let values = values_of(VERSIONS, text)?;
        let stored = |column| values.stored(column).ok();
        let name = |column| match stored(column) {
            Some(Stored::Text(name)) => Some(name.to_owned()),
            _ => None,
        };
        let previous = match stored(1) {
            Some(Stored::Integer(number)) => checked_revision(number),
            Some(Stored::Revision(revision)) => Some(revision),
            _ => None,
        };
        let removed = matches!(stored(5), Some(Stored::Null)).then(|| name(2).zip(name(3))).flatten();
        Ok(VersionHead { revision, previous, removed })
    }

    /// The version of a text.
    pub fn from_stored(text: &str) -> Result<EntryVersion> {
        EntryVersion::read(&mut StoredRow::new(VERSIONS, &values_of(VERSIONS, text)?))
    }
}

impl Event {
    /// The event as a text.
    pub fn to_stored(&self) -> String {
        to_text(EVENTS, &self.cells())
    }

    /// The event of a text.
    pub fn from_stored(text: &str) -> Result<Event> {
        Event::read(&mut StoredRow::new(EVENTS, &values_of(EVENTS, text)?))
    }
}

fn values_of(table: &str, text: &str) -> Result<Values> {
    match from_text(text)? {
        (name, values) if name == table => Ok(values),
        (name, _) => Err(unreadable(format!("a row of {name} is not one of {table}"))),
    }
}

fn to_text(table: &str, cells: &[Cell<'_>]) -> String {
    let value = |cell: &Cell<'_>| match cell {
        Cell::Null | Cell::List([]) => Value::Null,
        Cell::Integer(number) => json!(number),
        Cell::Revision(revision) => match revision.event() {
            Some(event) => json!({ "event": event }),
            None => json!(revision),
        },
        Cell::Text(text) => json!(text),
        Cell::Time(time) => json!(time),
        Cell::Policies(policies) => json!(policies.to_json()),
        Cell::Process(mark) => json!(mark.to_string()),
        Cell::List(list) => json!(json!(list).to_string()),
    };
    let values = [json!(FORM), json!(table)].into_iter().chain(cells.iter().map(value));
    Value::Array(values.collect()).to_string()
}

fn from_text(text: &str) -> Result<(String, Values)> {
    let mut values: Vec<Value> = serde_json::from_str(text).map_err(unreadable)?;
    match &values[..] {
        [Value::Number(form), ..] if form.as_u64().is_some_and(|form| form > FORM) => {
            Err(Fault::new(Code::NewerSchema, "a row was stored by a newer version of blackboard").into())
        }
        [Value::Number(_), Value::String(table), ..] => {
            let table = table.clone();
            values.drain(..2);
            Ok((table, Values(values)))
        }
        _ => Err(unreadable("it has no version or no table")),
    }
}

fn unreadable(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> crate::Error {
    Fault::new(Code::Corrupt, "a stored row cannot be read").because(error).into()
}

/// The values of the columns.
struct Values(Vec<Value>);

impl StoredCells for Values {
    fn stored(&self, column: usize) -> Result<Stored<'_>, Box<dyn std::error::Error + Send + Sync>> {
        match self.0.get(column) {
            None | Some(Value::Null) => Ok(Stored::Null),
            Some(Value::String(text)) => Ok(Stored::Text(text)),
            Some(Value::Number(number)) => {
                number.as_i64().map(Stored::Integer).ok_or_else(|| "no integer".into())
            }
            Some(Value::Object(pending)) => {
                let event = pending
                    .get("event")
                    .and_then(Value::as_u64)
                    .and_then(|event| usize::try_from(event).ok());
                event
                    .map(|event| Stored::Revision(Revision::of_event(event)))
                    .ok_or_else(|| "no event".into())
            }
            Some(Value::Bool(_) | Value::Array(_)) => Err("no value of a column".into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::Agent;
    use crate::entry::Write;
    use crate::revision::Pending;
    use crate::store::conformance::commits::every_kind_of_row;
    use crate::store::conformance::{an_agent, an_item};

    fn without_versions(text: &str) -> Result<Row> {
        Row::from_stored(text, |revision| panic!("version {revision} is not needed"))
    }

    #[test]
    fn every_kind_of_row_round_trips_through_its_stored_form() {
        for row in every_kind_of_row() {
            assert_eq!(without_versions(&row.to_stored()).unwrap(), row);
        }
    }

    #[test]
    fn entry_and_version_round_trip_through_their_stored_forms() {
        testkit::limit_test();
        let board = crate::Board::memory();
        let write = Write {
            tags: vec!["x".to_owned()],
            ttl: Some(std::time::Duration::from_secs(9)),
            ..Write::new("a", crate::entry::Value::of(&[1]).unwrap())
        };
        for _ in 0..2 {
            board.scope("team").write(&write).unwrap();
        }
        let entry = board.scope("team").entry("a").unwrap().unwrap();
        let version = EntryVersion { entry: entry.clone(), previous: Some(Revision::new(1)), removed: false };
        assert_eq!(EntryVersion::from_stored(&version.to_stored()).unwrap(), version);
        let removal = EntryVersion {
            entry: Entry { value: crate::entry::Value::null(), ..entry.clone() },
            removed: true,
            ..version.clone()
        };
        assert_eq!(EntryVersion::from_stored(&removal.to_stored()).unwrap(), removal);
        let row = Row::from(entry);
        for (found, expected) in [
            (Some(version), Ok(row.clone())),
            (Some(removal), Err(Code::Corrupt)),
            (None, Err(Code::Corrupt)),
        ] {
            let read = Row::from_stored(&row.to_stored(), |_| Ok(found));
            assert_eq!(read.map_err(|error| error.code()), expected);
        }
    }

    #[test]
    fn a_pending_revision_is_filled_in_after_it_was_stored() {
        let row = Row::from(Agent { revision: Revision::of_event(2), ..an_agent("a") });
        let mut read = without_versions(&row.to_stored()).unwrap();
        assert_eq!(read, row);
        read.resolve(Revision::new(40));
        assert_eq!(read, Agent { revision: Revision::new(42), ..an_agent("a") }.into());
    }

    #[test]
    fn older_row_has_no_value_in_new_columns_and_a_newer_form_is_refused() {
        let text = Row::from(an_item("x")).to_stored();
        let older = text.replace(",null]", "]");
        assert_ne!(older, text, "the summary is the newest column");
        assert_eq!(without_versions(&older).unwrap(), an_item("x").into());
        let newer = text.replacen("[1,", "[2,", 1);
        assert_eq!(without_versions(&newer).unwrap_err().code(), Code::NewerSchema);
        for text in ["", "{}", "[1]", r#"[1,"nothing"]"#, r#"[1,"agents","a",1]"#] {
            assert_eq!(without_versions(text).unwrap_err().code(), Code::Corrupt, "{text}");
        }
    }
}
