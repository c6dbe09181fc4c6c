//! Keys and index values as bytes that sort as the values do.
//!
//! Every value ends by itself: a number has eight bytes, a revision twenty digits, a text a zero byte. So values are
//! written one after the other, and a bound with the first values of a position is a prefix of it.

use std::ops::Bound;

use crate::clock::Timestamp;
use crate::error::{Code, Fault, Result};
use crate::store::record::{Cell, Index, IndexKey, IndexValue, Stored, StoredCells, StoredRow, Table};
use crate::store::{Key, Range, Row, TABLES};

/// The byte of each table. It never changes.
const TABLE_BYTES: &[(&str, u8)] = &[
    ("agents", b'a'),
    ("heartbeats", b'h'),
    ("projects", b'p'),
    ("work_items", b'w'),
    ("work_dependencies", b'd'),
    ("cursors", b'c'),
    ("operations", b'o'),
    ("marks", b'm'),
    ("entries", b'e'),
    ("entry_tombstones", b't'),
    ("file_edits", b'f'),
    ("protocols", b'q'),
    ("scopes", b's'),
    ("pages", b'g'),
];

/// The byte of each index. It never changes. Indexes whose positions are equal share a byte, and each position is
/// stored once: the entries of a scope are a part of all entries, for example.
const INDEX_BYTES: &[(&str, u8)] = &[
    ("agents.ALL", b'A'),
    ("agents.LIVE", b'B'),
    ("agents.ENDED", b'C'),
    ("agents.DELEGATES", b'D'),
    ("heartbeats.OF_SESSION", b'E'),
    ("heartbeats.OF_WORK_ITEM", b'F'),
    ("projects.ALL", b'G'),
    ("work_items.ALL", b'H'),
    ("work_items.QUEUE", b'I'),
    ("work_items.NEWEST", b'I'),
    ("work_items.PROJECT_QUEUE", b'J'),
    ("work_items.CLAIMED", b'K'),
    ("work_items.HELD", b'L'),
    ("work_items.OF_PROJECT", b'M'),
    ("work_items.COMPLETED", b'N'),
    ("work_items.LAST_COMPLETED", b'N'),
    ("work_dependencies.ALL", b'O'),
    ("work_dependencies.BLOCKERS", b'P'),
    ("work_dependencies.DEPENDENTS", b'Q'),
    ("cursors.BY_OWNER", b'R'),
    ("operations.OLDEST", b'S'),
    ("entries.ALL", b'T'),
    ("entries.IN_SCOPE", b'T'),
    ("entries.NEWEST", b'U'),
    ("entries.TAGGED", b'V'),
    ("entries.EXPIRING", b'W'),
    ("entries.LEASED", b'X'),
    ("file_edits.OF_FILE", b'Y'),
    ("file_edits.OF_SESSION", b'Z'),
    ("file_edits.OLDEST", b'a'),
    ("entry_tombstones.ALL", b'b'),
    ("marks.BY_NAME", b'c'),
    ("protocols.ALL", b'd'),
    ("entries.LEAST_USED", b'e'),
    ("scopes.ALL", b'f'),
    ("pages.ALL", b'g'),
    ("pages.IN_SCOPE", b'g'),
];

/// The first byte of the field of a row.
const ROW: u8 = b'r';

/// The longest key of a row: its length is stored in two bytes.
const MAX_KEY: usize = 0xffff;

fn byte_of(bytes: &[(&str, u8)], name: &str) -> Result<u8> {
    let found = bytes.iter().find(|(known, _)| *known == name).map(|(_, byte)| *byte);
    found.ok_or_else(|| {
        Fault::new(Code::Internal, format!("{name} has no byte in store/redis/bytes.rs")).into()
    })
}

/// The field of a row that is written.
pub(super) fn row_field(key: &Key) -> Result<Vec<u8>> {
    let field = any_field(key)?;
    if field.len() > MAX_KEY {
        return Err(Fault::new(Code::Internal, "the key of a row is too long").into());
    }
    Ok(field)
}

