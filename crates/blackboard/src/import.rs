//! What `import` reads: our own export, a snapshot, or a `swarm-blackboard.md`.
//!
//! [`read`] finds out which of them a text is, and returns its entries and, of an export, its policies and protocols.
//! [`Scope::import_file`](crate::entry::Scope::import_file) writes them. Nothing here reads files.

mod definitions;

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::value::RawValue;

pub use self::definitions::{Definitions, FileDefinition};
use crate::error::{Code, Error, Refusal, Result};
use crate::swarm::{self, Dialect, Known, MAX_ENTRIES, MAX_FILE_BYTES, Parsed, read_entry};
use crate::text::shown;

/// The form of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// A complete board as JSON; its entries name their scopes.
    Export,
    /// One JSON object, key to entry.
    Snapshot,
    /// A `swarm-blackboard.md`.
    Markdown,
}

/// A file that can be imported.
#[derive(Clone, Debug, PartialEq)]
pub struct ImportFile {
    /// Its form.
    pub format: Format,
    /// Its entries, and what cannot be read.
    pub content: Parsed,
    /// What it has besides entries, if it is an export.
    pub definitions: Definitions,
}

impl ImportFile {
    /// The dialect of the Markdown.
    pub fn dialect(&self) -> Option<Dialect> {
        (self.format == Format::Markdown).then_some(self.content.dialect)
    }

    /// Keeps one scope of an export that has more. A scope that it does not have is refused.
    ///
    /// ```
    /// use blackboard::{Code, import};
    ///
    /// let mut file = import::read(r#"{"entries": [{"scope": "team-1", "key": "a", "value": 1, "source_agent": "ivy"}]}"#)?;
    /// assert_eq!(file.keep_scope("team-2").unwrap_err().code(), Code::ScopeNotFound);
    /// file.keep_scope("team-1")?;
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn keep_scope(&mut self, scope: &str) -> Result<()> {
        let with_entries = self.content.entries.iter().filter_map(|entry| entry.scope.as_deref());
        let with_policies = self.definitions.scopes.iter().map(|scope| scope.name.as_str());
        let scopes: BTreeSet<_> = with_entries.chain(with_policies).collect();
        if !scopes.contains(scope) {
            return Err(not_in_file(scope, &scopes));
        }
        self.content.entries.retain(|entry| entry.scope.as_deref() == Some(scope));
        self.definitions.keep_scope(scope);
        Ok(())
    }
}

/// Reads a file in any of the forms. A text that has none of them is refused.
///
/// ```
/// use blackboard::import::{Format, read};
///
/// let file = read(r#"{"task:1": {"key": "task:1", "value": 42, "source_agent": "ivy", "ttl": null}}"#)?;
/// assert_eq!((file.format, &*file.content.entries[0].key), (Format::Snapshot, "task:1"));
/// assert!(read("Dear diary").is_err());
/// # Ok::<(), blackboard::Error>(())
/// ```
pub fn read(text: &str) -> Result<ImportFile> {
    if text.len() > MAX_FILE_BYTES {
        let message = format!("the file has {} bytes; {MAX_FILE_BYTES} are allowed", text.len());
        return Err(Error::invalid(message));
    }
    let text = text.trim_start_matches('\u{feff}');
    if text.trim_ascii_start().starts_with('{') {
        return read_json(text);
    }
    let content = swarm::parse(text);
    if !content.is_swarm_blackboard {
        return Err(unknown("it has no \"## Knowledge Cache\" and is not a JSON object"));
    }
    Ok(ImportFile { format: Format::Markdown, content, definitions: Definitions::default() })
}

fn unknown(why: &str) -> Error {
    let message = format!("the file is not an export, snapshot or swarm blackboard: {why}");
    Refusal::new(Code::InvalidValue, message)
        .hint("name a file that was exported, a snapshot, or a swarm-blackboard.md")
        .into()
}

fn not_in_file(scope: &str, scopes: &BTreeSet<&str>) -> Error {
    const SHOWN: usize = 5;
    let mut names: Vec<_> = scopes.iter().take(SHOWN).map(|scope| shown(scope)).collect();
    names.extend((scopes.len() > SHOWN).then(|| format!("and {} more", scopes.len() - SHOWN)));
    let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    Refusal::new(Code::ScopeNotFound, format!("the file has no scope {}", shown(scope)))
        .hint(format!("its scopes: {names}"))
        .detail("scope", scope)
        .into()
}

