//! Rows below each other, without borders.
//!
//! On a terminal a table is never wider than the terminal: texts are shortened first, then details, then names, and what
//! then still has no space is omitted, the least important column first. What a user types is never shortened: if it leaves
//! no space for the rest of its row, that is in the next line. Anywhere else nothing is shortened, and one long cell moves
//! only its own row, so that padding costs little.

use std::borrow::Cow;

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use super::{Styles, Tone, escape};

/// A table while it is filled.
#[derive(Debug)]
pub struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<Cell>>,
}

/// A column: its header, and what happens to it where space is scarce.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    header: &'static str,
    /// The header on a narrow terminal.
    narrow_header: &'static str,
    kind: Kind,
    /// The column with the lowest number is omitted first.
    importance: u8,
    omit_when: OmitWhen,
}

/// How the cells of a column are shortened, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Titles, values, notes, work: shortened first.
    Text,
    /// Projects, paths, worktrees.
    Detail,
    /// Names of agents: shortened last.
    Name,
    /// Short words, numbers and ages: never shortened.
    Fixed,
    /// What a user types: never shortened, never omitted.
    Typed,
}

/// How much columns are shortened: a name is legible where a note is not needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// Texts stay legible, and only long names are shortened.
    Usual,
    /// Texts are shortened to a few characters before names.
    Scarce,
}

/// When a column is omitted on a narrow terminal, whatever the space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OmitWhen {
    Never,
    Always,
    IfAllEqual,
}

/// One field of a row.
#[derive(Clone, Debug)]
pub struct Cell {
    text: String,
    /// The text on a narrow terminal, if that is another one.
    narrow: Option<String>,
    tone: Tone,
    empty: bool,
}

/// Below this many columns a terminal is narrow.
const NARROW: usize = 100;

/// Without a terminal, a cell that is wider than this does not widen its column; nor does a rare long id on a terminal.
const ALIGNED: usize = 40;

/// How much of a name has to be shown.
const LEGIBLE_NAME: usize = 8;

/// The widest column of names on a narrow terminal.
const LONGEST_NAME: usize = 24;

/// What separates columns.
const GAP: usize = 2;

/// What an empty cell shows.
const EMPTY: &str = "--";

impl Column {
    /// What a user types: ids, keys, patterns.
    pub const fn typed(header: &'static str) -> Column {
        Column::new(header, Kind::Typed)
    }

    /// Short words, numbers and ages.
    pub const fn fixed(header: &'static str) -> Column {
        Column::new(header, Kind::Fixed)
    }

    /// Titles, values, notes and work, which are shortened first.
    pub const fn text(header: &'static str) -> Column {
        Column::new(header, Kind::Text)
    }

    /// Projects, paths and worktrees, which are shortened next.
    pub const fn detail(header: &'static str) -> Column {
        Column::new(header, Kind::Detail)
    }

    /// Names of agents and authors, which are shortened last.
    pub const fn name(header: &'static str) -> Column {
        Column::new(header, Kind::Name)
    }

    const fn new(header: &'static str, kind: Kind) -> Column {
        Column { header, narrow_header: header, kind, importance: 0, omit_when: OmitWhen::Never }
    }

    /// How long the column is kept where space is scarce: the lowest number is omitted first.
    #[must_use]
    pub const fn importance(self, importance: u8) -> Column {
        Column { importance, ..self }
    }

    /// With another header on a narrow terminal.
    #[must_use]
    pub const fn or_narrow(self, narrow_header: &'static str) -> Column {
        Column { narrow_header, ..self }
    }

    /// Omitted on a narrow terminal.
    #[must_use]
    pub const fn if_wide(self) -> Column {
        Column { omit_when: OmitWhen::Always, ..self }
    }

    /// Omitted on a narrow terminal if all rows have the same text.
    #[must_use]
    pub const fn if_different(self) -> Column {
        Column { omit_when: OmitWhen::IfAllEqual, ..self }
    }
}

