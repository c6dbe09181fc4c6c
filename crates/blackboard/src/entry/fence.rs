//! [`FenceToken`]: proof that a lock or a claim is still held.

use std::fmt;
use std::str::FromStr;

use super::LOCKS;
use crate::error::{Code, Error, Refusal, Result};
use crate::hint::Hint;
use crate::revision::Revision;
use crate::store::{Key, Prefetch};

/// A lock or work item that has to be held at exactly the revision of its acquisition. A session that lost it, and
/// also one that acquired it again, has another revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FenceToken {
    /// A lock.
    Lock {
        /// Its name.
        name: String,
        /// The revision of its acquisition.
        fence: Revision,
    },
    /// A work item.
    Work {
        /// Its id.
        id: String,
        /// The revision of its claim.
        fence: Revision,
    },
}

impl FenceToken {
    /// What the check of this fence token reads.
    pub(super) fn prefetch(&self) -> Prefetch<'_> {
        match self {
            FenceToken::Lock { name, .. } => Prefetch::Entry(LOCKS, name),
            FenceToken::Work { id, .. } => Prefetch::Row(Key::WorkItem(id.clone())),
        }
    }
}

impl fmt::Display for FenceToken {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FenceToken::Lock { name, fence } => write!(formatter, "lock:{name}={fence}"),
            FenceToken::Work { id, fence } => write!(formatter, "work:{id}={fence}"),
        }
    }
}

/// `lock:NAME=N` or `work:ID=N`.
///
/// ```
/// use blackboard::{Revision, entry::FenceToken};
///
/// let fence: FenceToken = "work:gh:owner/repo#78=42".parse()?;
/// assert_eq!(fence, FenceToken::Work { id: "gh:owner/repo#78".to_owned(), fence: Revision::new(42) });
/// assert!("deploy=42".parse::<FenceToken>().is_err());
/// # Ok::<(), blackboard::Error>(())
/// ```
impl FromStr for FenceToken {
    type Err = Error;

    fn from_str(text: &str) -> Result<FenceToken> {
        let read = || {
            let (held, fence) = text.rsplit_once('=')?;
            let fence = Revision::new(fence.parse().ok().filter(|fence| *fence > 0)?);
            match held.split_once(':')? {
                (_, "") => None,
                ("lock", name) => Some(FenceToken::Lock { name: name.to_owned(), fence }),
                ("work", id) => Some(FenceToken::Work { id: id.to_owned(), fence }),
                _ => None,
            }
        };
        read().ok_or_else(|| {
            let shown = crate::text::shown(text);
            Refusal::new(Code::InvalidValue, format!("\"{shown}\" is not a fence token"))
                .hint(Hint::FenceTokenForm)
                .into()
        })
    }
}
