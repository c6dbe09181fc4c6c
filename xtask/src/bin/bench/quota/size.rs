//! The size of a ledger.

use std::path::Path;
use std::time::Duration;

use rusqlite::Connection;

use super::ledger::Home;
use crate::report::{Bar, Line, Unit};
use crate::{Result, Scale};

/// The file after a year with 5,000 messages a day.
pub fn measure(scale: &Scale) -> Result<Vec<Line>> {
    let (home, days) = (Home::new()?, scale.of(365, 10));
    let length = Duration::from_hours(24 * days as u64);
    home.record(Path::new("/home/ivy/projects/alpha/.blackboard/local.db"), days * 5_000, length)?;
    let ledger = Connection::open(home.ledger())?;
    ledger.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
    let size = std::fs::metadata(home.ledger())?.len() as f64 / 1_000_000.0;
    let what = format!("the ledger after {days} days with 5,000 messages each");
    Ok(vec![Line::new(what, Bar::AtMost(5.0), Unit::Megabytes, &[size], "")])
}
