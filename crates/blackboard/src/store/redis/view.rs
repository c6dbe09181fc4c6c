//! The view of a run, and what its commit has to find unchanged.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use super::Inner;
use super::bytes;
use super::faults;
use super::fetch::{Answers, Bounds, Detail, RangeWant, Want, wants_of};
use super::layout::{self, LoggedEvent, StoredRow};
use super::parts::fetch;
use super::pool::ServerCall;
use super::resp::Reply;
use crate::clock::Timestamp;
use crate::entry::{EntryHead, EntryVersion};
use crate::error::{Code, Refusal, Result};
use crate::event::Event;
use crate::revision::Revision;
use crate::store::call_limit::limited;
use crate::store::record::checked_revision;
use crate::store::{Key, Page, Prefetch, Range, Row, Tx, VersionHead};

/// How many times the patience of its board a call may take that loses to others.
const MAX_PATIENCES: u32 = 8;

/// What a run has read: each row with its stamp (empty if it was absent), and each range with its number of rows.
#[derive(Default)]
pub(super) struct Reads {
    /// Whether a row was read so that it may be written. A head was not.
    pub(super) rows: HashMap<Vec<u8>, RowRead>,
    pub(super) ranges: HashMap<Bounds, usize>,
}

pub(super) struct RowRead {
    pub(super) stamp: Vec<u8>,
    pub(super) may_be_written: bool,
}

impl Reads {
    /// The first read counts: if a later one differs, validation fails as it should.
    fn add(&mut self, field: &[u8], row: Option<&StoredRow>, may_be_written: bool) {
        let stamp = || row.map(|row| row.stamp().to_vec()).unwrap_or_default();
        let read = self.rows.entry(field.to_vec());
        let read = read.or_insert_with(|| RowRead { stamp: stamp(), may_be_written });
        read.may_be_written |= may_be_written;
    }
}

/// The view of a run. It reads what was announced in one round trip, and everything else when it is asked for.
pub(super) struct View<'a> {
    inner: &'a Inner,
    pub(super) call: RefCell<ServerCall<'a>>,
    pub(super) answers: RefCell<Answers>,
    /// Everything that the run wanted to know.
    wants: RefCell<Vec<Want>>,
    pub(super) reads: RefCell<Reads>,
    /// Whether the run must see one state: then it ends when a later read sees another one.
    is_one_state: bool,
    /// Whether reads of the run saw different states.
    pub(super) has_changed: Cell<bool>,
}

impl<'a> View<'a> {
    /// Reads what is wanted.
    pub(super) fn new(
        inner: &'a Inner,
        mut call: ServerCall<'a>,
        prefetch: &[Prefetch<'_>],
        mut wants: Vec<Want>,
        is_one_state: bool,
    ) -> Result<View<'a>> {
        let now = inner.now();
        let announced = wants_of(prefetch, now)?;
        let mut known: HashSet<&Want> = wants.iter().collect();
        let new: Vec<Want> = announced.iter().filter(|want| known.insert(want)).cloned().collect();
        wants.extend(new);
        let answers = fetch(inner, &mut call, &wants, now)?;
        Ok(View::of(inner, call, answers, wants, is_one_state))
    }

