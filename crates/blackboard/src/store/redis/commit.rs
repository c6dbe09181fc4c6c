//! Commits: a run, and one script that validates its reads and applies its changes.
//!
//! A commit has an id, which the script stores in a slot of the connection. If the answer is lost, the same commit is
//! sent again with the same id, and the script answers from the slot. It is never applied twice: ids of a connection
//! grow, so the script refuses an older commit that arrives late, even if everything that it has read is as it was.
//! If the repetition is refused, the slot remembers that, so that a first copy that arrives later is refused too.
//! Connections whose slots have the same number keep each other's outcomes, as long as a copy may still be applied.

use std::thread;
use std::time::{Duration, Instant};

use uuid::Uuid;

use super::Inner;
use super::address::Address;
use super::arguments::Arguments;
use super::faults::{self, ServerError};
use super::fetch::Want;
use super::last_seen::WrittenRow;
use super::layout::{self, StoredRow};
use super::parts::fetch;
use super::pool::{self, FIRST_PAUSE, ServerCall};
use super::resp::{Reply, Request};
use super::script;
use super::view::View;
use crate::clock::Timestamp;
use crate::error::{Code, Error, Result};
use crate::revision::Revision;
use crate::store::record::checked_revision;
use crate::store::{Changes, Commit, Committed, OnBusy, Tx, check_changes};

/// How often a commit is tried before it fails with a conflict.
const MAX_RUNS: usize = 1000;

/// From which run on a commit pauses first, so that others get ahead of it.
const RUNS_WITHOUT_PAUSE: usize = 4;

/// From which run on a commit reserves the next one: a commit that reads much would otherwise lose to small ones
/// forever.
const RUNS_WITHOUT_RESERVATION: usize = 8;

/// How long the first reservation lasts, and the longest one. If this client stops, other commits wait for its end.
const FIRST_RESERVATION: Duration = Duration::from_millis(250);
const LONGEST_RESERVATION: Duration = Duration::from_secs(4);

/// How old the time of a run may be when it is committed. A run that took longer is repeated, with twice the limit, up
/// to the longest one.
const MAX_AGE: Duration = Duration::from_secs(2);
const LONGEST_AGE: Duration = Duration::from_hours(1);

/// How long a commit waits at most before it tries again during the reservation of another one, which may end early.
const RESERVED_PAUSE: Duration = Duration::from_millis(50);

/// How long a commit waits for replicas at most.
const REPLICA_LIMIT: Duration = Duration::from_secs(2);

impl Inner {
    pub(super) fn commit(
        &self,
        commit: &Commit<'_>,
        f: &mut dyn FnMut(&dyn Tx) -> Result<Changes>,
    ) -> Result<Committed> {
        let (mut call, mut wants, mut max_age) = (self.call(self.patience), Vec::new(), MAX_AGE);
        let (mut token, mut reservation) = (String::new(), FIRST_RESERVATION);
        for run in 0..MAX_RUNS {
            if run > 0 && (Instant::now() >= call.deadline || commit.on_busy == OnBusy::Fail) {
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
                self.reserve(&mut call, &token, reservation)?;
                reservation = (reservation * 2).min(LONGEST_RESERVATION);
            }
            // A wrong guess costs a run, which a caller that does not wait does not have.
            let may_guess = run == 0
                && commit.on_busy == OnBusy::Wait
                && !self.test_modes.runs_twice
                && !self.test_modes.reads_first;
            let guess = if may_guess { self.guess(&call, commit.prefetch)? } else { None };
            let is_guess = guess.is_some();
            let view = match guess {
                Some((answers, wants)) => View::of(self, call, answers, wants, false),
                None => View::new(self, call, commit.prefetch, std::mem::take(&mut wants), false)?,
            };
            let begun = Instant::now();
            let outcome = f(&view);
            if !is_guess {
                view.keep_reads();
            }
            if self.test_modes.runs_twice && run == 0 && commit.on_busy == OnBusy::Wait {
                (call, _) = view.into_parts();
                continue;
            }
            let changes = match outcome {
                Ok(changes) if !changes.is_empty() => changes,
                // A refusal is an answer too: it needs one state that the board really had.
                _ if is_guess || view.has_changed.get() => {
                    (call, wants) = view.into_parts();
                    self.renew(&mut call);
                    continue;
                }
                outcome => {
                    let first = view.answers.borrow().state.revision.next();
                    outcome?;
                    if commit.on_busy == OnBusy::Wait {
                        self.confirm(commit.name, &mut view.call.borrow_mut())?;
                    }
                    return Ok(Committed { first, held: Duration::ZERO });
                }
            };
            let mut sending = PendingCommit::new(self, commit.name, &view, changes, max_age)?;
            sending.token.clone_from(&token);
            if is_guess {
                sending.guess = Some(Guess::of(&view));
            }
            sending.waits = commit.on_busy == OnBusy::Wait;
            sending.only_ends = commit.only_ends();
            (call, _) = view.into_parts();
            // The limit is for the server, not for the function of the caller.
            call.deadline += begun.elapsed();
            let outcome = sending.send(&mut call).inspect_err(|_| self.last_seen.forget())?;
            if is_guess {
                self.last_seen.note_guess(matches!(outcome, Outcome::Done(_)));
            }
            match outcome {
                Outcome::Done(first) => {
                    self.last_seen.note_commit(&sending.id, first, sending.events, &sending.rows);
                    return Ok(Committed { first, held: Duration::ZERO });
                }
                Outcome::Old => max_age = max_age.saturating_mul(2).min(LONGEST_AGE),
                Outcome::Reserved(_) if !sending.waits => return Err(faults::busy(commit.name)),
                Outcome::Conflict | Outcome::Reserved(_) => {}
            }
            self.renew(&mut call);
        }
        Err(faults::lost(commit.name, MAX_RUNS))
    }

