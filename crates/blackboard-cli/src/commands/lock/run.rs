//! `blackboard lock run`

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::process::{Command, ExitStatus};

use blackboard::agent::{Beat, Register};
use blackboard::lock::{Acquire, Lock, Release};
use blackboard::{Board, Code, Error, Fault, Result};

use super::Wish;
use crate::child::{self, Signals};
use crate::commands::Run as RunCommand;
use crate::commands::arguments::Session;
use crate::context::{Context, warn};
use crate::outcome::Outcome;
use crate::output::lock::{NotStarted, Ran};

/// Hold a lock while a command runs
///
/// Ends with the exit code of the command, or with 128 and the number of the signal that ended it; with 127 or 126 if it
/// can't be started. The command finds the fence of the lock in BLACKBOARD_FENCE, as --fence takes it, and the
/// number alone in BLACKBOARD_LOCK_FENCE. Signals that ask this program to end are passed on to the command. Without a
/// session, one is registered for this process and ends with it. Those who share a session keep each other out here, too.
///
/// If this program is killed with SIGKILL, the command goes on without it: the lock is free once a sweep finds the
/// session dead, and what the command writes with --fence "$BLACKBOARD_FENCE" is refused from then on.
///
/// Examples:
///   blackboard lock run deploy -- ./deploy.sh
///   blackboard lock run deploy --wait 10m --name "nightly build" -- make release
///   blackboard lock run deploy -- sh -c 'blackboard write result 1 --fence "$BLACKBOARD_FENCE"'
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Run {
    #[command(flatten)]
    wish: Wish,

    /// What the session calls itself that is registered if there is none [default: agent.name of the configuration,
    /// or the name of the command]
    #[arg(long = "name", value_name = "AGENT", id = "agent", allow_hyphen_values = true)]
    agent: Option<String>,

    #[command(flatten)]
    session: Session,

    /// The command and its arguments, behind --
    #[arg(value_name = "CMD", last = true, required = true)]
    command: Vec<OsString>,
}

impl RunCommand for Run {
    fn run(self, context: &Context) -> Result<Outcome> {
        // From here on nothing ends this process before it has given back what it holds.
        let signals = Signals::catch()
            .map_err(|error| Fault::new(Code::Io, "signals can't be caught").because(error))?;
        let (board, session) = context.writing(self.session.session.as_deref())?;
        let Some(session) = session else {
            let session = self.register(context, &board)?;
            let outcome = self.run_as(&board, &session, &signals);
            if let Err(error) = board.agents().deregister(&session) {
                warn(&format!("session {session} could not be ended, the sweep will find it: {error}"));
            }
            return outcome;
        };
        self.run_as(&board, &session, &signals)
    }
}

impl Run {
    /// Registers a session of this process alone.
    fn register(&self, context: &Context, board: &Board) -> Result<String> {
        let command = Path::new(&self.command[0]).file_name().unwrap_or("lock run".as_ref());
        let name = match (&self.agent, &context.place()?.config.agent_name) {
            (Some(name), _) | (None, Some(name)) => name.clone(),
            (None, None) => command.to_string_lossy().into_owned(),
        };
        let registered = board.agents().register(&Register {
            work: Some(format!("Holding lock {}", self.wish.name)),
            pid: Some(std::process::id()),
            ..Register::named(&name)
        })?;
        Ok(registered.agent.session_id)
    }

    fn run_as(&self, board: &Board, session: &str, signals: &Signals) -> Result<Outcome> {
        let Wish { name, wait, ttl, note } = &self.wish;
        let wish = Acquire {
            name: name.clone(),
            session: session.to_owned(),
            ttl: *ttl,
            note: note.clone(),
            anew: true,
        };
        let go_on = || signals.asked_to_end().is_none();
        let lock = match wait {
            Some(timeout) => board.locks().acquire_waiting_while(&wish, *timeout, go_on)?,
            None => Some(board.locks().acquire(&wish)?),
        };
        let Some(lock) = lock.map(|acquired| acquired.lock) else {
            return Ok(Outcome::new(Ran).with_exit_code(signals.asked_to_end().unwrap_or_default()));
        };
        let ended = match signals.asked_to_end() {
            Some(code) => Ok(Ended::Before(code)),
            None => self.hold(board, &lock, signals).map(Ended::Itself),
        };
        give_back(board, &lock);
        Ok(match ended {
            Ok(Ended::Before(code)) => Outcome::new(Ran).with_exit_code(code),
            Ok(Ended::Itself(status)) => Outcome::new(Ran).with_exit_code(child::exit_code(status)),
            Err(error) => {
                let code = child::exit_code_of_failure(&error);
                let program = self.command[0].to_string_lossy().into_owned();
                Outcome::new(NotStarted::new(&program, error)).with_exit_code(code)
            }
        })
    }

    /// Runs the command, and shows that the session lives as long as it does.
    fn hold(&self, board: &Board, lock: &Lock, signals: &Signals) -> io::Result<ExitStatus> {
        let mut command = Command::new(&self.command[0]);
        command
            .args(&self.command[1..])
            .env("BLACKBOARD_SESSION_ID", &lock.session_id)
            .env("BLACKBOARD_FENCE", format!("lock:{}={}", lock.name, lock.fence))
            .env("BLACKBOARD_LOCK_FENCE", lock.fence.to_string());
        let every = board.settings().sign_of_life_interval();
        signals.run(&mut command, every, || {
            // One that is missed does no harm, and what became of the lock is seen at the end.
            let _ = board.agents().heartbeat(&Beat::of(&lock.session_id));
        })
    }
}

/// How the wish to run a command ended.
enum Ended {
    /// Something asked to end before it began, with this exit code.
    Before(u8),
    /// It ran.
    Itself(ExitStatus),
}

/// Gives the lock back, and tells if there was none to give back any more.
fn give_back(board: &Board, lock: &Lock) {
    let Lock { name, session_id, fence, .. } = lock;
    let release = Release { name: name.clone(), session: session_id.clone(), fence: Some(*fence) };
    let lost = |why: &str| {
        warn(&format!(
            "lock {name} was lost while the command ran: {why}; others may have held it meanwhile"
        ));
    };
    match board.locks().release(&release) {
        Ok(released) if released.released => {}
        Ok(_) => lost("nobody holds it now"),
        Err(error) if is_loss(&error) => lost(&error.to_string()),
        Err(error) => warn(&format!("lock {name} could not be given back: {error}")),
    }
}

fn is_loss(error: &Error) -> bool {
    matches!(
        error.code(),
        Code::NotHolder | Code::StaleFence | Code::SessionStale | Code::SessionEnded | Code::AgentNotFound
    )
}
