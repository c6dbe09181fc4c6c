//! Search over entries, work items, progress notes and events, ranked by their words.
//!
//! The index is a file of its own, beside the board or in a directory of the user. It follows the event log, so no writer of
//! the board pays for it, every engine has it, and it can be deleted at any time. A search first brings it up to date,
//! within limits, and reports what is missing. The index has words and no text: what a search shows is read from the board,
//! so nothing is shown that was removed meanwhile, or that the caller may not read.
//!
//! ```
//! use blackboard::entry::{Value, Write};
//! use blackboard::search::{IndexLocation, Query};
//! use blackboard::Board;
//!
//! let board = Board::memory();
//! let text = Value::of("Logins are limited to five retries per minute; see src/auth/login.rs")?;
//! board.scope("team").write(&Write::new("decision:login", text))?;
//!
//! let found = board.search(&Query::new("how often may a login be retried?"), &IndexLocation::Memory)?;
//! assert_eq!(found.results[0].id, "decision:login");
//! assert!(found.results[0].snippet.contains("five retries"));
//! # Ok::<(), blackboard::Error>(())
//! ```
//!
//! | File | What it is about |
//! |---|---|
//! | `query.rs`, `words.rs`, `stem.rs` | what to look for; the words of a text |
//! | `document.rs` | what can be found, and under which words |
//! | `fold.rs` | bringing the index up to date |
//! | `index.rs`, `postings.rs`, `schema.sql` | the file |
//! | `rank.rs` | the order of results |
//! | `find.rs`, `snippet.rs` | from the query to results, read from the board |
//! | `suggest.rs` | what is close, if nothing is found |
//! | `pack.rs` | the best results in a number of tokens |

mod document;
mod find;
mod fold;
mod index;
mod pack;
mod postings;
mod query;
mod rank;
mod snippet;
mod stem;
mod suggest;
mod words;

#[cfg(test)]
mod tests;

pub use self::document::Kind;
pub use self::find::{Found, SearchResult};
pub use self::fold::{Behind, CatchUp, Indexed};
pub use self::index::IndexLocation;
pub use self::pack::{estimate_tokens, pack};
pub use self::query::Query;
pub use self::suggest::Suggestions;
