//! `blackboard quota history`

use std::time::Duration;

use blackboard::clock::{Clock, SystemClock};
use blackboard::{Code, Refusal, Result, duration};

use crate::commands::Run;
use crate::context::Context;
use crate::outcome::Outcome;
use crate::output::quota::{QuotaHistory, UsageHistory};
use crate::quota::existing_ledger;

/// Show used tokens over time
///
/// Shows what was used in steps of 5 minutes (up to 3 hours), an hour (up to 3 days, if the ledger keeps hours for that
/// long) or a day, as a chart on a terminal. Days are those of UTC, and are kept for 400 days.
///
/// Examples:
///   blackboard quota history
///   blackboard quota history --since 30d --provider anthropic
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct History {
    /// Only what is newer: 90s, 15m, 1h, 2d, or an ISO 8601 time [default: 24h]
    #[arg(long, value_name = "WHEN", allow_hyphen_values = true)]
    since: Option<String>,

    /// Provider [default: all]
    #[arg(long, value_name = "NAME")]
    provider: Option<String>,
}

impl Run for History {
    fn run(self, context: &Context) -> Result<Outcome> {
        let now = SystemClock.now();
        let since = match &self.since {
            Some(text) => duration::parse_since(text, now)?,
            None => now.minus(Duration::from_hours(24)),
        };
        if since >= now {
            return Err(Refusal::new(Code::InvalidValue, "--since is not in the past")
                .hint("example: blackboard quota history --since 24h")
                .into());
        }
        let (location, ledger) = existing_ledger(context)?;
        let ledger = ledger.map_or_else(|| location.empty(), Ok)?;
        let step = ledger.history_step(now.since(since));
        let providers = match self.provider {
            Some(provider) => vec![provider],
            None => ledger.config().providers.keys().cloned().collect(),
        };
        let histories = providers.into_iter().map(|provider| {
            let points = ledger.history(&provider, since, step)?;
            Ok(UsageHistory { provider, step, points })
        });
        Ok(Outcome::new(QuotaHistory { histories: histories.collect::<Result<_>>()? }))
    }
}
