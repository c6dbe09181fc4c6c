//! The session for which another program runs: it lives as long as the program does, and says so.

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::process::{Command, ExitStatus};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};

use blackboard::Board;
use blackboard::agent::{AgentStatus, Heartbeat, HeartbeatRecorded};

use super::{Signals, exit_code, exit_code_of_failure};
use crate::context::warn;
use crate::identity;
use crate::outcome::{Nothing, Outcome};
use crate::output::child::NotStarted;
use crate::output::entry::leased;

/// How the wish to run a program ended.
pub enum Ended {
    /// Something asked to end before it began, with this exit code.
    Before(u8),
    /// It ran.
    Itself(ExitStatus),
    /// It could not be started.
    Never(io::Error),
}

/// The beginning of the name of a session that exists for a program.
pub fn name_base(program: &[OsString]) -> String {
    // clap has made sure that there is a first word.
    let word = program.first().map(OsString::as_os_str).unwrap_or_default();
    identity::name_base(&Path::new(word).file_name().unwrap_or(word).to_string_lossy())
}

/// Runs a program for a session, which it finds in its environment beside `variables`. Meanwhile the session shows that it
/// lives, and the dead are found, as by every other command.
pub fn run(
    program: &[OsString],
    variables: &[(&str, String)],
    board: &Board,
    session: &str,
    signals: &Signals,
) -> Ended {
    if let Some(code) = signals.asked_to_end() {
        return Ended::Before(code);
    }
    let Some((word, arguments)) = program.split_first() else {
        return Ended::Never(io::ErrorKind::NotFound.into());
    };
    let mut command = Command::new(word);
    command.args(arguments).env("BLACKBOARD_SESSION_ID", session);
    command.envs(variables.iter().map(|(name, value)| (name, value)));
    let ran = std::thread::scope(|scope| {
        let (runs, has_ended) = channel::<()>();
        // The board may keep a heartbeat waiting. Signals do not wait with it.
        let beats = std::thread::Builder::new().name("heartbeat".to_owned());
        beats.spawn_scoped(scope, move || send_heartbeats_until(&has_ended, board, session))?;
        let ran = signals.run(&mut command);
        drop(runs);
        ran
    });
    ran.map_or_else(Ended::Never, Ended::Itself)
}

/// Shows that a session lives, now and then, until the other end of the channel is gone.
fn send_heartbeats_until(has_ended: &Receiver<()>, board: &Board, session: &str) {
    let every = board.settings().sign_of_life_interval();
    while has_ended.recv_timeout(every) == Err(RecvTimeoutError::Timeout) {
        // One that is missed does no harm, and what became of the session is seen at the end.
        if let Ok(beat) = board.agents().heartbeat(&Heartbeat::of(session)) {
            warn_lost_holdings(&beat);
        }
        board.try_sweep(Some(session));
    }
}

/// Ends a session that exists for a program alone, and tells if it did not last as long as the program.
pub fn end(board: &Board, session: &str) {
    let agents = board.agents();
    if agents.get(session).is_ok_and(|agent| agent.is_some_and(|agent| agent.status == AgentStatus::Stale)) {
        warn(&format!(
            "session {session} was taken for dead while the command ran: what it held was released, and others may \
             have taken it meanwhile"
        ));
    }
    if let Err(error) = agents.deregister(session) {
        warn(&format!("session {session} could not be ended, the sweep will find it: {error}"));
    }
}

impl Ended {
    /// The answer of a call that did nothing but run the program. `after` is what became of what was held for it.
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

/// Tells that a session was taken for dead, as soon as it is known.
fn warn_lost_holdings(beat: &HeartbeatRecorded) {
    if !beat.recovered {
        return;
    }
    let items = beat.lost.iter().map(|item| format!("work item {item}"));
    let lost: Vec<String> = items.chain(beat.lost_leases.iter().map(leased)).collect();
    let lost = if lost.is_empty() { "nothing".to_owned() } else { lost.join(", ") };
    let session = &beat.session_id;
    warn(&format!("session {session} was taken for dead while the command ran, and is back; it lost {lost}"));
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
