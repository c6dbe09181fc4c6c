//! Limits that a platform has reported. They override the sums of the ledger until they reset.

use std::time::Duration;

use rusqlite::Connection;
use serde::{Deserialize, Serialize};

use super::change::Change;
use super::config::Window;
use super::ledger::Ledger;
use crate::clock::Timestamp;
use crate::error::{Error, Result};

/// A limit of an account, as its platform has reported it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReportedLimit {
    /// The provider.
    pub provider: String,
    /// The length of the window, in minutes.
    pub window_minutes: u64,
    /// How much of it is used, in percent.
    pub used_percent: f64,
    /// When it resets.
    pub resets_at: Timestamp,
    /// When the platform reported it.
    pub reported_at: Timestamp,
}

impl ReportedLimit {
    /// Tokens of a budget that are used.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "budgets are below 2^52, and shares are not negative"
    )]
    pub(super) fn tokens(&self, budget: u64) -> u64 {
        (budget as f64 * self.used_percent / 100.0).ceil() as u64
    }

    /// Whether it is a limit of a window of this length. Platforms also report windows that are a little shorter: 299 minutes, or
    /// 10,079.
    pub(super) fn is_of(&self, length: Duration) -> bool {
        let length = length.as_secs() / 60;
        self.window_minutes.abs_diff(length) <= length / 100
    }
}

impl Ledger {
    /// Whether a limit replaces the sum of a window now: its window is configured, and it has not been reset.
    pub fn replaces_a_sum(&self, limit: &ReportedLimit) -> bool {
        let provider = self.config.providers.get(&limit.provider);
        let is_configured = |window: &Window| limit.is_of(window.length);
        limit.resets_at > self.now()
            && provider.is_some_and(|provider| provider.windows().iter().any(is_configured))
    }

    /// Stores limits that a platform has reported. An older report than the stored one is ignored. Returns how many were
    /// stored.
    pub fn report(&self, limits: &[ReportedLimit]) -> Result<u64> {
        let now = self.now();
        for limit in limits {
            self.provider(&limit.provider)?;
            let longest = Duration::from_secs(limit.window_minutes.saturating_mul(60))
                .saturating_add(Duration::from_hours(1));
            if !(0.0..=1000.0).contains(&limit.used_percent) {
                return Err(Error::invalid(format!("{} is not a share in percent", limit.used_percent)));
            }
            if !(1..=366 * 24 * 60).contains(&limit.window_minutes) {
                return Err(Error::invalid("a window has from 1 minute to 366 days"));
            }
            if limit.resets_at > now.plus(longest) {
                return Err(Error::invalid("a window cannot reset later than after its length"));
            }
        }
        let reported = || Change::Limits { limits: limits.to_vec() };
        let ((), applied) = self.change(|_, _| Ok((Some(reported()), ())))?;
        Ok(applied.rows)
    }
}

/// Stores limits, unless newer ones are stored. Returns how many were stored.
pub(super) fn store(
    connection: &Connection,
    limits: &[ReportedLimit],
    now: Timestamp,
) -> rusqlite::Result<u64> {
    const STORE: &str = "INSERT INTO limits (provider, length, used, resets_at, reported_at)
        VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT (provider, length) DO UPDATE SET used = ?3, resets_at = ?4,
        reported_at = ?5 WHERE reported_at <= ?5 OR reported_at > ?6";
    let mut stored = 0;
    for limit in limits {
        // The clock of the report may be ahead. A report of the future would never be replaced.
        let reported_at = limit.reported_at.min(now).millis();
        let length = limit.window_minutes.cast_signed();
        stored += connection.prepare_cached(STORE)?.execute((
            &limit.provider,
            length,
            limit.used_percent,
            limit.resets_at.millis(),
            reported_at,
            now.millis(),
        ))?;
    }
    Ok(stored as u64)
}

/// The limits of a provider that have not been reset.
pub(super) fn current(
    connection: &Connection,
    provider: &str,
    now: Timestamp,
) -> rusqlite::Result<Vec<ReportedLimit>> {
    const CURRENT: &str =
        "SELECT length, used, resets_at, reported_at FROM limits WHERE provider = ?1 AND resets_at > ?2";
    let mut statement = connection.prepare_cached(CURRENT)?;
    let rows = statement.query_map((provider, now.millis()), |row| {
        Ok(ReportedLimit {
            provider: provider.to_owned(),
            window_minutes: row.get::<_, i64>(0)?.unsigned_abs(),
            used_percent: row.get(1)?,
            resets_at: Timestamp::from_millis(row.get(2)?),
            reported_at: Timestamp::from_millis(row.get(3)?),
        })
    })?;
    rows.collect()
}
