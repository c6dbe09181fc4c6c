//! The key `notify`: commands that are started after events. A command in the file of a project could have come with a clone, so
//! only the home configuration has it.

use std::path::Path;
use std::time::Duration;

use blackboard::duration;
use blackboard::entry::Glob;
use blackboard::event::{Event, EventType, Severity};
use jsonc_parser::JsonValue;
use serde::Deserialize;

use super::Config;
use super::quota::to_json;

const MOST_COMMANDS: usize = 16;
const MOST_ARGUMENTS: usize = 64;
const LONGEST_ARGUMENT: usize = 4096;
const MOST_PATTERNS: usize = 64;
const LONGEST_PATTERN: usize = 60;

/// How often a command is started at most, unless its entry sets it.
const MIN_INTERVAL: Duration = Duration::from_secs(5);
const LONGEST_INTERVAL: Duration = Duration::from_hours(24);

/// Names of events that are stored under another type.
const SHOWN_TYPES: [&str; 5] =
    ["lock_acquired", "lock_released", "files_reserved", "files_released", "progress"];

/// A command that is started after events.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct NotifyCommand {
    /// The program and its arguments.
    pub(crate) command: Vec<String>,
    /// Patterns of event types; all types if there is none.
    pub(crate) events: Vec<String>,
    /// The least severity of its events.
    pub(crate) min_severity: Severity,
    /// The least time between two starts.
    pub(crate) min_interval: Duration,
}

/// An entry as it is written.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Entry {
    command: Vec<String>,
    #[serde(default)]
    events: Vec<String>,
    #[serde(default)]
    min_severity: Severity,
    min_interval: Option<String>,
}

impl NotifyCommand {
    /// Whether it is started after this event.
    pub(crate) fn wants(&self, event: &Event) -> bool {
        let is_named = |pattern: &String| {
            let pattern = Glob::new(pattern);
            pattern.matches(event.event_type.as_str()) || pattern.matches(event.shown_type())
        };
        event.event_type.severity() >= self.min_severity
            && (self.events.is_empty() || self.events.iter().any(is_named))
    }
}

/// Applies the value, and returns warnings about what is ignored; `None` if it is not a list of objects.
pub(super) fn apply(value: JsonValue<'_>, config: &mut Config) -> Option<Vec<String>> {
    let JsonValue::Array(items) = value else { return None };
    let mut warnings = Vec::new();
    let mut commands = Vec::new();
    for (number, item) in (0..).zip(items) {
        if number == MOST_COMMANDS {
            warnings
                .push(format!("notify has more than {MOST_COMMANDS} commands, so the others are ignored"));
            break;
        }
        match parse(item) {
            Ok(command) => commands.push(command),
            Err(problem) => warnings.push(format!("notify[{number}] is ignored: {problem}")),
        }
    }
    config.notify = commands;
    Some(warnings)
}

fn parse(item: JsonValue<'_>) -> Result<NotifyCommand, String> {
    let Entry { command, events, min_severity, min_interval } =
        serde_json::from_value(to_json(item)).map_err(|error| error.to_string())?;
    check_command(&command)?;
    if events.len() > MOST_PATTERNS {
        return Err(format!("events: at most {MOST_PATTERNS} are allowed"));
    }
    events.iter().try_for_each(|pattern| check_pattern(pattern))?;
    let min_interval = match min_interval {
        Some(text) => duration::parse(&text).map_err(|error| format!("minInterval: {error}"))?,
        None => MIN_INTERVAL,
    };
    if min_interval > LONGEST_INTERVAL {
        return Err("minInterval is longer than 24 hours".to_owned());
    }
    Ok(NotifyCommand { command, events, min_severity, min_interval })
}

fn check_command(command: &[String]) -> Result<(), String> {
    let Some(program) = command.first().filter(|program| !program.is_empty()) else {
        return Err("command is empty".to_owned());
    };
    // A path that depends on the working directory could lead into a clone.
    if program.contains(['/', '\\']) && !Path::new(program).is_absolute() {
        return Err("command: the program must be an absolute path or a name in PATH".to_owned());
    }
    if command.len() > MOST_ARGUMENTS {
        return Err(format!("command: at most {MOST_ARGUMENTS} arguments are allowed"));
    }
    if command.iter().any(|argument| argument.len() > LONGEST_ARGUMENT || argument.contains('\0')) {
        return Err(format!(
            "command: an argument has a null character or more than {LONGEST_ARGUMENT} bytes"
        ));
    }
    Ok(())
}

fn check_pattern(pattern: &str) -> Result<(), String> {
    let is_valid = |byte: u8| byte.is_ascii_lowercase() || matches!(byte, b'_' | b'*');
    if pattern.is_empty() || pattern.len() > LONGEST_PATTERN || !pattern.bytes().all(is_valid) {
        return Err("events: a pattern has 1 to 60 lower case letters, _ and *".to_owned());
    }
    let glob = Glob::new(pattern);
    let mut known = EventType::ALL.iter().map(EventType::as_str).chain(SHOWN_TYPES);
    if known.any(|name| glob.matches(name)) {
        Ok(())
    } else {
        Err(format!("events: no event type matches \"{pattern}\""))
    }
}
