//! The list of all keys: names, allowed values, and which file may set them.
//!
//! Files, environment, warnings and `docs/configuration.md` all use [`KEYS`]. To add a key, add a field to [`Config`]
//! and a row here.

use std::ffi::OsStr;
use std::fmt::Display;
use std::net::{IpAddr, Ipv4Addr};
use std::ops::RangeInclusive;
use std::path::{Component, Path};
use std::time::Duration;

use crate::environment::Environment;
use crate::spoke::outgoing::Redaction;

use super::{Config, DAY, Durability, FileGuard};

/// One configuration key.
pub(super) struct Key {
    /// Its path in the file, separated by dots.
    pub(super) path: &'static str,
    /// Other names at the top level of the file.
    pub(super) aliases: &'static [Alias],
    /// The environment variable that overrides every file: a time in seconds, `true` or `false`.
    pub(super) variable: Option<Variable>,
    /// Whether the file of a project may set it.
    pub(super) project: ByProject,
    /// Its allowed values, and the field that stores it.
    pub(super) kind: Kind,
}

/// What the file of a project, which may have come with a clone, can do with a key.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum ByProject {
    /// Set it.
    Yes,
    /// Not set it.
    No,
    /// Set it to a stricter value than the current one.
    Stricter,
}

/// Another name for a key.
pub(super) struct Alias {
    pub(super) name: &'static str,
    /// The unit of its numbers, which may differ from that of the key.
    pub(super) unit: Unit,
}

/// An environment variable.
pub(super) struct Variable {
    pub(super) name: &'static str,
    value: fn(&Environment) -> Option<&OsStr>,
}

/// The unit of a number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Unit {
    Seconds,
    Days,
}

