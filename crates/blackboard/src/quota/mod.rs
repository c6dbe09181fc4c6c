//! A ledger of tokens: what agents use, what they may use, and what they have reserved.
//!
//! The ledger is a file of its own, for all boards of a user. No board holds any of it. Usage is recorded once per
//! message id, and folded into buckets. A window counts a bucket until all of it is outside, so a window never counts
//! too little: it may count what is older by up to one bucket. Stored are numbers, model, board, session, agent, work
//! item and time, and nothing else.
//!
//! ```
//! use blackboard::quota::{Config, Ledger, Record, TokenRequest, Usage};
//!
//! let directory = tempfile::tempdir().unwrap();
//! let config = Config::parse(r#"{"providers": {"anthropic": {"windows": {"5h": {"budget": 50000}}}}}"#)?;
//! let ledger = Ledger::open(&directory.path().join("quota.db"), &config)?;
//! let usage = Usage { input: 20_000, output: 10_000, ..Usage::default() };
//! let record = Record { model: "opus".into(), ..Record::new("msg_1", "anthropic", ledger.now(), usage) };
//! assert_eq!(ledger.record(&[record.clone(), record])?.recorded, 1);
//!
//! assert!(ledger.check(&TokenRequest::new("anthropic", 20_000))?.fits);
//! assert!(!ledger.check(&TokenRequest::new("anthropic", 20_001))?.fits);
//! # Ok::<(), blackboard::Error>(())
//! ```
//!
//! | File | What it is about |
//! |---|---|
//! | `config.rs`, `shape.rs`, `stricter.rs` | providers, windows, caps; the form of a configuration; what a project may change |
//! | `usage.rs` | numbers of a message, and records |
//! | `ledger.rs`, `schema.sql`, `steps/` | opening the file; its tables, and those that later versions added |
//! | `change.rs`, `journal.rs` | what changes a ledger; the changes of all machines |
//! | `record.rs`, `uncounted.rs` | recording, once per id; messages of models that no provider has |
//! | `fold.rs` | folding, retention, and clocks that jump |
//! | `limits.rs` | limits that a platform has reported |
//! | `timeline.rs` | what is in a window, and when it leaves |
//! | `check.rs`, `reservations.rs` | whether tokens fit, and holding them |
//! | `items.rs` | what work items have used, and an estimate from that |
//! | `notices.rs` | thresholds that were passed, each once |
//! | `status.rs`, `history.rs` | what users see |

mod change;
mod check;
mod config;
mod fold;
mod history;
mod items;
mod journal;
mod ledger;
mod limits;
mod notices;
mod record;
mod reservations;
mod shape;
mod status;
mod stricter;
mod timeline;
mod uncounted;
mod usage;

pub use self::check::{Check, Reason, TokenRequest};
pub use self::config::{AgentCaps, AgentLimits, Budget, Config, Enforcement, Provider, RateLimit, Window};
pub use self::history::{HistoryPoint, Step};
pub use self::items::SimilarEstimate;
pub use self::ledger::Ledger;
pub use self::limits::ReportedLimit;
pub use self::notices::{Crossing, SessionOfProvider};
pub use self::record::Recorded;
pub use self::reservations::{Reservation, Reserved};
pub use self::status::{AgentUsage, ItemUsage, Load, OtherBoards, ProviderStatus, Status, WindowStatus};
pub use self::uncounted::{UncountedMessage, UncountedModel};
pub use self::usage::{Record, Usage};

#[cfg(test)]
mod tests;
