//! [`render`]: the text of a file from a view of the board and from the file as it is.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::ops::Range;

use serde::Serialize;
use serde_json::Value as Json;
use uuid::Uuid;

use super::document::{Block, CONTENT_HASH, Kind, LAST_UPDATED, Line, Part, TABLE_HEAD, TITLE, body, lines};
use super::fence::classified;
use super::fields::{Known, heading_of, read_entry, write_entry, written_time};
use super::{Dialect, FileEntry, MAX_FILE_BYTES, SwarmView};
use crate::clock::Timestamp;
use crate::entry::{LOCK_PREFIX, check_key};
use crate::error::{Code, Error, Refusal, Result};
use crate::hint::Hint;
use crate::text::escape_for_terminal;

/// How many characters a cell of a table has at most. The entry itself has the complete text.
const CELL_CHARACTERS: usize = 200;

/// The result of a render.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rendered {
    /// The complete text of the file.
    pub text: String,
    /// The entries of the file that were not rendered and stay where they are: the board has other ones, or none.
    pub left: Vec<LeftEntry>,
}

/// An entry of a file that the board does not have like this.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LeftEntry {
    /// Its key.
    pub key: String,
    /// Its line before the render.
    pub line: usize,
    /// Why it stays.
    pub reason: LeftReason,
}

impl LeftEntry {
    fn new(block: &Block<'_>, reason: LeftReason) -> LeftEntry {
        LeftEntry { key: block.heading.to_owned(), line: block.line, reason }
    }
}

/// Why an entry of a file stays where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LeftReason {
    /// The board does not have it. An import adds it.
    Missing,
    /// The board has another value. An import that keeps those of the file takes this one.
    Different,
    /// The board refuses its key. An import may escape it.
    RefusedKey,
    /// It is a lock in the form of other programs, and is not imported.
    Lock,
    /// It has expired, and is not imported.
    Expired,
    /// It cannot be read.
    Unreadable,
    /// It is also between the markers, for example because it was imported. Here it would not follow the board.
    Repeated,
}

/// The file with the state of the board between its markers. All other text stays byte for byte.
///
/// An empty file gets all sections. A file of another program gets markers in its sections; its entries that the board has
/// with the same value are then between the markers and nowhere else. A text that is no `swarm-blackboard.md`, and one whose
/// markers are incomplete, is refused. So is a scope that the board does not know, if the file has entries of another one.
///
/// ```
/// use blackboard::swarm::{Dialect, SwarmView, render};
///
/// let empty = SwarmView::default();
/// let first = render(&empty, Dialect::A, "")?.text;
/// let edited = first.replace("## Execution History", "## Execution History\nDeployed by hand on Monday.");
/// assert_eq!(render(&empty, Dialect::A, &edited)?.text, edited);
/// assert!(render(&empty, Dialect::A, "# My shopping list\n").is_err());
/// # Ok::<(), blackboard::Error>(())
/// ```
pub fn render(view: &SwarmView, dialect: Dialect, existing: &str) -> Result<Rendered> {
    if existing.len() > MAX_FILE_BYTES {
        let message = format!("the file has {} bytes; {MAX_FILE_BYTES} are allowed", existing.len());
        return Err(Error::invalid(message));
    }
    // Before the blocks, which cost more: a refused render is repeated until the file is repaired.
    let layout = if existing.trim_ascii().is_empty() { None } else { Some(Layout::of(existing)?) };
    let blocks = || Part::ALL.map(|part| block_of(part, view, dialect));
    let Some(layout) = layout else {
        let blocks = blocks();
        let header = header_of(view, dialect, &blocks[1]);
        let sections =
            Part::ALL.iter().zip(&blocks).map(|(part, block)| format!("\n{}\n{block}", part.heading()));
        let text = format!("{TITLE}\n{header}{}", sections.collect::<String>());
        return Ok(Rendered { text, left: Vec::new() });
    };
    if view.is_unknown_scope && layout.rendered_entries > 0 {
        return Err(unknown_scope(&view.scope, layout.rendered_entries));
    }
    let blocks = blocks();
    let header = header_of(view, dialect, &blocks[1]);
    let mut edits = vec![layout.header_edit(existing, &header)];
    // A part without a section gets one at the end of the file, after what belongs to the last section there.
    let (there, missing): (Vec<_>, Vec<_>) =
        Part::ALL.into_iter().zip(&blocks).partition(|(part, _)| layout.has(*part));
    edits.extend(there.into_iter().chain(missing).map(|(part, block)| layout.edit(existing, part, block)));
    let has_markers = layout.parts.iter().any(|part| part.rendered.is_some());
    let mut left = Vec::new();
    let known: BTreeMap<&str, &FileEntry> = view.entries.iter().map(|entry| (&*entry.key, entry)).collect();
    for block in &layout.foreign {
        match superseded(existing, block, view, &known) {
            Ok(range) if !has_markers => edits.push((range, String::new())),
            // The person who wrote an entry beside the markers deletes it.
            Ok(_) => left.push(LeftEntry::new(block, LeftReason::Repeated)),
            Err(reason) => left.push(LeftEntry::new(block, reason)),
        }
    }
    edits.extend(layout.empty_table.filter(|_| !has_markers).map(|range| (range, String::new())));
    if has_carriage_returns(existing) {
        for (_, new) in &mut edits {
            *new = new.replace('\n', "\r\n");
        }
    }
    Ok(Rendered { text: apply(existing, edits), left })
}

