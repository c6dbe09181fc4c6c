//! The result of a command: values and how to print them, never bytes.

use std::fmt;

use blackboard::Code;

use crate::envelope::Answer;
use crate::output::{self, Screen};

/// A result in its two formats.
pub trait Render {
    /// JSON output.
    fn json(&self, answer: &mut Answer<'_>) -> output::Result;

    /// Human output.
    fn human(&self, screen: &mut Screen<'_>) -> output::Result;

    /// Whether this is a list, which is empty if the board does not exist.
    fn is_list(&self) -> bool {
        false
    }

    /// Whether this is about the complete board or a part of it, so that a reader should know which board it is.
    fn is_about_board(&self) -> bool {
        self.is_list()
    }

    /// Whether a missing board is worth a note, because the answer is about it.
    fn needs_board(&self) -> bool {
        true
    }

    /// The exit code, if it is known only once the answer was written.
    fn exit_code(&self) -> Option<u8> {
        None
    }
}

/// What a command returns.
pub struct Outcome {
    /// What to print.
    pub answer: Box<dyn Render>,
    /// Actions after the output was written, in this order.
    pub after_flush: Vec<Box<dyn FnOnce()>>,
    /// The exit code after the output was written.
    pub exit_code: u8,
}

impl Outcome {
    /// A result without further actions.
    pub fn new(answer: impl Render + 'static) -> Outcome {
        Outcome { answer: Box::new(answer), after_flush: Vec::new(), exit_code: 0 }
    }

    /// A negative answer: the call ends with the exit code of `code`, but this is not an error.
    #[must_use]
    pub fn that_means(mut self, code: Code) -> Outcome {
        self.exit_code = code.exit_code();
        self
    }

    /// Exits with the exit code of another program.
    #[must_use]
    pub fn with_exit_code(mut self, exit_code: u8) -> Outcome {
        self.exit_code = exit_code;
        self
    }

    /// Runs an action after the output was written and flushed: a cursor must not move past what its reader did not
    /// get. Its errors are ignored, because the output is already written.
    #[must_use]
    pub fn after_flush(mut self, action: impl FnOnce() + 'static) -> Outcome {
        self.after_flush.push(Box::new(action));
        self
    }
}

/// Everything has already been printed, by this program or by one that it ran.
pub struct Nothing;

impl Render for Nothing {
    fn json(&self, _: &mut Answer<'_>) -> output::Result {
        Ok(())
    }

    fn human(&self, _: &mut Screen<'_>) -> output::Result {
        Ok(())
    }

    fn needs_board(&self) -> bool {
        false
    }
}

impl fmt::Debug for Outcome {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Outcome")
            .field("after_flush", &self.after_flush.len())
            .field("exit_code", &self.exit_code)
            .finish_non_exhaustive()
    }
}
