//! `blackboard work create`

use blackboard::Result;
use blackboard::work::Priority;

use super::NewItemOptions;
use crate::commands::Run;
use crate::commands::arguments::{Item, Session};
use crate::context::Context;
use crate::open::Access;
use crate::outcome::Outcome;
use crate::output::work::CreatedItem;

/// Create a work item that agents can claim
///
/// Creating the same item again changes nothing; another item under the same id is refused (exit 4). The project has
/// to be registered.
///
/// Examples:
///   blackboard work create design-schema --title "Design SQL schema" --project pai-collab --priority P1
///   blackboard work create --id gh:owner/repo#78 --title "Fix the login" --source github --source-ref owner/repo#78
///   blackboard work create ship --title "Ship it" --blocked-by design-schema,run-tests
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Create {
    #[command(flatten)]
    item: Item,

    /// What is to be done
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    title: String,

    /// The registered project that it belongs to
    #[arg(long)]
    project: Option<String>,

    /// How soon it should be done: P1, P2 or P3 [default: P2]
    #[arg(long)]
    priority: Option<Priority>,

    #[command(flatten)]
    options: NewItemOptions,

    #[command(flatten)]
    session: Session,
}

impl Run for Create {
    fn run(self, context: &Context) -> Result<Outcome> {
        let (board, session) = context.open(Access::write(self.session.named()))?;
        let item = self.options.item(self.item.id(), self.title, self.project, self.priority, session)?;
        let created = board.work().create(&item)?;
        context.note_text(&created.text);
        Ok(Outcome::new(CreatedItem(created)))
    }
}
