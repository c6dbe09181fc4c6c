//! `check_in`: what a session's hook does after each tool call, in one call.
//!
//! It records a sign of life and edited files, and returns updates. That is one read of the board, and one commit if
//! there is something to write: a hook runs after every tool call of every agent and must be fast. The cursor moves
//! in the commit that returns the updates. Of several hooks at once, one gets each event. If that hook is killed
//! before it prints the updates, they are lost (*at most once*).

use std::time::Duration;

use super::heartbeat::beat_of;
use super::{Agent, AgentStatus, Agents, Heartbeat, changed_row, existing};
use crate::board::Board;
use crate::clock::Timestamp;
use crate::error::Result;
use crate::file::{Edit, Edited};
use crate::revision::{Pending, Revision};
use crate::store::{Changes, Cursor, Key, Prefetch, Row, Tx};
use crate::sweep::QUIET;
use crate::updates::Updates;

/// The reader whose cursor records which updates the hooks of a session have shown.
pub const READER: &str = "hook";

/// The shortest time between two written heartbeats. It is half of the time after which a refused call sweeps a
/// session whose process is gone. A session that uses a tool in each half is therefore never swept by such a call.
const BEAT_EVERY: Duration = Duration::from_secs(QUIET.as_secs() / 2);

/// The shortest time between two writes of the same edit.
const EDIT_EVERY: Duration = Duration::from_secs(10);

/// How far the cursor may fall behind while no event is relevant to the session.
const BEHIND: u64 = 200;

/// What a session reports.
#[derive(Clone, Debug)]
pub struct CheckIn {
    /// The session.
    pub session: String,
    /// Its status.
    pub status: AgentStatus,
    /// The files that it edited.
    pub edited: Option<Edited>,
    /// Whether the caller can show updates to the session.
    pub listens: bool,
}

impl CheckIn {
    /// An active session that can be shown updates.
    pub fn of(session: &str) -> CheckIn {
        CheckIn { session: session.to_owned(), status: AgentStatus::Active, edited: None, listens: true }
    }
}

/// The result of a check-in.
#[derive(Clone, Debug, PartialEq)]
pub struct CheckedIn {
    /// The session.
    pub agent: Agent,
    /// The updates. They are returned only once.
    pub updates: Updates,
    /// Whether anything was written.
    pub wrote: bool,
    /// Whether the session can be shown updates but has had neither a brief nor updates since it joined.
    pub is_new: bool,
}

impl Pending for CheckedIn {
    fn resolve(&mut self, first: Revision) {
        self.agent.resolve(first);
    }
}

impl Agents<'_> {
    /// Records a sign of life and edits of a session, and returns its updates. A session that has ended is refused.
    ///
    /// ```
    /// # use blackboard::{Board, agent::{CheckIn, Register}, work::Create};
    /// # let board = Board::memory();
    /// let ivy = board.agents().register(&Register::named("Ivy"))?.agent.session_id;
    /// board.work().create(&Create::new("fix-tests", "Fix the tests"))?;
    /// let checked_in = board.agents().check_in(&CheckIn::of(&ivy))?;
    /// assert_eq!(checked_in.updates.events.len(), 1);
    /// assert!(board.agents().check_in(&CheckIn::of(&ivy))?.updates.events.is_empty());
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn check_in(&self, request: &CheckIn) -> Result<CheckedIn> {
        let session = &request.session;
        let mut prefetch = vec![
            Prefetch::Row(Key::Agent(session.clone())),
            Prefetch::Row(Key::Cursor(session.clone(), READER.to_owned())),
            Prefetch::Revision,
        ];
        let edits = request
            .edited
            .as_ref()
            .map(|edited| edited.rows(session, self.board.clock().now(), &self.board.settings().text));
        prefetch.extend(edits.into_iter().flatten().map(|edit| Prefetch::Row(Row::from(edit).key())));
        let seen = self.board.read(&prefetch, |tx| BoardState::at(self.board, tx, request))?;
        if !seen.has_to_write(request) {
            let BoardState { agent, is_new, .. } = seen;
            return Ok(CheckedIn { agent, updates: Updates::default(), wrote: false, is_new });
        }
        self.board.commit("agent attend", &prefetch, |tx| {
            let seen = BoardState::at(self.board, tx, request)?;
            let mut changes = Changes::new();
            let mut agent = seen.agent;
            if is_due(&agent, request.status, tx.now()) {
                let beat = Heartbeat { status: Some(request.status), ..Heartbeat::of(session) };
                let (beaten, _) = beat_of(tx, &beat, &agent)?;
                changes = beaten;
                agent = changed_row(&mut changes, &agent.session_id).cloned().unwrap_or(agent);
            }
            for edit in seen.edits {
                changes.put(edit);
            }
            if let Some(revision) = seen.read_up_to {
                changes.put(Cursor {
                    owner: session.clone(),
                    reader: READER.to_owned(),
                    revision,
                    updated_at: tx.now(),
                });
            }
            Ok((changes, CheckedIn { agent, updates: seen.updates, wrote: true, is_new: seen.is_new }))
        })
    }
}

/// The state of the board that a check-in read.
struct BoardState {
    agent: Agent,
    is_due: bool,
    /// The edits that are to be written.
    edits: Vec<Edit>,
    updates: Updates,
    /// The new position of the cursor.
    read_up_to: Option<Revision>,
    is_new: bool,
}

