//! A coordination board for agents that work at the same time.
//!
//! Agents register, claim work items atomically, and read one event log. A board is in a SQLite file or in memory;
//! there is no server. The library is synchronous, prints nothing, and reads no environment variables.
//!
//! ```
//! use blackboard::agent::Register;
//! use blackboard::work::{Claim, Complete, Create};
//! use blackboard::{Board, Code};
//!
//! let directory = tempfile::tempdir().unwrap();
//! let board = Board::open(&directory.path().join("local.db"))?;
//!
//! let ivy = board.agents().register(&Register::named("Ivy"))?.agent.session_id;
//! let oak = board.agents().register(&Register::named("Oak"))?.agent.session_id;
//! board.work().create(&Create::new("design-schema", "Design SQL schema"))?;
//!
//! let claimed = board.work().claim(&Claim::of("design-schema", &ivy))?;
//! let refused = board.work().claim(&Claim::of("design-schema", &oak)).unwrap_err();
//! assert_eq!(refused.code(), Code::AlreadyClaimed);
//!
//! let fence = claimed.item.fence;
//! board.work().complete(&Complete { fence, ..Complete::of("design-schema", &ivy) })?;
//! # Ok::<(), blackboard::Error>(())
//! ```
//!
//! # SQLite
//!
//! SQLite is compiled in, by `rusqlite` with its `bundled` feature. The library works with the build flags that this
//! gives; a program that depends on it needs none of its own. The flags in `.cargo/config.toml` of this repository
//! turn off modules that a board does not use. That makes the `blackboard` program smaller and faster to start, and
//! changes nothing else (`docs/decisions/0012`).
//!
//! # Where things are
//!
//! | Module | What it is about |
//! |---|---|
//! | [`guide`] | examples of entries, events, transactions and protocols |
//! | [`board`] | [`Board`]: the handles to everything |
//! | [`agent`], [`project`], [`work`], [`entry`], [`scope`], [`protocol`], [`page`], [`lock`], [`file`](mod@file), [`event`] | the nouns; each verb is a method, in its own file |
//! | [`memory`] | levels of records, and how they move between them |
//! | [`sweep`], [`prune`], [`status`], [`export`], [`copy`](mod@copy) | operations on the complete board |
//! | [`brief`], [`updates`] | what hooks show to an agent: when it starts, and later |
//! | [`follow`] | following the event log, and every call that waits |
//! | [`import`](mod@import), [`swarm`] | files with entries: what an import reads, and the Markdown file |
//! | [`search`] | search over the board, with an index in its own file |
//! | [`quota`] | a separate ledger of tokens |
//! | [`store`] | the contract of the engines, memory and SQLite |
//! | [`clock`], [`id`], [`process`], [`settings`] | dependencies of a board, replaceable in tests |
//! | [`text`], [`duration`], [`metadata`], [`revision`] | values |
//! | [`error`] | the error type and every code |

pub mod agent;
pub mod board;
pub mod brief;
pub mod clock;
pub mod copy;
pub mod duration;
pub mod entry;
pub mod error;
pub mod event;
pub mod export;
pub mod file;
mod fingerprint;
pub mod follow;
pub mod guide;
mod hint;
pub mod id;
pub mod import;
mod json;
pub mod lock;
pub mod memory;
pub mod metadata;
mod names;
pub mod page;
pub mod process;
pub mod project;
pub mod protocol;
pub mod prune;
pub mod quota;
pub mod revision;
pub mod scope;
pub mod search;
pub mod settings;
pub mod status;
pub mod store;
pub mod swarm;
pub mod sweep;
pub mod text;
mod unreadable;
pub mod updates;
mod wildcard;
pub mod work;

pub use board::Board;
pub use error::{AgeKind, Code, Error, Fault, MessageAge, Refusal, Result};
pub use hint::{CheckedSubject, Hint};
pub use metadata::Metadata;
pub use revision::Revision;
pub use settings::Settings;
pub use unreadable::UnreadableRow;
