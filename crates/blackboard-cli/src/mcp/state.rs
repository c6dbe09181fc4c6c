//! The state that the calls of one client share: the board, its sessions and the event watcher.
//!
//! A server outlives boards: the board may be deleted or replaced. Every call notices that and continues with the current
//! board: it checks first, or, if its reads and commits check, runs again. The first call that acts is refused instead, because
//! the caller may rely on what it held.

use std::sync::{Arc, Mutex, PoisonError};

use blackboard::entry::Actor;
use blackboard::search::IndexLocation;
use blackboard::{Board, Code, Error, Fault, Refusal, Result};
use tokio::sync::watch;

use super::event::Cursors;
use super::session::{Caller, Sessions};
use super::watcher::{EventWatcher, LatestRevisions};
use crate::commands::arguments::ScopeOption;
use crate::context::Context;
use crate::engine::Mode;
use crate::envelope::BoardState;
use crate::location::{self, Tree};
use crate::open::{KeptBoard, OpenBoard};
use crate::quota::QuotaReader;
use crate::quota::claims::{self, ItemQuota};

/// The state that the calls of one client share.
pub struct ServerState {
    kept: KeptBoard,
    /// What happened to the previous board, until a session was notified.
    lost: Mutex<Option<Error>>,
    /// The sessions of the client.
    pub sessions: Sessions,
    /// The watcher of the event log.
    pub log: EventWatcher,
    /// The cursors of the sessions.
    pub cursors: Cursors,
    /// Whether the client is gone.
    pub ended: watch::Receiver<bool>,
    scope: String,
    request: location::Request,
    quota: Option<QuotaReader>,
}

impl ServerState {
    /// The state of a server with these arguments.
    pub fn new(context: &Context, ended: watch::Receiver<bool>) -> Result<ServerState> {
        Ok(ServerState {
            quota: QuotaReader::of(&context.resolve()?.config, || context.request()),
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

    /// The current board, for a call that starts with an automatic sweep like every command. A missing board is empty
    /// and is not created.
    pub fn reading(&self, caller: &Caller) -> Result<(Board, Option<String>)> {
        let OpenBoard { board, state, .. } = self.open_for_call(Mode::Existing)?;
        if state == Some(BoardState::Missing) {
            return Ok((board, None));
        }
        let session = self.sessions.find(&board, caller)?.map(|agent| agent.session_id);
        let board = board.for_call(session.as_deref());
        Ok((acting_for(&board, session.as_deref()), session))
    }

    /// Where the search index of the board is.
    pub fn search_index(&self) -> IndexLocation {
        self.kept.resolved().search_index()
    }

    /// The board and the session that acts. Creates the board if it does not exist, and registers a session if there is
    /// none. The call starts with an automatic sweep.
    pub fn acting(&self, caller: &Caller) -> Result<(Board, String)> {
        let board = self.open_for_call(Mode::Create)?.board;
        if let Some(lost) = self.lost.lock().unwrap_or_else(PoisonError::into_inner).take() {
            return Err(lost);
        }
        let session = self.sessions.acting(&board, caller)?;
        Ok((acting_for(&board.for_call(Some(&session)), Some(&session)), session))
    }

    /// The board, created if it does not exist: a call that waits needs it to see what other processes write.
    pub fn board(&self) -> Result<Board> {
        Ok(self.open(Mode::Create)?.board)
    }

    /// The board, if it exists.
    pub fn existing(&self) -> Result<Option<Board>> {
        Ok(self.open(Mode::Existing)?.existing())
    }

    /// Runs a call that uses [`ServerState::reading`] or [`ServerState::acting`]. If its board turns out to be gone, the call has
    /// changed nothing that is still there, and runs again on the current board.
    pub fn on_current_board<T>(&self, mut call: impl FnMut() -> Result<T>) -> Result<T> {
        match call() {
            Err(error) if self.kept.close_after(&error, |gone| self.note_gone(gone)) => call(),
            answer => answer,
        }
    }

    /// Opens the current board. Drops the state of a board that is gone.
    fn open(&self, mode: Mode) -> Result<OpenBoard> {
        self.kept.open(mode, |gone| self.note_gone(gone)).map(ServerState::shown)
    }

    /// The same for a call that runs in [`ServerState::on_current_board`].
    fn open_for_call(&self, mode: Mode) -> Result<OpenBoard> {
        self.kept.open_for_call(mode, |gone| self.note_gone(gone)).map(ServerState::shown)
    }

    fn note_gone(&self, gone: &Error) {
        self.cursors.forget();
        if self.sessions.forget() {
            *self.lost.lock().unwrap_or_else(PoisonError::into_inner) = Some(lost(gone));
        }
    }

    /// An unreadable agent must not keep other sessions from being found. Lists report what they leave out: see
    /// `Call::reading`.
    fn shown(opened: OpenBoard) -> OpenBoard {
        OpenBoard { board: opened.board.with_unreadable_observer(|_| {}), ..opened }
    }

    /// A receiver of all events from now on, including those of a board that replaces the current one.
    pub fn follow(self: &Arc<ServerState>) -> Result<watch::Receiver<LatestRevisions>> {
        let (state, sessions) = (Arc::clone(self), Arc::clone(self));
        self.log.follow(&self.board()?, move || state.existing(), move || sessions.sessions.only())
    }

    /// The settings of the board.
    pub fn settings(&self) -> &blackboard::Settings {
        self.kept.settings()
    }

    /// The token quota, if it is configured.
    pub fn quota(&self) -> Option<&QuotaReader> {
        self.quota.as_ref()
    }

    /// The token quota of work items, if it is configured.
    pub fn item_quota(&self) -> Option<ItemQuota> {
        ItemQuota::on(self.kept.resolved(), || self.request.clone())
    }

    /// The same for a claim.
    pub fn claim_quota(&self) -> Result<Option<ItemQuota>> {
        ItemQuota::of_claim_on(self.kept.resolved(), || self.request.clone())
    }

    /// The given scope, or the default.
    pub fn scope(&self, given: Option<String>) -> String {
        given.unwrap_or_else(|| self.scope.clone())
    }

    /// The file tree that the server was started in.
    pub fn tree(&self) -> Result<Tree> {
        location::tree(&self.request)
    }

    /// Shuts down: stores the cursors, and ends a session that was registered here.
    pub fn leave(&self) -> Result<()> {
        if let Some(board) = self.existing()? {
            self.cursors.store(&board);
            let ended = self.sessions.leave(&board)?;
            claims::release_sessions(self.item_quota().as_ref(), ended.as_deref());
            board.maintain();
        }
        Ok(())
    }
}

/// The board for a session. A client is never the operator: without a session it may not use a scope that restricts its callers.
fn acting_for(board: &Board, session: Option<&str>) -> Board {
    match session {
        Some(session) => board.with_caller(Actor::session(session)),
        None => board.with_caller_search(|_| {
            Err(Refusal::new(
                Code::NoSession,
                "the scope is not for every caller, and you have no session yet",
            )
            .hint("call `observe` without arguments first, which registers you")
            .into())
        }),
    }
}

/// The error that informs a session that its board is gone.
fn lost(gone: &Error) -> Error {
    Fault::new(gone.code(), format!("{gone}; what you held on that board is lost"))
        .hint("nothing was changed: claim, lock and write again what you still need on the current board")
        .into()
}

/// Runs a function that may wait for the board on a blocking thread.
pub async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| {
        Err(Fault::new(Code::Internal, "internal error in a call").because(error).into())
    })
}
