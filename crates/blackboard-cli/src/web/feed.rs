//! The thread that follows the board, and the commits that it read last.
//!
//! The thread waits for events, reads them, and encodes each commit once, for all browsers. It keeps the newest commits
//! for streams that are slightly behind. A stream that is further behind reads the event log itself
//! ([`Feed::read_log`]).
//!
//! The board may not exist yet, may be unreadable for a while, and may be deleted or replaced. The feed then reports
//! that and opens the board again. A stream ends when the board is replaced, because revisions of one board mean
//! nothing on another.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{JoinHandle, Thread};
use std::time::{Duration, Instant};

use blackboard::event::Event;
use blackboard::follow::{Follow, Start, StopHandle};
use blackboard::{Board, Code, Error, Fault, Refusal, Result, Revision};
use hyper::body::Bytes;
use serde::Serialize;
use tokio::sync::watch;

use super::event_view::{EventView, Names};
use crate::engine::{Mode, Opening};
use crate::hints::{self, GivenOptions};
use crate::open::ResolvedBoard;

/// How long one wait for events lasts. After this time, a feed that should stop notices it.
const SLICE: Duration = Duration::from_millis(200);

/// How long to wait before the next attempt to open a board that is missing or unreadable.
const PAUSE: Duration = Duration::from_millis(250);

/// How long a request waits until the feed has opened an existing board, and the interval of its checks.
const TO_APPEAR: Duration = Duration::from_secs(1);
const MOMENT: Duration = Duration::from_millis(1);

/// The maximum number of events per read.
const BATCH: usize = 500;

/// The maximum size of the commits that are kept, in bytes.
const KEPT_BYTES: usize = 4 * 1024 * 1024;

/// A new board is followed from its first event if it has at most this many events.
const FEW: usize = 1000;

/// The identity of a board that is missing or unreadable.
const NO_BOARD: &str = "none";

/// The state of a board, and its newest commits.
pub struct Feed {
    resolved: ResolvedBoard,
    state: Mutex<State>,
    /// Notifies streams of every change of the state.
    changes: watch::Sender<u64>,
    stop: StopHandle,
    /// The thread that follows the board.
    thread: OnceLock<Thread>,
}

struct State {
    view: View,
    /// The number of boards that were opened so far.
    generation: u64,
    /// The identity of the board's file. It does not depend on the path, and survives a restart of the server.
    identity: String,
    kept: VecDeque<Commit>,
    kept_bytes: usize,
    /// The revision up to which the event log was read.
    end: Revision,
}

/// The state of the board.
enum View {
    Open(Board),
    Missing,
    Unreadable(Problem),
}

/// Why a board cannot be read. Every caller gets the same error.
struct Problem {
    code: Code,
    message: String,
    hint: Option<String>,
    refused: bool,
}

/// The state of the board in JSON.
#[derive(Serialize)]
pub struct Condition {
    /// `open`, `missing` or `unreadable`.
    pub state: &'static str,
    /// Why it cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The hint of that error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// One commit, encoded for browsers.
struct Commit {
    /// The revision before its first event.
    before: Revision,
    /// The revision of its last event.
    last: Revision,
    bytes: Bytes,
}

/// The result of a request for what follows a revision.
pub enum Following {
    /// The next commit, and its last revision.
    Next(Bytes, Revision),
    /// Nothing yet.
    Nothing,
    /// The commit is no longer kept in memory: read the event log.
    InLog,
    /// The board was replaced, or there is none.
    Elsewhere,
}

impl Feed {
    /// Starts the thread that follows a board.
    pub fn start(resolved: ResolvedBoard) -> Result<(Arc<Feed>, JoinHandle<()>)> {
        let state = State {
            view: View::Missing,
            generation: 0,
            identity: String::new(),
            kept: VecDeque::new(),
            kept_bytes: 0,
            end: Revision::ZERO,
        };
        let feed = Arc::new(Feed {
            resolved,
            state: Mutex::new(state),
            changes: watch::Sender::new(0),
            stop: StopHandle::default(),
            thread: OnceLock::new(),
        });
        // The first request should see the board, not the state before it was opened.
        let first = feed.find_board();
        let following = Arc::clone(&feed);
        let thread = std::thread::Builder::new()
            .name("feed".to_owned())
            .spawn(move || following.run(first))
            .map_err(|error| Fault::new(Code::Io, "a thread could not be started").because(error))?;
        let _ = feed.thread.set(thread.thread().clone());
        Ok((feed, thread))
    }

