//! Waiting for events: one connection for all waiting threads of a store.
//!
//! One of these threads reads from the connection, which blocks on the stream from the last known revision on, so that
//! no event is missed between two reads. It wakes the others. A thread whose time is over leaves the connection with
//! its unanswered request to the next one. While the server cannot be reached, waiting threads look for themselves, so
//! that a lost wake-up costs at most a quarter of a second.
//!
//! The answer has the new events, and the versions that the thread has asked for in advance. If they are everything
//! that is new, a follower need not read them: an event arrives with one round trip.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::Inner;
use super::connection::Connection;
use super::faults::{self, ServerError};
use super::fetch::{Answers, Want, optional, wants_of};
use super::layout;
use super::resp::{Reply, Request};
use crate::clock::Timestamp;
use crate::error::Result;
use crate::revision::Revision;
use crate::store::Prefetch;

/// How long the server blocks at most. Then it is checked that the board still exists.
const BLOCK: Duration = Duration::from_secs(1);

/// How much longer than that the answer may take.
const GRACE: Duration = Duration::from_secs(1);

/// How long it is believed that the server is still the primary. A demoted one also ends its wait.
const ROLE_CHECK_INTERVAL: Duration = Duration::from_secs(5);

/// How long a thread sleeps between two checks while no thread can listen.
const CHECK: Duration = Duration::from_millis(250);

/// How long a connection is kept that no thread reads from: a follower waits again soon.
const LINGER: Duration = Duration::from_secs(2);

/// The first pause after a failure. The longest is `BLOCK`.
const FIRST_PAUSE: Duration = Duration::from_millis(10);

/// How many new events an answer has at most, if it has any.
const MAX_NEWS: usize = 16;

/// An answer that comes so soon after a thread began to wait may have been made before.
const TOO_SOON: Duration = Duration::from_millis(1);

/// What waiting threads share.
#[derive(Default)]
pub(super) struct Listener {
    state: Mutex<ListenerState>,
    changed: Condvar,
}

#[derive(Default)]
struct ListenerState {
    /// The last known revision.
    known: Revision,
    /// Whether a thread reads from the connection.
    is_led: bool,
    /// The connection, if no thread reads from it.
    parked: Option<ParkedConnection>,
    /// How often it failed. After each failure, waiting threads look for themselves once.
    failures: u64,
    /// After a failure: when another connection may be made, and the next pause.
    pause: Option<(Instant, Duration)>,
}

/// A connection between two threads.
struct ParkedConnection {
    connection: Connection,
    asked: Option<PendingListen>,
    since: Instant,
}

/// A request that is not answered yet.
struct PendingListen {
    /// The events after this revision.
    after: Revision,
    wants: Arc<[Want]>,
    answer_by: Instant,
}

/// An answer of the server.
struct News {
    revision: Revision,
    /// The new events after the revision that was asked for, if these are all of them.
    news: Option<Answers>,
}

impl Listener {
    fn state(&self) -> MutexGuard<'_, ListenerState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes waiting threads, if there is a new event.
    pub(super) fn tell(&self, revision: Revision) {
        let mut state = self.state();
        if state.known < revision {
            state.known = revision;
            self.changed.notify_all();
        }
    }

    /// Whether every later event is noticed without another look at the board.
    fn is_informed(&self) -> bool {
        let mut state = self.state();
        state.parked.take_if(|parked| parked.since.elapsed() > LINGER);
        state.is_led || state.parked.is_some()
    }
}

