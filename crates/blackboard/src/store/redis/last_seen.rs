//! A first guess of what a commit reads: the rows that this process saw last.
//!
//! A commit runs at once if all rows that it announces are known, and the script validates them like rows that were
//! just read: one round trip instead of two. A wrong guess is a conflict, and the next run reads. Only changes are
//! based on a guess. A refusal, and a call that changes nothing, is always based on a read.
//!
//! A stamp is random, so a row with the stamp that was seen has the content that was seen, also after a failover. What
//! a read would notice besides rows, the script compares: the board, the run of the server, and its clock. A guess is
//! made only on an open connection whose server was checked a moment ago, and never sent to another one first.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::Inner;
use super::fetch::{Answers, Detail, Want, wants_of};
use super::layout::{self, State, StoredRow};
use super::pool::ServerCall;
use crate::clock::Timestamp;
use crate::error::Result;
use crate::revision::Revision;
use crate::store::Prefetch;

/// How long after its last read, of whatever rows, a process may guess: the server's clock may be set. How old a row is
/// does not matter, because the script compares its stamp.
const FRESH: Duration = Duration::from_secs(2);

/// How long nothing is assumed to become old enough.
const NOTHING_DUE: Duration = Duration::from_secs(1);

/// The most that is kept. Then everything is forgotten.
const MAX_ROWS: usize = 10_000;
const MAX_BYTES: usize = 8 << 20;

/// How many commits begin with a read, at most, after wrong guesses.
const LONGEST_PAUSE: u32 = 63;

/// The longest row that is kept.
const MAX_ROW: usize = 64 << 10;

/// The rows that this process saw last, also absent ones.
#[derive(Default)]
pub(super) struct LastSeen(Mutex<Seen>);

#[derive(Default)]
struct Seen {
    rows: HashMap<Vec<u8>, Option<StoredRow>>,
    bytes: usize,
    state: Option<State>,
    read_at: Option<Instant>,
    /// The starts of ranges that had no row, and when they were read, by the board's clock. Their ends depend on the
    /// time of the run.
    empty: HashMap<Vec<u8>, Timestamp>,
    /// How many commits begin with a read before the next guess, and how many after the next wrong one.
    pause: u32,
    next_pause: u32,
}

/// A row that a commit has written.
pub(super) struct WrittenRow {
    pub(super) field: Vec<u8>,
    /// The kind, the payload, and for an entry its event and its version. `None` if the row is gone.
    pub(super) content: Option<WrittenContent>,
}

pub(super) struct WrittenContent {
    pub(super) kind: &'static str,
    pub(super) payload: Vec<u8>,
    pub(super) event: Option<usize>,
    pub(super) version: Option<String>,
}

impl WrittenRow {
    /// The row as the script has stored it; `None` if it is gone, or is not kept.
    fn stored(&self, id: &[u8], first: Revision) -> Option<StoredRow> {
        let WrittenContent { kind, payload, event, version } = self.content.as_ref()?;
        let number = first.get() + i64::try_from(event.unwrap_or(0)).ok()?;
        let header = format!("{kind}{number}\0");
        let value = [&id[..layout::STAMP], header.as_bytes(), payload].concat();
        Some(StoredRow::new(
            value,
            version.as_ref().map(|version| format!("{first}\0{version}").into_bytes()),
        ))
    }

    fn is_kept(&self) -> bool {
        let Some(content) = &self.content else { return true };
        // Rows of a table that is appended are not read by their keys.
        let size = content.payload.len() + content.version.as_ref().map_or(0, String::len);
        content.kind != "h" && size <= MAX_ROW
    }
}

impl Seen {
    fn set(&mut self, field: &[u8], row: Option<StoredRow>) {
        let size = row.as_ref().map_or(0, StoredRow::size) + field.len();
        if self.rows.len() >= MAX_ROWS || self.bytes + size > MAX_BYTES {
            self.rows.clear();
            self.bytes = 0;
        }
        let before = self.rows.insert(field.to_vec(), row);
        self.bytes += size;
        if let Some(before) = before {
            self.forget_size(field, before.as_ref());
        }
    }

    fn remove(&mut self, field: &[u8]) {
        if let Some(before) = self.rows.remove(field) {
            self.forget_size(field, before.as_ref());
        }
    }

