//! The MCP Inspector of the protocol's authors: a client without a model, which also checks schemas.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::Package;
use crate::Result;
use crate::e2e_agents::check::Checks;
use crate::e2e_agents::process::Running;
use crate::e2e_agents::scratch::{self, Scratch, soon};
use crate::e2e_agents::story::{NEIGHBOR, text};

pub const ID: &str = "inspector";
pub const TITLE: &str = "MCP Inspector";

pub const PACKAGE: Package = Package { name: "@modelcontextprotocol/inspector", version: "2.12.0" };

/// It needs a newer node than many systems have; npm has that too.
const NODE: Package = Package { name: "node", version: "24.9.0" };

const STRICT: &str = "schemas valid under --strict";
const REGISTERED: &str = "registered with the PID of its process";
const CLAIMED: &str = "item claimed by MCP for that session";
const READ: &str = "resources read";
const DEREGISTERED: &str = "deregistered at its end";
const KILLED: &str = "deregistered after kill -9";

const CHECKS: &[&str] = &[STRICT, REGISTERED, CLAIMED, READ, DEREGISTERED, KILLED];

/// A lock that it waits for.
const GATE: &str = "gate";

/// Runs it. An error is a result.
pub fn attempt(program: &Path, keep: bool) -> Checks {
    let mut checks = Checks::new();
    let played = set_up(program, keep).and_then(|inspector| inspector.play(&mut checks));
    let why = played.err().map(|error| error.to_string()).unwrap_or_default();
    checks.fail_missing(CHECKS, &why);
    checks
}

struct Inspector {
    scratch: Scratch,
    programs: PathBuf,
    node: PathBuf,
}

fn set_up(program: &Path, keep: bool) -> Result<Inspector> {
    let (programs, node) = (scratch::install(&PACKAGE)?, scratch::install(&NODE)?);
    let scratch = Scratch::new(ID, program, keep)?;
    std::fs::create_dir_all(scratch.log())?;
    Ok(Inspector { scratch, programs, node })
}

impl Inspector {
    fn play(&self, checks: &mut Checks) -> Result {
        checks.see(STRICT, || {
            let listed = self.ask(&["--method", "tools/list", "--strict"])?;
            let verdict = listed.lines().find(|line| line.starts_with("0 errors"));
            Ok(verdict.ok_or_else(|| format!("it says: {listed}"))?.to_owned())
        });
        let pid = std::process::id().to_string();
        let neighbor = self.scratch.board(&["agent", "register", "--name", NEIGHBOR, "--pid", &pid])?;
        let neighbor = text(&neighbor["session_id"]);
        self.scratch.board(&["lock", "acquire", GATE, "--session", neighbor])?;
        let mut waiting = self.wait("waits")?;
        let mut agent = Value::Null;
        checks.see(REGISTERED, || {
            agent = self.session()?;
            let expected =
                waiting.agent(|process| process.name.starts_with("node") || process.name == "MainThread")?;
            if agent["pid"] != expected {
                return Err(format!("the board has {}, the client is {expected}", agent["pid"]).into());
            }
            Ok(format!("as \"{}\"", text(&agent["agent_name"])))
        });
        checks.see(DEREGISTERED, || {
            self.scratch.board(&["lock", "release", GATE, "--session", neighbor])?;
            let status = waiting.end()?;
            if !status.success() {
                return Err(format!("it failed ({status}): {}", waiting.printed()).into());
            }
            self.ended(&agent)
        });
        checks.see(CLAIMED, || {
            let call = ["--method", "tools/call", "--tool-name", "work_claim"];
            let claimed =
                self.ask(&[&call[..], &["--tool-arg", "id=x", "--tool-arg", "title=X"]].concat())?;
            let claimed: Value = serde_json::from_str(&claimed)?;
            let claimed = &claimed["structuredContent"];
            let holder = self.scratch.board(&["agent", "show", text(&claimed["claimed_by"])])?;
            if claimed["claimed"] != true {
                return Err(format!("the answer is {claimed}").into());
            }
            let item = soon(|| {
                let item = self.scratch.board(&["work", "status", "x"])?;
                if item["status"] == "available" {
                    Ok(item)
                } else {
                    Err(format!("it is {}", item["status"]).into())
                }
            })?;
            Ok(format!(
                "{} was claimed by \"{}\", and released",
                text(&item["item_id"]),
                text(&holder["agent_name"])
            ))
        });
        checks.see(READ, || {
            let read = self.ask(&["--method", "resources/read", "--uri", "blackboard://work"])?;
            if !read.contains("blackboard://work") {
                return Err(format!("it says: {read}").into());
            }
            Ok("blackboard://work".to_owned())
        });
        self.scratch.board(&["lock", "acquire", GATE, "--session", neighbor])?;
        let mut waiting = self.wait("killed")?;
        checks.see(KILLED, || {
            let agent = self.session()?;
            let pid = agent["pid"].as_u64().and_then(|pid| pid.try_into().ok()).ok_or("it has no process")?;
            waiting.kill(pid)?;
            self.ended(&agent)
        });
        Ok(())
    }

    fn command(&self) -> Command {
        let mut command = self.scratch.command(self.programs.join("mcp-inspector"));
        let path = command.get_envs().find(|(name, _)| *name == "PATH").and_then(|(_, path)| path);
        let path = path.unwrap_or_default().to_owned();
        let path =
            std::env::join_paths(std::iter::once(self.node.clone()).chain(std::env::split_paths(&path)));
        command.env("PATH", path.unwrap_or_default()).arg("--cli").arg(self.scratch.program()).arg("mcp");
        command
    }

    /// Makes one call, and returns its output.
    fn ask(&self, arguments: &[&str]) -> Result<String> {
        let output = crate::run::output(self.command().args(arguments), crate::run::SHORT)?;
        let (out, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        if output.status.success() {
            // Results go to stdout or to stderr.
            return Ok(if serde_json::from_str::<Value>(&out).is_ok() && !error.contains("errors") {
                out.into_owned()
            } else {
                format!("{out}\n{error}")
            });
        }
        Err(format!("{}: {} {}", output.status, out.trim(), error.trim()).into())
    }

    /// Starts a call that waits for a lock, so that there is time to check the board.
    fn wait(&self, name: &str) -> Result<Running> {
        let mut command = self.command();
        let lock = format!("lock={GATE}");
        command.args(["--method", "tools/call", "--tool-name", "wait", "--tool-arg", &lock]);
        command.args(["--tool-arg", "seconds=60"]);
        Running::start(command, self.scratch.log().join(format!("{name}.out")))
    }

    /// The session that is active now.
    fn session(&self) -> Result<Value> {
        soon(|| {
            let agents = self.scratch.agents()?;
            let live = agents.into_iter().find(|agent| agent["status"] == "active");
            live.ok_or_else(|| "no session is registered".into())
        })
    }

    fn ended(&self, agent: &Value) -> Result<String> {
        soon(|| {
            let agent = self.scratch.board(&["agent", "show", text(&agent["session_id"])])?;
            if agent["status"] == "completed" {
                return Ok("completed by its server".to_owned());
            }
            Err(format!("the session is {}", agent["status"]).into())
        })
    }
}
