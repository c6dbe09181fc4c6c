//! What agent platforms call: `blackboard hook PLATFORM`.
//!
//! A hook never breaks or slows the agent it runs in. It has 300 ms from its start to its end, of which it waits for the
//! board's lock 100 ms at most, however often it writes, and then leaves the write; on whatever error it says nothing,
//! exits with 0, and writes one line to a log file. Nothing of prompts, transcripts, tool input or output is stored or
//! logged, but the paths of edited files, the names of tools and the short description of what a delegate is asked to do.
//!
//! `commands/hook.rs` is the command. What is different on each platform is in `platforms/`.
//!
//! | File | What it is about |
//! |---|---|
//! | `request.rs`, `patch.rs` | what a platform calls about |
//! | `handle.rs`, `files.rs` | what is done on which board then, and which files it is about |
//! | `messages.rs` | what the agent reads; `messages/quote.rs` marks text of other agents as data |
//! | `deadline.rs` | how long all of it may take, and how it ends |
//! | `maintenance.rs` | a process for maintenance that takes longer |
//! | `log.rs` | what went wrong, and where that is written |

pub mod deadline;
mod files;
pub mod handle;
pub mod log;
pub mod maintenance;
mod messages;
mod patch;
pub mod request;
#[cfg(test)]
mod tests;

pub use self::request::{EventKind, PayloadFields, PayloadFormat};
