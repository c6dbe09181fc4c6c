//! Reads the WAL of a database without SQLite, which would change its companions.
//!
//! An upgrade that was committed may be in the WAL only: a process was killed before the checkpoint, or a reader delays
//! it. Then the database file still has the old header. A small board of ivy-blackboard may be in its WAL completely,
//! because its processes exit without closing the database.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use super::super::open;
use super::super::sidecars::beside;

/// The text by which a table that both programs have is found in a page of the schema.
const TABLE: &[u8] = b"CREATE TABLE schema_version";

/// The largest page of a database.
const MAX_PAGE: usize = 65_536;

/// What the committed part of a WAL contains.
#[derive(Default)]
pub(super) struct WalContent {
    /// The first bytes of the database's first page.
    pub(super) header: Option<[u8; 100]>,
    /// Whether a page creates a table of ivy-blackboard.
    pub(super) creates_tables: bool,
}

/// Reads the WAL beside the database. One that cannot be read has no content.
pub(super) fn read(database: &Path) -> WalContent {
    let mut options = std::fs::OpenOptions::new();
    options.read(true);
    open::private(&mut options);
    let Ok(file) = options.open(beside(database, "-wal")) else { return WalContent::default() };
    read_frames(&mut BufReader::with_capacity(1 << 20, file)).unwrap_or_default()
}

/// Reads all frames up to the last valid commit. The format is that of <https://sqlite.org/fileformat2.html#walformat>.
fn read_frames(file: &mut BufReader<File>) -> Option<WalContent> {
    let mut header = [0; 32];
    file.read_exact(&mut header).ok()?;
    let big_endian = match word(&header, 0) {
        0x377f_0682 => false,
        0x377f_0683 => true,
        _ => return None,
    };
    let page_size = usize::try_from(word(&header, 8)).ok().filter(|size| (512..=MAX_PAGE).contains(size))?;
    let salts = &header[16..24];
    let mut sum = checksum((0, 0), &header[..24], big_endian);
    if sum != (word(&header, 24), word(&header, 28)) {
        return None;
    }
    let (mut committed, mut pending) = (WalContent::default(), WalContent::default());
    let mut frame = vec![0; 24 + page_size];
    while file.read_exact(&mut frame).is_ok() {
        let (head, page) = frame.split_at(24);
        sum = checksum(checksum(sum, &head[..8], big_endian), page, big_endian);
        if head[8..16] != *salts || sum != (word(head, 16), word(head, 20)) {
            break;
        }
        if word(head, 0) == 1 {
            pending.header = page[..100].try_into().ok();
        }
        pending.creates_tables |= page.windows(TABLE.len()).any(|text| text == TABLE);
        let ends_a_commit = word(head, 4) != 0;
        if ends_a_commit {
            committed = WalContent { header: pending.header, creates_tables: pending.creates_tables };
        }
    }
    Some(committed)
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// Continues the checksum of a WAL, in the byte order that its header names.
fn checksum((mut first, mut second): (u32, u32), bytes: &[u8], big_endian: bool) -> (u32, u32) {
    for pair in bytes.chunks_exact(8) {
        let number = |bytes: &[u8]| {
            let bytes = [bytes[0], bytes[1], bytes[2], bytes[3]];
            if big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) }
        };
        first = first.wrapping_add(number(&pair[..4])).wrapping_add(second);
        second = second.wrapping_add(number(&pair[4..])).wrapping_add(first);
    }
    (first, second)
}
