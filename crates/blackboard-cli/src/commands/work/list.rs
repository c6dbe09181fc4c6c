//! `blackboard work list`

use blackboard::Result;
use blackboard::work::{Priority, Status, WorkFilter};

use crate::commands::Run;
use crate::commands::arguments::{Session, at_least_one, chosen, trimmed};
use crate::context::Context;
use crate::open::Access;
use crate::outcome::Outcome;
use crate::output::work::{ScoredList, WorkList};
use crate::output::{ListPage, row_limit};

/// List work items
///
/// Lists open items in the order in which `work claim --next` takes them: P1 first, then oldest. --all includes
/// completed items.
///
/// Examples:
///   blackboard work list
///   blackboard work list --status available --project pai-collab
///   blackboard work list --mine
///   blackboard work list --show-scores
///   blackboard work list --all --limit 20
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct List {
    /// Include completed items
    #[arg(short = 'a', long, conflicts_with = "status")]
    all: bool,

    /// Only these statuses, separated by commas: available, claimed, blocked, completed
    #[arg(long, value_delimiter = ',', value_parser = trimmed::<Status>, value_name = "STATUSES")]
    status: Vec<Status>,

    /// Only items of this project
    #[arg(short = 'P', long, value_name = "PROJECT")]
    project: Option<String>,

    /// Only items of this priority: P1, P2 or P3
    #[arg(short = 'p', long, value_name = "PRIORITY")]
    priority: Option<Priority>,

    /// Only items that your session holds
    #[arg(long)]
    mine: bool,

    /// Show scores, and list the highest first: 100, 40 or 10 for the priority, plus 5 a day up to 50
    #[arg(long)]
    show_scores: bool,

    /// Maximum number of results [default: 50 on a terminal, else all]
    #[arg(short = 'n', long, value_name = "N", value_parser = at_least_one)]
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
        let filters = [self.project.is_some(), self.priority.is_some(), !self.status.is_empty()];
        let no_rows = match (claimed_by.is_some(), filters.contains(&true)) {
            (true, _) => Some("You hold no work items."),
            (false, true) if hides_completed => Some("No open work item matches."),
            (false, true) => Some("No work item matches."),
            (false, false) => None,
        };
        let statuses = chosen(self.all, self.status, Status::ALL, Status::OPEN);
        let (project, priority, limit) = (self.project, self.priority, self.limit);
        let limit = row_limit(limit, context.json());
        let filter = WorkFilter { statuses, project, priority, claimed_by, limit };
        if self.show_scores {
            let page = board.work().list_scored(&filter)?;
            let page = ListPage::of(page.items, page.total).hiding(hides_completed).or_say(no_rows);
            return Ok(Outcome::new(ScoredList(page)));
        }
        let page = board.work().list_counted(&filter)?;
        Ok(Outcome::new(WorkList(
            ListPage::of(page.items, page.total).hiding(hides_completed).or_say(no_rows),
        )))
    }
}
