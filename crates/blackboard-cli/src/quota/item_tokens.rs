//! What the ledger knows about work items, for answers about them.

use blackboard::quota::{Check, Ledger, SimilarEstimate};
use blackboard::work::{LastCompleted, WorkItem};
use blackboard::{Board, Result};
use serde::Serialize;

use super::claims::{ItemQuota, problem};

/// How many completed items of the board are searched for similar ones, and how many of these count.
const SEARCHED: usize = 500;
const MOST_SIMILAR: usize = 50;

/// What the ledger adds to an answer about a work item.
#[derive(Default, Serialize)]
pub struct ItemTokens {
    /// Whether the claim fits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quota: Option<ClaimCheck>,
    /// What the item has used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_used: Option<u64>,
    /// What similar items have used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub estimate_from_similar: Option<SimilarEstimate>,
}

/// Whether a claim fits into the quota.
#[derive(Serialize)]
#[serde(untagged)]
pub enum ClaimCheck {
    /// It was checked.
    Checked(Check),
    /// The ledger cannot be used.
    Unknown {
        /// Why.
        error: String,
    },
}

/// An answer with what the ledger adds to it, as JSON.
#[derive(Serialize)]
pub struct WithTokens<'a, T> {
    /// The answer.
    #[serde(flatten)]
    pub answer: &'a T,
    /// What the ledger adds.
    #[serde(flatten)]
    pub tokens: Option<&'a ItemTokens>,
}

/// What the ledger adds to an answer, if a quota is configured.
pub type AddedTokens = Option<Box<ItemTokens>>;

impl ItemTokens {
    /// What a person should know about the claim: it does not fit, or that is not known.
    pub fn note(&self) -> Option<String> {
        match self.quota.as_ref()? {
            ClaimCheck::Checked(check) if check.fits => None,
            ClaimCheck::Checked(check) => Some(problem(check)),
            ClaimCheck::Unknown { error } => Some(format!("the token quota was not checked: {error}")),
        }
    }
}

/// What an item and similar ones have used. `None` without a configured quota.
pub fn tokens_of(quota: Option<&ItemQuota>, board: &Board, item: &WorkItem) -> AddedTokens {
    quota.map(|quota| Box::new(quota.tokens_of(board, item, None)))
}

impl ItemQuota {
    /// What an item and similar ones have used. Without a ledger that can be read, nothing is known.
    pub(super) fn tokens_of(&self, board: &Board, item: &WorkItem, quota: Option<ClaimCheck>) -> ItemTokens {
        let known = || -> Result<_> {
            let ledger = self.location.open_to_read()?;
            let used = ledger.used_by_items(&self.board, &[item.item_id.as_str()])?;
            Ok((used.into_iter().sum(), self.estimate(&ledger, board, item)?))
        };
        let (used, estimate_from_similar) = known().unwrap_or((0, None));
        ItemTokens { quota, tokens_used: (used > 0).then_some(used), estimate_from_similar }
    }

    fn estimate(&self, ledger: &Ledger, board: &Board, item: &WorkItem) -> Result<Option<SimilarEstimate>> {
        if item.labels().is_empty() {
            return Ok(None);
        }
        // With a project, the search would not end before it has found enough of them.
        let last = LastCompleted { limit: Some(SEARCHED), ..LastCompleted::default() };
        let completed = board.work().last_completed(&last)?.items;
        let similar: Vec<&str> = completed
            .iter()
            .filter(|other| is_similar(item, other))
            .map(|other| other.item_id.as_str())
            .take(MOST_SIMILAR)
            .collect();
        Ok(SimilarEstimate::of(ledger.used_by_items(&self.board, &similar)?))
    }
}

/// Whether another item is of the same project and shares a label.
fn is_similar(item: &WorkItem, other: &WorkItem) -> bool {
    let labels = item.labels();
    other.item_id != item.item_id
        && other.project_id == item.project_id
        && other.labels().iter().any(|label| labels.contains(label))
}