    fn forget_size(&mut self, field: &[u8], row: Option<&StoredRow>) {
        self.bytes = self.bytes.saturating_sub(row.map_or(0, StoredRow::size) + field.len());
    }

    /// Everything that is wanted, if it is known.
    fn answers(&self, wants: &[Want], now: Timestamp, outcome: &[u8]) -> Option<Answers> {
        self.read_at.filter(|moment| moment.elapsed() < FRESH)?;
        let is_recent = |moment: &Timestamp| *moment <= now && now < moment.plus(NOTHING_DUE);
        let mut answers = Answers::new(self.state.clone()?, now, outcome.to_vec());
        let mut has_row = false;
        for want in wants {
            match want {
                Want::Row(field) | Want::Entry(field) => {
                    has_row = true;
                    drop(answers.rows.insert(field.clone(), self.rows.get(field)?.clone()));
                    answers.missing(std::slice::from_ref(want)).is_empty().then_some(())?;
                }
                Want::Members(range) => {
                    self.empty.get(&range.bounds.from).filter(|moment| is_recent(moment))?;
                    answers.add_range(range, Detail::Members, Vec::new());
                }
                _ => return None,
            }
        }
        has_row.then_some(answers)
    }
}

impl LastSeen {
    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps what a run has read by key.
    pub(super) fn note_read(&self, wants: &[Want], answers: &Answers) {
        let mut seen = self.seen();
        (seen.read_at, seen.state) = (Some(Instant::now()), Some(answers.state.clone()));
        for want in wants {
            match want {
                Want::Row(field) | Want::Entry(field) => match answers.rows.get(field) {
                    Some(row) if row.as_ref().is_none_or(|row| row.size() <= MAX_ROW) => {
                        seen.set(field, row.clone());
                    }
                    _ => seen.remove(field),
                },
                Want::Members(range) => {
                    let members = answers.range(range, Detail::Members).map(|found| found.members.len());
                    if members == Some(0) {
                        seen.empty.insert(range.bounds.from.clone(), answers.now);
                    } else {
                        seen.empty.remove(&range.bounds.from);
                    }
                }
                _ => {}
            }
        }
        if seen.empty.len() > MAX_ROWS {
            seen.empty.clear();
        }
    }

    /// Keeps what a commit has written.
    pub(super) fn note_commit(&self, id: &[u8], first: Revision, events: usize, rows: &[WrittenRow]) {
        let mut seen = self.seen();
        if let Some(state) = &mut seen.state {
            let last = first.get() - 1 + i64::try_from(events).unwrap_or(0);
            state.revision = state.revision.max(Revision::new(last));
            state.stamp = id[..layout::STAMP].to_vec();
        }
        for row in rows {
            if row.is_kept() {
                seen.set(&row.field, row.stored(id, first));
            } else {
                seen.remove(&row.field);
            }
        }
    }

    pub(super) fn forget(&self) {
        *self.seen() = Seen::default();
    }

    /// Whether a commit may guess. A process that writes the same rows as others would guess wrong all the time.
    fn may_guess(&self) -> bool {
        let mut seen = self.seen();
        let may = seen.pause == 0;
        seen.pause = seen.pause.saturating_sub(1);
        may
    }

    pub(super) fn note_guess(&self, was_right: bool) {
        let mut seen = self.seen();
        if was_right {
            seen.next_pause /= 2;
        } else {
            seen.pause = seen.next_pause;
            seen.next_pause = (seen.next_pause * 2 + 1).min(LONGEST_PAUSE);
        }
    }
}

impl Inner {
    /// What a commit reads, if this process knows all of it. Besides rows that is only whether something is old enough,
    /// which may be a little late.
    pub(super) fn guess(
        &self,
        call: &ServerCall<'_>,
        prefetch: &[Prefetch<'_>],
    ) -> Result<Option<(Answers, Vec<Want>)>> {
        let is_kept = |one: &Prefetch<'_>| {
            matches!(one, Prefetch::Row(_) | Prefetch::Entry(..) | Prefetch::AnyAged(..))
        };
        if !prefetch.iter().all(is_kept) || !self.last_seen.may_guess() {
            return Ok(None);
        }
        let Some(outcome) = call.known_outcome() else { return Ok(None) };
        let now = self.now();
        let wants = wants_of(prefetch, now)?;
        let answers = self.last_seen.seen().answers(&wants, now, outcome);
        Ok(answers.map(|answers| (answers, wants)))
    }
}
