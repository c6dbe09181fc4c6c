//! What agent platforms call: `blackboard hook PLATFORM`.
//!
//! A hook never breaks or slows the agent it runs in. It has 300 ms from its start to its end, of which it waits for the
//! board's lock 100 ms at most, however often it writes, and then leaves the write; on whatever error it says nothing,
//! exits with 0, and writes one line to a log file. Nothing of prompts, transcripts, tool input or output is stored or
//! logged, but the paths of edited files, the names of tools and the short description of what a delegate is asked to do.
//!
//! | File | What it is about |
//! |---|---|
//! | `call.rs`, `payload.rs`, `patch.rs` | what a platform calls about |
//! | `claude.rs`, `codex.rs`, `gemini.rs`, `copilot.rs`, `cursor.rs`, `opencode.rs` | names and answers, one file a platform |
//! | `deadline.rs` | how long all of it may take |
//! | `happen.rs`, `files.rs` | what happens on the board then, and which files it is about |
//! | `place.rs` | which board, which project, which name |
//! | `words.rs`, `fence.rs` | what the agent reads, marked as data of others |
//! | `log.rs` | what went wrong |

mod call;
mod claude;
mod codex;
mod copilot;
mod cursor;
mod deadline;
mod fence;
mod files;
mod gemini;
mod happen;
mod log;
mod opencode;
mod patch;
mod payload;
mod place;
#[cfg(test)]
mod tests;
mod words;

use std::panic;
use std::process::{self, ExitCode};
use std::sync::Arc;

use serde_json::Value;

use self::call::{Dialect, Happening};
use self::deadline::Deadline;
use self::log::LogFile;
use self::payload::Payload;
use crate::context::Context;
use crate::environment::Environment;

/// Every platform that calls.
const PLATFORMS: &[Platform] =
    &[claude::CLAUDE, codex::CODEX, gemini::GEMINI, copilot::COPILOT, cursor::CURSOR, opencode::OPENCODE];

/// How a platform calls, and what it takes for an answer.
pub struct Platform {
    /// Its name on the command line, and in the ids of its sessions.
    pub id: &'static str,
    /// Its name for people, and for agents that have no other.
    pub name: &'static str,
    /// How it names things.
    pub dialect: Dialect,
    /// Whether one process of it hosts many sessions, so that a live process proves nothing about one of them.
    pub hosts_many: bool,
    /// Whether it hands on context before a tool runs. If not, a warning comes after it.
    pub hears_before_tools: bool,
    /// Whether it hands on context with a prompt. If not, news wait for the next tool.
    pub hears_prompts: bool,
    /// Its form of an answer to an event.
    pub speak: fn(&str, &Reply) -> Option<Value>,
}

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

/// What a hook says, and what it does once that was said.
pub struct Answer {
    /// What the platform reads; nothing if there is nothing to say.
    pub said: Option<Value>,
    /// What can wait.
    pub afterwards: Box<dyn FnOnce()>,
}

/// Starts the time limit of a hook. The first thing that a hook does.
pub fn start_deadline() {
    // If it cannot be kept, the call does nothing and reports that.
    let _ = deadline::start();
}

/// Makes a call of a hook and ends with success, also after a panic. Platforms take another exit code for a reason to stop
/// the tool or the agent.
pub fn in_good_order(call: impl FnOnce() -> ExitCode) -> ExitCode {
    // Release builds do not unwind (docs/decisions/0013), so a panic is handled where it starts.
    panic::set_hook(Box::new(|_| process::exit(0)));
    call();
    ExitCode::SUCCESS
}

/// Answers one call. Nothing that happens here is an error of the call.
pub fn run(platform: &str, context: &Context) -> Answer {
    let environment = context.environment();
    let silence = || Answer { said: None, afterwards: Box::new(|| {}) };
    let Some(deadline) = deadline::start() else {
        // Without a limit nothing is begun.
        let log = LogFile::default();
        log.called_by(platform, context.globals.db.clone());
        log.write_from_anywhere("no thread could be started to keep the time");
        return silence();
    };
    let log = &deadline.log;
    log.called_by(platform, context.globals.db.clone());
    log_panics(log);
    let silence_about = |what: &str| {
        log.locate(&place::log_files(&context.request()));
        log.write(what);
        silence()
    };
    let Some(platform) = PLATFORMS.iter().find(|known| known.id == platform) else {
        return silence_about("unknown platform");
    };
    let input = match deadline::input() {
        Ok(input) => input,
        Err(reason) => return silence_about(&reason),
    };
    let called = Payload::parse(&input).and_then(|payload| {
        let platform = who_really_calls(platform, &call::session_of(&payload)?, environment);
        Some((platform, platform.dialect.read(&payload)?))
    });
    let Some((platform, call)) = called else {
        return silence_about("the input names no event and no session");
    };
    log.about(&call.event);
    if call.happening == Happening::Nothing {
        return silence();
    }
    match happen::happen(platform, &call, context, deadline) {
        Ok(happen::Happened { reply, afterwards }) => {
            Answer { said: (platform.speak)(&call.event, &reply), afterwards }
        }
        Err(error) => {
            log.write(&format!("{}: {error}", error.code()));
            silence()
        }
    }
}

/// Copilot CLI runs the hooks of Claude Code that it finds in a repository, too. A Claude Code that was started by a
/// Copilot CLI inherits its environment, but knows its own session.
fn who_really_calls<'p>(platform: &'p Platform, session: &str, environment: &Environment) -> &'p Platform {
    let own_session = environment
        .platform_sessions
        .iter()
        .any(|(platform, own)| *platform == claude::CLAUDE.id && *own == *session);
    if platform.id == claude::CLAUDE.id && environment.copilot.is_some() && !own_session {
        return PLATFORMS.iter().find(|known| known.id == copilot::COPILOT.id).unwrap_or(platform);
    }
    platform
}

/// Lets a panic write its location into the log before the process ends. Its message is left out: it may repeat what was read.
fn log_panics(log: &Arc<LogFile>) {
    let log = Arc::clone(log);
    panic::set_hook(Box::new(move |panic| {
        let location = panic.location().map(ToString::to_string).unwrap_or_default();
        log.write(&format!("a fault of this program at {location}"));
        process::exit(0);
    }));
}
