//! The structure of the file: lines, headings, and the markers around what was rendered.
//!
//! Nothing in rendered text can look like a heading or a marker. A JSON object is on one line that starts with `{`, rows of
//! tables start with `|`, other lines with `-`, and the heading of an entry escapes a key that looks like a marker.

/// The first line of the file.
pub(super) const TITLE: &str = "# Swarm Blackboard";

/// The beginnings of the two lines below the title.
pub(super) const LAST_UPDATED: &str = "Last Updated:";
pub(super) const CONTENT_HASH: &str = "Content Hash:";

/// The first two lines of the table of tasks.
pub(super) const TABLE_HEAD: [&str; 2] = [
    "| TaskID | Agent | Status | Started | Description |",
    "|--------|-------|--------|---------|-------------|",
];

/// What other programs write into empty sections.
const PLACEHOLDERS: [&str; 3] = [
    "<!-- Cached results from agent operations -->",
    "<!-- Agent availability status -->",
    "<!-- Chronological log of completed tasks -->",
];

/// A part of the file that is rendered, in the order of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Tasks,
    Entries,
    Signals,
    History,
}

impl Part {
    pub(super) const ALL: [Part; 4] = [Part::Tasks, Part::Entries, Part::Signals, Part::History];

    /// The line that starts its section.
    pub(super) const fn heading(self) -> &'static str {
        match self {
            Part::Tasks => "## Active Tasks",
            Part::Entries => "## Knowledge Cache",
            Part::Signals => "## Coordination Signals",
            Part::History => "## Execution History",
        }
    }

    /// The line before what was rendered.
    pub(super) const fn begin(self) -> &'static str {
        match self {
            Part::Tasks => "<!-- blackboard:begin tasks -->",
            Part::Entries => "<!-- blackboard:begin entries -->",
            Part::Signals => "<!-- blackboard:begin signals -->",
            Part::History => "<!-- blackboard:begin history -->",
        }
    }

    /// The line after what was rendered. Below entries it is a heading: other programs read the text of an entry up to the next
    /// heading, and could not read the last one otherwise.
    pub(super) const fn end(self) -> &'static str {
        match self {
            Part::Tasks => "<!-- blackboard:end tasks -->",
            Part::Entries => "### <!-- blackboard:end entries -->",
            Part::Signals => "<!-- blackboard:end signals -->",
            Part::History => "<!-- blackboard:end history -->",
        }
    }
}

/// A line, without its line break.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line<'a> {
    /// Its number, from 1 on.
    pub(super) number: usize,
    /// Where it starts in the text.
    pub(super) start: usize,
    /// Where the next one starts.
    pub(super) end: usize,
    pub(super) text: &'a str,
}

/// What a line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind<'a> {
    Begin(Part),
    End(Part),
    /// A heading of the first or second level, which starts a section: the part that it is about, if it is one of ours.
    Section(Option<Part>),
    /// A heading of the third level: its text.
    Key(&'a str),
    Blank,
    /// Written by programs: it says nothing.
    Placeholder,
    Text,
}

/// The lines of a text.
pub(super) fn lines(text: &str) -> impl Iterator<Item = Line<'_>> {
    let mut start = 0;
    text.split_inclusive('\n').enumerate().map(move |(index, complete)| {
        let line = complete.strip_suffix('\n').unwrap_or(complete);
        let line = line.strip_suffix('\r').unwrap_or(line);
        let from = start;
        start += complete.len();
        Line { number: index + 1, start: from, end: start, text: line }
    })
}

impl<'a> Line<'a> {
    pub(super) fn kind(self) -> Kind<'a> {
        // Most lines are the JSON of an entry.
        if !self.text.starts_with(['#', '<', '|', ' ', '\t']) && !self.text.is_empty() {
            return Kind::Text;
        }
        let text = self.text.trim_ascii();
        if text.is_empty() {
            return Kind::Blank;
        }
        for part in Part::ALL {
            if text == part.begin() {
                return Kind::Begin(part);
            }
            if text == part.end() {
                return Kind::End(part);
            }
        }
        if PLACEHOLDERS.contains(&text) || TABLE_HEAD.contains(&text) {
            return Kind::Placeholder;
        }
        if let Some(key) = self.text.strip_prefix("### ") {
            return Kind::Key(key);
        }
        if self.text.starts_with("## ") || self.text.starts_with("# ") {
            let part = Part::ALL.into_iter().find(|part| text == part.heading());
            return Kind::Section(part);
        }
        Kind::Text
    }

    /// Whether it belongs to the lines that programs write below the title.
    pub(super) fn is_header(self) -> bool {
        self.text.starts_with(LAST_UPDATED) || self.text.starts_with(CONTENT_HASH)
    }

    pub(super) fn is_title(self) -> bool {
        self.text.trim_ascii_end() == TITLE
    }
}

/// An entry in the text: its heading, and where it ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Block<'a> {
    /// The text of the heading.
    pub(super) heading: &'a str,
    /// The line of the heading.
    pub(super) line: usize,
    /// Where the heading starts in the text.
    pub(super) start: usize,
    /// Where its body starts and ends: up to the next heading or marker.
    pub(super) body: (usize, usize),
}

/// The JSON in the body of an entry.
#[derive(Clone, Copy, Debug)]
pub(super) struct Body<'a> {
    pub(super) json: &'a str,
    /// Whether it is in a fenced block.
    pub(super) is_fenced: bool,
    /// Where in the body the JSON and its fence end.
    pub(super) end: usize,
}

/// The JSON of a body: the fenced block at its beginning, or the first JSON value. The rest is not a part of the entry.
pub(super) fn body(text: &str) -> Result<Body<'_>, String> {
    let first = lines(text).find(|line| !line.text.trim_ascii().is_empty());
    let Some(first) = first else { return Err("it has no JSON below it".to_owned()) };
    if first.text.trim_ascii_start().starts_with("```") {
        let closing = lines(&text[first.end..]).find(|line| line.text.trim_ascii_start().starts_with("```"));
        let (json_end, end) = match closing {
            Some(closing) => (first.end + closing.start, first.end + closing.end),
            // A block that is not closed ends with the entry.
            None => (text.len(), text.len()),
        };
        return Ok(Body { json: text[first.end..json_end].trim_ascii(), is_fenced: true, end });
    }
    let mut values = serde_json::Deserializer::from_str(&text[first.start..]).into_iter();
    match values.next() {
        Some(Ok(json)) => {
            let json: &serde_json::value::RawValue = json;
            Ok(Body { json: json.get(), is_fenced: false, end: first.start + values.byte_offset() })
        }
        Some(Err(error)) => Err(format!("the text below it is not JSON ({})", without_position(&error))),
        None => Err("it has no JSON below it".to_owned()),
    }
}

/// What the parser found, without its line and column, which are not those of the file.
pub(super) fn without_position(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.rsplit_once(" at line ") {
        Some((what, _)) => what.to_owned(),
        None => text,
    }
}