/// The field of a row that is read. No row has a key that is too long, so its field is one that no row has.
pub(super) fn field_to_read(key: &Key) -> Result<Vec<u8>> {
    let field = any_field(key)?;
    Ok(if field.len() > MAX_KEY { vec![ROW] } else { field })
}

fn any_field(key: &Key) -> Result<Vec<u8>> {
    let mut field = vec![ROW, byte_of(TABLE_BYTES, key.table().name)?];
    for cell in key.cells() {
        match cell {
            Cell::Text(text) => {
                field.push(b't');
                push_text(&mut field, text);
            }
            Cell::Time(moment) => {
                field.push(b'm');
                push_number(&mut field, moment.millis());
            }
            Cell::Integer(number) => {
                field.push(b'i');
                push_number(&mut field, number);
            }
            Cell::Null | Cell::Revision(_) | Cell::Process(_) | Cell::Policies(_) | Cell::List(_) => {
                return Err(Fault::new(Code::Internal, format!("{key:?} cannot be a key")).into());
            }
        }
    }
    Ok(field)
}

/// The key of a row with this field.
pub(super) fn key_of(field: &[u8]) -> Result<Key> {
    read_key(field)
        .unwrap_or_else(|| Err(Fault::new(Code::Corrupt, "the key of a row cannot be read").into()))
}

fn read_key(field: &[u8]) -> Option<Result<Key>> {
    let table = table_of(field)?;
    let (mut rest, mut parts) = (field.get(2..)?, Vec::new());
    while let Some((kind, after)) = rest.split_first() {
        let part;
        (part, rest) = match kind {
            b't' => {
                let (text, rest) = take_text(after)?;
                (KeyPart::Text(text), rest)
            }
            b'm' => {
                let (millis, rest) = take_number(after)?;
                (KeyPart::Text(Timestamp::from_millis(millis).to_string()), rest)
            }
            b'i' => {
                let (number, rest) = take_number(after)?;
                (KeyPart::Integer(number), rest)
            }
            _ => return None,
        };
        parts.push(part);
    }
    Some((table.read_key)(&mut StoredRow::new(table.name, &KeyParts(parts))))
}

/// The table of a row with this field.
pub(super) fn table_of(field: &[u8]) -> Option<&'static Table> {
    let byte = field.get(1).filter(|_| field.first() == Some(&ROW))?;
    let (name, _) = TABLE_BYTES.iter().find(|(_, known)| known == byte)?;
    TABLES.iter().find(|table| table.name == *name).copied()
}

enum KeyPart {
    Text(String),
    Integer(i64),
}

struct KeyParts(Vec<KeyPart>);

impl StoredCells for KeyParts {
    fn stored(&self, column: usize) -> Result<Stored<'_>, Box<dyn std::error::Error + Send + Sync>> {
        Ok(match self.0.get(column) {
            None => Stored::Null,
            Some(KeyPart::Text(text)) => Stored::Text(text),
            Some(KeyPart::Integer(number)) => Stored::Integer(*number),
        })
    }
}

/// A member of the sorted set of all indexes: the position of a row in one of them. A pending revision splits it: the
/// server writes its digits between the parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Member {
    pub(super) head: Vec<u8>,
    /// The event whose revision comes between the parts.
    pub(super) event: Option<usize>,
    pub(super) tail: Vec<u8>,
}

/// Every position of a row, each once.
pub(super) fn members_of(row: &Row) -> Result<Vec<Member>> {
    let field = row_field(&row.key())?;
    let mut members: Vec<Member> = Vec::new();
    for key in row.index_keys() {
        let member = member_of(&key, &field)?;
        if !members.contains(&member) {
            members.push(member);
        }
    }
    Ok(members)
}

