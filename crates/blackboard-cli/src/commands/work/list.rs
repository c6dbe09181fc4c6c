//! `blackboard work list`

use blackboard::Result;
use blackboard::work::{Priority, Status, WorkFilter};

use crate::commands::Run;
use crate::commands::arguments::{Session, at_least_one, chosen, trimmed};
use crate::context::Context;
use crate::open::Access;
use crate::outcome::Outcome;
use crate::output::work::WorkList;

/// List work items
///
/// Everything that is not completed, P1 first, then oldest first.
///
/// Examples:
///   blackboard work list
///   blackboard work list --status available --project pai-collab --json
///   blackboard work list --mine
///   blackboard work list --all --limit 20
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct List {
    /// Also what is completed
    #[arg(long, conflicts_with = "status")]
    all: bool,

    /// What has one of these statuses: available, claimed, blocked, completed
    #[arg(long, value_delimiter = ',', value_parser = trimmed::<Status>)]
    status: Vec<Status>,

    /// What belongs to this project
    #[arg(long)]
    project: Option<String>,

    /// What has this priority: P1, P2 or P3
    #[arg(long)]
    priority: Option<Priority>,

    /// What one's own session holds, or that of --session
    #[arg(long)]
    mine: bool,

    /// No more than this many
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    limit: Option<usize>,

    #[command(flatten)]
    session: Session,
}

impl Run for List {
    fn run(self, context: &Context) -> Result<Outcome> {
        let (board, claimed_by) = if self.mine || self.session.named().is_some() {
            let (board, session) = context.open(Access::read_own(self.session.named()))?;
            (board, Some(session))
        } else {
            (context.open(Access::read())?, None)
        };
        let hides_completed = !self.all && self.status.is_empty();
        let statuses = chosen(self.all, self.status, Status::ALL, Status::OPEN);
        let (project, priority, limit) = (self.project, self.priority, self.limit);
        let items = board.work().list(&WorkFilter { statuses, project, priority, claimed_by, limit })?;
        Ok(Outcome::new(WorkList { items, hides_completed }))
    }
}
