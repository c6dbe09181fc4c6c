//! An engine outside the crate: a board in one file of JSON lines.
//!
//! Each line is a commit: what it put and removed, its events and their versions, in the library's text forms. The
//! file is read once, when the board is opened. After that the state is in memory, and a commit appends its line
//! before it is acknowledged. The line is not synchronized to the disk: a commit survives a crash of the process, not
//! one of the machine. A commit runs under a lock, so the rows that it read cannot change. A reader keeps the state that it
//! began with. One process uses the file at a time.
//!
//! `cargo test --example engine --features conformance` runs the conformance suite on it.
//! `cargo run --example engine --features conformance -- FILE` counts the commands that one file has seen.

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use blackboard::clock::{Clock, SystemClock, Timestamp};
use blackboard::entry::{EntryHead, EntryVersion};
use blackboard::event::Event;
use blackboard::revision::Pending;
use blackboard::store::record::{Index, IndexValue};
use blackboard::store::{
    Changes, Commit, Committed, Key, OnBusy, Page, Prefetch, Range, Row, Store, Tx, VersionHead,
    check_changes, count_older, event_time,
};
use blackboard::{Board, Code, Fault, Refusal, Result, Revision};
use serde::{Deserialize, Serialize};

fn main() -> Result<()> {
    let path = std::env::args_os().nth(1).unwrap_or_else(|| "board.jsonl".into());
    let clock = Arc::new(SystemClock);
    let board = Board::on(Arc::new(JsonFile::open(Path::new(&path), clock.clone())?), clock);
    let count = board.scope("example").increment("runs", 1)?;
    println!(
        "{} is at revision {}; this is run {}",
        Path::new(&path).display(),
        count.revision,
        count.version
    );
    Ok(())
}

/// A board in a file.
struct JsonFile {
    clock: Arc<dyn Clock>,
    /// Held during a commit.
    file: Mutex<File>,
    state: Mutex<Arc<State>>,
    grown: Condvar,
}

/// One line of the file. Rows, events and versions are in their stored forms.
#[derive(Serialize, Deserialize)]
struct Line {
    /// New events, and older events that the commit changed.
    events: Vec<String>,
    versions: Vec<String>,
    /// The rows that the commit removed, with their old content.
    removed: Vec<String>,
    put: Vec<String>,
    /// The versions that the commit removed, by their events.
    removed_versions: Vec<Revision>,
    trim: Option<Revision>,
}

/// A partition of an index: positions, and the rows that have them.
type Partition = BTreeSet<(Vec<IndexValue>, Key)>;

/// The state of a board.
#[derive(Clone, Default)]
struct State {
    rows: BTreeMap<Key, Row>,
    index: BTreeMap<(&'static Index, Vec<IndexValue>), Partition>,
    events: BTreeMap<Revision, Event>,
    versions: BTreeMap<Revision, EntryVersion>,
    floor: Revision,
}

impl JsonFile {
    /// Opens a board, or creates it.
    fn open(path: &Path, clock: Arc<dyn Clock>) -> Result<JsonFile> {
        let file = OpenOptions::new().read(true).append(true).create(true).open(path).map_err(failed)?;
        let (mut state, mut complete) = (State::default(), 0);
        let mut reader = BufReader::new(&file);
        let mut text = Vec::new();
        while reader.read_until(b'\n', &mut text).map_err(failed)? > 0 && text.ends_with(b"\n") {
            let line: Line = serde_json::from_slice(&text).map_err(damaged)?;
            state.apply(&line)?;
            complete += text.len() as u64;
            text.clear();
        }
        // A crash in a write may leave a part of a line. That commit was never acknowledged.
        if !text.is_empty() {
            file.set_len(complete).map_err(failed)?;
        }
        let (file, state) = (Mutex::new(file), Mutex::new(Arc::new(state)));
        Ok(JsonFile { clock, file, state, grown: Condvar::new() })
    }

    fn state(&self) -> MutexGuard<'_, Arc<State>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn view(&self) -> View {
        View { state: self.state().clone(), now: self.clock.now(), read: RefCell::default() }
    }
}