/// Whether the lines of a file end with a carriage return, too. Its first line decides.
fn has_carriage_returns(text: &str) -> bool {
    text.split_inclusive('\n').next().is_some_and(|line| line.ends_with("\r\n"))
}

/// A replacement of a range of the text.
type Edit = (Range<usize>, String);

/// Applies edits, whose ranges do not overlap. Those at the same position are applied in their order.
fn apply(text: &str, mut edits: Vec<Edit>) -> String {
    edits.sort_by_key(|(range, _)| (range.start, range.end));
    let mut result =
        String::with_capacity(text.len() + edits.iter().map(|(_, new)| new.len()).sum::<usize>());
    let mut done = 0;
    for (range, new) in edits {
        result.push_str(&text[done.min(range.start)..range.start]);
        result.push_str(&new);
        done = range.end.max(done);
    }
    result.push_str(&text[done..]);
    result
}

/// Where the parts of an existing file are.
struct Layout<'a> {
    /// The lines that programs write below the title; an empty range if there are none.
    header: Range<usize>,
    parts: [PartLocation; 4],
    /// Entries that are not between markers.
    foreign: Vec<Block<'a>>,
    /// The head of a table of tasks that has no rows.
    empty_table: Option<Range<usize>>,
    /// How many entries are between markers.
    rendered_entries: usize,
    length: usize,
}

/// Where one part is.
#[derive(Clone, Debug, Default)]
struct PartLocation {
    /// Between the markers.
    rendered: Option<Range<usize>>,
    /// The end of its section, without the blank lines there.
    section_end: Option<usize>,
    /// Whether the section has only its heading.
    is_empty: bool,
}

