//! Commits: a run, and one script that validates its reads and applies its changes.
//!
//! A commit has an id, which the script stores in a slot of the connection. If the answer is lost, the same commit is
//! sent again with the same id, and the script answers from the slot. It is never applied twice: ids of a connection
//! grow, so the script refuses an older commit that arrives late, even if everything that it has read is as it was.

use std::collections::HashSet;
use std::thread;
use std::time::{Duration, Instant};

use uuid::Uuid;

use super::Inner;
use super::address::Address;
use super::bytes::{self, Place};
use super::faults::{self, Trouble};
use super::fetch::{Want, fetch};
use super::layout::{self, StoredRow};
use super::pool::{FIRST_PAUSE, Lease};
use super::resp::{Reply, Request};
use super::script;
use super::view::View;
use crate::clock::Timestamp;
use crate::error::{Code, Error, Fault, Result};
use crate::event::Event;
use crate::revision::Revision;
use crate::store::record::checked_revision;
use crate::store::{Changes, Commit, Committed, Erasure, Key, OnBusy, Page, Row, Tx, check_changes};

/// How often a commit is tried before it fails with a conflict.
const MAX_RUNS: usize = 1000;

/// From which run on a commit pauses first, so that others get ahead of it.
const RUNS_WITHOUT_PAUSE: usize = 4;

/// From which run on a commit reserves the next one: a commit that reads much would otherwise lose to small ones forever.
const RUNS_WITHOUT_RESERVATION: usize = 8;

/// How long the first reservation lasts, and the longest one. If this client stops, other commits wait for its end.
const FIRST_RESERVATION: Duration = Duration::from_millis(250);
const LONGEST_RESERVATION: Duration = Duration::from_secs(4);

/// How old the time of a run may be when it is committed. A run that took longer is repeated, with twice the limit.
const MAX_AGE: Duration = Duration::from_secs(2);

/// How long a commit waits before it tries again during the reservation of another one.
const RESERVED_PAUSE: Duration = Duration::from_millis(2);

/// How long a commit waits for replicas.
const REPLICA_LIMIT: Duration = Duration::from_secs(2);

impl Inner {
    pub(super) fn commit(
        &self,
        commit: &Commit<'_>,
        f: &mut dyn FnMut(&dyn Tx) -> Result<Changes>,
    ) -> Result<Committed> {
        let (mut lease, mut wants, mut max_age) = (self.lease(self.patience), Vec::new(), MAX_AGE);
        let (mut token, mut reservation) = (String::new(), FIRST_RESERVATION);
        for run in 0..MAX_RUNS {
            if run > 0 && (Instant::now() >= lease.deadline || commit.on_busy == OnBusy::Fail) {
                return Err(if commit.on_busy == OnBusy::Fail {
                    faults::busy(commit.name)
                } else {
                    faults::lost(commit.name, run)
                });
            }
            pause_before(run);
            if run >= RUNS_WITHOUT_RESERVATION {
                if token.is_empty() {
                    token = Uuid::new_v4().simple().to_string();
                }
                self.reserve(&mut lease, &token, reservation)?;
                reservation = (reservation * 2).min(LONGEST_RESERVATION);
            }
            let view = View::new(self, lease, commit.prefetch, std::mem::take(&mut wants), false)?;
            let begun = Instant::now();
            let outcome = f(&view);
            if self.test_modes.runs_twice && run == 0 && commit.on_busy == OnBusy::Wait {
                (lease, _) = view.into_parts();
                continue;
            }
            let changes = match outcome {
                Ok(changes) if !changes.is_empty() => changes,
                // A refusal is an answer too: it needs one state that the board really had.
                _ if view.has_changed.get() => {
                    (lease, wants) = view.into_parts();
                    continue;
                }
                outcome => {
                    let first = view.answers.borrow().state.revision.next();
                    outcome?;
                    if commit.on_busy == OnBusy::Wait {
                        self.confirm(commit.name, &mut view.lease.borrow_mut())?;
                    }
                    return Ok(Committed { first, held: Duration::ZERO });
                }
            };
            let mut sending = Sending::new(self, commit.name, &view, changes, max_age)?;
            sending.token.clone_from(&token);
            sending.waits = commit.on_busy == OnBusy::Wait;
            (lease, _) = view.into_parts();
            // The limit is for the server, not for the function of the caller.
            lease.deadline += begun.elapsed();
            match sending.send(&mut lease)? {
                Outcome::Done(first) => return Ok(Committed { first, held: Duration::ZERO }),
                Outcome::Conflict => {}
                Outcome::Old => max_age *= 2,
                Outcome::Reserved => return Err(faults::busy(commit.name)),
            }
        }
        Err(faults::lost(commit.name, MAX_RUNS))
    }