fn member_of(key: &IndexKey, field: &[u8]) -> Result<Member> {
    let mut member = Member { head: prefix(key.index, &key.partition)?, event: None, tail: Vec::new() };
    for value in &key.sort {
        let pending = if let IndexValue::Revision(revision) = value { revision.event() } else { None };
        let part = if member.event.is_some() { &mut member.tail } else { &mut member.head };
        match pending {
            Some(event) if member.event.is_none() => member.event = Some(event),
            Some(_) => return Err(Fault::new(Code::Internal, "a member has two pending revisions").into()),
            None => push_value(part, value),
        }
    }
    let part = if member.event.is_some() { &mut member.tail } else { &mut member.head };
    part.extend(field);
    // `row_field` has checked the length.
    part.extend(u16::try_from(field.len()).unwrap_or(u16::MAX).to_be_bytes());
    Ok(member)
}

/// The field of the row of a member.
pub(super) fn field_at(member: &[u8]) -> Option<&[u8]> {
    let (rest, length) = member.split_last_chunk::<2>()?;
    rest.get(rest.len().checked_sub(usize::from(u16::from_be_bytes(*length)))?..)
}

/// The bounds of a range, as the server expects them: the first one is included, the last one is not.
pub(super) fn bounds_of(range: &Range) -> Result<(Vec<u8>, Vec<u8>)> {
    let prefix = prefix(range.index, &range.partition)?;
    let with = |values: &[IndexValue]| {
        let mut bytes = prefix.clone();
        for value in values {
            push_value(&mut bytes, value);
        }
        bytes
    };
    let from = match &range.from {
        Bound::Unbounded => prefix.clone(),
        Bound::Included(values) => with(values),
        Bound::Excluded(values) => after_prefix(with(values)),
    };
    let before = match &range.until {
        Bound::Unbounded => after_prefix(prefix.clone()),
        Bound::Included(values) => after_prefix(with(values)),
        Bound::Excluded(values) => with(values),
    };
    Ok((included(&from), excluded(&before)))
}

/// The bounds of all members of a table's rows, index by index.
pub(super) fn bounds_of_table(table: &Table) -> Result<Vec<Vec<u8>>> {
    let mut bounds = Vec::new();
    for index in table.indexes {
        let (from, before) = bounds_of_index(index)?;
        bounds.extend([from, before]);
    }
    Ok(bounds)
}

/// The bounds of all members of an index.
pub(super) fn bounds_of_index(index: &Index) -> Result<(Vec<u8>, Vec<u8>)> {
    let prefix = vec![byte_of(INDEX_BYTES, index.name)?];
    Ok((included(&prefix), excluded(&after_prefix(prefix))))
}

/// A bound that includes these bytes.
pub(super) fn included(bytes: &[u8]) -> Vec<u8> {
    [b"[", bytes].concat()
}

/// A bound that does not.
pub(super) fn excluded(bytes: &[u8]) -> Vec<u8> {
    [b"(", bytes].concat()
}

/// A bound directly after a member.
pub(super) fn directly_after(member: &[u8]) -> Vec<u8> {
    [b"(", member, b"\0"].concat()
}

fn prefix(index: &Index, partition: &[IndexValue]) -> Result<Vec<u8>> {
    let mut bytes = vec![byte_of(INDEX_BYTES, index.name)?];
    for value in partition {
        push_value(&mut bytes, value);
    }
    Ok(bytes)
}

/// The first bytes that sort after everything with this prefix. The byte of an index comes first, so there are some.
fn after_prefix(mut prefix: Vec<u8>) -> Vec<u8> {
    while let Some(last) = prefix.pop() {
        if let Some(next) = last.checked_add(1) {
            prefix.push(next);
            break;
        }
    }
    prefix
}

fn push_value(bytes: &mut Vec<u8>, value: &IndexValue) {
    match value {
        IndexValue::Integer(number) => push_number(bytes, *number),
        IndexValue::Time(moment) => push_number(bytes, moment.millis()),
        IndexValue::Revision(revision) => bytes.extend(format!("{:020}", revision.get()).bytes()),
        IndexValue::Text(text) => push_text(bytes, text),
    }
}

