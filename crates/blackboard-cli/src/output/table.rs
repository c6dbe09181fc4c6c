//! Rows below each other, without borders.
//!
//! On a terminal the columns that may wrap share the room that the fixed ones leave; ids stand in fixed columns and
//! are never cut. Anywhere else nothing wraps, so that one row is one line for `grep` and `cut`.

use comfy_table::{ColumnConstraint, ContentArrangement, Width, presets};

use super::{Styles, Tone, escape};

/// A table while it is filled.
#[derive(Debug)]
pub struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<Cell>>,
}

/// A column: its header, and whether its text may be broken.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    header: &'static str,
    wraps: bool,
}

/// One field of a row.
#[derive(Clone, Debug)]
pub struct Cell {
    text: String,
    tone: Tone,
}

impl Column {
    /// A column whose text is never broken: ids, statuses, times.
    pub const fn fixed(header: &'static str) -> Column {
        Column { header, wraps: false }
    }

    /// A column whose text goes on in the next line where the terminal is narrow.
    pub const fn wrapping(header: &'static str) -> Column {
        Column { header, wraps: true }
    }
}

impl Cell {
    /// A text, which is escaped; an empty one is shown as `--`.
    pub fn new(text: impl AsRef<str>) -> Cell {
        let text = escape(text.as_ref());
        Cell { text: if text.is_empty() { "--".to_owned() } else { text.into_owned() }, tone: Tone::Plain }
    }

    /// A text that may be missing.
    pub fn optional(text: Option<impl AsRef<str>>) -> Cell {
        text.map_or_else(|| Cell::new(""), Cell::new)
    }

