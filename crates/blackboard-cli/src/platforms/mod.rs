//! The agent platforms: one file for each, with everything that is specific to it.
//!
//! A platform is one [`Platform`] value: how its process is recognized, which environment variables it sets, what it
//! sends to a hook, which answers it accepts, what setup writes into its settings, and its exceptions. No other module
//! names a platform: [`hooks`](crate::hooks), [`setup`](crate::setup), [`mcp`](crate::mcp) and
//! [`environment`](crate::environment) have what all platforms share and read the rest from here.
//!
//! To add a platform, write its file, add it to [`PLATFORMS`], and put examples of its input and answers into
//! `tests/fixtures/hooks/ID.jsonl`. CONTRIBUTING.md has the details.

mod claude;
mod codex;
mod copilot;
mod cursor;
mod gemini;
mod opencode;
#[cfg(test)]
mod tests;

use std::ffi::OsStr;
use std::path::PathBuf;

use serde_json::Value;

use crate::environment::Environment;
use crate::hooks::PayloadFormat;
use crate::hooks::request::Payload;
use crate::quota::reading::UsageFormat;
use crate::setup::{SettingsDirs, SettingsLevel, Target};

/// Every platform, in the order in which they are shown.
pub const PLATFORMS: &[Platform] =
    &[claude::CLAUDE, codex::CODEX, gemini::GEMINI, opencode::OPENCODE, copilot::COPILOT, cursor::CURSOR];

/// The names of agents without hooks. Their processes are recognized too: `agent register`, `run` and `mcp` work with them.
const OTHER_AGENTS: &[&str] = &["aider", "aider-chat", "amp", "goose", "qwen", "qwen-code"];

/// Everything about one agent platform.
pub struct Platform {
    /// Its name on the command line, and in the session hints of its sessions.
    pub id: &'static str,
    /// Its name in human output, and the default name of its agents.
    pub name: &'static str,
    /// Its processes.
    pub process: AgentProcess,
    /// The environment variables that it sets or reads.
    pub variables: Variables,
    /// The format of its hook input.
    pub payload: PayloadFormat,
    /// The format of its answers.
    pub replies: ReplyFormat,
    /// The location of its settings, and what setup writes there.
    pub settings: PlatformSettings,
    /// How its usage of tokens is read.
    pub usage: Option<UsageFormat>,
    /// What only this platform does.
    pub exceptions: Exceptions,
}

/// The processes of a platform.
pub struct AgentProcess {
    /// Their names: its commands, and the packages that contain them.
    pub names: &'static [&'static str],
    /// Whether one process hosts many sessions, so that a running process proves nothing about one of them.
    pub hosts_many: bool,
    /// Whether its commands run in a sandbox that hides its process. Only then the session in its environment variable
    /// counts; elsewhere that variable leaks into every terminal that an agent opens.
    pub is_hidden: bool,
}

/// The environment variables of a platform.
pub struct Variables {
    /// The variable with the session, set for the commands that it runs.
    pub session: Option<&'static str>,
    /// The variable with the delegate, if delegates are part of a session.
    pub delegate: Option<&'static str>,
    /// The variable with the PID of its process.
    pub pid: Option<&'static str>,
    /// Further variables that its file reads with [`Environment::variable`].
    pub others: &'static [&'static str],
}

/// The answer of a hook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// Nothing.
    Silence,
    /// Text for the agent.
    Context {
        /// The text.
        text: String,
        /// The session of the agent, if it was just registered.
        session: Option<String>,
    },
    /// Denies what the agent is about to do, with the reason.
    Deny(String),
}

impl Reply {
    /// The same after another text. A denial has no other text.
    #[must_use]
    pub fn after(self, before: String) -> Reply {
        match self {
            Reply::Context { text, session } => {
                Reply::Context { text: format!("{before}\n\n{text}"), session }
            }
            Reply::Silence => Reply::Context { text: before, session: None },
            Reply::Deny(reason) => Reply::Deny(reason),
        }
    }
}

/// The answers that a platform accepts from a hook.
pub struct ReplyFormat {
    /// Whether it accepts context before a tool runs. If not, the warning comes after the tool.
    pub takes_context_before_tools: bool,
    /// Whether it accepts context with a prompt. If not, updates wait for the next tool.
    pub takes_context_on_prompt: bool,
    /// Formats an answer to the event with this name.
    pub format_reply: fn(&str, &Reply) -> Option<Value>,
}

/// The settings of a platform.
pub struct PlatformSettings {
    /// The program that starts it.
    pub program: &'static str,
    /// The levels at which it can be set up.
    pub levels: &'static [SettingsLevel],
    /// The directory of the user's settings.
    pub directory: fn(&SettingsDirs) -> PathBuf,
    /// The files that setup writes.
    pub targets: fn(&SettingsDirs, SettingsLevel) -> Vec<Target>,
    /// A sentence for the help of setup.
    pub note: Option<&'static str>,
    /// What the user has to do afterwards.
    pub afterwards: fn(SettingsLevel) -> &'static [&'static str],
}

