//! `blackboard work …`

pub mod append_event;
pub mod block;
pub mod claim;
pub mod complete;
pub mod create;
pub mod delete;
pub mod edit;
pub mod export;
pub mod import;
pub mod list;
pub mod reassign;
pub mod release;
pub mod reset;
pub mod status;
pub mod unblock;
pub mod update_metadata;
pub mod wait;

use blackboard::Result;
use blackboard::work::{Claimed, Create as NewItem, Priority};

use super::arguments::{metadata, trimmed};
use crate::context::Context;
use crate::quota::item_tokens::AddedTokens;
use crate::trackers;

/// Tells a person which fields of a new item meant nothing, because the item existed already.
pub fn note_ignored(context: &Context, claimed: &Claimed) {
    if !claimed.ignored.is_empty() {
        let options: Vec<_> =
            claimed.ignored.iter().map(|field| format!("--{}", field.replace('_', "-"))).collect();
        let (id, options) = (&claimed.item.item_id, options.join(", "));
        context.note(&format!("work item {id} already exists; ignored {options}"));
    }
}

/// Tells a person that a claim does not fit into the quota.
pub fn note_tokens(context: &Context, tokens: &AddedTokens) {
    if let Some(note) = tokens.as_ref().and_then(|tokens| tokens.note()) {
        context.note(&note);
    }
}

/// What a new work item is, besides its id and title. They need a title: an argument of the group `has_title`.
#[derive(clap::Args, Debug)]
#[group(id = "new_item")]
pub struct NewItemOptions {
    /// Description; may have several lines
    #[arg(long, value_name = "TEXT", requires = "has_title", allow_hyphen_values = true)]
    description: Option<String>,

    /// Origin: local, github, operator, or your own label with a colon, for example jira:PROJ-7 [default: local]
    #[arg(long, requires = "has_title", value_name = "SOURCE")]
    source: Option<String>,

    /// Reference at the origin, for example owner/repo#78
    #[arg(long, value_name = "REF", requires = "has_title")]
    source_ref: Option<String>,

    /// Ids of the blockers, separated by commas; they do not have to exist yet
    #[arg(long, value_name = "IDS", value_delimiter = ',', value_parser = trimmed::<String>, requires = "has_title")]
    #[arg(alias = "depends-on")]
    blocked_by: Vec<String>,

    /// Label of the item; repeatable, or separated by commas
    #[arg(long = "label", value_name = "LABELS", value_delimiter = ',', value_parser = trimmed::<String>, requires = "has_title")]
    labels: Vec<String>,

    /// Tokens that the item is expected to need
    #[arg(long, visible_alias = "estimated-tokens", value_name = "TOKENS", value_parser = tokens, requires = "has_title")]
    estimate: Option<u64>,

    /// Additional data, as a JSON object
    #[arg(long, value_name = "JSON", requires = "has_title")]
    metadata: Option<String>,
}

impl NewItemOptions {
    /// The item that these ask for.
    pub fn item(
        self,
        id: String,
        title: String,
        project: Option<String>,
        priority: Option<Priority>,
        session: Option<String>,
    ) -> Result<NewItem> {
        Ok(NewItem {
            id,
            title,
            description: self.description,
            project,
            source: self.source,
            source_ref: self.source_ref,
            priority,
            blocked_by: self.blocked_by,
            labels: self.labels,
            estimate: self.estimate,
            metadata: metadata(self.metadata.as_deref())?,
            session,
        })
    }
}

/// Parses a number of tokens: 30000, 30_000 or 30k.
pub fn tokens(text: &str) -> Result<u64, String> {
    trackers::tokens(text).ok_or_else(|| "expected a number of tokens, for example 30000 or 30k".to_owned())
}