impl<'a> Layout<'a> {
    fn of(text: &'a str) -> Result<Layout<'a>> {
        let mut layout = Layout {
            header: 0..0,
            parts: Default::default(),
            foreign: Vec::new(),
            empty_table: None,
            rendered_entries: 0,
            length: text.len(),
        };
        let mut reader = LayoutReader { layout: &mut layout, open: None, section: None, title: None };
        let mut has_title = false;
        let mut previous = None;
        for (line, kind) in classified(text) {
            let is_first = !has_title && kind != Kind::Blank;
            if is_first
                && !(line.is_title() || line.text.trim_start_matches('\u{feff}').trim_ascii_end() == TITLE)
            {
                return Err(not_swarm());
            }
            has_title |= is_first;
            reader.line(line, kind, previous)?;
            previous = Some(line);
        }
        if let Some((part, _, number)) = reader.open {
            return Err(broken_marker(number, &format!("the marker of {} has no end", name(part))));
        }
        layout.end_blocks(text.len());
        Ok(layout)
    }

    /// Ends the body of the last foreign entry.
    fn end_blocks(&mut self, end: usize) {
        if let Some(last) = self.foreign.last_mut()
            && last.body.1 == last.body.0
        {
            last.body.1 = end;
        }
    }

    /// Whether the file has a section or markers of this part.
    fn has(&self, part: Part) -> bool {
        let PartLocation { rendered, section_end, .. } = &self.parts[part as usize];
        rendered.is_some() || section_end.is_some()
    }

    fn header_edit(&self, text: &str, header: &str) -> Edit {
        let line_break = if text[..self.header.start].ends_with('\n') { "" } else { "\n" };
        (self.header.clone(), format!("{line_break}{header}"))
    }

    /// Replaces what is between the markers, or adds it with its markers.
    fn edit(&self, text: &str, part: Part, block: &str) -> Edit {
        let location = &self.parts[part as usize];
        if let Some(range) = &location.rendered {
            let inner = block.strip_prefix(part.begin()).and_then(|rest| rest.strip_prefix('\n'));
            let inner =
                inner.and_then(|rest| rest.strip_suffix('\n')).and_then(|rest| rest.strip_suffix(part.end()));
            return (range.clone(), inner.unwrap_or_default().to_owned());
        }
        let at = location.section_end.unwrap_or(self.length);
        let line_break = if text[..at].ends_with('\n') { "" } else { "\n" };
        let before = match location.section_end {
            Some(_) if location.is_empty => line_break.to_owned(),
            Some(_) => format!("{line_break}\n"),
            None => format!("{line_break}\n{}\n", part.heading()),
        };
        (at..at, before + block)
    }
}

struct LayoutReader<'l, 'a> {
    layout: &'l mut Layout<'a>,
    /// The marker whose end is missing: its part, where its text starts, its line.
    open: Option<(Part, usize, usize)>,
    section: Option<Part>,
    /// The end of the title line, while the lines below it are read.
    title: Option<usize>,
}

impl<'a> LayoutReader<'_, 'a> {
    fn line(&mut self, line: Line<'a>, kind: Kind<'a>, previous: Option<Line<'a>>) -> Result<()> {
        if line.number == 1 || (line.is_title() && matches!(kind, Kind::Section(_))) {
            self.layout.header = line.end..line.end;
            self.title = Some(line.end);
        } else if self.title.is_some() && line.is_header() {
            self.layout.header.end = line.end;
            return Ok(());
        } else {
            self.title = None;
        }
        if !matches!(kind, Kind::Text | Kind::Blank) {
            self.layout.end_blocks(line.start);
        }
        match kind {
            Kind::Begin(part) => self.begin(part, line)?,
            Kind::End(part) => self.end(part, line)?,
            Kind::Section(part) => {
                if let Some((open, _, number)) = self.open {
                    return Err(broken_marker(number, &format!("the marker of {} has no end", name(open))));
                }
                self.section = part.filter(|part| self.layout.parts[*part as usize].section_end.is_none());
                if let Some(part) = self.section {
                    let location = &mut self.layout.parts[part as usize];
                    (location.section_end, location.is_empty) = (Some(line.end), true);
                }
                return Ok(());
            }
            Kind::Key(heading) if self.section == Some(Part::Entries) && self.open.is_none() => {
                let body = (line.end, line.end);
                self.layout.foreign.push(Block { heading, line: line.number, start: line.start, body });
            }
            Kind::Key(_) if matches!(self.open, Some((Part::Entries, ..))) => {
                self.layout.rendered_entries += 1;
            }
            Kind::Placeholder if line.text.trim_ascii() == TABLE_HEAD[1] && self.open.is_none() => {
                let head = previous.filter(|line| line.text.trim_ascii() == TABLE_HEAD[0]);
                self.layout.empty_table = head.map(|head| head.start..line.end);
            }
            Kind::Text if line.text.starts_with('|') => self.layout.empty_table = None,
            Kind::Key(_) | Kind::Blank | Kind::Placeholder | Kind::Text => {}
        }
        if let Some(part) = self.section
            && kind != Kind::Blank
        {
            let location = &mut self.layout.parts[part as usize];
            (location.section_end, location.is_empty) = (Some(line.end), false);
        }
        Ok(())
    }

    fn begin(&mut self, part: Part, line: Line<'_>) -> Result<()> {
        if let Some((open, _, number)) = self.open {
            return Err(broken_marker(number, &format!("the marker of {} has no end", name(open))));
        }
        if self.layout.parts[part as usize].rendered.is_some() {
            return Err(broken_marker(line.number, &format!("{} have two pairs of markers", name(part))));
        }
        self.open = Some((part, line.end, line.number));
        Ok(())
    }

    fn end(&mut self, part: Part, line: Line<'_>) -> Result<()> {
        match self.open.take() {
            Some((open, start, _)) if open == part => {
                self.layout.parts[part as usize].rendered = Some(start..line.start);
                Ok(())
            }
            _ => Err(broken_marker(line.number, &format!("the marker of {} has no beginning", name(part)))),
        }
    }
}

fn name(part: Part) -> &'static str {
    match part {
        Part::Tasks => "the tasks",
        Part::Entries => "the entries",
        Part::Signals => "the signals",
        Part::History => "the events",
    }
}

