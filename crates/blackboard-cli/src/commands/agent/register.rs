//! `blackboard agent register`

use std::cell::Cell;

use blackboard::Result;
use blackboard::agent::{Register as Registration, Registered};

use crate::commands::Run;
use crate::commands::arguments::metadata;
use crate::context::Context;
use crate::open::Access;
use crate::outcome::Outcome;
use crate::output::agent::{ExportLine, FailingLine, NAME_A_PROCESS, RegisteredAgent};
use crate::output::time;

/// Register this agent, so that others see it
///
/// The session that this starts is what claims hang on: they are released when it deregisters, or when its process is
/// gone. The process is the agent, script or terminal that runs this command, found among its ancestors. The same
/// --session-hint gives the same session again, also after it ended.
///
/// Examples:
///   eval "$(blackboard agent register --name Ivy --project pai-collab --shell)"
///   blackboard agent register --name Ivy --work "Design the schema" --json
///   blackboard agent register --parent "$BLACKBOARD_SESSION_ID" --work "Run the tests"
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Register {
    /// What the agent calls itself; a delegate is "PARENT (delegate)" unless it says otherwise [default: agent.name of
    /// the configuration]
    #[arg(long, allow_hyphen_values = true)]
    name: Option<String>,

    /// Where it works; a delegate inherits it
    #[arg(long)]
    project: Option<String>,

    /// What it works on
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    work: Option<String>,

    /// The session that it works for
    #[arg(long, value_name = "SESSION")]
    parent: Option<String>,

    /// A name that stays the same when the session is resumed
    #[arg(long, value_name = "TEXT", alias = "session-id")]
    session_hint: Option<String>,

    /// The process to watch [default: $BLACKBOARD_PID, or the agent, script or terminal among the ancestors]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    pid: Option<u32>,

    /// A JSON object to store with it
    #[arg(long, value_name = "JSON")]
    metadata: Option<String>,

    /// Print a line for eval that exports BLACKBOARD_SESSION_ID
    #[arg(long, conflicts_with = "json")]
    shell: bool,
}

impl Run for Register {
    fn run(self, context: &Context) -> Result<Outcome> {
        let shell = self.shell;
        match self.register(context) {
            Ok(registered) if shell => {
                Ok(Outcome::new(ExportLine { session_id: registered.agent.session_id }))
            }
            Ok(registered) => Ok(Outcome::new(RegisteredAgent::new(registered))),
            Err(error) if shell => Ok(Outcome::new(FailingLine(Cell::new(Some(error))))),
            Err(error) => Err(error),
        }
    }
}

impl Register {
    fn register(self, context: &Context) -> Result<Registered> {
        let pid = context.agent_pid(self.pid)?;
        let board = context.open(Access::unswept())?;
        let parent = self.parent.as_deref().map(|parent| board.agents().resolve(parent)).transpose()?;
        let name = match &parent {
            Some(_) => self.name,
            None => self.name.map_or_else(|| context.own_name(), |name| Ok(Some(name)))?,
        };
        let registered = board.agents().register(&Registration {
            name,
            project: self.project,
            work: self.work,
            parent: parent.map(|(session, _)| session),
            session_hint: self.session_hint,
            pid,
            shares_process: false,
            metadata: metadata(self.metadata.as_deref())?,
        })?;
        board.try_sweep(Some(&registered.agent.session_id));
        context.note_text(&registered.text);
        if registered.agent.pid.is_none() {
            let threshold = time::length(board.settings().stale_threshold);
            context.note(&format!(
                "no process found to watch, so only heartbeats keep this session active: send one at least every \
                 {threshold}, or {NAME_A_PROCESS}"
            ));
        }
        Ok(registered)
    }
}
