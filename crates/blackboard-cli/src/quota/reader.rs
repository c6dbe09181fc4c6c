//! [`QuotaReader`]: the quota for edges that only show it.

use std::time::Duration;

use blackboard::Result;
use blackboard::clock::Timestamp;
use blackboard::quota::Status;
use serde::Serialize;

use super::ledger_location::LedgerLocation;
use crate::config::Config;
use crate::location;
use crate::output::quota::UsageHistory;

/// It can be sent to another thread. It never writes, and a ledger that does not exist is empty.
#[derive(Clone)]
pub struct QuotaReader(LedgerLocation);

impl QuotaReader {
    /// The reader for this configuration; `None` unless it has a quota. Only then `request` is called.
    pub fn of(config: &Config, request: impl FnOnce() -> location::Request) -> Option<QuotaReader> {
        LedgerLocation::of(config, request).map(QuotaReader)
    }

    /// The same for a caller that would rather fail than wait longer than this.
    #[must_use]
    pub fn within(self, limit: Duration) -> QuotaReader {
        QuotaReader(self.0.within(limit))
    }

    /// The state of the quota.
    pub fn status(&self) -> Result<Status> {
        self.0.open_to_read()?.status()
    }

    /// The state of the quota for readers of the board at this location, and the usage since a moment.
    pub fn status_and_histories(&self, board: &str, length: Duration) -> Result<(Status, Vec<UsageHistory>)> {
        let ledger = self.0.open_to_read()?;
        let (since, step) = (ledger.now().minus(length), ledger.history_step(length));
        let histories = self.0.config().providers.keys().map(|provider| {
            let points = ledger.history(provider, since, step)?;
            Ok(UsageHistory { provider: provider.clone(), step, points })
        });
        let board = self.0.board_names_to_read().of(board);
        Ok((ledger.status_of_board(&board)?, histories.collect::<Result<_>>()?))
    }
}

/// What an agent needs to know of a provider.
#[derive(Serialize)]
pub struct ProviderSummary {
    provider: String,
    tokens_per_minute: u64,
    windows: Vec<WindowSummary>,
}

#[derive(Serialize)]
struct WindowSummary {
    window: String,
    budget: u64,
    used: u64,
    available: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    frees_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    used_up_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    warning: Option<f64>,
}

/// A status without sessions, work items and reservations.
pub fn summarize(status: Status) -> Vec<ProviderSummary> {
    let providers = status.providers.into_iter().map(|provider| ProviderSummary {
        provider: provider.provider,
        tokens_per_minute: provider.load.tokens_per_minute,
        windows: provider
            .windows
            .into_iter()
            .map(|window| WindowSummary {
                window: window.window,
                budget: window.budget,
                used: window.used,
                available: window.available,
                frees_at: window.frees_at,
                used_up_at: window.used_up_at,
                warning: window.warning,
            })
            .collect(),
    });
    providers.collect()
}
