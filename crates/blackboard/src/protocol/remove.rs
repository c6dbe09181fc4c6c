//! `protocol remove`: removes a protocol from the board.

use serde::Serialize;

use super::{CustomProtocol, Protocols, not_found, table};
use crate::agent::prefetch_agent;
use crate::error::{Error, Result};
use crate::event::{EventType, NewEvent, TargetType};
use crate::revision::{Pending, Revision};
use crate::store::{Changes, Key, Prefetch};

/// A removed protocol.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RemovedProtocol {
    /// The protocol.
    #[serde(flatten)]
    pub protocol: CustomProtocol,
}

impl Pending for RemovedProtocol {
    fn resolve(&mut self, _first: Revision) {}
}

impl Protocols<'_> {
    /// Removes a protocol that was defined on the board. Its entries stay.
    ///
    /// ```
    /// # use blackboard::{Board, Code, protocol::DefineProtocol};
    /// # let board = Board::memory();
    /// board.protocols().define(&DefineProtocol::new("review", "review:{id}"))?;
    /// assert_eq!(board.protocols().remove("review", None)?.protocol.name, "review");
    /// assert_eq!(board.protocols().remove("review", None).unwrap_err().code(), Code::ProtocolNotFound);
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn remove(&self, name: &str, session: Option<&str>) -> Result<RemovedProtocol> {
        if let Some(built_in) = table::find(name) {
            return Err(Error::invalid(format!(
                "protocol {} is built in and cannot be removed",
                built_in.name
            )));
        }
        let key = Key::CustomProtocol(name.to_owned());
        let mut prefetch = vec![Prefetch::Row(key.clone())];
        prefetch.extend(prefetch_agent(session));
        self.board.commit("protocol remove", &prefetch, |tx| {
            let protocol = tx.row::<CustomProtocol>(&key)?.ok_or_else(|| not_found(name))?;
            let (mut changes, removed) = decide(protocol, session);
            self.board.agents().record_activity_of(tx, session, &mut changes)?;
            Ok((changes, removed))
        })
    }
}

fn decide(protocol: CustomProtocol, session: Option<&str>) -> (Changes, RemovedProtocol) {
    let mut changes = Changes::new();
    let name = &protocol.name;
    let summary = format!("Protocol \"{name}\" removed");
    changes.event(NewEvent::new(EventType::ProtocolRemoved, TargetType::Protocol, name, summary).by(session));
    changes.remove(Key::CustomProtocol(name.clone()));
    (changes, RemovedProtocol { protocol })
}
