//! The story of a client's session, and the checks of the board.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use super::check::{self, Checks};
use super::clients::Client;
use super::model::{Model, Turn};
use super::process::Running;
use super::scratch::{self, Scratch, soon};
use crate::Result;

/// Another agent on the board, registered by the story.
pub const NEIGHBOR: &str = "Neighbor";

/// The work on the board.
const FIRST: &str = "e2e-1";
const SECOND: &str = "e2e-2";
const TITLE: &str = "Sharpen the saw";

/// The scene of subagents.
const DELEGATE_SCENE: &str = "SCENE-DELEGATE";

/// Longer than the pause of hooks between two heartbeats.
const PAST_THE_THROTTLE: Duration = Duration::from_secs(11);

/// A client that is set up in a scratch home, with a model to talk to.
pub struct Stage {
    pub client: &'static Client,
    pub scratch: Scratch,
    pub model: Model,
    /// The client's program.
    pub program: PathBuf,
    keep: bool,
}

/// A session of the client that plays a scene.
pub struct Scene<'s> {
    stage: &'s Stage,
    name: String,
    pub running: Running,
    /// The sessions that were on the board before.
    before: Vec<Value>,
}

impl Stage {
    /// Installs a client and sets it up, with the program under test, by the real `blackboard setup`.
    pub fn new(client: &'static Client, program: &Path, scope: &str, keep: bool) -> Result<Stage> {
        let programs = scratch::install(&client.package)?;
        let scratch = Scratch::new(client.id, program, keep)?;
        let model = Model::start(client.dialect, &scratch.log())?;
        scratch.board(&["setup", client.id, "--settings", scope, "--yes"])?;
        (client.prepare)(&scratch, &model)?;
        Ok(Stage { client, scratch, model, program: programs.join(client.program), keep })
    }

    /// The same client in another home, set up at another settings level.
    pub fn another(&self, scope: &str) -> Result<Stage> {
        Stage::new(self.client, &self.scratch.program().canonicalize()?, scope, self.keep)
    }

    /// Starts a session that answers one prompt, which names its scene.
    pub fn start(&self, scene: &str) -> Result<Scene<'_>> {
        self.start_by(scene, |_| ())
    }

    /// The same, with changes to its command.
    pub fn start_by(&self, scene: &str, more: impl FnOnce(&mut Command)) -> Result<Scene<'_>> {
        self.start_as(scene, |command| {
            (self.client.session)(command, &self.model, &prompt(scene));
            more(command);
        })
    }

    /// Starts a session with other arguments.
    pub fn start_as(&self, scene: &str, arguments: impl FnOnce(&mut Command)) -> Result<Scene<'_>> {
        let before = self.known()?;
        let mut command = self.scratch.command(&self.program);
        arguments(&mut command);
        let running = Running::start(command, self.scratch.log().join(format!("{scene}.out")))?;
        Ok(Scene { stage: self, name: scene.to_owned(), running, before })
    }

    /// Starts the client in its own terminal, where prompts are typed.
    pub fn start_in_terminal(
        &self,
        scene: &str,
        arguments: &[&str],
        more: impl FnOnce(&mut Command),
    ) -> Result<Scene<'_>> {
        let before = self.known()?;
        let mut command = self.scratch.command("script");
        let line = format!("stty rows 40 cols 120; exec {} {}", self.program.display(), arguments.join(" "));
        command.args(["--quiet", "--flush", "--return", "--command", &line, "/dev/null"]);
        command.env("TERM", "xterm").stdin(Stdio::piped());
        more(&mut command);
        let running = Running::start(command, self.scratch.log().join(format!("{scene}.out")))?;
        Ok(Scene { stage: self, name: scene.to_owned(), running, before })
    }

    fn known(&self) -> Result<Vec<Value>> {
        Ok(self.scratch.agents()?.into_iter().map(|agent| agent["session_id"].clone()).collect())
    }

    /// The current state of a session on the board.
    pub fn agent(&self, session: &Value) -> Result<Value> {
        self.scratch.board(&["agent", "show", text(&session["session_id"])])
    }
}

