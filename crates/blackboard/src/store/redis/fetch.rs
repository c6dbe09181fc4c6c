//! Reads: what a run wants to know, in one round trip and from one state of the board.

use std::collections::hash_map::Entry as Slot;
use std::collections::{HashMap, HashSet};
use std::time::Instant;

use super::bytes;
use super::connection::read_time;
use super::faults::{self, ServerError};
use super::layout::{self, State, StateError, StoredRow};
use super::pool::ServerCall;
use super::resp::{Reply, Request};
use super::{Inner, script};
use crate::clock::{Clock, Timestamp};
use crate::error::{Code, Result};
use crate::revision::Revision;
use crate::store::transfer::Hold;
use crate::store::{Key, Page, Prefetch, Range};

/// How many events are read at once, if a call has no smaller limit.
pub(super) const EVENTS_AT_ONCE: usize = 1000;

/// How many events are read beyond the limit of a page, which ends with the last event of a commit.
const EVENTS_BEYOND: usize = 16;

/// How many milliseconds an estimate of the server's time may be behind.
const MAX_TIME_ERROR: i64 = 1000;

/// One thing that a run wants to know.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Want {
    /// A row, by its field.
    Row(Vec<u8>),
    /// An entry with its version, by its field.
    Entry(Vec<u8>),
    Version(Revision),
    Rows(RangeWant),
    /// The members of a range.
    Members(RangeWant),
    Count(Bounds),
    Events {
        after: Revision,
        until: Revision,
        count: usize,
    },
    /// The last event up to and including this revision.
    LastEvent(Revision),
    /// The oldest kept event.
    OldestEvent,
    Versions(Revision, Revision),
    RevisionBack(Revision, u64),
    RevisionBefore(Timestamp),
}

/// The bounds of a range, as the server expects them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Bounds {
    pub(super) from: Vec<u8>,
    pub(super) before: Vec<u8>,
}

/// The first rows of a range.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct RangeWant {
    pub(super) bounds: Bounds,
    pub(super) backwards: bool,
    pub(super) limit: usize,
    /// Whether entries have their versions.
    pub(super) values: bool,
}

impl RangeWant {
    pub(super) fn new(range: &Range, limit: usize, values: bool) -> Result<RangeWant> {
        let (from, before) = bytes::bounds_of(range)?;
        // Only entries have versions.
        let values = values && (range.index.table)().name == "entries";
        Ok(RangeWant { bounds: Bounds { from, before }, backwards: range.is_backwards(), limit, values })
    }

    /// The part of it after this member.
    pub(super) fn after(&self, member: &[u8], limit: usize) -> RangeWant {
        let (mut bounds, excluded) = (self.bounds.clone(), bytes::excluded(member));
        if self.backwards {
            bounds.before = excluded;
        } else {
            bounds.from = excluded;
        }
        RangeWant { bounds, limit, ..self.clone() }
    }

    /// What it reads of rows.
    pub(super) fn detail(&self) -> Detail {
        if self.values { Detail::Values } else { Detail::Rows }
    }
}

impl Want {
    pub(super) fn row(key: &Key) -> Result<Want> {
        let field = bytes::field_to_read(key)?;
        Ok(if matches!(key, Key::Entry(..)) { Want::Entry(field) } else { Want::Row(field) })
    }

    /// The next events of a page, of which some may not have the types of the page.
    pub(super) fn events(page: &Page<'_>, after: Revision) -> Want {
        let is_filtered = !page.types.is_empty();
        let limit = if is_filtered { EVENTS_AT_ONCE } else { page.limit.min(EVENTS_AT_ONCE) };
        Want::Events { after, until: page.until, count: limit + EVENTS_BEYOND }
    }
}

