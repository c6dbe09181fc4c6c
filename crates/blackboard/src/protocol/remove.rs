//! `protocol remove`: removes a protocol from the board.

use serde::Serialize;

use super::{CustomProtocol, Protocols, not_found, table};
use crate::agent::prefetch_agent;
use crate::entry::Actor;
use crate::error::{Code, Error, Refusal, Result};
use crate::event::{EventType, NewEvent, TargetType};
use crate::hint::Hint;
use crate::revision::{Pending, Revision};
use crate::scope::{Guard, ScopePolicies};
use crate::store::{Changes, Key, Prefetch, Range};

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
    /// Removes a protocol that was defined on the board. Its entries stay. It is refused while the rules of a scope name the
    /// protocol: with another definition, every agent could change what that scope allows.
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
        prefetch.push(Prefetch::Range(Range::scope_policies()));
        self.board.commit("protocol remove", &prefetch, |tx| {
            let protocol = tx.row::<CustomProtocol>(&key)?.ok_or_else(|| not_found(name))?;
            let mut scopes = tx.rows::<ScopePolicies>(&Range::scope_policies())?;
            scopes.retain(|row| row.policies.validation.name_protocol(name));
            if !scopes.is_empty() {
                let actor = Actor { session: session.map(str::to_owned), ..Actor::default() };
                return Err(in_use(name, &scopes, &Guard::new(self.board, tx, &actor))?);
            }
            let (mut changes, removed) = decide(protocol, session);
            self.board.agents().record_activity_of(tx, session, &mut changes)?;
            Ok((changes, removed))
        })
    }
}

/// The refusal to remove a protocol that the rules of scopes name. The caller may not know all of them.
fn in_use(name: &str, scopes: &[ScopePolicies], guard: &Guard<'_>) -> Result<Error> {
    let mut known = None;
    for row in scopes {
        if known.is_none() && guard.may_see_row(row)? {
            known = Some(row.scope.clone());
        }
    }
    let refusal = |which: &str| {
        let message = format!("cannot remove protocol {name}: the rules of {which} name it");
        Refusal::new(Code::InUse, message).detail("protocol", name)
    };
    Ok(match known {
        Some(scope) => refusal(&format!("scope {scope}")).hint(Hint::ShowScope(scope)).into(),
        None => refusal("a scope").into(),
    })
}

fn decide(protocol: CustomProtocol, session: Option<&str>) -> (Changes, RemovedProtocol) {
    let mut changes = Changes::new();
    let name = &protocol.name;
    let summary = format!("Protocol \"{name}\" removed");
    changes.event(NewEvent::new(EventType::ProtocolRemoved, TargetType::Protocol, name, summary).by(session));
    changes.remove(Key::CustomProtocol(name.clone()));
    (changes, RemovedProtocol { protocol })
}
