//! The configuration: keys, files and defaults.
//!
//! There are three layers, each overriding the previous one: `config.json` in the home of the board, `config.json` in
//! the project's directory, and the environment. A project's file may have come with a clone, so it can set thresholds,
//! limits and retention, but no path, address or safeguard. A file that other users can write stops every command. The
//! content of a file never does: invalid values are ignored with a warning.
//!
//! [`keys::KEYS`] lists all keys. [`Config::default`] has the defaults.

mod file;
mod keys;
mod notify;
mod quota;
mod suggestion;

use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::time::Duration;

use blackboard::text::TextRules;
use blackboard::{Result, Settings};

use crate::environment::Environment;
use crate::location::BoardName;
use crate::spoke::outgoing::Redaction;

pub use file::JSON_WITH_COMMENTS;
use file::Origin;

pub(crate) use file::printable;
pub(crate) use notify::NotifyCommand;
pub(crate) use quota::{InvalidQuota, to_json};

/// The name of a configuration file.
pub(crate) const CONFIG_FILE: &str = "config.json";

const DAY: Duration = Duration::from_hours(24);

/// All settings.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Config {
    /// The format version of the file.
    pub(crate) schema_version: usize,
    /// The location and the storage of the board.
    pub(crate) database: Database,
    /// When an agent counts as alive.
    pub(crate) heartbeat: Heartbeat,
    /// Retention times (`sweep` in the file).
    pub(crate) retention: Retention,
    /// Size limits.
    pub(crate) limits: Limits,
    /// The dashboard.
    pub(crate) web_server: WebServer,
    /// What is removed from text before it is stored.
    pub(crate) content_filter: ContentFilter,
    /// The name of agents that register without one.
    pub(crate) agent_name: Option<String>,
    /// What `status --export` leaves out (`export.redact` in the file).
    pub(crate) redaction: Redaction,
    /// What happens when an agent edits a file that another agent has reserved.
    pub(crate) file_guard: FileGuard,
    /// The hub that `pull` reads.
    pub(crate) hub_url: Option<String>,
    /// The token quota, which is off if there is none.
    pub(crate) quota: Option<Box<blackboard::quota::Config>>,
    /// The quota of the home configuration, if it is there and not valid. Then it is off.
    pub(crate) invalid_quota: Option<InvalidQuota>,
    /// The commands that are started after events.
    pub(crate) notify: Vec<NotifyCommand>,
}

/// The location and the storage of the board.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Database {
    /// The board of this user: a path, in which `~/` is the home directory, or a Redis URL.
    pub(crate) operator_path: Option<BoardName>,
    /// The name of the directory of a project's board.
    pub(crate) project_directory: String,
    /// What a commit survives.
    pub(crate) durability: Durability,
    /// Whether the database may be on a network file system.
    pub(crate) allow_network_filesystem: bool,
    /// The size of the database in megabytes from which `status` warns.
    pub(crate) warn_size_mb: usize,
    /// The maximum size of the event log and superseded values, in megabytes.
    pub(crate) max_log_mb: usize,
}

/// What a commit survives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Durability {
    /// The end of every process. A power failure may lose the last commits.
    Normal,
    /// A power failure too.
    Full,
}

/// When an agent counts as alive.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Heartbeat {
    /// How often an agent sends a heartbeat.
    pub(crate) interval: Duration,
    /// How long an agent may go without a heartbeat.
    pub(crate) stale_threshold: Duration,
    /// The same for an agent that shares its process with others.
    pub(crate) delegate_stale_threshold: Duration,
}

/// Retention times.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Retention {
    /// Heartbeats.
    pub(crate) heartbeats: Duration,
    /// Events.
    pub(crate) events: Duration,
    /// Agents that ended normally.
    pub(crate) completed_agents: Duration,
    /// Agents that were marked stale.
    pub(crate) stale_agents: Duration,
}

/// Size limits.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Limits {
    /// The maximum size of an entry's value, in bytes.
    pub(crate) max_value_bytes: usize,
}

