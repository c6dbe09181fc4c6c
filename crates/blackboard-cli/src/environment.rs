//! The environment variables that this program knows, captured once at the start.
//!
//! Everything further down takes their values from here, so that a test passes values and never changes the
//! environment of its process.

use std::ffi::{OsStr, OsString};

use crate::session::session_hint;

/// The values of the variables; one that is empty counts as unset.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Environment {
    /// `BLACKBOARD_DB`: the board.
    pub(crate) database: Option<OsString>,
    /// `BLACKBOARD_HOME`: what replaces `~/.pai/blackboard`.
    pub(crate) home: Option<OsString>,
    /// `HOME`, or `USERPROFILE` where that is the name for it.
    pub(crate) user_home: Option<OsString>,
    /// `BLACKBOARD_HEARTBEAT_INTERVAL`: seconds.
    pub(crate) heartbeat_interval: Option<OsString>,
    /// `BLACKBOARD_STALE_THRESHOLD`: seconds.
    pub(crate) stale_threshold: Option<OsString>,
    /// `BLACKBOARD_PRUNE_AFTER`: seconds.
    pub(crate) prune_after: Option<OsString>,
    /// `BLACKBOARD_ALLOW_NETWORK_FILESYSTEM`: `true` or `false`.
    pub(crate) allow_network_filesystem: Option<OsString>,
    /// `BLACKBOARD_SESSION_ID`: the session that acts.
    pub(crate) session: Option<OsString>,
    /// `BLACKBOARD_SCOPE`: the scope of entries.
    pub(crate) scope: Option<OsString>,
    /// `BLACKBOARD_AGENT_NAME`: what an agent is called that registers without a name.
    pub(crate) agent_name: Option<OsString>,
    /// `CLAUDE_ENV_FILE`: what Claude Code runs before each of its shell commands.
    pub(crate) claude_env_file: Option<OsString>,
    /// `CLAUDE_PROJECT_DIR`: where the session was started.
    pub(crate) claude_project: Option<OsString>,
    /// `COPILOT_CLI`: set by Copilot CLI for everything that it runs.
    pub(crate) copilot: Option<OsString>,
    /// `BLACKBOARD_PID`: the process behind a session that registers.
    pub(crate) pid: Option<OsString>,
    /// What agents tell their children about themselves: `CLAUDE_PID`, `OPENCODE_PID`.
    pub(crate) agent_pids: Vec<OsString>,
    /// `PATH`: where programs are.
    pub(crate) path: Option<OsString>,
    /// `CLAUDE_CONFIG_DIR`: what replaces `~/.claude`.
    pub(crate) claude_config_dir: Option<OsString>,
    /// `PAI_DIR`: where PAI is installed, with its `settings.json`.
    pub(crate) pai_dir: Option<OsString>,
    /// `CODEX_HOME`: what replaces `~/.codex`.
    pub(crate) codex_home: Option<OsString>,
    /// `GEMINI_CLI_HOME`: what replaces the home directory for Gemini CLI.
    pub(crate) gemini_home: Option<OsString>,
    /// `XDG_CONFIG_HOME`: what replaces `~/.config`.
    pub(crate) config_home: Option<OsString>,
    /// `COPILOT_HOME`: what replaces `~/.copilot`.
    pub(crate) copilot_home: Option<OsString>,
    /// The sessions that agents tell their children to be in, each with the name of the platform.
    pub(crate) platform_sessions: Vec<(&'static str, OsString)>,
}

/// How long a hook may take, in milliseconds.
const HOOK_DEADLINE: &str = "BLACKBOARD_HOOK_DEADLINE";

/// The variables in which platforms name their sessions.
const PLATFORM_SESSIONS: [(&str, &str); 4] = [
    ("claude", "CLAUDE_CODE_SESSION_ID"),
    ("codex", "CODEX_SESSION_ID"),
    ("codex", "CODEX_THREAD_ID"),
    ("gemini", "GEMINI_SESSION_ID"),
];

impl Environment {
    /// The hints under which hooks may have registered the session that this process was started in, best first.
    pub(crate) fn session_hints(&self) -> Vec<String> {
        let mut hints = Vec::new();
        let mut last: Option<(&str, &str)> = None;
        for (platform, id) in &self.platform_sessions {
            let Some(id) = id.to_str() else { continue };
            match last.filter(|(before, _)| before == platform) {
                Some((_, session)) if session == id => continue,
                // A sub-agent is a thread in its parent's session. Where it is not registered, its parent stands for it.
                Some((_, session)) => {
                    hints.insert(hints.len() - 1, session_hint(platform, session, Some(id)));
                }
                None => {}
            }
            hints.push(session_hint(platform, id, None));
            last = Some((platform, id));
        }
        hints
    }

    /// `BLACKBOARD_SESSION_ID`, if it is text.
    pub(crate) fn named_session(&self) -> Option<String> {
        self.session.as_deref().and_then(OsStr::to_str).map(str::to_owned)
    }

    /// The PIDs that agents declare to their child processes.
    pub(crate) fn declared_pids(&self) -> Vec<u32> {
        self.agent_pids.iter().filter_map(|pid| pid.to_str()?.parse().ok()).collect()
    }

