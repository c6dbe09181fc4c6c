//! Ids of events may have gaps, and differ between engines. Their numbers do not.

use std::cell::RefCell;
use std::collections::HashMap;

use blackboard::{Board, Revision};

/// Ids below this are numbers; `Memory::skipping_revisions` starts above it.
const SKIPPED: i64 = 1 << 40;

/// The ids of all events of a board, including pruned ones.
pub struct Revisions {
    board: Board,
    known: RefCell<Vec<Revision>>,
    /// Ids that a step used before an event had them, with the number that it meant.
    named: RefCell<HashMap<i64, i64>>,
}

impl Revisions {
    pub fn of(board: Board) -> Revisions {
        Revisions { board, known: RefCell::default(), named: RefCell::default() }
    }

    /// Records the ids of new events. Has to be called before they are pruned.
    pub fn note(&self) {
        let mut known = self.known.borrow_mut();
        let last = known.last().copied().unwrap_or_default();
        let page = self.board.events().lines(last, usize::MAX).unwrap();
        known.extend(page.events.iter().map(|event| event.id));
    }

    /// The id of the event with this number, the first one being 1. Beyond the end it is an id that no event has yet.
    pub fn id(&self, number: i64) -> Revision {
        // A step may have added events before it names one.
        self.note();
        let ids = self.known.borrow();
        let known = i64::try_from(ids.len()).unwrap();
        let last = ids.last().map_or(0, |last| last.get());
        match usize::try_from(number) {
            Ok(0) | Err(_) => Revision::new(number),
            Ok(at) if number <= known => ids[at - 1],
            Ok(_) => {
                let id = last + number - known;
                self.named.borrow_mut().insert(id, number);
                Revision::new(id)
            }
        }
    }

    /// The number of the event with this id.
    pub fn number(&self, revision: Revision) -> i64 {
        self.note();
        match self.known.borrow().binary_search(&revision) {
            Ok(at) => i64::try_from(at + 1).unwrap(),
            Err(_) => self.named.borrow().get(&revision.get()).copied().unwrap_or_else(|| revision.get()),
        }
    }

    /// The text with numbers in place of ids that are not numbers, and of hashes of pages, which contain ids.
    pub fn numbered(&self, text: &str) -> String {
        let text = without_hashes(text);
        let mut numbered = String::with_capacity(text.len());
        let mut rest = text.as_str();
        while let Some(start) = rest.find(|character: char| character.is_ascii_digit()) {
            let (before, digits) = rest.split_at(start);
            let end = digits.find(|character: char| !character.is_ascii_digit()).unwrap_or(digits.len());
            let (digits, after) = digits.split_at(end);
            numbered.push_str(before);
            match digits.parse() {
                Ok(id) if id > SKIPPED => numbered.push_str(&self.number(Revision::new(id)).to_string()),
                _ => numbered.push_str(digits),
            }
            rest = after;
        }
        numbered.push_str(rest);
        numbered
    }
}

/// The text with the number of its first occurrence in place of each word of sixteen hexadecimal digits.
fn without_hashes(text: &str) -> String {
    const LENGTH: usize = 16;
    let is_hash = |word: &str| {
        word.len() == LENGTH && word.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    };
    let (mut known, mut replaced) = (Vec::new(), String::with_capacity(text.len()));
    for part in text.split_inclusive(|character: char| !character.is_ascii_alphanumeric()) {
        let word = part.trim_end_matches(|character: char| !character.is_ascii_alphanumeric());
        if !is_hash(word) {
            replaced.push_str(part);
            continue;
        }
        let place = known.iter().position(|found| *found == word).unwrap_or_else(|| {
            known.push(word);
            known.len() - 1
        });
        replaced += "page ";
        replaced += &place.to_string();
        replaced.push_str(&part[word.len()..]);
    }
    replaced
}
