//! Whether tokens fit, and when they would.

use std::fmt;
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension as _};
use serde::Serialize;

use super::config::{Config, Provider, Window};
use super::ledger::Ledger;
use super::limits::{self, ReportedLimit};
use super::reservations::{self, Reservation};
use super::timeline::{Timeline, WIDTHS};
use super::usage::Usage;
use crate::clock::Timestamp;
use crate::error::{Code, Refusal, Result};
use crate::text::{grouped, shown};

/// An agent counts as active if it used tokens in the last minutes.
pub(super) const RECENT_MINUTES: i64 = 5;

/// The time that counts for a provider without windows.
const WITHOUT_WINDOWS: Duration = Duration::from_hours(24);

/// Tokens that a caller wants to use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TokenRequest {
    /// The provider.
    pub provider: String,
    /// How many; 0 if that is not known.
    pub tokens: u64,
    /// The board of the session.
    pub board: Option<String>,
    /// The session.
    pub session: Option<String>,
    /// The name of the agent.
    pub agent: Option<String>,
    /// The work item.
    pub item: Option<String>,
}

impl TokenRequest {
    /// A request without a session.
    pub fn new(provider: impl Into<String>, tokens: u64) -> TokenRequest {
        TokenRequest { provider: provider.into(), tokens, ..TokenRequest::default() }
    }

    /// How many a window must have left. A caller that does not know its number uses one at least.
    fn least_tokens(&self) -> u64 {
        self.tokens.max(1)
    }
}

/// Whether tokens fit.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Check {
    /// Whether they fit.
    pub fits: bool,
    /// The provider.
    pub provider: String,
    /// How many were asked for.
    pub tokens: u64,
    /// How many agents may use now; `None` if no window limits it.
    pub available: Option<u64>,
    /// Why they do not fit.
    pub reason: Option<Reason>,
    /// When they would fit, if nothing else is used or reserved until then. `None` if that is not known, or never.
    pub fits_at: Option<Timestamp>,
}

/// Why tokens do not fit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Reason {
    /// The budget of a window.
    Window {
        /// Its length.
        window: String,
        /// Its budget.
        budget: u64,
        /// What was used.
        used: u64,
        /// What sessions have reserved.
        reserved: u64,
        /// What is kept for the operator.
        operator: u64,
        /// What is left for agents.
        available: u64,
    },
    /// The cap of a session.
    Session {
        /// The cap.
        cap: u64,
        /// What the session has used.
        used: u64,
        /// What it has reserved.
        reserved: u64,
    },
    /// The number of agents.
    Agents {
        /// The cap.
        cap: u64,
        /// How many other agents are active.
        active: u64,
    },
}

impl fmt::Display for Reason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Window { window, budget, available, operator, .. } => {
                let [available, budget] = [available, budget].map(|number| grouped(*number));
                write!(formatter, "the {window} window has {available} of {budget} tokens left for agents")?;
                if *operator > 0 {
                    write!(formatter, " ({} are kept for you, the operator)", grouped(*operator))?;
                }
                Ok(())
            }
            Reason::Session { cap, used, reserved } => {
                let [used, reserved, cap] = [used, reserved, cap].map(|number| grouped(*number));
                write!(formatter, "this session has used {used} and reserved {reserved} of {cap} tokens")
            }
            Reason::Agents { cap, active } => {
                write!(formatter, "{active} other agents are active, and at most {cap} may be")
            }
        }
    }
}

impl Ledger {
    /// Checks whether tokens fit now.
    pub fn check(&self, request: &TokenRequest) -> Result<Check> {
        self.provider(&request.provider)?;
        let now = self.now();
        self.read(|connection| Ok(State::load(connection, &self.config, request, now)?.decide(request)))
    }

    /// The provider of a request: the named one, that of the model, the configured default, or the only one.
    pub fn provider_for(&self, provider: Option<&str>, model: Option<&str>) -> Result<String> {
        if let Some(provider) = provider {
            return self.provider(provider).map(|_| provider.to_owned());
        }
        let mut names = self.config.providers.keys();
        let found = match (model, names.next(), names.next()) {
            (Some(model), ..) => self.config.provider_of_message(model),
            (None, Some(only), None) => Some(only.as_str()),
            (None, ..) => self.config.default_provider.as_deref(),
        };
        found.map(str::to_owned).ok_or_else(|| {
            let problem = match model {
                Some(model) => format!("no provider is configured for the model {}", shown(model)),
                None => "several providers are configured, and none is named".to_owned(),
            };
            Refusal::new(Code::InvalidValue, problem).hint(self.configured_providers()).into()
        })
    }
}