/// The dashboard.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct WebServer {
    /// The port it listens on.
    pub(crate) port: u16,
    /// The address it listens on, always a loopback address.
    pub(crate) host: IpAddr,
}

/// What is removed from text before it is stored.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ContentFilter {
    /// The maximum number of characters of a field.
    pub(crate) max_field_length: usize,
    /// Whether fenced code blocks are removed.
    pub(crate) strip_code_blocks: bool,
    /// Whether HTML tags are removed.
    pub(crate) strip_html_tags: bool,
}

/// What happens when an agent edits a file that another agent has reserved or just edited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum FileGuard {
    /// Nothing.
    Off,
    /// The agent gets a warning.
    Warn,
    /// The edit is denied.
    Deny,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            schema_version: 1,
            database: Database {
                operator_path: None,
                project_directory: ".blackboard".to_owned(),
                durability: Durability::Normal,
                allow_network_filesystem: false,
                warn_size_mb: 256,
                max_log_mb: 256,
            },
            heartbeat: Heartbeat {
                interval: Duration::from_mins(1),
                stale_threshold: Duration::from_mins(5),
                delegate_stale_threshold: Duration::from_mins(30),
            },
            retention: Retention {
                heartbeats: 7 * DAY,
                events: 30 * DAY,
                completed_agents: DAY,
                stale_agents: 7 * DAY,
            },
            limits: Limits { max_value_bytes: 1024 * 1024 },
            web_server: WebServer { port: 3141, host: IpAddr::V4(Ipv4Addr::LOCALHOST) },
            content_filter: ContentFilter {
                max_field_length: 500,
                strip_code_blocks: true,
                strip_html_tags: true,
            },
            agent_name: None,
            redaction: Redaction::default(),
            file_guard: FileGuard::Warn,
            hub_url: None,
            quota: None,
            invalid_quota: None,
            notify: Vec::new(),
        }
    }
}

impl Config {
    /// The settings that the rules of a board depend on. `allow_secret_looking`: the call stores text that looks like a
    /// credential.
    pub(crate) fn settings(&self, allow_secret_looking: bool) -> Settings {
        Settings {
            heartbeat_interval: self.heartbeat.interval,
            stale_threshold: self.heartbeat.stale_threshold,
            delegate_stale_threshold: self.heartbeat.delegate_stale_threshold,
            keep_heartbeats: self.retention.heartbeats,
            keep_events: self.retention.events,
            keep_completed_agents: self.retention.completed_agents,
            keep_stale_agents: self.retention.stale_agents,
            max_log_bytes: self.database.max_log_mb as u64 * 1024 * 1024,
            max_value_bytes: self.limits.max_value_bytes,
            text: TextRules {
                max_field_length: self.content_filter.max_field_length,
                strip_code_blocks: self.content_filter.strip_code_blocks,
                strip_html_tags: self.content_filter.strip_html_tags,
                allow_secret_looking,
                ..TextRules::default()
            },
            ..Settings::default()
        }
    }
}

/// The configuration, and warnings about what was ignored. A missing file causes no warning. A file that other users
/// can write is refused.
pub(crate) fn load(
    home_file: Option<&Path>,
    project_file: Option<&Path>,
    environment: &Environment,
) -> Result<(Config, Vec<String>)> {
    let mut config = Config::default();
    let mut warnings = Vec::new();
    for (path, origin) in [(home_file, Origin::Home), (project_file, Origin::Project)] {
        if let Some(path) = path {
            file::apply(path, origin, &mut config, &mut warnings)?;
        }
    }
    keys::apply_environment(environment, &mut config, &mut warnings);
    Ok((config, warnings))
}

/// The location of boards in the home configuration. Its warnings are left to [`load`].
pub(crate) fn database(home_file: Option<&Path>) -> Result<Database> {
    load(home_file, None, &Environment::default()).map(|(config, _)| config.database)
}

#[cfg(test)]
mod tests;
