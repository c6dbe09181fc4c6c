//! The error if a command cannot be started.

use std::io;

use blackboard::{Code, Error, Fault};

use super::{Result, Screen};
use crate::envelope::{Answer, Failure};
use crate::outcome::Render;

/// The answer if the program cannot be started.
pub struct NotStarted(Error);

impl NotStarted {
    /// The program, what became of what was held for it, and why it cannot be started.
    pub fn new(program: &str, after: &str, error: io::Error) -> NotStarted {
        let message = format!("{program} cannot be started; {after}");
        NotStarted(Fault::new(Code::Io, message).because(error).into())
    }
}

impl Render for NotStarted {
    fn json(&self, answer: &mut Answer<'_>) -> Result {
        answer.raw(&Failure::new(&self.0, answer.timestamp()))
    }

    fn human(&self, _screen: &mut Screen<'_>) -> Result {
        crate::exit::complain(&self.0);
        Ok(())
    }
}
