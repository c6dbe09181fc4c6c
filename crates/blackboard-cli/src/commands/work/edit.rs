//! `blackboard work edit`

use blackboard::work::{Edit as Request, Priority};
use blackboard::{Code, Refusal, Result};

use super::tokens;
use crate::commands::Run;
use crate::commands::arguments::{Item, Session, trimmed};
use crate::context::Context;
use crate::open::Access;
use crate::outcome::Outcome;
use crate::output::work::EditedItem;

/// Change the text and other fields of a work item
///
/// Changes only the fields that are given. The status and the claim of the item stay; the agent that holds it is notified.
/// The event work_updated states the old and new values.
///
/// Examples:
///   blackboard work edit design-schema --title "Design the schema" --priority P1
///   blackboard work edit design-schema --label sql --estimate 20k
///   blackboard work edit design-schema --description "" --no-project
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Edit {
    #[command(flatten)]
    item: Item,

    /// New title
    #[arg(short = 't', long, value_name = "TEXT", allow_hyphen_values = true)]
    title: Option<String>,

    /// New description; may have several lines, and an empty one removes it
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    description: Option<String>,

    /// New priority: P1 (highest), P2 or P3
    #[arg(short = 'p', long, value_name = "PRIORITY")]
    priority: Option<Priority>,

    /// Registered project that the item belongs to
    #[arg(short = 'P', long, value_name = "PROJECT")]
    project: Option<String>,

    /// Remove the item from its project
    #[arg(long, conflicts_with = "project")]
    no_project: bool,

    /// Label to add; repeatable, or separated by commas
    #[arg(long = "label", value_name = "LABELS", value_delimiter = ',', value_parser = trimmed::<String>)]
    add_labels: Vec<String>,

    /// Label to remove; repeatable, or separated by commas
    #[arg(long = "no-label", value_name = "LABELS", value_delimiter = ',', value_parser = trimmed::<String>)]
    remove_labels: Vec<String>,

    /// Tokens that the item is expected to need
    #[arg(long, visible_alias = "estimated-tokens", value_name = "TOKENS", value_parser = tokens)]
    estimate: Option<u64>,

    /// Remove the estimate
    #[arg(long, conflicts_with = "estimate")]
    no_estimate: bool,

    #[command(flatten)]
    session: Session,
}

impl Run for Edit {
    fn run(self, context: &Context) -> Result<Outcome> {
        let gives_a_field = self.title.is_some()
            || self.description.is_some()
            || self.priority.is_some()
            || self.project.is_some()
            || self.no_project
            || self.estimate.is_some()
            || self.no_estimate
            || !self.add_labels.is_empty()
            || !self.remove_labels.is_empty();
        if !gives_a_field {
            return Err(Refusal::new(Code::Usage, "work edit requires a field to change")
                .hint(
                    "add --title, --description, --priority, --project, --no-project, --label, --no-label, \
                     --estimate or --no-estimate",
                )
                .into());
        }
        if self.project.as_ref().is_some_and(String::is_empty) {
            return Err(Refusal::new(Code::Usage, "--project requires the id of a project")
                .hint("to remove the item from its project: --no-project")
                .into());
        }
        let (board, session) = context.open(Access::change(self.session.named()))?;
        let edited = board.work().edit(&Request {
            id: self.item.id(),
            title: self.title,
            description: self.description,
            priority: self.priority,
            project: self.project,
            remove_project: self.no_project,
            add_labels: self.add_labels,
            remove_labels: self.remove_labels,
            estimate: self.estimate,
            remove_estimate: self.no_estimate,
            session,
        })?;
        context.note_text(&edited.text);
        Ok(Outcome::new(EditedItem(edited)))
    }
}
