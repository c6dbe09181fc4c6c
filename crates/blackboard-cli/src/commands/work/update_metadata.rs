//! `blackboard work update-metadata`

use blackboard::work::UpdateMetadata as Updating;
use blackboard::{Error, Metadata, Result};
use serde_json::{Map, Value};

use crate::commands::Run;
use crate::commands::arguments::{Item, Session, metadata};
use crate::context::Context;
use crate::open::Access;
use crate::outcome::Outcome;
use crate::output::work::ItemMetadata;

/// Add members to the metadata of a work item
///
/// Adds or replaces the given members; the others stay as they are. A value in --set is JSON, or else text.
///
/// Examples:
///   blackboard work update-metadata design-schema --set branch=main
///   blackboard work update-metadata run-tests --set tries=2 --set draft=true
///   blackboard work update-metadata run-tests --metadata '{"branch": "main"}'
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct UpdateMetadata {
    #[command(flatten)]
    item: Item,

    /// A member and its value; may be repeated
    #[arg(
        long,
        value_name = "NAME=VALUE",
        required_unless_present = "metadata",
        conflicts_with = "metadata"
    )]
    set: Vec<String>,

    /// The members, as a JSON object
    #[arg(long, value_name = "JSON")]
    metadata: Option<String>,

    #[command(flatten)]
    session: Session,
}

impl Run for UpdateMetadata {
    fn run(self, context: &Context) -> Result<Outcome> {
        let given = metadata(self.metadata.as_deref())?;
        let metadata = given.map_or_else(|| members(&self.set), Ok)?;
        let (board, session) = context.open(Access::change(self.session.named()))?;
        let update = Updating { id: self.item.id(), metadata, session };
        Ok(Outcome::new(ItemMetadata(board.work().update_metadata(&update)?)))
    }
}

fn members(set: &[String]) -> Result<Metadata> {
    let mut members = Map::new();
    for member in set {
        let (name, value) = member
            .split_once('=')
            .filter(|(name, _)| !name.is_empty())
            .ok_or_else(|| Error::invalid(format!("--set needs NAME=VALUE, not \"{member}\"")))?;
        let value = serde_json::from_str(value).unwrap_or_else(|_| Value::from(value));
        members.insert(name.to_owned(), value);
    }
    Metadata::parse(&Value::Object(members).to_string())
}
