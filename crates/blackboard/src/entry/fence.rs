//! [`Fence`]: proof that a lock or a claim is still held.

use std::fmt;
use std::str::FromStr;

use super::{Entry, LOCKS};
use crate::error::{Code, Error, Refusal, Result};
use crate::revision::Revision;
use crate::store::{Key, Prefetch, Tx};
use crate::work::{Status, WorkItem};

/// What has to be held, at exactly the revision at which it was taken: whoever lost it in between, and whoever took it
/// anew, has another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fence {
    /// A lock.
    Lock {
        /// Its name.
        name: String,
        /// The fence that taking it gave.
        fence: Revision,
    },
    /// A work item.
    Work {
        /// Its id.
        id: String,
        /// The fence that claiming it gave.
        fence: Revision,
    },
}

impl Fence {
    /// What [`Fence::check`] reads.
    pub(super) fn prefetch(&self) -> Prefetch<'_> {
        match self {
            Fence::Lock { name, .. } => Prefetch::Entry(LOCKS, name),
            Fence::Work { id, .. } => Prefetch::Row(Key::WorkItem(id.clone())),
        }
    }

    /// Refuses if that is not held any more.
    pub(crate) fn check(&self, tx: &dyn Tx) -> Result<()> {
        let (current, expected) = match self {
            Fence::Lock { name, fence } => {
                let lock = tx.row::<Entry>(&Key::Entry(LOCKS.to_owned(), name.clone()))?;
                let lock = lock.filter(|lock| !lock.is_expired(tx.now()));
                (lock.and_then(|lock| lock.fence), fence)
            }
            Fence::Work { id, fence } => {
                let item = tx.row::<WorkItem>(&Key::WorkItem(id.clone()))?;
                let claimed =
                    item.filter(|item| item.claimed_by.is_some() && item.status != Status::Completed);
                (claimed.and_then(|item| item.fence), fence)
            }
        };
        if current == Some(*expected) { Ok(()) } else { Err(self.is_stale(current)) }
    }

    fn is_stale(&self, current: Option<Revision>) -> Error {
        let now = match current {
            Some(current) => format!("it is held at {current} now"),
            None => "nobody holds it now".to_owned(),
        };
        Refusal::new(Code::StaleFence, format!("the fence {self} is stale: {now}; nothing was changed"))
            .hint("somebody else may have gone on with it: look before you take it again")
            .detail("fence", current.map(Revision::get))
            .into()
    }
}

impl fmt::Display for Fence {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fence::Lock { name, fence } => write!(formatter, "lock:{name}={fence}"),
            Fence::Work { id, fence } => write!(formatter, "work:{id}={fence}"),
        }
    }
}

/// `lock:NAME=N` or `work:ID=N`.
///
/// ```
/// use blackboard::{Revision, entry::Fence};
///
/// let fence: Fence = "work:gh:owner/repo#78=42".parse()?;
/// assert_eq!(fence, Fence::Work { id: "gh:owner/repo#78".to_owned(), fence: Revision::new(42) });
/// assert!("deploy=42".parse::<Fence>().is_err());
/// # Ok::<(), blackboard::Error>(())
/// ```
impl FromStr for Fence {
    type Err = Error;

    fn from_str(text: &str) -> Result<Fence> {
        let read = || {
            let (held, fence) = text.rsplit_once('=')?;
            let fence = Revision::new(fence.parse().ok().filter(|fence| *fence > 0)?);
            match held.split_once(':')? {
                (_, "") => None,
                ("lock", name) => Some(Fence::Lock { name: name.to_owned(), fence }),
                ("work", id) => Some(Fence::Work { id: id.to_owned(), fence }),
                _ => None,
            }
        };
        read().ok_or_else(|| {
            let shown = crate::text::shown(text);
            Refusal::new(Code::InvalidValue, format!("{shown} is not a fence"))
                .hint("write lock:NAME=N or work:ID=N, with the fence that taking it gave")
                .into()
        })
    }
}
