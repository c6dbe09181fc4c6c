//! The process of a client, and its descendants.

use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

use crate::Result;
pub use testkit::processes::Process;
use testkit::processes::{below, kill_with_descendants, runs};

/// How long a client may take to end.
const PATIENCE: Duration = Duration::from_mins(1);

/// A running client. It is killed with its descendants when this value is dropped.
pub struct Running {
    child: Child,
    output: PathBuf,
}

impl Running {
    /// Starts a client whose output goes to a file.
    pub fn start(mut command: Command, output: PathBuf) -> Result<Running> {
        let file = File::create(&output)?;
        let child = command.stdout(file.try_clone()?).stderr(file).spawn()?;
        Ok(Running { child, output })
    }

    /// Types text at its terminal.
    pub fn type_text(&mut self, text: &str) -> Result {
        let keyboard = self.child.stdin.as_mut().ok_or("the client has no terminal")?;
        keyboard.write_all(text.as_bytes())?;
        Ok(keyboard.flush()?)
    }

    /// The one process that is the agent: the client itself, or a descendant.
    pub fn agent(&self, is_agent: fn(&Process) -> bool) -> Result<u32> {
        Ok(self.agents(is_agent)?[0])
    }

    /// Waits until the agent is this process. What the agent starts looks like the agent until its own program runs.
    pub fn wait_for_agent(&self, pid: &serde_json::Value, is_agent: fn(&Process) -> bool) -> Result {
        let until = Instant::now() + PATIENCE;
        loop {
            let agent = self.agent(is_agent)?;
            if *pid == agent {
                return Ok(());
            }
            if Instant::now() >= until {
                return Err(format!("the board has {pid}, the agent is {agent}").into());
            }
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// The agent and the agents that it has started, each after its parent; at least one.
    pub fn agents(&self, is_agent: fn(&Process) -> bool) -> Result<Vec<u32>> {
        let all = below(self.child.id())?;
        let found: Vec<&Process> = all.iter().filter(|process| is_agent(process)).collect();
        // A launcher and its program may look alike: the inner one does the work.
        let inner = found.iter().filter(|one| !found.iter().any(|other| other.parent == one.pid));
        let agents: Vec<u32> = inner.map(|process| process.pid).collect();
        if agents.is_empty() {
            let shown = all.iter().map(|one| format!("{} ({})", one.name, one.arguments.join(" ")));
            let shown: Vec<_> = shown.collect();
            return Err(format!("none of the client's processes is the agent: {}", shown.join(", ")).into());
        }
        Ok(agents)
    }

    /// Kills one of its processes with SIGKILL.
    pub fn kill(&mut self, pid: u32) -> Result {
        if pid == self.child.id() {
            self.child.kill()?;
            self.child.wait()?;
        } else {
            testkit::processes::kill(pid);
        }
        // A large process takes a while to end, and a check meanwhile finds it running.
        let until = Instant::now() + PATIENCE;
        while runs(pid) {
            if Instant::now() >= until {
                return Err(format!("process {pid} does not end after SIGKILL").into());
            }
            thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    /// Waits until it exits.
    pub fn end(&mut self) -> Result<ExitStatus> {
        let until = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            if Instant::now() >= until {
                return Err(format!("the client did not end within {PATIENCE:?}").into());
            }
            thread::sleep(Duration::from_millis(50));
        }
    }

    /// The end of its output.
    pub fn printed(&self) -> String {
        let text = fs::read(&self.output).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(5)..].join(" / ")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(Some(_))) {
            return;
        }
        kill_with_descendants(self.child.id());
        let _ = self.child.wait();
    }
}
