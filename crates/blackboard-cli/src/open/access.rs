//! What a command needs from the board, and how it gets it.

use std::marker::PhantomData;
use std::time::Duration;

use blackboard::entry::Actor;
use blackboard::{Board, Code, Error, Refusal, Result};

use super::OpenBoard;
use crate::context::Context;
use crate::engine::{Mode, Opening, Patience};
use crate::envelope::BoardState;
use crate::hints;
use crate::output::upgrade::upgrade_note;
use crate::session::{Ended, Naming, SESSION_UNUSABLE, Search, Unusable, caller, no_session};

/// How a command accesses the board. The board acts for the session that the command uses. Without one, the caller is searched
/// for when a scope restricts its callers ([`caller`]). `O` is what it gets: the board, and the session if it uses one.
///
/// | Access | A missing board | The session | Sweeps |
/// |---|---|---|---|
/// | [`read`](Access::read) | is empty | is not searched for | yes |
/// | [`read_as`](Access::read_as) | is empty | if there is one; refuses one that cannot be used | yes |
/// | [`read_with`](Access::read_with) | is empty | if there is one that can be used | yes |
/// | [`peek`](Access::peek) | is empty | if there is one that can be used and is certain | yes |
/// | [`wait`](Access::wait) | is empty | if there is one that can be used, without a note | yes |
/// | [`read_own`](Access::read_own) | is empty | is required | yes |
/// | [`follow_as`](Access::follow_as) | is refused | as `read_as` | yes |
/// | [`follow`](Access::follow) | is refused | if there is one that can be used, without a note | yes |
/// | [`call`](Access::call) | is refused | as `write` | yes |
/// | [`write`](Access::write) | is created | if there is one that can be used | yes |
/// | [`change`](Access::change) | is empty | if there is one that can be used | yes |
/// | [`plan`](Access::plan) | is empty | as `change` | yes |
/// | [`act_or_register`](Access::act_or_register) | is created | if there is one, and it has not ended | yes |
/// | [`act`](Access::act) | is empty | is required, and has not ended | yes |
/// | [`end`](Access::end) | is empty | is required | yes |
/// | [`unswept`](Access::unswept) | is created | is not searched for | no |
/// | [`change_unswept`](Access::change_unswept) | is empty | is not searched for | no |
/// | [`read_unswept`](Access::read_unswept) | is empty | is not searched for | no |
pub struct Access<'a, O> {
    purpose: Purpose,
    session: Option<Search<'a>>,
    sweeps: bool,
    patience: Patience,
    opened: PhantomData<O>,
}

/// For a command that does the same without a session, also if it is not certain which one calls.
const UNCERTAIN: Unusable = Unusable::Noted(&[Code::AgentNotFound, Code::SessionEnded, Code::NoSession]);

/// What a command does with the board.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    /// It reads. A board that does not exist is empty.
    Read,
    /// It waits for writes of others. A missing board is refused: its path may be mistyped, and then the command would
    /// wait forever.
    Follow,
    /// It writes, and waits for what others write. A missing board is refused: no agent would answer there.
    Call,
    /// It writes. A board that does not exist is created.
    Write,
    /// It changes existing data, and can do nothing on a missing board. None is created only to refuse the call.
    Change,
}

/// What a command gets: the board, and the session if it uses one.
pub trait Opened: Sized {
    /// Combines them. Refuses if a session is required and none was found.
    fn new(board: Board, session: Option<String>) -> Result<Self>;

    /// Splits it.
    fn parts(&self) -> (&Board, Option<&str>);
}

impl Opened for Board {
    fn new(board: Board, _: Option<String>) -> Result<Board> {
        Ok(board)
    }

    fn parts(&self) -> (&Board, Option<&str>) {
        (self, None)
    }
}

/// A board, and the session that uses it if there is one.
type WithSession = (Board, Option<String>);

impl Opened for WithSession {
    fn new(board: Board, session: Option<String>) -> Result<WithSession> {
        Ok((board, session))
    }

    fn parts(&self) -> (&Board, Option<&str>) {
        (&self.0, self.1.as_deref())
    }
}

/// A board, and the session that uses it.
type AsSession = (Board, String);