    /// Waits until replicas have what a call has found done already: a remembered call was perhaps reported as
    /// unknown because they did not have it.
    fn confirm(&self, name: &'static str, lease: &mut Lease<'_>) -> Result<()> {
        let address = &self.pool.address;
        if address.replicas == 0 {
            return Ok(());
        }
        let mut request = Request::default();
        script::CONFIRM.call(&mut request, &self.keys, &[self.board.as_bytes()]);
        add_wait(&mut request, address.replicas);
        let replies = lease.retry(|lease| {
            lease.connection()?;
            match self.replies(lease, &request) {
                Err(Trouble::UnknownScript) => {
                    self.load_scripts(lease)?;
                    self.replies(lease, &request)
                }
                replies => replies,
            }
        });
        let replies = replies.map_err(|error| faults::outcome_unknown(name, &error.to_string()))?;
        match replies.first() {
            Some(Reply::Bytes(answer)) if answer == b"ok" => check_replicas(address, name, replies.get(1)),
            Some(Reply::Bytes(_)) => Err(faults::gone(address)),
            _ => Err(faults::odd_reply(address)),
        }
    }

    /// Lets this call be the next one to commit, unless another call is.
    fn reserve(&self, lease: &mut Lease<'_>, token: &str, limit: Duration) -> Result<()> {
        let mut request = Request::default();
        let limit = limit.as_millis().to_string();
        script::RESERVE.call(&mut request, &self.keys, &[token.as_bytes(), limit.as_bytes()]);
        lease.retry(|lease| {
            lease.connection()?;
            match self.replies(lease, &request) {
                Err(Trouble::UnknownScript) => {
                    self.load_scripts(lease)?;
                    self.replies(lease, &request).map(drop)
                }
                replies => replies.map(drop),
            }
        })
    }
}

/// Lets the server answer when this many replicas have what the connection has written.
fn add_wait(request: &mut Request, replicas: u32) {
    if replicas > 0 {
        let limit = REPLICA_LIMIT.as_millis().to_string();
        request.command(&[b"WAIT", replicas.to_string().as_bytes(), limit.as_bytes()]);
    }
}

/// Whether enough replicas have it.
fn check_replicas(address: &Address, name: &str, reply: Option<&Reply>) -> Result<()> {
    let wanted = i64::from(address.replicas);
    match reply {
        None if wanted == 0 => Ok(()),
        Some(Reply::Integer(found)) if *found >= wanted => Ok(()),
        Some(Reply::Integer(found)) => {
            let reason = format!("only {found} of {wanted} replicas have it, so a failover may undo it");
            Err(faults::outcome_unknown(name, &reason))
        }
        _ => Err(faults::odd_reply(address)),
    }
}

/// The longer, the more often a commit has lost.
fn pause_before(run: usize) {
    if (RUNS_WITHOUT_PAUSE..RUNS_WITHOUT_RESERVATION).contains(&run) {
        let random = u64::from(Uuid::new_v4().as_bytes()[0]);
        let most = (run - RUNS_WITHOUT_PAUSE + 1).min(20) as u64;
        thread::sleep(Duration::from_micros(most * 500 * random / 256));
    }
}

/// The answer to a commit.
enum Outcome {
    Done(Revision),
    /// Something that the run has read has changed.
    Conflict,
    /// The time of the run has passed.
    Old,
    /// Another commit is the next one, and the caller does not wait.
    Reserved,
}

/// A commit that is sent until its outcome is known.
struct Sending<'a> {
    inner: &'a Inner,
    name: &'static str,
    id: [u8; layout::COMMIT_ID],
    /// The time until which it may be applied.
    latest: Timestamp,
    /// What the slot of the connection had before.
    outcome_before: Vec<u8>,
    /// The field of a row that it writes, and the event of that row's number.
    written: Option<(Vec<u8>, usize)>,
    erases: bool,
    /// The token of its reservation, if it has lost often.
    token: String,
    /// Whether it waits for the reservation of another commit.
    waits: bool,
    arguments: Vec<Vec<u8>>,
}

