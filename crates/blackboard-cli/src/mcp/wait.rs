//! Waits for a key or a lock without blocking a thread.

use std::borrow::Cow;
use std::time::{Duration, Instant};

use blackboard::follow::{Check, Pace, Wake};
use blackboard::lock::{Acquire, LockWait, Release};
use blackboard::store::CallLimit;
use blackboard::{Code, Error, Fault, Hint, Refusal, Result, Revision};
use rmcp::schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio::time::sleep;

use super::hints::as_tool;
use super::reply::{Reply, ShownEntry};
use super::state::blocking;
use super::tools::{Arguments, Call, WaitingTool, given_up, wrong};

/// The default and the maximum timeout. Clients give up on a tool after about a minute.
const SECONDS: u64 = 30;
const MOST: u64 = 600;

/// Wait until an entry is written or you have acquired a lock. `timed_out` is not an error: call again to keep waiting.
#[derive(Deserialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
#[serde(deny_unknown_fields)]
pub struct Wait {
    key: Option<String>,
    lock: Option<String>,
    scope: Option<String>,
    /// key: only a later revision
    after: Option<i64>,
    /// At most 600; default 30
    seconds: Option<u64>,
}

impl Arguments for Wait {
    const NAME: &'static str = "wait";
    const READS: bool = false;
}

/// What a call waits for.
enum Condition {
    /// An entry of this key, with a greater revision than `after`.
    Entry { scope: String, key: String, after: Option<Revision> },
    /// The lock with this name.
    Lock { name: String, wait: LockWait },
}

/// The outcome of a check.
enum Checked {
    /// The condition holds. `acquired` is the lock that this check acquired.
    Done { reply: Reply, acquired: Option<Release> },
    /// It does not hold. The last check also returns the reason.
    NotYet(Option<Error>),
}

#[derive(Serialize)]
struct Appeared {
    entry: ShownEntry,
}

/// The result of a wait that timed out. It is not an error.
#[derive(Serialize)]
struct NotInTime<'a> {
    timed_out: bool,
    waited_seconds: u64,
    /// What the call waited for.
    missing: String,
    hint: Cow<'static, str>,
    /// Details, for example the holder.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    details: Option<&'a Map<String, Value>>,
}

impl NotInTime<'_> {
    fn of(missing: &Error, waited_seconds: u64) -> NotInTime<'_> {
        NotInTime {
            timed_out: true,
            waited_seconds,
            missing: missing.to_string(),
            hint: as_tool(&Hint::WaitLongerForKey),
            details: missing.details(),
        }
    }
}

impl WaitingTool for Wait {
    async fn call(self, call: Call) -> Result<Reply> {
        let seconds = self.seconds.unwrap_or(SECONDS).min(MOST);
        let mut condition = self.condition(&call)?;
        let mut pace = Pace::new(Duration::from_secs(seconds), LockWait::TICK);
        // A server that does not answer keeps the call no longer than that.
        let end = Instant::now().checked_add(Duration::from_secs(seconds));
        let mut ended = call.state.ended.clone();
        let state = call.state.clone();
        let mut log = blocking(move || {
            let _limit = CallLimit::until(end);
            state.follow()
        })
        .await?;
        let mut wake = Wake::First;
        loop {
            // Subscribe before the check, so that an event after the check ends the sleep.
            log.borrow_and_update();
            pace.begin_check();
            let (checking, is_last) = (call.clone(), pace.next_sleep().is_none());
            let checked;
            (condition, checked) = blocking(move || {
                let _limit = CallLimit::until(end);
                let state = checking.state.clone();
                let checked = state.on_current_board(|| condition.check(&checking, wake, is_last))?;
                Ok((condition, checked))
            })
            .await?;
            match checked {
                Checked::Done { acquired: Some(lock), .. } if call.is_canceled() => {
                    // The client would never learn that it holds the lock.
                    let state = call.state.clone();
                    blocking(move || state.board()?.locks().release(&lock)).await?;
                    return Err(given_up());
                }
                Checked::Done { reply, .. } => return Ok(reply),
                Checked::NotYet(Some(missing)) => return Reply::new(&NotInTime::of(&missing, seconds)),
                Checked::NotYet(None) => {}
            }
            let longest = pace.next_sleep().unwrap_or_default();
            wake = tokio::select! {
                changed = log.changed() => {
                    changed.map_err(|error| {
                        Fault::new(Code::Internal, "cannot follow the event log").because(error)
                    })?;
                    Wake::Changed(log.borrow().board)
                }
                () = sleep(longest) => Wake::Unchanged,
                () = call.context.ct.cancelled() => return Err(given_up()),
                _ = ended.wait_for(|ended| *ended) => return Err(given_up()),
            };
        }
    }
}

impl Wait {
    fn condition(self, call: &Call) -> Result<Condition> {
        let Wait { key, lock, scope, after, .. } = self;
        match (key, lock) {
            (Some(key), None) => {
                let (scope, after) = (call.state.scope(scope), after.map(Revision::new));
                Ok(Condition::Entry { scope, key, after })
            }
            (None, Some(name)) if scope.is_none() && after.is_none() => {
                Ok(Condition::Lock { name, wait: LockWait::new() })
            }
            _ => Err(wrong("no key or lock given", "pass either key, with scope and after, or lock")),
        }
    }
}

impl Condition {
    /// Checks once. The last check also returns what is missing.
    fn check(&mut self, call: &Call, wake: Wake, is_last: bool) -> Result<Checked> {
        // The call may have waited a long time for a thread.
        if call.is_canceled() {
            return Err(given_up());
        }
        match self {
            Condition::Entry { scope, key, after } => {
                let (board, _) = call.state.reading(&call.caller)?;
                match board.scope(scope).check_key(key, *after)? {
                    Check::Done(entry) => {
                        let reply = Reply::new(&Appeared { entry: ShownEntry::alone(entry) })?;
                        Ok(Checked::Done { reply, acquired: None })
                    }
                    Check::After(_) => {
                        let missing = || Refusal::new(Code::TimedOut, "the key was not written").into();
                        Ok(Checked::NotYet(is_last.then(missing)))
                    }
                }
            }
            Condition::Lock { name, wait } => {
                let (board, session) = call.state.acting(&call.caller)?;
                let acquire = Acquire::of(name, &session);
                let acquired = match wait.check(&board, &acquire, wake)? {
                    Check::Done(acquired) => acquired,
                    Check::After(_) if !is_last => return Ok(Checked::NotYet(None)),
                    Check::After(_) => match board.locks().acquire(&acquire) {
                        Err(error) if error.code() == Code::Held => return Ok(Checked::NotYet(Some(error))),
                        acquired => acquired?,
                    },
                };
                let fence = Some(acquired.lock.fence);
                let release = acquired.acquired.then(|| Release { name: name.clone(), session, fence });
                Ok(Checked::Done { reply: Reply::new(&acquired)?, acquired: release })
            }
        }
    }
}
