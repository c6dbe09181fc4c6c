//! Text for people: one file a noun, and what all of them use.
//!
//! [`Screen`] is what a command writes on, [`Table`] lines up rows, [`Tone`] says what a word means and becomes a
//! colour only on a terminal, [`time`] says how long ago something was. Everything that came from the board or from
//! the outside goes through [`escape`], so that stored text can neither add rows nor move the cursor of a terminal.

pub mod agent;
pub mod child;
pub mod demo;
pub mod entry;
pub mod event;
pub mod file;
pub mod guard;
mod json_text;
pub mod lock;
pub mod project;
mod screen;
pub mod serve;
pub mod setup;
pub mod status;
mod style;
pub mod sweep;
mod table;
pub mod time;
pub mod work;

use std::io;

pub use blackboard::text::escape_for_terminal as escape;
pub use json_text::{harmless_json, shortened};
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
        pub struct $name(pub Vec<$item>);

        impl crate::outcome::Render for $name {
            fn is_list(&self) -> bool {
                true
            }

            fn json(&self, answer: &mut crate::envelope::Answer<'_>) -> crate::output::Result {
                answer.list(&self.0)
            }

            fn human(&self, screen: &mut crate::output::Screen<'_>) -> crate::output::Result {
                $human(&self.0, screen)
            }
        }
    )+};
}
use render_list;

/// The result of showing something.
pub type Result<T = (), E = Failure> = std::result::Result<T, E>;

/// Why an answer was not shown completely.
#[derive(Debug)]
pub enum Failure {
    /// The board failed while the answer was still being read from it.
    Board(blackboard::Error),
    /// The output does not take any more.
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
