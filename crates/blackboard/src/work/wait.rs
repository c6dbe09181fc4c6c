//! `work wait`: waits until an item has a status.

use std::time::Duration;

use super::{Status, Work, WorkItem, existing};
use crate::error::{AgeKind, Code, Error, Refusal, Result};
use crate::follow::{Check, Sweeping, Wait, Wake};
use crate::hint::Hint;
use crate::revision::Revision;
use crate::store::{CallLimit, Key, Prefetch};

/// The longest time between two checks.
const TICK: Duration = Duration::from_secs(1);

/// An item to wait for, and how long.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WaitForItem {
    /// The item.
    pub id: String,
    /// The statuses that end the wait; `completed` if it is empty.
    pub statuses: Vec<Status>,
    /// The timeout; none by default.
    pub timeout: Option<Duration>,
    /// The session that waits, which its own sweep never marks stale.
    pub session: Option<String>,
}

impl WaitForItem {
    /// Waits until this item is completed, without a timeout.
    pub fn completed(id: &str) -> WaitForItem {
        WaitForItem { id: id.to_owned(), ..WaitForItem::default() }
    }
}

impl Work<'_> {
    /// Waits until an item has one of the statuses, and returns it. Returns at once if it has one already. After the
    /// timeout it fails with the code `timed_out`. An item that does not exist, or that is deleted meanwhile, is not
    /// found. Sweeps automatically while it waits: the process of the holder may be gone.
    ///
    /// The item is checked after each commit of other processes. A status that it has only for a moment can be missed.
    ///
    /// ```
    /// use blackboard::Board;
    /// use blackboard::agent::Register;
    /// use blackboard::work::{Claim, Complete, Create, WaitForItem};
    ///
    /// let board = Board::memory();
    /// let session = board.agents().register(&Register::named("Ivy"))?.agent.session_id;
    /// board.work().create(&Create::new("fix-tests", "Fix the tests"))?;
    /// board.work().claim(&Claim::of("fix-tests", &session))?;
    /// let other = board.clone();
    /// let holder = std::thread::spawn(move || other.work().complete(&Complete::of("fix-tests", &session)));
    /// let item = board.work().wait(&WaitForItem::completed("fix-tests"))?;
    /// assert_eq!(item.claimed_by_name.as_deref(), Some("Ivy"));
    /// # holder.join().unwrap()?;
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn wait(&self, wait: &WaitForItem) -> Result<WorkItem> {
        let statuses: &[Status] =
            if wait.statuses.is_empty() { &[Status::Completed] } else { &wait.statuses };
        let waiting = Wait {
            timeout: wait.timeout.unwrap_or(Duration::MAX),
            tick: TICK,
            sweep: Sweeping::For(wait.session.as_deref()),
            stop: None,
        };
        let _limit = CallLimit::after(waiting.timeout);
        let mut last = None;
        let found = self.board.check_until(&waiting, |wake| {
            let (mut item, mut seen) = self.item_to_wait_for(&wait.id)?;
            // No event reports that the process of the holder is gone.
            let holder = item.claimed_by.as_deref().filter(|holder| Some(*holder) != wait.session.as_deref());
            if !matches!(wake, Wake::Changed(_)) && self.board.sweep_gone(holder.into_iter()) {
                (item, seen) = self.item_to_wait_for(&wait.id)?;
            }
            if statuses.contains(&item.status) {
                return Ok(Check::Done(item));
            }
            last = Some(item);
            Ok(Check::After(seen))
        })?;
        found.ok_or_else(|| timed_out(wait, last.as_ref()))
    }

    /// An item, and the revision of the same read.
    fn item_to_wait_for(self, id: &str) -> Result<(WorkItem, Revision)> {
        let prefetch = [Prefetch::Row(Key::WorkItem(id.to_owned())), Prefetch::Revision];
        self.board.read(&prefetch, |tx| Ok((existing(tx, id)?, tx.revision()?)))
    }
}

fn timed_out(wait: &WaitForItem, last: Option<&WorkItem>) -> Error {
    let waited = crate::duration::waited(wait.timeout.unwrap_or_default());
    let status = last.map_or("open", |item| item.status.as_str());
    let held = last.and_then(|item| Some((item, item.claimed_by.clone()?)));
    let holder = match &held {
        Some((item, _)) if item.status == Status::Claimed => format!(" by {}", item.holder()),
        // A session may still hold an item that became blocked.
        Some((item, _)) => format!(", claimed by {}", item.holder()),
        None => String::new(),
    };
    let message = format!("timed out after {waited}: work item {} is still {status}{holder}", wait.id);
    let refusal = Refusal::new(Code::TimedOut, message)
        .hint(Hint::WaitLongerForItem(wait.id.clone()))
        .detail("status", status);
    match held {
        Some((item, session)) => {
            let refusal = refusal.age(AgeKind::Held, item.claimed_at, "");
            refusal.held_by(session, item.claimed_by_name.clone(), item.claimed_at).into()
        }
        None => refusal.into(),
    }
}
