//! Reads a complete board, page by page.
//!
//! A board that sessions change has no state that lasts for many reads. So the server makes a copy of its keys,
//! atomically, and that is read. The copy is removed at the end; if this process is killed, the server removes it after
//! a while. A board that cannot change, because it is sealed or being loaded, is read directly.

use std::time::{Duration, Instant};

use uuid::Uuid;

use super::fetch::{Bounds, Detail, RangeWant, Want};
use super::last_seen::LastSeen;
use super::layout::{self, BoardKeys, StoredRow};
use super::listener::Listener;
use super::pool::Pool;
use super::resp::{Reply, Request};
use super::view::View;
use super::{Inner, TestModes, bytes, faults, script};
use crate::error::{Code, Error, Fault, Refusal, Result};
use crate::revision::Revision;
use crate::store::record::Table;
use crate::store::transfer::{Extent, Hold, Part, Recipient, count_rows};
use crate::store::{Page, Prefetch, TABLES, Tx};

/// How many rows or events are read at once.
const PAGE: usize = 200;

/// How many bytes of rows or values are read at once, apart from a single one that is larger.
const PAGE_BYTES: usize = 4 << 20;

/// After which time the server removes its copy of the keys, unless it is still read.
const LIFETIME: Duration = Duration::from_mins(10);

/// How long the server may take for that copy. It does nothing else meanwhile.
const COPY_LIMIT: Duration = Duration::from_mins(2);

/// How long the end of a call waits until that copy is removed.
const REMOVAL_LIMIT: Duration = Duration::from_secs(2);

impl Inner {
    /// Gives every part of one state of the board to a recipient.
    pub(super) fn dump(&self, to: &mut dyn Recipient) -> Result<()> {
        if self.state()?.hold != Hold::None {
            return Dump::of(self, None)?.run(to);
        }
        let snapshot = Snapshot::of(self)?;
        Dump::of(&snapshot.board, Some(&snapshot))?.run(to)
    }

    /// The same board with other keys.
    fn with_keys(&self, keys: BoardKeys) -> Inner {
        Inner {
            pool: Pool::new(self.pool.address.clone(), COPY_LIMIT),
            keys,
            board: self.board.clone(),
            patience: COPY_LIMIT,
            fixed_clock: self.fixed_clock.clone(),
            listener: Listener::default(),
            last_seen: LastSeen::default(),
            is_loading: self.is_loading,
            test_modes: TestModes::default(),
        }
    }
}

/// A copy of the keys of a board on its server, removed on drop.
struct Snapshot {
    board: Inner,
}

impl Snapshot {
    fn of(board: &Inner) -> Result<Snapshot> {
        let keys = board.keys.snapshot(&Uuid::new_v4().simple().to_string());
        let copy = board.with_keys(keys);
        let mut request = Request::default();
        request.command(&[b"MULTI"]);
        for (from, to) in board.keys.all().into_iter().zip(copy.keys.all()) {
            request.command(&[b"COPY", from, to, b"REPLACE"]);
        }
        expire(&mut request, &copy.keys);
        request.command(&[b"EXEC"]);
        let snapshot = Snapshot { board: copy };
        let replies = snapshot.send(&request, snapshot.board.patience)?;
        check_transaction(&snapshot.board, &replies)?;
        Ok(snapshot)
    }

    /// Lets the server keep the copy longer.
    fn keep(&self) -> Result<()> {
        let mut request = Request::default();
        expire(&mut request, &self.board.keys);
        self.send(&request, self.board.patience).map(drop)
    }

    /// Sends a request that may be repeated.
    fn send(&self, request: &Request, limit: Duration) -> Result<Vec<Reply>> {
        let board = &self.board;
        board.call(limit).retry(|call| {
            call.connection()?;
            board.replies(call, request)
        })
    }
}

impl Drop for Snapshot {
    fn drop(&mut self) {
        let mut request = Request::default();
        let [rows, index, log] = self.board.keys.all();
        request.command(&[b"UNLINK", rows, index, log]);
        // Otherwise the server removes it later.
        let _ = self.send(&request, REMOVAL_LIMIT);
    }
}