/// What a call has announced. The run begins at `now`.
pub(super) fn wants_of(prefetch: &[Prefetch<'_>], now: Timestamp) -> Result<Vec<Want>> {
    let mut wants = Vec::with_capacity(prefetch.len());
    for one in prefetch {
        let want = match one {
            Prefetch::Row(key) => Want::row(key)?,
            Prefetch::Entry(scope, key) => {
                let (scope, key) = ((*scope).to_owned(), (*key).to_owned());
                wants.push(Want::row(&Key::Tombstone(scope.clone(), key.clone()))?);
                Want::row(&Key::Entry(scope, key))?
            }
            Prefetch::Range(range) => Want::Rows(RangeWant::new(range, usize::MAX, true)?),
            Prefetch::Candidates(range, limit) => Want::Rows(RangeWant::new(range, *limit, true)?),
            Prefetch::Heads(range, limit) => Want::Rows(RangeWant::new(range, *limit, false)?),
            Prefetch::Keys(range, limit) => Want::Members(RangeWant::new(range, *limit, false)?),
            Prefetch::Any(range) => Want::Members(RangeWant::new(range, 1, false)?),
            Prefetch::AnyAged(range, age) => {
                Want::Members(RangeWant::new(&range.clone().aged(now, *age), 1, false)?)
            }
            Prefetch::Count(range) => Want::Count(RangeWant::new(range, usize::MAX, false)?.bounds),
            Prefetch::Events(page) => Want::events(page, page.after),
            Prefetch::Version(revision) => Want::Version(*revision),
            Prefetch::VersionHeads(after, until) => Want::Versions(*after, *until),
            Prefetch::CountEvents(after, until) => {
                wants.extend([Want::LastEvent(*after), Want::OldestEvent]);
                Want::LastEvent(*until)
            }
            Prefetch::RevisionBack(until, count) => Want::RevisionBack(*until, *count),
            Prefetch::RevisionBefore(moment) => Want::RevisionBefore(*moment),
            Prefetch::RevisionAged(age) => Want::RevisionBefore(now.minus(*age)),
            // Every read has the state of the board.
            Prefetch::Revision => continue,
        };
        wants.push(want);
    }
    Ok(wants)
}

/// What a run knows.
pub(super) struct Answers {
    pub(super) state: State,
    /// The time of the run.
    pub(super) now: Timestamp,
    /// The outcome that the slot of the connection has.
    pub(super) outcome: Vec<u8>,
    pub(super) rows: HashMap<Vec<u8>, Option<StoredRow>>,
    pub(super) versions: HashMap<Revision, Option<Vec<u8>>>,
    pub(super) ranges: HashMap<(Bounds, bool, Detail), RangeAnswer>,
    pub(super) replies: HashMap<Want, Reply>,
}

/// The members of the first rows of a range.
pub(super) struct RangeAnswer {
    pub(super) members: Vec<Vec<u8>>,
    limit: usize,
}

/// What was read of the rows of a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Detail {
    Members,
    Rows,
    /// Rows, and the versions of entries.
    Values,
}

impl Detail {
    /// Itself, and what contains it.
    fn or_more(self) -> &'static [Detail] {
        match self {
            Detail::Members => &[Detail::Members, Detail::Rows, Detail::Values],
            Detail::Rows => &[Detail::Rows, Detail::Values],
            Detail::Values => &[Detail::Values],
        }
    }
}

impl Answers {
    /// Nothing but the state of the board.
    pub(super) fn new(state: State, now: Timestamp, outcome: Vec<u8>) -> Answers {
        Answers {
            state,
            now,
            outcome,
            rows: HashMap::new(),
            versions: HashMap::new(),
            ranges: HashMap::new(),
            replies: HashMap::new(),
        }
    }

    /// What is not known yet.
    pub(super) fn missing(&self, wants: &[Want]) -> Vec<Want> {
        let mut found = HashSet::new();
        wants.iter().filter(|want| !self.has(want) && found.insert(*want)).cloned().collect()
    }

    fn has(&self, want: &Want) -> bool {
        match want {
            Want::Row(field) => self.rows.contains_key(field),
            Want::Entry(field) => match self.rows.get(field) {
                Some(Some(row)) => row.version.is_some(),
                Some(None) => true,
                None => false,
            },
            Want::Version(revision) => self.versions.contains_key(revision),
            Want::Rows(range) => self.range(range, range.detail()).is_some(),
            Want::Members(range) => self.range(range, Detail::Members).is_some(),
            Want::Count(bounds) => self.count(bounds).is_some(),
            _ => self.replies.contains_key(want),
        }
    }