impl Scene<'_> {
    /// Its next request. The error contains the output of the client.
    pub fn turn(&self) -> Result<Turn> {
        let turn = self.stage.model.turn(&self.name);
        turn.map_err(|error| format!("{error}; the client printed: {}", self.running.printed()).into())
    }

    /// Puts a request back, so that the next search for one finds it again.
    pub fn put_back(&self, turn: Turn) {
        self.stage.model.put_back(turn);
    }

    /// The sessions that were registered since it started, without delegates.
    pub fn sessions(&self) -> Result<Vec<Value>> {
        let mut new = self.stage.scratch.agents()?;
        new.retain(|agent| agent["parent_id"].is_null() && !self.before.contains(&agent["session_id"]));
        Ok(new)
    }

    /// Checks that this scene continues a session of an earlier one, in a new process.
    pub fn continues(&self, session: &Value) -> Result<String> {
        let agent = soon(|| ended(self.stage, session, "active"))?;
        if !self.sessions()?.is_empty() {
            return Err("there is a second session".into());
        }
        self.running.wait_for_agent(&agent["pid"], self.stage.client.is_agent)?;
        Ok("active again, with its new process".to_owned())
    }

    /// The one session that it has registered.
    pub fn session(&self) -> Result<Value> {
        soon(|| {
            let mut new = self.sessions()?;
            match (new.pop(), new.len()) {
                (Some(agent), 0) => Ok(agent),
                (None, _) => Err("no session is registered".into()),
                (Some(_), more) => Err(format!("{} sessions are registered", more + 1).into()),
            }
        })
    }

    /// Answers every request from now on with the end of the story, and waits until the client exits.
    pub fn end(&mut self) -> Result {
        self.stage.model.close(&self.name);
        let status = self.running.end()?;
        self.stage.model.open(&self.name);
        if status.success() {
            return Ok(());
        }
        Err(format!("the client failed ({status}): {}", self.running.printed()).into())
    }
}

/// A prompt that names its scene.
pub fn prompt(scene: &str) -> String {
    format!("Play {scene} please.")
}

/// Runs the story that all clients share.
pub fn play(stage: &Stage, checks: &mut Checks) -> Result {
    let board = |arguments: &[&str]| stage.scratch.board(arguments);
    let pid = std::process::id().to_string();
    board(&["agent", "register", "--name", NEIGHBOR, "--pid", &pid])?;
    board(&["work", "create", "--id", FIRST, "--title", TITLE])?;
    board(&["work", "create", "--id", SECOND, "--title", "Oil the hinge"])?;
    lives(stage, checks)?;
    dies(stage, checks)
}

/// A session that starts, works and ends.
fn lives(stage: &Stage, checks: &mut Checks) -> Result {
    let (client, scratch) = (stage.client, &stage.scratch);
    let mut scene = stage.start("SCENE-MAIN")?;
    let turn = scene.turn()?;

    checks.see(check::REGISTERED, || {
        let agent = scene.session()?;
        scene.running.wait_for_agent(&agent["pid"], client.is_agent)?;
        Ok(format!("as \"{}\", in the project \"{}\"", text(&agent["agent_name"]), text(&agent["project"])))
    });
    let session = scene.session()?;
    let id = text(&session["session_id"]);
    checks.see(check::BRIEFED, || {
        for wanted in ["[blackboard] You share a board with other agents.", id, TITLE, NEIGHBOR] {
            if !turn.reads(wanted) {
                return Err(format!("the model does not read {wanted:?}").into());
            }
        }
        Ok("its session, the other agent, the available work".to_owned())
    });

    thread::sleep(PAST_THE_THROTTLE);
    turn.say((client.tools.shell)("true"));
    let turn = scene.turn()?;
    checks.see(check::HEARTBEAT, || {
        soon(|| {
            let now = stage.agent(&session)?;
            if now["last_beat_at"] == session["last_beat_at"] {
                return Err(format!("none since {}", text(&now["last_beat_at"])).into());
            }
            Ok("last_beat_at moved with the call of the shell".to_owned())
        })
    });

    turn.say((client.tools.claim)(FIRST));
    let turn = scene.turn()?;
    checks.see(check::CLAIMED, || holds(stage, FIRST, id));

    match client.tools.delegate {
        Err(why) => {
            checks.absent(check::DELEGATE, why);
            turn.done();
        }
        Ok(delegate) => {
            turn.say(delegate(&prompt(DELEGATE_SCENE)));
            checks.see(check::DELEGATE, || delegated(stage, &session));
        }
    }

    checks.see(check::DEREGISTERED, || {
        scene.end()?;
        soon(|| ended(stage, &session, "completed"))?;
        is_available(scratch, FIRST)?;
        Ok("completed, its item is available again".to_owned())
    });
    Ok(())
}