impl Ledger {
    /// How many tokens the session of a request can reserve now, by every window and its cap; `None` if nothing limits it. The
    /// tokens of the request do not matter.
    pub fn most_tokens(&self, request: &TokenRequest) -> Result<Option<u64>> {
        self.provider(&request.provider)?;
        let now = self.now();
        self.read(|connection| Ok(State::load(connection, &self.config, request, now)?.most_tokens(request)))
    }

    /// The providers that a session may use: that of its newest record, or else the configured default, or else all.
    pub fn providers_of_session(&self, board: &str, session: &str) -> Result<Vec<String>> {
        const NEWEST: &str = "SELECT provider FROM buckets JOIN sources ON id = source
            WHERE board = ?1 AND session = ?2 ORDER BY start DESC, width LIMIT 1";
        let all = || self.config.providers.keys().cloned().collect();
        // With one provider, the answer needs no ledger.
        if self.config.providers.len() == 1 {
            return Ok(all());
        }
        let newest: Option<String> = self.read(|connection| {
            connection.prepare_cached(NEWEST)?.query_row((board, session), |row| row.get(0)).optional()
        })?;
        let known = newest.filter(|provider| self.config.providers.contains_key(provider));
        let known = known.or_else(|| self.config.default_provider.clone());
        Ok(known.map_or_else(all, |provider| vec![provider]))
    }
}

/// What decides about requests to a provider.
pub(super) struct State<'a> {
    pub(super) config: &'a Config,
    pub(super) provider: &'a Provider,
    pub(super) now: Timestamp,
    pub(super) timeline: Timeline,
    pub(super) limits: Vec<ReportedLimit>,
    pub(super) held: Vec<Reservation>,
    /// What the session of the request has used.
    session_used: u64,
    /// The sessions that used tokens in the last minutes, or hold a reservation: board and session.
    pub(super) active: Vec<(String, String)>,
}

