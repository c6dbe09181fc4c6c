//! `blackboard write`

use blackboard::entry::Write as Writing;
use blackboard::{Result, Revision};

use super::input::ValueInput;
use crate::commands::Run;
use crate::commands::arguments::{ScopeOption, WriteOptions, length, metadata, revision, trimmed};
use crate::context::Context;
use crate::open::Access;
use crate::outcome::Outcome;
use crate::output::entry::WrittenEntry;

/// Write an entry
///
/// Stores the value unchanged and replaces tags, metadata and TTL unless --merge is given. With --if-absent or
/// --if-revision, the write is refused (exit 4) if the condition does not hold. With --lease, the entry is deleted
/// when the session ends and only that session can change it.
///
/// Examples:
///   blackboard write counter 8
///   blackboard write task:q4 '{"status":"open"}' --ttl 1h --tag finance
///   revision=$(blackboard read counter --json | jq .revision)
///   blackboard write counter 9 --if-revision "$revision"
///   blackboard write lead:review me --if-absent --lease
///   git log | blackboard write result:log - --string
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Write {
    /// Key
    #[arg(value_name = "KEY")]
    key: String,

    #[command(flatten)]
    given: ValueInput,

    /// Time to live: 90s, 15m, 1h, 2d; a bare number is seconds
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true)]
    ttl: Option<String>,

    /// Tag of the entry; repeatable
    #[arg(long = "tag", value_name = "TAG", value_delimiter = ',', value_parser = trimmed::<String>)]
    tags: Vec<String>,

    /// Additional data, as a JSON object
    #[arg(long, value_name = "JSON")]
    metadata: Option<String>,

    /// Keep tags, metadata and TTL, and add the given ones
    #[arg(long)]
    merge: bool,

    /// Write only if the key does not exist
    #[arg(long, conflicts_with = "if_revision")]
    if_absent: bool,

    /// Write only if the entry has this revision; 0 means that the key does not exist
    #[arg(long, value_name = "REVISION", value_parser = revision)]
    if_revision: Option<Revision>,

    /// Delete the entry when the session ends
    #[arg(long)]
    lease: bool,

    #[command(flatten)]
    scope: ScopeOption,

    #[command(flatten)]
    acting: WriteOptions,
}

impl Run for Write {
    fn run(self, context: &Context) -> Result<Outcome> {
        let scope = context.scope(&self.scope)?;
        let write = Writing {
            tags: self.tags,
            ttl: length(self.ttl.as_deref())?,
            metadata: metadata(self.metadata.as_deref())?,
            merge: self.merge,
            if_absent: self.if_absent,
            if_revision: self.if_revision,
            lease: self.lease,
            ..Writing::new(&self.key, self.given.value("write", context.max_value_bytes()?)?)
        };
        // A lease belongs to a session: without one there is nothing to continue with.
        let named = self.acting.session.named();
        let (board, session) = if self.lease {
            let (board, session) = context.open(Access::act(named))?;
            (board, Some(session))
        } else {
            context.open(Access::write(named))?
        };
        let by = self.acting.by(session)?;
        Ok(Outcome::new(WrittenEntry(board.scope(&scope).acting_as(by).write(&write)?)))
    }
}