impl<'a> Sending<'a> {
    fn new(
        inner: &'a Inner,
        name: &'static str,
        view: &View<'_>,
        changes: Changes,
        max_age: Duration,
    ) -> Result<Sending<'a>> {
        check_changes(&changes, Revision::ZERO)?;
        let mut arguments = Arguments::default();
        arguments.add_reads(view);
        arguments.add_erasures(view, &changes.erase)?;
        let erases = !changes.erase.is_empty();
        let written = arguments.add_changes(view, changes)?;
        Ok(Sending {
            inner,
            name,
            id: view.lease.borrow_mut().next_commit_id()?,
            latest: view.now().plus(max_age),
            outcome_before: view.answers.borrow().outcome.clone(),
            written,
            erases,
            token: String::new(),
            waits: true,
            arguments: arguments.list,
        })
    }

    /// Sends it until the server has answered or the deadline has passed.
    fn send(&self, lease: &mut Lease<'_>) -> Result<Outcome> {
        // Whether an earlier attempt may have been applied.
        let (mut may_be_done, mut has_loaded, mut pause) = (false, false, FIRST_PAUSE);
        loop {
            let trouble = match self.attempt(lease, &mut may_be_done) {
                Ok(Some(Outcome::Reserved)) if self.waits && Instant::now() < lease.deadline => {
                    thread::sleep(RESERVED_PAUSE);
                    continue;
                }
                Ok(Some(outcome)) => return Ok(outcome),
                // It is the same commit only if it is the same board: `attempt` has checked that.
                Ok(None) => match self.find_lost(lease)? {
                    Some(outcome) => return Ok(outcome),
                    None => return Err(self.unknown("another connection has replaced its outcome")),
                },
                Err(Trouble::UnknownScript) if !has_loaded => {
                    has_loaded = true;
                    match self.inner.load_scripts(lease) {
                        Ok(()) => continue,
                        Err(trouble) => trouble,
                    }
                }
                Err(trouble) => trouble,
            };
            pause = match lease.pause_after(trouble, pause) {
                Ok(pause) => pause,
                Err(error) if may_be_done && error.code() != Code::OutcomeUnknown => {
                    return Err(self.unknown(&error.to_string()));
                }
                Err(error) => return Err(error),
            };
        }
    }

    /// One attempt. `None` means that an earlier attempt may have been applied, and that the slot does not tell.
    fn attempt(&self, lease: &mut Lease<'_>, may_be_done: &mut bool) -> Result<Option<Outcome>, Trouble> {
        let address = &self.inner.pool.address;
        let connection = lease.connection()?;
        let (run, slot) = (self.inner.run_of(connection), connection.slot.number);
        let replies = lease.exchange(&self.request(&run, slot)).map_err(|broken| {
            *may_be_done |= broken.may_have_arrived;
            faults::of_connection(address, broken.error)
        })?;
        let odd = || Trouble::Final(faults::odd_reply(address));
        let parts = match replies.first() {
            Some(Reply::Error(text)) => return Err(faults::of_reply(address, text)),
            Some(Reply::List(parts)) => parts,
            _ => return Err(odd()),
        };
        let text = |part: usize| match parts.get(part) {
            Some(Reply::Bytes(bytes)) => Some(&bytes[..]),
            _ => None,
        };
        match text(0) {
            Some(b"ok") => {
                let first = text(1).and_then(|text| std::str::from_utf8(text).ok()?.parse().ok());
                let first = first.and_then(checked_revision).ok_or_else(odd)?;
                if let Some(Reply::Error(text)) = replies.get(1) {
                    // The server was demoted while it waited for replicas. The new primary has the commit, or it has not.
                    *may_be_done = true;
                    return Err(faults::of_reply(address, text));
                }
                check_replicas(address, self.name, replies.get(1)).map_err(Trouble::Final)?;
                Ok(Some(Outcome::Done(first)))
            }
            Some(b"conflict" | b"old" | b"reserved")
                if *may_be_done && text(1) != Some(&self.outcome_before[..]) =>
            {
                Ok(None)
            }
            Some(b"conflict") => Ok(Some(Outcome::Conflict)),
            Some(b"old") => Ok(Some(Outcome::Old)),
            Some(b"reserved") => Ok(Some(Outcome::Reserved)),
            Some(b"gone") => Err(Trouble::Final(faults::gone(address))),
            Some(b"version") => Err(Trouble::Final(self.inner.held(lease, text(1).unwrap_or_default()))),
            _ => Err(odd()),
        }
    }

    fn request(&self, run: &str, slot: u16) -> Request {
        let (mut request, keys) = (Request::default(), &self.inner.keys);
        let mut board_keys = keys.all().to_vec();
        if self.erases {
            board_keys.push(&keys.scratch);
        }
        let fixed_time = self.inner.fixed_clock.as_ref();
        let fixed_time = fixed_time.map(|clock| clock.now().millis().to_string()).unwrap_or_default();
        let latest = self.latest.millis().to_string();
        let head = [
            &self.id[..],
            layout::VERSION.as_bytes(),
            self.inner.board.as_bytes(),
            run.as_bytes(),
            &layout::slot_field(slot),
            latest.as_bytes(),
            fixed_time.as_bytes(),
            self.token.as_bytes(),
        ];
        script::COMMIT.begin(&mut request, &board_keys, head.len() + self.arguments.len());
        for argument in head.into_iter().chain(self.arguments.iter().map(Vec::as_slice)) {
            request.argument(argument);
        }
        add_wait(&mut request, self.inner.pool.address.replicas);
        request
    }

    /// Looks for a row that only this commit can have written.
    fn find_lost(&self, lease: &mut Lease<'_>) -> Result<Option<Outcome>> {
        let Some((field, event)) = &self.written else { return Ok(None) };
        let want = Want::Row(field.clone());
        let answers = fetch(self.inner, lease, std::slice::from_ref(&want), self.inner.now())?;
        let row = answers.rows.get(field).and_then(Option::as_ref);
        let row = row.filter(|row| row.stamp() == &self.id[..layout::STAMP]);
        let first = row
            .and_then(StoredRow::number)
            .map(|number| Revision::new(number.get() - i64::try_from(*event).unwrap_or(0)));
        Ok(first.map(Outcome::Done))
    }

    fn unknown(&self, reason: &str) -> Error {
        faults::outcome_unknown(self.name, reason)
    }
}

