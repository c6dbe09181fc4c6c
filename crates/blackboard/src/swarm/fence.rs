//! Fenced code blocks: in one that a person wrote, every line is text, whatever it looks like.
//!
//! Two blocks are not of this kind. The one directly below the heading of an entry has its JSON, and ends with the entry if it
//! is not closed. One with a marker in it is a block that a person did not close: the markers count.

use super::document::{Kind, Line, Part, lines};

/// The lines of a text, and what each of them is.
pub(super) fn classified(text: &str) -> impl Iterator<Item = (Line<'_>, Kind<'_>)> {
    let mut fences = Fences {
        text,
        end: 0,
        is_in_entries: false,
        position: Position::Elsewhere,
        unclosed: [Unclosed { length: usize::MAX, until: 0 }; 2],
    };
    lines(text).map(move |line| (line, fences.kind(line)))
}

/// A line that begins or ends a fenced block.
#[derive(Clone, Copy)]
struct Fence {
    character: u8,
    length: usize,
    /// Whether the line has nothing else. A block ends with such a line.
    is_bare: bool,
}

impl Fence {
    fn of(line: &str) -> Option<Fence> {
        let text = line.trim_start_matches(' ');
        let character = text.bytes().next().filter(|first| matches!(first, b'`' | b'~'))?;
        let length = text.bytes().take_while(|byte| *byte == character).count();
        let rest = &text[length..];
        // Longer ones count as equal: each length may be searched for once in the complete text.
        let length = length.min(MAX_LENGTH);
        let is_code_in_text = character == b'`' && rest.contains('`');
        let is_fence = length >= 3 && line.len() - text.len() <= 3 && !is_code_in_text;
        is_fence.then(|| Fence { character, length, is_bare: rest.trim_ascii().is_empty() })
    }

    fn ends(self, open: Fence) -> bool {
        self.is_bare && self.character == open.character && self.length >= open.length
    }
}

struct Fences<'a> {
    text: &'a str,
    /// Where the last block of a person ends.
    end: usize,
    /// Whether the section has entries.
    is_in_entries: bool,
    position: Position,
    /// What is known of blocks that are not closed, with each of the two characters.
    unclosed: [Unclosed; 2],
}

/// Where in an entry the next line is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Position {
    Elsewhere,
    /// Below its heading, before its JSON.
    BeforeJson,
    /// In the fenced block with its JSON.
    InJson,
}

/// The longest fence that is distinguished from longer ones.
const MAX_LENGTH: usize = 32;

/// A block that begins before `until` with a fence of at least this length is not closed. Without it, a file with many
/// of them would be read to its end for each.
#[derive(Clone, Copy)]
struct Unclosed {
    length: usize,
    until: usize,
}

impl<'a> Fences<'a> {
    fn kind(&mut self, line: Line<'a>) -> Kind<'a> {
        if line.start < self.end {
            return Kind::Text;
        }
        let kind = line.kind();
        match kind {
            Kind::Blank => {}
            Kind::Text => self.text(line),
            Kind::Key(_) if self.is_in_entries => self.position = Position::BeforeJson,
            Kind::Section(part) => {
                (self.is_in_entries, self.position) = (part == Some(Part::Entries), Position::Elsewhere);
            }
            Kind::Begin(_) | Kind::End(_) | Kind::Key(_) | Kind::Placeholder => {
                self.position = Position::Elsewhere;
            }
        }
        kind
    }

    fn text(&mut self, line: Line<'a>) {
        // As `body` finds it.
        let is_json_fence = || line.text.trim_ascii_start().starts_with("```");
        match self.position {
            Position::BeforeJson if is_json_fence() => self.position = Position::InJson,
            Position::InJson if is_json_fence() => self.position = Position::Elsewhere,
            Position::InJson => {}
            Position::BeforeJson | Position::Elsewhere => {
                self.position = Position::Elsewhere;
                let end = Fence::of(line.text).and_then(|fence| self.end_of(fence, line.end));
                self.end = end.unwrap_or(self.end);
            }
        }
    }

    /// Where a block ends whose text starts here.
    fn end_of(&mut self, open: Fence, start: usize) -> Option<usize> {
        let known = &mut self.unclosed[usize::from(open.character == b'~')];
        if open.length >= known.length && start <= known.until {
            return None;
        }
        let mut until = usize::MAX;
        for line in lines(&self.text[start..]) {
            if matches!(line.kind(), Kind::Begin(_) | Kind::End(_)) {
                until = start + line.start;
                break;
            }
            if Fence::of(line.text).is_some_and(|fence| fence.ends(open)) {
                return Some(start + line.end);
            }
        }
        *known = Unclosed { length: open.length, until };
        None
    }
}