impl BoardState {
    fn at(board: &Board, tx: &dyn Tx, request: &CheckIn) -> Result<BoardState> {
        let rules = &board.settings().text;
        let agent = existing(tx, &request.session)?;
        if agent.status == AgentStatus::Completed {
            return Err(agent.has_ended());
        }
        let now = tx.now();
        let mut edits = Vec::new();
        let rows = request.edited.as_ref().map(|edited| edited.rows(&agent.session_id, now, rules));
        for edit in rows.into_iter().flatten() {
            let key = Key::Edit(edit.worktree.clone(), edit.path.clone(), edit.session_id.clone());
            let known = tx.row::<Edit>(&key)?;
            if is_worth_noting(&edit, known.as_ref(), now) {
                edits.push(edit.after(known));
            }
        }
        let (mut updates, mut read_up_to, mut is_new) = (Updates::default(), None, false);
        if request.listens {
            let cursor = tx.row::<Cursor>(&Key::Cursor(agent.session_id.clone(), READER.to_owned()))?;
            let last_read = cursor.map(|cursor| cursor.revision);
            is_new = last_read.is_none_or(|last_read| last_read < agent.joined);
            // The first read starts at the registration.
            let after = last_read.unwrap_or(agent.joined);
            let until = tx.revision()?;
            if after < until {
                updates = Updates::between(board, tx, &agent, after, until)?;
                read_up_to = Some(until);
            }
        }
        let is_due = is_due(&agent, request.status, now);
        Ok(BoardState { agent, is_due, edits, updates, read_up_to, is_new })
    }

    /// Whether a commit is needed. A cursor alone needs one only if it is far behind.
    fn has_to_write(&self, request: &CheckIn) -> bool {
        let far_behind = request.listens && self.updates.looked_at >= BEHIND;
        self.is_due || !self.edits.is_empty() || !self.updates.is_empty() || far_behind
    }
}

/// Whether a heartbeat is due.
fn is_due(agent: &Agent, status: AgentStatus, now: Timestamp) -> bool {
    agent.status != status || now.since(agent.last_beat_at) >= BEAT_EVERY || agent.last_beat_at > now
}

/// Whether an edit adds information.
fn is_worth_noting(edit: &Edit, known: Option<&Edit>, now: Timestamp) -> bool {
    let Some(known) = known else { return true };
    let is_old = |noted: Option<Timestamp>| noted.is_none_or(|noted| now.since(noted) >= EDIT_EVERY);
    match edit.edited_at {
        Some(_) => known.denied_at.is_some() || is_old(known.edited_at),
        None => is_old(known.denied_at),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::conformance::an_agent;

    fn at(seconds: u64) -> Timestamp {
        Timestamp::EPOCH.plus(Duration::from_secs(seconds))
    }

    #[test]
    fn heartbeat_is_written_every_five_seconds_or_when_the_status_changes() {
        use AgentStatus::{Active, Idle, Stale};
        for (status, beaten, becomes, now, expected) in [
            (Active, 100, Active, 100, false),
            (Active, 100, Active, 104, false),
            (Active, 100, Active, 105, true),
            (Active, 100, Idle, 101, true),
            (Idle, 100, Idle, 101, false),
            (Idle, 100, Active, 101, true),
            (Stale, 100, Active, 101, true),
            (Active, 200, Active, 100, true),
        ] {
            let agent = Agent { status, last_beat_at: at(beaten), ..an_agent("a") };
            assert_eq!(is_due(&agent, becomes, at(now)), expected, "{status} to {becomes}, {beaten}, {now}");
        }
    }

    #[test]
    fn edit_is_written_at_intervals_or_when_its_outcome_changes() {
        let edit = |edited: Option<u64>, denied: Option<u64>| Edit {
            worktree: "/w".to_owned(),
            path: "a".to_owned(),
            session_id: "s".to_owned(),
            tool: None,
            edited_at: edited.map(at),
            denied_at: denied.map(at),
        };
        let (edited, denied) = (|now| edit(Some(now), None), |now| edit(None, Some(now)));
        for (known, new, noted) in [
            (None, edited(100), Some(edited(100))),
            (Some(edited(100)), edited(105), None),
            (Some(edited(100)), edited(110), Some(edited(110))),
            (Some(denied(100)), edited(101), Some(edited(101))),
            (None, denied(100), Some(denied(100))),
            (Some(denied(100)), denied(105), None),
            (Some(denied(100)), denied(110), Some(denied(110))),
            // A session that is denied a file may have edited it before.
            (Some(edited(100)), denied(101), Some(edit(Some(100), Some(101)))),
            (Some(edit(Some(100), Some(101))), denied(105), None),
            (Some(edit(Some(100), Some(101))), denied(111), Some(edit(Some(100), Some(111)))),
            (Some(edit(Some(100), Some(101))), edited(102), Some(edited(102))),
        ] {
            let is_noted = is_worth_noting(&new, known.as_ref(), new.noted_at());
            let found = is_noted.then(|| new.clone().after(known.clone()));
            assert_eq!(found, noted, "{known:?} {new:?}");
        }
    }
}