/// The arguments of the script, in its order.
#[derive(Default)]
struct Arguments {
    list: Vec<Vec<u8>>,
}

impl Arguments {
    fn add(&mut self, argument: impl Into<Vec<u8>>) {
        self.list.push(argument.into());
    }

    fn add_number(&mut self, number: usize) {
        self.add(number.to_string());
    }

    fn add_list(&mut self, list: Vec<Vec<u8>>) {
        self.add_number(list.len());
        self.list.extend(list);
    }

    fn add_reads(&mut self, view: &View<'_>) {
        let reads = view.reads.borrow();
        self.add_number(reads.rows.len());
        for (field, read) in &reads.rows {
            self.add(&field[..]);
            self.add(&read.stamp[..]);
        }
        self.add_number(reads.ranges.len());
        for (bounds, count) in &reads.ranges {
            self.add(&bounds.from[..]);
            self.add(&bounds.before[..]);
            self.add_number(*count);
        }
    }

    /// The new content of erased events. A pruned event needs none.
    fn add_erasures(&mut self, view: &View<'_>, erasures: &[Erasure]) -> Result<()> {
        let mut changed = Vec::new();
        for Erasure { event, summary, metadata } in erasures {
            let page = Page { after: event.previous(), until: *event, types: &[], limit: 1 };
            if let Some(found) = view.events(&page)?.into_iter().next() {
                let event = Event { summary: summary.clone(), metadata: metadata.clone(), ..found };
                changed.push((event.id, layout::store_event(&event)));
            }
        }
        self.add_number(changed.len());
        for (id, payload) in changed {
            self.add(id.to_string());
            self.add(payload);
        }
        Ok(())
    }

