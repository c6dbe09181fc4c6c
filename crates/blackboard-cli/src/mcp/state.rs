//! What the calls of one client share: the board, its sessions, and the log.
//!
//! A server outlives boards: one may be deleted, or another put in its place. Every call looks for that first and goes on with
//! the board that is there; the first one that acts is refused instead, because the caller may rely on what it held.

use std::sync::{Arc, Mutex, PoisonError};

use blackboard::{Board, Code, Error, Fault, Result};
use tokio::sync::watch;

use super::event::Cursors;
use super::session::{Caller, Sessions};
use super::watcher::{EventWatcher, LatestRevisions};
use crate::commands::arguments::ScopeOption;
use crate::context::Context;
use crate::envelope::BoardState;
use crate::location::{self, Tree};
use crate::open::{KeptBoard, Mode, OpenBoard};

/// What the calls of one client share.
pub struct ServerState {
    kept: KeptBoard,
    /// What became of the board before, if a session of it does not know that yet.
    lost: Mutex<Option<Error>>,
    /// For whom the calls are made.
    pub sessions: Sessions,
    /// What happens on the board.
    pub log: EventWatcher,
    /// How far sessions have read.
    pub cursors: Cursors,
    /// Whether the client is gone.
    pub ended: watch::Receiver<bool>,
    scope: String,
    request: location::Request,
}

impl ServerState {
    /// The state of a server that was started like this.
    pub fn new(context: &Context, ended: watch::Receiver<bool>) -> Result<ServerState> {
        Ok(ServerState {
            kept: KeptBoard::new(context.resolve()?.clone()),
            lost: Mutex::default(),
            sessions: Sessions::new(context)?,
            log: EventWatcher::default(),
            cursors: Cursors::default(),
            ended,
            scope: context.scope(&ScopeOption { scope: None })?,
            request: context.request(),
        })
    }

    /// The board as it is, for a call that begins with an automatic sweep as every command does. One that does not exist is
    /// empty, and stays so.
    pub fn reading(&self, caller: &Caller) -> Result<(Board, Option<String>)> {
        let OpenBoard { board, state } = self.open(Mode::Existing)?;
        if state == Some(BoardState::Missing) {
            return Ok((board, None));
        }
        let session = self.sessions.find(&board, caller)?.map(|agent| agent.session_id);
        Ok((board.for_call(session.as_deref()), session))
    }

    /// The board, which is created if it does not exist, and the session that acts, which is registered if there is none. The
    /// call begins with an automatic sweep.
    pub fn acting(&self, caller: &Caller) -> Result<(Board, String)> {
        let board = self.board()?;
        if let Some(lost) = self.lost.lock().unwrap_or_else(PoisonError::into_inner).take() {
            return Err(lost);
        }
        let session = self.sessions.acting(&board, caller)?;
        Ok((board.for_call(Some(&session)), session))
    }

    /// The board, which is created if it does not exist: a call that waits waits for what other processes write.
    pub fn board(&self) -> Result<Board> {
        Ok(self.open(Mode::Create)?.board)
    }

    /// The board, if it exists.
    pub fn existing(&self) -> Result<Option<Board>> {
        Ok(self.open(Mode::Existing)?.existing())
    }

    /// Opens the board that is there now. What was known of one that is gone is dropped.
    fn open(&self, mode: Mode) -> Result<OpenBoard> {
        let opened = self.kept.open(mode, |gone| {
            self.cursors.forget();
            if self.sessions.forget() {
                *self.lost.lock().unwrap_or_else(PoisonError::into_inner) = Some(lost(gone));
            }
        })?;
        // An agent that cannot be read stops no search for a session. Lists report what they leave out: see `Call::reading`.
        let board = opened.board.with_unreadable_observer(|_| {});
        Ok(OpenBoard { board, ..opened })
    }

    /// A receiver of everything that happens from now on, also on a board that takes the place of the one that is there.
    pub fn follow(self: &Arc<ServerState>) -> Result<watch::Receiver<LatestRevisions>> {
        let (desk, sessions) = (Arc::clone(self), Arc::clone(self));
        self.log.follow(&self.board()?, move || desk.existing(), move || sessions.sessions.only())
    }

    /// The settings of the board.
    pub fn settings(&self) -> &blackboard::Settings {
        self.kept.settings()
    }

    /// The scope that is named, or the usual one.
    pub fn scope(&self, given: Option<String>) -> String {
        given.unwrap_or_else(|| self.scope.clone())
    }

    /// The tree of files that the server was started in.
    pub fn tree(&self) -> Result<Tree> {
        location::tree(&self.request)
    }

    /// The end: what was read is marked as read, and a session that was registered here ends.
    pub fn leave(&self) -> Result<()> {
        if let Some(board) = self.existing()? {
            self.cursors.store(&board);
            self.sessions.leave(&board)?;
            board.maintain();
        }
        Ok(())
    }
}

/// Says to a session that its board is gone.
fn lost(gone: &Error) -> Error {
    Fault::new(gone.code(), format!("{gone}; what you held on that board is lost"))
        .hint("this call did nothing: claim, lock and write again what you still need, on the board that is there now")
        .into()
}

/// Runs what may wait for the board on a thread of its own.
pub async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    tokio::task::spawn_blocking(work)
        .await
        .unwrap_or_else(|error| Err(Fault::new(Code::Internal, "a call broke down").because(error).into()))
}
