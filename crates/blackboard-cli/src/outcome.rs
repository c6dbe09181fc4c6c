//! What a command returns: values and how to show them, never bytes.

use std::fmt;

use blackboard::Code;

use crate::envelope::Answer;
use crate::output::{self, Screen};

/// An answer in its two forms.
pub trait Render {
    /// For programs.
    fn json(&self, answer: &mut Answer<'_>) -> output::Result;

    /// For people.
    fn human(&self, screen: &mut Screen<'_>) -> output::Result;

    /// Whether this is a list, of which a board that does not exist has nothing to show.
    fn is_list(&self) -> bool {
        false
    }

    /// Whether this is about the complete board or a part of it, so that a reader should know which board it is.
    fn is_about_board(&self) -> bool {
        self.is_list()
    }

    /// The exit code, if it is known only once the answer was written.
    fn exit_code(&self) -> Option<u8> {
        None
    }
}

/// What a command returns.
pub struct Outcome {
    /// What to show.
    pub answer: Box<dyn Render>,
    /// What to do, in this order, once the answer has left this process.
    pub after_flush: Vec<Box<dyn FnOnce()>>,
    /// With which exit code the call ends once the answer was written.
    pub exit_code: u8,
}

impl Outcome {
    /// An answer with nothing to do after it.
    pub fn new(answer: impl Render + 'static) -> Outcome {
        Outcome { answer: Box::new(answer), after_flush: Vec::new(), exit_code: 0 }
    }

    /// The answer is no: the call ends with the exit code of `code`, though this is no error.
    #[must_use]
    pub fn that_means(mut self, code: Code) -> Outcome {
        self.exit_code = code.exit_code();
        self
    }

    /// Ends with the exit code of another program.
    #[must_use]
    pub fn with_exit_code(mut self, exit_code: u8) -> Outcome {
        self.exit_code = exit_code;
        self
    }

    /// Does something once the answer was written and flushed, and only then: a cursor must not move past what its
    /// reader did not get. It may fail only silently, because the answer has been given.
    #[must_use]
    pub fn after_flush(mut self, action: impl FnOnce() + 'static) -> Outcome {
        self.after_flush.push(Box::new(action));
        self
    }
}

/// Everything that was to be said has been said already, by this program or by one that ran in its place.
pub struct Nothing;

impl Render for Nothing {
    fn json(&self, _: &mut Answer<'_>) -> output::Result {
        Ok(())
    }

    fn human(&self, _: &mut Screen<'_>) -> output::Result {
        Ok(())
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
