//! Reads a large range in parts, so that the server serves other clients meanwhile.

use super::Inner;
use super::fetch::{Answers, Detail, RangeWant, Want, fetch_at_once};
use super::pool::ServerCall;
use crate::clock::Timestamp;
use crate::error::Result;

/// How many rows of a range are read at once. The server does nothing else meanwhile.
const ROWS_AT_ONCE: usize = 10_000;

/// The same with the values of entries, which may be large.
const VALUES_AT_ONCE: usize = 1000;

/// How many times as many rows are read at once after the board has changed between two parts of a range.
const GROWTH: usize = 4;

/// Reads everything that is wanted from one state of the board. A large range is read in parts. If the board changes
/// meanwhile, the parts become larger, so that a board that always changes is read, too.
pub(super) fn fetch(
    inner: &Inner,
    call: &mut ServerCall<'_>,
    wants: &[Want],
    now: Timestamp,
) -> Result<Answers> {
    let mut factor = 1;
    loop {
        let at_once = AtOnce::new(inner, factor);
        if let Some(answers) = fetch_in_parts(inner, call, wants, now, at_once)? {
            return Ok(answers);
        }
        factor = factor.saturating_mul(GROWTH);
    }
}

/// How many rows of a range are read at once.
#[derive(Clone, Copy)]
struct AtOnce {
    rows: usize,
    values: usize,
}

impl AtOnce {
    fn new(inner: &Inner, factor: usize) -> AtOnce {
        let of = |usual: usize| inner.test_modes.rows_at_once.unwrap_or(usual).saturating_mul(factor);
        AtOnce { rows: of(ROWS_AT_ONCE), values: of(VALUES_AT_ONCE) }
    }

    fn of(self, want: &RangeWant) -> usize {
        if want.values { self.values } else { self.rows }
    }
}

/// A range that has more rows than are read at once, as far as it was read.
struct PartialRange {
    want: RangeWant,
    detail: Detail,
    members: Vec<Vec<u8>>,
    /// Whether its last part was as large as wanted.
    has_more: bool,
}

impl PartialRange {
    /// The next part of it.
    fn next(&self, at_once: AtOnce) -> Option<RangeWant> {
        let left = self.want.limit - self.members.len().min(self.want.limit);
        let last = self.members.last().filter(|_| self.has_more && left > 0)?;
        Some(self.want.after(last, left.min(at_once.of(&self.want))))
    }

    /// Adds the answer to a part of it.
    fn add(&mut self, part: &RangeWant, answers: &mut Answers) {
        let answer = answers.ranges.remove(&(part.bounds.clone(), part.backwards, self.detail));
        let members = answer.map(|answer| answer.members).unwrap_or_default();
        self.has_more = members.len() >= part.limit;
        self.members.extend(members);
    }

    fn want(&self, part: RangeWant) -> Want {
        if self.detail == Detail::Members { Want::Members(part) } else { Want::Rows(part) }
    }
}

/// The same with parts of this size; `None` if the board has changed between two of them.
fn fetch_in_parts(
    inner: &Inner,
    call: &mut ServerCall<'_>,
    wants: &[Want],
    now: Timestamp,
    at_once: AtOnce,
) -> Result<Option<Answers>> {
    let (mut first, mut large) = (Vec::with_capacity(wants.len()), Vec::<PartialRange>::new());
    for want in wants {
        let (range, detail) = match want {
            Want::Rows(range) => (range, range.detail()),
            Want::Members(range) => (range, Detail::Members),
            _ => {
                first.push(want.clone());
                continue;
            }
        };
        if range.limit <= at_once.of(range) {
            first.push(want.clone());
            continue;
        }
        // Two announcements of the same range may differ in their limit.
        let is_same = |other: &&mut PartialRange| {
            (&other.want.bounds, other.want.backwards, other.detail)
                == (&range.bounds, range.backwards, detail)
        };
        if let Some(other) = large.iter_mut().find(is_same) {
            other.want.limit = other.want.limit.max(range.limit);
            continue;
        }
        let (want, members) = (range.clone(), Vec::new());
        large.push(PartialRange { want, detail, members, has_more: true });
    }
    let mut parts: Vec<RangeWant> = Vec::with_capacity(large.len());
    for range in &large {
        let part = RangeWant { limit: at_once.of(&range.want), ..range.want.clone() };
        first.push(range.want(part.clone()));
        parts.push(part);
    }
    let mut answers = fetch_at_once(inner, call, &first, now)?;
    for (range, part) in large.iter_mut().zip(&parts) {
        range.add(part, &mut answers);
    }
    loop {
        let next: Vec<_> = large.iter().map(|range| range.next(at_once)).collect();
        let wanted = large.iter().zip(&next).filter_map(|(range, part)| Some(range.want(part.clone()?)));
        let wanted: Vec<Want> = wanted.collect();
        if wanted.is_empty() {
            break;
        }
        let mut more = fetch_at_once(inner, call, &wanted, now)?;
        if more.state.stamp != answers.state.stamp {
            return Ok(None);
        }
        for (range, part) in large.iter_mut().zip(&next) {
            if let Some(part) = part {
                range.add(part, &mut more);
            }
        }
        answers.extend(more);
    }
    for PartialRange { want, detail, members, .. } in large {
        answers.add_range(&want, detail, members);
    }
    Ok(Some(answers))
}