impl Cell {
    /// A text, which is escaped; an empty one is shown as `--`.
    pub fn new(text: impl AsRef<str>) -> Cell {
        let text = escape(text.as_ref());
        let empty = text.is_empty();
        let text = if empty { EMPTY.to_owned() } else { text.into_owned() };
        Cell { text, narrow: None, tone: Tone::Plain, empty }
    }

    /// A text that may be missing.
    pub fn optional(text: Option<impl AsRef<str>>) -> Cell {
        text.map_or_else(|| Cell::new(""), Cell::new)
    }

    /// The word of a status or a priority, in its tone.
    pub fn word(word: &str) -> Cell {
        Cell { tone: Tone::of(word), ..Cell::new(word) }
    }

    /// A text in the tone of a status.
    pub fn in_tone_of(status: &str, text: impl AsRef<str>) -> Cell {
        Cell { tone: Tone::of(status), ..Cell::new(text) }
    }

    /// A directory, of which a narrow terminal shows the last part.
    pub fn directory(path: &str) -> Cell {
        let last = path.trim_end_matches('/').rsplit('/').next().filter(|last| !last.is_empty());
        Cell { narrow: last.map(|last| escape(last).into_owned()), ..Cell::new(path) }
    }

    fn shown(&self, narrow: bool) -> &str {
        self.narrow.as_deref().filter(|_| narrow).unwrap_or(&self.text)
    }
}

/// A column that is shown.
struct VisibleColumn {
    /// Its position in a row.
    index: usize,
    column: Column,
    header: &'static str,
    /// The width of its widest cell.
    natural: usize,
    /// The width of most of its cells.
    usual: usize,
    width: usize,
}

impl VisibleColumn {
    /// The width below which a step shortens other columns first.
    fn least_in(&self, step: Step, terminal: usize) -> usize {
        let least = match (step, self.column.kind) {
            (Step::Usual, Kind::Name) => 20,
            (Step::Scarce, Kind::Text | Kind::Detail) => 8,
            _ => return self.least(terminal),
        };
        least.max(width_of(self.header)).min(self.natural)
    }

    /// The width that the column needs on a terminal of this width.
    fn least(&self, terminal: usize) -> usize {
        let least = match self.column.kind {
            Kind::Text | Kind::Detail => 12,
            Kind::Name => LEGIBLE_NAME,
            Kind::Fixed => self.natural,
            // A few long ids move their own rows instead.
            Kind::Typed => self.usual.min(terminal / 2),
        };
        least.max(width_of(self.header)).min(self.natural)
    }
}

impl Table {
    /// A table without rows.
    pub fn new(columns: impl IntoIterator<Item = Column>) -> Table {
        Table { columns: columns.into_iter().collect(), rows: Vec::new() }
    }