fn read_json(text: &str) -> Result<ImportFile> {
    let members: BTreeMap<String, &RawValue> =
        serde_json::from_str(text).map_err(|error| unknown(&format!("its JSON is damaged: {error}")))?;
    if let Some(entries) = members.get("entries").filter(|entries| entries.get().starts_with('[')) {
        return read_export(entries, &members);
    }
    let mut content = Parsed::default();
    for (key, json) in &members {
        add(&mut content, json.get(), key);
    }
    Ok(ImportFile { format: Format::Snapshot, content, definitions: Definitions::default() })
}

fn read_export(entries: &RawValue, members: &BTreeMap<String, &RawValue>) -> Result<ImportFile> {
    let entries: Vec<&RawValue> = serde_json::from_str(entries.get())
        .map_err(|error| unknown(&format!("its list of entries is damaged: {error}")))?;
    let mut content = Parsed::default();
    for json in entries {
        let key: Option<WithKey> = serde_json::from_str(json.get()).ok();
        match key {
            Some(WithKey { key }) => add(&mut content, json.get(), &key),
            None => content.add_unread(1, "an entry has no key"),
        }
    }
    let definitions = Definitions::read(members, &mut content);
    Ok(ImportFile { format: Format::Export, content, definitions })
}

#[derive(serde::Deserialize)]
struct WithKey {
    key: String,
}

fn add(content: &mut Parsed, json: &str, key: &str) {
    if content.entries.len() == MAX_ENTRIES {
        content.add_unread(1, format!("only {MAX_ENTRIES} entries are read"));
        return;
    }
    match read_entry(json, &Known { key, line: 1, may_be_value: false }) {
        Ok(read) => {
            for problem in read.problems {
                content.add_problem(1, format!("entry \"{}\": {problem}", shown(key)));
            }
            content.entries.push(read.entry);
        }
        Err(problem) => content.add_unread(1, format!("entry \"{}\": {problem}", shown(key))),
    }
}

/// A key that a board accepts for this one: characters that it refuses are percent-escaped, and `%` too.
///
/// ```
/// use blackboard::import::escaped_key;
///
/// assert_eq!(escaped_key("default", "task:*"), "task:%2A");
/// assert_eq!(escaped_key("default", "50%"), "50%");
/// ```
pub fn escaped_key(scope: &str, key: &str) -> String {
    use crate::entry::check_key;
    if check_key(scope, key).is_ok() {
        return key.to_owned();
    }
    let plain = escape_where(key, |_, character| {
        matches!(character, '%' | '*' | '?' | '[' | ']') || crate::text::forges(character)
    });
    if check_key(scope, &plain).is_ok() {
        return plain;
    }
    let last = key.chars().count().saturating_sub(1);
    let first_colon = key.chars().position(|character| character == ':');
    escape_where(key, |index, character| {
        let is_at_end = (index == 0 || index == last) && (character == ':' || character.is_whitespace());
        is_at_end
            || !character.is_ascii()
            || matches!(character, '%' | '*' | '?' | '[' | ']')
            || crate::text::forges(character)
            || (Some(index) == first_colon && names_scope(scope, key))
    })
}

/// Whether the key begins with the name of its scope, or of the library that writes it so.
fn names_scope(scope: &str, key: &str) -> bool {
    [scope, "polymathera"].iter().any(|name| key.strip_prefix(name).is_some_and(|rest| rest.starts_with(':')))
}

fn escape_where(key: &str, is_refused: impl Fn(usize, char) -> bool) -> String {
    let mut escaped = String::with_capacity(key.len() + 8);
    for (index, character) in key.chars().enumerate() {
        if is_refused(index, character) {
            for byte in character.encode_utf8(&mut [0; 4]).bytes() {
                escaped.push('%');
                escaped.extend(
                    [byte >> 4, byte & 15].map(|digit| char::from(b"0123456789ABCDEF"[usize::from(digit)])),
                );
            }
        } else {
            escaped.push(character);
        }
    }
    escaped
}

#[cfg(test)]
mod tests;
