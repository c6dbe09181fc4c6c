//! `blackboard scope set`

use blackboard::scope::{AccessRules, Eviction, SetScope, ValueRule, Visibility};
use blackboard::{Code, Refusal, Result};

use super::access_rules;
use crate::commands::Run;
use crate::commands::arguments::{Session, at_least_one, length};
use crate::context::Context;
use crate::open::Access;
use crate::outcome::Outcome;
use crate::output::scope::UpdatedScope;

/// The options that change a policy.
const OPTIONS: &str = "`blackboard scope set --help` lists what can be changed";

/// Change policies of a scope
///
/// Changes the given policies and keeps the rest. Entries that exist stay as they are, so a limit below their number is
/// refused (exit 4).
///
/// Examples:
///   blackboard scope set cache --max-entries 500
///   blackboard scope set cache --no-ttl --no-max-entries
///   blackboard scope set cache --validate 'config.*=dict'
///   blackboard scope set cache --deny 'oak:write,delete:config.*'
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
#[expect(clippy::struct_excessive_bools, reason = "each is a separate option")]
pub struct Set {
    /// Name of the scope
    #[arg(value_name = "NAME")]
    name: String,

    /// Visibility: global, persistent (no default TTL, no evictions) or shared (for its members)
    #[arg(long, value_name = "VISIBILITY")]
    visibility: Option<Visibility>,

    /// Agent that a shared scope is for, in place of all earlier ones; repeatable
    #[arg(long = "member", value_name = "NAME")]
    members: Vec<String>,

    /// Access rule, in place of all earlier --allow rules: only callers that match WHO may do these operations (read, write,
    /// delete or *) on matching keys; repeatable
    #[arg(long = "allow", value_name = "WHO:OPERATIONS[:KEYS]")]
    allow: Vec<String>,

    /// Access rule, in place of all earlier --deny rules: callers that match WHO may not do these operations, whatever
    /// --allow says; repeatable
    #[arg(long = "deny", value_name = "WHO:OPERATIONS[:KEYS]")]
    deny: Vec<String>,

    /// Remove all access rules but those that --allow and --deny give
    #[arg(long)]
    no_access: bool,

    /// TTL of entries that are written without one: 90s, 15m, 1h, 2d; a bare number is seconds
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true, conflicts_with = "no_ttl")]
    ttl: Option<String>,

    /// Remove the default TTL
    #[arg(long)]
    no_ttl: bool,

    /// Largest number of entries
    #[arg(long, value_name = "N", value_parser = at_least_one, conflicts_with = "no_max_entries")]
    max_entries: Option<usize>,

    /// Remove the limit
    #[arg(long)]
    no_max_entries: bool,

    /// What a full scope does: lru (evict the oldest write), lfu (evict the smallest access_count in the metadata) or
    /// refuse
    #[arg(long, value_name = "EVICTION")]
    eviction: Option<Eviction>,

    /// Type of the values under matching keys, in place of all earlier rules; repeatable
    #[arg(long = "validate", value_name = "PATTERN=TYPE", conflicts_with = "no_validate")]
    types: Vec<ValueRule>,

    /// JSON Schema of the values under matching keys: JSON, or a file; - is standard input. In place of all earlier
    /// rules; repeatable
    #[arg(long = "validate-schema", value_name = "PATTERN=JSON|FILE", conflicts_with = "no_validate")]
    schemas: Vec<String>,

    /// Protocol whose schema the values under matching keys have, in place of all earlier rules; repeatable
    #[arg(long = "validate-protocol", value_name = "PATTERN=PROTOCOL", conflicts_with = "no_validate")]
    protocols: Vec<String>,

    /// Remove the rules for values
    #[arg(long)]
    no_validate: bool,

    #[command(flatten)]
    session: Session,
}

impl Run for Set {
    fn run(self, context: &Context) -> Result<Outcome> {
        let ttl = length(self.ttl.as_deref())?;
        let max_entries = self.max_entries.map(|limit| limit as u64);
        let validation = super::value_rules(self.types, &self.schemas, &self.protocols)?;
        let has_rules = !validation.as_slice().is_empty() || self.no_validate;
        // Each option replaces its own rules: a rule that is added must never open a scope.
        let rules =
            |given: &[String], rules: AccessRules| (self.no_access || !given.is_empty()).then_some(rules);
        let allow = rules(&self.allow, access_rules(&self.allow, &[])?);
        let deny = rules(&self.deny, access_rules(&[], &self.deny)?);
        let set = SetScope {
            name: self.name,
            visibility: self.visibility,
            members: (!self.members.is_empty()).then_some(self.members),
            allow,
            deny,
            ttl: (self.no_ttl || ttl.is_some()).then_some(ttl),
            max_entries: (self.no_max_entries || max_entries.is_some()).then_some(max_entries),
            eviction: self.eviction,
            validation: has_rules.then_some(validation),
            session: None,
        };
        if set == SetScope::of(&set.name) {
            let message = "scope set requires a policy to change";
            return Err(Refusal::new(Code::Usage, message).hint(OPTIONS).into());
        }
        let (board, session) = context.open(Access::change(self.session.named()))?;
        let set = SetScope { session, ..set };
        Ok(Outcome::new(UpdatedScope(board.scopes().set(&set)?)))
    }
}
