//! Entries: writing, reading, finding and following them.

mod access;
pub mod followers;
pub mod sizes;

use crate::Measurement;

/// Every measurement, in the order in which they run.
pub const MEASUREMENTS: &[Measurement] = &[
    ("write", access::writing),
    ("read", access::reading),
    ("hear", followers::hearing),
    ("followers", followers::many),
    ("idle", followers::idle),
    ("find", sizes::finding),
    ("fill", sizes::writing),
];

/// The time in its stored form.
fn now() -> String {
    use blackboard::clock::{Clock, SystemClock};
    SystemClock.now().to_string()
}
