//! `blackboard agent heartbeat`

use blackboard::Result;
use blackboard::agent::{self, AgentStatus};

use crate::commands::Run;
use crate::commands::arguments::{Session, metadata};
use crate::context::Context;
use crate::open::Access;
use crate::outcome::Outcome;
use crate::output::agent::RecordedHeartbeat;

/// Report that a session is alive, with optional progress
///
/// Updates the session's last-seen time; --progress also records an event that other agents see. A stale session
/// becomes active again, and the output lists what it lost. An ended session is refused (exit 4).
///
/// Examples:
///   blackboard agent heartbeat
///   blackboard agent heartbeat --progress "Schema done, starting CLI"
///   blackboard agent heartbeat --status idle
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Heartbeat {
    #[command(flatten)]
    session: Session,

    /// Progress note, shown to other agents
    #[arg(short = 'm', long, value_name = "TEXT", allow_hyphen_values = true)]
    progress: Option<String>,

    /// Mark the progress note as a milestone
    #[arg(long, requires = "progress")]
    milestone: bool,

    /// Current work, shown to other agents; an empty text clears it
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    work: Option<String>,

    /// Work item that the progress note is about
    #[arg(long, value_name = "ID")]
    work_item: Option<String>,

    /// New status: active or idle [default: active]
    #[arg(long, value_parser = live_status, value_name = "STATUS")]
    status: Option<AgentStatus>,

    /// Additional data, as a JSON object
    #[arg(long, value_name = "JSON")]
    metadata: Option<String>,

    /// Idempotency key: a retry with the same key returns the same result and changes nothing
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
