//! `blackboard lock run`

use std::ffi::OsString;

use blackboard::agent::Register;
use blackboard::lock::{Acquire, Lock, Release};
use blackboard::store::CallLimit;
use blackboard::{Board, Code, Error, Result};

use super::LockOptions;
use crate::child::{self, Ended, IfKilled, Signals};
use crate::commands::Run as RunCommand;
use crate::commands::arguments::{Session, length, limit};
use crate::context::{Context, warn};
use crate::open::Access;
use crate::outcome::Outcome;

/// Run a command while holding a lock
///
/// Acquires the lock, runs the command with BLACKBOARD_FENCE set, and releases the lock when the command exits.
/// Without a session, one is registered for the duration; one that has ended is refused. Exits with the command's exit
/// code. Exits with 4 if the lock is held, or with 6 after --wait.
///
/// If `lock run` itself is killed (kill -9), the command is killed too on Linux. On other systems the command continues,
/// although the lock is released. Processes that the command started may continue everywhere.
///
/// Examples:
///   blackboard lock run deploy -- ./deploy.sh
///   blackboard lock run deploy --wait 10m --name "Nightly build" -- ./deploy.sh
///   blackboard lock run deploy -- sh -c 'echo "$BLACKBOARD_FENCE"'
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Run {
    #[command(flatten)]
    options: LockOptions,

    /// Agent name of the session that is registered if there is none [default: agent.name of the configuration,
    /// or the name of the command]
    #[arg(long = "name", value_name = "AGENT", id = "agent", allow_hyphen_values = true)]
    agent: Option<String>,

    #[command(flatten)]
    session: Session,

    /// Command and its arguments, after --
    #[arg(value_name = "COMMAND", last = true, required = true)]
    command: Vec<OsString>,
}

impl RunCommand for Run {
    fn run(self, context: &Context) -> Result<Outcome> {
        let (wait, ttl) = (length(self.options.wait.as_deref())?, length(self.options.ttl.as_deref())?);
        let limit = limit(wait);
        let signals = child::catch_signals()?;
        let (board, session) = context.open(Access::act_or_register(self.session.named()))?;
        let register = match &session {
            Some(_) => None,
            None => Some(self.new_session(context)?),
        };
        let is_new = register.is_some();
        let request = Acquire {
            name: self.options.name.clone(),
            session: session.unwrap_or_default(),
            register,
            ttl,
            note: self.options.note.clone(),
            refuse_own: true,
        };
        let go_on = || signals.asked_to_end().is_none();
        let lock = match wait {
            Some(timeout) => board.locks().acquire_waiting_while(&request, timeout, go_on)?,
            None => Some(board.locks().acquire(&request)?),
        };
        drop(limit);
        if let Some(acquired) = &lock {
            context.note_text(&acquired.text);
        }
        let Some(lock) = lock.map(|acquired| acquired.lock) else {
            let ended = Ended::Before(signals.asked_to_end().unwrap_or_default());
            return Ok(ended.outcome(&self.command, ""));
        };
        let (outcome, _limit) = self.run_holding(&board, &lock, &signals);
        if is_new {
            child::end(&board, &lock.session_id);
        }
        Ok(outcome)
    }
}

impl Run {
    /// A session of this process alone. It begins when the lock is acquired: a refusal leaves no session behind.
    fn new_session(&self, context: &Context) -> Result<Register> {
        let name = self.agent.clone().map_or_else(|| context.own_name(), |name| Ok(Some(name)))?;
        Ok(Register {
            name,
            name_base: Some(child::name_base(&self.command)),
            work: Some(format!("Holding lock {}", self.options.name)),
            pid: Some(std::process::id()),
            ..Register::default()
        })
    }

    /// Runs the command, and releases the lock. What is left to do has a limit.
    fn run_holding(&self, board: &Board, lock: &Lock, signals: &Signals) -> (Outcome, CallLimit) {
        let fence = lock.fence.to_string();
        let variables =
            [("BLACKBOARD_FENCE", format!("lock:{}={fence}", lock.name)), ("BLACKBOARD_LOCK_FENCE", fence)];
        // A killed process releases no lock, but a sweep does. The command must not continue without it.
        let (ended, limit) =
            child::run(&self.command, &variables, board, &lock.session_id, signals, IfKilled::Ends);
        release_lock(board, lock);
        (ended.outcome(&self.command, "the lock is free again"), limit)
    }
}

/// Releases the lock, and warns if it was lost.
fn release_lock(board: &Board, lock: &Lock) {
    let Lock { name, session_id, fence, .. } = lock;
    let release = Release { name: name.clone(), session: session_id.clone(), fence: Some(*fence) };
    let lost = |why: &str| {
        warn(&format!(
            "lock {name} was lost while the command ran: {why}; others may have held it meanwhile"
        ));
    };
    match board.locks().release(&release) {
        Ok(released) if released.released => {}
        Ok(_) => lost("no session holds it now"),
        Err(error) if is_loss(&error) => lost(&error.to_string()),
        Err(error) => warn(&format!("lock {name} could not be released: {error}")),
    }
}

fn is_loss(error: &Error) -> bool {
    matches!(
        error.code(),
        Code::NotHolder | Code::StaleFence | Code::SessionStale | Code::SessionEnded | Code::AgentNotFound
    )
}
