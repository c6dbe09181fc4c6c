//! Text for people: one file a noun, and what all of them use.
//!
//! [`Screen`] is what a command writes on, [`Table`] lines up rows, [`Tone`] says what a word means and becomes a
//! color only on a terminal, [`time`] says how long ago something was. Everything that came from the board or from
//! the outside goes through [`escape`], so that stored text can neither add rows nor move the cursor of a terminal.

pub mod agent;
pub mod child;
pub mod demo;
pub mod entry;
pub mod event;
pub mod file;
pub mod guard;
pub mod hub;
pub mod import;
mod json_text;
pub mod lock;
pub mod memory;
mod names;
pub mod page;
pub mod progress;
pub mod project;
pub mod protocol;
pub mod quota;
pub mod render;
pub mod scope;
mod screen;
pub mod search;
pub mod serve;
pub mod setup;
pub mod spoke;
pub mod status;
mod style;
pub mod sweep;
mod table;
pub mod time;
pub mod trackers;
pub mod upgrade;
pub mod work;

use std::io::{self, IsTerminal};

pub use blackboard::text::escape_for_terminal as escape;
pub use json_text::{harmless_json, shortened};
pub use names::AgentNames;
pub use screen::Screen;
pub use style::{Styles, Tone};
pub use table::{Cell, Column, Table};

/// Answers that are one value: an object for programs, and a function that writes it for people.
macro_rules! render_object {
    ($(#[doc = $doc:literal] $name:ident($value:ty) = $human:ident;)+) => {$(
        #[doc = $doc]
        pub struct $name(pub $value);

        impl crate::outcome::Render for $name {
            fn json(&self, answer: &mut crate::envelope::Answer<'_>) -> crate::output::Result {
                answer.object(&self.0)
            }

            fn human(&self, screen: &mut crate::output::Screen<'_>) -> crate::output::Result {
                $human(&self.0, screen)
            }
        }
    )+};
}
use render_object;

/// The same for answers that are a list.
macro_rules! render_list {
    ($(#[doc = $doc:literal] $name:ident($item:ty) = $human:ident;)+) => {$(
        #[doc = $doc]
        pub struct $name(pub crate::output::ListPage<$item>);

        impl crate::outcome::Render for $name {
            fn is_list(&self) -> bool {
                true
            }

            fn json(&self, answer: &mut crate::envelope::Answer<'_>) -> crate::output::Result {
                answer.list_with(&self.0.rows, &self.0.rest())
            }

            fn human(&self, screen: &mut crate::output::Screen<'_>) -> crate::output::Result {
                $human(&self.0, screen)
            }
        }
    )+};
}
use render_list;

/// How many rows of a list a terminal shows by default.
const ROWS_ON_TERMINAL: usize = 50;

/// How many rows a list shows: as many as the caller asks for, else all of them, but a screenful on a terminal.
pub fn row_limit(given: Option<usize>, json: bool) -> Option<usize> {
    given.or_else(|| (!json && io::stdout().is_terminal()).then_some(ROWS_ON_TERMINAL))
}

/// The rows of a list that are shown.
pub struct ListPage<T> {
    /// The first rows.
    pub rows: Vec<T>,
    /// How many there are.
    pub total: usize,
    /// Whether rows are omitted because the caller did not ask for them, for example completed ones.
    pub hides_some: bool,
    /// What is printed if there are no rows because of the options of the call.
    pub no_rows: Option<&'static str>,
}

/// Whether a list has more rows than are shown.
#[derive(serde::Serialize)]
pub struct Rest {
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    more: bool,
}

impl<T> ListPage<T> {
    /// The first rows of a complete list.
    pub fn first(mut rows: Vec<T>, limit: Option<usize>) -> ListPage<T> {
        let total = rows.len();
        rows.truncate(limit.unwrap_or(usize::MAX));
        ListPage::of(rows, total)
    }

    /// The first rows of a list that has this many.
    pub fn of(rows: Vec<T>, total: usize) -> ListPage<T> {
        ListPage { rows, total, hides_some: false, no_rows: None }
    }

    /// The same list, which omits rows by default if `hides_some`.
    #[must_use]
    pub fn hiding(self, hides_some: bool) -> ListPage<T> {
        ListPage { hides_some, ..self }
    }

    /// What JSON output says about rows that are not shown.
    pub fn rest(&self) -> Rest {
        Rest { more: self.rows.len() < self.total }
    }

    /// The same list, with a text of its own if it has no rows.
    #[must_use]
    pub fn or_say(self, no_rows: Option<&'static str>) -> ListPage<T> {
        ListPage { no_rows, ..self }
    }

    /// Reports that there are more rows, if there are.
    pub fn note_more(&self, screen: &mut Screen<'_>) -> Result {
        let (shown, total) = (self.rows.len(), self.total);
        if shown < total {
            screen.line(format_args!("Showing {shown} of {total}. More: --limit N"))?;
        }
        Ok(())
    }
}

/// The result of showing something.
pub type Result<T = (), E = Failure> = std::result::Result<T, E>;

/// Why an answer was not shown completely.
#[derive(Debug)]
pub enum Failure {
    /// The board failed while the answer was still being read from it.
    Board(blackboard::Error),
    /// The output accepts no more.
    Output(io::Error),
}

impl From<blackboard::Error> for Failure {
    fn from(error: blackboard::Error) -> Failure {
        Failure::Board(error)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        Failure::Output(error)
    }
}
