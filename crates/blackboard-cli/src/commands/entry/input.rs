//! Where a value comes from: the command line, a file or standard input, never more of it than can be stored.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use blackboard::entry::Value;
use blackboard::protocol::MAX_SCHEMA_BYTES;
use blackboard::{Code, Error, Fault, Refusal, Result};

use crate::output::shortened;

/// How much more than is allowed is read: white space around a value is not counted.
const SLACK: usize = 64 * 1024;

/// A value, as an argument or from somewhere else.
#[derive(clap::Args, Debug)]
pub struct ValueInput {
    /// Value: JSON, or any other text as a string; - reads standard input
    #[arg(value_name = "VALUE", allow_hyphen_values = true, conflicts_with = "file")]
    value: Option<String>,

    /// File to read the value from; - is standard input
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,

    /// Store the value as a string, even if it is JSON
    #[arg(long)]
    string: bool,
}

impl ValueInput {
    /// The value, if one was given to `command`, after a key.
    pub fn value(self, command: &str, max_bytes: usize) -> Result<Value> {
        self.value_after("KEY", command, max_bytes)
    }

    /// The value, if one was given to `command`, after another argument.
    pub fn value_after(self, argument: &str, command: &str, max_bytes: usize) -> Result<Value> {
        let is_standard_input =
            self.value.as_deref() == Some("-") || self.file.as_deref() == Some(Path::new("-"));
        let text = match (self.value, self.file) {
            (Some(text), _) if !self.string && looks_like_an_option(&text) && !behind_two_dashes() => {
                return Err(Refusal::new(
                    Code::Usage,
                    format!("{command} has no option {}", shortened(&text, 100)),
                )
                .hint("if it is the value, put -- in front of it")
                .into());
            }
            (Some(text), _) if text != "-" => text,
            (Some(_), _) => read_text(Path::new("-"), max_bytes)?,
            (None, Some(file)) => read_text(&file, max_bytes)?,
            (None, None) => {
                return Err(Refusal::new(Code::Usage, format!("{command} requires {argument} and VALUE"))
                    .hint("VALUE may be - for standard input, and --file F takes it from a file")
                    .into());
            }
        };
        // A program that failed in front of the pipe writes nothing: that must not replace a value.
        if text.is_empty() && is_standard_input {
            return Err(Refusal::new(Code::InvalidValue, "standard input is empty")
                .hint("for an empty text, pass '\"\"' as the value")
                .into());
        }
        if !self.string {
            return Value::from_text_or_string(&text, max_bytes);
        }
        let value = Value::of(&text)?;
        value.check_size(max_bytes)?;
        Ok(value)
    }
}

/// A misspelt option must not become the value of a key. A single dash is different: numbers begin with it.
fn looks_like_an_option(text: &str) -> bool {
    text.strip_prefix("--").is_some_and(|name| name.starts_with(|first: char| first.is_ascii_alphabetic()))
}

/// Whether the caller said that what follows is no option. clap does not tell it of a value that may begin with a dash.
fn behind_two_dashes() -> bool {
    std::env::args_os().any(|argument| argument == "--")
}

/// The text of a file, or of standard input for `-`, of about `max_bytes` at most, without the line break at its end:
/// nearly every program writes one, and it is hardly ever meant.
pub fn read_text(file: &Path, max_bytes: usize) -> Result<String> {
    read_text_of(file, max_bytes, Some("store its path instead, or split it over several keys"))
}

/// The same for a list of items.
pub fn read_list(file: &Path, max_bytes: usize) -> Result<String> {
    read_text_of(file, max_bytes, Some("name a smaller file, or split the list into several files"))
}

/// The same for a text that is no value of an entry.
pub fn read_document(file: &Path, max_bytes: usize) -> Result<String> {
    read_text_of(file, max_bytes, None)
}

/// A JSON Schema: the given text if it is JSON, or that of the file that it names.
pub fn read_schema(given: String) -> Result<String> {
    let is_json = serde_json::from_str::<serde::de::IgnoredAny>(&given).is_ok();
    if given.trim_start().starts_with(['{', '[']) || (is_json && !Path::new(&given).exists()) {
        return Ok(given);
    }
    read_document(Path::new(&given), MAX_SCHEMA_BYTES)
}

fn read_text_of(file: &Path, max_bytes: usize, if_too_long: Option<&'static str>) -> Result<String> {
    let (name, read) = if file.as_os_str() == OsStr::new("-") {
        ("standard input".to_owned(), read_at_most(io::stdin().lock(), max_bytes))
    } else {
        let read = File::open(file).and_then(|file| read_at_most(file, max_bytes));
        (file.display().to_string(), read)
    };
    let bytes = read.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => {
            Error::from(Refusal::new(Code::InvalidValue, format!("file {name} not found")))
        }
        io::ErrorKind::IsADirectory => Error::invalid(format!("{name} is a directory, not a file")),
        _ => Fault::new(Code::Io, format!("{name} cannot be read")).because(error).into(),
    })?;
    if bytes.len() > max_bytes.saturating_add(SLACK) {
        let message = format!("{name} has more than the {max_bytes} bytes that are allowed");
        let refusal = Refusal::new(Code::InvalidValue, message).detail("allowed_bytes", max_bytes);
        return Err(match if_too_long {
            Some(hint) => refusal.hint(hint).into(),
            None => refusal.into(),
        });
    }
    let mut text =
        String::from_utf8(bytes).map_err(|_| Error::invalid(format!("{name} is not text in UTF-8")))?;
    for line_break in ["\n", "\r"] {
        if text.ends_with(line_break) {
            text.pop();
        } else {
            break;
        }
    }
    Ok(text)
}

/// Reads only enough to detect that the input is too large.
fn read_at_most(source: impl Read, max_bytes: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    source.take((max_bytes.saturating_add(SLACK)) as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}
