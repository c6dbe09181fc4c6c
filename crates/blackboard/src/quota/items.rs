//! What work items have used, and what that means for similar ones.

use rusqlite::OptionalExtension as _;
use serde::Serialize;

use super::ledger::Ledger;
use super::usage::Usage;
use crate::error::Result;

/// How many items an estimate needs.
const FEWEST: usize = 3;

/// What similar work items have used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct SimilarEstimate {
    /// The mean.
    pub tokens: u64,
    /// The standard deviation.
    pub deviation: u64,
    /// How many items these are.
    pub items: usize,
}

impl SimilarEstimate {
    /// The estimate from what items have used. Items that used nothing are left out; `None` if there are fewer than 3 others.
    ///
    /// ```
    /// use blackboard::quota::SimilarEstimate;
    ///
    /// let estimate = SimilarEstimate::of([10, 0, 20, 30]).unwrap();
    /// assert_eq!((estimate.tokens, estimate.deviation, estimate.items), (20, 10, 3));
    /// assert_eq!(SimilarEstimate::of([10, 20]), None);
    /// ```
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "numbers of tokens are far below 2^52, and not negative"
    )]
    pub fn of(used: impl IntoIterator<Item = u64>) -> Option<SimilarEstimate> {
        let used: Vec<f64> =
            used.into_iter().filter(|tokens| *tokens > 0).map(|tokens| tokens as f64).collect();
        if used.len() < FEWEST {
            return None;
        }
        let mean = used.iter().sum::<f64>() / used.len() as f64;
        let squares: f64 = used.iter().map(|tokens| (tokens - mean).powi(2)).sum();
        let deviation = (squares / (used.len() - 1) as f64).sqrt();
        Some(SimilarEstimate {
            tokens: mean.round() as u64,
            deviation: deviation.round() as u64,
            items: used.len(),
        })
    }
}

impl Ledger {
    /// What each of these work items has used since its first record, of all providers, as it counts against a budget. It is
    /// kept for 400 days after the last one.
    pub fn used_by_items(&self, board: &str, items: &[&str]) -> Result<Vec<u64>> {
        const USED: &str = "SELECT input, cache_write, cache_read, output, reasoning FROM items
            WHERE board = ?1 AND item = ?2";
        self.read(|connection| {
            let mut statement = connection.prepare_cached(USED)?;
            let mut used = |item: &&str| {
                let usage = statement.query_row((board, *item), |row| Usage::of_row(row, 0)).optional()?;
                Ok(usage.map_or(0, |usage| usage.counted(&self.config)))
            };
            items.iter().map(&mut used).collect()
        })
    }
}
