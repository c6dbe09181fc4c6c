//! Rows below each other, without borders.
//!
//! On a terminal a table is never wider than the terminal: texts are shortened first, then details, then names, and what
//! then still has no space is omitted, the least important column first. What a user types is never shortened. Anywhere
//! else nothing is shortened, and one long cell moves only its own row, so that padding costs little.

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
            Kind::Name => 8,
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

/// Adds a line. A cell that is wider than its column moves the following ones; on a terminal the row ends at its edge.
fn push_row<'a>(
    text: &mut String,
    columns: &[VisibleColumn],
    cells: impl Iterator<Item = (&'a str, Tone)>,
    terminal: Option<usize>,
    styles: Styles,
) {
    let cells: Vec<_> = cells.collect();
    let widths = terminal.map(|terminal| row_widths(columns, &cells, terminal));
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
    }
    text.push('\n');
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
    let end = |widths: &[usize]| {
        let (mut written, mut start) = (0, 0);
        for (shown, width) in columns.iter().zip(widths) {
            written = if start == 0 { *width } else { start.max(written + GAP) + width };
            start += shown.width + GAP;
        }
        written
    };
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
        while end(&widths) > edge {
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
mod tests {
    use super::*;

    const PLAIN: Styles = Styles::new(false);

    fn items() -> Table {
        let mut table = Table::new([
            Column::typed("ITEM"),
            Column::text("TITLE").importance(5),
            Column::detail("PROJECT").importance(1).if_different(),
            Column::fixed("STATUS").importance(6),
            Column::fixed("PRIORITY").or_narrow("PRI").importance(3),
            Column::name("CLAIMED BY").importance(4),
            Column::fixed("AGE").importance(2),
        ]);
        for [item, title, status, priority, holder, age] in [
            ["design-schema", "Design local blackboard SQL schema", "claimed", "P1", "Ivy", "47m"],
            ["post-proposal", "Post proposal to issue #78", "blocked (2)", "P2", "", "2h"],
            [
                "gh:mellanon/pai-collab#77",
                "Draft response to change awareness discussion",
                "available",
                "P3",
                "",
                "3d",
            ],
        ] {
            table.row([
                Cell::new(item),
                Cell::new(title),
                Cell::new("pai-collab"),
                Cell::word(status),
                Cell::word(priority),
                Cell::new(holder),
                Cell::new(age),
            ]);
        }
        table
    }

    #[test]
    fn narrow_table_shortens_texts_and_omits_a_constant_project() {
        assert_eq!(
            items().layout(Some(80), PLAIN),
            "ITEM                       TITLE               STATUS       PRI  CLAIMED BY  AGE\n\
             design-schema              Design local blac…  claimed      P1   Ivy         47m\n\
             post-proposal              Post proposal to …  blocked (2)  P2   --          2h\n\
             gh:mellanon/pai-collab#77  Draft response to…  available    P3   --          3d\n"
        );
    }

    #[test]
    fn wide_table_has_all_columns() {
        assert_eq!(
            items().layout(Some(120), PLAIN),
            "ITEM                       TITLE                                      PROJECT     STATUS       PRIORITY  CLAIMED BY  AGE\n\
             design-schema              Design local blackboard SQL schema         pai-collab  claimed      P1        Ivy         47m\n\
             post-proposal              Post proposal to issue #78                 pai-collab  blocked (2)  P2        --          2h\n\
             gh:mellanon/pai-collab#77  Draft response to change awareness discu…  pai-collab  available    P3        --          3d\n"
        );
    }

    #[test]
    fn piped_table_shortens_nothing_and_a_long_cell_moves_only_its_row() {
        testkit::limit_test();
        let mut table = Table::new([Column::text("NOTE"), Column::fixed("AGE")]);
        table.row([Cell::new("short"), Cell::new("1s")]);
        table.row([Cell::new("x".repeat(ALIGNED)), Cell::new("2s")]);
        table.row([Cell::new("y".repeat(ALIGNED + 1)), Cell::new("3s")]);
        let expected = format!(
            "{:40}  AGE\n{:40}  1s\n{}  2s\n{}  3s\n",
            "NOTE",
            "short",
            "x".repeat(40),
            "y".repeat(41)
        );
        assert_eq!(table.layout(None, PLAIN), expected);
    }

    #[test]
    fn table_is_never_wider_than_its_terminal() {
        for width in 26..200 {
            for line in items().layout(Some(width), PLAIN).lines() {
                assert!(width_of(line) <= usize::from(width), "{width}: {line}");
            }
        }
    }

    #[test]
    fn holder_is_shortened_after_note_and_worktree() {
        testkit::limit_test();
        let mut table = Table::new([
            Column::typed("PATTERN"),
            Column::fixed("MODE").importance(5),
            Column::name("RESERVED BY").importance(6),
            Column::fixed("AGE").importance(3),
            Column::text("NOTE").importance(4),
            Column::detail("WORKTREE").importance(1),
        ]);
        let mut row = |pattern: &str, holder: &str| {
            let cells = [pattern, "exclusive", holder, "5m", "rewriting the engine", "pai-collab"];
            table.row(cells.map(Cell::new));
        };
        row("crates/store/**", "claude-84a6");
        row("docs/", "Ivy-84a6 (delegate)");
        row("src/", "Ivy");
        row("crates/blackboard/src/store/sqlite/**", "codex-7749");
        assert_eq!(
            table.layout(Some(80), PLAIN),
            "PATTERN            MODE       RESERVED BY          AGE  NOTE          WORKTREE\n\
             crates/store/**    exclusive  claude-84a6          5m   rewriting t…  pai-collab\n\
             docs/              exclusive  Ivy-84a6 (delegate)  5m   rewriting t…  pai-collab\n\
             src/               exclusive  Ivy                  5m   rewriting t…  pai-collab\n\
             crates/blackboard/src/store/sqlite/**  exclusive  codex-7749  5m  rewritin…  p…\n"
        );
        let shown = table.layout(Some(72), PLAIN);
        assert!(shown.contains("Ivy-84a6 (delegate)  5m   rewriti…"), "{shown}");
    }

    #[test]
    fn one_long_name_does_not_take_the_space_of_texts() {
        testkit::limit_test();
        let mut table =
            Table::new([Column::typed("ITEM"), Column::text("TITLE"), Column::name("CLAIMED BY")]);
        table.row(["a", &"title ".repeat(20), &"n".repeat(90)].map(Cell::new));
        let shown = table.layout(Some(80), PLAIN);
        let header = shown.lines().next().unwrap();
        assert_eq!(header.find("CLAIMED BY"), Some(80 - LONGEST_NAME), "{shown}");
    }

    #[test]
    fn what_a_user_types_is_complete_at_every_width() {
        for width in 1..200 {
            assert!(items().layout(Some(width), PLAIN).contains("gh:mellanon/pai-collab#77"), "{width}");
        }
    }

    #[test]
    fn a_long_id_takes_the_space_of_its_own_row() {
        testkit::limit_test();
        let mut table = Table::new([Column::typed("KEY"), Column::text("VALUE"), Column::fixed("AGE")]);
        table.row([Cell::new("a"), Cell::new("the value of a"), Cell::new("1s")]);
        table.row([Cell::new("b".repeat(24)), Cell::new("the value of b"), Cell::new("2s")]);
        assert_eq!(
            table.layout(Some(40), PLAIN),
            "KEY                    VALUE         AGE\n\
             a                      the value o…  1s\n\
             bbbbbbbbbbbbbbbbbbbbbbbb  the valu…  2s\n"
        );
    }

    #[test]
    fn a_column_without_any_value_is_omitted() {
        let mut table = Table::new([Column::typed("KEY"), Column::fixed("TTL"), Column::text("TAGS")]);
        table.row([Cell::new("a"), Cell::new(""), Cell::optional(None::<&str>)]);
        table.row([Cell::new("b"), Cell::new("1m"), Cell::new("")]);
        assert_eq!(table.layout(None, PLAIN), "KEY  TTL\na    --\nb    1m\n");
    }

    #[test]
    fn a_narrow_terminal_shows_the_last_directory() {
        let mut table = Table::new([Column::detail("WORKTREE")]);
        table.row([Cell::directory("/home/ivy/pai-collab/")]);
        assert_eq!(table.layout(Some(80), PLAIN), "WORKTREE\npai-collab\n");
        assert_eq!(table.layout(Some(100), PLAIN), "WORKTREE\n/home/ivy/pai-collab/\n");
    }

    #[test]
    fn colors_do_not_move_the_columns() {
        let colored = items().layout(Some(80), Styles::new(true));
        assert!(colored.contains("\u{1b}[34mclaimed\u{1b}[0m"), "{colored}");
        let codes =
            ["\u{1b}[34m", "\u{1b}[33m", "\u{1b}[32m", "\u{1b}[2m", "\u{1b}[1m", "\u{1b}[31m", "\u{1b}[0m"];
        let plain = codes.iter().fold(colored, |text, code| text.replace(code, ""));
        assert_eq!(plain, items().layout(Some(80), PLAIN));
    }

    #[test]
    fn text_can_neither_add_rows_nor_colors() {
        let mut table = Table::new([Column::typed("NAME"), Column::fixed("STATUS")]);
        table.row([Cell::new("a\nroot  active\u{1b}[0m\u{e0001}x\u{e007f}"), Cell::word("idle\n")]);
        let text = table.layout(Some(80), Styles::new(true));
        assert_eq!(text.lines().count(), 2);
        assert!(text.contains("a\\nroot  active\\u{1b}[0m\\u{e0001}x\\u{e007f}"), "{text}");
    }

    #[test]
    fn wide_letters_take_two_columns() {
        let mut table = Table::new([Column::typed("NAME"), Column::fixed("STATUS")]);
        table.row([Cell::new("漢字"), Cell::word("active")]);
        table.row([Cell::new("abcd"), Cell::word("active")]);
        assert_eq!(table.layout(None, PLAIN), "NAME  STATUS\n漢字  active\nabcd  active\n");
    }

    #[test]
    fn a_cut_never_divides_a_visible_character() {
        for (text, width, expected) in [
            ("漢字かな", 8, "漢字かな"),
            ("漢字かな", 7, "漢字か…"),
            ("漢字かな", 6, "漢字…"),
            ("e\u{301}e\u{301}e\u{301}", 2, "e\u{301}…"),
            ("👩\u{200d}👩\u{200d}👧 family", 4, "👩\u{200d}👩\u{200d}👧 …"),
            ("👩\u{200d}👩\u{200d}👧 family", 2, "…"),
            ("abc", 1, "…"),
            ("", 0, ""),
        ] {
            let short = cut(text, width);
            assert_eq!(short, expected);
            assert!(width_of(&short) <= width, "{text}");
        }
    }
}
