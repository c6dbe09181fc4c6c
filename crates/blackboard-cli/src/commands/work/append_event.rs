//! `blackboard work append-event`

use blackboard::Result;
use blackboard::work::AppendEvent as Appending;

use crate::commands::Run;
use crate::commands::arguments::{Item, Session, metadata};
use crate::context::Context;
use crate::open::Access;
use crate::outcome::Outcome;
use crate::output::work::ItemEvent;

/// Add an event of your own type to a work item
///
/// The event is in the history of the item and in the event log. The item does not change. Types that the board writes
/// itself, for example work_claimed, are refused.
///
/// Examples:
///   blackboard work append-event run-tests --event-type built -m "Build 7"
///   blackboard work append-event run-tests --event-type built -m Done --json
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
#[command(override_usage = "blackboard work append-event <ID> --event-type <TYPE> --summary <TEXT>")]
pub struct AppendEvent {
    #[command(flatten)]
    item: Item,

    /// Type: lower case letters, digits and _
    #[arg(long, value_name = "TYPE", alias = "type")]
    event_type: String,

    /// One line about it
    #[arg(short = 'm', long, value_name = "TEXT", allow_hyphen_values = true)]
    summary: String,

    /// Details, as a JSON object
    #[arg(long, value_name = "JSON")]
    metadata: Option<String>,

    #[command(flatten)]
    session: Session,
}

impl Run for AppendEvent {
    fn run(self, context: &Context) -> Result<Outcome> {
        let metadata = metadata(self.metadata.as_deref())?;
        let (board, session) = context.open(Access::change(self.session.named()))?;
        let (id, event_type, summary) = (self.item.id(), self.event_type, self.summary);
        let append = Appending { id, event_type, summary, metadata, session };
        let appended = board.work().append_event(&append)?;
        context.note_text(&appended.text);
        Ok(Outcome::new(ItemEvent(appended)))
    }
}
