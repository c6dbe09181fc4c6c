//! Memory: levels of records, with rules between them.
//!
//! A level is a scope with rules ([`LevelRules`], a policy of the scope), and a record is an entry of that scope. So access rules,
//! history, events and subscriptions of memory are those of entries. A record moves to the next level in one commit, which writes
//! it there and deletes it here: nothing is deleted without its replacement. Decay is computed by readers and never written.
//!
//! | File | What it is about |
//! |---|---|
//! | `define.rs`, `levels.rs`, `map.rs` | levels: defining, listing, and what is in them |
//! | `remember.rs`, `recall.rs`, `feedback.rs`, `forget.rs` | records: writing, finding, rating, deleting |
//! | `promote.rs`, `drain.rs`, `ended.rs` | moving records: by name, by rule, and when a session ends |
//! | `pending.rs`, `compact.rs` | batches that need a summary, and the summary that replaces them |
//! | `rules.rs`, `seed.rs` | the rules of a level; the levels of one command |
//! | `record.rs`, `moving.rs` | the stored form of a record; how one is moved |
//! | `for_brief.rs` | what the brief of a session says |
//! | `score.rs` | how records are ranked; words are compared by `search/` |

mod compact;
mod define;
mod drain;
mod ended;
mod feedback;
mod for_brief;
mod forget;
mod levels;
mod map;
mod moving;
mod pending;
mod promote;
mod recall;
mod record;
mod remember;
mod rules;
mod score;
mod seed;
#[cfg(test)]
mod tests;

pub use self::compact::{Compact, Compacted};
pub use self::define::{Define, Defined, DefinedLevel};
pub use self::drain::{Drain, Drained, MovedBetween};
pub(crate) use self::ended::drain_session;
pub use self::feedback::{Rated, Usefulness};
pub use self::for_brief::MemoryBrief;
pub use self::forget::Forgotten;
pub(crate) use self::levels::Level;
pub use self::levels::ListedLevel;
pub use self::map::{LevelEdge, LevelState, MemoryMap};
pub use self::pending::{Batch, BatchReason, BatchRecord, Pending};
pub use self::promote::{Promote, Promoted};
pub use self::recall::{Lens, MAX_EXAMINED, Recall, Recalled, RecalledRecord};
pub use self::record::MAX_RECORD_LENGTH;
pub use self::remember::{Content, Remember, Remembered};
pub use self::rules::{LevelRules, MAX_LEVELS, Relevance};
pub use self::score::ScoreParts;
pub use self::seed::SEED_LEVELS;
use crate::board::Board;

/// The memory of a board: `board.memories()`.
#[derive(Clone, Copy)]
pub struct Memories<'a> {
    pub(crate) board: &'a Board,
}

/// The level of records that a session remembers without naming one.
pub const WORKING: &str = "working";

/// The level of records that are remembered without a session.
pub const SHORT_TERM: &str = "short-term";

/// The level that new sessions of a project start with.
pub const COLLECTIVE: &str = "collective";
