//! `blackboard agent heartbeat`

use blackboard::Result;
use blackboard::agent::{self, AgentStatus};

use crate::commands::Run;
use crate::commands::arguments::{Session, metadata};
use crate::context::Context;
use crate::open::Access;
use crate::outcome::Outcome;
use crate::output::agent::RecordedHeartbeat;

/// Say that this session lives, and how far it is
///
/// Others are told only if there is progress. A session that was marked stale is active again afterwards, and is told
/// what it lost; one that has ended stays ended (exit 4). A repeated heartbeat with progress counts twice, unless both
/// have the same --op.
///
/// Examples:
///   blackboard agent heartbeat
///   blackboard agent heartbeat --progress "Schema done, starting CLI"
///   blackboard agent heartbeat --progress "All green" --milestone --work-item design-schema --op build-42
///   blackboard agent heartbeat --status idle
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Heartbeat {
    #[command(flatten)]
    session: Session,

    /// How far it is
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    progress: Option<String>,

    /// This progress is a milestone
    #[arg(long, requires = "progress")]
    milestone: bool,

    /// What it works on from now; an empty text clears it
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    work: Option<String>,

    /// The work item that this is about
    #[arg(long, value_name = "ID")]
    work_item: Option<String>,

    /// Whether it is at work: active or idle [default: active]
    #[arg(long, value_parser = live_status)]
    status: Option<AgentStatus>,

    /// A JSON object to store with the agent
    #[arg(long, value_name = "JSON")]
    metadata: Option<String>,

    /// A name for this call: a repeated one with the same name changes nothing
    #[arg(long, value_name = "ID")]
    op: Option<String>,
}

impl Run for Heartbeat {
    fn run(self, context: &Context) -> Result<Outcome> {
        let (board, session) = context.open(Access::act(self.session.named()))?;
        let beat = board.agents().heartbeat(&agent::Heartbeat {
            session,
            progress: self.progress,
            milestone: self.milestone,
            work: self.work,
            work_item: self.work_item,
            status: self.status,
            metadata: metadata(self.metadata.as_deref())?,
            operation: self.op,
        })?;
        context.note_text(&beat.text);
        Ok(Outcome::new(RecordedHeartbeat(beat)))
    }
}

fn live_status(text: &str) -> Result<AgentStatus, String> {
    match text.parse() {
        Ok(status @ (AgentStatus::Active | AgentStatus::Idle)) => Ok(status),
        _ => Err("allowed: active, idle".to_owned()),
    }
}