    /// The board, or an empty one if it does not exist. May wait for a board that was just created.
    pub fn board(&self) -> Result<Board> {
        let until = Instant::now() + TO_APPEAR;
        while self.is_missing() && self.resolved.engine.exists() && Instant::now() < until {
            // A client that has just written must not get an empty response.
            if let Some(thread) = self.thread.get() {
                thread.unpark();
            }
            std::thread::sleep(MOMENT);
        }
        match &self.state().view {
            View::Open(board) => Ok(board.clone()),
            View::Missing => Ok(self.empty()),
            View::Unreadable(problem) => Err(problem.to_error()),
        }
    }

    /// An empty board.
    pub fn empty(&self) -> Board {
        self.resolved.empty()
    }

    /// The state of the board.
    pub fn condition(&self) -> Condition {
        let (state, problem) = match &self.state().view {
            View::Open(_) => ("open", None),
            View::Missing => ("missing", None),
            View::Unreadable(problem) => {
                ("unreadable", Some((problem.message.clone(), problem.hint.clone())))
            }
        };
        let (error, hint) = problem.map_or((None, None), |(error, hint)| (Some(error), hint));
        Condition { state, error, hint }
    }

    /// The identity of the current board: a different file at the same path has a different one. `none` if there is no
    /// board.
    pub fn identity(&self) -> String {
        self.state().identity.clone()
    }

    /// The location of the board.
    pub fn name(&self) -> String {
        self.resolved.engine.name()
    }

    /// The number of the current board, and the revision up to which its event log was read.
    pub fn position(&self) -> (u64, Revision) {
        let state = self.state();
        (state.generation, state.end)
    }

    /// Wakes the streams that wait for new events.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// The commit that follows `after` on the board with this number.
    pub fn following(&self, generation: u64, after: Revision) -> Following {
        let state = self.state();
        if state.generation != generation {
            return Following::Elsewhere;
        }
        if after >= state.end {
            return Following::Nothing;
        }
        // Each commit begins where the one before it ends, also if ids between them are missing. So a binary search finds
        // the next one.
        match state.kept.binary_search_by_key(&after, |commit| commit.before) {
            Ok(place) => Following::Next(state.kept[place].bytes.clone(), state.kept[place].last),
            Err(_) => Following::InLog,
        }
    }

    /// Reads complete commits from the event log, and returns them with their last revision.
    pub fn read_log(&self, after: Revision) -> Result<Option<(Bytes, Revision)>> {
        let board = self.board()?;
        let page = board.events().lines(after, BATCH)?;
        let Some(last) = page.events.last().map(|event| event.id) else { return Ok(None) };
        let names = Names::of_actors(&board, &page.events)?;
        let mut bytes = Vec::new();
        for event in &page.events {
            write_event(event, &names, &mut bytes)?;
        }
        Ok(Some((bytes.into(), last)))
    }

    /// Ends all streams.
    pub fn stop(&self) {
        self.stop.stop();
        self.state().generation += 1;
        self.notify();
    }

    fn run(&self, first: Option<(Board, Revision)>) {
        let mut found = first;
        while !self.stop.is_stopped() {
            if let Some((board, position)) = found.take()
                && let Err(error) = self.follow(&board, position)
            {
                self.close(View::Unreadable(Problem::of(&error)));
            }
            if self.stop.is_stopped() {
                return;
            }
            found = self.find_board();
            if found.is_none() {
                std::thread::park_timeout(PAUSE);
            }
        }
    }

    /// Opens the board, and returns the revision to follow it from.
    fn find_board(&self) -> Option<(Board, Revision)> {
        let opened = self.resolved.open(Opening::new(Mode::ReadOnly)).and_then(|opened| {
            let Some(board) = opened.existing() else { return Ok(None) };
            let revision = board.revision()?;
            Ok(Some((board, revision)))
        });
        match opened {
            Ok(Some((board, revision))) => {
                // A client that waited for the board to appear has seen none of its events, and must not miss any.
                let is_new = self.waits_for_new_board();
                // Read without the lock of the state, because every request needs that lock.
                let from_start = is_new && is_small(&board);
                let identity = self.resolved.engine.identity().unwrap_or_else(|| NO_BOARD.to_owned());
                let mut state = self.state();
                let start = if from_start { Revision::ZERO } else { revision };
                if start != Revision::ZERO || !is_new {
                    state.generation += 1;
                }
                state.view = View::Open(board.clone());
                state.identity = identity;
                state.end = start;
                drop(state);
                self.notify();
                Some((board, start))
            }
            Ok(None) => {
                self.close(View::Missing);
                None
            }
            // The server has lost it. Another board under its name is an error.
            Err(error) if error.code() == Code::BoardNotFound && !self.resolved.engine.exists() => {
                self.close(View::Missing);
                None
            }
            Err(error) => {
                self.close(View::Unreadable(Problem::of(&error)));
                None
            }
        }
    }

