//! Entries, for people and programs.
//!
//! A program gets a value as it came, and so does a caller of the bare value. People see the same JSON on one line
//! with its harmful characters escaped, and in tables only the beginning of it.

mod change;
mod history;
mod list;
mod read;

use std::ops::RangeInclusive;
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

/// How much of a value a row shows, depending on the room for the whole row.
const SHOWN: RangeInclusive<usize> = 24..=60;

/// The beginning of a value, for a row on this screen.
fn glimpse(value: &Value, screen: &Screen<'_>) -> String {
    let room = screen.width().map_or(*SHOWN.end(), |width| usize::from(width) / 3);
    let shown = room.clamp(*SHOWN.start(), *SHOWN.end());
    harmless_json(&shortened(value.as_str(), shown)).into_owned()
}

/// What hung on a session, as people call it.
pub fn leased(lease: &Lease) -> String {
    let Lease { scope, key, pattern } = lease;
    match scope.as_str() {
        LOCKS => format!("lock {key}"),
        FILES => format!("file reservation {}", pattern.as_ref().unwrap_or(key)),
        DEFAULT_SCOPE => format!("entry {key}"),
        scope => format!("entry {key} in scope {scope}"),
    }
}

/// How many such things, in words.
pub fn counted_leases(count: usize) -> String {
    match count {
        1 => "1 lock, reservation or leased entry".to_owned(),
        _ => format!("{count} locks, reservations or leased entries"),
    }
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
