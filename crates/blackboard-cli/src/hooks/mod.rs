//! What agent platforms call: `blackboard hook PLATFORM`.
//!
//! A hook never breaks or slows the agent it runs in. It has 300 ms from its start to its end, of which it waits for the
//! board's lock 100 ms at most and then leaves the write; on whatever error it says nothing, exits with 0, and writes one
//! line to a log file. Nothing of prompts, transcripts, tool input or output is stored or logged, but the paths of edited
//! files, the names of tools and what a sub-agent is for.
//!
//! | File | What it is about |
//! |---|---|
//! | `call.rs`, `payload.rs` | what a platform calls about |
//! | `claude.rs`, `codex.rs`, `gemini.rs`, `copilot.rs`, `cursor.rs`, `opencode.rs` | names and answers, one file a platform |
//! | `deadline.rs` | how long all of it may take |
//! | `happen.rs` | what happens on the board then |
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
mod gemini;
mod happen;
mod log;
mod opencode;
mod payload;
mod place;
#[cfg(test)]
mod tests;
mod words;

use std::sync::Arc;

use serde_json::Value;

use self::call::{Call, Dialect, Happening};
use self::deadline::Deadline;
use self::log::Log;
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

/// Answers one call. Nothing that happens here is an error of the call.
pub fn run(platform: &str, context: &Context) -> Answer {
    let environment = context.environment();
    let log = Arc::new(Log::new(platform));
    let deadline = Deadline::new(environment, &log);
    let silence = || Answer { said: None, afterwards: Box::new(|| {}) };
    let Some(platform) = PLATFORMS.iter().find(|known| known.id == platform) else {
        log.locate(&place::log_directories(context, None));
        log.write("unknown platform");
        return silence();
    };
    let input = match deadline.input() {
        Ok(input) => input,
        Err(reason) => {
            log.locate(&place::log_directories(context, None));
            log.write(reason);
            return silence();
        }
    };
    let called = Payload::parse(&input).and_then(|payload| platform.dialect.read(&payload));
    let Some(call) = called else {
        log.locate(&place::log_directories(context, None));
        log.write("the input names no event and no session");
        return silence();
    };
    log.about(&call.event);
    let platform = who_really_calls(platform, &call, environment);
    if call.happening == Happening::Nothing {
        return silence();
    }
    match happen::happen(platform, &call, context, &deadline, &log) {
        Ok(happen::Happened { reply, afterwards }) => {
            let said = (platform.speak)(&call.event, &reply);
            if said.is_some() {
                deadline.watch();
            }
            Answer { said, afterwards }
        }
        Err(error) => {
            log.write(&format!("{}: {error}", error.code()));
            silence()
        }
    }
}

/// Copilot CLI runs the hooks of Claude Code that it finds in a repository, too. A Claude Code that was started by a
/// Copilot CLI inherits its environment, but knows its own session.
fn who_really_calls<'p>(platform: &'p Platform, call: &Call, environment: &Environment) -> &'p Platform {
    let own_session = environment
        .platform_sessions
        .iter()
        .any(|(platform, session)| *platform == claude::CLAUDE.id && *session == *call.session);
    if platform.id == claude::CLAUDE.id && environment.copilot.is_some() && !own_session {
        return PLATFORMS.iter().find(|known| known.id == copilot::COPILOT.id).unwrap_or(platform);
    }
    platform
}
