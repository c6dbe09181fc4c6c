//! Bringing the index up to date: a fold over the event log.
//!
//! A new index reads every entry and every work item once, then the events, and follows the event log from the revision at
//! which it began. Each step commits what it has indexed together with its position, so a process may be killed at any time,
//! and several may run at once. A step reads the current rows of what the events are about: a row that changes after that has
//! a later event. So an index that has reached the end of the log is that of the current rows, whatever happened before.

use std::collections::BTreeSet;
use std::ops::Bound;
use std::time::{Duration, Instant};

use rusqlite::Connection;
use serde::Serialize;

use super::document::{Document, Name, has_searched_entries, is_searched};
use super::index::{Failure, Index, Writer, clear, set_state, state};
use crate::board::Board;
use crate::entry::Entry;
use crate::error::{Code, Error, Result};
use crate::event::{Event, EventType, TargetType};
use crate::metadata::Metadata;
use crate::revision::Revision;
use crate::store::record::IndexValue;
use crate::store::{Key, Page, Prefetch, Range, Row};
use crate::unreadable::if_readable;
use crate::work::WorkItem;

/// How many rows are read together at first, before their sizes are known, and at most.
const ROWS: (usize, usize) = (64, 1024);

/// How many bytes of rows are enough for one read.
const BYTES: usize = 1 << 20;

/// How many documents are written in one step, and how many bytes of text.
const STEP: (usize, usize) = (16_384, 16 << 20);

/// How many events are read for one step.
const EVENTS: usize = 8192;

/// How much a search does to bring its index up to date.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CatchUp {
    /// It begins no further step after this time.
    pub time: Duration,
    /// It begins no further step after this many rows, and reads no more in one step.
    pub rows: usize,
}

impl CatchUp {
    /// Until nothing is missing, however long it takes.
    pub const COMPLETE: CatchUp = CatchUp { time: Duration::MAX, rows: usize::MAX };
}

impl Default for CatchUp {
    /// 3 s, and 1,000,000 rows.
    fn default() -> CatchUp {
        CatchUp { time: Duration::from_secs(3), rows: 1_000_000 }
    }
}

/// How far an index is behind the board.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Behind {
    /// The revision up to which everything is indexed.
    pub indexed: Revision,
    /// The revision of the board.
    pub revision: Revision,
    /// How many events are between them. A new index has to read older rows as well.
    pub events: u64,
    /// Whether the index is new, and does not have all older rows yet.
    pub building: bool,
}

/// What bringing an index up to date has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Indexed {
    /// How many entries, work items and events were read.
    pub rows: usize,
    /// What is missing, if anything.
    pub behind: Option<Behind>,
}

/// Where the fold is.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Phase {
    /// It reads all entries, after this scope and key.
    Entries(Option<(String, String)>),
    /// It reads all work items, after this one.
    Work(Option<String>),
    /// It reads the events up to the revision at which it began, after this one.
    Events(Revision),
    /// It follows the event log.
    Follow,
}

/// The stored position.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Position {
    phase: Phase,
    /// The revision up to which everything is indexed, or at which a new index began.
    cursor: Revision,
    /// The event at that revision, to recognize another board.
    at_cursor: String,
    /// The last pruned event of which no trace is left.
    floor: Revision,
}

/// The result of a step.
pub(super) struct Step {
    rows: usize,
    purged: bool,
}

/// What the board has, as far as a step needs it.
struct Log {
    revision: Revision,
    floor: Revision,
    events: Vec<Event>,
    complete: bool,
}

impl Index {
    /// Brings the index up to date, within limits.
    pub(super) fn update(&self, board: &Board, limits: CatchUp) -> Result<Indexed> {
        let (began, mut rows, mut has_stepped) = (Instant::now(), 0, false);
        loop {
            // Most searches find nothing to do, and then need no lock.
            if self.is_current(board)? {
                return Ok(Indexed { rows, behind: None });
            }
            if has_stepped && (rows >= limits.rows || began.elapsed() >= limits.time) {
                return Ok(Indexed { rows, behind: self.behind(board)? });
            }
            match self.write(|connection| step(connection, board, limits.rows)) {
                Ok(step) => {
                    rows += step.rows;
                    if step.purged {
                        self.scrub();
                    }
                }
                // Another program is indexing.
                Err(error) if error.code() == Code::Busy => {
                    return Ok(Indexed { rows, behind: self.behind(board)? });
                }
                Err(error) => return Err(error),
            }
            has_stepped = true;
        }
    }

