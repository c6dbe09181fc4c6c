//! Triggers that refuse writes of a process of ivy-blackboard that has the database open since before the upgrade.
//!
//! A new process refuses the database by its version. One that runs already would run its statements on the new tables,
//! and some would succeed without an event. This program switches triggers off on all of its connections, so they
//! never run here.

use std::fmt::Write as _;

/// The tables that both programs have.
const TABLES: [&str; 5] = ["agents", "projects", "work_items", "heartbeats", "events"];

const WRITES: [&str; 3] = ["INSERT", "UPDATE", "DELETE"];

/// The statements that create all of them.
pub(super) fn statements() -> String {
    all().fold(String::new(), |mut statements, guard| {
        // Writing to a `String` cannot fail.
        let _ = writeln!(statements, "{guard};");
        statements
    })
}

/// Whether this is the statement of one of them, as SQLite stores it.
pub(in super::super) fn is_guard(sql: &[u8]) -> bool {
    all().any(|guard| guard.as_bytes() == sql)
}

fn all() -> impl Iterator<Item = String> {
    TABLES.into_iter().flat_map(|table| WRITES.into_iter().map(move |write| guard(table, write)))
}

fn guard(table: &str, write: &str) -> String {
    format!(
        "CREATE TRIGGER upgraded_{table}_{} BEFORE {write} ON {table} \
         BEGIN SELECT raise(ABORT, 'this board was upgraded; ivy-blackboard cannot write to it'); END",
        write.to_lowercase()
    )
}
