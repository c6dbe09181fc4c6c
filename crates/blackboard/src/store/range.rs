//! [`Range`]: a part of an index. Each noun has the constructors of its ranges beside its row.

use std::ops::Bound;
use std::time::Duration;

use super::record::{Index, IndexValue};
use crate::clock::Timestamp;

/// A part of an index: one partition, within bounds.
///
/// A bound has one or more of the first values of a position, and is compared with as many. Everything that starts
/// with these values is inside an included bound and outside an excluded one. This is the same for every engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Range {
    /// The index.
    pub index: &'static Index,
    /// The partition.
    pub partition: Vec<IndexValue>,
    /// Where it begins.
    pub from: Bound<Vec<IndexValue>>,
    /// Where it ends.
    pub until: Bound<Vec<IndexValue>>,
    /// Whether it is read against the order of the index.
    pub reversed: bool,
}

impl Range {
    /// All of an index that has one partition.
    pub fn all(index: &'static Index) -> Range {
        Range {
            index,
            partition: Vec::new(),
            from: Bound::Unbounded,
            until: Bound::Unbounded,
            reversed: false,
        }
    }

    /// A complete partition.
    pub(crate) fn of<const PARTS: usize>(index: &'static Index, partition: [&str; PARTS]) -> Range {
        Range { partition: partition.map(IndexValue::from).into(), ..Range::all(index) }
    }

    /// The same rows in the opposite order.
    #[must_use]
    pub fn reversed(self) -> Range {
        Range { reversed: !self.reversed, ..self }
    }

    /// Whether the rows are read from the largest position to the smallest.
    pub fn is_backwards(&self) -> bool {
        self.index.backwards != self.reversed
    }

    /// The part that is at or after a value.
    #[must_use]
    pub fn from(self, value: impl Into<IndexValue>) -> Range {
        Range { from: Bound::Included(vec![value.into()]), ..self }
    }

    /// The part that is before a value.
    #[must_use]
    pub fn before(self, value: impl Into<IndexValue>) -> Range {
        Range { until: Bound::Excluded(vec![value.into()]), ..self }
    }

    /// The part that is at or before a value.
    #[must_use]
    pub fn up_to(self, value: impl Into<IndexValue>) -> Range {
        Range { until: Bound::Included(vec![value.into()]), ..self }
    }

    /// The part of at least this age at a moment, in an index that is ordered by time first. An engine that answers
    /// [`Prefetch::AnyAged`](super::Prefetch::AnyAged) uses it with its own time.
    #[must_use]
    pub fn aged(self, now: Timestamp, age: Duration) -> Range {
        self.up_to(now.minus(age))
    }

    /// The part after a value.
    #[must_use]
    pub fn after(self, value: impl Into<IndexValue>) -> Range {
        let value = vec![value.into()];
        match &self.from {
            Bound::Included(from) if *from > value => self,
            Bound::Excluded(from) if *from >= value => self,
            Bound::Included(_) | Bound::Excluded(_) | Bound::Unbounded => {
                Range { from: Bound::Excluded(value), ..self }
            }
        }
    }

    /// The part whose texts start with a prefix.
    #[must_use]
    pub fn starting_with(self, prefix: &str) -> Range {
        if prefix.is_empty() {
            return self;
        }
        let end =
            end_of_prefix(prefix).map_or(Bound::Unbounded, |end| Bound::Excluded(vec![end.as_str().into()]));
        Range { until: end, ..self.from(prefix) }
    }

    /// Whether it has no bounds.
    pub(crate) fn is_whole(&self) -> bool {
        self.from == Bound::Unbounded && self.until == Bound::Unbounded
    }

    /// Whether a position is before the range.
    pub fn begins_after(&self, sort: &[IndexValue]) -> bool {
        match &self.from {
            Bound::Unbounded => false,
            Bound::Included(from) => first(sort, from) < from.as_slice(),
            Bound::Excluded(from) => first(sort, from) <= from.as_slice(),
        }
    }

    /// Whether a position is after the range.
    pub fn ends_before(&self, sort: &[IndexValue]) -> bool {
        match &self.until {
            Bound::Unbounded => false,
            Bound::Included(until) => first(sort, until) > until.as_slice(),
            Bound::Excluded(until) => first(sort, until) >= until.as_slice(),
        }
    }
}

/// As many of the first values as the bound has.
fn first<'a>(sort: &'a [IndexValue], bound: &[IndexValue]) -> &'a [IndexValue] {
    &sort[..bound.len().min(sort.len())]
}

/// The first text that sorts after everything with this prefix; `None` if there is none.
fn end_of_prefix(prefix: &str) -> Option<String> {
    let mut end = prefix.to_owned();
    while let Some(last) = end.pop() {
        let next = match last {
            '\u{d7ff}' => Some('\u{e000}'),
            other => char::from_u32(u32::from(other) + 1),
        };
        if let Some(next) = next {
            end.push(next);
            return Some(end);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::Entry;

    #[test]
    fn a_bound_is_compared_with_as_many_values_as_it_has() {
        let position = [IndexValue::from("t"), IndexValue::from("a")];
        let range = || Range::all(Entry::ALL);
        for (range, contains) in [
            (range(), true),
            (range().from("t"), true),
            (range().after("t"), false),
            (range().after("s"), true),
            (range().before("t"), false),
            (range().up_to("t"), true),
            (range().before("u"), true),
            (range().from("u"), false),
            (Range { from: Bound::Excluded(position.to_vec()), ..range() }, false),
            (Range { from: Bound::Included(position.to_vec()), ..range() }, true),
        ] {
            let found = !range.begins_after(&position) && !range.ends_before(&position);
            assert_eq!(found, contains, "{range:?}");
        }
    }

    #[test]
    fn range_after_a_value_never_begins_before_the_range() {
        let range = || Range::all(Entry::ALL);
        let excluded = |text: &str| Bound::Excluded(vec![IndexValue::from(text)]);
        assert_eq!(range().after("a").from, excluded("a"));
        assert_eq!(range().from("b").after("a").from, Bound::Included(vec!["b".into()]));
        assert_eq!(range().from("a").after("a").from, excluded("a"));
        assert_eq!(range().after("b").after("a").from, excluded("b"));
    }

    #[test]
    fn a_prefix_ends_before_the_next_text_that_does_not_have_it() {
        testkit::limit_test();
        for (prefix, end) in [
            ("a", Some("b")),
            ("a:", Some("a;")),
            ("a\u{d7ff}", Some("a\u{e000}")),
            ("a\u{10ffff}", Some("b")),
            ("\u{10ffff}", None),
        ] {
            assert_eq!(end_of_prefix(prefix).as_deref(), end, "{prefix:?}");
        }
    }
}
