//! [`Crossing`]: a threshold that was passed, reported once.
//!
//! The ledger remembers what was reported, so one of many processes reports it. A threshold is reported again after the share of
//! its window has fallen well below it. A session passes its cap once. The configuration of a project may have other budgets and caps, so
//! they are part of what is remembered.

use std::collections::BTreeSet;

use rusqlite::Connection;

use super::check::{State, TokenRequest};
use super::config::Config;
use super::fold::minute_of;
use super::ledger::Ledger;
use super::status::{WindowStatus, window_status};
use super::timeline::WIDTHS;
use super::usage::Usage;
use crate::clock::Timestamp;
use crate::error::Result;

/// A session that used tokens in the last minutes of this number uses its provider.
const RECENT_MINUTES: i64 = 5 * 60;

/// The most sessions of a provider that are considered.
const MOST_SESSIONS: i64 = 1000;

/// How long it is remembered that something was reported.
const KEPT_MINUTES: i64 = 400 * 24 * 60;

/// A threshold that was passed.
#[derive(Clone, Debug, PartialEq)]
pub enum Crossing {
    /// The share of a window.
    Window {
        /// The provider.
        provider: String,
        /// The window.
        window: Box<WindowStatus>,
        /// The largest threshold that it passed: a configured share, or the share that the operator leaves to agents.
        threshold: f64,
        /// The sessions that used the provider in the last 5 hours.
        sessions: Vec<SessionOfProvider>,
    },
    /// The cap of a session.
    Session {
        /// The provider.
        provider: String,
        /// The session.
        session: SessionOfProvider,
        /// What it has used.
        used: u64,
        /// The cap.
        cap: u64,
    },
}

/// A session that uses a provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionOfProvider {
    /// The board; empty if it is not known.
    pub board: String,
    /// The session.
    pub session: String,
    /// The name of the agent; empty if it is not known.
    pub agent: String,
}

/// What is remembered of a crossing. A cap has no length, and the threshold 1.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Notice {
    provider: String,
    /// The length of the window in seconds.
    length: i64,
    /// The budget or the cap.
    budget: i64,
    /// In millionths.
    threshold: i64,
    board: String,
    session: String,
}

/// How far a share falls below a threshold, in millionths, before the threshold is reported again: a rolling window rises and
/// falls by a little all the time.
const MARGIN: i64 = 50_000;

/// What is passed now, and what was reported.
#[derive(Default)]
struct Comparison {
    /// Passed and not reported.
    new: Vec<Notice>,
    /// Reported, and the share is well below it now, so that it will be reported again.
    below: Vec<Notice>,
    crossings: Vec<Crossing>,
}

impl Ledger {
    /// The thresholds that were passed since the last call of any process: windows of all providers, and sessions of this
    /// board. Each is returned to one caller.
    pub fn take_crossings(&self, board: &str) -> Result<Vec<Crossing>> {
        let now = self.now();
        let compare = |connection: &Connection| compare(connection, &self.config, board, now);
        // Nearly always nothing has changed, and no lock is needed.
        let comparison = self.read(compare)?;
        if comparison.new.is_empty() && comparison.below.is_empty() {
            return Ok(Vec::new());
        }
        self.write(|connection| {
            let Comparison { new, below, crossings } = compare(connection)?;
            below.iter().try_for_each(|notice| notice.remove(connection))?;
            new.iter().try_for_each(|notice| notice.insert(connection, now))?;
            connection
                .prepare_cached("DELETE FROM notices WHERE minute < ?1")?
                .execute([minute_of(now) - KEPT_MINUTES])?;
            Ok(crossings)
        })
    }
}

fn compare(
    connection: &Connection,
    config: &Config,
    board: &str,
    now: Timestamp,
) -> rusqlite::Result<Comparison> {
    let mut comparison = Comparison::default();
    for (name, provider) in &config.providers {
        let reported = Notice::all(connection, name)?;
        let state = State::load(connection, config, &TokenRequest::new(name, 0), now)?;
        for window in provider.windows() {
            let status = window_status(&state, &window, 0);
            // Agents are warned before they use what is kept for the operator.
            let mut thresholds = provider.thresholds();
            thresholds.extend(provider.share_of_agents(window.budget));
            comparison.add_window(connection, name, status, &thresholds, &reported, now)?;
        }
        if let Some(cap) = provider.reservation.agents.max_per_agent {
            for (session, usage) in usage_of_sessions(connection, name, board, now)? {
                comparison.add_session(name, session, usage.counted(config), cap, &reported);
            }
        }
    }
    Ok(comparison)
}