    /// The word of a status or a priority, in its tone. It belongs into a fixed column.
    pub fn word(word: &str) -> Cell {
        Cell { tone: Tone::of(word), ..Cell::new(word) }
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

    /// The whole table as lines, for a screen of this width.
    pub fn layout(&self, width: Option<u16>, styles: Styles) -> String {
        let mut table = comfy_table::Table::new();
        table.load_style(presets::NOTHING);
        table.set_header(
            self.columns.iter().map(|column| marked(&column.header.to_uppercase(), Tone::Heading)),
        );
        for row in &self.rows {
            let cells = row.iter().zip(&self.columns).map(|(cell, column)| {
                // A mark has to end in the line in which it began, which a wrapped cell can't promise.
                marked(&cell.text, if column.wraps { Tone::Plain } else { cell.tone })
            });
            table.add_row(cells);
        }
        table.set_content_arrangement(match width {
            Some(_) => ContentArrangement::Dynamic,
            None => ContentArrangement::Disabled,
        });
        if let Some(width) = width {
            table.set_width(width);
        }
        let natural_widths = table.column_max_content_widths();
        for ((column, layout), natural) in
            self.columns.iter().zip(table.column_iter_mut()).zip(natural_widths)
        {
            layout.set_padding((0, PADDING));
            layout.set_constraint(if column.wraps && width.is_some() {
                // The layout counts the padding, and makes a column that has less as wide as its lower boundary.
                let narrowest = natural.saturating_add(PADDING).min(NARROWEST);
                ColumnConstraint::LowerBoundary(Width::Fixed(narrowest))
            } else {
                ColumnConstraint::ContentWidth
            });
        }
        let mut text = String::new();
        for line in table.lines() {
            text.push_str(&painted(line.trim_end(), styles));
            text.push('\n');
        }
        text
    }
}

/// Below this a wrapped column is a heap of single letters; the terminal then breaks the line itself.
const NARROWEST: u16 = 14;

/// What separates columns.
const PADDING: u16 = 2;

/// The tones that a cell can be marked with; the position of a tone is the number of its mark.
const TONES: [Tone; 6] = [Tone::Good, Tone::Caution, Tone::Alarm, Tone::Taken, Tone::Faint, Tone::Heading];

/// `U+E0001` and the following ones are tags: they take no room, and `escape` leaves none in the text of a cell.
const FIRST_MARK: u32 = 0xe0001;

/// Ends what a mark began.
const END: char = '\u{e007f}';

/// The layout counts colour codes as text, so colours are marked by characters of no width until it is done.
fn marked(text: &str, tone: Tone) -> String {
    let position = (FIRST_MARK..).zip(TONES).find(|(_, known)| *known == tone);
    match position.and_then(|(mark, _)| char::from_u32(mark)) {
        Some(mark) => format!("{mark}{text}{END}"),
        None => text.to_owned(),
    }
}

/// A finished line with colours in place of the marks.
fn painted(line: &str, styles: Styles) -> String {
    let mut text = String::with_capacity(line.len());
    let mut rest = line;
    while let Some((before, mark, after)) = next_mark(rest) {
        let (inside, after) = after.split_once(END).unwrap_or((after, ""));
        text.push_str(before);
        text.push_str(&styles.paint(mark, inside).to_string());
        rest = after;
    }
    text.push_str(rest);
    text
}

fn next_mark(text: &str) -> Option<(&str, Tone, &str)> {
    text.char_indices().find_map(|(index, character)| {
        let tone = *TONES.get(usize::try_from(u32::from(character).checked_sub(FIRST_MARK)?).ok()?)?;
        Some((&text[..index], tone, &text[index + character.len_utf8()..]))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SESSION: &str = "0d1f8a52-6f0e-4c1c-9b7e-2f6a9f1f0c3d";

    fn agents() -> Table {
        let mut table =
            Table::new([Column::fixed("session"), Column::wrapping("work"), Column::fixed("status")]);
        table.row([
            Cell::new(SESSION),
            Cell::new("Designing the schema of the ledger"),
            Cell::word("active"),
        ]);
        table.row([Cell::new("b"), Cell::optional(None::<&str>), Cell::word("stale")]);
        table
    }

    #[test]
    fn nothing_wraps_where_no_terminal_is() {
        assert_eq!(
            agents().layout(None, Styles::new(false)),
            "SESSION                               WORK                                STATUS\n\
             0d1f8a52-6f0e-4c1c-9b7e-2f6a9f1f0c3d  Designing the schema of the ledger  active\n\
             b                                     --                                  stale\n"
        );
    }

    #[test]
    fn fixed_columns_stay_whole_and_the_others_wrap() {
        assert_eq!(
            agents().layout(Some(64), Styles::new(false)),
            "SESSION                               WORK           STATUS\n\
             0d1f8a52-6f0e-4c1c-9b7e-2f6a9f1f0c3d  Designing the  active\n\
             \u{20}                                     schema of the\n\
             \u{20}                                     ledger\n\
             b                                     --             stale\n"
        );
    }

    #[test]
    fn an_id_is_whole_even_where_there_is_no_room() {
        assert!(agents().layout(Some(20), Styles::new(false)).contains(SESSION));
    }

    #[test]
    fn no_terminal_makes_a_table_wider_than_it_is() {
        let mut short =
            Table::new([Column::fixed("item"), Column::wrapping("title"), Column::wrapping("by")]);
        short.row([Cell::new("a"), Cell::new("Fix it"), Cell::new("Ivy")]);
        for table in [short, agents()] {
            let longest = |width| {
                let text = table.layout(width, Styles::new(false));
                text.lines().map(|line| line.chars().count()).max()
            };
            for width in 1..120 {
                assert!(longest(Some(width)) <= longest(None), "at {width}");
            }
        }
    }

    #[test]
    fn colours_do_not_move_the_columns() {
        let coloured = agents().layout(None, Styles::new(true));
        assert!(coloured.contains("\u{1b}[32mactive\u{1b}[0m"));
        let mut plain = coloured;
        for code in ["\u{1b}[32m", "\u{1b}[31m", "\u{1b}[1m", "\u{1b}[0m"] {
            plain = plain.replace(code, "");
        }
        assert_eq!(plain, agents().layout(None, Styles::new(false)));
    }

    #[test]
    fn text_can_neither_add_rows_nor_colours() {
        let mut table = Table::new([Column::fixed("name"), Column::fixed("status")]);
        table.row([Cell::new("a\nroot  active\u{1b}[0m\u{e0001}x\u{e007f}"), Cell::word("idle\n")]);
        let text = table.layout(Some(80), Styles::new(true));
        assert_eq!(text.lines().count(), 2);
        assert!(text.contains("a\\nroot  active\\u{1b}[0m\\u{e0001}x\\u{e007f}"), "{text}");
    }

    #[test]
    fn wide_letters_take_two_columns() {
        let mut table = Table::new([Column::fixed("name"), Column::fixed("status")]);
        table.row([Cell::new("漢字"), Cell::word("active")]);
        table.row([Cell::new("abcd"), Cell::word("active")]);
        let text = table.layout(None, Styles::new(false));
        assert_eq!(text, "NAME  STATUS\n漢字  active\nabcd  active\n");
    }
}
