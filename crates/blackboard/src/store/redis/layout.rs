//! The layout of a board on a server: three keys.
//!
//! ```text
//! bb:{NAME}:rows    hash     ! the state of the board · r… rows · vREVISION versions · dSLOT outcomes
//!                            ? a reservation · > where a sealed board went · dw written to wait for replicas
//!                            i its index is never empty
//! bb:{NAME}:index   zset     every position of every row, with score 0, in the order of its bytes, and the member \0
//! bb:{NAME}:log     stream   the event REVISION-0, in the field e
//! ```
//!
//! A script gets all three as its keys, always, and all have the same hash tag. So a board is in one slot of a cluster,
//! and one pattern of an ACL covers it. `bytes.rs` has the fields of rows and the positions.
//!
//! | Value | Form |
//! |---|---|
//! | `!` | `VERSION BOARD REVISION TIME ORDINAL BORN RUN FLOOR STAMP` |
//! | row | `STAMP r FIRST \0 payload`, or `h` with its positions before the payload, in a table that is appended |
//! | entry | `STAMP e REVISION \0 expiry`: its other values are in the version |
//! | version | `FIRST \0 payload` |
//! | event | `TIME K ORDINAL v \0 payload`, `-` instead of `v` without a version |
//! | outcome | the commit id, `FIRST LATEST \0`; then those of other connections with the same slot |
//!
//! A stamp is the random start of the id of the commit that wrote the value: no counter that a failover could repeat.
//! The end of the id is the connection and the number of the commit there. FIRST is the first revision of that commit;
//! in an outcome `-` if it was refused, `?` if an earlier copy of it may have been applied. LATEST is the time until
//! which a copy of it could be applied. Payloads contain pending revisions, and a reader resolves them with it.

use crate::clock::Timestamp;
use crate::entry::{EntryHead, EntryVersion};
use crate::error::{Code, Fault, Result};
use crate::event::Event;
use crate::revision::{Pending, Revision};
use crate::store::record::checked_revision;
use crate::store::transfer::Hold;
use crate::store::{Key, Row, VersionHead};

use super::bytes;

/// The version of the layout.
pub(super) const VERSION: &str = "1";

/// The same in the state of a board that is sealed, or that is being loaded. Every script that writes compares it, so
/// that no call changes such a board. `confirm.lua`, which changes nothing of a board, compares only the number of the
/// layout.
pub(super) const SEALED: &str = "1-sealed";
pub(super) const LOADING: &str = "1-loading";

/// The field with the location that a sealed board was copied to.
pub(super) const MOVED_TO: &[u8] = b">";

/// The field that says that the index has a member that no row has. So a missing index is not an empty one: the server
/// removes a key without members. Boards of earlier programs do not have it.
pub(super) const HAS_INDEX: &[u8] = b"i";

/// The field with the state of the board.
pub(super) const STATE: &[u8] = b"!";

/// The length of a stamp, and of a commit id.
pub(super) const STAMP: usize = 8;
pub(super) const COMMIT_ID: usize = 16;

/// The keys of a board.
#[derive(Clone, Debug)]
pub(super) struct BoardKeys {
    pub(super) rows: Vec<u8>,
    pub(super) index: Vec<u8>,
    pub(super) log: Vec<u8>,
    /// Exists only while a script erases events.
    pub(super) scratch: Vec<u8>,
}

impl BoardKeys {
    pub(super) fn of(board: &str) -> BoardKeys {
        let key = |name: &str| format!("bb:{{{board}}}:{name}").into_bytes();
        BoardKeys { rows: key("rows"), index: key("index"), log: key("log"), scratch: key("scratch") }
    }

    /// The keys of every script.
    pub(super) fn all(&self) -> [&[u8]; 3] {
        [&self.rows, &self.index, &self.log]
    }

    /// The keys of a copy of the board on the same server, in the same slot of a cluster.
    pub(super) fn snapshot(&self, id: &str) -> BoardKeys {
        let key = |key: &[u8]| [key, b":", id.as_bytes()].concat();
        BoardKeys {
            rows: key(&self.rows),
            index: key(&self.index),
            log: key(&self.log),
            scratch: key(&self.scratch),
        }
    }
}

