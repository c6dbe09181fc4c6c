//! `blackboard agent list`

use blackboard::Result;
use blackboard::agent::{AgentFilter, AgentStatus};

use crate::commands::Run;
use crate::commands::arguments::{chosen, trimmed};
use crate::context::Context;
use crate::open::Access;
use crate::outcome::Outcome;
use crate::output::agent::AgentList;

/// List who is here
///
/// Active and idle agents, oldest first, each followed by its delegates.
///
/// Examples:
///   blackboard agent list
///   blackboard agent list --project pai-collab --json
///   blackboard agent list --status stale,completed
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct List {
    /// Also those that have ended or were found dead
    #[arg(long, conflicts_with = "status")]
    all: bool,

    /// Those with one of these statuses: active, idle, completed, stale
    #[arg(long, value_delimiter = ',', value_parser = trimmed::<AgentStatus>)]
    status: Vec<AgentStatus>,

    /// Those that work there
    #[arg(long)]
    project: Option<String>,
}

impl Run for List {
    fn run(self, context: &Context) -> Result<Outcome> {
        let board = context.open(Access::read())?;
        let hides_ended = !self.all && self.status.is_empty();
        let statuses = chosen(self.all, self.status, AgentStatus::ALL, &AgentFilter::default().statuses);
        let agents = board.agents().list(&AgentFilter { statuses, project: self.project })?;
        Ok(Outcome::new(AgentList { agents, hides_ended }))
    }
}
