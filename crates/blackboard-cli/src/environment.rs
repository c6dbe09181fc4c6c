//! The environment variables of this program, read once at the start.
//!
//! All other modules get their values from here, so that tests pass values and never change the environment of their
//! process.

use std::ffi::{OsStr, OsString};

use crate::location::BoardName;
use crate::platforms::PLATFORMS;

/// The values of the variables. An empty value counts as unset.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Environment {
    /// `BLACKBOARD_DB`: the board.
    pub(crate) database: Option<BoardName>,
    /// `BLACKBOARD_REDIS_PASSWORD`: the password of the board's server.
    pub(crate) redis_password: Option<Secret>,
    /// `BLACKBOARD_REDIS_PASSWORD_FILE`: the file that has it.
    pub(crate) redis_password_file: Option<OsString>,
    /// `BLACKBOARD_REDIS_SENTINEL_PASSWORD`: the password of the sentinels that name the server.
    pub(crate) redis_sentinel_password: Option<Secret>,
    /// `BLACKBOARD_REDIS_TIMEOUT`: how long a call waits for the server.
    pub(crate) redis_timeout: Option<OsString>,
    /// `BLACKBOARD_HOME`: replaces `~/.pai/blackboard`.
    pub(crate) home: Option<OsString>,
    /// `HOME`, or `USERPROFILE` on Windows.
    pub(crate) user_home: Option<OsString>,
    /// `BLACKBOARD_HEARTBEAT_INTERVAL`: seconds.
    pub(crate) heartbeat_interval: Option<OsString>,
    /// `BLACKBOARD_STALE_THRESHOLD`: seconds.
    pub(crate) stale_threshold: Option<OsString>,
    /// `BLACKBOARD_PRUNE_AFTER`: seconds.
    pub(crate) prune_after: Option<OsString>,
    /// `BLACKBOARD_ALLOW_NETWORK_FILESYSTEM`: `true` or `false`.
    pub(crate) allow_network_filesystem: Option<OsString>,
    /// `BLACKBOARD_UPGRADE`: `1` if a board of ivy-blackboard is upgraded when it is opened.
    pub(crate) upgrade: Option<OsString>,
    /// `BLACKBOARD_NOTIFYING`: set for the commands of `notify`, whose own events start no command.
    pub(crate) notifying: Option<OsString>,
    /// `BLACKBOARD_SESSION_ID`: the session that acts.
    pub(crate) session: Option<OsString>,
    /// `BLACKBOARD_SCOPE`: the scope of entries.
    pub(crate) scope: Option<OsString>,
    /// `BLACKBOARD_AGENT_NAME`: the default name of agents.
    pub(crate) agent_name: Option<OsString>,
    /// `BLACKBOARD_PID`: the process of a session that registers.
    pub(crate) pid: Option<OsString>,
    /// `GIT_SSH_COMMAND` or `GIT_SSH`: the ssh command of git.
    pub(crate) ssh_command: Option<OsString>,
    /// `PATH`: the directories of programs.
    pub(crate) path: Option<OsString>,
    /// The variables that platforms declare, if they are set.
    pub(crate) platform_variables: Vec<(&'static str, OsString)>,
}

/// A value that is never printed.
#[derive(Clone, PartialEq)]
pub(crate) struct Secret(pub(crate) OsString);

impl std::fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Secret")
    }
}

/// The time limit of a hook, in milliseconds.
const HOOK_DEADLINE: &str = "BLACKBOARD_HOOK_DEADLINE";

/// Set for the commands of `notify`.
pub(crate) const NOTIFYING: &str = "BLACKBOARD_NOTIFYING";

impl Environment {
    /// The value of a variable that a platform declares.
    pub(crate) fn variable(&self, name: &str) -> Option<&OsStr> {
        debug_assert!(declared_variables().any(|declared| declared == name), "no platform declares {name}");
        self.platform_variables.iter().find(|(set, _)| *set == name).map(|(_, value)| value.as_os_str())
    }