    /// Whether the index has everything.
    fn is_current(&self, board: &Board) -> Result<bool> {
        let position = self.read(|connection| Ok(position(connection)?))?;
        let Some(position) = position.filter(|position| position.phase == Phase::Follow) else {
            return Ok(false);
        };
        let log = read_log(board, position.cursor.previous(), position.cursor, 1)?;
        let is_same = match log.events.first() {
            Some(event) => fingerprint(event) == position.at_cursor,
            None => log.revision == Revision::ZERO,
        };
        Ok(is_same && position.cursor == log.revision && position.floor == log.floor)
    }

    /// How far it is behind the board.
    fn behind(&self, board: &Board) -> Result<Option<Behind>> {
        let position = self.read(|connection| Ok(position(connection)?))?;
        let (indexed, building) = match position {
            Some(position) if position.phase == Phase::Follow => (position.cursor, false),
            _ => (Revision::ZERO, true),
        };
        let (revision, events) = board.read(&[Prefetch::Revision], |tx| {
            let revision = tx.revision()?;
            tx.prefetch(&[Prefetch::CountEvents(indexed, revision)])?;
            Ok((revision, tx.count_events(indexed, revision)?))
        })?;
        let behind = Behind { indexed, revision, events, building };
        Ok((building || indexed < revision).then_some(behind))
    }
}

/// The stored position.
fn position(connection: &Connection) -> rusqlite::Result<Option<Position>> {
    let number = |name| -> rusqlite::Result<Option<Revision>> {
        Ok(state(connection, name)?.and_then(|number| number.parse().ok()).map(Revision::new))
    };
    let text = |name| state(connection, name);
    let (Some(phase), Some(cursor), Some(floor)) = (text("phase")?, number("cursor")?, number("floor")?)
    else {
        return Ok(None);
    };
    let phase = match phase.as_str() {
        "entries" => Phase::Entries(text("scope")?.zip(text("key")?)),
        "work" => Phase::Work(text("key")?),
        "events" => Phase::Events(number("event")?.unwrap_or(Revision::ZERO)),
        "follow" => Phase::Follow,
        _ => return Ok(None),
    };
    Ok(Some(Position { phase, cursor, floor, at_cursor: text("at_cursor")?.unwrap_or_default() }))
}

fn store(connection: &Connection, position: &Position) -> rusqlite::Result<()> {
    connection.execute_batch("DELETE FROM state")?;
    let set = |name: &str, value: &str| set_state(connection, name, value);
    set("cursor", &position.cursor.to_string())?;
    set("floor", &position.floor.to_string())?;
    set("at_cursor", &position.at_cursor)?;
    match &position.phase {
        Phase::Entries(after) => {
            if let Some((scope, key)) = after {
                set("scope", scope)?;
                set("key", key)?;
            }
            set("phase", "entries")
        }
        Phase::Work(after) => {
            if let Some(after) = after {
                set("key", after)?;
            }
            set("phase", "work")
        }
        Phase::Events(after) => {
            set("event", &after.to_string())?;
            set("phase", "events")
        }
        Phase::Follow => set("phase", "follow"),
    }
}

/// What never changes about an event, also if its content is erased.
fn fingerprint(event: &Event) -> String {
    format!("{} {} {} {}", event.id, event.commit_id, event.timestamp, event.event_type)
}

