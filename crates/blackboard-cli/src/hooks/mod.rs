//! The hooks that agent platforms call: `blackboard hook PLATFORM`.
//!
//! A hook never breaks or slows down its agent. It has 300 ms from start to end. Of these it waits at most 100 ms for
//! the board's lock, in all its writes together, and then gives up the write. On any error it prints nothing, exits
//! with 0, and writes one line to the hook log. Of prompts, transcripts, tool input and output, it stores and logs only
//! the paths of edited files, the names of tools and the short description of a delegate's task.
//!
//! `commands/hook.rs` is the command. `platforms/` has what differs between platforms.
//!
//! | File | Content |
//! |---|---|
//! | `request.rs`, `patch.rs` | the input: reading and parsing |
//! | `handle.rs`, `files.rs` | the actions on the board, and the files of a call |
//! | `messages.rs` | what the agent reads; `messages/quote.rs` marks text of other agents as data |
//! | `deadline.rs` | the time limit of a call, and its end |
//! | `maintenance.rs` | a process for maintenance that takes longer |
//! | `log.rs` | the log of errors |

pub mod deadline;
mod files;
pub mod handle;
pub mod log;
pub mod maintenance;
pub mod messages;
mod patch;
pub mod request;
#[cfg(test)]
mod tests;

pub use self::request::{EventKind, PayloadFields, PayloadFormat};