/// A subagent of the session, which may run at the same time.
fn delegated(stage: &Stage, parent: &Value) -> Result<String> {
    let turn = stage.model.turn(DELEGATE_SCENE)?;
    let agent = soon(|| {
        let mut agents = stage.scratch.agents()?;
        agents.retain(|agent| is_live(agent) && agent["parent_id"] == parent["session_id"]);
        agents.pop().ok_or_else(|| "the session has no delegate".into())
    })?;
    if !turn.reads("[blackboard] You are a subagent") || !turn.reads(text(&agent["session_id"])) {
        return Err("it is registered, but its model does not read its session".into());
    }
    turn.done();
    soon(|| ended(stage, &agent, "completed"))?;
    Ok(format!("as \"{}\", received its session id, ended with its task", text(&agent["agent_name"])))
}

/// A session that is killed while it holds an item.
fn dies(stage: &Stage, checks: &mut Checks) -> Result {
    let (client, scratch) = (stage.client, &stage.scratch);
    let mut scene = stage.start("SCENE-KILLED")?;
    let turn = scene.turn()?;
    let session = scene.session()?;
    turn.say((client.tools.claim)(SECOND));
    let _turn = scene.turn()?;
    checks.see(check::SWEPT, || {
        holds(stage, SECOND, text(&session["session_id"]))?;
        scene.running.wait_for_agent(&session["pid"], client.is_agent)?;
        let agent = session["pid"].as_u64().and_then(|pid| pid.try_into().ok());
        scene.running.kill(agent.ok_or("the session has no PID")?)?;
        // Only a session without a recent heartbeat is checked; this does not wait five minutes.
        thread::sleep(Duration::from_millis(1_200));
        let mut sweep = scratch.command(scratch.program());
        sweep.args(["sweep", "--json"]).env("BLACKBOARD_STALE_THRESHOLD", "1");
        let swept =
            String::from_utf8_lossy(&crate::run::output(&mut sweep, crate::run::SHORT)?.stdout).into_owned();
        ended(stage, &session, "stale")
            .map_err(|error| format!("{error}; the sweep said {}", swept.trim()))?;
        is_available(scratch, SECOND)?;
        Ok("stale, its item is available again".to_owned())
    });
    Ok(())
}

fn is_available(scratch: &Scratch, item: &str) -> Result {
    let found = scratch.board(&["work", "status", item])?;
    if found["status"] == "available" { Ok(()) } else { Err(format!("{item} is {}", found["status"]).into()) }
}

/// Checks that a session holds an item.
pub fn holds(stage: &Stage, item: &str, session: &str) -> Result<String> {
    soon(|| {
        let found = stage.scratch.board(&["work", "status", item])?;
        if found["status"] == "claimed" && found["claimed_by"] == session {
            return Ok(format!("{item} is claimed by it"));
        }
        Err(format!("{item} is {} by {}, the session is {session}", found["status"], found["claimed_by"])
            .into())
    })
}

/// Checks that a session has this status.
pub fn ended(stage: &Stage, session: &Value, status: &str) -> Result<Value> {
    let agent = stage.agent(session)?;
    if agent["status"] == status {
        Ok(agent)
    } else {
        Err(format!("the session is {}", agent["status"]).into())
    }
}

fn is_live(agent: &Value) -> bool {
    matches!(text(&agent["status"]), "active" | "idle")
}

/// A text in JSON output of the board.
pub fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