    /// Everything else. Returns the field of a row that is written, and the event of its number.
    fn add_changes(&mut self, view: &View<'_>, changes: Changes) -> Result<Option<(Vec<u8>, usize)>> {
        let Changes { put, remove, events, erase, trim_events, remove_versions } = changes;
        self.add_number(events.len());
        for (number, mut event) in events.into_iter().enumerate() {
            let version = event.version.take().map(|version| version.to_stored()).unwrap_or_default();
            let event = event.at(Revision::of_event(number), Revision::of_event(0), Timestamp::EPOCH);
            self.add(layout::store_event(&event));
            self.add(version);
        }
        let rows = RowChanges::new(view, put, remove)?;
        let mut gone = rows.gone;
        let versions = remove_versions.into_iter().chain(erase.iter().map(|erasure| erasure.event));
        gone.extend(versions.map(layout::version_field));
        self.add_list(gone);
        self.add_list(rows.left);
        self.add_list(rows.appended);
        self.add_number(rows.unreadable.len());
        for (field, bounds) in rows.unreadable {
            self.add(field);
            self.add_list(bounds);
        }
        let written = rows.put.first().map(|put| (put.field.clone(), put.event.unwrap_or(0)));
        self.add_number(rows.put.len());
        for PutRow { field, kind, event, payload } in rows.put {
            self.add(field);
            self.add(kind);
            self.add(event.map(|event| event.to_string()).unwrap_or_default());
            self.add(payload);
        }
        self.add_number(rows.entered.len());
        for Place { head, event, tail } in rows.entered {
            self.add(head);
            self.add(event.map(|event| event.to_string()).unwrap_or_default());
            self.add(tail);
        }
        self.add(trim_events.unwrap_or(Revision::ZERO).to_string());
        Ok(written)
    }
}

/// The changes of rows and of their places in indexes.
#[derive(Default)]
struct RowChanges {
    put: Vec<PutRow>,
    /// The fields that are removed.
    gone: Vec<Vec<u8>>,
    /// The places that rows leave.
    left: Vec<Vec<u8>>,
    entered: Vec<Place>,
    /// The fields of rows that contain their places.
    appended: Vec<Vec<u8>>,
    /// The fields of rows whose places are unknown, and where these may be.
    unreadable: Vec<(Vec<u8>, Vec<Vec<u8>>)>,
}

struct PutRow {
    field: Vec<u8>,
    kind: &'static str,
    event: Option<usize>,
    payload: Vec<u8>,
}

impl RowChanges {
    fn new(view: &View<'_>, put: Vec<Row>, remove: Vec<Key>) -> Result<RowChanges> {
        let mut changes = RowChanges::default();
        for key in remove {
            let field = RowChanges::writable_field(view, &key)?;
            let before = changes.places_before(view, &key, &field)?;
            changes.left.extend(before.into_iter().map(|place| place.head));
            changes.gone.push(field);
        }
        // Of several rows with one key the last one stays.
        let mut fields = HashSet::new();
        for row in put.into_iter().rev() {
            let key = row.key();
            let field = RowChanges::writable_field(view, &key)?;
            if !fields.insert(field.clone()) {
                continue;
            }
            let (before, after) = (changes.places_before(view, &key, &field)?, bytes::places_of(&row)?);
            let left = before.iter().filter(|place| !after.contains(place));
            changes.left.extend(left.map(|place| place.head.clone()));
            // The script removes the places of an appended row, so that all of them have to be added again.
            changes.entered.extend(after.into_iter().filter(|place| !before.contains(place)));
            let (kind, event, payload) = layout::store_row(&row)?;
            changes.put.push(PutRow { field, kind, event, payload });
        }
        Ok(changes)
    }

    /// The field of a row that the run may write.
    fn writable_field(view: &View<'_>, key: &Key) -> Result<Vec<u8>> {
        let field = bytes::row_field(key)?;
        let reads = view.reads.borrow();
        if key.table().appended || reads.rows.get(&field).is_some_and(|read| read.may_be_written) {
            return Ok(field);
        }
        Err(Fault::new(Code::Internal, format!("{key:?} is written without being read")).into())
    }

    /// The places of the stored row, if the client knows them.
    fn places_before(&mut self, view: &View<'_>, key: &Key, field: &[u8]) -> Result<Vec<Place>> {
        if key.table().appended {
            self.appended.push(field.to_vec());
            return Ok(Vec::new());
        }
        let answers = view.answers.borrow();
        match answers.rows.get(field).and_then(Option::as_ref).map(StoredRow::read) {
            None => Ok(Vec::new()),
            Some(Ok(row)) => bytes::places_of(&row),
            Some(Err(_)) => {
                self.unreadable.push((field.to_vec(), bytes::bounds_of_table(key.table())?));
                Ok(Vec::new())
            }
        }
    }
}
