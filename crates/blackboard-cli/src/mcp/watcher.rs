//! The thread that follows the event log for all calls that wait.
//!
//! It runs while a call waits, and publishes the latest revision of the event log and of each kind of object. Each
//! waiting call compares that with what it has seen, so it misses no change. A slow call sees several changes at once.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use blackboard::event::TargetType;
use blackboard::follow::{Follow, Follower};
use blackboard::{Board, Code, Fault, Result, Revision};
use tokio::sync::watch;

/// How long one wait lasts. When no call waits, the thread ends within this time.
const SLICE: Duration = Duration::from_secs(1);

/// The name of the thread.
const THREAD: &str = "follows the log";

/// The maximum number of events per read.
const BATCH: usize = 500;

/// The latest revision of the event log, and of each kind of object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LatestRevisions {
    /// The number of previous boards: revisions of different boards cannot be compared.
    pub boards_before: u64,
    /// The last event.
    pub board: Revision,
    /// The last event about an agent.
    pub agents: Revision,
    /// The last event about a work item.
    pub work: Revision,
}

/// Publishes changes of the event log to the calls that wait.
#[derive(Default)]
pub struct EventWatcher {
    following: Arc<Mutex<Option<watch::Sender<LatestRevisions>>>>,
}

impl EventWatcher {
    /// Returns a receiver of all events on the board from now on. If the board is deleted or replaced, `reopen` opens
    /// the current one. `caller` is the session of the client, which the sweeps of this thread never mark stale.
    pub fn follow(
        &self,
        board: &Board,
        reopen: impl Fn() -> Result<Option<Board>> + Send + 'static,
        caller: impl Fn() -> Option<String> + Send + 'static,
    ) -> Result<watch::Receiver<LatestRevisions>> {
        let mut following = lock(&self.following);
        if let Some(sender) = &*following {
            return Ok(sender.subscribe());
        }
        let follower = follower(board)?;
        let (sender, receiver) = watch::channel(LatestRevisions::at(follower.position(), 0));
        let shared = Arc::clone(&self.following);
        std::thread::Builder::new()
            .name(THREAD.to_owned())
            .spawn(move || run(follower, &shared, reopen, caller))
            .map_err(|error| Fault::new(Code::Io, "cannot follow the event log").because(error))?;
        *following = Some(sender);
        Ok(receiver)
    }
}

impl LatestRevisions {
    /// The end of a board's event log.
    fn at(revision: Revision, boards_before: u64) -> LatestRevisions {
        LatestRevisions { boards_before, board: revision, agents: revision, work: revision }
    }
}

/// Follows another board from now on.
fn follower(board: &Board) -> Result<Follower> {
    board.follow(&Follow { without_values: true, ..Follow::default() })
}

/// Follows the event log until no call waits.
fn run(
    mut follower: Follower,
    following: &Mutex<Option<watch::Sender<LatestRevisions>>>,
    reopen: impl Fn() -> Result<Option<Board>>,
    caller: impl Fn() -> Option<String>,
) {
    loop {
        let seen = {
            let mut following = lock(following);
            // No call can start to wait meanwhile, because that needs the same lock.
            match &*following {
                Some(sender) if sender.receiver_count() > 0 => *sender.borrow(),
                _ => {
                    *following = None;
                    return;
                }
            }
        };
        follower.set_caller(caller());
        let mut now = read_on(&mut follower, seen);
        if follower.board().check_still_there().is_err()
            && let Ok(Some(other)) = reopen()
            && let Ok(other) = self::follower(&other)
        {
            now = LatestRevisions::at(other.position(), seen.boards_before + 1);
            follower = other;
        }
        if now != seen
            && let Some(sender) = &*lock(following)
        {
            sender.send_replace(now);
        }
    }
}

/// Waits for the next events after `seen`.
fn read_on(follower: &mut Follower, mut seen: LatestRevisions) -> LatestRevisions {
    match follower.next_batch(BATCH, SLICE) {
        Ok(Some(batch)) => {
            for event in batch.events {
                match event.target_type {
                    Some(TargetType::Agent) => seen.agents = event.id,
                    Some(TargetType::WorkItem) => seen.work = event.id,
                    Some(
                        TargetType::Project | TargetType::Protocol | TargetType::Entry | TargetType::Scope,
                    )
                    | None => {}
                }
            }
            seen.board = batch.last;
        }
        // The pruned events may have been about anything.
        Err(error) if error.code() == Code::Compacted => {
            seen = LatestRevisions::at(follower.position(), seen.boards_before);
        }
        // Without a board there are no events. It may come back, and the follower pauses before it tries again.
        Ok(None) | Err(_) => {}
    }
    seen
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use blackboard::agent::Register;
    use blackboard::work::Create;

    use super::*;

    fn next(receiver: &mut watch::Receiver<LatestRevisions>) -> LatestRevisions {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            tokio::time::timeout(Duration::from_mins(1), receiver.changed()).await.unwrap().unwrap();
        });
        *receiver.borrow_and_update()
    }

    #[test]
    fn followers_see_what_kind_of_row_changed() {
        testkit::limit_test();
        let (board, log) = (Board::memory(), EventWatcher::default());
        board.agents().register(&Register::named("Ivy")).unwrap();
        let mut receiver = log.follow(&board, || Ok(None), || None).unwrap();
        let start = *receiver.borrow_and_update();
        board.work().create(&Create::new("x", "X")).unwrap();
        let seen = next(&mut receiver);
        assert!(seen.board > start.board && seen.work > start.work && seen.agents == start.agents);
        board.agents().register(&Register::named("Oak")).unwrap();
        let later = next(&mut receiver);
        assert!(later.agents > seen.agents && later.work == seen.work);
    }

    #[test]
    fn the_thread_ends_without_waiting_calls_and_starts_again_for_the_next_one() {
        testkit::limit_test();
        let (board, log) = (Board::memory(), EventWatcher::default());
        drop(log.follow(&board, || Ok(None), || None).unwrap());
        testkit::wait_until("the end of the thread", || lock(&log.following).is_none().then_some(()));
        let mut receiver = log.follow(&board, || Ok(None), || None).unwrap();
        board.work().create(&Create::new("x", "X")).unwrap();
        assert!(next(&mut receiver).work > Revision::ZERO);
    }
}
