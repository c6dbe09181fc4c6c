//! What the calls of one client share: the board, its sessions, and the log.

use std::sync::{Mutex, PoisonError};

use blackboard::{Board, Code, Fault, Result};
use tokio::sync::watch;

use super::event::Places;
use super::log::Log;
use super::session::{Caller, Sessions};
use crate::commands::arguments::InScope;
use crate::context::{Context, Opener};
use crate::location::{self, Tree};

/// What the calls of one client share.
pub struct Desk {
    opener: Opener,
    opened: Mutex<Option<Board>>,
    /// For whom the calls are made.
    pub sessions: Sessions,
    /// What happens on the board.
    pub log: Log,
    /// How far sessions have read.
    pub places: Places,
    /// Whether nobody listens any more.
    pub ended: watch::Receiver<bool>,
    scope: String,
    request: location::Request,
}

impl Desk {
    /// The desk of a server that was started like this.
    pub fn new(context: &Context, ended: watch::Receiver<bool>) -> Result<Desk> {
        Ok(Desk {
            opener: context.opener()?,
            opened: Mutex::new(None),
            sessions: Sessions::new(context)?,
            log: Log::default(),
            places: Places::default(),
            ended,
            scope: context.scope(&InScope { scope: None })?,
            request: context.request(),
        })
    }

    /// The board as it is: one that does not exist is empty, and stays so. Frees what the dead hold first, as every
    /// command does.
    pub fn reading(&self, caller: &Caller) -> Result<(Board, Option<String>)> {
        let Some(board) = self.existing()? else { return Ok((self.opener.empty(), None)) };
        let session = self.sessions.find(&board, caller)?.map(|agent| agent.session_id);
        board.sweep_in_passing(session.as_deref());
        Ok((board, session))
    }

    /// The board, which is created if it does not exist, and the session that acts, which is registered if there is none.
    pub fn acting(&self, caller: &Caller) -> Result<(Board, String)> {
        let board = self.board()?;
        let session = self.sessions.acting(&board, caller)?;
        board.sweep_in_passing(Some(&session));
        Ok((board, session))
    }

    /// The board, which is created if it does not exist: whoever waits for something waits for what others write.
    pub fn board(&self) -> Result<Board> {
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(board) = &*opened {
            return Ok(board.clone());
        }
        Ok(opened.insert(self.opener.open()?).clone())
    }

    /// The board, if it exists.
    pub fn existing(&self) -> Result<Option<Board>> {
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        if opened.is_none() {
            *opened = self.opener.open_existing()?;
        }
        Ok(opened.clone())
    }

    /// The settings of the board.
    pub fn settings(&self) -> &blackboard::Settings {
        self.opener.settings()
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
            self.places.store(&board);
            self.sessions.leave(&board)?;
            board.settle();
        }
        Ok(())
    }
}

/// Runs what may wait for the board on a thread of its own.
pub async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    tokio::task::spawn_blocking(work)
        .await
        .unwrap_or_else(|error| Err(Fault::new(Code::Internal, "a call broke down").because(error).into()))
}