fn not_swarm() -> Error {
    let message = format!("the file is not a swarm blackboard: it does not begin with \"{TITLE}\"");
    Refusal::new(Code::InvalidValue, message).hint("name another file, or an empty one").into()
}

fn unknown_scope(scope: &str, entries: usize) -> Error {
    let entries = if entries == 1 { "1 entry".to_owned() } else { format!("{entries} entries") };
    let message = format!(
        "scope {scope} has neither policies nor entries, and the file shows {entries} of another scope"
    );
    Refusal::new(Code::ScopeNotFound, message).hint(Hint::ListScopes).into()
}

fn broken_marker(line: usize, what: &str) -> Error {
    let message = format!("line {line}: {what}");
    let hint = "restore the marker, or delete both markers and what is between them";
    Refusal::new(Code::InvalidValue, message).hint(hint).into()
}

/// Where an entry of another program is in the text, if the board has it with the same value.
fn superseded(
    text: &str,
    block: &Block<'_>,
    view: &SwarmView,
    known: &BTreeMap<&str, &FileEntry>,
) -> Result<Range<usize>, LeftReason> {
    let whole = &text[block.body.0..block.body.1];
    let body = body(whole).map_err(|_| LeftReason::Unreadable)?;
    let read = read_entry(body.json, &Known { key: block.heading, line: block.line, may_be_value: true });
    let read = read.map_err(|_| LeftReason::Unreadable)?.entry;
    let current = known.get(&*read.key);
    if !current.is_some_and(|current| current.value.says_the_same_as(&read.value)) {
        return Err(why_left(&read, current.is_some(), view));
    }
    // The rest of its last line and the blank lines below it go with it, unless the section ends there.
    let rest = &whole[body.end..];
    let end = match lines(rest).find(|line| !line.text.trim_ascii().is_empty()) {
        Some(after) => after.start,
        None if text[block.body.1..].starts_with("### ") => rest.len(),
        None => lines(rest).next().map_or(0, |line| if body.is_fenced { 0 } else { line.end }),
    };
    Ok(block.start..block.body.0 + body.end + end)
}

/// Why an entry stays that the board does not have with this value.
fn why_left(entry: &FileEntry, is_on_board: bool, view: &SwarmView) -> LeftReason {
    let expires = entry.timestamp.zip(entry.ttl).map(|(time, ttl)| time.plus(ttl));
    if entry.key.starts_with(LOCK_PREFIX) {
        LeftReason::Lock
    } else if expires.is_some_and(|expires| expires <= view.time) {
        LeftReason::Expired
    } else if is_on_board {
        LeftReason::Different
    } else if check_key(&view.scope, &entry.key).is_err() {
        LeftReason::RefusedKey
    } else {
        LeftReason::Missing
    }
}

/// The lines below the title.
fn header_of(view: &SwarmView, dialect: Dialect, entries: &str) -> String {
    let updated = match view.events.last() {
        Some(event) => written_time(event.timestamp, dialect),
        None => "never".to_owned(),
    };
    let mut header = format!("{LAST_UPDATED} {updated}\n");
    if dialect == Dialect::C {
        let digest = Uuid::new_v5(&Uuid::NAMESPACE_OID, entries.as_bytes()).simple().to_string();
        let _ = writeln!(header, "{CONTENT_HASH} {}", &digest[..16]);
    }
    header
}

/// The text of a part with its markers.
fn block_of(part: Part, view: &SwarmView, dialect: Dialect) -> String {
    let mut text = format!("{}\n", part.begin());
    match part {
        Part::Tasks => tasks(view, &mut text),
        Part::Entries => entries(view, dialect, &mut text),
        Part::Signals => signals(view, &mut text),
        Part::History => history(view, &mut text),
    }
    text.push_str(part.end());
    text.push('\n');
    text
}

fn entries(view: &SwarmView, dialect: Dialect, text: &mut String) {
    for entry in &view.entries {
        let _ = writeln!(text, "### {}", heading_of(&entry.key));
        if dialect == Dialect::C {
            text.push_str("```json\n");
        }
        write_entry(entry, dialect, text);
        text.push_str(if dialect == Dialect::C { "\n```\n\n" } else { "\n\n" });
    }
}