    /// What this process was started with.
    pub(crate) fn capture() -> Environment {
        Environment::from_variables(|name| std::env::var_os(name))
    }

    /// `BLACKBOARD_HOOK_DEADLINE` alone, for the first thing that a hook does.
    pub(crate) fn capture_hook_deadline() -> Option<OsString> {
        std::env::var_os(HOOK_DEADLINE)
    }

    fn from_variables(variable: impl Fn(&str) -> Option<OsString>) -> Environment {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        Environment {
            database: set("BLACKBOARD_DB"),
            home: set("BLACKBOARD_HOME"),
            user_home: set("HOME").or_else(|| set("USERPROFILE")),
            heartbeat_interval: set("BLACKBOARD_HEARTBEAT_INTERVAL"),
            stale_threshold: set("BLACKBOARD_STALE_THRESHOLD"),
            prune_after: set("BLACKBOARD_PRUNE_AFTER"),
            allow_network_filesystem: set("BLACKBOARD_ALLOW_NETWORK_FILESYSTEM"),
            session: set("BLACKBOARD_SESSION_ID"),
            scope: set("BLACKBOARD_SCOPE"),
            agent_name: set("BLACKBOARD_AGENT_NAME"),
            claude_env_file: set("CLAUDE_ENV_FILE"),
            claude_project: set("CLAUDE_PROJECT_DIR"),
            copilot: set("COPILOT_CLI"),
            pid: set("BLACKBOARD_PID"),
            agent_pids: ["CLAUDE_PID", "OPENCODE_PID"].into_iter().filter_map(set).collect(),
            path: set("PATH"),
            claude_config_dir: set("CLAUDE_CONFIG_DIR"),
            pai_dir: set("PAI_DIR"),
            codex_home: set("CODEX_HOME"),
            gemini_home: set("GEMINI_CLI_HOME"),
            config_home: set("XDG_CONFIG_HOME"),
            copilot_home: set("COPILOT_HOME"),
            platform_sessions: PLATFORM_SESSIONS
                .into_iter()
                .filter_map(|(platform, name)| Some((platform, set(name)?)))
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_variable_lands_in_its_own_field() {
        let environment = Environment::from_variables(|name| Some(name.into()));
        assert_eq!(
            environment,
            Environment {
                database: Some("BLACKBOARD_DB".into()),
                home: Some("BLACKBOARD_HOME".into()),
                user_home: Some("HOME".into()),
                heartbeat_interval: Some("BLACKBOARD_HEARTBEAT_INTERVAL".into()),
                stale_threshold: Some("BLACKBOARD_STALE_THRESHOLD".into()),
                prune_after: Some("BLACKBOARD_PRUNE_AFTER".into()),
                allow_network_filesystem: Some("BLACKBOARD_ALLOW_NETWORK_FILESYSTEM".into()),
                session: Some("BLACKBOARD_SESSION_ID".into()),
                scope: Some("BLACKBOARD_SCOPE".into()),
                agent_name: Some("BLACKBOARD_AGENT_NAME".into()),
                claude_env_file: Some("CLAUDE_ENV_FILE".into()),
                claude_project: Some("CLAUDE_PROJECT_DIR".into()),
                copilot: Some("COPILOT_CLI".into()),
                pid: Some("BLACKBOARD_PID".into()),
                agent_pids: vec!["CLAUDE_PID".into(), "OPENCODE_PID".into()],
                path: Some("PATH".into()),
                claude_config_dir: Some("CLAUDE_CONFIG_DIR".into()),
                pai_dir: Some("PAI_DIR".into()),
                codex_home: Some("CODEX_HOME".into()),
                gemini_home: Some("GEMINI_CLI_HOME".into()),
                config_home: Some("XDG_CONFIG_HOME".into()),
                copilot_home: Some("COPILOT_HOME".into()),
                platform_sessions: PLATFORM_SESSIONS
                    .map(|(platform, name)| (platform, name.into()))
                    .into_iter()
                    .collect(),
            }
        );
    }

    #[test]
    fn a_sub_agent_of_codex_comes_before_the_session_that_it_works_in() {
        let hints = |session: &'static str, thread: &'static str| {
            let environment = Environment::from_variables(|name| match name {
                "CODEX_SESSION_ID" => Some(session.into()),
                "CODEX_THREAD_ID" => Some(thread.into()),
                "GEMINI_SESSION_ID" => Some("g".into()),
                _ => None,
            });
            environment.session_hints()
        };
        assert_eq!(hints("s", "t"), ["codex:s/t", "codex:s", "codex:t", "gemini:g"]);
        assert_eq!(hints("s", "s"), ["codex:s", "gemini:g"]);
        assert_eq!(hints("", "t"), ["codex:t", "gemini:g"]);
    }

    #[test]
    fn an_empty_variable_counts_as_unset() {
        assert_eq!(Environment::from_variables(|_| Some("".into())), Environment::default());
    }

    #[test]
    fn the_user_profile_stands_in_for_a_missing_or_empty_home() {
        let environment = Environment::from_variables(|name| match name {
            "HOME" => Some("".into()),
            "USERPROFILE" => Some("/users/ivy".into()),
            _ => None,
        });
        assert_eq!(environment.user_home, Some("/users/ivy".into()));
    }
}