    /// The first members of a range, perhaps more than wanted.
    pub(super) fn range(&self, want: &RangeWant, detail: Detail) -> Option<&RangeAnswer> {
        let known = |detail: &Detail| self.ranges.get(&(want.bounds.clone(), want.backwards, *detail));
        let found = detail.or_more().iter().filter_map(known);
        found.into_iter().find(|found| found.limit >= want.limit || found.is_complete())
    }

    /// How many members a range has.
    pub(super) fn count(&self, bounds: &Bounds) -> Option<u64> {
        if let Some(Reply::Integer(count)) = self.replies.get(&Want::Count(bounds.clone())) {
            return u64::try_from(*count).ok();
        }
        let either = [false, true].into_iter();
        let known = |backwards| {
            let want = RangeWant { bounds: bounds.clone(), backwards, limit: usize::MAX, values: false };
            self.range(&want, Detail::Members)
        };
        either.filter_map(known).map(|found| found.members.len() as u64).next()
    }

    pub(super) fn version(&self, revision: Revision) -> Option<&[u8]> {
        self.versions.get(&revision)?.as_deref()
    }

    /// Adds what another read has found. A row that was read with its version replaces one without.
    pub(super) fn extend(&mut self, other: Answers) {
        (self.state, self.outcome) = (other.state, other.outcome);
        for (field, row) in other.rows {
            match self.rows.entry(field) {
                Slot::Vacant(slot) => drop(slot.insert(row)),
                Slot::Occupied(mut slot) => {
                    let is_better = row.as_ref().is_some_and(|row| row.version.is_some());
                    if is_better || slot.get().is_none() {
                        slot.insert(row);
                    }
                }
            }
        }
        self.versions.extend(other.versions);
        self.ranges.extend(other.ranges);
        self.replies.extend(other.replies);
    }

    pub(super) fn add_range(&mut self, want: &RangeWant, detail: Detail, members: Vec<Vec<u8>>) {
        let answer = RangeAnswer { members, limit: want.limit };
        match self.ranges.entry((want.bounds.clone(), want.backwards, detail)) {
            Slot::Vacant(slot) => drop(slot.insert(answer)),
            // One of two announcements of the same range may be about fewer rows.
            Slot::Occupied(mut slot) => {
                if slot.get().limit < answer.limit {
                    slot.insert(answer);
                }
            }
        }
    }
}

impl RangeAnswer {
    fn is_complete(&self) -> bool {
        self.members.len() < self.limit
    }
}

/// Reads everything that is wanted in one exchange.
pub(super) fn fetch_at_once(
    inner: &Inner,
    call: &mut ServerCall<'_>,
    wants: &[Want],
    now: Timestamp,
) -> Result<Answers> {
    let mut kind = ReadMode::Transaction;
    call.retry(|call| {
        loop {
            match fetch_once(inner, call, wants, now, kind) {
                Err(ServerError::UnknownScript) if Instant::now() < call.deadline => {
                    inner.load_scripts(call)?;
                }
                Err(ServerError::Final(error))
                    if error.code() == Code::ServerFull && kind == ReadMode::Transaction =>
                {
                    kind = ReadMode::Comparison;
                }
                answers => return answers,
            }
        }
    })
}

/// How a read sees one state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReadMode {
    Transaction,
    /// Without a transaction: the state is read before and after the rest, and has to be the same. A server whose
    /// memory is full refuses every transaction.
    Comparison,
}

