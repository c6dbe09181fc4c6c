//! Reads a complete board, page by page.
//!
//! A board that sessions change has no state that lasts for many reads. So the server makes a copy of its keys, atomically,
//! and that is read. The copy is removed at the end; if this process is killed, the server removes it after a while. A board
//! that cannot change, because it is sealed or being loaded, is read directly.

use std::time::{Duration, Instant};

use uuid::Uuid;

use super::fetch::{Bounds, RangeWant, Want};
use super::layout::{BoardKeys, StoredRow};
use super::listener::Listening;
use super::pool::Pool;
use super::resp::{Reply, Request};
use super::view::View;
use super::{Inner, TestModes, bytes, faults};
use crate::error::{Code, Fault, Refusal, Result};
use crate::revision::Revision;
use crate::store::record::Table;
use crate::store::transfer::{Extent, Hold, Part, Recipient, count_rows};
use crate::store::{Page, Prefetch, Row, TABLES, Tx};

/// How many rows or events are read at once.
const PAGE: usize = 200;

/// After which time the server removes its copy of the keys, unless it is still read.
const LIFETIME: Duration = Duration::from_mins(10);

/// How long the server may take for that copy. It does nothing else meanwhile.
const COPY_LIMIT: Duration = Duration::from_mins(2);

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
            listening: Listening::default(),
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
        snapshot.send(&request)?;
        Ok(snapshot)
    }

    /// Lets the server keep the copy longer.
    fn keep(&self) -> Result<()> {
        let mut request = Request::default();
        expire(&mut request, &self.board.keys);
        self.send(&request)
    }

    fn send(&self, request: &Request) -> Result<()> {
        let board = &self.board;
        let replies = board.lease(board.patience).retry(|lease| {
            lease.connection()?;
            board.replies(lease, request)
        })?;
        // An error inside of a transaction is a part of its answer.
        let Some(Reply::List(results)) = replies.last() else { return Ok(()) };
        match results.iter().find(|result| matches!(result, Reply::Error(_))) {
            Some(Reply::Error(text)) => {
                let address = &board.pool.address;
                Err(faults::of_reply(address, text).into_error(address))
            }
            _ => Ok(()),
        }
    }
}

impl Drop for Snapshot {
    fn drop(&mut self) {
        let mut request = Request::default();
        let [rows, index, log] = self.board.keys.all();
        request.command(&[b"UNLINK", rows, index, log]);
        // Otherwise the server removes it later.
        let _ = self.send(&request);
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
        let lease = self.board.lease(self.board.patience);
        let view = View::new(self.board, lease, prefetch, wants.to_vec(), true)?;
        // A sealed board may have been opened again.
        if view.answers.borrow().state.stamp != self.stamp {
            return Err(Refusal::new(Code::Conflict, "the board changed while it was read").into());
        }
        Ok(view)
    }

    fn dump_rows(&mut self, table: &Table, to: &mut dyn Recipient) -> Result<()> {
        let mut bounds = bounds_of(table)?;
        let values = table.name == "entries";
        loop {
            let want = RangeWant { bounds: bounds.clone(), backwards: false, limit: PAGE, values };
            let view = self.view(&[], &[Want::Rows(want.clone())])?;
            let (rows, last) = rows_of(&view, &want)?;
            let is_last = rows.len() < PAGE;
            self.dump_old_versions(&view, &rows, to)?;
            for row in rows {
                to.part(Part::Row(row))?;
            }
            match last {
                Some(last) if !is_last => bounds.from = bytes::excluded(&last),
                _ => return Ok(()),
            }
        }
    }

    /// The versions of entries whose events were pruned.
    fn dump_old_versions(&self, view: &View<'_>, rows: &[Row], to: &mut dyn Recipient) -> Result<()> {
        let revision = |row: &Row| if let Row::Entry(entry) = row { Some(entry.revision) } else { None };
        let old = rows.iter().filter_map(revision).filter(|revision| *revision <= self.floor);
        dump_versions(view, &old.collect::<Vec<_>>(), to)
    }

    fn dump_events(&mut self, to: &mut dyn Recipient) -> Result<()> {
        let mut after = self.floor;
        loop {
            let page = Page::after(after, PAGE);
            let view = self.view(&[Prefetch::Events(page)], &[])?;
            let events = view.events(&page)?;
            let Some(last) = events.last() else { return Ok(()) };
            after = last.id;
            view.prefetch(&events.iter().map(|event| Prefetch::Version(event.id)).collect::<Vec<_>>())?;
            let (mut parts, mut replaced) = (Vec::with_capacity(events.len()), Vec::new());
            for event in events {
                let version = view.version(event.id)?;
                let previous = version.as_ref().and_then(|version| version.previous);
                replaced.extend(previous.filter(|previous| *previous <= self.floor));
                parts.push(Part::Event(Box::new(event), version.map(Box::new)));
            }
            dump_versions(&view, &replaced, to)?;
            parts.into_iter().try_for_each(|part| to.part(part))?;
        }
    }
}

/// Those of these versions that are kept.
fn dump_versions(view: &View<'_>, revisions: &[Revision], to: &mut dyn Recipient) -> Result<()> {
    view.prefetch(&revisions.iter().map(|revision| Prefetch::Version(*revision)).collect::<Vec<_>>())?;
    for revision in revisions {
        if let Some(version) = view.version(*revision)? {
            to.part(Part::Version(version))?;
        }
    }
    Ok(())
}

/// The rows of a page, and the last place.
fn rows_of(view: &View<'_>, want: &RangeWant) -> Result<(Vec<Row>, Option<Vec<u8>>)> {
    view.need(&[Want::Rows(want.clone())])?;
    let answers = view.answers.borrow();
    let damaged = || Fault::new(Code::Corrupt, "the index of the board has a place without its row");
    let range = answers.range(want, want.detail()).ok_or_else(damaged)?;
    let mut rows = Vec::with_capacity(range.places.len());
    for place in &range.places {
        let row = bytes::field_at(place).and_then(|field| answers.rows.get(field)?.as_ref());
        rows.push(row.map(StoredRow::read).ok_or_else(damaged)??);
    }
    Ok((rows, range.places.last().cloned()))
}

/// The bounds of all rows of a table.
fn bounds_of(table: &Table) -> Result<Bounds> {
    let missing = || Fault::new(Code::Internal, format!("{} has no index with all rows", table.name));
    let (from, before) = bytes::bounds_of_index(table.complete_index().ok_or_else(missing)?)?;
    Ok(Bounds { from, before })
}