    /// Adds a row with a cell for each column.
    pub fn row(&mut self, cells: impl IntoIterator<Item = Cell>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// The complete table as lines, for a screen of this width.
    pub fn layout(&self, terminal: Option<u16>, styles: Styles) -> String {
        let terminal = terminal.map(usize::from);
        let narrow = terminal.is_some_and(|width| width < NARROW);
        let mut columns = self.shown(narrow, terminal.is_some());
        match terminal {
            Some(width) => fit(&mut columns, width),
            None => columns.iter_mut().for_each(|column| column.width = column.natural),
        }
        let mut text = String::new();
        let header = columns.iter().map(|column| (column.header, Tone::Heading));
        push_row(&mut text, &columns, header, terminal, styles);
        for row in &self.rows {
            let cells = columns.iter().filter_map(|column| row.get(column.index));
            let cells = cells.map(|cell| (cell.shown(narrow), cell.tone));
            push_row(&mut text, &columns, cells, terminal, styles);
        }
        text
    }

    /// The columns that have something to show.
    fn shown(&self, narrow: bool, is_terminal: bool) -> Vec<VisibleColumn> {
        let mut shown = Vec::with_capacity(self.columns.len());
        for (index, &column) in self.columns.iter().enumerate() {
            let cells = || self.rows.iter().filter_map(|row| row.get(index));
            let is_empty = !self.rows.is_empty() && cells().all(|cell| cell.empty);
            let is_omitted = narrow
                && match column.omit_when {
                    OmitWhen::Never => false,
                    OmitWhen::Always => true,
                    OmitWhen::IfAllEqual => {
                        cells().zip(cells().skip(1)).all(|(one, next)| one.text == next.text)
                    }
                };
            if is_empty || is_omitted {
                continue;
            }
            let header = if narrow { column.narrow_header } else { column.header };
            let widths = cells().map(|cell| width_of(cell.shown(narrow)));
            let mut widths: Vec<usize> = widths.collect();
            widths.sort_unstable();
            let usual = widths.get(widths.len().saturating_sub(1) * 3 / 4).copied().unwrap_or(0);
            let aligned = match (is_terminal, column.kind) {
                (false, _) => ALIGNED,
                (true, Kind::Typed) => usual.max(ALIGNED),
                (true, _) => usize::MAX,
            };
            let widest = widths.into_iter().rfind(|width| *width <= aligned).unwrap_or(0);
            let widest = if narrow && column.kind == Kind::Name { widest.min(LONGEST_NAME) } else { widest };
            let natural = widest.max(width_of(header));
            shown.push(VisibleColumn { index, column, header, natural, usual, width: 0 });
        }
        shown
    }
}

/// Gives each column a width, so that all of them fit; omits columns that do not.
fn fit(columns: &mut Vec<VisibleColumn>, terminal: usize) {
    let gaps = |columns: &[VisibleColumn]| GAP * columns.len().saturating_sub(1);
    loop {
        let least: usize = columns.iter().map(|column| column.least(terminal)).sum();
        let droppable = columns.iter().enumerate().filter(|(_, shown)| shown.column.kind != Kind::Typed);
        let unimportant = droppable.min_by_key(|(_, shown)| shown.column.importance);
        match unimportant.map(|(index, _)| index) {
            Some(index) if least + gaps(columns) > terminal => {
                columns.remove(index);
            }
            _ => break,
        }
    }
    for column in columns.iter_mut() {
        column.width = column.natural.min(terminal);
    }
    let used: usize = columns.iter().map(|column| column.width).sum();
    let mut excess = (used + gaps(columns)).saturating_sub(terminal);
    for (step, kind) in [
        (Step::Usual, Kind::Text),
        (Step::Usual, Kind::Detail),
        (Step::Usual, Kind::Name),
        // A long id is complete, in a row that is moved.
        (Step::Usual, Kind::Typed),
        (Step::Scarce, Kind::Detail),
        (Step::Scarce, Kind::Text),
        (Step::Scarce, Kind::Name),
    ] {
        while excess > 0 {
            let wide = columns
                .iter_mut()
                .filter(|shown| shown.column.kind == kind && shown.width > shown.least_in(step, terminal));
            let Some(widest) = wide.max_by_key(|shown| shown.width) else { break };
            widest.width -= 1;
            excess -= 1;
        }
    }
}

/// Adds a row. A cell that is wider than its column moves the following ones; on a terminal the row ends at its edge. If the
/// following ones would lose what they say, they are in the next line instead, below their headers.
fn push_row<'a>(
    text: &mut String,
    columns: &[VisibleColumn],
    cells: impl Iterator<Item = (&'a str, Tone)>,
    terminal: Option<usize>,
    styles: Styles,
) {
    let cells: Vec<_> = cells.collect();
    let mut widths = terminal.map(|terminal| row_widths(columns, &cells, terminal));
    let breaks = terminal
        .zip(widths.as_ref())
        .is_some_and(|(terminal, widths)| loses_cells(columns, &cells, widths, terminal));
    if breaks {
        widths = Some(columns.iter().map(|column| column.width).collect());
    }
    let (mut written, mut start) = (0, 0);
    for (index, (column, (cell, tone))) in columns.iter().zip(cells).enumerate() {
        let begin = if start == 0 { 0 } else { start.max(written + GAP) };
        let cell = match (terminal, &widths) {
            (Some(terminal), Some(widths)) if column.column.kind != Kind::Typed => {
                if begin >= terminal {
                    break;
                }
                cut(cell, widths[index].min(terminal - begin))
            }
            _ => Cow::Borrowed(cell),
        };
        text.extend(std::iter::repeat_n(' ', begin - written));
        written = begin + width_of(&cell);
        if tone == Tone::Plain {
            text.push_str(&cell);
        } else {
            text.push_str(&styles.paint(tone, &cell).to_string());
        }
        start += column.width + GAP;
        if breaks && width_of(&cell) > column.width && index + 1 < columns.len() {
            text.push('\n');
            written = 0;
        }
    }
    text.push('\n');
}

/// Whether a long id leaves so little space that a cell of its row is cut off, or a name is not legible.
fn loses_cells(columns: &[VisibleColumn], cells: &[(&str, Tone)], widths: &[usize], terminal: usize) -> bool {
    let is_illegible = |((shown, (cell, _)), width): ((&VisibleColumn, &(&str, Tone)), &usize)| {
        shown.column.kind == Kind::Name && *width < width_of(cell).min(LEGIBLE_NAME)
    };
    end_of_row(columns, widths) > terminal || columns.iter().zip(cells).zip(widths).any(is_illegible)
}

/// Where a row with cells of these widths ends.
fn end_of_row(columns: &[VisibleColumn], widths: &[usize]) -> usize {
    let (mut written, mut start) = (0, 0);
    for (shown, width) in columns.iter().zip(widths) {
        written = if start == 0 { *width } else { start.max(written + GAP) + width };
        start += shown.width + GAP;
    }
    written
}

/// The widths of the cells of one row. If a long id moves the others beyond the edge, they are shortened in the same order as
/// columns are.
fn row_widths(columns: &[VisibleColumn], cells: &[(&str, Tone)], terminal: usize) -> Vec<usize> {
    let width = |(shown, (cell, _)): (&VisibleColumn, &(&str, Tone))| match shown.column.kind {
        Kind::Typed => width_of(cell),
        Kind::Fixed => width_of(cell).max(shown.width),
        Kind::Text | Kind::Detail | Kind::Name => width_of(cell).min(shown.width),
    };
    let mut widths: Vec<usize> = columns.iter().zip(cells).map(width).collect();
    let is_moved = columns.iter().zip(&widths).any(|(shown, width)| *width > shown.width);
    if !is_moved {
        return widths;
    }
    let aligned =
        columns.iter().map(|shown| shown.width + GAP).sum::<usize>().saturating_sub(GAP).min(terminal);
    for (kind, least, edge) in [
        // The columns behind a text stay in their places if it is still legible.
        (Kind::Text, 10, aligned),
        (Kind::Detail, 10, terminal),
        (Kind::Detail, EMPTY.len(), terminal),
        (Kind::Text, EMPTY.len(), terminal),
        (Kind::Name, EMPTY.len(), terminal),
    ] {
        while end_of_row(columns, &widths) > edge {
            let of_kind = columns.iter().zip(&mut widths).filter(|(shown, _)| shown.column.kind == kind);
            let wide = of_kind.map(|(_, width)| width).filter(|width| **width > least);
            let Some(widest) = wide.max_by_key(|width| **width) else { break };
            *widest -= 1;
        }
    }
    widths
}

/// How many columns of a terminal a text takes.
pub fn width_of(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { text.width() }
}

/// The beginning of a text, which takes at most this many columns; the last one is `…` if there is more.
pub fn cut(text: &str, width: usize) -> Cow<'_, str> {
    if width_of(text) <= width {
        return Cow::Borrowed(text);
    }
    let (mut end, mut taken) = (0, 0);
    for (start, cluster) in text.grapheme_indices(true) {
        let more = taken + width_of(cluster);
        if more + 1 > width {
            break;
        }
        (end, taken) = (start + cluster.len(), more);
    }
    Cow::Owned(format!("{}…", &text[..end]))
}

#[cfg(test)]
mod tests;
