//! `protocol define`: stores a protocol on the board.

use serde::Serialize;

use super::custom::check_name;
use super::{CustomProtocol, Level, MAX_PROTOCOLS, Protocols, Schema, Template, table};
use crate::agent::prefetch_agent;
use crate::board::Board;
use crate::clock::Timestamp;
use crate::entry::LOCK_PREFIX;
use crate::error::{Code, Refusal, Result};
use crate::event::{EventType, NewEvent, TargetType};
use crate::hint::Hint;
use crate::revision::{Pending, Revision};
use crate::store::{Changes, Key, Prefetch, Range, Tx};
use crate::text::{Cleaner, Kind, TextChanges, shown};

/// A protocol to define.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DefineProtocol {
    /// Its name.
    pub name: String,
    /// The form of its keys.
    pub template: String,
    /// Which agents share its entries; all agents by default.
    pub level: Option<Level>,
    /// What it is for.
    pub summary: Option<String>,
    /// A JSON Schema that describes its values.
    pub value_schema: Option<String>,
    /// The session that defines it.
    pub session: Option<String>,
}

impl DefineProtocol {
    /// A protocol with this name and template only.
    pub fn new(name: &str, template: &str) -> DefineProtocol {
        DefineProtocol { name: name.to_owned(), template: template.to_owned(), ..DefineProtocol::default() }
    }
}

/// The result of a definition.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DefinedProtocol {
    /// The protocol.
    #[serde(flatten)]
    pub protocol: CustomProtocol,
    /// Whether this call defined it.
    pub created: bool,
    /// The changes to its summary.
    #[serde(flatten)]
    pub text: TextChanges,
}

impl Pending for DefinedProtocol {
    fn resolve(&mut self, first: Revision) {
        self.protocol.resolve(first);
    }
}

impl Protocols<'_> {
    /// Defines a protocol. To define it again with the same fields changes nothing. With other fields it is refused:
    /// agents rely on what keys mean.
    ///
    /// ```
    /// # use blackboard::{Board, Code, protocol::DefineProtocol};
    /// # let board = Board::memory();
    /// let schema = r#"{"type": "object", "required": ["verdict"]}"#;
    /// let value_schema = Some(schema.to_owned());
    /// let review = DefineProtocol { value_schema, ..DefineProtocol::new("review", "review:{repo}:{id}") };
    /// assert!(board.protocols().define(&review)?.created);
    /// let key = board.protocols().key("review", &[("repo", "owner/pai"), ("id", "78")])?.key;
    /// assert_eq!(key, "review:owner/pai:78");
    /// assert!(!board.protocols().define(&review)?.created);
    /// let other = DefineProtocol::new("review", "review:{id}");
    /// assert_eq!(board.protocols().define(&other).unwrap_err().code(), Code::AlreadyExists);
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn define(&self, request: &DefineProtocol) -> Result<DefinedProtocol> {
        let definition = self.definition(request)?;
        let changes = |tx: &dyn Tx| definition.changes(self.board, tx);
        self.board.commit("protocol define", &definition.prefetch(), changes)
    }

    /// Checks what needs no board.
    pub(crate) fn definition(self, request: &DefineProtocol) -> Result<Definition> {
        let rules = &self.board.settings().text;
        check_name(&request.name)?;
        if let Some(built_in) = table::find(&request.name) {
            let message = format!("protocol {} is built in and cannot be changed", built_in.name);
            let hint = "define it under another name";
            return Err(Refusal::new(Code::InvalidValue, message).hint(hint).into());
        }
        if request.template.starts_with(LOCK_PREFIX) {
            let message = format!(
                "no entry has a key of the template \"{}\": it means a lock",
                shown(&request.template)
            );
            return Err(Refusal::new(Code::InvalidValue, message).hint("begin with another word").into());
        }
        rules.check_unaltered([request.name.as_str(), request.template.as_str()])?;
        rules.check_json(request.value_schema.as_deref())?;
        let mut cleaner = Cleaner::new(rules);
        let summary = cleaner.maybe("summary", Kind::Field, request.summary.as_ref())?;
        let text = cleaner.changes();
        let protocol = CustomProtocol {
            name: request.name.clone(),
            template: Template::new(&request.template)?,
            level: request.level.unwrap_or(Level::Colony),
            summary: summary.unwrap_or_default(),
            value_schema: request.value_schema.as_deref().map(Schema::parse).transpose()?,
            defined_at: Timestamp::EPOCH,
            revision: Revision::ZERO,
        };
        Ok(Definition { protocol, text, session: request.session.clone() })
    }
}

/// A protocol that may be defined.
pub(crate) struct Definition {
    protocol: CustomProtocol,
    text: TextChanges,
    session: Option<String>,
}

