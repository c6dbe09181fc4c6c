//! What setup writes into one file, independent of its format: the text with our part and without it.

use super::json::{self, Wanted};
use super::mask::{Syntax, masked, without_credentials};
use super::toml;

/// What setup writes into a file.
#[derive(Clone, Debug)]
pub enum Content {
    /// Entries in JSON, possibly with comments.
    Json(Vec<Wanted>),
    /// Our MCP server in this table of a TOML file.
    Toml(&'static str),
    /// A file that is completely ours.
    Whole(&'static str),
}

/// The signature that identifies a file of ours, in every version.
pub const SIGNATURE: &str = "Written by `blackboard setup`";

/// Why a file cannot be edited.
#[derive(Clone, Debug, PartialEq)]
pub struct EditError(pub String);

/// A text without our part.
#[derive(Debug, PartialEq)]
pub struct Removal {
    /// The remaining text.
    pub text: String,
    /// Our part was removed, and nothing else is left.
    pub is_empty: bool,
}

/// Whether a file contains our part.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum State {
    /// As this version writes it.
    SetUp,
    /// The same, but the user has disabled it.
    SwitchedOff,
    /// As another version wrote it.
    OutOfDate,
    /// It does not.
    Missing,
}

impl Content {
    /// The text with our part, as this version writes it. A text that already has it stays the same, byte for byte.
    pub fn with(&self, text: Option<&str>) -> Result<String, EditError> {
        match self {
            Content::Json(wanted) => json::with(wanted, text),
            Content::Toml(servers) => toml::with(servers, text),
            Content::Whole(whole) => match text {
                // A git checkout may have changed the line endings.
                Some(text) if text.replace("\r\n", "\n") == **whole => Ok(text.to_owned()),
                Some(text) if !text.contains(SIGNATURE) => {
                    Err(EditError::shape("it was not written by blackboard"))
                }
                _ => Ok((*whole).to_owned()),
            },
        }
    }

    /// The text without our part. A text that does not have it stays the same, byte for byte.
    ///
    /// `before` is the file before we changed it: what was empty there may stay empty.
    pub fn without(&self, text: &str, before: Option<&str>) -> Result<Removal, EditError> {
        match self {
            Content::Json(wanted) => json::without(wanted, text, before),
            Content::Toml(servers) => toml::without(servers, text),
            Content::Whole(_) if text.contains(SIGNATURE) => {
                Ok(Removal { text: String::new(), is_empty: true })
            }
            Content::Whole(_) => Ok(Removal::nothing_of_ours(text)),
        }
    }

    /// The text without what our part replaces: hooks of ivy-blackboard.
    pub fn without_predecessors(&self, text: &str) -> Result<String, EditError> {
        match self {
            Content::Json(wanted) if wanted.iter().any(|one| matches!(one, Wanted::Hooks(_))) => {
                json::without_predecessors(text)
            }
            Content::Json(_) | Content::Toml(_) | Content::Whole(_) => Ok(text.to_owned()),
        }
    }

    /// Whether a text contains our part.
    pub fn state(&self, text: &str) -> Result<State, EditError> {
        let is_there = match self {
            Content::Toml(servers) => toml::is_there(servers, text)?,
            Content::Json(_) | Content::Whole(_) => {
                self.without(text, None)? != Removal::nothing_of_ours(text)
            }
        };
        let is_switched_off = match self {
            Content::Json(wanted) => json::is_switched_off(wanted, text)?,
            Content::Toml(servers) => toml::is_switched_off(servers, text)?,
            Content::Whole(_) => false,
        };
        Ok(match is_there {
            false => State::Missing,
            true if self.with(Some(text))? != text => State::OutOfDate,
            true if is_switched_off => State::SwitchedOff,
            true => State::SetUp,
        })
    }

    /// Our other parts in the same file, which setup wrote for another settings level.
    pub fn others_in(&self, text: &str) -> Vec<Content> {
        match self {
            Content::Json(wanted) => json::others_in(wanted, text).into_iter().map(Content::Json).collect(),
            Content::Toml(_) | Content::Whole(_) => Vec::new(),
        }
    }

    /// What to add by hand if we cannot edit the file.
    pub fn by_hand(&self, text: Option<&str>) -> String {
        match (self, text) {
            (Content::Toml(servers), Some(text)) => toml::by_hand(servers, text),
            (Content::Json(_) | Content::Toml(_) | Content::Whole(_), _) => self.alone(),
        }
    }

    /// The text as diffs show it: without values that others wrote.
    pub fn shown(&self, text: &str) -> String {
        match self {
            Content::Json(_) => masked(Syntax::Json, text, &self.alone()),
            Content::Toml(_) => masked(Syntax::Toml, text, &self.alone()),
            // Lines that the user added are deleted with the file, so they are shown.
            Content::Whole(_) => without_credentials(text),
        }
    }

    /// A file with only our part.
    pub fn alone(&self) -> String {
        self.with(None).unwrap_or_default()
    }
}

impl Removal {
    /// The result for a text that contains nothing of ours.
    pub fn nothing_of_ours(text: &str) -> Removal {
        Removal { text: text.to_owned(), is_empty: false }
    }
}

/// The end of the error if our name is used for something else.
const TAKEN: &str = " is used for something else: rename that, and run this command again";

impl EditError {
    /// Our name is used for something else.
    pub fn taken(path: &str) -> EditError {
        EditError(format!("\"{path}\"{TAKEN}"))
    }

    /// Whether it is that error, so that nothing of ours can be added.
    pub fn is_taken(&self) -> bool {
        self.0.ends_with(TAKEN)
    }

    /// The file is well formed, but has an unexpected structure.
    pub fn shape(reason: &str) -> EditError {
        EditError(reason.to_owned())
    }

    /// The file does not have the format that its name implies.
    pub fn syntax(format: &str, error: &str) -> EditError {
        EditError(format!("it is not valid {format} ({error})"))
    }
}
