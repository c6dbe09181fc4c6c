//! Reads a complete board, part by part, from one transaction.

use rusqlite::params;

use super::cells::{self, EVENT_COLUMNS};
use super::tx::SqliteTx;
use crate::error::Result;
use crate::revision::Revision;
use crate::store::record::Table;
use crate::store::transfer::{Extent, Part, Recipient, count_rows};
use crate::store::{TABLES, Tx};

/// The rows that only this engine has: another one keeps them in its own way. They are in the table `marks`.
const OWN_ROWS: &str = " WHERE name NOT IN ('floor', 'sealed')";

/// The versions that are kept although their events were pruned: of entries, and of those that an event of the log
/// has replaced.
const OLD_VERSIONS: &str = "SELECT * FROM entry_versions WHERE revision <= ?1 AND \
    (revision IN (SELECT revision FROM entries) \
    OR revision IN (SELECT previous FROM entry_versions WHERE revision > ?1)) ORDER BY revision";

impl SqliteTx<'_> {
    /// Gives every part of the board to a recipient.
    pub(super) fn dump(&self, to: &mut dyn Recipient) -> Result<()> {
        let (revision, floor) = (self.revision()?, self.floor()?);
        to.begin(&Extent {
            revision,
            floor,
            rows: count_rows(|table| self.count_rows(table))?,
            events: self.count_events(Revision::ZERO, revision)?,
        })?;
        for table in TABLES {
            self.dump_rows(table, to)?;
        }
        self.dump_old_versions(floor, to)?;
        self.dump_events(to)
    }

    fn count_rows(&self, table: &Table) -> Result<u64> {
        let sql = format!("SELECT count(*) FROM {}{}", table.name, condition(table));
        let count: Option<i64> = self.query_one(&sql, [], |row| row.get(0))?;
        Ok(count.and_then(|count| u64::try_from(count).ok()).unwrap_or(0))
    }

    fn dump_rows(&self, table: &Table, to: &mut dyn Recipient) -> Result<()> {
        let (columns, join) = (table.sql.columns, table.sql.join);
        let sql = format!("SELECT {columns} FROM {}{join}{}", table.name, condition(table));
        let mut statement = self.prepare(&sql)?;
        let mut rows = statement.query([]).map_err(|error| self.fault(error))?;
        while let Some(row) = rows.next().map_err(|error| self.fault(error))? {
            to.part(Part::Row(cells::row_from(table, row)?))?;
        }
        Ok(())
    }

    fn dump_old_versions(&self, floor: Revision, to: &mut dyn Recipient) -> Result<()> {
        let mut statement = self.prepare(OLD_VERSIONS)?;
        let mut rows = statement.query(params![floor.get()]).map_err(|error| self.fault(error))?;
        while let Some(row) = rows.next().map_err(|error| self.fault(error))? {
            to.part(Part::Version(cells::version_from(row)?))?;
        }
        Ok(())
    }

    fn dump_events(&self, to: &mut dyn Recipient) -> Result<()> {
        let mut statement = self.prepare(&format!("SELECT {EVENT_COLUMNS} FROM events ORDER BY id"))?;
        let mut rows = statement.query([]).map_err(|error| self.fault(error))?;
        while let Some(row) = rows.next().map_err(|error| self.fault(error))? {
            let event = cells::event_from(row)?;
            let version = self.version(event.id)?;
            to.part(Part::Event(Box::new(event), version.map(Box::new)))?;
        }
        Ok(())
    }
}

fn condition(table: &Table) -> &'static str {
    if table.name == "marks" { OWN_ROWS } else { "" }
}