impl<'a> State<'a> {
    pub(super) fn load(
        connection: &Connection,
        config: &'a Config,
        request: &TokenRequest,
        now: Timestamp,
    ) -> rusqlite::Result<State<'a>> {
        // The caller has checked that it is configured.
        let Some(provider) = config.providers.get(&request.provider) else {
            return Err(rusqlite::Error::QueryReturnedNoRows);
        };
        let name = request.provider.as_str();
        let longest = provider.windows().last().map_or(WITHOUT_WINDOWS, |window| window.length);
        let recent = Duration::from_mins(RECENT_MINUTES.unsigned_abs());
        let held = reservations::held(connection, name, now)?;
        let mut active = active_sessions(connection, name, now)?;
        active.extend(held.iter().map(|held| (held.board.clone(), held.session.clone())));
        active.retain(|(_, session)| !session.is_empty());
        active.sort_unstable();
        active.dedup();
        let session_used = match &request.session {
            Some(session) if provider.reservation.agents.max_per_agent.is_some() => {
                let board = request.board.as_deref().unwrap_or_default();
                usage_of_session(connection, name, board, session)?.counted(config)
            }
            _ => 0,
        };
        Ok(State {
            config,
            provider,
            now,
            timeline: Timeline::load(connection, name, now, longest.max(recent))?,
            limits: limits::current(connection, name, now)?,
            held,
            session_used,
            active,
        })
    }

    /// The limit that the platform has reported for a window.
    pub(super) fn reported(&self, window: &Window, at: Timestamp) -> Option<&ReportedLimit> {
        let of_window = self.limits.iter().filter(|limit| limit.is_of(window.length) && limit.resets_at > at);
        of_window.max_by_key(|limit| limit.reported_at)
    }

    /// What is used of a window: what the platform has reported and what was used since, or else the sum.
    pub(super) fn used(&self, window: &Window, at: Timestamp) -> u64 {
        match self.reported(window, at) {
            Some(limit) => {
                let since = self.timeline.usage_since(limit.reported_at).counted(self.config);
                limit.tokens(window.budget).saturating_add(since)
            }
            None => self.timeline.used(self.config, at, window.length),
        }
    }

    /// What sessions hold and have not used.
    pub(super) fn reserved(&self, at: Timestamp) -> u64 {
        self.held.iter().filter(|held| held.expires_at > at).map(|held| held.left).sum()
    }

    /// What is left of a window for agents.
    fn available(&self, window: &Window, at: Timestamp) -> u64 {
        let taken =
            self.used(window, at).saturating_add(self.reserved(at)).saturating_add(self.provider.operator());
        window.budget.saturating_sub(taken)
    }

    pub(super) fn decide(&self, request: &TokenRequest) -> Check {
        let windows = self.provider.windows();
        let available = windows.iter().map(|window| self.available(window, self.now)).min();
        let reason = self.reason(request, &windows);
        let fits_at = match &reason {
            Some(Reason::Window { .. }) => self.fits_at(request, &windows),
            _ => None,
        };
        Check {
            fits: reason.is_none(),
            provider: request.provider.clone(),
            tokens: request.tokens,
            available,
            reason,
            fits_at,
        }
    }

    fn most_tokens(&self, request: &TokenRequest) -> Option<u64> {
        let windows = self.provider.windows();
        let available = windows.iter().map(|window| self.available(window, self.now)).min();
        let cap = self.provider.reservation.agents.max_per_agent.filter(|_| request.session.is_some());
        let own =
            cap.map(|cap| cap.saturating_sub(self.session_used).saturating_sub(self.own_reserved(request)));
        available.into_iter().chain(own).min()
    }

    /// What the session of a request holds and has not used.
    fn own_reserved(&self, request: &TokenRequest) -> u64 {
        let (board, session) = (request.board.as_deref().unwrap_or_default(), request.session.as_deref());
        let is_own = |held: &&Reservation| held.board == board && Some(held.session.as_str()) == session;
        self.held.iter().filter(is_own).map(|held| held.left).sum()
    }

    fn reason(&self, request: &TokenRequest, windows: &[Window]) -> Option<Reason> {
        if let Some(session) = &request.session {
            let own = (request.board.clone().unwrap_or_default(), session.clone());
            let caps = &self.provider.reservation.agents;
            let others = self.active.iter().filter(|active| **active != own).count() as u64;
            if let Some(cap) = caps.max_concurrent.filter(|cap| others >= *cap) {
                return Some(Reason::Agents { cap, active: others });
            }
            let (used, reserved) = (self.session_used, self.own_reserved(request));
            let after = used.saturating_add(reserved).saturating_add(request.tokens);
            if let Some(cap) = caps.max_per_agent.filter(|cap| after > *cap) {
                return Some(Reason::Session { cap, used, reserved });
            }
        }
        let needed = request.least_tokens();
        let full = windows.iter().find(|window| self.available(window, self.now) < needed)?;
        Some(Reason::Window {
            window: full.name.clone(),
            budget: full.budget,
            used: self.used(full, self.now),
            reserved: self.reserved(self.now),
            operator: self.provider.operator(),
            available: self.available(full, self.now),
        })
    }

    /// The first moment at which every window has space: when usage leaves a window, a reservation expires, or a
    /// reported limit resets.
    fn fits_at(&self, request: &TokenRequest, windows: &[Window]) -> Option<Timestamp> {
        let mut moments: Vec<Timestamp> = self.held.iter().map(|held| held.expires_at).collect();
        moments.extend(self.limits.iter().map(|limit| limit.resets_at));
        for window in windows {
            moments.extend(self.timeline.leaving(self.now, window.length));
        }
        moments.sort_unstable();
        moments.dedup();
        let fits = |at: &Timestamp| {
            windows.iter().all(|window| self.available(window, *at) >= request.least_tokens())
        };
        moments.into_iter().filter(|at| *at > self.now).find(fits)
    }
}

/// The sessions that used tokens in the last minutes.
fn active_sessions(
    connection: &Connection,
    provider: &str,
    now: Timestamp,
) -> rusqlite::Result<Vec<(String, String)>> {
    const ACTIVE: &str = "SELECT DISTINCT board, session FROM buckets JOIN sources ON id = source
        WHERE width = 1 AND start > ?1 AND provider = ?2";
    let from = now.millis().div_euclid(60_000) - RECENT_MINUTES;
    let mut statement = connection.prepare_cached(ACTIVE)?;
    statement.query_map((from, provider), |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
}

/// What a session has used, as far back as sessions are known.
fn usage_of_session(
    connection: &Connection,
    provider: &str,
    board: &str,
    session: &str,
) -> rusqlite::Result<Usage> {
    const USED: &str =
        "SELECT coalesce(sum(input), 0), coalesce(sum(cache_write), 0), coalesce(sum(cache_read), 0),
        coalesce(sum(output), 0), coalesce(sum(reasoning), 0) FROM buckets JOIN sources ON id = source
        WHERE width IN (?1, ?2) AND provider = ?3 AND board = ?4 AND session = ?5";
    let of = (WIDTHS[0], WIDTHS[1], provider, board, session);
    connection.prepare_cached(USED)?.query_row(of, |row| Usage::of_row(row, 0))
}