/// One step, in one transaction of the index.
pub(super) fn step(connection: &Connection, board: &Board, most: usize) -> Result<Step, Failure> {
    let known = position(connection)?;
    let position = match known {
        Some(position) if is_of(board, &position)? => position,
        _ => {
            clear(connection)?;
            begin(board)?
        }
    };
    let mut writer = Writer::new(connection)?;
    let (next, step) = match &position.phase {
        Phase::Entries(after) => entries_step(board, &mut writer, &position, after.clone(), most)?,
        Phase::Work(after) => work_step(board, &mut writer, &position, after.clone(), most)?,
        Phase::Events(after) => events_step(board, &mut writer, &position, *after, most)?,
        Phase::Follow => follow_step(connection, board, &mut writer, &position, most)?,
    };
    writer.finish()?;
    store(connection, &next)?;
    Ok(step)
}

/// Whether the index is of this board, and nothing that it has not seen was pruned.
fn is_of(board: &Board, position: &Position) -> Result<bool> {
    let cursor = position.cursor;
    let log = read_log(board, cursor.previous(), cursor, 1)?;
    if cursor > log.revision || cursor < log.floor {
        return Ok(false);
    }
    if cursor == Revision::ZERO {
        return Ok(true);
    }
    Ok(match log.events.first() {
        Some(event) => fingerprint(event) == position.at_cursor,
        // The event was pruned as the last one.
        None => cursor == log.floor,
    })
}

/// The position of a new index.
fn begin(board: &Board) -> Result<Position> {
    let revision = board.read(&[Prefetch::Revision], |tx| tx.revision())?;
    let log = read_log(board, revision.previous(), revision, 1)?;
    let at_cursor = log.events.first().map(fingerprint).unwrap_or_default();
    Ok(Position { phase: Phase::Entries(None), cursor: revision, at_cursor, floor: log.floor })
}

fn read_log(board: &Board, after: Revision, until: Revision, most: usize) -> Result<Log> {
    let page = Page { after, until, types: &[], limit: EVENTS.min(most.max(1)) };
    board.read(&[Prefetch::Revision, Prefetch::Events(page)], |tx| {
        let events = if after < until { tx.events(&page)? } else { Vec::new() };
        Ok(Log { revision: tx.revision()?, floor: tx.floor()?, complete: events.len() < page.limit, events })
    })
}

fn entries_step(
    board: &Board,
    writer: &mut Writer<'_>,
    position: &Position,
    mut after: Option<(String, String)>,
    most: usize,
) -> Result<(Position, Step), Failure> {
    let range = |after: &Option<(String, String)>| {
        let all = Range::all_entries();
        match after {
            Some((scope, key)) => Range {
                from: Bound::Excluded(vec![IndexValue::from(scope.as_str()), IndexValue::from(key.as_str())]),
                ..all
            },
            None => all,
        }
    };
    let (mut rows, mut bytes, mut at_once) = (0, 0, ROWS.0.min(most.max(1)));
    while rows < STEP.0.min(most.max(1)) && bytes < STEP.1 {
        let (entries, last) = read_rows(board, &range(&after), at_once)?;
        let Some(Key::Entry(scope, key)) = last else {
            let next = Position { phase: Phase::Work(None), ..position.clone() };
            return Ok((next, Step { rows, purged: false }));
        };
        let mut size = 0;
        for row in entries {
            let Row::Entry(entry) = row else { continue };
            size += entry.bytes();
            if has_searched_entries(&entry.scope) {
                writer.put(&Document::of_entry(&entry))?;
            }
            rows += 1;
        }
        after = Some((scope, key));
        at_once = if size < BYTES / 4 { (at_once * 2).min(ROWS.1) } else { ROWS.0 }.min(most.max(1));
        bytes += size;
    }
    let next = Position { phase: Phase::Entries(after), ..position.clone() };
    Ok((next, Step { rows, purged: false }))
}

