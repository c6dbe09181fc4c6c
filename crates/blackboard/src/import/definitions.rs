//! What an export has besides entries: policies of scopes and protocols, which are imported, and the rest, which is not.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use crate::protocol::{DefineProtocol, protocol_name};
use crate::scope::Policies;
use crate::swarm::Parsed;

/// The most protocols, and the most scopes, of a file that are read.
const MAX_DEFINITIONS: usize = 10_000;

/// The sections of an export that are not imported: they belong to the sessions or to the log of their board.
const NOT_IMPORTED: [&str; 5] = ["agents", "projects", "work_items", "work_dependencies", "events"];

/// The members of a scope that are not policies.
const NO_POLICIES: [&str; 7] =
    ["scope", "entries", "created_at", "created_by", "updated_at", "updated_by", "revision"];

/// What an export has besides entries.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Definitions {
    /// Its protocols.
    pub protocols: Vec<FileDefinition<DefineProtocol>>,
    /// The scopes that have policies.
    pub scopes: Vec<FileDefinition<Policies>>,
    /// How many rows the sections have that are not imported. Empty ones are missing.
    pub not_imported: BTreeMap<String, usize>,
}

/// A protocol, or the policies of a scope.
#[derive(Clone, Debug, PartialEq)]
pub struct FileDefinition<T> {
    /// The name.
    pub name: String,
    /// What it is, or why it cannot be read.
    pub content: Result<T, String>,
}

impl Definitions {
    /// The definitions of an export with these members. A list that cannot be read is reported.
    pub(super) fn read(members: &BTreeMap<String, &RawValue>, content: &mut Parsed) -> Definitions {
        let mut rows = |section: &str| -> Vec<&RawValue> {
            let Some(json) = members.get(section) else { return Vec::new() };
            let mut rows: Vec<&RawValue> = serde_json::from_str(json.get()).unwrap_or_else(|error| {
                content.add_unread(1, format!("the list of {section} is damaged: {error}"));
                Vec::new()
            });
            if rows.len() > MAX_DEFINITIONS {
                content.add_unread(1, format!("only {MAX_DEFINITIONS} {section} are read"));
                rows.truncate(MAX_DEFINITIONS);
            }
            rows
        };
        let (protocols, scopes) = (rows("protocols"), rows("scopes"));
        let count = |section: &&str| {
            let rows: Vec<IgnoredAny> = serde_json::from_str(members.get(*section)?.get()).ok()?;
            (!rows.is_empty()).then(|| ((*section).to_owned(), rows.len()))
        };
        Definitions {
            protocols: read_rows(&protocols, "name", "protocol", content, read_protocol),
            scopes: read_rows(&scopes, "scope", "scope", content, read_policies),
            not_imported: NOT_IMPORTED.iter().filter_map(count).collect(),
        }
    }

    /// Keeps the policies of one scope, and the protocols that they name.
    pub(super) fn keep_scope(&mut self, scope: &str) {
        self.scopes.retain(|each| each.name == scope);
        let policies = || self.scopes.iter().filter_map(|scope| scope.content.as_ref().ok());
        let is_named = |name: &str| {
            policies()
                .any(|policies| policies.validation.protocols().any(|named| protocol_name(named) == name))
        };
        self.protocols.retain(|protocol| is_named(&protocol.name));
        // They belong to no scope.
        self.not_imported.clear();
    }
}

fn read_rows<T>(
    rows: &[&RawValue],
    named_by: &str,
    what: &str,
    content: &mut Parsed,
    read: impl Fn(&str) -> serde_json::Result<T>,
) -> Vec<FileDefinition<T>> {
    let mut definitions = Vec::with_capacity(rows.len());
    for row in rows {
        let members: Option<BTreeMap<String, &RawValue>> = serde_json::from_str(row.get()).ok();
        let name = members.and_then(|members| serde_json::from_str(members.get(named_by)?.get()).ok());
        match name {
            Some(name) => {
                let content = read(row.get()).map_err(|error| format!("it cannot be read: {error}"));
                definitions.push(FileDefinition { name, content });
            }
            None => content.add_unread(1, format!("a {what} has no name")),
        }
    }
    definitions
}

fn read_protocol(json: &str) -> serde_json::Result<DefineProtocol> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct StoredProtocol<'a> {
        name: String,
        template: String,
        level: String,
        #[serde(default)]
        summary: String,
        #[serde(default, borrow)]
        value_schema: Option<&'a RawValue>,
        #[serde(default, rename = "defined_at")]
        _defined_at: IgnoredAny,
        #[serde(default, rename = "revision")]
        _revision: IgnoredAny,
    }
    let stored: StoredProtocol<'_> = serde_json::from_str(json)?;
    Ok(DefineProtocol {
        level: Some(stored.level.parse().map_err(<serde_json::Error as serde::de::Error>::custom)?),
        summary: (!stored.summary.is_empty()).then_some(stored.summary),
        value_schema: stored.value_schema.map(|schema| schema.get().to_owned()),
        ..DefineProtocol::new(&stored.name, &stored.template)
    })
}

/// The policies of a scope. One that this version does not know makes them unreadable: to ignore it would break a promise.
fn read_policies(json: &str) -> serde_json::Result<Policies> {
    let members: BTreeMap<String, &RawValue> = serde_json::from_str(json)?;
    let policies: BTreeMap<_, _> =
        members.iter().filter(|(name, _)| !NO_POLICIES.contains(&name.as_str())).collect();
    serde_json::from_str(&serde_json::to_string(&policies)?)
}