/// The state of a board.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct State {
    /// The random id of the board: another one if it was created again.
    pub(super) board: String,
    pub(super) revision: Revision,
    pub(super) floor: Revision,
    /// The stamp of the last commit. Two reads with the same stamp see the same board.
    pub(super) stamp: Vec<u8>,
    /// Whether the board can be used.
    pub(super) hold: Hold,
}

/// Why the state of a board cannot be used.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum StateError {
    /// It was written by a newer program.
    Newer,
    /// It is that of this program, and cannot be read.
    Damaged,
    /// It was written by another program.
    Foreign,
}

impl State {
    pub(super) fn read(stored: &[u8]) -> Result<State, StateError> {
        let parts: Vec<&[u8]> = stored.splitn(9, |byte| *byte == b' ').collect();
        let text = |part: usize| std::str::from_utf8(parts.get(part)?).ok();
        let revision = |part| checked_revision(text(part)?.parse().ok()?);
        let hold = match text(0) {
            Some(VERSION) => Hold::None,
            Some(SEALED) => Hold::Sealed,
            Some(LOADING) => Hold::Loading,
            // The number of a newer layout, perhaps with a hold.
            Some(version) if version.starts_with(|first: char| first.is_ascii_digit()) => {
                return Err(StateError::Newer);
            }
            _ => return Err(StateError::Foreign),
        };
        let state = || {
            let board = text(1)?.to_owned();
            let (revision, floor) = (revision(2)?, revision(7)?);
            Some(State { board, revision, floor, stamp: parts.get(8)?.to_vec(), hold })
        };
        state().ok_or(StateError::Damaged)
    }
}

/// The field of a slot.
pub(super) fn slot_field(slot: u16) -> Vec<u8> {
    format!("d{slot}").into_bytes()
}

/// The outcome of a commit, as the script stores it in a slot.
pub(super) fn outcome(id: &[u8; COMMIT_ID], first: Revision, latest: Timestamp) -> Vec<u8> {
    [&id[..], format!("{first} {}\0", latest.millis()).as_bytes()].concat()
}

/// The field of a version.
pub(super) fn version_field(revision: Revision) -> Vec<u8> {
    format!("v{revision}").into_bytes()
}

/// A row as it is stored.
#[derive(Clone, Debug)]
pub(super) struct StoredRow {
    value: Vec<u8>,
    /// The version of an entry, if it was read with it.
    pub(super) version: Option<Vec<u8>>,
}

impl StoredRow {
    pub(super) fn new(value: Vec<u8>, version: Option<Vec<u8>>) -> StoredRow {
        StoredRow { value, version }
    }

    /// Its size in bytes, with its version.
    pub(super) fn size(&self) -> usize {
        self.value.len() + self.version.as_ref().map_or(0, Vec::len)
    }

    /// The stamp of the commit that wrote it.
    pub(super) fn stamp(&self) -> &[u8] {
        &self.value[..STAMP.min(self.value.len())]
    }

    /// The kind, the number in the header, and the payload.
    fn parts(&self) -> Option<(u8, Revision, &[u8])> {
        let (kind, rest) = self.value.get(STAMP..)?.split_first()?;
        let end = rest.iter().position(|byte| *byte == 0)?;
        let number = std::str::from_utf8(&rest[..end]).ok()?.parse().ok()?;
        Some((*kind, checked_revision(number)?, &rest[end + 1..]))
    }

    /// The first revision of the commit that wrote it. For an entry, its own revision.
    pub(super) fn number(&self) -> Option<Revision> {
        self.parts().map(|(_, number, _)| number)
    }

    /// The revision of an entry, whose value is in the version of that revision.
    pub(super) fn entry_revision(&self) -> Option<Revision> {
        self.parts().filter(|(kind, ..)| *kind == b'e').map(|(_, revision, _)| revision)
    }

    /// The row.
    pub(super) fn read(&self) -> Result<Row> {
        let (kind, number, payload) = self.parts().ok_or_else(|| damaged("a row has no header"))?;
        let payload = match kind {
            b'r' => payload,
            b'h' => after_members(payload).ok_or_else(|| damaged("a row has no members"))?,
            b'e' => {
                let version = self.version.as_deref().map(read_version).transpose()?;
                return match version.filter(|version| !version.removed && version.entry.revision == number) {
                    Some(version) => Ok(Row::Entry(version.entry)),
                    None => Err(damaged("an entry points at a version without a value")),
                };
            }
            _ => return Err(damaged("a row has an unknown kind")),
        };
        let text = std::str::from_utf8(payload).map_err(|_| damaged("a row is not UTF-8"))?;
        let mut row = Row::from_stored(text, |_| Ok(None))?;
        row.resolve(number);
        Ok(row)
    }