impl Definition {
    /// Announces what [`changes`](Definition::changes) reads.
    pub(crate) fn prefetch(&self) -> Vec<Prefetch<'_>> {
        let row = Prefetch::Row(Key::CustomProtocol(self.protocol.name.clone()));
        let mut prefetch = vec![row, Prefetch::Range(Range::protocols())];
        prefetch.extend(prefetch_agent(self.session.as_deref()));
        prefetch
    }

    /// What defines it on the board.
    pub(crate) fn changes(&self, board: &Board, tx: &dyn Tx) -> Result<(Changes, DefinedProtocol)> {
        let before = tx.row(&Key::CustomProtocol(self.protocol.name.clone()))?;
        let count = tx.rows::<CustomProtocol>(&Range::protocols())?.len();
        let session = self.session.as_deref();
        let (mut changes, mut result) = decide(self.protocol.clone(), before, count, session, tx.now())?;
        result.text.clone_from(&self.text);
        board.agents().record_activity_of(tx, session, &mut changes)?;
        Ok((changes, result))
    }
}

fn decide(
    defined: CustomProtocol,
    before: Option<CustomProtocol>,
    count: usize,
    session: Option<&str>,
    now: Timestamp,
) -> Result<(Changes, DefinedProtocol)> {
    let mut changes = Changes::new();
    let done = |protocol, created| DefinedProtocol { protocol, created, text: TextChanges::default() };
    if let Some(before) = before {
        let CustomProtocol { defined_at, revision, .. } = before;
        if (CustomProtocol { defined_at, revision, ..defined.clone() }) == before {
            return Ok((changes, done(before, false)));
        }
        let message = format!("protocol {} exists with other fields", defined.name);
        return Err(Refusal::new(Code::AlreadyExists, message)
            .hint(Hint::ShowProtocol(defined.name))
            .detail("template", before.template.as_str())
            .into());
    }
    if count >= MAX_PROTOCOLS {
        let message = format!("the board has {count} protocols; {MAX_PROTOCOLS} are allowed");
        return Err(Refusal::new(Code::InvalidValue, message).hint(Hint::ListProtocols).into());
    }
    let mut protocol = CustomProtocol { defined_at: now, ..defined };
    let summary = format!("Protocol \"{}\" defined: {}", protocol.name, protocol.template);
    protocol.revision = changes.event(
        NewEvent::new(EventType::ProtocolDefined, TargetType::Protocol, &protocol.name, summary)
            .by(session)
            .with("template", protocol.template.as_str())
            .with("level", protocol.level.as_str()),
    );
    changes.put(protocol.clone());
    Ok((changes, done(protocol, true)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn a_protocol(template: &str) -> CustomProtocol {
        CustomProtocol {
            name: "review".to_owned(),
            template: Template::new(template).unwrap(),
            level: Level::Colony,
            summary: String::new(),
            value_schema: None,
            defined_at: Timestamp::EPOCH,
            revision: Revision::ZERO,
        }
    }

    #[test]
    fn template_of_locks_is_refused() {
        testkit::limit_test();
        let board = crate::Board::memory();
        for (template, is_allowed) in [("lock:{name}", false), ("lock:a:{b?}", false), ("lock", true)] {
            let defined = board.protocols().define(&DefineProtocol::new("mine", template));
            assert_eq!(defined.map(drop).map_err(|error| error.code()).is_ok(), is_allowed, "{template}");
        }
    }

    #[test]
    fn protocol_is_defined_once_and_never_changed() {
        let review = a_protocol("review:{id}");
        let known = CustomProtocol { revision: Revision::new(7), ..review.clone() };
        let with_schema =
            CustomProtocol { value_schema: Some(Schema::parse("{}").unwrap()), ..review.clone() };
        for (defined, before, count, expected) in [
            (&review, None, 0, Ok(true)),
            (&review, Some(&known), 1, Ok(false)),
            (&review, Some(&known), MAX_PROTOCOLS, Ok(false)),
            (&a_protocol("review:{repo}:{id}"), Some(&known), 1, Err(Code::AlreadyExists)),
            (&with_schema, Some(&known), 1, Err(Code::AlreadyExists)),
            (&review, None, MAX_PROTOCOLS, Err(Code::InvalidValue)),
        ] {
            let outcome = decide(defined.clone(), before.cloned(), count, None, Timestamp::EPOCH);
            let outcome = outcome.map(|(changes, result)| {
                assert_eq!((changes.events.len(), changes.put.len()), {
                    let count = usize::from(result.created);
                    (count, count)
                });
                result.created
            });
            assert_eq!(outcome.map_err(|error| error.code()), expected, "{defined:?}, before: {before:?}");
        }
    }
}
