//! The entry that was waited for.

use blackboard::entry::Entry;

use super::{Result, Screen, escape};
use crate::envelope::Answer;
use crate::outcome::Render;

/// The answer of `wait`: the entry itself for programs, its value for people.
pub struct Awaited(pub Entry);

impl Render for Awaited {
    fn json(&self, answer: &mut Answer<'_>) -> Result {
        answer.raw(&self.0)
    }

    fn human(&self, screen: &mut Screen<'_>) -> Result {
        screen.line(format_args!("{}", escape(self.0.value.as_str())))
    }
}
