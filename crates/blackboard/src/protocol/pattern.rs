//! `protocol pattern`: builds a pattern of keys.

use serde::Serialize;

use super::{Protocols, Template, split_reference};
use crate::error::Result;

/// A pattern of keys of a protocol.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BuiltPattern {
    /// The protocol.
    pub protocol: String,
    /// The message.
    pub message: String,
    /// The form of its keys.
    pub template: Template,
    /// The pattern.
    pub pattern: String,
}

impl Protocols<'_> {
    /// The pattern of the keys of a message with these values: [`Template::pattern`] by name. It may match other keys,
    /// too: [`parse`](Protocols::parse) decides.
    ///
    /// ```
    /// # let board = blackboard::Board::memory();
    /// let built = board.protocols().pattern("AgentRun.request", &[("ns", "compliance")])?;
    /// assert_eq!(built.pattern, "request:run:compliance:*");
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn pattern(&self, reference: &str, values: &[(&str, &str)]) -> Result<BuiltPattern> {
        let (name, message) = split_reference(reference);
        let protocol = self.show(name)?;
        let message = protocol.message(message)?;
        Ok(BuiltPattern {
            pattern: message.template.pattern(values)?,
            message: message.name.clone(),
            template: message.template.clone(),
            protocol: protocol.name,
        })
    }
}
