//! `blackboard work claim`

use blackboard::Result;
use blackboard::work::{Claim as Claiming, ClaimNext, Priority};
use clap::ArgGroup;
use clap::builder::NonEmptyStringValueParser;

use super::{NewItemOptions, note_ignored};
use crate::commands::Run;
use crate::commands::arguments::Session;
use crate::context::Context;
use crate::open::Access;
use crate::outcome::Outcome;
use crate::output::work::ClaimedItem;

/// Claim a work item: exactly one session gets it
///
/// Whoever is too late is told who has it and since when (exit 4). With --title the item is created if it does not
/// exist; one that exists is claimed as it is. --next takes the first available item: P1 before P2 before P3, oldest
/// first. The answer has the fence of the claim, which `complete` and `release` take to make sure that the item was
/// not lost and claimed again meanwhile.
///
/// Examples:
///   blackboard work claim design-schema
///   blackboard work claim --next --project pai-collab
///   blackboard work claim --id fix-tests --title "Fix the tests" --priority P1
///   fence=$(blackboard work claim design-schema --json | jq -e 'select(.ok) | .fence')
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
#[command(group = ArgGroup::new("which").required(true), group = ArgGroup::new("how"))]
pub struct Claim {
    /// The work item
    #[arg(value_name = "ID", group = "which", value_parser = NonEmptyStringValueParser::new())]
    item: Option<String>,

    /// The work item, as an option
    #[arg(long = "id", value_name = "ID", group = "which", alias = "task", value_parser = NonEmptyStringValueParser::new())]
    item_option: Option<String>,

    /// Take the first one that is available
    #[arg(long, groups = ["which", "how"], conflicts_with = "new_item")]
    next: bool,

    /// Create it with this title if it does not exist
    #[arg(long, value_name = "TEXT", group = "how", allow_hyphen_values = true)]
    title: Option<String>,

    /// With --next: only of this project; with --title: the project of the new item
    #[arg(long, requires = "how")]
    project: Option<String>,

    /// With --next: only of this priority; with --title: the priority of the new item
    #[arg(long, requires = "how")]
    priority: Option<Priority>,

    #[command(flatten)]
    options: NewItemOptions,

    #[command(flatten)]
    session: Session,
}

impl Run for Claim {
    fn run(self, context: &Context) -> Result<Outcome> {
        let (board, session) = context.open(Access::act(self.session.named()))?;
        let Some(id) = self.item.or(self.item_option) else {
            let next = ClaimNext { session, project: self.project, priority: self.priority };
            return Ok(Outcome::new(ClaimedItem(board.work().claim_next(&next)?)));
        };
        let new =
            |title| self.options.item(id.clone(), title, self.project, self.priority, Some(session.clone()));
        let create = self.title.map(new).transpose()?;
        let claimed = board.work().claim(&Claiming { id, session, register: None, create })?;
        note_ignored(context, &claimed);
        context.note_text(&claimed.text);
        Ok(Outcome::new(ClaimedItem(claimed)))
    }
}
