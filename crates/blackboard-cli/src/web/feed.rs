//! The one thread that follows the board, and what it has read last.
//!
//! It waits until something happens, reads it, and turns each commit into the bytes that every browser gets: once,
//! however many they are. The newest commits are kept for streams that are a little behind. A stream that is further behind
//! reads the event log itself ([`Feed::read_log`]).
//!
//! The board may not exist yet, may be unreadable for a while, and may be deleted or replaced: then the feed reports
//! it and opens the board again. A stream ends when the board is replaced, because revisions of one board mean nothing
//! on another.

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
use crate::hints::{self, GivenOptions};
use crate::open::{Mode, Opening, ResolvedBoard};

/// How long one wait for the board lasts: after this time a feed that is to end notices it.
const SLICE: Duration = Duration::from_millis(200);

/// How long to wait before looking for a board again that is not there, or can't be read.
const PAUSE: Duration = Duration::from_millis(250);

/// How long a board that is there may take to be seen, and how long one look at that takes.
const TO_APPEAR: Duration = Duration::from_secs(1);
const MOMENT: Duration = Duration::from_millis(1);

/// How many events are read together.
const BATCH: usize = 500;

/// How many bytes of what was read last are kept.
const KEPT_BYTES: usize = 4 * 1024 * 1024;

/// A new board is followed from its beginning if it has no more events than this.
const FEW: usize = 1000;

/// The word for a board that does not exist, or can't be read.
const NO_BOARD: &str = "none";

/// What is known of a board, and what happened on it last.
pub struct Feed {
    resolved: ResolvedBoard,
    state: Mutex<State>,
    /// Changes whenever there is something new.
    changes: watch::Sender<u64>,
    stop: StopHandle,
    /// The one that follows.
    thread: OnceLock<Thread>,
}

struct State {
    view: View,
    /// Counts the boards that were opened.
    generation: u64,
    /// Which file the board is in, whatever its name; also after the server was started again.
    identity: String,
    kept: VecDeque<Commit>,
    kept_bytes: usize,
    /// How far the log was read.
    end: Revision,
}

/// How the board is.
enum View {
    Open(Board),
    Missing,
    Unreadable(Problem),
}

/// Why a board cannot be read, for every caller.
struct Problem {
    code: Code,
    message: String,
    hint: Option<String>,
    refused: bool,
}

/// How the board is, for people and programs.
#[derive(Serialize)]
pub struct Condition {
    /// `open`, `missing` or `unreadable`.
    pub state: &'static str,
    /// Why it can't be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// One commit as browsers get it.
struct Commit {
    /// The revision before its first event.
    before: Revision,
    /// That of its last one.
    last: Revision,
    bytes: Bytes,
}

/// What follows a place in the log.
pub enum Following {
    /// The next commit, and where it ends.
    Next(Bytes, Revision),
    /// Nothing yet.
    Nothing,
    /// It was read too long ago: the log has it.
    InLog,
    /// This is another board, or none.
    Elsewhere,
}

impl Feed {
    /// A feed of a board, and the thread that follows it.
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
        // The first request sees the board, not that it has not been opened yet.
        let first = feed.look();
        let following = Arc::clone(&feed);
        let thread = std::thread::Builder::new()
            .name("feed".to_owned())
            .spawn(move || following.run(first))
            .map_err(|error| Fault::new(Code::Io, "a thread could not be started").because(error))?;
        let _ = feed.thread.set(thread.thread().clone());
        Ok((feed, thread))
    }

