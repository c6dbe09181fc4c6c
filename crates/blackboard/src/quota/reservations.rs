//! Reservations: tokens that a session holds before it uses them.

use std::time::Duration;

use rusqlite::{Connection, params_from_iter};
use serde::{Deserialize, Serialize};

use super::change::{Change, Release};
use super::check::{Check, State, TokenRequest};
use super::ledger::Ledger;
use super::usage::{Record, check_origin};
use crate::clock::Timestamp;
use crate::error::{Error, Result};

/// The longest time of a reservation.
const LONGEST: Duration = Duration::from_hours(24 * 7);

/// How many reservations there may be.
const MOST: i64 = 1_000;

/// Tokens that a session holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reservation {
    /// Its id.
    pub id: String,
    /// The provider.
    pub provider: String,
    /// The board of the session.
    pub board: String,
    /// The session; empty if none holds it.
    pub session: String,
    /// The name of the agent.
    pub agent: String,
    /// The work item.
    pub item: String,
    /// How many were reserved.
    pub tokens: u64,
    /// How many of them the session has not used since.
    pub left: u64,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it expires.
    pub expires_at: Timestamp,
}

/// The answer to a reservation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Reserved {
    /// Whether it fits, and why not.
    #[serde(flatten)]
    pub check: Check,
    /// The reservation, if it fits.
    pub reservation: Option<Reservation>,
}

impl Ledger {
    /// Reserves tokens if they fit, in one transaction: of many calls only as many succeed as fit together.
    pub fn reserve(&self, request: &TokenRequest, ttl: Duration) -> Result<Reserved> {
        self.reserve_if_it_fits(request, ttl, None)
    }

    /// The same for a work item that a session claims. Replaces what the session has reserved for the item with this provider: a
    /// process may have ended before it claimed the item.
    pub fn reserve_for_claim(&self, request: &TokenRequest, ttl: Duration) -> Result<Reserved> {
        let [board, session, item] =
            [&request.board, &request.session, &request.item].map(|text| text_of(text.as_ref()));
        // A claim that does not know its item yet replaces nothing.
        let provider = request.provider.clone();
        let replaced = request.item.is_some().then_some(Release::ClaimOf { provider, board, session, item });
        self.reserve_if_it_fits(request, ttl, replaced.as_ref())
    }

    fn reserve_if_it_fits(
        &self,
        request: &TokenRequest,
        ttl: Duration,
        replaced: Option<&Release>,
    ) -> Result<Reserved> {
        const COUNT: &str = "SELECT count(*) FROM reservations WHERE expires_at > ?1";
        self.check_reservation(request, ttl)?;
        let reserved = self.change(|connection, now| {
            let mut state = State::load(connection, &self.config, request, now)?;
            state.held.retain(|held| !replaced.is_some_and(|replaced| replaced.includes(held)));
            let check = state.decide(request);
            let count: i64 = connection.query_row(COUNT, [now.millis()], |row| row.get(0))?;
            if !check.fits || count >= MOST {
                let release = replaced.map(|which| Change::Release { which: which.clone() });
                return Ok((release, (Reserved { check, reservation: None }, count)));
            }
            let id = uuid::Uuid::new_v4().simple().to_string()[..12].to_owned();
            let reservation = Reservation::new(id, request, now, ttl);
            let change = Change::Reserve { reservation: reservation.clone(), replaces: replaced.cloned() };
            Ok((Some(change), (Reserved { check, reservation: Some(reservation) }, count)))
        });
        match reserved?.0 {
            (reserved, MOST..) if reserved.check.fits => {
                Err(Error::invalid(format!("there are {MOST} reservations already: release some first")))
            }
            (reserved, _) => Ok(reserved),
        }
    }

    /// Changes a reservation to these tokens of this session and work item, from now on. Adds it if it has expired meanwhile:
    /// the tokens will be used.
    pub fn keep(&self, id: &str, request: &TokenRequest, ttl: Duration) -> Result<()> {
        self.check_reservation(request, ttl)?;
        let kept = |now| Reservation::new(id.to_owned(), request, now, ttl);
        let keep = |now| Change::Reserve { reservation: kept(now), replaces: None };
        self.change(|_, now| Ok((Some(keep(now)), ()))).map(drop)
    }

    fn check_reservation(&self, request: &TokenRequest, ttl: Duration) -> Result<()> {
        self.provider(&request.provider)?;
        check_origin(
            request.board.as_deref(),
            request.session.as_deref(),
            request.agent.as_deref(),
            request.item.as_deref(),
        )?;
        if ttl.is_zero() || ttl > LONGEST {
            return Err(Error::invalid("a reservation lasts from 1 ms to 7 days"));
        }
        Ok(())
    }

    /// Releases the reservation with this id. Returns whether there was one.
    pub fn release(&self, id: &str) -> Result<bool> {
        self.release_all(&Release::Id(id.to_owned())).map(|count| count > 0)
    }