fn fetch_once(
    inner: &Inner,
    call: &mut ServerCall<'_>,
    wants: &[Want],
    now: Timestamp,
    kind: ReadMode,
) -> Result<Answers, ServerError> {
    let address = &inner.pool.address;
    let slot = call.connection()?.slot.number;
    let replies = call.exchange(&request_for(inner, slot, wants, kind));
    let mut replies = replies.map_err(|broken| faults::of_connection(address, broken.error))?;
    // A command that is refused before `EXEC` is the reason why that fails.
    if let Some(Reply::Error(text)) = replies.iter().find(|reply| matches!(reply, Reply::Error(_))) {
        return Err(faults::of_reply(address, text));
    }
    let results = match (kind, replies.pop()) {
        (ReadMode::Transaction, Some(Reply::List(results))) => results,
        (ReadMode::Comparison, Some(Reply::Bytes(after))) => {
            let before = if let Some(Reply::List(fields)) = replies.get(1) { fields.first() } else { None };
            if before != Some(&Reply::Bytes(after)) {
                return Err(faults::changed(address));
            }
            replies
        }
        (ReadMode::Comparison, Some(Reply::Nil)) => return Err(ServerError::Final(faults::gone(address))),
        _ => return Err(ServerError::Final(faults::odd_reply(address))),
    };
    let answers = read_answers(inner, wants, now, results)?;
    call.connection()?.outcome = Some(answers.outcome.clone());
    Ok(answers)
}

/// The fields that one command reads.
fn fields_of(wants: &[Want]) -> impl Iterator<Item = Vec<u8>> {
    wants.iter().filter_map(|want| match want {
        Want::Row(field) => Some(field.clone()),
        Want::Version(revision) => Some(layout::version_field(*revision)),
        _ => None,
    })
}

fn request_for(inner: &Inner, slot: u16, wants: &[Want], kind: ReadMode) -> Request {
    let (mut request, keys) = (Request::default(), &inner.keys);
    if kind == ReadMode::Transaction {
        request.command(&[b"MULTI"]);
    }
    request.command(&[b"TIME"]);
    let fields: Vec<_> = fields_of(wants).collect();
    request.begin(5 + fields.len());
    for argument in [b"HMGET", &keys.rows[..], layout::STATE, &layout::slot_field(slot), layout::HAS_INDEX] {
        request.argument(argument);
    }
    for field in &fields {
        request.argument(field);
    }
    let entries: Vec<&[u8]> = entries_of(wants).collect();
    if !entries.is_empty() {
        script::ENTRIES.call(&mut request, keys, &entries);
    }
    for want in wants {
        want.add_command(&mut request, inner);
    }
    if wants.iter().any(Want::reads_index) {
        request.command(&[b"ZCARD", &keys.index]);
    }
    if wants.iter().any(Want::reads_log) {
        request.command(&[b"XREVRANGE", &keys.log, b"+", b"-", b"COUNT", b"1"]);
    }
    match kind {
        ReadMode::Transaction => request.command(&[b"EXEC"]),
        ReadMode::Comparison => request.command(&[b"HGET", &keys.rows, layout::STATE]),
    };
    request
}

fn entries_of(wants: &[Want]) -> impl Iterator<Item = &[u8]> {
    wants.iter().filter_map(|want| if let Want::Entry(field) = want { Some(&field[..]) } else { None })
}

impl Want {
    /// Whether it has a command of its own.
    fn has_command(&self) -> bool {
        !matches!(self, Want::Row(_) | Want::Entry(_) | Want::Version(_))
    }

    fn reads_index(&self) -> bool {
        matches!(self, Want::Rows(_) | Want::Members(_) | Want::Count(_))
    }

    fn reads_log(&self) -> bool {
        self.has_command() && !self.reads_index()
    }

