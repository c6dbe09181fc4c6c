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

/// Create a work item
///
/// Creates an item that any agent can claim. Repeating the call with the same fields changes nothing; different
/// fields under the same id are refused (exit 4).
///
/// Examples:
///   blackboard work create design-schema --title "Design the SQL schema"
///   blackboard work create ship --title "Ship it" --blocked-by design-schema
///   blackboard work create gh:o/r#78 --title "Fix the login" --source github
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Create {
    #[command(flatten)]
    item: Item,

    /// Title of the item
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    title: String,

    /// Registered project that the item belongs to
    #[arg(long, value_name = "PROJECT")]
    project: Option<String>,

    /// Priority: P1, P2 or P3 [default: P2]
    #[arg(long, value_name = "PRIORITY")]
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
