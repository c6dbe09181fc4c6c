//! One configuration file: read with limits, parsed, and applied key by key.
//!
//! The file of a project is untrusted input. It can be anything (a pipe, a link, a gigabyte, ten thousand keys, names
//! with control characters), and the worst it can cause is a few printable warnings.

use std::collections::BTreeMap;
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::path::Path;

use blackboard::store::sqlite::{foreign_owner, writable_by_others};
use blackboard::text::shell_word;
use blackboard::{Code, Refusal, Result};
use jsonc_parser::{JsonObject, JsonValue, ParseOptions, parse_to_value};

use super::keys::{ByProject, KEYS, Key, Kind, Unit, Written};
use super::suggestion::nearest;
use super::{Config, notify, quota};
use crate::output::escape;

const LARGEST_FILE: u64 = 1024 * 1024;
const MOST_WARNINGS: usize = 10;
const LONGEST_NAME_SHOWN: usize = 60;

/// JSON with comments and trailing commas, and no other extensions that only some parsers support.
pub const JSON_WITH_COMMENTS: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_trailing_commas: true,
    allow_loose_object_property_names: false,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

/// The owner of a file, which determines what it may set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Origin {
    /// The user's own file.
    Home,
    /// The file of a project, which may have come with a clone.
    Project,
}

/// A file that is applied.
#[derive(Clone, Copy)]
pub(super) struct ConfigFile<'a> {
    pub(super) path: &'a Path,
    pub(super) origin: Origin,
}

/// The problems of a file: the first few as text, the others as a count.
#[derive(Default)]
struct Warnings {
    said: Vec<String>,
    unsaid: usize,
}

impl Warnings {
    /// Formats the text only if it will be printed: a file can have a hundred thousand unknown keys.
    fn add(&mut self, words: impl FnOnce() -> String) {
        if self.said.len() < MOST_WARNINGS {
            self.said.push(words());
        } else {
            self.unsaid += 1;
        }
    }
}

/// Applies the file to the configuration. A missing file changes nothing. Refuses a file that other users can write:
/// ignoring it would let them disable what it sets.
pub(super) fn apply(
    path: &Path,
    origin: Origin,
    config: &mut Config,
    warnings: &mut Vec<String>,
) -> Result<()> {
    let mut complaints = Warnings::default();
    let file = ConfigFile { path, origin };
    let mut ignore = |reason: &str, text: Option<&str>, config: &mut Config| {
        quota::note_ignored_file(file, reason, text, config);
        complaints.add(|| format!("ignored: {reason}"));
    };
    match open(path, origin) {
        Ok(opened) => {
            let metadata = opened.metadata();
            if let Ok(metadata) = &metadata {
                check_trusted(path, metadata)?;
            }
            match metadata.and_then(|metadata| read(opened, &metadata)) {
                Ok(content) => match std::str::from_utf8(&content) {
                    Ok(text) => apply_text(text, file, config, &mut complaints),
                    Err(_) => {
                        ignore("it is not UTF-8", Some(&String::from_utf8_lossy(&content)), config);
                    }
                },
                Err(error) => ignore(&error.to_string(), None, config),
            }
        }
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(());
        }
        Err(_) if std::fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_symlink()) => {
            ignore("it is a symbolic link", None, config);
        }
        Err(error) => ignore(&error.to_string(), None, config),
    }
    let file = printable(path);
    warnings.extend(complaints.said.iter().map(|complaint| format!("{file}: {complaint}")));
    if complaints.unsaid > 0 {
        warnings.push(format!("{file}: {} more problems of this kind", complaints.unsaid));
    }
    Ok(())
}

fn check_trusted(path: &Path, metadata: &Metadata) -> Result<()> {
    let file = printable(path);
    if let Some(owner) = foreign_owner(metadata) {
        let message = format!("the configuration {file} belongs to another user (uid {owner})");
        return Err(Refusal::new(Code::UnsafePermissions, message)
            .hint("remove it, or replace it by a file of your own")
            .into());
    }
    match writable_by_others(metadata) {
        // A directory or a pipe is not a configuration.
        Some(mode) if metadata.is_file() => {
            let message = format!("the configuration {file} can be written by others (mode {mode:04o})");
            Err(Refusal::new(Code::UnsafePermissions, message)
                .hint(format!("chmod go-w {}", shell_word(&file)))
                .into())
        }
        _ => Ok(()),
    }
}

/// A path in printable form: a file name can contain terminal escape sequences.
pub(crate) fn printable(path: &Path) -> String {
    escape(&path.display().to_string()).into_owned()
}

fn read(file: File, metadata: &Metadata) -> io::Result<Vec<u8>> {
    if !metadata.is_file() {
        return Err(io::Error::other("it is not a plain file"));
    }
    let mut content = Vec::new();
    file.take(LARGEST_FILE + 1).read_to_end(&mut content)?;
    if content.len() as u64 > LARGEST_FILE {
        return Err(io::Error::other("it is larger than 1 MB"));
    }
    Ok(content)
}

/// Opening a pipe would block until another process writes to it. A link is allowed in the home directory, where
/// configuration files are often links, but a clone must not choose which file is read.
#[cfg(unix)]
fn open(path: &Path, origin: Origin) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;

    use rustix::fs::OFlags;

    let flags = match origin {
        Origin::Home => OFlags::NONBLOCK,
        Origin::Project => OFlags::NONBLOCK | OFlags::NOFOLLOW,
    };
    OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path)
}

