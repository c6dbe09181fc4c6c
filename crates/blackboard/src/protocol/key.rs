//! `protocol key`: builds a key.

use serde::Serialize;

use super::{Protocols, Template, split_reference};
use crate::error::Result;

/// A key of a protocol.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BuiltKey {
    /// The protocol.
    pub protocol: String,
    /// The message.
    pub message: String,
    /// The form of its keys.
    pub template: Template,
    /// The key.
    pub key: String,
}

impl Protocols<'_> {
    /// The key of a message with these values: [`Template::key`] by name.
    ///
    /// ```
    /// # let board = blackboard::Board::memory();
    /// let built = board.protocols().key("AgentRun.request", &[("ns", "compliance"), ("id", "7")])?;
    /// assert_eq!(built.key, "request:run:compliance:7");
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn key(&self, reference: &str, values: &[(&str, &str)]) -> Result<BuiltKey> {
        let (name, message) = split_reference(reference);
        let protocol = self.show(name)?;
        let message = protocol.message(message)?;
        Ok(BuiltKey {
            key: message.template.key(values)?,
            message: message.name.clone(),
            template: message.template.clone(),
            protocol: protocol.name,
        })
    }
}
