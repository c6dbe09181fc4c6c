//! The session of a child process. This process sends its heartbeats and ends it with the child.

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::process::{Command, ExitStatus};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use blackboard::Board;
use blackboard::agent::{AgentStatus, Heartbeat, HeartbeatRecorded, label, short_id};
use blackboard::store::CallLimit;

use super::{Signals, end_with_parent, exit_code, exit_code_of_failure};
use crate::context::warn;
use crate::identity;
use crate::outcome::{Nothing, Outcome};
use crate::output::child::NotStarted;
use crate::output::entry::leased;

/// The outcome of running a program.
pub enum Ended {
    /// A signal arrived before the program started; exit with this code.
    Before(u8),
    /// It ran.
    Itself(ExitStatus),
    /// It could not be started.
    Never(io::Error),
}

/// What happens to the program if this process is killed, and so cannot end it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IfKilled {
    /// It continues.
    Continues,
    /// It is killed too, on systems that can do that.
    Ends,
}

/// The base of the name of a session for a program.
pub fn name_base(program: &[OsString]) -> String {
    // clap requires at least one word.
    let word = program.first().map(OsString::as_os_str).unwrap_or_default();
    identity::name_base(&Path::new(word).file_name().unwrap_or(word).to_string_lossy())
}

/// How long a call may take that sends a heartbeat. The program may end meanwhile, and then waits for it.
const HEARTBEAT: Duration = Duration::from_secs(3);

/// How long everything may take together that is done after the program has ended.
const END: Duration = Duration::from_secs(15);

/// Runs a program with the session and `variables` in its environment. Meanwhile this process sends heartbeats for the
/// session and sweeps. Returns the limit of what is left to do, which begins when the program has ended.
pub fn run(
    program: &[OsString],
    variables: &[(&str, String)],
    board: &Board,
    session: &str,
    signals: &Signals,
    if_killed: IfKilled,
) -> (Ended, CallLimit) {
    if let Some(code) = signals.asked_to_end() {
        return (Ended::Before(code), CallLimit::after(END));
    }
    let Some((word, arguments)) = program.split_first() else {
        return (Ended::Never(io::ErrorKind::NotFound.into()), CallLimit::after(END));
    };
    let mut command = Command::new(word);
    command.args(arguments).env("BLACKBOARD_SESSION_ID", session);
    command.envs(variables.iter().map(|(name, value)| (name, value)));
    if if_killed == IfKilled::Ends {
        // `Signals::run` starts the program in this thread, and waits for it.
        end_with_parent(&mut command);
    }
    let mut limit = None;
    let ran = std::thread::scope(|scope| {
        let (runs, has_ended) = channel::<()>();
        // In a thread: a heartbeat may wait for the board's lock, and signals must not wait for it.
        let beats = std::thread::Builder::new().name("heartbeat".to_owned());
        beats.spawn_scoped(scope, move || send_heartbeats_until(&has_ended, board, session))?;
        let ran = signals.run(&mut command);
        limit = Some(CallLimit::after(END));
        drop(runs);
        ran
    });
    (ran.map_or_else(Ended::Never, Ended::Itself), limit.unwrap_or_else(|| CallLimit::after(END)))
}

/// Sends heartbeats for a session until the other end of the channel is closed.
fn send_heartbeats_until(has_ended: &Receiver<()>, board: &Board, session: &str) {
    let every = board.settings().sign_of_life_interval();
    while has_ended.recv_timeout(every) == Err(RecvTimeoutError::Timeout) {
        let _limit = CallLimit::after(HEARTBEAT);
        // A missed heartbeat does no harm, and `end` reports what happened to the session.
        if let Ok(beat) = board.agents().heartbeat(&Heartbeat::of(session)) {
            warn_lost_holdings(&beat);
        }
        board.try_sweep(Some(session));
    }
}

/// Ends the session of a program, and warns if it was marked stale before the program ended.
pub fn end(board: &Board, session: &str) {
    let agents = board.agents();
    if let Ok(Some(agent)) = agents.get(session)
        && agent.status == AgentStatus::Stale
    {
        let label = agent.label();
        warn(&format!(
            "session {label} was marked stale while the command ran; what it held was released, and other agents may \
             hold it now"
        ));
    }
    if let Err(error) = agents.deregister(session) {
        warn(&format!("cannot end session {}: {error}; a sweep will end it", short_id(session)));
    }
}

impl Ended {
    /// The outcome of a call that only ran the program. `after` is the result of releasing what was held for it.
    pub fn outcome(self, program: &[OsString], after: &str) -> Outcome {
        match self {
            Ended::Before(code) => Outcome::new(Nothing).with_exit_code(code),
            Ended::Itself(status) => Outcome::new(Nothing).with_exit_code(exit_code(status)),
            Ended::Never(error) => {
                let code = exit_code_of_failure(&error);
                let program = program.first().map(|word| word.to_string_lossy()).unwrap_or_default();
                Outcome::new(NotStarted::new(&program, after, error)).with_exit_code(code)
            }
        }
    }
}

/// Warns that a session was marked stale while its command runs.
fn warn_lost_holdings(beat: &HeartbeatRecorded) {
    if !beat.recovered {
        return;
    }
    let items = beat.lost.iter().map(|item| format!("work item {item}"));
    let lost: Vec<String> = items.chain(beat.lost_leases.iter().map(leased)).collect();
    let lost = if lost.is_empty() { "nothing".to_owned() } else { lost.join(", ") };
    let label = label(&beat.agent_name, &beat.session_id);
    warn(&format!(
        "session {label} was marked stale while the command ran and is active again; released: {lost}"
    ));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_called_as_its_program() {
        for (word, expected) in
            [("aider", "aider"), ("/usr/bin/aider", "aider"), ("./run.sh", "run.sh"), ("..", "agent")]
        {
            assert_eq!(name_base(&[word.into(), "--help".into()]), expected);
        }
    }
}