/// The allowed values of a key, and the field that stores it.
pub(super) enum Kind {
    /// A duration as a whole number of its unit.
    Time { unit: Unit, range: RangeInclusive<Duration>, field: fn(&mut Config) -> &mut Duration },
    /// A whole number.
    Count { range: RangeInclusive<usize>, field: fn(&mut Config) -> &mut usize },
    /// A port.
    Port { field: fn(&mut Config) -> &mut u16 },
    /// A Boolean.
    Switch { field: fn(&mut Config) -> &mut bool },
    /// A text that `store` accepts or refuses.
    Text { allowed: &'static str, default: &'static str, store: fn(&mut Config, &str) -> Option<()> },
    /// The object of the token quota, which `quota.rs` applies.
    Quota,
    /// The list of commands, which `notify.rs` applies.
    Notify,
    /// A list of words that `store` accepts or refuses.
    Words { allowed: &'static str, store: fn(&mut Config, &[&str]) -> Option<()> },
}

/// A value as it was written, before its type is checked.
pub(super) enum Written<'a> {
    Number(&'a str),
    Text(&'a str),
    Words(Vec<&'a str>),
    Switch(bool),
    /// A value that no key accepts.
    Other,
}

const SECOND: Duration = Duration::from_secs(1);
/// Pruning runs at most once an hour, so a shorter time would have no effect.
const RETENTION: RangeInclusive<Duration> = Duration::from_hours(1)..=Duration::from_hours(24 * 3650);
const SILENCE: RangeInclusive<Duration> = SECOND..=Duration::from_hours(24 * 7);
const MEGABYTES: RangeInclusive<usize> = 1..=1_048_576;
/// The upper end is also the limit of one commit.
const VALUE_BYTES: RangeInclusive<usize> = 1024..=64 * 1024 * 1024;

/// All keys, in the order of the documentation.
pub(super) const KEYS: &[Key] = &[
    anywhere("schemaVersion", Kind::Count { range: 1..=1, field: |config| &mut config.schema_version }),
    home_only(
        "database.operatorPath",
        Kind::Text {
            allowed: "a path",
            default: "~/.pai/blackboard/local.db",
            store: |config, text| {
                let usable = !text.is_empty() && !text.contains('\0');
                config.database.operator_path = Some(usable.then(|| text.into())?);
                Some(())
            },
        },
    ),
    home_only(
        "database.projectDir",
        Kind::Text {
            allowed: "the name of a directory, without a path",
            default: ".blackboard",
            store: |config, text| {
                directory_name(text)?.clone_into(&mut config.database.project_directory);
                Some(())
            },
        },
    ),
    home_only(
        "database.durability",
        Kind::Text {
            allowed: "normal or full",
            default: "normal",
            store: |config, text| {
                config.database.durability = match text {
                    "normal" => Durability::Normal,
                    "full" => Durability::Full,
                    _ => return None,
                };
                Some(())
            },
        },
    ),
    Key {
        variable: Some(Variable {
            name: "BLACKBOARD_ALLOW_NETWORK_FILESYSTEM",
            value: |environment| environment.allow_network_filesystem.as_deref(),
        }),
        ..home_only(
            "database.allowNetworkFilesystem",
            Kind::Switch { field: |config| &mut config.database.allow_network_filesystem },
        )
    },
    anywhere(
        "database.warnSizeMb",
        Kind::Count { range: MEGABYTES, field: |config| &mut config.database.warn_size_mb },
    ),
    anywhere(
        "database.maxLogMb",
        Kind::Count { range: MEGABYTES, field: |config| &mut config.database.max_log_mb },
    ),
    Key {
        aliases: &[Alias { name: "heartbeatInterval", unit: Unit::Seconds }],
        variable: Some(Variable {
            name: "BLACKBOARD_HEARTBEAT_INTERVAL",
            value: |environment| environment.heartbeat_interval.as_deref(),
        }),
        ..anywhere(
            "heartbeat.intervalSeconds",
            seconds(SECOND..=DAY, |config| &mut config.heartbeat.interval),
        )
    },
    Key {
        aliases: &[
            Alias { name: "staleThreshold", unit: Unit::Seconds },
            Alias { name: "staleThresholdSeconds", unit: Unit::Seconds },
        ],
        variable: Some(Variable {
            name: "BLACKBOARD_STALE_THRESHOLD",
            value: |environment| environment.stale_threshold.as_deref(),
        }),
        ..anywhere(
            "heartbeat.staleThresholdSeconds",
            seconds(SILENCE, |config| &mut config.heartbeat.stale_threshold),
        )
    },
    anywhere(
        "heartbeat.delegateStaleThresholdSeconds",
        seconds(SILENCE, |config| &mut config.heartbeat.delegate_stale_threshold),
    ),
    Key {
        aliases: &[
            Alias { name: "pruneHeartbeatsAfterDays", unit: Unit::Days },
            Alias { name: "pruneAfter", unit: Unit::Seconds },
        ],
        variable: Some(Variable {
            name: "BLACKBOARD_PRUNE_AFTER",
            value: |environment| environment.prune_after.as_deref(),
        }),
        ..anywhere(
            "sweep.pruneHeartbeatsAfterDays",
            days(RETENTION, |config| &mut config.retention.heartbeats),
        )
    },
    anywhere("sweep.pruneEventsAfterDays", days(RETENTION, |config| &mut config.retention.events)),
    anywhere(
        "sweep.pruneCompletedAgentsAfterDays",
        days(RETENTION, |config| &mut config.retention.completed_agents),
    ),
    anywhere("sweep.pruneStaleAgentsAfterDays", days(RETENTION, |config| &mut config.retention.stale_agents)),
    anywhere(
        "limits.maxValueBytes",
        Kind::Count { range: VALUE_BYTES, field: |config| &mut config.limits.max_value_bytes },
    ),
    home_only("webServer.port", Kind::Port { field: |config| &mut config.web_server.port }),
    home_only(
        "webServer.host",
        Kind::Text {
            allowed: "a loopback address: 127.0.0.1, ::1 or localhost",
            default: "127.0.0.1",
            store: |config, text| {
                config.web_server.host = loopback(text)?;
                Some(())
            },
        },
    ),
    anywhere(
        "contentFilter.maxFieldLength",
        Kind::Count { range: 20..=64_000, field: |config| &mut config.content_filter.max_field_length },
    ),
    home_only(
        "contentFilter.stripCodeBlocks",
        Kind::Switch { field: |config| &mut config.content_filter.strip_code_blocks },
    ),
    home_only(
        "contentFilter.stripHtmlTags",
        Kind::Switch { field: |config| &mut config.content_filter.strip_html_tags },
    ),
    home_only(
        "agent.name",
        Kind::Text {
            allowed: "1 to 100 characters, none of them a control character or invisible",
            default: "none",
            store: |config, text| {
                let usable =
                    (1..=100).contains(&text.chars().count()) && blackboard::text::check_name(text).is_ok();
                config.agent_name = Some(usable.then(|| text.to_owned())?);
                Some(())
            },
        },
    ),
    home_only(
        "hub.url",
        Kind::Text {
            allowed: "a directory, owner/repo or a URL",
            default: "none",
            store: |config, text| {
                let usable = !text.is_empty() && !text.contains(char::is_control);
                config.hub_url = Some(usable.then(|| text.to_owned())?);
                Some(())
            },
        },
    ),
    Key {
        project: ByProject::Stricter,
        ..anywhere(
            "export.redact",
            Kind::Words {
                allowed: "a list of agents, work, progress and branch",
                store: |config, words| {
                    config.redaction = Redaction::named(words)?;
                    Some(())
                },
            },
        )
    },
    Key {
        project: ByProject::Stricter,
        ..anywhere(
            "fileGuard",
            Kind::Text {
                allowed: "off, warn or deny",
                default: "warn",
                store: |config, text| {
                    config.file_guard = match text {
                        "off" => FileGuard::Off,
                        "warn" => FileGuard::Warn,
                        "deny" => FileGuard::Deny,
                        _ => return None,
                    };
                    Some(())
                },
            },
        )
    },
    Key { project: ByProject::Stricter, ..anywhere("quota", Kind::Quota) },
    home_only("notify", Kind::Notify),
];

/// A key that any file may set.
const fn anywhere(path: &'static str, kind: Kind) -> Key {
    Key { path, aliases: &[], variable: None, project: ByProject::Yes, kind }
}

/// A key that the file of a project must not set: a path, an address, a safeguard, a name.
const fn home_only(path: &'static str, kind: Kind) -> Key {
    Key { path, aliases: &[], variable: None, project: ByProject::No, kind }
}

const fn seconds(range: RangeInclusive<Duration>, field: fn(&mut Config) -> &mut Duration) -> Kind {
    Kind::Time { unit: Unit::Seconds, range, field }
}

const fn days(range: RangeInclusive<Duration>, field: fn(&mut Config) -> &mut Duration) -> Kind {
    Kind::Time { unit: Unit::Days, range, field }
}

/// Applies the environment, which overrides everything else.
pub(super) fn apply_environment(environment: &Environment, config: &mut Config, warnings: &mut Vec<String>) {
    for key in KEYS {
        let Some(variable) = &key.variable else { continue };
        let Some(value) = (variable.value)(environment) else { continue };
        let written = match (&key.kind, value.to_str().map(str::trim)) {
            (Kind::Switch { .. }, Some("true" | "1")) => Written::Switch(true),
            (Kind::Switch { .. }, Some("false" | "0")) => Written::Switch(false),
            (_, Some(text)) => Written::Number(text),
            (_, None) => Written::Other,
        };
        if !key.store(config, &written, Some(Unit::Seconds)) {
            warnings.push(format!("{} {}", variable.name, key.refusal(Some(Unit::Seconds))));
        }
    }
}

impl Key {
    /// Sets the value, and returns whether it was valid. `unit` is the unit of the name that was used, if it has its
    /// own.
    pub(super) fn store(&self, config: &mut Config, written: &Written, unit: Option<Unit>) -> bool {
        self.kind.store(config, written, unit).is_some()
    }

    /// The allowed values and the default, as the end of a sentence that starts with the name.
    pub(super) fn refusal(&self, unit: Option<Unit>) -> String {
        format!(
            "must be {} (default {}), so this value is ignored",
            self.allowed(unit),
            self.default_value(unit)
        )
    }

    /// Its allowed values, as text.
    pub(super) fn allowed(&self, unit: Option<Unit>) -> String {
        match &self.kind {
            Kind::Time { unit: own, range, .. } => {
                let unit = unit.unwrap_or(*own);
                numbers(unit.round_up(*range.start()), unit.round_up(*range.end()))
            }
            Kind::Count { range, .. } => numbers(range.start(), range.end()),
            Kind::Port { .. } => numbers(1, u16::MAX),
            Kind::Switch { .. } => "true or false".to_owned(),
            Kind::Quota => "an object".to_owned(),
            Kind::Notify => "a list of objects".to_owned(),
            Kind::Text { allowed, .. } | Kind::Words { allowed, .. } => (*allowed).to_owned(),
        }
    }

    /// Its default, as text.
    pub(super) fn default_value(&self, unit: Option<Unit>) -> String {
        let mut config = Config::default();
        match &self.kind {
            Kind::Time { unit: own, field, .. } => {
                unit.unwrap_or(*own).round_up(*field(&mut config)).to_string()
            }
            Kind::Count { field, .. } => field(&mut config).to_string(),
            Kind::Port { field } => field(&mut config).to_string(),
            Kind::Switch { field } => field(&mut config).to_string(),
            Kind::Text { default, .. } => (*default).to_owned(),
            Kind::Words { .. } | Kind::Notify => "[]".to_owned(),
            Kind::Quota => "none".to_owned(),
        }
    }
}

impl Kind {
    fn store(&self, config: &mut Config, written: &Written, unit: Option<Unit>) -> Option<()> {
        match (self, written) {
            (Kind::Time { unit: own, range, field }, Written::Number(digits)) => {
                let time = unit.unwrap_or(*own).times(digits.parse().ok()?)?;
                *field(config) = range.contains(&time).then_some(time)?;
            }
            (Kind::Count { range, field }, Written::Number(digits)) => {
                let count = digits.parse().ok()?;
                *field(config) = range.contains(&count).then_some(count)?;
            }
            (Kind::Port { field }, Written::Number(digits)) => {
                let port = digits.parse().ok()?;
                *field(config) = (port != 0).then_some(port)?;
            }
            (Kind::Switch { field }, Written::Switch(on)) => *field(config) = *on,
            (Kind::Text { store, .. }, Written::Text(text)) => store(config, text)?,
            (Kind::Words { store, .. }, Written::Words(words)) => store(config, words)?,
            _ => return None,
        }
        Some(())
    }
}

impl Unit {
    const fn seconds(self) -> u64 {
        match self {
            Unit::Seconds => 1,
            Unit::Days => DAY.as_secs(),
        }
    }

    fn times(self, count: u64) -> Option<Duration> {
        Some(Duration::from_secs(count.checked_mul(self.seconds())?))
    }

    fn round_up(self, time: Duration) -> u64 {
        time.as_secs().div_ceil(self.seconds())
    }
}

fn numbers<Number: Copy + PartialEq + Display>(first: Number, last: Number) -> String {
    if first == last { first.to_string() } else { format!("a whole number from {first} to {last}") }
}

/// The page is served only to this machine.
fn loopback(host: &str) -> Option<IpAddr> {
    if host == "localhost" {
        return Some(IpAddr::V4(Ipv4Addr::LOCALHOST));
    }
    host.parse().ok().filter(IpAddr::is_loopback)
}

/// A name that stays in the directory that it is joined to, and is not git's own.
fn directory_name(text: &str) -> Option<&str> {
    let mut components = Path::new(text).components();
    let one = matches!((components.next(), components.next()), (Some(Component::Normal(name)), None) if name == text);
    (one && text != ".git" && !text.contains(char::is_control)).then_some(text)
}
