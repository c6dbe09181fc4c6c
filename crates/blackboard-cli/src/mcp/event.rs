//! The tool `observe`.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use blackboard::clock::{Clock, SystemClock};
use blackboard::duration::parse_since;
use blackboard::event::{Filter, Since};
use blackboard::{Board, Result, Revision};
use rmcp::schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::reply::{Reply, ShownEvent, is_long};
use super::tools::{Arguments, Call, Tool};

/// The name of the cursor. Other readers of the same session have their own.
const READER: &str = "mcp";

/// The default and the maximum number of events.
const LIMIT: usize = 50;
const MOST: usize = 200;

/// Cursors that are not stored yet. A cursor is stored with the next call of its session, which proves that the session got
/// the answer. A session that is killed meanwhile reads its last events again.
#[derive(Default)]
pub struct Cursors(Mutex<HashMap<String, Revision>>);

impl Cursors {
    /// Stores all cursors.
    pub fn store(&self, board: &Board) {
        let cursors = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        for (session, revision) in cursors {
            // On an error the session reads its last events again. That is better than a server that does not stop.
            let _ = board.events().advance(&session, READER, revision);
        }
    }

    /// Removes all cursors, because the event log was replaced.
    pub fn forget(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    fn of(&self, session: &str) -> Option<Revision> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(session).copied()
    }

    fn move_to(&self, session: String, revision: Revision) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(session, revision);
    }
}

/// List what other agents did since your last call. `since` and `types` do not move your cursor.
#[derive(Clone, Deserialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
#[serde(deny_unknown_fields)]
pub struct Observe {
    /// 15m, 2h or ISO 8601
    since: Option<String>,
    /// For example work_claimed, agent_stale
    #[serde(default)]
    types: Vec<String>,
    /// At most 200; default 50
    limit: Option<usize>,
}

impl Arguments for Observe {
    const NAME: &'static str = "observe";
    // It moves the caller's cursor, so it needs a session.
    const READS: bool = false;
}

#[derive(Serialize)]
struct Observed {
    count: usize,
    items: Vec<ShownEvent>,
    /// Whether repeating the call returns more events.
    more: bool,
    revision: Revision,
    /// Whether events were pruned before the session read them.
    compacted: bool,
}

impl Tool for Observe {
    fn call(self, call: &Call) -> Result<Reply> {
        let limit = self.limit.unwrap_or(LIMIT).clamp(1, MOST);
        let moves = self.since.is_none() && self.types.is_empty();
        let filters = match &self.types[..] {
            [] => Vec::new(),
            names => {
                let types = names.iter().map(|name| name.parse()).collect::<Result<_>>()?;
                vec![Filter { types, ..Filter::default() }]
            }
        };
        let now = SystemClock.now();
        // A cursor belongs to a session.
        let (board, session) = if moves {
            let (board, session) = call.acting()?;
            (board, Some(session))
        } else {
            call.reading()?
        };
        let since = match (&self.since, &session) {
            (Some(since), _) => Since::Moment(parse_since(since, now)?),
            (None, Some(session)) => {
                if let Some(revision) = call.state.cursors.of(session) {
                    let _ = board.events().advance(session, READER, revision);
                }
                Since::Cursor { session: session.clone(), reader: READER.to_owned() }
            }
            (None, None) => Since::Moment(parse_since("24h", now)?),
        };
        let read_before =
            session.as_deref().filter(|_| moves).and_then(|session| call.state.cursors.of(session));
        let observed = read(&board, &since, &filters, read_before, session.as_deref(), limit)?;
        if let Some(session) = session.filter(|_| moves && !call.is_canceled()) {
            call.state.cursors.move_to(session, observed.revision);
        }
        Reply::new(&observed)
    }
}

/// Reads complete commits until there are enough events of other sessions.
fn read(
    board: &Board,
    since: &Since,
    filters: &[Filter],
    read_before: Option<Revision>,
    own: Option<&str>,
    limit: usize,
) -> Result<Observed> {
    let events = board.events();
    let observation = events.observe_filtered(since, filters)?;
    let mut observed = Observed {
        count: 0,
        items: Vec::new(),
        more: false,
        revision: observation.after.max(read_before.unwrap_or(Revision::ZERO)),
        compacted: observation.compacted,
    };
    let mut size = 0;
    loop {
        // Commit by commit, so that the answer can end after any of them.
        let Some(batch) = events.next(&observation, observed.revision, 1)? else {
            observed.revision = observation.until;
            break;
        };
        let wanted = batch.events.into_iter().filter(|event| own.is_none_or(|own| !event.is_by(own)));
        let shown: Vec<_> = wanted.map(ShownEvent::of).collect();
        size += shown.iter().map(ShownEvent::size).sum::<usize>();
        if !observed.items.is_empty() && (observed.items.len() + shown.len() > limit || is_long(size)) {
            observed.more = true;
            break;
        }
        observed.compacted |= batch.compacted;
        observed.items.extend(shown);
        observed.revision = batch.last;
    }
    observed.count = observed.items.len();
    Ok(observed)
}