/// What only a few platforms do.
pub struct Exceptions {
    /// The variable with the directory in which the session was started.
    pub start_directory: Option<&'static str>,
    /// The variable with the path of a shell script that it runs before each of its shell commands.
    pub shell_script: Option<&'static str>,
    /// Whether it makes a call that names this other platform, for this session id: it also runs hooks that were set up
    /// for the other platform.
    pub runs_hooks_of: Option<fn(&Platform, &str, &Environment) -> bool>,
    /// How its MCP tool calls identify their session.
    pub call_metadata: Option<CallMetadata>,
    /// The name that its settings give to the user's agents.
    pub agent_name: Option<fn(&Environment) -> Option<String>>,
}

/// How an MCP tool call identifies its session.
pub struct CallMetadata {
    /// The member of `_meta`.
    pub key: &'static str,
    /// The session hints under which hooks may have registered the session, best first.
    pub session_hints: fn(&Value) -> Vec<String>,
}

impl Exceptions {
    /// No exceptions.
    pub const NONE: Exceptions = Exceptions {
        start_directory: None,
        shell_script: None,
        runs_hooks_of: None,
        call_metadata: None,
        agent_name: None,
    };
}

impl Platform {
    /// The platform with this name.
    pub fn find(id: &str) -> Option<&'static Platform> {
        PLATFORMS.iter().find(|platform| platform.id == id)
    }

    /// The platform that makes a call: this one, or one that runs the hooks of this one.
    pub fn resolve(&'static self, payload: &Payload<'_>, environment: &Environment) -> &'static Platform {
        let calls = |platform: &&Platform| {
            let Some(runs) = platform.exceptions.runs_hooks_of else { return false };
            platform.payload.session_of(payload).is_some_and(|session| runs(self, &session, environment))
        };
        PLATFORMS.iter().find(calls).unwrap_or(self)
    }

    /// The session hint under which a session, or a delegate in it, is registered.
    pub fn session_hint(&self, session: &str, delegate: Option<&str>) -> String {
        match delegate {
            Some(delegate) => format!("{}:{session}/{delegate}", self.id),
            None => format!("{}:{session}", self.id),
        }
    }

    /// The session hints under which a session, or a delegate in it, may be registered, best first. If the delegate is
    /// not registered, its session is used.
    pub fn session_hints<'a>(
        &'a self,
        session: Option<&'a str>,
        delegate: Option<&'a str>,
    ) -> impl Iterator<Item = String> + 'a {
        let delegate = delegate.filter(|delegate| session != Some(delegate));
        let inside =
            session.zip(delegate).map(|(session, delegate)| self.session_hint(session, Some(delegate)));
        let alone = [session, delegate].into_iter().flatten().map(|id| self.session_hint(id, None));
        inside.into_iter().chain(alone)
    }
}

impl Variables {
    /// The names of all of them.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        let roles = [self.session, self.delegate, self.pid];
        roles.into_iter().flatten().chain(self.others.iter().copied())
    }
}

/// The session hints under which hooks may have registered the session that started this process, best first; only
/// those of `wanted` platforms.
pub fn session_hints(environment: &Environment, wanted: impl Fn(&Platform) -> bool) -> Vec<String> {
    let hints = PLATFORMS.iter().filter(|platform| wanted(platform)).flat_map(|platform| {
        let id = |name: Option<&str>| environment.variable(name?).and_then(OsStr::to_str);
        platform.session_hints(id(platform.variables.session), id(platform.variables.delegate))
    });
    hints.collect()
}

/// The name that the settings of a platform give to the user's agents.
pub fn agent_name(environment: &Environment) -> Option<String> {
    PLATFORMS.iter().find_map(|platform| (platform.exceptions.agent_name?)(environment))
}

/// A list in a sentence: `a, b and c`.
pub fn listed(words: impl Iterator<Item = &'static str>, last: &str) -> String {
    let words: Vec<&str> = words.collect();
    match words.split_last() {
        Some((end, rest)) if !rest.is_empty() => format!("{} {last} {end}", rest.join(", ")),
        _ => words.concat(),
    }
}

/// The PIDs that agents put into the environment of their commands.
pub fn declared_pids(environment: &Environment) -> Vec<u32> {
    let names = PLATFORMS.iter().filter_map(|platform| platform.variables.pid);
    names.filter_map(|name| environment.variable(name)?.to_str()?.parse().ok()).collect()
}

/// The names by which the processes of agents are recognized.
pub const AGENT_NAMES: &[&str] = &{
    let mut names = [""; OTHER_AGENTS.len() + names_of_platforms()];
    let mut count = 0;
    let mut index = 0;
    while index < OTHER_AGENTS.len() {
        names[count] = OTHER_AGENTS[index];
        (count, index) = (count + 1, index + 1);
    }
    let mut platform = 0;
    while platform < PLATFORMS.len() {
        let own = PLATFORMS[platform].process.names;
        let mut index = 0;
        while index < own.len() {
            names[count] = own[index];
            (count, index) = (count + 1, index + 1);
        }
        platform += 1;
    }
    names
};

const fn names_of_platforms() -> usize {
    let (mut count, mut index) = (0, 0);
    while index < PLATFORMS.len() {
        count += PLATFORMS[index].process.names.len();
        index += 1;
    }
    count
}