    /// Releases all reservations of a session. Returns how many there were.
    pub fn release_session(&self, board: &str, session: &str) -> Result<usize> {
        self.release_all(&Release::Session { board: board.to_owned(), session: session.to_owned() })
    }

    /// Releases reservations. Changes nothing if there are none.
    fn release_all(&self, which: &Release) -> Result<usize> {
        // Nearly always there is none, and no lock is needed.
        if self.read(|connection| count(connection, which))? == 0 {
            return Ok(0);
        }
        let release = || Change::Release { which: which.clone() };
        let ((), applied) = self.change(|_, _| Ok((Some(release()), ())))?;
        Ok(usize::try_from(applied.rows).unwrap_or(usize::MAX))
    }

    /// Releases what any session has reserved for a work item. Returns how many reservations there were. Writes nothing if
    /// there are none.
    pub fn release_item(&self, board: &str, item: &str) -> Result<usize> {
        self.release_all(&Release::Item { board: board.to_owned(), item: item.to_owned() })
    }

    /// Releases what a session has reserved for a work item. Returns how many reservations there were. Writes nothing if there
    /// are none.
    pub fn release_claim(&self, board: &str, session: &str, item: &str) -> Result<usize> {
        let [board, session, item] = [board, session, item].map(str::to_owned);
        self.release_all(&Release::Claim { board, session, item })
    }

    /// Releases the reservations of sessions that have ended. `has_ended` gets a board and a session. Returns how many were
    /// released. Writes nothing if none has ended.
    pub fn release_ended(&self, mut has_ended: impl FnMut(&str, &str) -> bool) -> Result<usize> {
        const HOLDERS: &str = "SELECT DISTINCT board, session FROM reservations WHERE session <> ''";
        let holders: Vec<(String, String)> = self.read(|connection| {
            let mut statement = connection.prepare_cached(HOLDERS)?;
            statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
        })?;
        let mut released = 0;
        for (board, session) in holders {
            if has_ended(&board, &session) {
                released += self.release_session(&board, &session)?;
            }
        }
        Ok(released)
    }

    /// All reservations that have not expired, the oldest one first.
    pub fn reservations(&self) -> Result<Vec<Reservation>> {
        let now = self.now();
        self.read(|connection| {
            let mut all = Vec::new();
            for provider in self.config.providers.keys() {
                all.extend(held(connection, provider, now)?);
            }
            all.sort_by_key(|reservation| reservation.created_at);
            Ok(all)
        })
    }
}

impl Reservation {
    fn new(id: String, request: &TokenRequest, now: Timestamp, ttl: Duration) -> Reservation {
        Reservation {
            id,
            provider: request.provider.clone(),
            board: text_of(request.board.as_ref()),
            session: text_of(request.session.as_ref()),
            agent: text_of(request.agent.as_ref()),
            item: text_of(request.item.as_ref()),
            tokens: request.tokens,
            left: request.tokens,
            created_at: now,
            expires_at: now.plus(ttl),
        }
    }
}

fn text_of(text: Option<&String>) -> String {
    text.cloned().unwrap_or_default()
}

/// Adds a reservation, or replaces the one with its id.
pub(super) fn store(connection: &Connection, reservation: &Reservation) -> rusqlite::Result<u64> {
    const STORE: &str =
        "INSERT OR REPLACE INTO reservations (id, provider, board, session, agent, item, tokens, created_at,
        expires_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
    let stored = connection.prepare_cached(STORE)?.execute((
        &reservation.id,
        &reservation.provider,
        &reservation.board,
        &reservation.session,
        &reservation.agent,
        &reservation.item,
        i64::try_from(reservation.tokens).unwrap_or(i64::MAX),
        reservation.created_at.millis(),
        reservation.expires_at.millis(),
    ))?;
    // One that is changed begins again.
    connection
        .prepare_cached("DELETE FROM reservation_usage WHERE reservation = ?1")?
        .execute([&reservation.id])?;
    Ok(stored as u64)
}

impl Release {
    /// Whether a reservation is one of them.
    fn includes(&self, held: &Reservation) -> bool {
        match self {
            Release::Id(id) => held.id == *id,
            Release::Session { board, session } => held.board == *board && held.session == *session,
            Release::Item { board, item } => held.board == *board && held.item == *item,
            Release::Claim { board, session, item } => {
                held.board == *board && held.session == *session && held.item == *item
            }
            Release::ClaimOf { provider, board, session, item } => {
                let claim = (&held.provider, &held.board, &held.session, &held.item);
                claim == (provider, board, session, item)
            }
        }
    }