fn tasks(view: &SwarmView, text: &mut String) {
    let _ = writeln!(text, "{}\n{}", TABLE_HEAD[0], TABLE_HEAD[1]);
    for (id, entry) in with_prefix(view, "task:") {
        let value = members(entry);
        let started = field(&value, &["started_at", "startedAt"])
            .or_else(|| entry.timestamp.map(|time| time.to_string()))
            .unwrap_or_default();
        row(
            text,
            [
                id,
                &field(&value, &["assigned_to", "assignedTo", "agent", "for"])
                    .or_else(|| entry.author.clone())
                    .unwrap_or_default(),
                &field(&value, &["status"]).unwrap_or_default(),
                &started,
                &field(&value, &["description", "instruction", "title"]).unwrap_or_default(),
            ],
        );
    }
    for item in &view.work {
        let since = item.claimed_at.map(|time| time.to_string()).unwrap_or_default();
        let holder = item.claimed_by_name.as_deref().or(item.claimed_by.as_deref()).unwrap_or_default();
        row(text, [&item.item_id, holder, item.status.as_str(), &since, &item.title]);
    }
}

fn row(text: &mut String, cells: [&str; 5]) {
    let [id, agent, status, started, description] = cells.map(cell);
    let _ = writeln!(text, "| {id} | {agent} | {status} | {started} | {description} |");
}

fn signals(view: &SwarmView, text: &mut String) {
    for (name, entry) in with_prefix(view, "signal:") {
        let value = members(entry);
        let status = field(&value, &["status"]).unwrap_or_else(|| entry.value.as_str().to_owned());
        let task = field(&value, &["current_task", "currentTask"]).map(|task| format!(", {}", cell(&task)));
        let _ = writeln!(
            text,
            "- {}: {}{} ({})",
            cell(name),
            cell(&status),
            task.unwrap_or_default(),
            origin(entry)
        );
    }
}

/// Traces and events, by time.
fn history(view: &SwarmView, text: &mut String) {
    let mut lines: Vec<(Timestamp, String)> = Vec::new();
    for (id, entry) in with_prefix(view, "trace:") {
        let value = members(entry);
        let action = field(&value, &["action"]).unwrap_or_else(|| entry.value.as_str().to_owned());
        let status = field(&value, &["status"]).map(|status| format!(", {}", cell(&status)));
        let line = format!(
            "- {} trace {}: {}{}",
            origin(entry),
            cell(id),
            cell(&action),
            status.unwrap_or_default()
        );
        lines.push((entry.timestamp.unwrap_or(Timestamp::EPOCH), line));
    }
    for event in &view.events {
        let (time, kind) = (event.timestamp, event.event_type.as_str());
        lines.push((time, format!("- {time} {}: {}", cell(kind), cell(&event.summary))));
    }
    lines.sort_by_key(|(time, _)| *time);
    for (_, line) in lines {
        text.push_str(&line);
        text.push('\n');
    }
}

/// The author of an entry and its time.
fn origin(entry: &FileEntry) -> String {
    let author = cell(entry.author.as_deref().unwrap_or_default());
    match entry.timestamp {
        Some(time) => format!("{time} {author}"),
        None => author,
    }
}

/// The entries whose keys start with a prefix, with the rest of the key.
fn with_prefix<'v>(view: &'v SwarmView, prefix: &'v str) -> impl Iterator<Item = (&'v str, &'v FileEntry)> {
    view.entries.iter().filter_map(move |entry| entry.key.strip_prefix(prefix).map(|rest| (rest, entry)))
}

/// The value, if it is an object that a person would read.
fn members(entry: &FileEntry) -> Json {
    const LARGE: usize = 64 * 1024;
    let json = entry.value.as_str();
    if json.len() > LARGE { Json::Null } else { serde_json::from_str(json).unwrap_or_default() }
}

/// The first of these members that has text.
fn field(value: &Json, names: &[&str]) -> Option<String> {
    names.iter().find_map(|name| match value.get(name)? {
        Json::String(text) => Some(text.clone()),
        Json::Null => None,
        other => Some(other.to_string()),
    })
}

/// A text that can neither end a cell or a line nor begin markup.
fn cell(text: &str) -> String {
    let mut cell = String::with_capacity(text.len().min(CELL_CHARACTERS) + 8);
    for (index, character) in escape_for_terminal(text).chars().enumerate() {
        if index == CELL_CHARACTERS {
            cell.push('…');
            break;
        }
        match character {
            '|' | '`' | '*' | '[' | ']' => {
                cell.push('\\');
                cell.push(character);
            }
            '<' => cell.push_str("&lt;"),
            '&' => cell.push_str("&amp;"),
            _ => cell.push(character),
        }
    }
    cell
}