    /// Delivers events until the board is gone. Never sweeps, because the server never writes.
    fn follow(&self, board: &Board, mut position: Revision) -> Result<()> {
        let follow_from = |revision| {
            let start = Start::Revision(revision);
            board.follow(&Follow { start, without_values: true, without_sweep: true, ..Follow::default() })
        };
        let mut follower = follow_from(position)?;
        while !self.stop.is_stopped() {
            match follower.next_batch(BATCH, SLICE) {
                Ok(Some(batch)) => position = self.keep(board, position, &batch.events)?,
                Ok(None) => {}
                Err(error) if error.code() == Code::Compacted => {
                    // These events were pruned before they were read. A client that is behind sees the error of the
                    // event log.
                    position = board.revision()?;
                    follower = follow_from(position)?;
                    let mut state = self.state();
                    state.forget();
                    state.end = position;
                    drop(state);
                    self.notify();
                }
                Err(error) if error.code() == Code::CursorAhead => {
                    return Err(Fault::new(Code::Io, "the board went back to an older state").into());
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Keeps events for the streams, and returns their last revision.
    fn keep(&self, board: &Board, mut before: Revision, events: &[Event]) -> Result<Revision> {
        let names = Names::of_actors(board, events)?;
        let mut commits = Vec::new();
        for events in events.chunk_by(|a, b| a.commit_id == b.commit_id) {
            let mut bytes = Vec::with_capacity(512 * events.len());
            for event in events {
                write_event(event, &names, &mut bytes)?;
            }
            let last = events.last().map_or(before, |event| event.id);
            commits.push(Commit { before, last, bytes: bytes.into() });
            before = last;
        }
        self.state().keep(commits, before);
        self.notify();
        Ok(before)
    }

    /// Records that the board can no longer be read.
    fn close(&self, view: View) {
        let mut state = self.state();
        let was_open = matches!(state.view, View::Open(_));
        let first = state.generation == 0;
        state.view = view;
        NO_BOARD.clone_into(&mut state.identity);
        if was_open || first {
            state.generation += 1;
            state.forget();
            state.end = Revision::ZERO;
            drop(state);
            self.notify();
        }
    }

    /// Whether clients wait for a board that does not exist. Only the feed's own thread changes that.
    fn waits_for_new_board(&self) -> bool {
        let state = self.state();
        matches!(state.view, View::Missing) && state.generation > 0
    }

    fn is_missing(&self) -> bool {
        matches!(self.state().view, View::Missing)
    }

    fn notify(&self) {
        self.changes.send_modify(|count| *count += 1);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn keep(&mut self, commits: Vec<Commit>, end: Revision) {
        for commit in commits {
            self.kept_bytes += commit.bytes.len();
            self.kept.push_back(commit);
        }
        // The newest commit stays, even if it is too large: a stream waits for it.
        while self.kept_bytes > KEPT_BYTES && self.kept.len() > 1 {
            let Some(oldest) = self.kept.pop_front() else { break };
            self.kept_bytes -= oldest.bytes.len();
        }
        self.end = end;
    }

    fn forget(&mut self) {
        self.kept.clear();
        self.kept_bytes = 0;
    }
}

impl Problem {
    fn of(error: &Error) -> Problem {
        Problem {
            code: error.code(),
            message: error.to_string(),
            hint: error.hint().map(|hint| hints::as_command(hint, &GivenOptions::default()).into_owned()),
            refused: matches!(error, Error::Refusal(_)),
        }
    }

    fn to_error(&self) -> Error {
        let Problem { code, message, hint, refused } = self;
        if *refused {
            let refusal = Refusal::new(*code, message);
            return hint.iter().cloned().fold(refusal, Refusal::hint).into();
        }
        let fault = Fault::new(*code, message);
        hint.iter().cloned().fold(fault, Fault::hint).into()
    }
}

/// Whether a new board has so few events that it is followed from its beginning.
fn is_small(board: &Board) -> bool {
    board.events().lines(Revision::ZERO, FEW).is_ok_and(|lines| lines.next.is_none())
}

/// Encodes an event for browsers. `id` is its revision, so that a client that reconnects continues after it.
fn write_event(event: &Event, names: &Names, out: &mut Vec<u8>) -> Result<()> {
    let view = EventView::of(event, names);
    // Compact JSON has no line breaks, so it fits on one line of the stream.
    out.extend_from_slice(format!("id: {}\ndata: ", event.id).as_bytes());
    serde_json::to_writer(&mut *out, &view)
        .map_err(|error| Fault::new(Code::Internal, "an event is not JSON").because(error))?;
    out.extend_from_slice(b"\n\n");
    Ok(())
}