/// What went wrong in a transaction. An error inside of it is a part of its answer.
fn check_transaction(board: &Inner, replies: &[Reply]) -> Result<()> {
    let address = &board.pool.address;
    let Some(Reply::List(results)) = replies.last() else { return Err(faults::odd_reply(address)) };
    match results.iter().find(|result| matches!(result, Reply::Error(_))) {
        Some(Reply::Error(text)) => Err(faults::of_reply(address, text).into_error(address)),
        _ => Ok(()),
    }
}

fn expire(request: &mut Request, keys: &BoardKeys) {
    let lifetime = LIFETIME.as_millis().to_string();
    for key in keys.all() {
        request.command(&[b"PEXPIRE", key, lifetime.as_bytes()]);
    }
}

/// Reads a board that does not change.
struct Dump<'a> {
    board: &'a Inner,
    snapshot: Option<&'a Snapshot>,
    kept: Instant,
    /// The stamp of its state.
    stamp: Vec<u8>,
    revision: Revision,
    floor: Revision,
}

impl<'a> Dump<'a> {
    fn of(board: &'a Inner, snapshot: Option<&'a Snapshot>) -> Result<Dump<'a>> {
        let state = board.state()?;
        let (stamp, revision, floor) = (state.stamp, state.revision, state.floor);
        Ok(Dump { board, snapshot, kept: Instant::now(), stamp, revision, floor })
    }

    fn run(mut self, to: &mut dyn Recipient) -> Result<()> {
        to.begin(&self.extent()?)?;
        for table in TABLES {
            self.dump_rows(table, to)?;
        }
        self.dump_events(to)
    }

    fn extent(&mut self) -> Result<Extent> {
        let view = self.view(&[Prefetch::CountEvents(Revision::ZERO, self.revision)], &[])?;
        Ok(Extent {
            revision: self.revision,
            floor: self.floor,
            rows: count_rows(|table| {
                let bounds = bounds_of(table)?;
                view.need(&[Want::Count(bounds.clone())])?;
                Ok(view.answers.borrow().count(&bounds).unwrap_or(0))
            })?,
            events: view.count_events(Revision::ZERO, self.revision)?,
        })
    }

    /// The next page of the board.
    fn view(&mut self, prefetch: &[Prefetch<'_>], wants: &[Want]) -> Result<View<'a>> {
        if let Some(snapshot) = self.snapshot.filter(|_| self.kept.elapsed() > LIFETIME / 10) {
            snapshot.keep()?;
            self.kept = Instant::now();
        }
        let call = self.board.call(self.board.patience);
        let view = View::new(self.board, call, prefetch, wants.to_vec(), true)?;
        self.check_unchanged(&view.answers.borrow().state.stamp)?;
        Ok(view)
    }

    /// A sealed board may have been opened again.
    fn check_unchanged(&self, stamp: &[u8]) -> Result<()> {
        if stamp == self.stamp {
            Ok(())
        } else {
            Err(Refusal::new(Code::Conflict, "the board changed while it was read").into())
        }
    }

    fn dump_rows(&mut self, table: &Table, to: &mut dyn Recipient) -> Result<()> {
        let mut bounds = bounds_of(table)?;
        loop {
            let want = RangeWant { bounds: bounds.clone(), backwards: false, limit: PAGE, values: false };
            let members = self.members(&want)?;
            let fields = members.iter().map(|member| bytes::field_at(member).map(<[u8]>::to_vec));
            let fields = fields.collect::<Option<Vec<_>>>().ok_or_else(damaged)?;
            let mut entries = Vec::new();
            self.each_value(&fields, &mut |_, value| {
                let row = StoredRow::new(value.ok_or_else(damaged)?, None);
                match row.entry_revision() {
                    Some(revision) => entries.push((row, revision)),
                    None => to.part(Part::Row(row.read()?))?,
                }
                Ok(())
            })?;
            self.dump_entries(entries, to)?;
            match members.last() {
                Some(last) if members.len() >= PAGE => bounds.from = bytes::excluded(last),
                _ => return Ok(()),
            }
        }
    }

    /// The members of a page.
    fn members(&mut self, want: &RangeWant) -> Result<Vec<Vec<u8>>> {
        let view = self.view(&[], &[Want::Members(want.clone())])?;
        let answers = view.answers.borrow();
        let range = answers.range(want, Detail::Members).ok_or_else(damaged)?;
        Ok(range.members.clone())
    }

    /// Entries with their values, and before each its version if its event was pruned.
    fn dump_entries(&self, entries: Vec<(StoredRow, Revision)>, to: &mut dyn Recipient) -> Result<()> {
        let revisions: Vec<Revision> = entries.iter().map(|(_, revision)| *revision).collect();
        let mut entries = entries.into_iter();
        self.each_version(&revisions, &mut |revision, version| {
            let (mut row, _) = entries.next().ok_or_else(damaged)?;
            if let Some(version) = version.as_deref().filter(|_| revision <= self.floor) {
                to.part(Part::Version(layout::read_version(version)?))?;
            }
            row.version = version;
            to.part(Part::Row(row.read()?))
        })
    }

    fn dump_events(&mut self, to: &mut dyn Recipient) -> Result<()> {
        let mut after = self.floor;
        loop {
            let page = Page::after(after, PAGE);
            let view = self.view(&[Prefetch::Events(page)], &[])?;
            let events = view.events(&page)?;
            let Some(last) = events.last() else { return Ok(()) };
            after = last.id;
            drop(view);
            let revisions: Vec<Revision> = events.iter().map(|event| event.id).collect();
            let mut events = events.into_iter();
            self.each_version(&revisions, &mut |_, version| {
                let event = events.next().ok_or_else(damaged)?;
                let version = version.as_deref().map(layout::read_version).transpose()?;
                // The version that it replaced has no event any more.
                let previous = version.as_ref().and_then(|version| version.previous);
                let pruned = previous.filter(|previous| *previous <= self.floor);
                self.each_version(pruned.as_slice(), &mut |_, version| match version {
                    Some(version) => to.part(Part::Version(layout::read_version(&version)?)),
                    None => Ok(()),
                })?;
                to.part(Part::Event(Box::new(event), version.map(Box::new)))
            })?;
        }
    }

    /// Gives the version of each of these revisions to `give`, in their order.
    fn each_version(
        &self,
        revisions: &[Revision],
        give: &mut dyn FnMut(Revision, Option<Vec<u8>>) -> Result<()>,
    ) -> Result<()> {
        let fields: Vec<_> = revisions.iter().map(|revision| layout::version_field(*revision)).collect();
        self.each_value(&fields, &mut |member, value| give(revisions[member], value))
    }

    /// Gives the value of each of these fields to `give`, in their order. They are read in parts of a limited size.
    fn each_value(
        &self,
        fields: &[Vec<u8>],
        give: &mut dyn FnMut(usize, Option<Vec<u8>>) -> Result<()>,
    ) -> Result<()> {
        let (board, mut member) = (self.board, 0);
        let odd = || faults::odd_reply(&board.pool.address);
        while member < fields.len() {
            let most = PAGE_BYTES.to_string();
            let arguments: Vec<&[u8]> =
                [most.as_bytes()].into_iter().chain(fields[member..].iter().map(Vec::as_slice)).collect();
            let mut request = Request::default();
            script::VALUES.call(&mut request, &board.keys, &arguments);
            let replies = board.call(board.patience).retry(|call| board.replies_of_script(call, &request))?;
            let Some(Reply::List(parts)) = replies.into_iter().next() else { return Err(odd()) };
            let mut parts = parts.into_iter();
            match parts.next() {
                Some(Reply::Bytes(state)) => self.check_unchanged(&board.read_state(&state)?.stamp)?,
                _ => return Err(faults::gone(&board.pool.address)),
            }
            let before = member;
            for part in parts {
                match part {
                    Reply::Bytes(value) => give(member, Some(value))?,
                    Reply::Nil => give(member, None)?,
                    _ => return Err(odd()),
                }
                member += 1;
            }
            if member == before {
                return Err(odd());
            }
        }
        Ok(())
    }
}

/// The index of the board does not fit its rows.
fn damaged() -> Error {
    Fault::new(Code::Corrupt, "the index of the board has a member without its row").into()
}

/// The bounds of all rows of a table.
fn bounds_of(table: &Table) -> Result<Bounds> {
    let missing = || Fault::new(Code::Internal, format!("{} has no index with all rows", table.name));
    let (from, before) = bytes::bounds_of_index(table.complete_index().ok_or_else(missing)?)?;
    Ok(Bounds { from, before })
}
