//! One agent of the demonstration: a process that takes what there is to do, one thing after the other.

use std::path::Path;
use std::time::Duration;

use blackboard::agent::{AgentStatus, Beat, Register};
use blackboard::entry::{By, Value, Write};
use blackboard::file::{Release as ReleaseFiles, Reserve, Which};
use blackboard::lock::{Acquire, Release};
use blackboard::work::{ClaimNext, Claimed, Complete, Status, WorkFilter};
use blackboard::{Board, Code, Result, Revision};

use super::plan::{LOCK, PROJECT, Task, VICTIM, task};

/// How long the one that is killed gives its end.
const TO_BE_KILLED: Duration = Duration::from_secs(20);

/// How long one waits for the lock.
const PATIENCE: Duration = Duration::from_mins(1);

/// Works until everything is done, or whoever started this process is gone.
pub fn work(board: &Board, name: &str, pace: Duration, repository: &Path) -> Result<()> {
    let starter = parent();
    let session = board
        .agents()
        .register(&Register {
            project: Some(PROJECT.to_owned()),
            pid: Some(std::process::id()),
            ..Register::named(name)
        })?
        .agent
        .session_id;
    let repository = &*repository.to_string_lossy();
    let worker = Worker { board, session: &session, pace, repository, is_victim: name == VICTIM };
    let mut idle = false;
    while parent() == starter {
        let seen = board.wait(Revision::ZERO, Duration::ZERO)?;
        match board.work().claim_next(&ClaimNext { session: session.clone(), ..ClaimNext::default() }) {
            Ok(claimed) => {
                idle = false;
                worker.carry_out(&claimed)?;
            }
            Err(error) if error.code() == Code::NothingAvailable => {
                if worker.is_everything_done()? {
                    break;
                }
                if !std::mem::replace(&mut idle, true) {
                    let idle = Some(AgentStatus::Idle);
                    board.agents().heartbeat(&Beat { status: idle, ..Beat::of(&session) })?;
                }
                // Whatever happens now may have set something free.
                board.wait(seen, Duration::from_secs(1))?;
            }
            Err(error) => return Err(error),
        }
    }
    board.agents().deregister(&session)?;
    Ok(())
}

struct Worker<'a> {
    board: &'a Board,
    session: &'a str,
    pace: Duration,
    repository: &'a str,
    is_victim: bool,
}

impl Worker<'_> {
    fn is_everything_done(&self) -> Result<bool> {
        let open = WorkFilter { statuses: Status::OPEN.to_vec(), limit: Some(1), ..WorkFilter::default() };
        Ok(self.board.work().list(&open)?.is_empty())
    }

    /// Does what it has claimed: reserves the files, tells how far it is, leaves what others need to know, and merges.
    fn carry_out(&self, claimed: &Claimed) -> Result<()> {
        let item = &claimed.item.item_id;
        let Some(task) = task(item) else { return Ok(()) };
        self.board.files().reserve(&Reserve::of(self.repository, task.files, self.session))?;
        let delegate = task.delegated.map(|work| self.delegate(work)).transpose()?;
        for step in task.steps {
            std::thread::sleep(self.pace);
            self.board.agents().heartbeat(&Beat {
                progress: Some((*step).to_owned()),
                work_item: Some(item.clone()),
                ..Beat::of(self.session)
            })?;
            if self.is_victim {
                // It is killed now, however busy the machine is.
                std::thread::sleep(TO_BE_KILLED);
            }
        }
        if let Some(delegate) = delegate {
            self.board.agents().deregister(&delegate)?;
        }
        self.share(task)?;
        self.merge()?;
        self.board.files().release(&ReleaseFiles { session: self.session.to_owned(), which: Which::All })?;
        self.board.work().complete(&Complete {
            fence: claimed.item.fence,
            summary: task.steps.last().map(|step| (*step).to_owned()),
            ..Complete::of(item, self.session)
        })?;
        Ok(())
    }

    fn delegate(&self, work: &str) -> Result<String> {
        let registered = self.board.agents().register(&Register {
            parent: Some(self.session.to_owned()),
            work: Some(work.to_owned()),
            pid: Some(std::process::id()),
            shares_process: true,
            ..Register::default()
        })?;
        Ok(registered.agent.session_id)
    }

    fn share(&self, task: &Task) -> Result<()> {
        let (key, value) = task.fact;
        let value = Value::parse(value, self.board.settings().max_value_bytes)?;
        let by = By::session(self.session);
        self.board.scope(PROJECT).by(by).write(&Write::new(key, value))?;
        Ok(())
    }

    /// Only one at a time.
    fn merge(&self) -> Result<()> {
        self.board.locks().acquire_waiting(&Acquire::of(LOCK, self.session), PATIENCE)?;
        std::thread::sleep(self.pace);
        self.board.locks().release(&Release::of(LOCK, self.session))?;
        Ok(())
    }
}

/// Who started this process; another one once that is dead, where the system tells.
#[cfg(unix)]
fn parent() -> u32 {
    std::os::unix::process::parent_id()
}

/// Who started this process; another one once that is dead, where the system tells.
#[cfg(not(unix))]
fn parent() -> u32 {
    0
}