impl Opened for AsSession {
    fn new(board: Board, session: Option<String>) -> Result<AsSession> {
        Ok((board, session.ok_or_else(no_session)?))
    }

    fn parts(&self) -> (&Board, Option<&str>) {
        (&self.0, Some(&self.1))
    }
}

impl<'a, O> Access<'a, O> {
    fn new(purpose: Purpose, session: Option<Search<'a>>) -> Access<'a, O> {
        Access { purpose, session, sweeps: true, patience: Patience::Usual, opened: PhantomData }
    }

    /// The same, without waiting longer than this for a server.
    pub fn within(self, patience: Duration) -> Access<'a, O> {
        Access { patience: Patience::AtMost(patience), ..self }
    }
}

impl Access<'static, Board> {
    /// For a command that only reads.
    pub fn read() -> Access<'static, Board> {
        Access::new(Purpose::Read, None)
    }

    /// For a command that starts a session: it sweeps later.
    pub fn unswept() -> Access<'static, Board> {
        Access { sweeps: false, ..Access::new(Purpose::Write, None) }
    }

    /// For a command that maintains the board, and sweeps by itself.
    pub fn change_unswept() -> Access<'static, Board> {
        Access { sweeps: false, ..Access::new(Purpose::Change, None) }
    }

    /// For a command that shows what a sweep would do.
    pub fn read_unswept() -> Access<'static, Board> {
        Access { sweeps: false, ..Access::new(Purpose::Read, None) }
    }
}

