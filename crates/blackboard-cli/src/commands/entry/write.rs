//! `blackboard write`

use blackboard::entry::Write as Writing;
use blackboard::{Result, Revision, duration};

use super::input::ValueInput;
use crate::commands::Run;
use crate::commands::arguments::{ScopeOption, WriteOptions, metadata, revision, trimmed};
use crate::context::Context;
use crate::open::Access;
use crate::outcome::Outcome;
use crate::output::entry::WrittenEntry;

/// Write a value under a key
///
/// The value is stored and returned as it came. A write replaces tags, metadata and the time to live as well, unless it
/// has --merge. With a condition it is refused (exit 4) if that does not hold, and says what is there instead. With
/// --lease the entry dies with the session that writes it, and nobody else can change it. The line break at the end of
/// a file or of standard input is not a part of the value.
///
/// A repeated write counts twice, unless it has --op, --if-absent or --if-revision.
///
/// Examples:
///   blackboard write task:analyze_q4 '{"status":"pending","for":"data_analyst"}'
///   blackboard write cache:monthly_metrics '{"revenue":1250000}' --ttl 1h --tag finance
///   blackboard write counter 8 --if-revision 41
///   blackboard write lead:review '"me"' --if-absent --lease
///   git diff --stat | blackboard write result:diff - --string
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Write {
    /// The key
    key: String,

    #[command(flatten)]
    given: ValueInput,

    /// How long it lives: 90s, 15m, 1h, 2d; a bare number is seconds
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true)]
    ttl: Option<String>,

    /// A tag; several, or a list with commas
    #[arg(long = "tag", value_name = "TAG", value_delimiter = ',', value_parser = trimmed::<String>)]
    tags: Vec<String>,

    /// A JSON object to store with it
    #[arg(long, value_name = "JSON")]
    metadata: Option<String>,

    /// Add to the tags and the metadata, and keep the time to live if none is given
    #[arg(long)]
    merge: bool,

    /// Only if there is no such key
    #[arg(long, conflicts_with = "if_revision")]
    if_absent: bool,

    /// Only if the entry is at this revision; 0 means that there is none
    #[arg(long, value_name = "N", value_parser = revision)]
    if_revision: Option<Revision>,

    /// Let it die with the session
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
            ttl: self.ttl.as_deref().map(duration::parse).transpose()?,
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
