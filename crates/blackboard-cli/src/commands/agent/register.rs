//! `blackboard agent register`

use std::cell::Cell;
use std::ffi::OsString;

use blackboard::agent::{Register as Registration, Registered};
use blackboard::{Code, Refusal, Result};

use crate::commands::Run;
use crate::commands::arguments::{metadata, pid};
use crate::context::Context;
use crate::open::Access;
use crate::outcome::Outcome;
use crate::output::agent::{ExportLine, FailingLine, NAME_A_PROCESS, RegisteredAgent};
use crate::output::time;

/// Register an agent session
///
/// Starts a session that other agents can see, and prints its id. Claims, locks, file reservations and leased entries
/// belong to the session and are released when it ends. The same --session-hint resumes the same session.
///
/// In scripts, use --shell or --json.
///
/// Examples:
///   eval "$(blackboard agent register --name Ivy --shell)"
///   blackboard agent register --name Oak --project pai-collab
///   blackboard agent register --parent Ivy --work "Run the tests"
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Register {
    /// Agent name [default: agent.name of the configuration; "PARENT (delegate)" for a delegate]
    #[arg(long, allow_hyphen_values = true, value_name = "NAME")]
    name: Option<String>,

    /// Project that the agent works on [default for a delegate: that of its parent]
    #[arg(short = 'P', long, value_name = "PROJECT")]
    project: Option<String>,

    /// Current work, shown to other agents
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    work: Option<String>,

    /// Parent session, which makes this one its delegate
    #[arg(long, value_name = "SESSION")]
    parent: Option<String>,

    /// Name under which the session can be resumed
    #[arg(long, value_name = "TEXT", alias = "session-id")]
    session_hint: Option<String>,

    /// Process to watch [default: $BLACKBOARD_PID, or the agent, script or terminal that runs this command]
    #[arg(long, value_parser = pid, value_name = "PID")]
    pid: Option<u32>,

    /// Additional data, as a JSON object
    #[arg(long, value_name = "JSON")]
    metadata: Option<String>,

    /// Print a line for eval that exports BLACKBOARD_SESSION_ID
    #[arg(long, conflicts_with = "json")]
    shell: bool,
}

impl Run for Register {
    fn run(self, context: &Context) -> Result<Outcome> {
        let swallowed = self.name.as_deref().filter(|name| is_swallowed_option(name, std::env::args_os()));
        let shell = self.shell || swallowed == Some("--shell");
        let registered = match swallowed {
            Some(option) => Err(Refusal::new(Code::Usage, "--name needs a value")
                .hint(format!("for a name that begins with -, write --name={option}"))
                .into()),
            None => self.register(context),
        };
        match registered {
            Ok(registered) if shell => {
                Ok(Outcome::new(ExportLine { session_id: registered.agent.session_id }))
            }
            Ok(registered) => Ok(Outcome::new(RegisteredAgent::new(registered))),
            Err(error) if shell => Ok(Outcome::new(FailingLine(Cell::new(Some(error))))),
            Err(error) => Err(error),
        }
    }
}

/// Whether a name is the next option, because the value of `--name` is missing: an empty variable without quotation marks.
fn is_swallowed_option(name: &str, arguments: impl Iterator<Item = OsString>) -> bool {
    let as_one_word = OsString::from(format!("--name={name}"));
    name.starts_with("--") && !arguments.into_iter().any(|argument| argument == as_one_word)
}

impl Register {
    fn register(self, context: &Context) -> Result<Registered> {
        let pid = if self.shell {
            context.agent_pid_of_evaluated_command(self.pid)?
        } else {
            context.agent_pid(self.pid)?
        };
        let board = context.open(Access::unswept())?;
        let parent = self.parent.as_deref().map(|parent| board.agents().resolve(parent)).transpose()?;
        let name = match &parent {
            Some(_) => self.name,
            None => self.name.map_or_else(|| context.own_name(), |name| Ok(Some(name)))?,
        };
        let registered = board.agents().register(&Registration {
            name,
            name_base: None,
            configured_name: None,
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