impl Store for JsonFile {
    fn read(&self, _prefetch: &[Prefetch<'_>], f: &mut dyn FnMut(&dyn Tx) -> Result<()>) -> Result<()> {
        f(&self.view())
    }

    fn commit(
        &self,
        commit: &Commit<'_>,
        f: &mut dyn FnMut(&dyn Tx) -> Result<Changes>,
    ) -> Result<Committed> {
        let mut file = match (commit.on_busy, self.file.try_lock()) {
            (_, Ok(file)) => file,
            (_, Err(TryLockError::Poisoned(poisoned))) => poisoned.into_inner(),
            (OnBusy::Wait, Err(TryLockError::WouldBlock)) => {
                self.file.lock().unwrap_or_else(PoisonError::into_inner)
            }
            (OnBusy::Fail, Err(TryLockError::WouldBlock)) => {
                return Err(Refusal::new(Code::Busy, "another commit is running").into());
            }
        };
        let begun = Instant::now();
        let view = self.view();
        let mut changes = f(&view)?;
        let first = view.state.revision().next();
        changes.resolve(first);
        check_changes(&changes, first)?;
        view.check_reads(&changes)?;
        if !changes.is_empty() {
            let line = view.line(changes, first);
            let text = serde_json::to_string(&line).map_err(damaged)?;
            // The commit is complete with the last byte of its line. A part of a line is removed: here after a failed
            // write, on open after a crash.
            let before = file.metadata().map_err(failed)?.len();
            if let Err(error) = file.write_all(format!("{text}\n").as_bytes()) {
                file.set_len(before).map_err(failed)?;
                return Err(failed(error));
            }
            // This copies the state only if a reader still uses the old one.
            drop(view);
            Arc::make_mut(&mut self.state()).apply(&line)?;
            self.grown.notify_all();
        }
        Ok(Committed { first, held: begun.elapsed() })
    }

    fn wait(&self, after: Revision, timeout: Duration) -> Result<Revision> {
        let known = |state: &mut Arc<State>| state.revision() <= after;
        let (state, _) = self
            .grown
            .wait_timeout_while(self.state(), timeout, known)
            .unwrap_or_else(PoisonError::into_inner);
        Ok(state.revision())
    }

    fn has_writer_lock(&self) -> bool {
        true
    }

    fn size(&self) -> Result<u64> {
        let file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(file.metadata().map_err(failed)?.len())
    }
}

impl State {
    fn revision(&self) -> Revision {
        self.events.last_key_value().map_or(self.floor, |(id, _)| *id)
    }

    /// Applies a commit that was just made or read from the file.
    fn apply(&mut self, line: &Line) -> Result<()> {
        for text in &line.versions {
            let version = EntryVersion::from_stored(text)?;
            self.versions.insert(version.entry.revision, version);
        }
        for text in &line.events {
            let event = Event::from_stored(text)?;
            self.events.insert(event.id, event);
        }
        for text in &line.removed {
            let key = self.row(text)?.key();
            self.remove(&key);
        }
        for text in &line.put {
            let row = self.row(text)?;
            self.remove(&row.key());
            for key in row.index_keys() {
                self.index.entry((key.index, key.partition)).or_default().insert((key.sort, row.key()));
            }
            self.rows.insert(row.key(), row);
        }
        for revision in &line.removed_versions {
            self.versions.remove(revision);
        }
        if let Some(until) = line.trim.filter(|until| *until > self.floor) {
            self.events.retain(|id, _| *id > until);
            self.floor = until;
        }
        Ok(())
    }

    fn row(&self, text: &str) -> Result<Row> {
        Row::from_stored(text, |revision| Ok(self.versions.get(&revision).cloned()))
    }

    fn remove(&mut self, key: &Key) {
        let Some(row) = self.rows.remove(key) else { return };
        for place in row.index_keys() {
            if let Some(partition) = self.index.get_mut(&(place.index, place.partition)) {
                partition.remove(&(place.sort, key.clone()));
            }
        }
    }

    /// The first rows of a range.
    fn rows_of<'a>(&'a self, range: &'a Range, limit: usize) -> Vec<&'a Row> {
        let Some(partition) = self.index.get(&(range.index, range.partition.clone())) else {
            return Vec::new();
        };
        let inside =
            |(sort, _): &&(Vec<IndexValue>, Key)| !range.begins_after(sort) && !range.ends_before(sort);
        let row = |(_, key): &'a (Vec<IndexValue>, Key)| self.rows.get(key);
        if range.is_backwards() {
            partition.iter().rev().filter(inside).filter_map(row).take(limit).collect()
        } else {
            partition.iter().filter(inside).filter_map(row).take(limit).collect()
        }
    }
}

/// One state of the board, and what was read of it.
struct View {
    state: Arc<State>,
    now: Timestamp,
    read: RefCell<HashSet<Key>>,
}

impl View {
    /// Refuses to write a row that was not read, which the contract forbids.
    fn check_reads(&self, changes: &Changes) -> Result<()> {
        let read = self.read.borrow();
        let mut written = changes.put.iter().map(Row::key).chain(changes.remove.iter().cloned());
        match written.find(|key| !key.table().appended && !read.contains(key)) {
            Some(key) => {
                Err(Fault::new(Code::Internal, format!("{key:?} is written without being read")).into())
            }
            None => Ok(()),
        }
    }

