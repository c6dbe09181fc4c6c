//! [`Status`]: budgets, load, and who uses what.

use std::collections::BTreeMap;
use std::time::Duration;

use rusqlite::Connection;
use serde::Serialize;

use super::check::{RECENT_MINUTES, State, TokenRequest};
use super::config::{Enforcement, Provider, RateLimit, Window};
use super::ledger::Ledger;
use super::limits::ReportedLimit;
use super::reservations::Reservation;
use super::uncounted::{self, UncountedModel};
use super::usage::Usage;
use crate::clock::Timestamp;
use crate::error::Result;

/// How many agents and work items a status lists.
const MOST_LISTED: usize = 50;

/// The state of a ledger.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Status {
    /// What happens to a claim that does not fit.
    pub enforce: Enforcement,
    /// The configured providers.
    pub providers: Vec<ProviderStatus>,
    /// Models whose messages are not counted, because no provider has them.
    pub uncounted: Vec<UncountedModel>,
}

/// The state of a provider.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ProviderStatus {
    /// Its name.
    pub provider: String,
    /// The name of the plan.
    pub tier: Option<String>,
    /// Tokens of each window that are kept for the operator.
    pub operator: u64,
    /// Its windows, the shortest one first.
    pub windows: Vec<WindowStatus>,
    /// The current load.
    pub load: Load,
    /// Usage per session in the longest window, the largest one first.
    pub agents: Vec<AgentUsage>,
    /// Usage per work item in the longest window, the largest one first.
    pub items: Vec<ItemUsage>,
    /// The reservations, the newest one first.
    pub reservations: Vec<Reservation>,
    /// What other boards use and hold, in the status of one board.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub other_boards: Option<OtherBoards>,
}

/// What other boards use and hold of a provider. Their sessions and work items are not named.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct OtherBoards {
    /// What their sessions have used in the longest window.
    pub tokens: u64,
    /// How much of that was for work items.
    pub items: u64,
    /// What their sessions hold and have not used.
    pub reserved: u64,
}

/// The state of a window.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WindowStatus {
    /// Its length.
    pub window: String,
    /// Its length in seconds.
    pub seconds: u64,
    /// Its budget.
    pub budget: u64,
    /// What counts against it.
    pub used: u64,
    /// What sessions hold and have not used.
    pub reserved: u64,
    /// What is left: the budget without what is used and reserved.
    pub remaining: u64,
    /// What is left for agents.
    pub available: u64,
    /// The tokens of each kind, as recorded.
    pub usage: Usage,
    /// When the oldest usage leaves the window, or the platform resets it.
    pub frees_at: Option<Timestamp>,
    /// When it is used up at the current rate.
    pub used_up_at: Option<Timestamp>,
    /// The largest configured share that was exceeded.
    pub warning: Option<f64>,
    /// The limit that the platform has reported, if that is the source of `used`.
    pub reported: Option<ReportedLimit>,
}

/// The current load of a provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Load {
    /// Sessions that used tokens in the last 5 minutes, or hold a reservation.
    pub active_agents: u64,
    /// Tokens per minute in the last 5 minutes.
    pub tokens_per_minute: u64,
    /// Requests per minute in the last 5 minutes.
    pub requests_per_minute: u64,
    /// Tokens per minute that are left.
    pub headroom: Option<u64>,
    /// Requests per minute that are left.
    pub requests_headroom: Option<u64>,
}

/// The usage of a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AgentUsage {
    /// The board; empty if it is not known.
    pub board: String,
    /// The session; empty if it is not known.
    pub session: String,
    /// The name of the agent; empty if it is not known.
    pub agent: String,
    /// What counts against budgets.
    pub tokens: u64,
    /// The tokens of each kind.
    pub usage: Usage,
}

/// The usage for a work item.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ItemUsage {
    /// The board; empty if it is not known.
    pub board: String,
    /// The work item.
    pub item: String,
    /// What counts against budgets.
    pub tokens: u64,
    /// The tokens of each kind.
    pub usage: Usage,
}

impl Ledger {
    /// The state of all providers.
    pub fn status(&self) -> Result<Status> {
        self.status_for(None)
    }

    /// The same, with the agents, work items and reservations of this board only. What is of other boards is summed.
    pub fn status_of_board(&self, board: &str) -> Result<Status> {
        self.status_for(Some(board))
    }

    fn status_for(&self, board: Option<&str>) -> Result<Status> {
        let now = self.now();
        self.read(|connection| {
            let providers = self.config.providers.iter();
            let providers =
                providers.map(|(name, provider)| self.status_of(connection, name, provider, board, now));
            Ok(Status {
                enforce: self.config.enforcement(),
                providers: providers.collect::<rusqlite::Result<_>>()?,
                uncounted: uncounted::models(connection, &self.config)?,
            })
        })
    }

    fn status_of(
        &self,
        connection: &Connection,
        name: &str,
        provider: &Provider,
        board: Option<&str>,
        now: Timestamp,
    ) -> rusqlite::Result<ProviderStatus> {
        let mut state = State::load(connection, &self.config, &TokenRequest::new(name, 0), now)?;
        let load = load(&state, &provider.rate_limit);
        let windows = provider.windows();
        let windows =
            windows.iter().map(|window| window_status(&state, window, load.tokens_per_minute)).collect();
        let Users { agents, items, elsewhere } = Users::load(connection, &state, name, board)?;
        let other_boards = board.map(|board| {
            let held = state.held.extract_if(.., |held| held.board != board);
            OtherBoards { reserved: held.map(|held| held.left).sum(), ..elsewhere }
        });
        // One of 0 tokens only counts its session as active.
        state.held.retain(|held| held.tokens > 0);
        Ok(ProviderStatus {
            provider: name.to_owned(),
            tier: provider.tier.clone(),
            operator: provider.operator(),
            windows,
            load,
            agents,
            items,
            reservations: state.held,
            other_boards,
        })
    }
}