    /// The condition of its reservations, and the values in it.
    fn condition(&self) -> (&'static str, Vec<&str>) {
        match self {
            Release::Id(id) => ("id = ?1", vec![id]),
            Release::Session { board, session } => ("board = ?1 AND session = ?2", vec![board, session]),
            Release::Item { board, item } => ("board = ?1 AND item = ?2", vec![board, item]),
            Release::Claim { board, session, item } => {
                ("board = ?1 AND session = ?2 AND item = ?3", vec![board, session, item])
            }
            Release::ClaimOf { provider, board, session, item } => (
                "provider = ?1 AND board = ?2 AND session = ?3 AND item = ?4",
                vec![provider, board, session, item],
            ),
        }
    }
}

/// Removes reservations. Returns how many there were.
pub(super) fn remove(connection: &Connection, which: &Release) -> rusqlite::Result<u64> {
    let (condition, values) = which.condition();
    let mut statement = connection.prepare_cached(&format!("DELETE FROM reservations WHERE {condition}"))?;
    let removed = statement.execute(params_from_iter(values))? as u64;
    remove_usage(connection)?;
    Ok(removed)
}

/// Removes what is known about the usage of reservations that are gone.
fn remove_usage(connection: &Connection) -> rusqlite::Result<()> {
    const GONE: &str = "DELETE FROM reservation_usage WHERE reservation NOT IN (SELECT id FROM reservations)";
    connection.prepare_cached(GONE)?.execute([]).map(drop)
}

/// How many reservations these are.
pub(super) fn count(connection: &Connection, which: &Release) -> rusqlite::Result<u64> {
    let (condition, values) = which.condition();
    let query = format!("SELECT count(*) FROM reservations WHERE {condition}");
    let mut statement = connection.prepare_cached(&query)?;
    let count: i64 = statement.query_row(params_from_iter(values), |row| row.get(0))?;
    Ok(count.unsigned_abs())
}

/// Removes reservations that have expired.
pub(super) fn remove_expired(connection: &Connection, now: Timestamp) -> rusqlite::Result<()> {
    // A reservation that begins more than a week ahead was made by a clock that was wrong.
    const EXPIRED: &str = "DELETE FROM reservations WHERE expires_at <= ?1 OR created_at > ?2";
    connection.prepare_cached(EXPIRED)?.execute((now.millis(), now.plus(LONGEST).millis()))?;
    remove_usage(connection)
}

/// Takes the tokens of a record from what its session has reserved before: from the newest reservation first.
pub(super) fn use_tokens(connection: &Connection, record: &Record, tokens: u64) -> rusqlite::Result<()> {
    const HELD: &str =
        "SELECT id, reservations.tokens, coalesce(reservation_usage.tokens, 0) FROM reservations
        LEFT JOIN reservation_usage ON reservation = id
        WHERE provider = ?1 AND board = ?2 AND session = ?3 AND created_at <= ?4 AND expires_at > ?4
        ORDER BY created_at DESC, id";
    const USE: &str = "INSERT INTO reservation_usage (reservation, tokens) VALUES (?1, ?2)
        ON CONFLICT (reservation) DO UPDATE SET tokens = tokens + ?2";
    let (Some(board), Some(session)) = (&record.board, &record.session) else { return Ok(()) };
    let mut statement = connection.prepare_cached(HELD)?;
    let of = (&record.provider, board, session, record.at.millis());
    let rows = statement.query_map(of, |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    let mut unassigned = tokens;
    for (id, reserved, used) in rows.collect::<rusqlite::Result<Vec<(String, i64, i64)>>>()? {
        let part = unassigned.min(reserved.saturating_sub(used).max(0).unsigned_abs());
        if part > 0 {
            connection.prepare_cached(USE)?.execute((id, i64::try_from(part).unwrap_or(i64::MAX)))?;
            unassigned -= part;
        }
    }
    Ok(())
}

/// The reservations of a provider, with what is left of them, the newest one first.
pub(super) fn held(
    connection: &Connection,
    provider: &str,
    now: Timestamp,
) -> rusqlite::Result<Vec<Reservation>> {
    const HELD: &str = "SELECT id, board, session, agent, item, reservations.tokens, created_at, expires_at,
        coalesce(reservation_usage.tokens, 0) FROM reservations LEFT JOIN reservation_usage ON reservation = id
        WHERE provider = ?1 AND expires_at > ?2 AND created_at <= ?3 ORDER BY created_at DESC, id";
    let mut statement = connection.prepare_cached(HELD)?;
    let rows = statement.query_map((provider, now.millis(), now.plus(LONGEST).millis()), |row| {
        let tokens = row.get::<_, i64>(5)?.unsigned_abs();
        Ok(Reservation {
            id: row.get(0)?,
            provider: provider.to_owned(),
            board: row.get(1)?,
            session: row.get(2)?,
            agent: row.get(3)?,
            item: row.get(4)?,
            tokens,
            left: tokens.saturating_sub(row.get::<_, i64>(8)?.unsigned_abs()),
            created_at: Timestamp::from_millis(row.get(6)?),
            expires_at: Timestamp::from_millis(row.get(7)?),
        })
    })?;
    rows.collect()
}