    fn line(&self, changes: Changes, first: Revision) -> Line {
        let last = self.state.events.last_key_value().map(|(_, event)| event.timestamp);
        let timestamp = event_time(self.now, last);
        let (mut events, mut versions) = (Vec::new(), Vec::new());
        for (id, event) in (first.get()..).zip(changes.events) {
            versions.extend(event.version.as_ref().map(|version| version.to_stored()));
            events.push(event.at(Revision::new(id), first, timestamp).to_stored());
        }
        let removed = changes.remove.iter().filter_map(|key| self.state.rows.get(key)).map(Row::to_stored);
        let erased = changes.erase.iter().map(|erasure| erasure.event);
        let removed_versions = changes.remove_versions.into_iter().chain(erased).collect();
        events.extend(changes.erase.into_iter().filter_map(|erasure| {
            let event = self.state.events.get(&erasure.event)?.clone();
            Some(Event { summary: erasure.summary, metadata: erasure.metadata, ..event }.to_stored())
        }));
        Line {
            events,
            versions,
            removed: removed.collect(),
            put: changes.put.iter().map(Row::to_stored).collect(),
            removed_versions,
            trim: changes.trim_events,
        }
    }
}

impl Tx for View {
    fn now(&self) -> Timestamp {
        self.now
    }

    fn revision(&self) -> Result<Revision> {
        Ok(self.state.revision())
    }

    fn get(&self, key: &Key) -> Result<Option<Row>> {
        self.read.borrow_mut().insert(key.clone());
        Ok(self.state.rows.get(key).cloned())
    }

    fn peek(&self, key: &Key) -> Result<Option<Row>> {
        Ok(self.state.rows.get(key).cloned())
    }

    fn range(&self, range: &Range) -> Result<Vec<Row>> {
        let rows: Vec<Row> = self.state.rows_of(range, usize::MAX).into_iter().cloned().collect();
        self.read.borrow_mut().extend(rows.iter().map(Row::key));
        Ok(rows)
    }

    fn candidates(&self, range: &Range, limit: usize) -> Result<Vec<Row>> {
        Ok(self.state.rows_of(range, limit).into_iter().cloned().collect())
    }

    fn heads(&self, range: &Range, limit: usize) -> Result<Vec<EntryHead>> {
        let rows = self.state.rows_of(range, limit).into_iter();
        Ok(rows
            .filter_map(|row| if let Row::Entry(entry) = row { Some(EntryHead::of(entry)) } else { None })
            .collect())
    }

    fn any(&self, range: &Range) -> Result<bool> {
        Ok(!self.state.rows_of(range, 1).is_empty())
    }

    fn keys(&self, range: &Range, limit: usize) -> Result<Vec<Result<Key>>> {
        Ok(self.state.rows_of(range, limit).into_iter().map(|row| Ok(row.key())).collect())
    }

    fn count(&self, range: &Range) -> Result<u64> {
        Ok(self.state.rows_of(range, usize::MAX).len() as u64)
    }

    fn events(&self, page: &Page<'_>) -> Result<Vec<Event>> {
        let mut found: Vec<Event> = Vec::new();
        for event in self.state.events.range(page.after.next()..).map(|(_, event)| event) {
            let is_full = found.len() >= page.limit;
            let same_commit = found.last().is_some_and(|last| last.commit_id == event.commit_id);
            if event.id > page.until || (is_full && !same_commit) {
                break;
            }
            if page.types.is_empty() || page.types.contains(&event.event_type) {
                found.push(event.clone());
            }
        }
        Ok(found)
    }

    fn version(&self, revision: Revision) -> Result<Option<EntryVersion>> {
        Ok(self.state.versions.get(&revision).cloned())
    }