    /// The entry without its value.
    pub(super) fn head(&self, key: &Key) -> Result<EntryHead> {
        let (Key::Entry(scope, key), Some((b'e', revision, expiry))) = (key, self.parts()) else {
            return Err(damaged("an entry has no header"));
        };
        let millis = std::str::from_utf8(expiry).ok().filter(|text| !text.is_empty());
        let expires_at = millis.map(|text| text.parse().map(Timestamp::from_millis)).transpose();
        let expires_at = expires_at.map_err(|_| damaged("an entry has an unknown expiry"))?;
        Ok(EntryHead { scope: scope.clone(), key: key.clone(), revision, expires_at })
    }
}

/// The kind and the payload of a row, and the event that it belongs to if it is an entry.
pub(super) fn store_row(row: &Row) -> Result<(&'static str, Option<usize>, Vec<u8>)> {
    if let Row::Entry(entry) = row {
        let expiry = entry.expires_at.map(|moment| moment.millis().to_string()).unwrap_or_default();
        // `check_changes` has found the event.
        return Ok(("e", entry.revision.event(), expiry.into_bytes()));
    }
    if !row.table().appended {
        return Ok(("r", None, row.to_stored().into_bytes()));
    }
    let members = bytes::members_of(row)?;
    let mut payload = vec![u8::try_from(members.len()).unwrap_or(u8::MAX)];
    for member in members {
        let length = u16::try_from(member.head.len()).ok().filter(|_| member.event.is_none());
        let length =
            length.ok_or_else(|| Fault::new(Code::Internal, "an appended row has a pending member"))?;
        payload.extend(length.to_be_bytes());
        payload.extend(member.head);
    }
    payload.extend(row.to_stored().bytes());
    Ok(("h", None, payload))
}

/// The payload after the members of an appended row.
fn after_members(payload: &[u8]) -> Option<&[u8]> {
    let (count, mut rest) = payload.split_first()?;
    for _ in 0..*count {
        let (length, after) = rest.split_first_chunk::<2>()?;
        rest = after.get(usize::from(u16::from_be_bytes(*length))..)?;
    }
    Some(rest)
}

/// A version of an entry.
pub(super) fn read_version(stored: &[u8]) -> Result<EntryVersion> {
    let text = std::str::from_utf8(stored).map_err(|_| damaged("a version is not UTF-8"))?;
    let (first, payload) = text.split_once('\0').ok_or_else(|| damaged("a version has no header"))?;
    let first = first.parse().ok().and_then(checked_revision);
    let mut version = EntryVersion::from_stored(payload)?;
    version.resolve(first.ok_or_else(|| damaged("a version has an unknown revision"))?);
    if version.previous.is_some_and(|previous| previous >= version.entry.revision) {
        return Err(damaged("the version before is not older"));
    }
    Ok(version)
}

/// A version as a list of versions has it. It needs no other value, so that one that cannot be read hides nothing.
pub(super) fn read_version_head(revision: Revision, stored: &[u8]) -> VersionHead {
    let parts = std::str::from_utf8(stored).ok().and_then(|text| text.split_once('\0'));
    let head = parts.and_then(|(_, payload)| EntryVersion::head_of_stored(revision, payload).ok());
    let mut head = head.unwrap_or(VersionHead { revision, previous: None, removed: None });
    if let Some(first) = parts.and_then(|(first, _)| checked_revision(first.parse().ok()?)) {
        head.previous.resolve(first);
    }
    head.previous = head.previous.filter(|previous| *previous < revision);
    head
}

/// An event of the log, and its ordinal.
#[derive(Debug)]
pub(super) struct LoggedEvent {
    pub(super) event: Event,
    pub(super) ordinal: u64,
}

/// The payload of an event. The server adds its id, its time and its commit.
pub(super) fn store_event(event: &Event) -> Vec<u8> {
    event.to_stored().into_bytes()
}