    /// Of what was read already.
    pub(super) fn of(
        inner: &'a Inner,
        call: ServerCall<'a>,
        answers: Answers,
        wants: Vec<Want>,
        is_one_state: bool,
    ) -> View<'a> {
        View {
            inner,
            call: RefCell::new(call),
            answers: RefCell::new(answers),
            wants: RefCell::new(wants),
            reads: RefCell::default(),
            is_one_state,
            has_changed: Cell::new(false),
        }
    }

    /// Lets the next commits of this process begin with what this run has read.
    pub(super) fn keep_reads(&self) {
        self.inner.last_seen.note_read(&self.wants.borrow(), &self.answers.borrow());
    }

    /// Everything that the run wanted to know, and its connection: another run can read it at once.
    pub(super) fn into_parts(self) -> (ServerCall<'a>, Vec<Want>) {
        (self.call.into_inner(), self.wants.into_inner())
    }

    /// Reads what is not known yet.
    pub(super) fn need(&self, wants: &[Want]) -> Result<()> {
        let missing = self.answers.borrow().missing(wants);
        if missing.is_empty() {
            return Ok(());
        }
        let now = self.answers.borrow().now;
        self.wants.borrow_mut().extend(missing.iter().cloned());
        let mut new = fetch(self.inner, &mut self.call.borrow_mut(), &missing, now)?;
        let mut answers = self.answers.borrow_mut();
        if new.state.stamp != answers.state.stamp {
            self.has_changed.set(true);
        }
        // The time of a run is that of its first read.
        new.now = answers.now;
        answers.extend(new);
        if self.is_one_state && self.has_changed.get() {
            // The caller runs again, with one read of everything.
            return Err(Refusal::new(Code::Conflict, "the board changed while it was read").into());
        }
        Ok(())
    }

    fn read_row(&self, key: &Key, is_validated: bool) -> Result<Option<Row>> {
        let want = Want::row(key)?;
        self.need(std::slice::from_ref(&want))?;
        let (Want::Row(field) | Want::Entry(field)) = &want else { return Ok(None) };
        let answers = self.answers.borrow();
        let row = answers.rows.get(field).and_then(Option::as_ref);
        if is_validated {
            self.reads.borrow_mut().add(field, row, true);
        }
        row.map(|row| read_at(field, row)).transpose()
    }

    /// The fields and rows of a range.
    fn rows_of(&self, want: &RangeWant) -> Result<Vec<(Vec<u8>, StoredRow)>> {
        self.need(&[Want::Rows(want.clone())])?;
        let answers = self.answers.borrow();
        let Some(range) = answers.range(want, want.detail()) else { return Err(self.odd()) };
        let mut rows = Vec::with_capacity(range.members.len().min(want.limit));
        for member in range.members.iter().take(want.limit) {
            let field = bytes::field_at(member).ok_or_else(|| self.odd())?;
            // A member without its row was left by another program.
            if let Some(Some(row)) = answers.rows.get(field) {
                rows.push((field.to_vec(), row.clone()));
            }
        }
        Ok(rows)
    }

    /// Records that a range was read up to its limit.
    fn note_range(&self, want: &RangeWant) {
        let answers = self.answers.borrow();
        let Some(range) = answers.range(want, Detail::Members) else { return };
        let members = &range.members[..range.members.len().min(want.limit)];
        let mut bounds = want.bounds.clone();
        if let Some(last) = members.last().filter(|_| members.len() >= want.limit) {
            // What comes after the last row does not matter.
            if want.backwards {
                bounds.from = bytes::included(last);
            } else {
                bounds.before = bytes::directly_after(last);
            }
        }
        self.reads.borrow_mut().ranges.entry(bounds).or_insert(members.len());
    }

    fn events_of(&self, want: &Want) -> Result<Vec<LoggedEvent>> {
        self.need(std::slice::from_ref(want))?;
        let answers = self.answers.borrow();
        let Some(Reply::List(entries)) = answers.replies.get(want) else { return Err(self.odd()) };
        entries.iter().map(|entry| read_entry(entry).unwrap_or_else(|| Err(self.odd()))).collect()
    }

    /// How many events the board had up to and including a revision.
    fn ordinal_at(&self, revision: Revision) -> Result<u64> {
        if let Some(last) = self.events_of(&Want::LastEvent(revision))?.first() {
            return Ok(last.ordinal);
        }
        let oldest = self.events_of(&Want::OldestEvent)?;
        Ok(oldest.first().map_or(0, |oldest| oldest.ordinal.saturating_sub(1)))
    }

    /// The revision that a script has found.
    fn found(&self, want: &Want) -> Result<Revision> {
        self.need(std::slice::from_ref(want))?;
        let answers = self.answers.borrow();
        let Some(Reply::Bytes(text)) = answers.replies.get(want) else { return Err(self.odd()) };
        if text.is_empty() {
            return Ok(answers.state.floor);
        }
        let number = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok());
        number.and_then(checked_revision).ok_or_else(|| self.odd())
    }

    fn odd(&self) -> crate::Error {
        faults::odd_reply(&self.inner.pool.address)
    }
}

/// The row that is stored in a field. One that another program has given another key would be written to another field.
fn read_at(field: &[u8], stored: &StoredRow) -> Result<Row> {
    let row = stored.read()?;
    if bytes::field_to_read(&row.key())? == field {
        Ok(row)
    } else {
        Err(layout::damaged("a row has another key than its field"))
    }
}

/// An event of a reply: its id, and its one field.
fn read_entry(entry: &Reply) -> Option<Result<LoggedEvent>> {
    let Reply::List(parts) = entry else { return None };
    let [Reply::Bytes(id), Reply::List(fields)] = &parts[..] else { return None };
    let [_, Reply::Bytes(stored)] = &fields[..] else { return None };
    Some(layout::read_event(id, stored))
}

