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
//! | `handle.rs`, `files.rs` | what is done on the board then, and which files it is about |
//! | `place.rs` | which board |
//! | `words.rs`, `fence.rs` | what the agent reads, marked as data of others |
//! | `deadline.rs` | how long all of it may take |
//! | `log.rs` | what went wrong |

pub mod deadline;
mod fence;
mod files;
pub mod handle;
pub mod log;
mod patch;
pub mod place;
pub mod request;
#[cfg(test)]
mod tests;
mod words;

use std::panic;
use std::process::{self, ExitCode};
use std::sync::Arc;

use self::log::LogFile;
pub use self::request::{EventKind, PayloadFormat};

/// What an agent is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// Nothing.
    Silence,
    /// Something to read.
    Context {
        /// What.
        text: String,
        /// Its session, where it has just got one.
        session: Option<String>,
    },
    /// That it may not do what it is about to do.
    Deny(String),
}

/// Starts the time limit of a hook. The first thing that a hook does.
pub fn start_deadline() {
    // If it cannot be kept, the call does nothing and reports that.
    let _ = deadline::start();
}

/// Makes a call of a hook and ends with success, also after a panic. Platforms take another exit code for a reason to stop
/// the tool or the agent.
pub fn always_exit_zero(call: impl FnOnce() -> ExitCode) -> ExitCode {
    // Release builds do not unwind (docs/decisions/0013), so a panic is handled where it starts.
    panic::set_hook(Box::new(|_| process::exit(0)));
    call();
    ExitCode::SUCCESS
}

/// Lets a panic write its location into the log before the process ends. Its message is left out: it may repeat what was read.
pub fn log_panics(log: &Arc<LogFile>) {
    let log = Arc::clone(log);
    panic::set_hook(Box::new(move |panic| {
        let location = panic.location().map(ToString::to_string).unwrap_or_default();
        log.write(&format!("a fault of this program at {location}"));
        process::exit(0);
    }));
}
