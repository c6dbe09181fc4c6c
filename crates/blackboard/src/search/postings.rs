//! The stored form of lists of numbers with counts: the documents of a term, and the terms of a document.
//!
//! A list is sorted by number. Each number is stored as its distance from the one before, with a bit that says whether its
//! count is 1. A list may come from a damaged file, so a reader stops where it makes no sense.

/// A number and its count, which is at least 1.
pub(super) type Posting = (u32, u32);

/// Adds a number with its count, which is `distance` above the last one.
pub(super) fn push(data: &mut Vec<u8>, distance: u32, count: u32) {
    push_number(data, (u64::from(distance) << 1) | u64::from(count == 1));
    if count != 1 {
        push_number(data, u64::from(count));
    }
}

fn push_number(data: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        data.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    data.push(number as u8);
}

/// The stored form of a list whose distances start at `first`.
pub(super) fn encode(first: u32, postings: &[Posting]) -> Vec<u8> {
    let (mut data, mut last) = (Vec::with_capacity(postings.len() * 2), first);
    for &(number, count) in postings {
        push(&mut data, number - last, count);
        last = number;
    }
    data
}

/// Reads a list whose distances start at `first`.
pub(super) fn decode(first: u32, data: &[u8]) -> Postings<'_> {
    Postings { number: first, rest: data }
}

/// The numbers of a list, in order.
pub(super) struct Postings<'d> {
    number: u32,
    rest: &'d [u8],
}

impl Postings<'_> {
    fn read(&mut self) -> Option<u64> {
        // Most numbers have one byte.
        let (&byte, rest) = self.rest.split_first()?;
        self.rest = rest;
        if byte < 0x80 {
            return Some(u64::from(byte));
        }
        let (mut number, mut shift) = (u64::from(byte & 0x7f), 7);
        loop {
            let (&byte, rest) = self.rest.split_first()?;
            self.rest = rest;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(number);
            }
            shift += 7;
            if shift > 35 {
                return None;
            }
        }
    }
}

impl Iterator for Postings<'_> {
    type Item = Posting;

    fn next(&mut self) -> Option<Posting> {
        let head = self.read()?;
        self.number = self.number.checked_add(u32::try_from(head >> 1).ok()?)?;
        let count = if head & 1 == 1 { 1 } else { u32::try_from(self.read()?).ok()? };
        Some((self.number, count))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_list_is_read_as_it_was_written(numbers in prop::collection::btree_map(any::<u32>(), 1_u32..300, 0..50)) {
            testkit::limit_test();
            let postings: Vec<Posting> = numbers.into_iter().collect();
            let first = postings.first().map_or(0, |(number, _)| *number);
            let data = encode(first, &postings);
            prop_assert_eq!(decode(first, &data).collect::<Vec<_>>(), postings);
        }

        #[test]
        fn damaged_lists_end(data in prop::collection::vec(any::<u8>(), 0..200), first: u32) {
            testkit::limit_test();
            prop_assert!(decode(first, &data).count() <= data.len());
        }
    }
}