    /// `BLACKBOARD_SESSION_ID`, if it is text.
    pub(crate) fn named_session(&self) -> Option<String> {
        self.session.as_deref().and_then(OsStr::to_str).map(str::to_owned)
    }

    /// Reads the environment of this process.
    pub(crate) fn capture() -> Environment {
        Environment::from_variables(|name| std::env::var_os(name))
    }

    /// Only `BLACKBOARD_HOOK_DEADLINE`, for the start of a hook.
    pub(crate) fn capture_hook_deadline() -> Option<OsString> {
        std::env::var_os(HOOK_DEADLINE)
    }

    fn from_variables(variable: impl Fn(&str) -> Option<OsString>) -> Environment {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        Environment {
            database: set("BLACKBOARD_DB").map(BoardName::from),
            redis_password: set("BLACKBOARD_REDIS_PASSWORD").map(Secret),
            redis_password_file: set("BLACKBOARD_REDIS_PASSWORD_FILE"),
            redis_sentinel_password: set("BLACKBOARD_REDIS_SENTINEL_PASSWORD").map(Secret),
            redis_timeout: set("BLACKBOARD_REDIS_TIMEOUT"),
            home: set("BLACKBOARD_HOME"),
            user_home: set("HOME").or_else(|| set("USERPROFILE")),
            heartbeat_interval: set("BLACKBOARD_HEARTBEAT_INTERVAL"),
            stale_threshold: set("BLACKBOARD_STALE_THRESHOLD"),
            prune_after: set("BLACKBOARD_PRUNE_AFTER"),
            allow_network_filesystem: set("BLACKBOARD_ALLOW_NETWORK_FILESYSTEM"),
            upgrade: set("BLACKBOARD_UPGRADE"),
            notifying: set(NOTIFYING),
            session: set("BLACKBOARD_SESSION_ID"),
            scope: set("BLACKBOARD_SCOPE"),
            agent_name: set("BLACKBOARD_AGENT_NAME"),
            pid: set("BLACKBOARD_PID"),
            ssh_command: set("GIT_SSH_COMMAND").or_else(|| set("GIT_SSH")),
            path: set("PATH"),
            platform_variables: declared_variables().filter_map(|name| Some((name, set(name)?))).collect(),
        }
    }
}

fn declared_variables() -> impl Iterator<Item = &'static str> {
    PLATFORMS.iter().flat_map(|platform| platform.variables.names())
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
                redis_password: Some(Secret("BLACKBOARD_REDIS_PASSWORD".into())),
                redis_password_file: Some("BLACKBOARD_REDIS_PASSWORD_FILE".into()),
                redis_sentinel_password: Some(Secret("BLACKBOARD_REDIS_SENTINEL_PASSWORD".into())),
                redis_timeout: Some("BLACKBOARD_REDIS_TIMEOUT".into()),
                home: Some("BLACKBOARD_HOME".into()),
                user_home: Some("HOME".into()),
                heartbeat_interval: Some("BLACKBOARD_HEARTBEAT_INTERVAL".into()),
                stale_threshold: Some("BLACKBOARD_STALE_THRESHOLD".into()),
                prune_after: Some("BLACKBOARD_PRUNE_AFTER".into()),
                allow_network_filesystem: Some("BLACKBOARD_ALLOW_NETWORK_FILESYSTEM".into()),
                upgrade: Some("BLACKBOARD_UPGRADE".into()),
                notifying: Some("BLACKBOARD_NOTIFYING".into()),
                session: Some("BLACKBOARD_SESSION_ID".into()),
                scope: Some("BLACKBOARD_SCOPE".into()),
                agent_name: Some("BLACKBOARD_AGENT_NAME".into()),
                pid: Some("BLACKBOARD_PID".into()),
                ssh_command: Some("GIT_SSH_COMMAND".into()),
                path: Some("PATH".into()),
                platform_variables: declared_variables().map(|name| (name, name.into())).collect(),
            }
        );
        let values = declared_variables().map(|name| environment.variable(name) == Some(OsStr::new(name)));
        assert!(values.into_iter().all(|is_own| is_own));
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
