//! An agent of the demo: a process that claims and completes one work item after another.

use std::path::Path;
use std::time::{Duration, Instant};

use blackboard::agent::{AgentStatus, Heartbeat, Register};
use blackboard::duration::human;
use blackboard::entry::{Actor, Value, Write};
use blackboard::file::{Release as ReleaseFiles, Reserve, Selection};
use blackboard::follow::Follow;
use blackboard::lock::{Acquire, Release};
use blackboard::work::{Claim, ClaimNext, Claimed, Complete, Status, WorkFilter};
use blackboard::{Board, Code, Error, Refusal, Result};

use super::plan::{LOCK, PROJECT, Task, VICTIM, VICTIM_ITEM, task};

/// How long an agent waits for a lock, for work, or to be killed. It is longer than the limit of the story, so that the
/// story reports the problem first.
const LIMIT: Duration = Duration::from_mins(1);

/// How long one sleep takes, and so how soon an agent notices that its parent process has ended.
const SLICE: Duration = Duration::from_secs(1);

/// How many events an agent reads at once.
const BATCH: usize = 1000;

/// Works until all items are completed, or until the parent process is gone.
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
    let is_victim = name == VICTIM;
    let worker = Worker { board, session: &session, pace, repository, is_victim, starter };
    if worker.is_victim {
        let claimed = board.work().claim(&Claim::of(VICTIM_ITEM, &session))?;
        worker.carry_out(&claimed)?;
    }
    let mut idle = false;
    let mut follower =
        board.follow(&Follow { caller: Some(session.clone()), without_values: true, ..Follow::default() })?;
    let mut last_change = Instant::now();
    while parent() == starter {
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
                    board.agents().heartbeat(&Heartbeat { status: idle, ..Heartbeat::of(&session) })?;
                }
                // Any event may have made an item available.
                if follower.next_batch(BATCH, SLICE)?.is_some() {
                    last_change = Instant::now();
                } else if last_change.elapsed() >= LIMIT {
                    return Err(timed_out("work to become available"));
                }
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
    /// The parent process.
    starter: u32,
}

impl Worker<'_> {
    fn is_everything_done(&self) -> Result<bool> {
        let open = WorkFilter { statuses: Status::OPEN.to_vec(), limit: Some(1), ..WorkFilter::default() };
        Ok(self.board.work().list(&open)?.is_empty())
    }

    /// Works on the claimed item: reserves the files, reports progress, writes an entry for the others, and merges.
    fn carry_out(&self, claimed: &Claimed) -> Result<()> {
        let item = &claimed.item.item_id;
        let Some(task) = task(item) else { return Ok(()) };
        self.board.files().reserve(&Reserve::of(self.repository, task.files, self.session))?;
        let delegate = task.delegated.map(|work| self.delegate(work)).transpose()?;
        for step in task.steps {
            self.pause();
            self.board.agents().heartbeat(&Heartbeat {
                progress: Some((*step).to_owned()),
                work_item: Some(item.clone()),
                ..Heartbeat::of(self.session)
            })?;
            if self.is_victim {
                return self.wait_to_be_killed();
            }
        }
        if let Some(delegate) = delegate {
            self.board.agents().deregister(&delegate)?;
        }
        self.share(task)?;
        self.merge()?;
        self.board
            .files()
            .release(&ReleaseFiles { session: self.session.to_owned(), which: Selection::All })?;
        self.board.work().complete(&Complete {
            fence: claimed.item.fence,
            summary: task.steps.last().map(|step| (*step).to_owned()),
            ..Complete::of(item, self.session)
        })?;
        Ok(())
    }

    /// Takes the time of one step, or less if the parent process ends meanwhile.
    fn pause(&self) {
        let began = Instant::now();
        while parent() == self.starter {
            let left = self.pace.saturating_sub(began.elapsed());
            if left.is_zero() {
                return;
            }
            std::thread::sleep(left.min(SLICE));
        }
    }

    /// Waits to be killed. Returns only if that does not happen in time.
    fn wait_to_be_killed(&self) -> Result<()> {
        let began = Instant::now();
        while parent() == self.starter {
            if began.elapsed() >= LIMIT {
                return Err(timed_out("being killed"));
            }
            std::thread::sleep(SLICE);
        }
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
        let by = Actor::session(self.session);
        self.board.scope(PROJECT).acting_as(by).write(&Write::new(key, value))?;
        Ok(())
    }

    /// Merges under a lock, so that only one agent merges at a time.
    fn merge(&self) -> Result<()> {
        self.board.locks().acquire_waiting(&Acquire::of(LOCK, self.session), LIMIT)?;
        self.pause();
        self.board.locks().release(&Release::of(LOCK, self.session))?;
        Ok(())
    }
}

fn timed_out(what: &str) -> Error {
    let message = format!("an agent of the demo waited {} for {what}", human(LIMIT));
    Refusal::new(Code::TimedOut, message).into()
}

/// The parent process. It changes when the parent ends, where the system supports that.
#[cfg(unix)]
fn parent() -> u32 {
    std::os::unix::process::parent_id()
}

/// The parent process. It changes when the parent ends, where the system supports that.
#[cfg(not(unix))]
fn parent() -> u32 {
    0
}