    fn add_command(&self, request: &mut Request, inner: &Inner) {
        let keys = &inner.keys;
        let number = |number: usize| i64::try_from(number).unwrap_or(-1).to_string();
        // The end of a part of the log.
        let until = |revision: &Revision| match *revision {
            Revision::MAX => "+".to_owned(),
            revision => revision.to_string(),
        };
        match self {
            Want::Row(_) | Want::Entry(_) | Want::Version(_) => {}
            Want::Rows(RangeWant { bounds, backwards, limit, values }) => {
                let flag = |set: bool| if set { &b"1"[..] } else { b"0" };
                let limit = number(*limit);
                let arguments =
                    [&bounds.from[..], &bounds.before, limit.as_bytes(), flag(*backwards), flag(*values)];
                script::RANGE.call(request, keys, &arguments);
            }
            Want::Members(RangeWant { bounds, backwards, limit, .. }) => {
                let limit = number(*limit);
                let (command, first, second) = if *backwards {
                    (&b"ZREVRANGEBYLEX"[..], &bounds.before, &bounds.from)
                } else {
                    (&b"ZRANGEBYLEX"[..], &bounds.from, &bounds.before)
                };
                request.command(&[command, &keys.index, first, second, b"LIMIT", b"0", limit.as_bytes()]);
            }
            Want::Count(bounds) => {
                request.command(&[b"ZLEXCOUNT", &keys.index, &bounds.from, &bounds.before]);
            }
            Want::Events { after, until: last, count } => {
                let (from, count) = (after.next().to_string(), number(*count));
                let last = until(last);
                request.command(&[
                    b"XRANGE",
                    &keys.log,
                    from.as_bytes(),
                    last.as_bytes(),
                    b"COUNT",
                    count.as_bytes(),
                ]);
            }
            Want::LastEvent(revision) => {
                let last = until(revision);
                request.command(&[b"XREVRANGE", &keys.log, last.as_bytes(), b"-", b"COUNT", b"1"]);
            }
            Want::OldestEvent => {
                request.command(&[b"XRANGE", &keys.log, b"-", b"+", b"COUNT", b"1"]);
            }
            Want::Versions(after, last) => {
                let (from, last) = (after.next().to_string(), last.to_string());
                script::VERSIONS.call(request, keys, &[from.as_bytes(), last.as_bytes()]);
            }
            Want::RevisionBack(last, count) => {
                let (last, count) = (until(last), count.to_string());
                script::FIND.call(request, keys, &[b"back", last.as_bytes(), count.as_bytes()]);
            }
            Want::RevisionBefore(moment) => {
                let millis = moment.millis().to_string();
                script::FIND.call(request, keys, &[b"before", b"+", millis.as_bytes()]);
            }
        }
    }
}

fn read_answers(
    inner: &Inner,
    wants: &[Want],
    estimate: Timestamp,
    results: Vec<Reply>,
) -> Result<Answers, ServerError> {
    let address = &inner.pool.address;
    let odd = || ServerError::Final(faults::odd_reply(address));
    if let Some(Reply::Error(text)) = results.iter().find(|reply| matches!(reply, Reply::Error(_))) {
        return Err(faults::of_reply(address, text));
    }
    let mut results = results.into_iter();
    let time = results.next().as_ref().and_then(read_time).ok_or_else(odd)?;
    inner.pool.clock.note(time, estimate);
    let Some(Reply::List(fields)) = results.next() else { return Err(odd()) };
    let mut fields = fields.into_iter();
    let state = match fields.next() {
        Some(Reply::Bytes(state)) => inner.read_state(&state).map_err(ServerError::Final)?,
        Some(Reply::Nil) => return Err(ServerError::Final(faults::gone(address))),
        _ => return Err(odd()),
    };
    let outcome = fields.next().map(optional).ok_or_else(odd)?.map_err(|()| odd())?.unwrap_or_default();
    let has_index = fields.next().map(optional).ok_or_else(odd)?.map_err(|()| odd())?.is_some();
    let has_events = state.revision > state.floor;
    inner.listener.tell(state.revision);
    let mut answers = Answers::new(state, inner.time_of_run(estimate, time.timestamp()), outcome);
    for want in wants.iter().filter(|want| matches!(want, Want::Row(_) | Want::Version(_))) {
        let value = fields.next().map(optional).ok_or_else(odd)?.map_err(|()| odd())?;
        match want {
            Want::Row(field) => {
                let row = value.map(|value| StoredRow::new(value, None));
                answers.rows.insert(field.clone(), row);
            }
            Want::Version(revision) => drop(answers.versions.insert(*revision, value)),
            _ => {}
        }
    }
    let entries: Vec<_> = entries_of(wants).collect();
    if !entries.is_empty() {
        let Some(Reply::List(stored)) = results.next() else { return Err(odd()) };
        let mut stored = stored.into_iter();
        for field in entries {
            let (Some(row), Some(version)) = (stored.next(), stored.next()) else { return Err(odd()) };
            let (row, version) = (optional(row).map_err(|()| odd())?, optional(version).map_err(|()| odd())?);
            answers.rows.insert(field.to_vec(), row.map(|row| StoredRow::new(row, version)));
        }
    }
    for want in wants.iter().filter(|want| want.has_command()) {
        let reply = results.next().ok_or_else(odd)?;
        answers.add_reply(want, reply).ok_or_else(odd)?;
    }
    // The server removes a key without content, so a missing one looks like an empty one.
    if wants.iter().any(Want::reads_index) && results.next() == Some(Reply::Integer(0)) && has_index {
        return Err(ServerError::Final(faults::damaged(address, faults::NO_INDEX)));
    }
    let is_empty = |log: Reply| matches!(log, Reply::List(events) if events.is_empty());
    if wants.iter().any(Want::reads_log) && results.next().is_some_and(is_empty) && has_events {
        return Err(ServerError::Final(faults::damaged(address, faults::NO_LOG)));
    }
    Ok(answers)
}

