//! `blackboard agent list`

use blackboard::Result;
use blackboard::agent::{AgentFilter, AgentStatus};

use crate::commands::Run;
use crate::commands::arguments::{at_least_one, chosen, trimmed};
use crate::context::Context;
use crate::open::Access;
use crate::outcome::Outcome;
use crate::output::agent::AgentList;
use crate::output::{ListPage, row_limit};

/// List active and idle agents
///
/// Lists active and idle agents, oldest first, each followed by its delegates. --all includes stale and completed
/// sessions.
///
/// A name is accepted wherever a session is, if only one live session has it. Sessions that register through hooks get
/// unique names, for example claude-84a6: the platform and the start of its session id on the board. This is not the
/// platform's own id.
///
/// Examples:
///   blackboard agent list
///   blackboard agent list --project pai-collab
///   blackboard agent list --all --json
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct List {
    /// Include stale and completed sessions
    #[arg(short = 'a', long, conflicts_with = "status")]
    all: bool,

    /// Only these statuses, separated by commas: active, idle, completed, stale
    #[arg(long, value_delimiter = ',', value_parser = trimmed::<AgentStatus>, value_name = "STATUSES")]
    status: Vec<AgentStatus>,

    /// Only agents of this project
    #[arg(short = 'P', long, value_name = "PROJECT")]
    project: Option<String>,

    /// Maximum number of results [default: 50 on a terminal, else all]
    #[arg(short = 'n', long, value_name = "N", value_parser = at_least_one)]
    limit: Option<usize>,
}

impl Run for List {
    fn run(self, context: &Context) -> Result<Outcome> {
        let board = context.open(Access::read())?;
        let hides_ended = !self.all && self.status.is_empty();
        let statuses = chosen(self.all, self.status, AgentStatus::ALL, &AgentFilter::default().statuses);
        let agents = board.agents().list(&AgentFilter { statuses, project: self.project })?;
        let agents = ListPage::first(agents, row_limit(self.limit, context.json()));
        Ok(Outcome::new(AgentList(agents.hiding(hides_ended))))
    }
}
