//! `cargo xtask tour`: two agents share a board, one of them dies, and nothing is lost.
//!
//! Every line is a real command with its real output. Each call's exit code is checked, so that the tour is also a
//! test of what a newcomer sees first. The board and the agents' processes are gone afterwards.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use crate::Result;
use crate::release::{self, Options};

/// Shows the program that is named, or a new build.
pub fn run(arguments: &[String]) -> Result {
    match arguments {
        [] => show(&release::build(Options::default())?.join(release::program("blackboard"))),
        [program] => show(Path::new(program)),
        _ => Err("usage: cargo xtask tour [BINARY]".into()),
    }
}

/// Shows this program at work.
pub fn show(program: &Path) -> Result {
    const ITEM: &str = "design-schema";
    let board = Scratch { program: program.canonicalize()?, directory: tempfile::tempdir()? };

    say("Two agents register; each tells which process it is.");
    let mut ivy = board.register("Ivy")?;
    let oak = board.register("Oak")?;

    say("There is one thing to do, and both want it. One gets it; the other is told who has it.");
    board.run(&ivy, &["work", "create", ITEM, "--title", "Design SQL schema", "--priority", "P1"], 0)?;
    board.run(&ivy, &["work", "claim", ITEM], 0)?;
    board.run(&oak, &["work", "claim", ITEM], 4)?;
    let fence = board.fence_of(ITEM)?;

    say("Ivy tells how far she is. Oak asks what happened since he last looked.");
    board.run(&ivy, &["agent", "heartbeat", "--progress", "Tables done, indexes next"], 0)?;
    board.run(&oak, &["observe"], 0)?;

    say("Ivy's process is killed. A sweep finds that out and frees what she held.");
    ivy.die()?;
    board.run(&oak, &["sweep", "--threshold", "0"], 0)?;
    board.run(&oak, &["work", "claim", ITEM], 0)?;

    say("A leftover of Ivy wants to complete her old claim. It is refused: Oak's work is safe.");
    board.run(&ivy, &["work", "complete", ITEM, "--fence", &fence], 4)?;
    board.run(&oak, &["work", "complete", ITEM], 0)?;
    board.run(&oak, &["status"], 0)
}

/// A board in a directory of its own.
struct Scratch {
    program: PathBuf,
    directory: TempDir,
}

/// An agent: a process that lives for a while, and its session.
struct Agent {
    name: &'static str,
    session: String,
    process: Child,
}

impl Scratch {
    /// Starts an agent's process and registers it, as `eval "$(blackboard agent register … --shell)"` would.
    fn register(&self, name: &'static str) -> Result<Agent> {
        let process = Command::new("sleep").arg("600").stdin(Stdio::null()).spawn()?;
        let mut agent = Agent { name, session: String::new(), process };
        let pid = agent.process.id().to_string();
        let arguments = ["agent", "register", "--name", name, "--pid", &pid, "--shell"];
        prompt(name, &format!("eval \"$({})\"", spelled(&arguments)));
        let answer = self.answer(&agent, &arguments)?;
        print!("{answer}");
        let session = answer.lines().find_map(|line| line.strip_prefix("export BLACKBOARD_SESSION_ID="));
        session.ok_or("register --shell printed no session")?.clone_into(&mut agent.session);
        Ok(agent)
    }

    /// Runs one command as this agent, shows it, and demands this exit code.
    fn run(&self, agent: &Agent, arguments: &[&str], expected: i32) -> Result {
        prompt(agent.name, &spelled(arguments));
        let output = self.command(agent, arguments).output()?;
        print!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        let code = output.status.code();
        if expected != 0 && code == Some(expected) {
            println!("(exit code {expected})");
        }
        if code == Some(expected) {
            Ok(())
        } else {
            Err(format!("ended with {code:?}, not {expected}").into())
        }
    }

    fn answer(&self, agent: &Agent, arguments: &[&str]) -> Result<String> {
        let output = self.command(agent, arguments).stderr(Stdio::inherit()).output()?;
        if !output.status.success() {
            return Err(format!("{} failed", spelled(arguments)).into());
        }
        Ok(String::from_utf8(output.stdout)?)
    }

    fn fence_of(&self, item: &str) -> Result<String> {
        let output = self.bare(&["work", "status", item, "--json"]).output()?;
        let answer: serde_json::Value = serde_json::from_slice(&output.stdout)?;
        Ok(answer["fence"].as_i64().ok_or("the item has no fence")?.to_string())
    }

    fn command(&self, agent: &Agent, arguments: &[&str]) -> Command {
        let mut command = self.bare(arguments);
        if !agent.session.is_empty() {
            command.env("BLACKBOARD_SESSION_ID", &agent.session);
        }
        command
    }

    /// The program, where it finds nothing of the machine that it runs on.
    fn bare(&self, arguments: &[&str]) -> Command {
        let directory = self.directory.path();
        let mut command = Command::new(&self.program);
        command.args(arguments).current_dir(directory).stdin(Stdio::null());
        command.env_clear().env("HOME", directory).env("BLACKBOARD_HOME", directory);
        command
    }
}

impl Agent {
    /// Dies without a word.
    fn die(&mut self) -> Result {
        prompt(self.name, &format!("kill -9 {}", self.process.id()));
        self.process.kill()?;
        self.process.wait()?;
        Ok(())
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        // Already dead is as good.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn say(text: &str) {
    println!("\n# {text}");
}

fn prompt(name: &str, line: &str) {
    println!("{}$ {line}", name.to_lowercase());
}

/// A command line as one would type it.
fn spelled(arguments: &[&str]) -> String {
    arguments.iter().fold("blackboard".to_owned(), |line, argument| {
        if argument.contains(' ') { format!("{line} \"{argument}\"") } else { format!("{line} {argument}") }
    })
}