    /// The board; an empty one if there is none. May wait for one that was just created.
    pub fn board(&self) -> Result<Board> {
        let until = Instant::now() + TO_APPEAR;
        while self.is_missing() && self.resolved.engine.exists() && Instant::now() < until {
            // A client that has just written must not get an empty answer.
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

    /// A board on which there is nothing.
    pub fn empty(&self) -> Board {
        self.resolved.empty()
    }

    /// How the board is.
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

    /// A word for the board that is shown: another file at the same place has another one. `none` if there is none.
    pub fn identity(&self) -> String {
        self.state().identity.clone()
    }

    /// Where the board is.
    pub fn name(&self) -> String {
        self.resolved.engine.name()
    }

    /// Which board this is, counted, and how far its log was read.
    pub fn place(&self) -> (u64, Revision) {
        let state = self.state();
        (state.generation, state.end)
    }

    /// Wakes the streams that wait for new events.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// What follows `after` on a board.
    pub fn following(&self, generation: u64, after: Revision) -> Following {
        let state = self.state();
        if state.generation != generation {
            return Following::Elsewhere;
        }
        if after >= state.end {
            return Following::Nothing;
        }
        // They follow each other without gaps, so that the place of one is found by halving.
        match state.kept.binary_search_by_key(&after, |commit| commit.before) {
            Ok(place) => Following::Next(state.kept[place].bytes.clone(), state.kept[place].last),
            Err(_) => Following::InLog,
        }
    }

    /// Reads on from the log itself: whole commits, and where they end.
    pub fn read_log(&self, after: Revision) -> Result<Option<(Bytes, Revision)>> {
        let board = self.board()?;
        let page = board.events().lines(after, BATCH)?;
        let Some(last) = page.events.last().map(|event| event.id) else { return Ok(None) };
        let names = Names::of_actors(&board, &page.events)?;
        let mut bytes = Vec::new();
        for event in &page.events {
            tell(event, &names, &mut bytes)?;
        }
        Ok(Some((bytes.into(), last)))
    }

    /// Ends all streams.
    pub fn stop(&self) {
        self.stop.stop();
        self.state().generation += 1;
        self.tell();
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
            found = self.look();
            if found.is_none() {
                std::thread::park_timeout(PAUSE);
            }
        }
    }

    /// Looks for the board, and says where to follow it from.
    fn look(&self) -> Option<(Board, Revision)> {
        let opened = self.resolved.open(Opening::new(Mode::ReadOnly)).and_then(|opened| {
            let Some(board) = opened.existing() else { return Ok(None) };
            let revision = board.revision()?;
            Ok(Some((board, revision)))
        });
        match opened {
            Ok(Some((board, revision))) => {
                // A client that waits for a board to appear has seen nothing of it, and misses nothing of it.
                let is_new = self.waits_for_new_board();
                // Read while the state is not locked, for which every request waits.
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
                self.tell();
                Some((board, start))
            }
            Ok(None) => {
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
                    // Retention was faster. A client that is behind learns it from the log.
                    position = board.revision()?;
                    follower = follow_from(position)?;
                    let mut state = self.state();
                    state.forget();
                    state.end = position;
                    drop(state);
                    self.tell();
                }
                Err(error) if error.code() == Code::CursorAhead => {
                    return Err(Fault::new(Code::Io, "the board went back to an older state").into());
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Keeps events for those who follow, and returns where they end.
    fn keep(&self, board: &Board, mut before: Revision, events: &[Event]) -> Result<Revision> {
        let names = Names::of_actors(board, events)?;
        let mut commits = Vec::new();
        for events in events.chunk_by(|a, b| a.commit_id == b.commit_id) {
            let mut bytes = Vec::with_capacity(512 * events.len());
            for event in events {
                tell(event, &names, &mut bytes)?;
            }
            let last = events.last().map_or(before, |event| event.id);
            commits.push(Commit { before, last, bytes: bytes.into() });
            before = last;
        }
        self.state().keep(commits, before);
        self.tell();
        Ok(before)
    }

    /// The board can't be read any more.
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
            self.tell();
        }
    }

    /// Whether clients follow a board that does not exist. Only the thread of the feed changes that.
    fn waits_for_new_board(&self) -> bool {
        let state = self.state();
        matches!(state.view, View::Missing) && state.generation > 0
    }

    fn is_missing(&self) -> bool {
        matches!(self.state().view, View::Missing)
    }

    fn tell(&self) {
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
        // The newest stays, however large it is: it was read, and a stream waits for it.
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

/// Writes an event as browsers get it: `id` is its revision, so that a client that reconnects continues after it.
fn tell(event: &Event, names: &Names, out: &mut Vec<u8>) -> Result<()> {
    let told = EventView::of(event, names);
    // JSON has no line ends of its own, so that it is one line of the stream.
    out.extend_from_slice(format!("id: {}\ndata: ", event.id).as_bytes());
    serde_json::to_writer(&mut *out, &told)
        .map_err(|error| Fault::new(Code::Internal, "an event is not JSON").because(error))?;
    out.extend_from_slice(b"\n\n");
    Ok(())
}
