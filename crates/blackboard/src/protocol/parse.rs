//! `protocol parse`: reads the values of a key.

use serde::Serialize;

use super::{Protocol, Protocols, Template, Values, split_reference};
use crate::error::{Code, Refusal, Result};
use crate::hint::Hint;
use crate::text::shown;

/// The values of a key.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ParsedKey {
    /// The protocol.
    pub protocol: String,
    /// The message whose template the key has.
    pub message: String,
    /// The form of its keys.
    pub template: Template,
    /// The key.
    pub key: String,
    /// The values by their names, without those that are missing.
    pub values: Values,
}

impl Protocols<'_> {
    /// The values of a key of a protocol, or of one of its messages.
    ///
    /// ```
    /// # let board = blackboard::Board::memory();
    /// let parsed = board.protocols().parse("AgentRun", "result:run:compliance:7")?;
    /// assert_eq!((parsed.message.as_str(), parsed.values["id"].as_str()), ("result", "7"));
    /// assert!(board.protocols().parse("AgentRun.request", "result:run:compliance:7").is_err());
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn parse(&self, reference: &str, key: &str) -> Result<ParsedKey> {
        let (name, message) = split_reference(reference);
        let protocol = self.show(name)?;
        let messages = match message {
            Some(_) => std::slice::from_ref(protocol.message(message)?),
            None => protocol.messages.as_slice(),
        };
        let parsed = messages.iter().find_map(|message| {
            Some(ParsedKey {
                values: message.template.parse(key)?,
                protocol: protocol.name.clone(),
                message: message.name.clone(),
                template: message.template.clone(),
                key: key.to_owned(),
            })
        });
        parsed.ok_or_else(|| mismatch(&protocol, message, key))
    }
}

fn mismatch(protocol: &Protocol, message: Option<&str>, key: &str) -> crate::Error {
    let name =
        message.map_or_else(|| protocol.name.clone(), |message| format!("{}.{message}", protocol.name));
    let message = format!("the key \"{}\" is not a key of {}", shown(key), shown(&name));
    Refusal::new(Code::ProtocolMismatch, message).hint(Hint::ShowProtocol(protocol.name.clone())).into()
}
