//! Complete commands on a board of a server, against `/bin/true`, and the size of the program.

use std::path::Path;
use std::process::Command;

use blackboard::agent::{READER, Register};

use crate::boards::Scratch;
use crate::hooks::agents::{after_bash, session};
use crate::programs::{Program, interleave};
use crate::redis_server::Server;
use crate::remote_board::{open, register};
use crate::report::{Bar, Line, Unit};
use crate::{Result, Scale};

const MEGABYTE: f64 = 1e6;

/// Why the bar is not that of the parts for servers alone, 11 MB.
const OF_ALL: &str = "the bar of the product with everything that is built into it";

/// `agent heartbeat`, and a hook that has nothing to write.
pub fn commands(scale: &Scale) -> Result<Vec<Line>> {
    let runs = scale.of(200, 10);
    let server = Server::start()?;
    let url = server.url("commands");
    let board = open(&url)?;
    let sessions = register(&board, 50)?;
    let beat = Program::new("heartbeat", || {
        let mut command = scale.blackboard(Path::new(&url));
        command.args(["agent", "heartbeat", "--json"]).env("BLACKBOARD_SESSION_ID", &sessions[0]);
        command
    });
    let heartbeat = against_nothing("`agent heartbeat`, without TLS", 4.0, beat, scale, runs)?;

    let agent = board.agents().register(&Register {
        session_hint: Some(format!("claude:{}", session(0))),
        pid: Some(std::process::id()),
        ..Register::named("Hooked")
    })?;
    board.events().advance(&agent.agent.session_id, READER, agent.agent.revision)?;
    let scratch = Scratch::in_repository()?;
    let hook = Program::fed("hook", || {
        let mut command = Command::new(scale.program("blackboard"));
        command.env_clear().env("HOME", scratch.home()).env("BLACKBOARD_DB", &url);
        command.env("CLAUDE_PROJECT_DIR", scratch.repository()).args(["hook", "claude"]);
        (command, after_bash(&scratch, 0))
    });
    let hook = against_nothing("`hook claude` for PostToolUse, throttled away", 2.5, hook, scale, runs)?;
    Ok(vec![heartbeat, hook])
}

/// The size of the program, and the time that a command without a server takes to start.
pub fn binary(scale: &Scale) -> Result<Vec<Line>> {
    let size = std::fs::metadata(scale.program("blackboard"))?.len() as f64 / MEGABYTE;
    let scratch = Scratch::new()?;
    let version = Program::new("--version", || {
        let mut command = scale.blackboard(&scratch.path());
        command.arg("--version");
        command
    });
    Ok(vec![
        Line::new("release binary", Bar::AtMost(14.0), Unit::Megabytes, &[size], OF_ALL),
        against_nothing("`--version`", 1.2, version, scale, scale.of(200, 10))?,
    ])
}

fn against_nothing(what: &str, limit: f64, program: Program<'_>, scale: &Scale, runs: usize) -> Result<Line> {
    let mut programs = [Program::nothing(), program];
    interleave(&mut programs, scale.rounds, runs)?;
    let [nothing, program] = &programs;
    let detail = format!("{}, {}", program.tell(), nothing.tell());
    let what = format!("{what}, complete process, against `/bin/true`");
    Ok(Line::new(what, Bar::AtMost(limit), Unit::Ratio, &program.ratios(nothing), detail))
}