    /// Waits until replicas have what a call has found done already: a remembered call was perhaps reported as
    /// unknown because they did not have it.
    pub(super) fn confirm(&self, name: &'static str, call: &mut ServerCall<'_>) -> Result<()> {
        let address = &self.pool.address;
        if address.replicas == 0 {
            return Ok(());
        }
        let count = self.count_replicas(call);
        let count = count.map_err(|error| faults::outcome_unknown(name, &error.to_string()))?;
        check_replicas(address, name, Some(&count))
    }

    /// Writes something that changes nothing, and asks how many replicas have it within the limit. They have everything
    /// before it too.
    pub(super) fn count_replicas(&self, call: &mut ServerCall<'_>) -> Result<Reply> {
        let address = &self.pool.address;
        let replies = call.retry(|call| {
            let mut request = Request::default();
            script::CONFIRM.call(
                &mut request,
                &self.keys,
                &[&self.board, layout::VERSION].map(str::as_bytes),
            );
            add_wait(&mut request, address.replicas, call.reply_limit());
            self.replies_of_script(call, &request)
        });
        let mut replies = replies?.into_iter();
        match (replies.next(), replies.next()) {
            (Some(Reply::List(answer)), Some(count)) if answer == [Reply::Bytes(b"ok".to_vec())] => Ok(count),
            (Some(Reply::List(answer)), _) => Err(self.refusal(call, &answer)),
            _ => Err(faults::odd_reply(address)),
        }
    }

    /// Lets this call be the next one to commit, unless another call is.
    pub(super) fn reserve(&self, call: &mut ServerCall<'_>, token: &str, limit: Duration) -> Result<()> {
        let mut request = Request::default();
        let limit = limit.as_millis().to_string();
        let arguments = [&self.board, layout::VERSION, token, &limit].map(str::as_bytes);
        script::RESERVE.call(&mut request, &self.keys, &arguments);
        call.retry(|call| match &self.answer_of_script(call, &request)?[..] {
            [Reply::Bytes(answer)] if answer == b"reserved" || answer == b"taken" => Ok(()),
            parts => Err(ServerError::Final(self.refusal(call, parts))),
        })
    }
}

/// Lets the server answer when this many replicas have what the connection has written, early enough for a caller that
/// waits this long for the reply: it is better to know that a replica is missing than not to know the outcome.
fn add_wait(request: &mut Request, replicas: u32, reply_limit: Duration) {
    if replicas > 0 {
        // Zero would be no limit.
        let limit = REPLICA_LIMIT.min(reply_limit / 4 * 3).as_millis().max(1).to_string();
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
    /// Another commit is the next one, for as long as this at most.
    Reserved(Duration),
}

/// What a commit assumes of a server from which nothing was read for it. The script compares it.
struct Guess {
    run: String,
    now: Timestamp,
}

impl Guess {
    fn of(view: &View<'_>) -> Guess {
        let run = view.call.borrow().known_run().unwrap_or_default().to_owned();
        Guess { run, now: view.now() }
    }
}

/// A commit that is sent until its outcome is known.
struct PendingCommit<'a> {
    inner: &'a Inner,
    name: &'static str,
    id: [u8; layout::COMMIT_ID],
    /// The time until which it may be applied.
    latest: Timestamp,
    /// What the slot of the connection had before.
    outcome_before: Vec<u8>,
    /// All rows that it writes, and how many events it has.
    rows: Vec<WrittenRow>,
    events: usize,
    erases: bool,
    /// The token of its reservation, if it has lost often.
    token: String,
    /// Whether it waits for the reservation of another commit.
    waits: bool,
    /// Whether it may use memory that the server does not have.
    only_ends: bool,
    /// What it is based on besides the rows, if nothing was read for it.
    guess: Option<Guess>,
    arguments: Vec<Vec<u8>>,
}