impl Tx for View<'_> {
    fn prefetch(&self, next: &[Prefetch<'_>]) -> Result<()> {
        let now = self.answers.borrow().now;
        self.need(&wants_of(next, now)?)
    }

    fn now(&self) -> Timestamp {
        self.answers.borrow().now
    }

    fn revision(&self) -> Result<Revision> {
        Ok(self.answers.borrow().state.revision)
    }

    fn get(&self, key: &Key) -> Result<Option<Row>> {
        self.read_row(key, true)
    }

    fn peek(&self, key: &Key) -> Result<Option<Row>> {
        self.read_row(key, false)
    }

    fn range(&self, range: &Range) -> Result<Vec<Row>> {
        let want = RangeWant::new(range, usize::MAX, true)?;
        let rows = self.rows_of(&want)?;
        self.note_range(&want);
        let mut reads = self.reads.borrow_mut();
        for (field, row) in &rows {
            reads.add(field, Some(row), true);
        }
        rows.iter().map(|(field, row)| read_at(field, row)).collect()
    }

    fn candidates(&self, range: &Range, limit: usize) -> Result<Vec<Row>> {
        let rows = self.rows_of(&RangeWant::new(range, limit, true)?)?;
        rows.iter().map(|(field, row)| read_at(field, row)).collect()
    }

    fn heads(&self, range: &Range, limit: usize) -> Result<Vec<EntryHead>> {
        let want = RangeWant::new(range, limit, false)?;
        let rows = self.rows_of(&want)?;
        self.note_range(&want);
        let mut reads = self.reads.borrow_mut();
        for (field, row) in &rows {
            reads.add(field, Some(row), false);
        }
        rows.iter().map(|(field, row)| row.head(&bytes::key_of(field)?)).collect()
    }

    fn any(&self, range: &Range) -> Result<bool> {
        let want = RangeWant::new(range, 1, false)?;
        if let Some(count) = self.answers.borrow().count(&want.bounds) {
            return Ok(count > 0);
        }
        Ok(!self.keys(range, 1)?.is_empty())
    }

    fn keys(&self, range: &Range, limit: usize) -> Result<Vec<Result<Key>>> {
        let want = RangeWant::new(range, limit, false)?;
        self.need(&[Want::Members(want.clone())])?;
        let answers = self.answers.borrow();
        let found = answers.range(&want, Detail::Members).ok_or_else(|| self.odd())?;
        let key = |member: &Vec<u8>| bytes::key_of(bytes::field_at(member).unwrap_or_default());
        Ok(found.members.iter().take(limit).map(key).collect())
    }

    fn count(&self, range: &Range) -> Result<u64> {
        let bounds = RangeWant::new(range, usize::MAX, false)?.bounds;
        self.need(&[Want::Count(bounds.clone())])?;
        self.answers.borrow().count(&bounds).ok_or_else(|| self.odd())
    }

    fn events(&self, page: &Page<'_>) -> Result<Vec<Event>> {
        let (mut found, mut after) = (Vec::<Event>::new(), page.after);
        if page.after >= page.until {
            return Ok(found);
        }
        loop {
            let want = Want::events(page, after);
            let Want::Events { count, .. } = want else { return Err(self.odd()) };
            let events = self.events_of(&want)?;
            let is_last = events.len() < count;
            for LoggedEvent { event, .. } in events {
                let is_full = found.len() >= page.limit;
                if is_full && found.last().is_none_or(|last| last.commit_id != event.commit_id) {
                    return Ok(found);
                }
                after = event.id;
                if page.types.is_empty() || page.types.contains(&event.event_type) {
                    found.push(event);
                }
            }
            if is_last {
                return Ok(found);
            }
        }
    }

    fn version(&self, revision: Revision) -> Result<Option<EntryVersion>> {
        self.need(&[Want::Version(revision)])?;
        self.answers.borrow().version(revision).map(layout::read_version).transpose()
    }

    fn version_heads(&self, after: Revision, until: Revision) -> Result<Vec<VersionHead>> {
        if after >= until {
            return Ok(Vec::new());
        }
        let want = Want::Versions(after, until);
        self.need(std::slice::from_ref(&want))?;
        let answers = self.answers.borrow();
        let Some(Reply::List(parts)) = answers.replies.get(&want) else { return Err(self.odd()) };
        let (pairs, _) = parts.as_chunks::<2>();
        let mut heads = Vec::with_capacity(pairs.len());
        for pair in pairs {
            let [Reply::Bytes(id), Reply::Bytes(stored)] = pair else { return Err(self.odd()) };
            let id = std::str::from_utf8(id).ok().and_then(|id| checked_revision(id.parse().ok()?));
            heads.push(layout::read_version_head(id.ok_or_else(|| self.odd())?, stored));
        }
        Ok(heads)
    }

    fn count_events(&self, after: Revision, until: Revision) -> Result<u64> {
        self.need(&[Want::LastEvent(after), Want::LastEvent(until), Want::OldestEvent])?;
        Ok(self.ordinal_at(until)?.saturating_sub(self.ordinal_at(after)?))
    }

    fn revision_back(&self, until: Revision, count: u64) -> Result<Revision> {
        self.found(&Want::RevisionBack(until, count))
    }

    fn revision_before(&self, moment: Timestamp) -> Result<Revision> {
        self.found(&Want::RevisionBefore(moment))
    }

    fn floor(&self) -> Result<Revision> {
        Ok(self.answers.borrow().state.floor)
    }
}

impl Inner {
    /// The connection of a call that may take this long, and not longer than the limit of the caller.
    pub(super) fn call(&self, limit: Duration) -> ServerCall<'_> {
        ServerCall::new(&self.pool, Instant::now() + limited(limit))
    }

    /// Starts the patience of a call again that has lost to others: the server answers, and the board makes progress.
    /// The limit of a caller stays.
    pub(super) fn renew(&self, call: &mut ServerCall<'_>) {
        let has_own_limit = limited(self.patience) < self.patience;
        if !has_own_limit && call.started.elapsed() < self.patience.saturating_mul(MAX_PATIENCES) {
            call.deadline = call.deadline.max(Instant::now() + self.patience);
        }
    }
}
