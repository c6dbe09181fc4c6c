//! Waiting for a key or a lock, on no thread of its own.

use std::time::Duration;

use blackboard::entry::WaitFor;
use blackboard::lock::{Acquire, Release};
use blackboard::{Code, Error, Refusal, Result, Revision};
use rmcp::schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio::time::{Instant, sleep_until};

use super::reply::{Reply, ShownEntry};
use super::state::blocking;
use super::tools::{Arguments, Call, WaitingTool, given_up, wrong};

/// How long to wait if it is not said, and at most. Clients give up on a tool after a minute or so.
const SECONDS: u64 = 30;
const MOST: u64 = 600;

/// How often a wait checks for holders whose process is gone and for expired entries, which no event reports.
const TICK: Duration = Duration::from_secs(1);

/// Wait until an entry is written, or until you get a lock. `timed_out` is no failure: call again if you still want it.
#[derive(Clone, Deserialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
#[serde(deny_unknown_fields)]
pub struct Wait {
    key: Option<String>,
    lock: Option<String>,
    scope: Option<String>,
    /// With key: only a revision after this one
    after: Option<i64>,
    /// At most 600; default 30
    seconds: Option<u64>,
}

impl Arguments for Wait {
    const NAME: &'static str = "wait";
    const READS: bool = false;
}

/// What came of one look.
enum Looked {
    Got {
        reply: Reply,
        took: Option<Release>,
    },
    /// What is said if nothing better comes in time.
    NotYet(Error),
}

#[derive(Serialize)]
struct Appeared {
    entry: ShownEntry,
}

/// It did not come in time, which is an answer like any other.
#[derive(Serialize)]
struct NotInTime<'a> {
    timed_out: bool,
    waited_seconds: u64,
    /// What was missing to the end.
    missing: String,
    hint: &'static str,
    /// Who holds it, for instance.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    details: Option<&'a Map<String, Value>>,
}

impl NotInTime<'_> {
    fn of(missing: &Error, waited_seconds: u64) -> NotInTime<'_> {
        NotInTime {
            timed_out: true,
            waited_seconds,
            missing: missing.to_string(),
            hint: "call again to go on waiting, or ask who is at work",
            details: missing.details(),
        }
    }
}

impl WaitingTool for Wait {
    async fn call(self, call: Call) -> Result<Reply> {
        if self.key.is_some() == self.lock.is_some()
            || (self.lock.is_some() && (self.scope.is_some() || self.after.is_some()))
        {
            return Err(wrong("say what to wait for", "give either key, with scope and after, or lock"));
        }
        let seconds = self.seconds.unwrap_or(SECONDS).min(MOST);
        let until = Instant::now() + Duration::from_secs(seconds);
        let mut ended = call.desk.ended.clone();
        let desk = call.desk.clone();
        let mut log = blocking(move || desk.follow()).await?;
        let mut refused = None;
        loop {
            // Before the look: what happens after it ends the sleep.
            log.borrow_and_update();
            let (wanted, looking) = (self.clone(), call.clone());
            // The first look and the last one tell what is missing.
            let is_last = Instant::now() >= until;
            let refused_before = refused.take().filter(|_| !is_last);
            let missing = match blocking(move || wanted.look(&looking, refused_before)).await? {
                Looked::Got { took: Some(lock), .. } if call.is_cancelled() => {
                    // Nobody will ever know that it is theirs.
                    let desk = call.desk.clone();
                    blocking(move || desk.board()?.locks().release(&lock)).await?;
                    return Err(given_up());
                }
                Looked::Got { reply, .. } => return Ok(reply),
                Looked::NotYet(missing) => missing,
            };
            if is_last {
                return Reply::new(&NotInTime::of(&missing, seconds));
            }
            tokio::select! {
                changed = log.changed() => if changed.is_err() {
                    return Err(missing);
                },
                () = sleep_until(until.min(Instant::now() + TICK)) => {}
                () = call.context.ct.cancelled() => return Err(given_up()),
                _ = ended.wait_for(|ended| *ended) => return Err(given_up()),
            }
            refused = Some(missing);
        }
    }
}

impl Wait {
    /// Looks once. A lock that was refused before is tried again only if a read shows that it can be had: an attempt takes
    /// the write lock.
    fn look(self, call: &Call, refused_before: Option<Error>) -> Result<Looked> {
        if call.is_cancelled() {
            return Ok(Looked::NotYet(given_up()));
        }
        if let Some(name) = self.lock {
            let (board, session) = call.desk.acting(&call.caller)?;
            let acquire = Acquire::of(&name, &session);
            if let Some(refused) = refused_before
                && !board.locks().can_acquire(&acquire, true)?
            {
                return Ok(Looked::NotYet(refused));
            }
            return match board.locks().acquire(&acquire) {
                Ok(acquired) => {
                    let fence = Some(acquired.lock.fence);
                    let took = acquired.acquired.then_some(Release { name, session, fence });
                    Ok(Looked::Got { reply: Reply::new(&acquired)?, took })
                }
                Err(error) if error.code() == Code::Held => Ok(Looked::NotYet(error)),
                Err(error) => Err(error),
            };
        }
        let (board, _) = call.desk.reading(&call.caller)?;
        let at_once = WaitFor { timeout: Some(Duration::ZERO), after: self.after.map(Revision::new) };
        match board.scope(&call.desk.scope(self.scope)).wait(&self.key.unwrap_or_default(), &at_once) {
            Ok(entry) => Ok(Looked::Got {
                reply: Reply::new(&Appeared { entry: ShownEntry::alone(entry) })?,
                took: None,
            }),
            Err(error) if error.code() == Code::TimedOut => {
                let message = "nobody wrote it";
                Ok(Looked::NotYet(Refusal::new(Code::TimedOut, message).into()))
            }
            Err(error) => Err(error),
        }
    }
}