impl<'a> Access<'a, WithSession> {
    /// For a command that reads for a session, if there is one. Refuses a session of the environment that has ended or is not
    /// on this board.
    pub fn read_as(named: Option<&'a str>) -> Access<'a, WithSession> {
        Access::new(Purpose::Read, Some(Search::new(named, Ended::AllowedIfNamed, Unusable::Refused)))
    }

    /// As [`Access::read_as`], for a command that does the same without a session: one of the environment that cannot be used
    /// is ignored, with a note.
    pub fn read_with(named: Option<&'a str>) -> Access<'a, WithSession> {
        let unusable = Unusable::Noted(SESSION_UNUSABLE);
        Access::new(Purpose::Read, Some(Search::new(named, Ended::AllowedIfNamed, unusable)))
    }

    /// As [`Access::read_with`], for a command that also continues without a session, with a warning, if the process has
    /// several.
    pub fn peek(named: Option<&'a str>) -> Access<'a, WithSession> {
        Access::new(Purpose::Read, Some(Search::new(named, Ended::AllowedIfNamed, UNCERTAIN)))
    }

    /// As [`Access::read_as`], for a command that follows the event log.
    pub fn follow_as(named: Option<&'a str>) -> Access<'a, WithSession> {
        Access::new(Purpose::Follow, Some(Search::new(named, Ended::AllowedIfNamed, Unusable::Refused)))
    }

    /// For a command that waits for a change of what exists. The session only keeps its sweeps from marking it stale.
    pub fn wait() -> Access<'a, WithSession> {
        Access::new(Purpose::Read, Some(Search::new(None, Ended::AllowedIfNamed, Unusable::Ignored)))
    }

    /// For a command that waits for writes of others. The session of the environment only keeps its sweeps from marking it
    /// stale, so one that cannot be found is not an error.
    pub fn follow(named: Option<&'a str>) -> Access<'a, WithSession> {
        Access::new(Purpose::Follow, Some(Search::new(named, Ended::AllowedIfNamed, Unusable::Ignored)))
    }

    /// For a command that writes, with or without a session. A session of the environment that cannot be used is
    /// ignored, with a note.
    pub fn write(named: Option<&'a str>) -> Access<'a, WithSession> {
        Access::new(Purpose::Write, Some(Search::new(named, Ended::Refused, UNCERTAIN)))
    }

    /// As [`Access::write`], for a command that waits for an answer of another agent.
    pub fn call(named: Option<&'a str>) -> Access<'a, WithSession> {
        Access { purpose: Purpose::Call, ..Access::write(named) }
    }

    /// As [`Access::write`], for a command that changes or removes existing data.
    pub fn change(named: Option<&'a str>) -> Access<'a, WithSession> {
        Access { purpose: Purpose::Change, ..Access::write(named) }
    }

    /// For a command that acts for a session, and registers one or does less if there is none. Refuses one that has ended or is not on
    /// this board.
    pub fn act_or_register(named: Option<&'a str>) -> Access<'a, WithSession> {
        const SEVERAL: Unusable = Unusable::Noted(&[Code::NoSession]);
        Access::new(Purpose::Write, Some(Search::new(named, Ended::Refused, SEVERAL)))
    }

    /// As [`Access::change`], for a dry run.
    pub fn plan(named: Option<&'a str>) -> Access<'a, WithSession> {
        Access { purpose: Purpose::Read, ..Access::write(named) }
    }
}

impl<'a> Access<'a, AsSession> {
    /// For a command that shows something about its own session.
    pub fn read_own(named: Option<&'a str>) -> Access<'a, AsSession> {
        Access::new(Purpose::Read, Some(Search::new(named, Ended::AllowedIfNamed, Unusable::Refused)))
    }

    /// For a command that needs a session to act. Refuses one that has ended.
    pub fn act(named: Option<&'a str>) -> Access<'a, AsSession> {
        Access::new(Purpose::Change, Some(Search::new(named, Ended::Refused, Unusable::Refused)))
    }

    /// For the command that ends a session: ending it twice is not an error.
    pub fn end(named: Option<&'a str>) -> Access<'a, AsSession> {
        Access::new(Purpose::Change, Some(Search::new(named, Ended::Allowed, Unusable::Refused)))
    }
}

impl Context {
    /// The board for the caller of this program, which is searched for if a scope restricts its callers. For a command that names
    /// a session which it is about.
    pub fn for_caller(&self, board: &Board) -> Board {
        let environment = self.environment().clone();
        // A session that the call names already is the one that it is about.
        let naming = if self.names_session() { Naming::Environment } else { self.naming() };
        board.with_caller_search(move |board| caller(board, &environment, naming))
    }

    /// How a command opens a board.
    pub fn opening(&self, mode: Mode) -> Opening {
        Opening::new(mode).noting_waits(!self.json())
    }

    /// Opens the board of this call.
    pub fn open<O: Opened>(&self, access: Access<'_, O>) -> Result<O> {
        let Access { purpose, session, sweeps, patience, .. } = access;
        let resolved = self.resolve()?;
        let writes = matches!(purpose, Purpose::Write | Purpose::Change | Purpose::Call);
        let mode = match purpose {
            Purpose::Write => Mode::Create,
            // It exists, and is opened like every other board that is written. A board on a server is always opened so,
            // and a check would need a connection of its own.
            Purpose::Change | Purpose::Call
                if resolved.engine.file().is_some() && resolved.engine.exists() =>
            {
                Mode::Create
            }
            Purpose::Read | Purpose::Follow | Purpose::Change | Purpose::Call => Mode::Existing,
        };
        let OpenBoard { board, state, upgraded } =
            resolved.open(Opening { patience, ..self.opening(mode) })?;
        if let Some(upgraded) = upgraded {
            self.note(&upgrade_note(&resolved.engine.name(), &upgraded));
        }
        let board = self.keep_open(board, state, writes);
        if matches!(purpose, Purpose::Follow | Purpose::Call) && state == Some(BoardState::Missing) {
            return Err(no_board(&resolved.engine.name()));
        }
        let session = if let Some(search) = session {
            search.named.into_iter().for_each(|named| self.keep_named_session(named));
            self.find_session(&board, &search)?
        } else {
            // A command that starts a session reports it itself.
            if purpose != Purpose::Write {
                self.check_session_of_environment(&board);
            }
            None
        };
        // Only a scope that restricts its callers needs the search.
        let board = match &session {
            Some(session) => board.with_caller(Actor::session(session)),
            None => self.for_caller(&board),
        };
        let opened = O::new(board, session)?;
        if sweeps {
            let (board, session) = opened.parts();
            board.sweep_with_next_call(session);
        }
        Ok(opened)
    }
}

fn no_board(name: &str) -> Error {
    Refusal::new(Code::BoardNotFound, format!("no board at {name}"))
        .hint(hints::command("check --db, or create one: ", "init"))
        .into()
}