/// What an answer should have besides the revision: the events of a page, and versions.
pub(super) fn wants_of_wait(after: Revision, prefetch: &[Prefetch<'_>]) -> Result<Vec<Want>> {
    let wants = wants_of(prefetch, Timestamp::EPOCH)?;
    let is_page = |want: &Want| matches!(want, Want::Events { after: from, until: Revision::MAX, .. } if *from == after);
    let is_possible = match wants.split_first() {
        Some((page, versions)) => {
            is_page(page) && versions.iter().all(|want| matches!(want, Want::Version(_)))
        }
        None => false,
    };
    Ok(if is_possible { wants } else { Vec::new() })
}

impl Inner {
    /// The revision of the board when it is greater than `after`, or after the timeout; perhaps with what is wanted.
    pub(super) fn wait(
        &self,
        after: Revision,
        timeout: Duration,
        wants: &[Want],
    ) -> Result<(Revision, Option<Answers>)> {
        let end = Instant::now().checked_add(timeout);
        // While a thread listens, every later event is noticed. Otherwise, and in the end, this thread asks.
        let mut is_informed = !timeout.is_zero() && self.listener.is_informed();
        loop {
            if !std::mem::take(&mut is_informed) {
                let now = self.revision()?;
                self.listener.tell(now);
                if now > after || end.is_some_and(|end| Instant::now() >= end) {
                    return Ok((now, None));
                }
            }
            if let Some(News { revision, news }) = self.sleep(after, end, wants) {
                return Ok((revision, news));
            }
        }
    }

    /// Sleeps until a later revision is known. Otherwise until the end, or until it is time for a check.
    fn sleep(&self, after: Revision, end: Option<Instant>, wants: &[Want]) -> Option<News> {
        let listener = &self.listener;
        let mut state = listener.state();
        let (mut check, failures) = (None, state.failures);
        loop {
            if state.known > after {
                return Some(News { revision: state.known, news: None });
            }
            let now = Instant::now();
            let is_over = end.is_some_and(|end| now >= end) || check.is_some_and(|check| now >= check);
            if is_over || state.failures != failures {
                return None;
            }
            let pauses_until = state.pause.map(|(until, _)| until).filter(|until| now < *until);
            if !state.is_led && pauses_until.is_none() {
                state.is_led = true;
                let (parked, known) = (state.parked.take(), state.known);
                drop(state);
                let led = self.lead(parked, known, end, wants);
                state = listener.state();
                let heard = self.note_led(&mut state, led);
                listener.changed.notify_all();
                match heard {
                    Some(heard) if heard.revision > after => return Some(heard),
                    _ => continue,
                }
            }
            // If no thread listens, this one looks for itself.
            check = if state.is_led { None } else { Some(check.unwrap_or(now + CHECK)) };
            let wakes_at = [end, check, pauses_until].into_iter().flatten().min();
            state = match wakes_at {
                Some(wakes_at) => {
                    let left = wakes_at.saturating_duration_since(now);
                    listener.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0
                }
                None => listener.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }

    /// After a thread has read from the connection.
    fn note_led(
        &self,
        state: &mut ListenerState,
        led: Result<(ParkedConnection, Option<News>), ServerError>,
    ) -> Option<News> {
        state.is_led = false;
        match led {
            Ok((parked, heard)) => {
                (state.parked, state.pause) = (Some(parked), None);
                if let Some(heard) = &heard {
                    state.known = state.known.max(heard.revision);
                }
                heard
            }
            Err(error) => {
                self.pool.learn(&error);
                state.failures += 1;
                let pause = state.pause.map_or(FIRST_PAUSE, |(_, pause)| pause);
                state.pause = Some((Instant::now() + pause, (pause * 2).min(BLOCK)));
                // Another primary may have fewer events. Every thread asks it before it waits again.
                state.known = Revision::ZERO;
                None
            }
        }
    }

    /// Reads from the connection until it has an answer, until the end at most.
    fn lead(
        &self,
        parked: Option<ParkedConnection>,
        known: Revision,
        end: Option<Instant>,
        wants: &[Want],
    ) -> Result<(ParkedConnection, Option<News>), ServerError> {
        let parked = parked.filter(|parked| self.pool.is_current(&parked.connection));
        let mut parked = if let Some(parked) = parked {
            parked
        } else {
            let connection = self.pool.connect(Instant::now() + GRACE)?;
            ParkedConnection { connection, asked: None, since: Instant::now() }
        };
        // A server that is demoted closes the connections that wait, and no others.
        let heard =
            self.listen_on(&mut parked, known, end, wants).inspect_err(|_| self.pool.replace_all())?;
        parked.since = Instant::now();
        Ok((parked, heard))
    }

    fn listen_on(
        &self,
        parked: &mut ParkedConnection,
        known: Revision,
        end: Option<Instant>,
        wants: &[Want],
    ) -> Result<Option<News>, ServerError> {
        let ParkedConnection { connection, asked, .. } = parked;
        let address = &self.pool.address;
        let broken =
            |broken: super::connection::BrokenConnection| faults::of_connection(address, broken.error);
        let begun = Instant::now();
        let earlier = asked.take();
        let is_new = earlier.is_none();
        let asked_now = if let Some(earlier) = earlier {
            earlier
        } else {
            // A replica would answer, and may not know of new events.
            connection.check(address, ROLE_CHECK_INTERVAL, begun + GRACE)?;
            let request = self.request_to_listen(known, wants);
            connection.send(&request, Instant::now() + GRACE).map_err(broken)?;
            PendingListen { after: known, wants: wants.into(), answer_by: Instant::now() + BLOCK + GRACE }
        };
        let until = end.map_or(asked_now.answer_by, |end| end.min(asked_now.answer_by));
        if !connection.has_reply(until).map_err(broken)? {
            if Instant::now() >= asked_now.answer_by {
                return Err(faults::of_connection(address, std::io::ErrorKind::TimedOut.into()));
            }
            *asked = Some(asked_now);
            return Ok(None);
        }
        let is_recent = is_new || begun.elapsed() >= TOO_SOON;
        let replies = connection.receive(2, Instant::now() + GRACE).map_err(broken)?;
        let mut heard = self.hear(&asked_now, replies)?;
        if !is_recent || asked_now.wants[..] != *wants {
            heard.news = None;
        }
        Ok(Some(heard))
    }

    /// Blocks on the stream. Then reads the newest revision, whether the board is still there, and versions.
    fn request_to_listen(&self, after: Revision, wants: &[Want]) -> Request {
        let mut request = Request::default();
        let (block, id) = (BLOCK.as_millis().to_string(), after.to_string());
        let count = if wants.is_empty() { 1 } else { MAX_NEWS + 1 }.to_string();
        let xread: [&[u8]; 8] = [
            b"XREAD",
            b"COUNT",
            count.as_bytes(),
            b"BLOCK",
            block.as_bytes(),
            b"STREAMS",
            &self.keys.log,
            id.as_bytes(),
        ];
        request.command(&xread);
        let versions = versions_of(wants);
        request.begin(3 + versions.clone().count());
        for argument in [b"HMGET", &self.keys.rows[..], layout::STATE] {
            request.argument(argument);
        }
        for revision in versions {
            request.argument(&layout::version_field(revision));
        }
        request
    }

    fn hear(&self, asked: &PendingListen, replies: Vec<Reply>) -> Result<News, ServerError> {
        let address = &self.pool.address;
        let odd = || ServerError::Final(faults::odd_reply(address));
        for reply in &replies {
            if let Reply::Error(text) = reply {
                return Err(faults::of_reply(address, text));
            }
        }
        let mut replies = replies.into_iter();
        let (streams, Some(Reply::List(fields))) = (replies.next(), replies.next()) else {
            return Err(odd());
        };
        let mut fields = fields.into_iter();
        let state = match fields.next() {
            Some(Reply::Bytes(stored)) => self.read_state(&stored).map_err(ServerError::Final)?,
            // Waiting threads look for themselves, and report it.
            Some(Reply::Nil) => return Err(ServerError::Final(faults::gone(address))),
            _ => return Err(odd()),
        };
        let revision = state.revision;
        let events = streams.and_then(events_of).unwrap_or_default();
        // The state is newer than the events. If it ends with the last of them, nothing happened in between.
        let last = events.last().and_then(id_of).and_then(layout::revision_of);
        let is_complete = events.len() <= MAX_NEWS && last == Some(revision);
        let is_asked = |page: &&Want| matches!(page, Want::Events { after, .. } if *after == asked.after);
        let Some(page) = asked.wants.first().filter(|_| is_complete).filter(is_asked) else {
            return Ok(News { revision, news: None });
        };
        let mut answers = Answers::new(state, self.now(), Vec::new());
        answers.replies.insert(page.clone(), Reply::List(events));
        for (version, stored) in versions_of(&asked.wants).zip(fields) {
            answers.versions.insert(version, optional(stored).map_err(|()| odd())?);
        }
        Ok(News { revision, news: Some(answers) })
    }
}

fn versions_of(wants: &[Want]) -> impl Iterator<Item = Revision> + Clone {
    wants.iter().filter_map(|want| if let Want::Version(revision) = want { Some(*revision) } else { None })
}

/// The events of a reply to `XREAD`.
fn events_of(reply: Reply) -> Option<Vec<Reply>> {
    let Reply::List(mut streams) = reply else { return None };
    let Reply::List(mut stream) = streams.pop()? else { return None };
    if let Reply::List(events) = stream.pop()? { Some(events) } else { None }
}

/// The id of an event in a reply.
fn id_of(event: &Reply) -> Option<&[u8]> {
    let Reply::List(parts) = event else { return None };
    if let Some(Reply::Bytes(id)) = parts.first() { Some(id) } else { None }
}