impl<'a> PendingCommit<'a> {
    fn new(
        inner: &'a Inner,
        name: &'static str,
        view: &View<'_>,
        changes: Changes,
        max_age: Duration,
    ) -> Result<PendingCommit<'a>> {
        check_changes(&changes, Revision::ZERO)?;
        let mut arguments = Arguments::default();
        arguments.add_reads(view);
        arguments.add_erasures(view, &changes.erase)?;
        let (erases, events) = (!changes.erase.is_empty(), changes.events.len());
        let rows = arguments.add_changes(view, changes)?;
        Ok(PendingCommit {
            inner,
            name,
            id: view.call.borrow_mut().next_commit_id()?,
            latest: view.now().plus(max_age),
            outcome_before: view.answers.borrow().outcome.clone(),
            rows,
            events,
            erases,
            token: String::new(),
            waits: true,
            only_ends: false,
            guess: None,
            arguments: arguments.list,
        })
    }

    /// Sends it until the server has answered or the deadline has passed.
    fn send(&self, call: &mut ServerCall<'_>) -> Result<Outcome> {
        // Whether an earlier attempt may have been applied.
        let (mut may_be_done, mut pause) = (false, FIRST_PAUSE);
        loop {
            let error = match self.attempt(call, &mut may_be_done) {
                Ok(Some(Outcome::Reserved(left))) if self.waits && Instant::now() < call.deadline => {
                    // Its clock counts milliseconds.
                    let pause = left.clamp(Duration::from_millis(1), RESERVED_PAUSE);
                    thread::sleep(pool::jitter(pause));
                    continue;
                }
                Ok(Some(outcome)) => return Ok(outcome),
                // It is the same commit only if it is the same board: `attempt` has checked that.
                Ok(None) => return self.find_lost(call),
                // A server that restarts or is replaced has no scripts, whenever that happens.
                Err(ServerError::UnknownScript) if Instant::now() < call.deadline => {
                    match self.inner.load_scripts(call) {
                        Ok(()) => continue,
                        Err(error) => error,
                    }
                }
                Err(error) => error,
            };
            pause = match call.pause_after(error, pause) {
                Ok(pause) => pause,
                Err(error) if may_be_done && error.code() != Code::OutcomeUnknown => {
                    return Err(self.unknown(&error.to_string()));
                }
                Err(error) if self.erases && error.code() == Code::ServerFull => {
                    return Err(error.with_hint(faults::FULL_FOR_AN_ERASURE.into()));
                }
                Err(error) => return Err(error),
            };
        }
    }

    /// One attempt. `None` means that an earlier attempt may have been applied, and that the slot does not tell.
    fn attempt(
        &self,
        call: &mut ServerCall<'_>,
        may_be_done: &mut bool,
    ) -> Result<Option<Outcome>, ServerError> {
        let address = &self.inner.pool.address;
        let connection = call.connection()?;
        // On another server the guess is in doubt. If it was sent before, only the same commit tells whether it was
        // applied.
        if !*may_be_done && self.guess.as_ref().is_some_and(|guess| guess.run != connection.run) {
            return Ok(Some(Outcome::Conflict));
        }
        let (run, slot) = (self.inner.run_of(connection), connection.slot.number);
        let request = self.request(&run, slot, *may_be_done, call.reply_limit());
        let replies = call.exchange(&request).map_err(|broken| {
            *may_be_done |= broken.may_have_arrived;
            faults::of_connection(address, broken.error)
        })?;
        let odd = || ServerError::Final(faults::odd_reply(address));
        let parts = match replies.first() {
            Some(Reply::Error(text)) => {
                *may_be_done |= !faults::proves_no_change(text);
                return Err(faults::of_reply(address, text));
            }
            Some(Reply::List(parts)) => parts,
            _ => {
                *may_be_done = true;
                return Err(odd());
            }
        };
        let text = |part: usize| match parts.get(part) {
            Some(Reply::Bytes(bytes)) => Some(&bytes[..]),
            _ => None,
        };
        match text(0) {
            Some(b"ok") => {
                // It is done. What follows decides whether the caller can know it.
                *may_be_done = true;
                let first = text(1).and_then(|text| std::str::from_utf8(text).ok()?.parse().ok());
                let first = first.and_then(checked_revision).ok_or_else(odd)?;
                if let Some(Reply::Error(text)) = replies.get(1) {
                    // The server was demoted while it waited for replicas. The new primary has the commit, or it has
                    // not.
                    return Err(faults::of_reply(address, text));
                }
                call.set_outcome(layout::outcome(&self.id, first, self.latest));
                check_replicas(address, self.name, replies.get(1)).map_err(ServerError::Final)?;
                Ok(Some(Outcome::Done(first)))
            }
            Some(b"conflict" | b"old" | b"reserved")
                if *may_be_done
                    && text(2) != Some(b"1")
                    && text(1).unwrap_or_default() != self.outcome_before =>
            {
                Ok(None)
            }
            Some(b"conflict") => Ok(Some(Outcome::Conflict)),
            Some(b"old") => Ok(Some(Outcome::Old)),
            Some(b"reserved") => {
                let left = text(3).and_then(|left| std::str::from_utf8(left).ok()?.parse().ok());
                Ok(Some(Outcome::Reserved(Duration::from_millis(left.ok_or_else(odd)?))))
            }
            Some(b"gone") => Err(ServerError::Final(faults::gone(address))),
            Some(b"no index") => Err(ServerError::Final(faults::damaged(address, faults::NO_INDEX))),
            Some(b"no log") => Err(ServerError::Final(faults::damaged(address, faults::NO_LOG))),
            Some(b"version") => Err(ServerError::Final(self.inner.held(call, text(1).unwrap_or_default()))),
            _ => {
                *may_be_done = true;
                Err(odd())
            }
        }
    }

    /// `is_repeated` means that an earlier copy may have arrived, or may still do.
    fn request(&self, run: &str, slot: u16, is_repeated: bool, reply_limit: Duration) -> Request {
        let (mut request, keys) = (Request::default(), &self.inner.keys);
        let mut board_keys = keys.all().to_vec();
        if self.erases {
            board_keys.push(&keys.scratch);
        }
        let fixed_time = self.inner.fixed_clock.as_ref();
        let fixed_time = fixed_time.map(|clock| clock.now().millis().to_string()).unwrap_or_default();
        let latest = self.latest.millis().to_string();
        let guess = self.guess.as_ref().map(|guess| guess.now.millis().to_string()).unwrap_or_default();
        let head = [
            &self.id[..],
            layout::VERSION.as_bytes(),
            self.inner.board.as_bytes(),
            run.as_bytes(),
            &layout::slot_field(slot),
            latest.as_bytes(),
            fixed_time.as_bytes(),
            self.token.as_bytes(),
            guess.as_bytes(),
            if is_repeated { b"1" } else { b"" },
        ];
        let script = if self.only_ends { &script::COMMIT_OF_AN_END } else { &script::COMMIT };
        script.begin(&mut request, &board_keys, head.len() + self.arguments.len());
        for argument in head.into_iter().chain(self.arguments.iter().map(Vec::as_slice)) {
            request.argument(argument);
        }
        add_wait(&mut request, self.inner.pool.address.replicas, reply_limit);
        request
    }

    /// Looks for a row that only this commit can have written, after another connection has replaced its outcome.
    /// Without that row, or replicas that have it, the outcome stays unknown.
    fn find_lost(&self, call: &mut ServerCall<'_>) -> Result<Outcome> {
        match self.find_written(call) {
            Ok(Some(first)) => {
                self.inner.confirm(self.name, call)?;
                Ok(Outcome::Done(first))
            }
            Ok(None) => Err(self.unknown("another connection has replaced its outcome")),
            Err(error) => Err(self.unknown(&error.to_string())),
        }
    }

    /// The first revision of this commit, if a row that it wrote is still there.
    fn find_written(&self, call: &mut ServerCall<'_>) -> Result<Option<Revision>> {
        let put =
            self.rows.iter().find_map(|row| Some((&row.field, row.content.as_ref()?.event.unwrap_or(0))));
        let Some((field, event)) = put else { return Ok(None) };
        let want = Want::Row(field.clone());
        let answers = fetch(self.inner, call, std::slice::from_ref(&want), self.inner.now())?;
        let row = answers.rows.get(field).and_then(Option::as_ref);
        let row = row.filter(|row| row.stamp() == &self.id[..layout::STAMP]);
        let event = i64::try_from(event).unwrap_or(0);
        Ok(row.and_then(StoredRow::number).and_then(|number| checked_revision(number.get() - event)))
    }

    fn unknown(&self, reason: &str) -> Error {
        faults::outcome_unknown(self.name, reason)
    }
}
