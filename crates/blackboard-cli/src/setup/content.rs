//! What belongs into one file, whatever its format: how it looks with our part and without it.

use super::json::{self, Wanted};
use super::mask::{Syntax, masked};
use super::toml;

/// What belongs into a file.
#[derive(Clone, Debug)]
pub enum Content {
    /// Entries in JSON, possibly with comments.
    Json(Vec<Wanted>),
    /// Our MCP server in the TOML of Codex.
    Toml,
    /// A file that is ours as a whole.
    Whole(&'static str),
}

/// By this a file that is ours as a whole is known, in whatever version.
pub const MARK: &str = "Written by `blackboard setup`";

/// Why a file is not edited.
#[derive(Clone, Debug, PartialEq)]
pub struct Trouble(pub String);

/// A text without our part.
#[derive(Debug, PartialEq)]
pub struct Without {
    /// What is left.
    pub text: String,
    /// Something was taken out, and nothing of anybody else is left.
    pub is_empty: bool,
}

/// Whether our part is in a file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum State {
    /// As this version writes it.
    SetUp,
    /// As another version wrote it.
    OutOfDate,
    /// Not at all.
    Missing,
}

impl Content {
    /// The text with our part in it, as this version writes it. A text that has it stays as it is, to the byte.
    pub fn with(&self, text: Option<&str>) -> Result<String, Trouble> {
        match self {
            Content::Json(wanted) => json::with(wanted, text),
            Content::Toml => toml::with(text),
            Content::Whole(whole) => match text {
                // A checkout may have changed its line endings.
                Some(text) if text.replace("\r\n", "\n") == **whole => Ok(text.to_owned()),
                Some(text) if !text.contains(MARK) => Err(Trouble::shape("it is not ours")),
                _ => Ok((*whole).to_owned()),
            },
        }
    }

    /// The text without our part. One that does not have it stays as it is, to the byte.
    ///
    /// `before` is how the file was before we came: what is empty there may be empty again.
    pub fn without(&self, text: &str, before: Option<&str>) -> Result<Without, Trouble> {
        match self {
            Content::Json(wanted) => json::without(wanted, text, before),
            Content::Toml => toml::without(text),
            Content::Whole(_) if text.contains(MARK) => Ok(Without { text: String::new(), is_empty: true }),
            Content::Whole(_) => Ok(Without::nothing_of_ours(text)),
        }
    }

    /// Whether our part is in it.
    pub fn state(&self, text: &str) -> Result<State, Trouble> {
        if self.without(text, None)? == Without::nothing_of_ours(text) {
            return Ok(State::Missing);
        }
        Ok(if self.with(Some(text))? == text { State::SetUp } else { State::OutOfDate })
    }

    /// The text as it is shown to people: without what others have written there.
    pub fn shown(&self, text: &str) -> String {
        match self {
            Content::Json(_) => masked(Syntax::Json, text, &self.alone()),
            Content::Toml => masked(Syntax::Toml, text, &self.alone()),
            Content::Whole(_) => text.to_owned(),
        }
    }

    /// A file with nothing but our part: what to add by hand where we can't.
    pub fn alone(&self) -> String {
        self.with(None).unwrap_or_default()
    }
}

impl Without {
    /// The text has nothing of ours.
    pub fn nothing_of_ours(text: &str) -> Without {
        Without { text: text.to_owned(), is_empty: false }
    }
}

impl Trouble {
    /// The file is well formed, but not what we expect.
    pub fn shape(reason: &str) -> Trouble {
        Trouble(reason.to_owned())
    }

    /// The file is not what its name says.
    pub fn syntax(format: &str, error: &str) -> Trouble {
        Trouble(format!("it is not valid {format} ({error})"))
    }
}