/// The event with this id in the stream. One that cannot be read is shown as such.
pub(super) fn read_event(id: &[u8], stored: &[u8]) -> Result<LoggedEvent> {
    let id = revision_of(id).ok_or_else(|| damaged("an event has an unknown id"))?;
    match read_event_of(id, stored) {
        Err(error) if error.is_unreadable_row() => {
            Ok(LoggedEvent { event: Event::unreadable(id, Timestamp::EPOCH, &error), ordinal: 0 })
        }
        event => event,
    }
}

fn read_event_of(id: Revision, stored: &[u8]) -> Result<LoggedEvent> {
    let read = || {
        let end = stored.iter().position(|byte| *byte == 0)?;
        let mut parts = std::str::from_utf8(&stored[..end]).ok()?.split(' ');
        let (time, offset) = (parts.next()?.parse().ok()?, parts.next()?.parse::<i64>().ok()?);
        Some((Timestamp::from_millis(time), offset, parts.next()?.parse().ok()?, &stored[end + 1..]))
    };
    let (timestamp, offset, ordinal, payload) = read().ok_or_else(|| damaged("an event has no header"))?;
    let text = std::str::from_utf8(payload).map_err(|_| damaged("an event is not UTF-8"))?;
    let commit_id = id.get().checked_sub(offset).and_then(checked_revision);
    let commit_id = commit_id.ok_or_else(|| damaged("an event has no commit"))?;
    Ok(LoggedEvent { event: Event { id, timestamp, commit_id, ..Event::from_stored(text)? }, ordinal })
}

/// The revision of an id in the stream.
pub(super) fn revision_of(id: &[u8]) -> Option<Revision> {
    let (revision, _) = std::str::from_utf8(id).ok()?.split_once('-')?;
    checked_revision(revision.parse().ok()?)
}

pub(super) fn damaged(what: &'static str) -> crate::Error {
    Fault::new(Code::Corrupt, "a stored row cannot be read").because(what).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::Agent;
    use crate::store::conformance::an_agent;
    use crate::store::conformance::commits::every_kind_of_row;

    fn stored(row: &Row, first: &str) -> StoredRow {
        let (kind, _, payload) = store_row(row).unwrap();
        StoredRow::new([b"12345678", kind.as_bytes(), first.as_bytes(), b"\0", &payload].concat(), None)
    }

    #[test]
    fn every_kind_of_row_is_read_back() {
        for row in every_kind_of_row() {
            let stored = stored(&row, "7");
            assert_eq!((stored.stamp(), stored.read().unwrap()), (&b"12345678"[..], row));
        }
    }

    #[test]
    fn pending_revision_of_a_row_is_resolved_when_it_is_read() {
        let row = Row::from(Agent { revision: Revision::of_event(2), ..an_agent("a") });
        let expected = Agent { revision: Revision::new(42), ..an_agent("a") }.into();
        assert_eq!(stored(&row, "40").read().unwrap(), expected);
    }

    #[test]
    fn damaged_row_is_an_error() {
        for value in [
            &b""[..],
            b"1234",
            b"12345678",
            b"12345678r",
            b"12345678r7\0",
            b"12345678r-7\0[]",
            b"12345678x7\0",
        ] {
            assert_eq!(StoredRow::new(value.to_vec(), None).read().unwrap_err().code(), Code::Corrupt);
        }
    }

    #[test]
    fn state_of_a_newer_layout_is_told_from_a_damaged_one_and_from_another_program() {
        let state = State::read(b"1 id 7 1000 9 500 run 3 12\0 5678").unwrap();
        assert_eq!(
            (state.board.as_str(), state.revision, state.floor),
            ("id", Revision::new(7), Revision::new(3))
        );
        assert_eq!(state.stamp, b"12\0 5678");
        assert_eq!(state.hold, Hold::None);
        for (version, hold) in [(SEALED, Hold::Sealed), (LOADING, Hold::Loading)] {
            let stored = format!("{version} id 7 1000 9 500 run 3 12345678");
            assert_eq!(State::read(stored.as_bytes()).unwrap().hold, hold);
        }
        assert_eq!(State::read(b"2 whatever"), Err(StateError::Newer));
        for stored in [&b""[..], b"x", b"something else"] {
            assert_eq!(State::read(stored), Err(StateError::Foreign));
        }
        for stored in [&b"1 id 7"[..], b"1", b"1 id -7 1000 9 500 run 3 s"] {
            assert_eq!(State::read(stored), Err(StateError::Damaged));
        }
    }
}