fn work_step(
    board: &Board,
    writer: &mut Writer<'_>,
    position: &Position,
    mut after: Option<String>,
    most: usize,
) -> Result<(Position, Step), Failure> {
    let mut rows = 0;
    while rows < STEP.0.min(most.max(1)) {
        let range = Range::work_items();
        let range = match &after {
            Some(after) => range.after(after.as_str()),
            None => range,
        };
        let (items, last) = read_rows(board, &range, ROWS.0.min(most.max(1)))?;
        let Some(Key::WorkItem(id)) = last else {
            let next = Position { phase: Phase::Events(position.floor), ..position.clone() };
            return Ok((next, Step { rows, purged: false }));
        };
        for row in items {
            let Row::WorkItem(item) = row else { continue };
            writer.put(&Document::of_item(&item))?;
            rows += 1;
        }
        after = Some(id);
    }
    let next = Position { phase: Phase::Work(after), ..position.clone() };
    Ok((next, Step { rows, purged: false }))
}

/// The rows of the beginning of a range, and the key of the last one. Rows that cannot be read are left out.
fn read_rows(board: &Board, range: &Range, limit: usize) -> Result<(Vec<Row>, Option<Key>)> {
    let rows = board.read(&[Prefetch::Candidates(range.clone(), limit)], |tx| tx.candidates(range, limit));
    match rows {
        Err(error) if error.is_unreadable_row() => {}
        rows => {
            let rows = rows?;
            let last = rows.last().map(Row::key);
            return Ok((rows, last));
        }
    }
    board.read(&[Prefetch::Keys(range.clone(), limit)], |tx| {
        let keys: Vec<Key> = tx.keys(range, limit)?.into_iter().filter_map(Result::ok).collect();
        tx.prefetch(&keys.iter().cloned().map(Prefetch::Row).collect::<Vec<_>>())?;
        let mut rows = Vec::new();
        for key in &keys {
            rows.extend(if_readable(tx.get(key))?);
        }
        Ok((rows, keys.into_iter().next_back()))
    })
}

fn events_step(
    board: &Board,
    writer: &mut Writer<'_>,
    position: &Position,
    after: Revision,
    most: usize,
) -> Result<(Position, Step), Failure> {
    let log = read_log_of(board, after.max(position.floor), position.cursor, most)?;
    for document in log.events.iter().filter_map(Document::of_event) {
        writer.put(&document)?;
    }
    let phase = match log.events.last() {
        Some(last) if !log.complete => Phase::Events(last.id),
        _ => Phase::Follow,
    };
    let next = Position { phase, ..position.clone() };
    Ok((next, Step { rows: log.events.len(), purged: false }))
}

/// As [`read_log`], but only the events that are found.
fn read_log_of(board: &Board, after: Revision, until: Revision, most: usize) -> Result<Log> {
    let types: Vec<EventType> = EventType::ALL.iter().filter(|one| may_be_searched(one)).cloned().collect();
    let page = Page { after, until, types: &types, limit: EVENTS.min(most.max(1)) };
    board.read(&[Prefetch::Revision, Prefetch::Events(page)], |tx| {
        let events = if after < until { tx.events(&page)? } else { Vec::new() };
        Ok(Log { revision: tx.revision()?, floor: tx.floor()?, complete: events.len() < page.limit, events })
    })
}

/// Whether events of this type may be about something else than entries and scopes.
fn may_be_searched(event_type: &EventType) -> bool {
    !matches!(
        event_type,
        EventType::EntryWritten
            | EventType::EntryDeleted
            | EventType::EntryExpired
            | EventType::EntryEvicted
            | EventType::EntryPurged
            | EventType::EntriesCleared
            | EventType::ScopeCreated
            | EventType::ScopeUpdated
            | EventType::ScopeDeleted
    )
}

