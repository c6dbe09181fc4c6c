//! What belongs into one file, whatever its format: how it looks with our part and without it.

use super::json::{self, Wanted};
use super::mask::{Syntax, masked, without_credentials};
use super::toml;

/// What belongs into a file.
#[derive(Clone, Debug)]
pub enum Content {
    /// Entries in JSON, possibly with comments.
    Json(Vec<Wanted>),
    /// Our MCP server in this table of a TOML file.
    Toml(&'static str),
    /// A file that is ours as a whole.
    Whole(&'static str),
}

/// By this a file that is ours as a whole is known, in whatever version.
pub const MARK: &str = "Written by `blackboard setup`";

/// Why a file is not edited.
#[derive(Clone, Debug, PartialEq)]
pub struct EditError(pub String);

/// A text without our part.
#[derive(Debug, PartialEq)]
pub struct Removal {
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
    /// The same, and the user has switched it off.
    SwitchedOff,
    /// As another version wrote it.
    OutOfDate,
    /// Not at all.
    Missing,
}

impl Content {
    /// The text with our part in it, as this version writes it. A text that has it stays as it is, to the byte.
    pub fn with(&self, text: Option<&str>) -> Result<String, EditError> {
        match self {
            Content::Json(wanted) => json::with(wanted, text),
            Content::Toml(servers) => toml::with(servers, text),
            Content::Whole(whole) => match text {
                // A checkout may have changed its line endings.
                Some(text) if text.replace("\r\n", "\n") == **whole => Ok(text.to_owned()),
                Some(text) if !text.contains(MARK) => Err(EditError::shape("it is not ours")),
                _ => Ok((*whole).to_owned()),
            },
        }
    }

    /// The text without our part. One that does not have it stays as it is, to the byte.
    ///
    /// `before` is how the file was before we came: what is empty there may be empty again.
    pub fn without(&self, text: &str, before: Option<&str>) -> Result<Removal, EditError> {
        match self {
            Content::Json(wanted) => json::without(wanted, text, before),
            Content::Toml(servers) => toml::without(servers, text),
            Content::Whole(_) if text.contains(MARK) => Ok(Removal { text: String::new(), is_empty: true }),
            Content::Whole(_) => Ok(Removal::nothing_of_ours(text)),
        }
    }

    /// Whether our part is in it.
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

    /// Other parts of ours in the same file: what else `with` has put there for another scope.
    pub fn others_in(&self, text: &str) -> Vec<Content> {
        match self {
            Content::Json(wanted) => json::others_in(wanted, text).into_iter().map(Content::Json).collect(),
            Content::Toml(_) | Content::Whole(_) => Vec::new(),
        }
    }

    /// What to add to this text by hand where we can't.
    pub fn by_hand(&self, text: Option<&str>) -> String {
        match (self, text) {
            (Content::Toml(servers), Some(text)) => toml::by_hand(servers, text),
            (Content::Json(_) | Content::Toml(_) | Content::Whole(_), _) => self.alone(),
        }
    }

    /// The text as it is shown to people: without what others have written there.
    pub fn shown(&self, text: &str) -> String {
        match self {
            Content::Json(_) => masked(Syntax::Json, text, &self.alone()),
            Content::Toml(_) => masked(Syntax::Toml, text, &self.alone()),
            // Lines that the user added are removed with it, and should be seen.
            Content::Whole(_) => without_credentials(text),
        }
    }

    /// A file with nothing but our part.
    pub fn alone(&self) -> String {
        self.with(None).unwrap_or_default()
    }
}

impl Removal {
    /// The text has nothing of ours.
    pub fn nothing_of_ours(text: &str) -> Removal {
        Removal { text: text.to_owned(), is_empty: false }
    }
}

/// How the reason ends that a name is taken.
const TAKEN: &str = " is something else already: give that another name, and run this again";

impl EditError {
    /// There is something else under our name.
    pub fn taken(path: &str) -> EditError {
        EditError(format!("\"{path}\"{TAKEN}"))
    }

    /// Whether it is that, so that nothing of ours can be added.
    pub fn is_taken(&self) -> bool {
        self.0.ends_with(TAKEN)
    }

    /// The file is well formed, but not what we expect.
    pub fn shape(reason: &str) -> EditError {
        EditError(reason.to_owned())
    }

    /// The file is not what its name says.
    pub fn syntax(format: &str, error: &str) -> EditError {
        EditError(format!("it is not valid {format} ({error})"))
    }
}
