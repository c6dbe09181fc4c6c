//! Session ids: random, or derived from a session hint, so that a resumed session keeps its id.

use std::sync::atomic::{AtomicU64, Ordering};

use uuid::Uuid;

/// The UUID namespace of ids that are derived from session hints. It never changes, so old sessions are found again.
const HINTS: Uuid = Uuid::from_u128(0x6f1d_6a0e_4b1c_4c58_9a35_1d9a_7c0b_51e2);

/// The source of new session ids.
pub trait Ids: Send + Sync {
    /// An id that no session has had before.
    fn session(&self) -> String;
}

/// Version 4 UUIDs.
#[derive(Clone, Copy, Debug, Default)]
pub struct RandomIds;

impl Ids for RandomIds {
    fn session(&self) -> String {
        Uuid::new_v4().to_string()
    }
}

/// Ids that count upwards, for tests.
#[derive(Debug, Default)]
pub struct CountingIds(AtomicU64);

impl Ids for CountingIds {
    fn session(&self) -> String {
        Uuid::from_u128(u128::from(self.0.fetch_add(1, Ordering::Relaxed) + 1)).to_string()
    }
}

/// The id of a session hint: always the same one.
///
/// ```
/// use blackboard::id::session_id_from_hint;
///
/// assert_eq!(session_id_from_hint("claude-42"), session_id_from_hint("claude-42"));
/// assert_ne!(session_id_from_hint("claude-42"), session_id_from_hint("claude-43"));
/// ```
pub fn session_id_from_hint(hint: &str) -> String {
    Uuid::new_v5(&HINTS, hint.as_bytes()).to_string()
}