impl Comparison {
    fn add_window(
        &mut self,
        connection: &Connection,
        provider: &str,
        status: WindowStatus,
        thresholds: &[f64],
        reported: &BTreeSet<Notice>,
        now: Timestamp,
    ) -> rusqlite::Result<()> {
        let of_window = Notice {
            provider: provider.to_owned(),
            length: i64::try_from(status.seconds).unwrap_or(i64::MAX),
            budget: signed(status.budget),
            threshold: 0,
            board: String::new(),
            session: String::new(),
        };
        #[expect(clippy::cast_precision_loss, reason = "budgets are below 2^52")]
        let exact = status.used as f64 / status.budget.max(1) as f64;
        let threshold =
            thresholds.iter().copied().filter(|threshold| exact >= *threshold).fold(0.0, f64::max);
        let passed = millionths(threshold);
        let share = i64::try_from(u128::from(status.used) * 1_000_000 / u128::from(status.budget.max(1)));
        let share = share.unwrap_or(i64::MAX);
        let mut largest_reported = 0;
        for notice in reported.iter().filter(|notice| notice.is_of_same(&of_window)) {
            if notice.threshold <= passed {
                largest_reported = largest_reported.max(notice.threshold);
            } else if share < notice.threshold - MARGIN.min(notice.threshold / 2) {
                self.below.push(notice.clone());
            }
        }
        let is_new = |notice: &Notice| notice.threshold <= passed && !reported.contains(notice);
        let notices =
            thresholds.iter().map(|share| Notice { threshold: millionths(*share), ..of_window.clone() });
        self.new.extend(notices.filter(is_new));
        if passed > largest_reported {
            let sessions = sessions_of(connection, provider, now)?;
            let provider = provider.to_owned();
            self.crossings.push(Crossing::Window { provider, window: Box::new(status), threshold, sessions });
        }
        Ok(())
    }

    fn add_session(
        &mut self,
        provider: &str,
        session: SessionOfProvider,
        used: u64,
        cap: u64,
        reported: &BTreeSet<Notice>,
    ) {
        let notice = Notice {
            provider: provider.to_owned(),
            length: 0,
            budget: signed(cap),
            threshold: millionths(1.0),
            board: session.board.clone(),
            session: session.session.clone(),
        };
        if used >= cap && !reported.contains(&notice) {
            self.new.push(notice);
            self.crossings.push(Crossing::Session { provider: provider.to_owned(), session, used, cap });
        }
    }
}

impl Notice {
    fn all(connection: &Connection, provider: &str) -> rusqlite::Result<BTreeSet<Notice>> {
        const ALL: &str =
            "SELECT provider, length, budget, threshold, board, session FROM notices WHERE provider = ?1";
        let mut statement = connection.prepare_cached(ALL)?;
        let rows = statement.query_map([provider], |row| {
            Ok(Notice {
                provider: row.get(0)?,
                length: row.get(1)?,
                budget: row.get(2)?,
                threshold: row.get(3)?,
                board: row.get(4)?,
                session: row.get(5)?,
            })
        })?;
        rows.collect()
    }

    /// Whether both are of one window.
    fn is_of_same(&self, window: &Notice) -> bool {
        self.length == window.length && self.budget == window.budget && self.provider == window.provider
    }

    fn insert(&self, connection: &Connection, now: Timestamp) -> rusqlite::Result<()> {
        const INSERT: &str =
            "INSERT OR IGNORE INTO notices (provider, length, budget, threshold, board, session, minute)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
        let Notice { provider, length, budget, threshold, board, session } = self;
        let row = (provider, length, budget, threshold, board, session, minute_of(now));
        connection.prepare_cached(INSERT)?.execute(row).map(drop)
    }

    fn remove(&self, connection: &Connection) -> rusqlite::Result<()> {
        const REMOVE: &str = "DELETE FROM notices WHERE provider = ?1 AND length = ?2 AND budget = ?3
            AND threshold = ?4 AND board = ?5 AND session = ?6";
        let Notice { provider, length, budget, threshold, board, session } = self;
        let key = (provider, length, budget, threshold, board, session);
        connection.prepare_cached(REMOVE)?.execute(key).map(drop)
    }
}

/// The sessions that used a provider in the last hours.
fn sessions_of(
    connection: &Connection,
    provider: &str,
    now: Timestamp,
) -> rusqlite::Result<Vec<SessionOfProvider>> {
    const SESSIONS: &str = "SELECT board, session, max(agent) FROM buckets JOIN sources ON id = source
        WHERE width = 1 AND start > ?1 AND provider = ?2 AND session <> '' GROUP BY board, session LIMIT ?3";
    let mut statement = connection.prepare_cached(SESSIONS)?;
    let rows = statement.query_map((minute_of(now) - RECENT_MINUTES, provider, MOST_SESSIONS), |row| {
        Ok(SessionOfProvider { board: row.get(0)?, session: row.get(1)?, agent: row.get(2)? })
    })?;
    rows.collect()
}

/// What the sessions of a board have used that used a provider in the last hours, as far back as sessions are known.
fn usage_of_sessions(
    connection: &Connection,
    provider: &str,
    board: &str,
    now: Timestamp,
) -> rusqlite::Result<Vec<(SessionOfProvider, Usage)>> {
    const USED: &str =
        "SELECT session, max(agent), sum(input), sum(cache_write), sum(cache_read), sum(output),
        sum(reasoning) FROM buckets JOIN sources ON id = source
        WHERE width IN (?1, ?2) AND provider = ?3 AND board = ?4 AND session <> ''
        GROUP BY session HAVING max(start) > ?5 LIMIT ?6";
    let mut statement = connection.prepare_cached(USED)?;
    let recent = minute_of(now) - RECENT_MINUTES;
    let rows =
        statement.query_map((WIDTHS[0], WIDTHS[1], provider, board, recent, MOST_SESSIONS), |row| {
            let session =
                SessionOfProvider { board: board.to_owned(), session: row.get(0)?, agent: row.get(1)? };
            Ok((session, Usage::of_row(row, 2)?))
        })?;
    rows.collect()
}

/// A share as a whole number, which can be a key.
#[expect(clippy::cast_possible_truncation, reason = "a share is at most 1")]
fn millionths(share: f64) -> i64 {
    (share * 1e6).round() as i64
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
