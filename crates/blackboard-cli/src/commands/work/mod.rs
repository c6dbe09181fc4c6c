//! `blackboard work …`

pub mod block;
pub mod claim;
pub mod complete;
pub mod create;
pub mod delete;
pub mod list;
pub mod reassign;
pub mod release;
pub mod reset;
pub mod status;
pub mod unblock;

use blackboard::Result;
use blackboard::work::{Claimed, Create as NewItem, Priority};

use super::arguments::{metadata, trimmed};
use crate::context::Context;

/// Tells a person which fields of a new item meant nothing, because the item existed already.
pub fn note_ignored(context: &Context, claimed: &Claimed) {
    if !claimed.ignored.is_empty() {
        let options: Vec<_> =
            claimed.ignored.iter().map(|field| format!("--{}", field.replace('_', "-"))).collect();
        let (id, options) = (&claimed.item.item_id, options.join(", "));
        context.note(&format!("work item {id} already exists; ignored {options}"));
    }
}

/// What a new work item is, besides its id and title. Without a title there is no new item, and they mean nothing.
#[derive(clap::Args, Debug)]
#[group(id = "new_item")]
pub struct NewItemOptions {
    /// More about it; may have many lines
    #[arg(long, value_name = "TEXT", requires = "title", allow_hyphen_values = true)]
    description: Option<String>,

    /// Where it came from: local, github, operator, or your own word with a colon, such as jira:PROJ-7 [default: local]
    #[arg(long, requires = "title")]
    source: Option<String>,

    /// What it is called there, such as owner/repo#78
    #[arg(long, value_name = "REF", requires = "title")]
    source_ref: Option<String>,

    /// What it waits for: ids of work items, which may not exist yet
    #[arg(long, value_name = "IDS", value_delimiter = ',', value_parser = trimmed::<String>, requires = "title")]
    blocked_by: Vec<String>,

    /// A JSON object to store with it
    #[arg(long, value_name = "JSON", requires = "title")]
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
            metadata: metadata(self.metadata.as_deref())?,
            session,
        })
    }
}