/// Usage by sessions and by work items, and what is of other boards.
struct Users {
    agents: Vec<AgentUsage>,
    items: Vec<ItemUsage>,
    elsewhere: OtherBoards,
}

impl Users {
    /// What was used in the window that the timeline was loaded for. With a board, only its sessions and items are listed.
    fn load(
        connection: &Connection,
        state: &State<'_>,
        provider: &str,
        board: Option<&str>,
    ) -> rusqlite::Result<Users> {
        // The newest one last: its name of the session counts.
        const SOURCES: &str =
            "SELECT id, board, session, agent, item FROM sources WHERE provider = ?1 ORDER BY id";
        let used = state.timeline.by_source();
        let (mut agents, mut items) = (BTreeMap::new(), BTreeMap::new());
        let mut elsewhere = (Usage::default(), Usage::default());
        let mut statement = connection.prepare_cached(SOURCES)?;
        let mut rows = statement.query([provider])?;
        while let Some(row) = rows.next()? {
            let Some(usage) = used.get(&row.get(0)?).filter(|usage| usage.total() > 0) else { continue };
            let [of, session, agent, item]: [String; 4] =
                [row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?];
            if board.is_some_and(|board| board != of) {
                elsewhere.0.add(usage);
                if !item.is_empty() {
                    elsewhere.1.add(usage);
                }
                continue;
            }
            if !item.is_empty() {
                items.entry((of.clone(), item)).or_insert_with(Usage::default).add(usage);
            }
            // Without a session, only the name tells agents apart.
            let unnamed = if session.is_empty() { agent.clone() } else { String::new() };
            let (name, sum) =
                agents.entry((of, session, unnamed)).or_insert_with(|| (String::new(), Usage::default()));
            if !agent.is_empty() {
                *name = agent;
            }
            sum.add(usage);
        }
        let counted = |usage: &Usage| usage.counted(state.config);
        let agents = agents.into_iter().map(|((board, session, _), (agent, usage))| AgentUsage {
            board,
            session,
            agent,
            tokens: counted(&usage),
            usage,
        });
        let items = items.into_iter().map(|((board, item), usage)| ItemUsage {
            board,
            item,
            tokens: counted(&usage),
            usage,
        });
        Ok(Users {
            agents: largest(agents.collect(), |agent| agent.tokens),
            items: largest(items.collect(), |item| item.tokens),
            elsewhere: OtherBoards {
                tokens: counted(&elsewhere.0),
                items: counted(&elsewhere.1),
                reserved: 0,
            },
        })
    }
}

/// The rows with the largest numbers, the largest one first. Those with the same number keep their order.
fn largest<T>(mut rows: Vec<T>, number: impl Fn(&T) -> u64) -> Vec<T> {
    rows.sort_by_key(|row| std::cmp::Reverse(number(row)));
    rows.truncate(MOST_LISTED);
    rows
}

fn load(state: &State<'_>, limit: &RateLimit) -> Load {
    let (requests, usage) = state.timeline.recent(state.now, RECENT_MINUTES);
    let per_minute = |number: u64| number.div_ceil(RECENT_MINUTES.unsigned_abs());
    let (tokens, requests) = (per_minute(usage.counted(state.config)), per_minute(requests));
    Load {
        active_agents: state.active.len() as u64,
        tokens_per_minute: tokens,
        requests_per_minute: requests,
        headroom: limit.tokens_per_minute.map(|limit| limit.saturating_sub(tokens)),
        requests_headroom: limit.requests_per_minute.map(|limit| limit.saturating_sub(requests)),
    }
}

pub(super) fn window_status(state: &State<'_>, window: &Window, rate: u64) -> WindowStatus {
    let (now, reported) = (state.now, state.reported(window, state.now));
    let (used, reserved) = (state.used(window, now), state.reserved(now));
    let remaining = window.budget.saturating_sub(used).saturating_sub(reserved);
    #[expect(clippy::cast_precision_loss, reason = "budgets are below 2^52")]
    let share = used as f64 / window.budget as f64;
    let passed = state.provider.thresholds().into_iter().rfind(|threshold| share >= *threshold);
    WindowStatus {
        window: window.name.clone(),
        seconds: window.length.as_secs(),
        budget: window.budget,
        used,
        reserved,
        remaining,
        available: remaining.saturating_sub(state.provider.operator()),
        usage: state.timeline.usage(now, window.length),
        frees_at: match reported {
            Some(limit) => Some(limit.resets_at),
            None => state.timeline.leaving(now, window.length).next(),
        },
        used_up_at: used_up_at(state, window, rate),
        warning: passed,
        reported: reported.cloned(),
    }
}

/// When a window is used up at this rate, if no reservation is used. Usage that leaves the window meanwhile is taken into
/// account.
fn used_up_at(state: &State<'_>, window: &Window, rate: u64) -> Option<Timestamp> {
    if rate == 0 {
        return None;
    }
    let now = state.now;
    let ends = now.plus(window.length);
    let mut moments: Vec<_> = state.timeline.leaving(now, window.length).filter(|at| *at < ends).collect();
    moments.extend(state.reported(window, now).map(|limit| limit.resets_at));
    moments.push(ends);
    moments.sort_unstable();
    let mut from = now;
    for until in moments {
        // Between these moments, only the rate changes what is used.
        let left = u128::from(window.budget.saturating_sub(state.used(window, from)));
        let needed = u64::try_from(left * 60_000 / u128::from(rate)).unwrap_or(u64::MAX);
        let at = now.plus(Duration::from_millis(needed));
        if at < until {
            return Some(at.max(from));
        }
        from = until;
    }
    None
}
