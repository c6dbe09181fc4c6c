//! What the calls of one client share: the board, its sessions, and the log.
//!
//! A server outlives boards: one may be deleted, or another put in its place. Every call looks for that first and goes on with
//! the board that is there; the first one that acts is refused instead, because whoever makes it may count on what it held.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use blackboard::{Board, Code, Error, Fault, Result};
use tokio::sync::watch;

use super::event::Cursors;
use super::log::{Log, Seen};
use super::session::{Caller, Sessions};
use crate::commands::arguments::InScope;
use crate::context::Context;
use crate::location::{self, Tree};
use crate::open::{Mode, Opening, ResolvedBoard};

/// What the calls of one client share.
pub struct Desk {
    resolved: ResolvedBoard,
    opened: Mutex<Opened>,
    /// For whom the calls are made.
    pub sessions: Sessions,
    /// What happens on the board.
    pub log: Log,
    /// How far sessions have read.
    pub cursors: Cursors,
    /// Whether nobody listens any more.
    pub ended: watch::Receiver<bool>,
    scope: String,
    request: location::Request,
}

/// The board, as far as it is open.
#[derive(Default)]
struct Opened {
    board: Option<Board>,
    /// What became of the one before, if a session of it does not know that yet.
    lost: Option<Error>,
}

impl Desk {
    /// The desk of a server that was started like this.
    pub fn new(context: &Context, ended: watch::Receiver<bool>) -> Result<Desk> {
        Ok(Desk {
            resolved: context.resolve()?.clone(),
            opened: Mutex::default(),
            sessions: Sessions::new(context)?,
            log: Log::default(),
            cursors: Cursors::default(),
            ended,
            scope: context.scope(&InScope { scope: None })?,
            request: context.request(),
        })
    }

    /// The board as it is: one that does not exist is empty, and stays so. Frees what the dead hold first, as every
    /// command does.
    pub fn reading(&self, caller: &Caller) -> Result<(Board, Option<String>)> {
        let Some(board) = self.existing()? else { return Ok((self.resolved.empty(), None)) };
        let session = self.sessions.find(&board, caller)?.map(|agent| agent.session_id);
        board.sweep_in_passing(session.as_deref());
        Ok((board, session))
    }

    /// The board, which is created if it does not exist, and the session that acts, which is registered if there is none.
    pub fn acting(&self, caller: &Caller) -> Result<(Board, String)> {
        let board = self.board()?;
        if let Some(lost) = self.opened().lost.take() {
            return Err(lost);
        }
        let session = self.sessions.acting(&board, caller)?;
        board.sweep_in_passing(Some(&session));
        Ok((board, session))
    }

    /// The board, which is created if it does not exist: whoever waits for something waits for what others write.
    pub fn board(&self) -> Result<Board> {
        let mut opened = self.opened();
        if let Some(board) = &opened.board {
            return Ok(board.clone());
        }
        let open = self.resolved.open(Opening::staying(Mode::Create))?;
        Ok(opened.board.insert(open.board).clone())
    }

    /// The board, if it exists.
    pub fn existing(&self) -> Result<Option<Board>> {
        let mut opened = self.opened();
        if opened.board.is_none() {
            opened.board = self.resolved.open(Opening::staying(Mode::Existing))?.existing();
        }
        Ok(opened.board.clone())
    }

    /// Whoever receives from this hears of everything that happens from now on, also on a board that takes the place of the
    /// one that is there.
    pub fn follow(self: &Arc<Desk>) -> Result<watch::Receiver<Seen>> {
        let (desk, sessions) = (Arc::clone(self), Arc::clone(self));
        self.log.follow(&self.board()?, move || desk.existing(), move || sessions.sessions.only())
    }

    /// What is open, unless it is not there any more. What was known of that board is forgotten.
    fn opened(&self) -> MutexGuard<'_, Opened> {
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(board) = &opened.board
            && let Err(gone) = board.check_still_there()
        {
            opened.board = None;
            self.cursors.forget();
            if self.sessions.forget() {
                opened.lost = Some(lost(&gone));
            }
        }
        opened
    }

    /// The settings of the board.
    pub fn settings(&self) -> &blackboard::Settings {
        &self.resolved.settings
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
            board.settle();
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
