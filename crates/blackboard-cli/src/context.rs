//! What every command is given: the options that all of them share.

use crate::args::Globals;

/// What a command knows beside its own arguments.
#[derive(Debug)]
pub struct Context {
    /// The options that every command takes.
    pub globals: Globals,
}

impl Context {
    /// The context of one call.
    pub fn new(globals: Globals) -> Context {
        Context { globals }
    }
}
