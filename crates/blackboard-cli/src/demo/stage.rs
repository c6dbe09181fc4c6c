//! The board, the processes and the dashboard of a demo. Dropping them ends the processes and removes the directory.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use blackboard::project::RegisterProject;
use blackboard::work::Create;
use blackboard::{Board, Code, Fault, Result};
use tempfile::TempDir;

use super::plan::{PROJECT, TASKS};
use crate::engine::{Engine, Mode, Opening};
use crate::open::ResolvedBoard;
use crate::web::{Listening, Options, Running};

/// The board, the agents and the dashboard of a demo.
pub struct Stage {
    /// The board.
    pub board: Board,
    /// Its engine.
    pub engine: Arc<dyn Engine>,
    /// The agents, in the order of their names.
    agents: Vec<Process>,
    pace: Duration,
    dashboard: Running,
    directory: TempDir,
}

/// A process that is killed when the demo ends.
struct Process {
    name: &'static str,
    child: Child,
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Stage {
    /// A new board with all work items, and no agent.
    pub fn build(pace: Duration) -> Result<Stage> {
        let mut builder = tempfile::Builder::new();
        builder.prefix("blackboard-demo-");
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700));
        let directory = builder
            .tempdir()
            .map_err(|error| Fault::new(Code::Io, "a scratch directory cannot be created").because(error))?;
        let resolved = ResolvedBoard::unconfigured(&file_in(directory.path()));
        let board = resolved.open(Opening::staying(Mode::Create))?.board;
        let dashboard = show(resolved.clone())?;
        let stage = Stage { board, engine: resolved.engine, agents: Vec::new(), pace, dashboard, directory };
        stage.fill()?;
        Ok(stage)
    }

    fn fill(&self) -> Result<()> {
        let path = self.repository().to_string_lossy().into_owned();
        let project =
            RegisterProject { path: Some(path), ..RegisterProject::new(PROJECT, "The orchard shop") };
        self.board.projects().register(&project)?;
        for task in TASKS {
            self.board.work().create(&Create {
                project: Some(PROJECT.to_owned()),
                priority: Some(task.priority.parse()?),
                blocked_by: task.after.iter().map(|id| (*id).to_owned()).collect(),
                ..Create::new(task.id, task.title)
            })?;
        }
        Ok(())
    }

    /// The URL of the dashboard.
    pub fn url(&self) -> String {
        self.dashboard.url()
    }

    /// The dashboard.
    pub fn dashboard(&self) -> &Running {
        &self.dashboard
    }

    /// The directory in which the agents pretend to work.
    fn repository(&self) -> PathBuf {
        self.directory.path().join(PROJECT)
    }

    /// Starts one agent.
    pub fn start(&mut self, name: &'static str) -> Result<()> {
        let child = self
            .program()?
            .args(["demo", "--as", name, "--pace", &self.pace.as_millis().to_string()])
            .arg("--db")
            .arg(file_in(self.directory.path()))
            .spawn()
            .map_err(|error| Fault::new(Code::Io, "an agent cannot be started").because(error))?;
        self.agents.push(Process { name, child });
        Ok(())
    }

    /// This program, with an environment that hides the user's files.
    fn program(&self) -> Result<Command> {
        let program = std::env::current_exe()
            .map_err(|error| Fault::new(Code::Io, "this program cannot be found again").because(error))?;
        let mut command = Command::new(program);
        command.current_dir(self.directory.path()).env("BLACKBOARD_HOME", self.directory.path());
        for name in ["BLACKBOARD_DB", "BLACKBOARD_SESSION_ID", "BLACKBOARD_PID"] {
            command.env_remove(name);
        }
        // Agents report errors on stderr, as every command does.
        command.stdin(Stdio::null()).stdout(Stdio::null());
        Ok(command)
    }

    /// The process of an agent.
    pub fn pid_of(&self, name: &str) -> Option<u32> {
        self.agents.iter().find(|agent| agent.name == name).map(|agent| agent.child.id())
    }

    /// Kills an agent with SIGKILL.
    pub fn kill(&mut self, name: &str) {
        self.agents.retain(|agent| agent.name != name);
    }

    /// How many agents are running. An agent that has failed is a fault: nothing releases what it held soon enough.
    pub fn count_running(&mut self) -> Result<usize> {
        let mut running = 0;
        for agent in &mut self.agents {
            match agent.child.try_wait() {
                Ok(None) => running += 1,
                Ok(Some(status)) if status.success() || was_asked_to_end(status) => {}
                Ok(Some(status)) => {
                    let message = format!("agent {} of the demo failed ({status})", agent.name);
                    return Err(Fault::new(Code::Internal, message).into());
                }
                Err(error) => {
                    let message = format!("agent {} of the demo cannot be watched", agent.name);
                    return Err(Fault::new(Code::Io, message).because(error).into());
                }
            }
        }
        Ok(running)
    }
}

/// Whether a signal that asks a process to end has ended an agent. Ctrl-C at a terminal goes to the agents too, perhaps before
/// this process notices it.
#[cfg(unix)]
fn was_asked_to_end(status: ExitStatus) -> bool {
    use std::os::unix::process::ExitStatusExt;

    use rustix::process::Signal;
    let asks = [Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT];
    asks.into_iter().any(|asked| status.signal() == Some(asked.as_raw()))
}

/// Whether a signal that asks a process to end has ended an agent: this system has none.
#[cfg(not(unix))]
fn was_asked_to_end(_status: ExitStatus) -> bool {
    false
}

/// Serves the dashboard until this process ends, and returns its URL.
fn show(board: ResolvedBoard) -> Result<Running> {
    let host = Ipv4Addr::LOCALHOST.into();
    let options = Options { host, port: 0, to_be_found: false, token: true };
    let listening = Listening::bind(board, true, options)?;
    let dashboard = listening.running();
    std::thread::Builder::new()
        .name("dashboard".to_owned())
        // The page shows that the server has ended, and the demo continues without it.
        .spawn(move || drop(listening.run()))
        .map_err(|error| Fault::new(Code::Io, "the dashboard cannot be started").because(error))?;
    Ok(dashboard)
}

fn file_in(directory: &Path) -> PathBuf {
    directory.join("local.db")
}