fn push_number(bytes: &mut Vec<u8>, number: i64) {
    // Negative numbers sort before positive ones.
    bytes.extend((number.cast_unsigned() ^ (1 << 63)).to_be_bytes());
}

fn take_number(bytes: &[u8]) -> Option<(i64, &[u8])> {
    let (number, rest) = bytes.split_first_chunk::<8>()?;
    Some(((u64::from_be_bytes(*number) ^ (1 << 63)).cast_signed(), rest))
}

/// A zero byte ends a text, so a zero in it becomes two bytes that sort after the end and before all others.
fn push_text(bytes: &mut Vec<u8>, text: &str) {
    for byte in text.bytes() {
        match byte {
            0 => bytes.extend([1, 1]),
            1 => bytes.extend([1, 2]),
            other => bytes.push(other),
        }
    }
    bytes.push(0);
}

fn take_text(bytes: &[u8]) -> Option<(String, &[u8])> {
    let end = bytes.iter().position(|byte| *byte == 0)?;
    let (mut text, mut rest) = (Vec::with_capacity(end), &bytes[..end]);
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        if *first == 1 {
            text.push(rest.first()?.checked_sub(1)?);
            rest = &rest[1..];
        } else {
            text.push(*first);
        }
    }
    Some((String::from_utf8(text).ok()?, &bytes[end + 1..]))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::store::conformance::commits::every_kind_of_row;

    #[test]
    fn every_table_and_index_has_a_byte() {
        for table in TABLES {
            byte_of(TABLE_BYTES, table.name).unwrap();
            for index in table.indexes {
                byte_of(INDEX_BYTES, index.name).unwrap();
            }
        }
    }

    #[test]
    fn every_kind_of_key_is_read_back_from_its_field_and_from_its_members() {
        testkit::limit_test();
        for row in every_kind_of_row() {
            let field = row_field(&row.key()).unwrap();
            assert_eq!(key_of(&field).unwrap(), row.key());
            assert_eq!(table_of(&field).unwrap().name, row.table().name);
            for member in members_of(&row).unwrap() {
                assert_eq!(field_at(&[member.head, member.tail].concat()), Some(&field[..]));
            }
        }
    }

    #[test]
    fn damaged_key_is_an_error() {
        testkit::limit_test();
        for field in [&b""[..], b"r", b"r?", b"ra", b"rat", b"ratx", b"rax\0", b"rhtx\0m123", b"rat\xff\0"] {
            assert_eq!(key_of(field).unwrap_err().code(), Code::Corrupt, "{field:?}");
        }
        assert_eq!(field_at(b"\0"), None);
        assert_eq!(field_at(b"a\0\x07"), None);
    }

    fn value() -> impl Strategy<Value = Vec<IndexValue>> {
        let text = proptest::string::string_regex("[\\x00-\\x03ab\u{7ff}\u{10ffff}]{0,4}").unwrap();
        (text, any::<i64>(), "[\\x00\\x01a]{0,2}").prop_map(|(first, number, last)| {
            vec![IndexValue::Text(first), IndexValue::Integer(number), IndexValue::Text(last)]
        })
    }

    proptest! {
        #[test]
        fn bytes_sort_as_their_values(a in value(), b in value()) {
            testkit::limit_test();
            let bytes = |values: &[IndexValue]| {
                let mut bytes = Vec::new();
                for value in values {
                    push_value(&mut bytes, value);
                }
                bytes
            };
            prop_assert_eq!(bytes(&a).cmp(&bytes(&b)), a.cmp(&b));
            let end = after_prefix([b"A", &bytes(&a[..1])[..]].concat());
            prop_assert!([b"A", &bytes(&a)[..]].concat() < end);
        }
    }
}