impl Answers {
    /// Adds the reply to a command; `None` if it is not what the command returns.
    fn add_reply(&mut self, want: &Want, reply: Reply) -> Option<()> {
        match (want, reply) {
            (Want::Rows(range), Reply::List(list)) => {
                let (mut members, mut list) = (Vec::new(), list.into_iter());
                while let Some(member) = list.next() {
                    let member = optional(member).ok()??;
                    let (row, version) = (optional(list.next()?).ok()?, optional(list.next()?).ok()?);
                    let field = bytes::field_at(&member)?.to_vec();
                    let row = row.map(|row| StoredRow::new(row, version));
                    match self.rows.entry(field) {
                        Slot::Vacant(slot) => drop(slot.insert(row)),
                        Slot::Occupied(mut slot) => {
                            if row.as_ref().is_some_and(|row| row.version.is_some()) {
                                slot.insert(row);
                            }
                        }
                    }
                    members.push(member);
                }
                self.add_range(range, range.detail(), members);
            }
            (Want::Members(range), Reply::List(list)) => {
                let members = list.into_iter().map(|member| optional(member).ok().flatten());
                let members = members.collect::<Option<_>>()?;
                self.add_range(range, Detail::Members, members);
            }
            (want, reply) => drop(self.replies.insert(want.clone(), reply)),
        }
        Some(())
    }
}

/// A value that may be absent.
pub(super) fn optional(reply: Reply) -> Result<Option<Vec<u8>>, ()> {
    match reply {
        Reply::Bytes(bytes) => Ok(Some(bytes)),
        Reply::Nil => Ok(None),
        _ => Err(()),
    }
}

impl Inner {
    /// The state of this board. Another board of the same name means that this one is gone.
    pub(super) fn read_state(&self, stored: &[u8]) -> Result<State> {
        let address = &self.pool.address;
        let state = State::read(stored).map_err(|error| match error {
            StateError::Newer => faults::newer(address),
            StateError::Foreign => faults::foreign(address),
            StateError::Damaged => faults::damaged(address, faults::NO_STATE),
        })?;
        if state.board != self.board {
            return Err(faults::gone(address));
        }
        if state.hold == Hold::Loading && !self.is_loading {
            return Err(faults::being_copied(address));
        }
        Ok(state)
    }

    /// The time of a run: the estimate that the request was made with, unless it was wrong. It is not after the
    /// server's time, and therefore not after the events of the run.
    fn time_of_run(&self, estimate: Timestamp, server: Timestamp) -> Timestamp {
        let is_good = (0..=MAX_TIME_ERROR).contains(&(server.millis() - estimate.millis()));
        if is_good || self.fixed_clock.is_some() { estimate } else { server }
    }

    /// The time for the next request.
    pub(super) fn now(&self) -> Timestamp {
        self.fixed_clock.as_ref().map_or_else(|| self.pool.clock.now(), |clock| clock.now())
    }
}
