//! `blackboard scope create`

use blackboard::Result;
use blackboard::scope::{CreateScope, Eviction, Policies, ValueRule, Visibility};

use super::access_rules;
use crate::commands::Run;
use crate::commands::arguments::{Session, at_least_one, length};
use crate::context::Context;
use crate::open::Access;
use crate::outcome::Outcome;
use crate::output::scope::CreatedScope;

/// Give a scope policies
///
/// A scope without policies is global and unlimited. Policies apply to every later write of every process; entries that
/// exist stay as they are. A scope that has other policies is refused (exit 4): change them with `scope set`.
///
/// Examples:
///   blackboard scope create cache --ttl 1h --max-entries 1000
///   blackboard scope create plans --visibility persistent
///   blackboard scope create queue --max-entries 100 --eviction refuse
///   blackboard scope create counts --validate 'count.*=int'
///   blackboard scope create runs --validate-protocol 'task:*=Task'
///   blackboard scope create scores --validate-schema 'score:*={"minimum":0}'
///   blackboard scope create results --allow 'analyst:write' --deny '*:delete'
///   blackboard scope create review --visibility shared --member ivy --member oak
///   blackboard scope create q4-notes --work-item design-schema
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Create {
    /// Name of the scope
    #[arg(value_name = "NAME")]
    name: String,

    /// Visibility: global, persistent (no default TTL, no evictions), shared (for its members) or local (for your session, and
    /// deleted with it)
    #[arg(long, value_name = "VISIBILITY", default_value = "global")]
    visibility: Visibility,

    /// Agent that a shared scope is for: agent name, author or session id; repeatable
    #[arg(long = "member", value_name = "NAME")]
    members: Vec<String>,

    /// Work item with which the scope ends: it is deleted when the item is completed or deleted
    #[arg(long, value_name = "ID")]
    work_item: Option<String>,

    /// Access rule: only callers that match WHO may do these operations (read, write, delete or *) on matching keys;
    /// repeatable
    #[arg(long = "allow", value_name = "WHO:OPERATIONS[:KEYS]")]
    allow: Vec<String>,

    /// Access rule: callers that match WHO may not do these operations, whatever --allow says; repeatable
    #[arg(long = "deny", value_name = "WHO:OPERATIONS[:KEYS]")]
    deny: Vec<String>,

    /// TTL of entries that are written without one: 90s, 15m, 1h, 2d; a bare number is seconds
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true)]
    ttl: Option<String>,

    /// Largest number of entries
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    max_entries: Option<usize>,

    /// What a full scope does: lru (evict the oldest write), lfu (evict the smallest access_count in the metadata) or
    /// refuse
    #[arg(long, value_name = "EVICTION", default_value = "lru")]
    eviction: Eviction,

    /// Type of the values under matching keys: object (dict), array (list), string (str), number (float), integer
    /// (int), boolean (bool) or null; repeatable
    #[arg(long = "validate", value_name = "PATTERN=TYPE")]
    types: Vec<ValueRule>,

    /// JSON Schema of the values under matching keys: JSON, or a file; - is standard input; repeatable
    #[arg(long = "validate-schema", value_name = "PATTERN=JSON|FILE")]
    schemas: Vec<String>,

    /// Protocol whose schema the values under matching keys have; repeatable
    #[arg(long = "validate-protocol", value_name = "PATTERN=PROTOCOL")]
    protocols: Vec<String>,

    #[command(flatten)]
    session: Session,
}

impl Run for Create {
    fn run(self, context: &Context) -> Result<Outcome> {
        let policies = Policies {
            visibility: self.visibility,
            members: self.members,
            work_item: self.work_item,
            access: access_rules(&self.allow, &self.deny)?,
            ttl: length(self.ttl.as_deref())?,
            max_entries: self.max_entries.map(|limit| limit as u64),
            eviction: self.eviction,
            validation: super::value_rules(self.types, &self.schemas, &self.protocols)?,
            ..Policies::default()
        };
        let (board, session) = context.open(Access::write(self.session.named()))?;
        let created = board.scopes().create(&CreateScope { name: self.name, policies, session })?;
        Ok(Outcome::new(CreatedScope(created)))
    }
}
