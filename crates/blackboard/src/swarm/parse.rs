//! [`parse`]: entries and notes from the text of a file.

use super::document::{Block, CONTENT_HASH, Kind, Line, Part, body, lines};
use super::fence::classified;
use super::fields::{Known, read_entry};
use super::{Dialect, MAX_ENTRIES, MAX_FILE_BYTES, Note, Parsed};
use crate::text::shown;

/// How many characters of a note are reported.
const NOTE_CHARACTERS: usize = 200;

/// Reads a file in any dialect. Every text can be read: what is no entry is a problem or a note.
///
/// ```
/// let file = "# Swarm Blackboard\n## Knowledge Cache\n### task:1\n{\"value\": 42, \"source_agent\": \"ivy\"}\n\n\
///             Ask Oak about the rest.\n";
/// let parsed = blackboard::swarm::parse(file);
/// assert_eq!((&*parsed.entries[0].key, parsed.entries[0].value.as_str()), ("task:1", "42"));
/// assert_eq!(parsed.notes[0].text, "Ask Oak about the rest.");
/// ```
pub fn parse(text: &str) -> Parsed {
    let mut parser = Parser::new(text);
    if text.len() > MAX_FILE_BYTES {
        let problem = format!("the file has {} bytes; {MAX_FILE_BYTES} are read", text.len());
        parser.parsed.add_problem(1, problem);
        return parser.parsed;
    }
    for (line, kind) in classified(text) {
        parser.line(line, kind);
    }
    parser.end_block(text.len());
    parser.end_note();
    parser.parsed
}

struct Parser<'a> {
    text: &'a str,
    parsed: Parsed,
    /// The text of the heading of the section.
    section: &'a str,
    /// The part that the section is about.
    part: Option<Part>,
    /// Whether the line is between markers.
    is_rendered: bool,
    /// The entry whose body is being read: its heading, line, start, and the start of its body.
    open: Option<Block<'a>>,
    note: Option<Note>,
    /// Whether the limit of entries was reached and reported.
    is_full: bool,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str) -> Parser<'a> {
        Parser {
            text,
            parsed: Parsed::default(),
            section: "",
            part: None,
            is_rendered: false,
            open: None,
            note: None,
            is_full: false,
        }
    }

    fn line(&mut self, line: Line<'a>, kind: Kind<'a>) {
        if !matches!(kind, Kind::Text | Kind::Blank) {
            self.end_block(line.start);
        }
        match kind {
            Kind::Begin(_) => self.is_rendered = true,
            Kind::End(_) => self.is_rendered = false,
            Kind::Section(part) => {
                // A marker that was not closed is closed by the next section.
                self.is_rendered = false;
                self.section = line.text.trim_start_matches('#').trim_ascii();
                self.part = part;
                self.parsed.is_swarm_blackboard |= part == Some(Part::Entries) || line.is_title();
                if line.is_title() {
                    self.section = "";
                }
            }
            Kind::Key(heading) if self.part == Some(Part::Entries) => {
                let (start, body) = (line.start, (line.end, line.end));
                self.open = Some(Block { heading, line: line.number, start, body });
            }
            Kind::Blank | Kind::Placeholder => {}
            Kind::Text | Kind::Key(_) if self.open.is_some() => {}
            Kind::Text if self.section.is_empty() && line.is_header() => {
                if line.text.starts_with(CONTENT_HASH) {
                    self.parsed.dialect = Dialect::C;
                }
            }
            Kind::Text | Kind::Key(_) if self.is_rendered => {}
            Kind::Text | Kind::Key(_) => return self.add_to_note(line.number, line.text),
        }
        if self.open.is_none() {
            self.end_note();
        }
    }

    /// Adds a line to the note that it continues.
    fn add_to_note(&mut self, number: usize, text: &str) {
        let section = self.section;
        let note = self.note.get_or_insert_with(|| Note {
            section: shown(section),
            line: number,
            lines: 0,
            text: text.trim_ascii().chars().take(NOTE_CHARACTERS).collect(),
        });
        note.lines = number + 1 - note.line;
    }

    fn end_note(&mut self) {
        if let Some(note) = self.note.take() {
            self.parsed.add_note(note);
        }
    }

    /// Reads the entry that ends here.
    fn end_block(&mut self, end: usize) {
        let Some(block) = self.open.take() else { return };
        let whole = &self.text[block.body.0..end];
        let name = || format!("entry \"{}\"", shown(block.heading));
        if self.parsed.entries.len() >= MAX_ENTRIES {
            self.parsed.unread += 1;
            if !std::mem::replace(&mut self.is_full, true) {
                self.parsed.add_problem(block.line, format!("only {MAX_ENTRIES} entries are read"));
            }
            return;
        }
        let read = body(whole).and_then(|body| {
            let known = Known { key: block.heading, line: block.line, may_be_value: true };
            read_entry(body.json, &known).map(|read| (body, read))
        });
        match read {
            Ok((body, read)) => {
                self.parsed.dialect = match self.parsed.dialect {
                    _ if body.is_fenced => Dialect::C,
                    Dialect::A if read.has_camel_case => Dialect::B,
                    known => known,
                };
                for problem in read.problems {
                    self.parsed.add_problem(block.line, format!("{}: {problem}", name()));
                }
                self.parsed.entries.push(read.entry);
                self.rest_of_block(block, whole, body.end);
            }
            Err(problem) => self.parsed.add_unread(block.line, format!("{}: {problem}", name())),
        }
    }

    /// What people wrote below an entry.
    fn rest_of_block(&mut self, block: Block<'a>, whole: &str, end: usize) {
        let rest = &whole[end..];
        if rest.trim_ascii().is_empty() {
            return;
        }
        let first = block.line + 1 + whole[..end].matches('\n').count();
        for line in lines(rest) {
            if line.text.trim_ascii().is_empty() {
                self.end_note();
            } else {
                self.add_to_note(first + line.number - 1, line.text);
            }
        }
        self.end_note();
    }
}