#[cfg(not(unix))]
fn open(path: &Path, origin: Origin) -> io::Result<File> {
    if matches!(origin, Origin::Project) && std::fs::symlink_metadata(path)?.is_symlink() {
        return Err(ErrorKind::InvalidInput.into());
    }
    OpenOptions::new().read(true).open(path)
}

/// Applies every valid value.
fn apply_text(text: &str, file: ConfigFile<'_>, config: &mut Config, complaints: &mut Warnings) {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut leaves = BTreeMap::new();
    let mut ignore = |reason: &str| {
        quota::note_ignored_file(file, reason, Some(text), config);
        complaints.add(|| format!("ignored: {reason}"));
    };
    match parse_to_value(text, &JSON_WITH_COMMENTS) {
        Ok(None) => {}
        Ok(Some(JsonValue::Object(object))) => collect(object, "", &mut leaves),
        Ok(Some(_)) => ignore("it must be a JSON object"),
        Err(error) => ignore(&format!("it is not valid JSON ({error})")),
    }
    for key in KEYS {
        apply_key(key, file, &mut leaves, config, complaints);
    }
    for (name, value) in leaves {
        if complaints.said.len() < MOST_WARNINGS && suggestion(&name) == Some(quota::KEY) {
            quota::note_unknown_key(file, &unknown(&name), value, config);
        }
        complaints.add(|| unknown(&name));
    }
}

/// Every value with its full name. Only known sections are entered, so the depth needs no limit.
fn collect<'a>(object: JsonObject<'a>, section: &str, leaves: &mut BTreeMap<String, JsonValue<'a>>) {
    for (name, value) in object {
        let name = if section.is_empty() { name.into_owned() } else { format!("{section}.{name}") };
        match value {
            JsonValue::Object(object) if is_section(&name) => collect(object, &name, leaves),
            value => {
                leaves.insert(name, value);
            }
        }
    }
}

/// Removes all spellings of the key from the file. The first one that is present counts.
fn apply_key(
    key: &Key,
    file: ConfigFile<'_>,
    leaves: &mut BTreeMap<String, JsonValue<'_>>,
    config: &mut Config,
    complaints: &mut Warnings,
) {
    let origin = file.origin;
    let aliases = key.aliases.iter().map(|alias| (alias.name, Some(alias.unit)));
    let mut first: Option<&str> = None;
    for (name, unit) in std::iter::once((key.path, None::<Unit>)).chain(aliases) {
        let Some(value) = leaves.remove(name) else { continue };
        if let Kind::Quota = key.kind {
            for warning in quota::apply(value, file, config) {
                complaints.add(|| escape(&warning).into_owned());
            }
            continue;
        }
        if let (Kind::Notify, Origin::Home) = (&key.kind, origin) {
            match notify::apply(value, config) {
                Some(warnings) => {
                    for warning in &warnings {
                        complaints.add(|| escape(warning).into_owned());
                    }
                }
                None => complaints.add(|| format!("{name} {}", key.refusal(unit))),
            }
            continue;
        }
        let (before, redacted) = (config.file_guard, config.redaction);
        if origin == Origin::Project && key.project == ByProject::No {
            complaints
                .add(|| format!("{name} can be set in the home configuration only, so it is ignored here"));
        } else if let Some(first) = first {
            complaints
                .add(|| format!("{name} is another name of {first}, which is set as well, so it is ignored"));
        } else if !key.store(config, &written(&value), unit) {
            complaints.add(|| format!("{name} {}", key.refusal(unit)));
        } else if origin == Origin::Project && config.file_guard < before {
            // A project may make it stricter, and nothing else.
            config.file_guard = before;
            complaints.add(|| format!("{name} can only be made stricter here, so this value is ignored"));
        } else if origin == Origin::Project {
            // A project can leave out more, and never less.
            config.redaction = config.redaction.and(redacted);
        }
        first.get_or_insert(name);
    }
}

fn written<'a>(value: &'a JsonValue<'_>) -> Written<'a> {
    match value {
        JsonValue::Number(digits) => Written::Number(digits),
        JsonValue::String(text) => Written::Text(text),
        JsonValue::Boolean(on) => Written::Switch(*on),
        JsonValue::Array(items) => {
            let words = items
                .iter()
                .map(|item| if let JsonValue::String(word) = item { Some(&**word) } else { None });
            words.collect::<Option<Vec<_>>>().map_or(Written::Other, Written::Words)
        }
        JsonValue::Object(_) | JsonValue::Null => Written::Other,
    }
}

fn is_section(name: &str) -> bool {
    KEYS.iter().any(|key| key.path.strip_prefix(name).is_some_and(|rest| rest.starts_with('.')))
}

fn unknown(name: &str) -> String {
    if is_section(name) {
        return format!("{name} must be an object, so it is ignored");
    }
    let suggested = suggestion(name).map(|known| format!("; did you mean {known}?")).unwrap_or_default();
    let name: String = name.chars().take(LONGEST_NAME_SHOWN).collect();
    format!("unknown key \"{}\"{suggested}", name.escape_debug())
}

/// The key that an unknown one probably means.
fn suggestion(name: &str) -> Option<&'static str> {
    let name: String = name.chars().take(LONGEST_NAME_SHOWN).collect();
    let known = KEYS
        .iter()
        .flat_map(|key| std::iter::once(key.path).chain(key.aliases.iter().map(|alias| alias.name)));
    nearest(&name, known)
}