fn follow_step(
    connection: &Connection,
    board: &Board,
    writer: &mut Writer<'_>,
    position: &Position,
    most: usize,
) -> Result<(Position, Step), Failure> {
    let log = read_log(board, position.cursor, Revision::MAX, most)?;
    let (mut entries, mut items) = (BTreeSet::new(), BTreeSet::new());
    for event in &log.events {
        match (event.target_type, &event.target_id) {
            (Some(TargetType::Entry), Some(key)) => {
                let metadata = event.metadata.as_ref().map(Metadata::to_map).unwrap_or_default();
                let scope = metadata.get("scope").and_then(|scope| scope.as_str());
                entries.extend(scope.map(|scope| (scope.to_owned(), key.clone())));
            }
            (Some(TargetType::WorkItem), Some(item)) => {
                items.insert(item.clone());
            }
            _ => {}
        }
        if event.id > log.floor
            && is_searched(event)
            && let Some(document) = Document::of_event(event)
        {
            writer.put(&document)?;
        }
    }
    let rows = log.events.len();
    let purged = log.events.iter().any(|event| event.event_type == EventType::EntryPurged);
    entries.retain(|(scope, _)| has_searched_entries(scope));
    let names = entries
        .into_iter()
        .map(|(scope, key)| (Name::entry(&scope, &key), Key::Entry(scope, key)))
        .chain(items.into_iter().map(|item| (Name::work(&item), Key::WorkItem(item))));
    put_current(board, writer, &names.collect::<Vec<_>>())?;
    if log.floor > position.floor {
        remove_pruned(connection, writer, log.floor)?;
    }
    let (cursor, at_cursor) = match log.events.last() {
        Some(last) => (last.id, fingerprint(last)),
        None => (position.cursor, position.at_cursor.clone()),
    };
    let next = Position { phase: Phase::Follow, cursor, at_cursor, floor: log.floor };
    Ok((next, Step { rows, purged }))
}

/// Puts the current rows into the index, and removes those that do not exist.
fn put_current(board: &Board, writer: &mut Writer<'_>, names: &[(Name, Key)]) -> Result<(), Failure> {
    let (mut rest, mut at_once) = (names, ROWS.0);
    while !rest.is_empty() {
        let (now, later) = rest.split_at(at_once.min(rest.len()));
        rest = later;
        let documents = board.read(&prefetch(now), |tx| {
            let mut documents = Vec::with_capacity(now.len());
            for (_, key) in now {
                documents.push(match key {
                    Key::WorkItem(_) => {
                        if_readable(tx.row::<WorkItem>(key))?.map(|item| Document::of_item(&item))
                    }
                    _ => if_readable(tx.row::<Entry>(key))?.map(|entry| Document::of_entry(&entry)),
                });
            }
            Ok(documents)
        })?;
        let mut size = 0;
        for ((name, _), document) in now.iter().zip(documents) {
            match document {
                Some(document) => {
                    size += document.texts.iter().map(|(_, text)| text.len()).sum::<usize>();
                    writer.put(&document)?;
                }
                None => writer.remove(name)?,
            }
        }
        at_once = if size < BYTES / 4 { (at_once * 2).min(ROWS.1) } else { ROWS.0 };
    }
    Ok(())
}

fn prefetch(names: &[(Name, Key)]) -> Vec<Prefetch<'_>> {
    let one = |(_, key): &'_ (Name, Key)| match key {
        Key::Entry(..) => None,
        key => Some(Prefetch::Row(key.clone())),
    };
    let entries = names.iter().filter_map(|(name, key)| {
        matches!(key, Key::Entry(..)).then_some(Prefetch::Entry(name.scope.as_str(), name.id.as_str()))
    });
    names.iter().filter_map(one).chain(entries).collect()
}

/// Removes the events that retention has pruned.
fn remove_pruned(connection: &Connection, writer: &mut Writer<'_>, floor: Revision) -> Result<(), Failure> {
    const PRUNED: &str = "SELECT name FROM documents WHERE part IN (SELECT id FROM parts WHERE kind = 2)
        AND revision <= ?1";
    let pruned: Vec<String> = connection
        .prepare_cached(PRUNED)?
        .query_map([floor.get()], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    for id in pruned {
        writer.remove(&Name { kind: super::Kind::Event, scope: String::new(), id })?;
    }
    Ok(())
}

/// Whether an error of the index means that a search can do without it.
pub(super) fn is_about_the_file(error: &Error) -> bool {
    matches!(error.code(), Code::DiskFull | Code::ReadOnly | Code::Io | Code::UnsafePermissions | Code::Busy)
}
