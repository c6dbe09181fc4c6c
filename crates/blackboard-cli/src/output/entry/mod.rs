//! Entries, as human and JSON output.
//!
//! A program gets a value as it came, and so does a caller of the bare value. People see the same JSON on one line
//! with its harmful characters escaped, and in tables on a terminal only the beginning of it.

mod change;
mod history;
mod list;
mod read;

use std::time::Duration;

use blackboard::clock::Timestamp;
use blackboard::entry::{DEFAULT_SCOPE, FILES, LOCKS, Lease, Value};

pub use self::change::{
    ClearedEntries, ComparedEntries, CountedEntry, DeletedEntry, PurgedKey, WouldClear, WouldPurge,
    WrittenEntry,
};
pub use self::history::{Change, KeyHistory};
pub use self::list::{EntryList, KeyList, WholeScope, in_quotes};
pub use self::read::{BareValue, Missing, RawText, ReadEntry};
use super::{Screen, harmless_json, shortened};

/// A value on one line, or as much of it as a row on this screen can have.
fn glimpse(value: &Value, screen: &Screen<'_>) -> String {
    let most = screen.width().map_or(usize::MAX, usize::from);
    harmless_json(&shortened(value.as_str(), most)).into_owned()
}

/// The text for something that a session held.
pub fn leased(lease: &Lease) -> String {
    let Lease { scope, key, pattern } = lease;
    match scope.as_str() {
        LOCKS => format!("lock {key}"),
        FILES => format!("file reservation {}", pattern.as_ref().unwrap_or(key)),
        DEFAULT_SCOPE => format!("entry {key}"),
        scope => format!("entry {key} in scope {scope}"),
    }
}

/// How many locks, file reservations and leased entries these are; `None` if there are none.
pub fn counted_leases<'a>(leases: impl Iterator<Item = &'a Lease>) -> Option<String> {
    let [mut locks, mut files, mut entries] = [0; 3];
    for lease in leases {
        match lease.scope.as_str() {
            LOCKS => locks += 1,
            FILES => files += 1,
            _ => entries += 1,
        }
    }
    let counted = [
        (locks, "lock", "locks"),
        (files, "file reservation", "file reservations"),
        (entries, "leased entry", "leased entries"),
    ];
    let counted = counted.into_iter().filter(|(count, ..)| *count > 0);
    let counted =
        counted.map(|(count, one, many)| format!("{count} {}", if count == 1 { one } else { many }));
    let counted: Vec<String> = counted.collect();
    (!counted.is_empty()).then(|| counted.join(", "))
}

/// The scope, if it is not the default one.
fn unusual(scope: &str) -> Option<String> {
    (scope != DEFAULT_SCOPE).then(|| scope.to_owned())
}

/// The seconds until a moment, as in `45s`; less than one as in `0.3s`. Something that lives has some left.
fn left(until: Timestamp, now: Timestamp) -> String {
    match until.since(now) {
        moment if moment < Duration::from_secs(1) => format!("{:.1}s", moment.as_secs_f64().max(0.1)),
        longer => format!("{}s", whole_seconds(longer)),
    }
}

/// Seconds, those that have begun too.
fn whole_seconds(duration: Duration) -> u64 {
    duration.as_secs() + u64::from(duration.subsec_nanos() > 0)
}