    fn version_heads(&self, after: Revision, until: Revision) -> Result<Vec<VersionHead>> {
        let versions = self.state.versions.range(after.next()..).take_while(|(id, _)| **id <= until);
        let head = |(id, version): (&Revision, &EntryVersion)| VersionHead {
            revision: *id,
            previous: version.previous,
            removed: version.removed.then(|| (version.entry.scope.clone(), version.entry.key.clone())),
        };
        Ok(versions.map(head).collect())
    }

    fn count_events(&self, after: Revision, until: Revision) -> Result<u64> {
        let events = self.state.events.range(after.next()..);
        Ok(events.take_while(|(id, _)| **id <= until).count() as u64)
    }

    fn revision_back(&self, until: Revision, count: u64) -> Result<Revision> {
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        let before = self.state.events.range(..=until).rev().nth(count);
        Ok(before.map_or(self.state.floor, |(id, _)| *id))
    }

    fn revision_before(&self, moment: Timestamp) -> Result<Revision> {
        let events: Vec<&Event> = self.state.events.values().collect();
        let at = |position| usize::try_from(position).ok().and_then(|position| events.get(position));
        let older = count_older(events.len() as u64, |position| {
            Ok(at(position).is_some_and(|event| event.timestamp < moment))
        })?;
        Ok(older.checked_sub(1).and_then(at).map_or(self.state.floor, |event| event.id))
    }

    fn floor(&self) -> Result<Revision> {
        Ok(self.state.floor)
    }
}

fn failed(error: std::io::Error) -> blackboard::Error {
    Fault::new(Code::Io, "the file of the board failed").because(error).into()
}

fn damaged(error: serde_json::Error) -> blackboard::Error {
    Fault::new(Code::Corrupt, "a line of the board cannot be read").because(error).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use blackboard::store::conformance;

    #[test]
    fn engine_passes_the_conformance_suite() {
        for test in conformance::tests() {
            println!("{}", test.name);
            let directory = testkit::tempdir().unwrap();
            let path = directory.path().join("board.jsonl");
            test.run(|clock| Arc::new(JsonFile::open(&path, clock).unwrap()));
        }
    }

    #[test]
    fn reopened_board_has_all_data() {
        use blackboard::agent::Register;
        use blackboard::entry::{Value, Write};
        use blackboard::work::{Claim, Create};
        let directory = testkit::tempdir().unwrap();
        let path = directory.path().join("board.jsonl");
        let open = || {
            let clock = Arc::new(SystemClock);
            Board::on(Arc::new(JsonFile::open(&path, clock.clone()).unwrap()), clock)
        };
        let board = open();
        let session = board.agents().register(&Register::named("Ivy")).unwrap().agent.session_id;
        board.work().create(&Create::new("x", "X")).unwrap();
        board.work().claim(&Claim::of("x", &session)).unwrap();
        for value in [1, 2] {
            board.scope("team").write(&Write::new("a", Value::of(&value).unwrap())).unwrap();
        }
        board.scope("team").write(&Write::new("b", Value::null())).unwrap();
        board.scope("team").delete("b").unwrap();
        let before = board.export().unwrap();
        drop(board);
        let board = open();
        assert_eq!(board.export().unwrap(), before);
        assert_eq!(board.scope("team").history("a", 9).unwrap().versions.len(), 2);
    }

    #[test]
    fn a_line_without_its_end_is_removed_on_open() {
        use blackboard::work::Create;
        let directory = testkit::tempdir().unwrap();
        let path = directory.path().join("board.jsonl");
        let open = || {
            let clock = Arc::new(SystemClock);
            Board::on(Arc::new(JsonFile::open(&path, clock.clone()).unwrap()), clock)
        };
        let items = |board: &Board| {
            let items = board.export().unwrap().work_items;
            items.into_iter().map(|item| item.item_id).collect::<Vec<_>>()
        };
        let board = open();
        board.work().create(&Create::new("x", "X")).unwrap();
        let complete = std::fs::read(&path).unwrap();
        board.work().create(&Create::new("y", "\u{1f980}")).unwrap();
        drop(board);
        let both = std::fs::read(&path).unwrap();
        for torn in complete.len() + 1..both.len() {
            std::fs::write(&path, &both[..torn]).unwrap();
            assert_eq!(items(&open()), ["x"], "{torn} bytes");
            assert_eq!(std::fs::read(&path).unwrap(), complete);
        }
        let board = open();
        board.work().create(&Create::new("z", "Z")).unwrap();
        drop(board);
        assert_eq!(items(&open()), ["x", "z"]);
    }
}
