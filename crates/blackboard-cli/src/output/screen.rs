//! What a command writes on when a person reads it.

use std::borrow::Cow;
use std::fmt::{self, Display};
use std::io::{self, Write};

use blackboard::clock::Timestamp;
use unicode_segmentation::UnicodeSegmentation;

use super::table::{cut, width_of};
use super::{ROWS_ON_TERMINAL, Result, Styles, Table, Tone, escape};
use crate::hints::GivenOptions;

/// A stream with what is known about the person in front of it.
pub struct Screen<'a> {
    out: &'a mut dyn Write,
    styles: Styles,
    width: Option<u16>,
    now: Timestamp,
    given: GivenOptions<'a>,
    active_agents: Option<&'a dyn Fn() -> Vec<(String, String)>>,
}

impl<'a> Screen<'a> {
    /// A screen with the given properties.
    pub fn new(out: &'a mut dyn Write, styles: Styles, width: Option<u16>, now: Timestamp) -> Screen<'a> {
        Screen { out, styles, width, now, given: GivenOptions::default(), active_agents: None }
    }

    /// The same for the output of a call with these options.
    #[must_use]
    pub fn of_call(self, given: GivenOptions<'a>) -> Screen<'a> {
        Screen { given, ..self }
    }

    /// The same for a board of which this function reads the active agents.
    #[must_use]
    pub fn with_active_agents(self, read: &'a dyn Fn() -> Vec<(String, String)>) -> Screen<'a> {
        Screen { active_agents: Some(read), ..self }
    }

    /// The names and sessions of the active agents, which are read for this.
    pub fn active_agents(&self) -> Vec<(String, String)> {
        self.active_agents.map(|read| read()).unwrap_or_default()
    }

    /// A command that can be pasted, for the board of the call.
    pub fn command(&self, words: impl Display) -> String {
        self.given.command(words)
    }

    /// Writes to `out`, which ends in standard output.
    pub fn of_stdout(out: &'a mut dyn Write, now: Timestamp) -> Screen<'a> {
        let stdout = io::stdout();
        Screen::new(out, Styles::of(&stdout), terminal_width(&stdout), now)
    }

    /// Writes to `out`, which ends in standard error.
    pub fn of_stderr(out: &'a mut dyn Write, now: Timestamp) -> Screen<'a> {
        let stderr = io::stderr();
        Screen::new(out, Styles::of(&stderr), terminal_width(&stderr), now)
    }

    /// Whether and how tones are shown.
    pub fn styles(&self) -> Styles {
        self.styles
    }

    /// How many columns there are; `None` where nothing has to fit.
    pub fn width(&self) -> Option<u16> {
        self.width
    }

    /// How many rows of a section are shown: all of them, but a screenful on a terminal.
    pub fn most_rows(&self) -> usize {
        self.width.map_or(usize::MAX, |_| ROWS_ON_TERMINAL)
    }

    /// When the answer is given; relative times count from it.
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// The answer is given at this time, after a wait.
    pub fn set_now(&mut self, now: Timestamp) {
        self.now = now;
    }

    /// One line of the program's own words; what comes from the board has to be [escaped](escape) first.
    pub fn line(&mut self, text: fmt::Arguments<'_>) -> Result {
        self.out.write_fmt(text)?;
        Ok(self.out.write_all(b"\n")?)
    }

    /// An empty line.
    pub fn gap(&mut self) -> Result {
        Ok(self.out.write_all(b"\n")?)
    }

    /// Sends on what was written so far.
    pub fn flush(&mut self) -> Result {
        Ok(self.out.flush()?)
    }

    /// A line of which a terminal shows as much as fits: `text`, in the middle, is shortened first.
    pub fn fitted_line(&mut self, before: &str, text: &str, after: &str) -> Result {
        let Some(terminal) = self.width.map(usize::from) else {
            return self.line(format_args!("{before}{text}{after}"));
        };
        let space = terminal.saturating_sub(width_of(before) + width_of(after));
        let line = format!("{before}{}{after}", cut(text, space.max(SHORTEST_TEXT)));
        // The beginning has what a user types.
        self.line(format_args!("{}", cut(&line, terminal.max(width_of(before)))))
    }

    /// Whether a fitted line shows all of its end.
    pub fn fits(&self, before: &str, after: &str) -> bool {
        let needed = width_of(before) + SHORTEST_TEXT + width_of(after);
        self.width.is_none_or(|terminal| needed <= usize::from(terminal))
    }

    /// A list of ids, which goes on below itself where the terminal is too narrow. An id is never broken.
    pub fn list_line(&mut self, indent: &str, list: &str) -> Result {
        let terminal = self.width.map_or(usize::MAX, usize::from);
        let mut line = indent.to_owned();
        for part in list.split_inclusive(", ") {
            if line != indent && width_of(&line) + width_of(part.trim_end()) > terminal {
                self.line(format_args!("{}", line.trim_end()))?;
                line = format!("{indent}  ");
            }
            line.push_str(part);
        }
        self.line(format_args!("{line}"))
    }

    /// A name in a line with other facts, of which a terminal shows at most a part.
    pub fn name<'n>(&self, name: &'n str) -> Cow<'n, str> {
        match self.width {
            Some(terminal) => cut(name, usize::from(terminal / 3).max(SHORTEST_TEXT)),
            None => Cow::Borrowed(name),
        }
    }

    /// A line that goes on below `text` where the terminal is too narrow for it.
    pub fn wrapped_line(&mut self, before: &str, text: &str) -> Result {
        let Some(terminal) = self.width.map(usize::from) else {
            return self.line(format_args!("{before}{text}"));
        };
        let indent = match width_of(before) {
            wide if wide + NARROWEST_TEXT > terminal => FALLBACK_INDENT,
            indent => indent,
        };
        let mut line = before.to_owned();
        let mut separator = "";
        for word in text.split(' ') {
            for piece in pieces(word, terminal.saturating_sub(indent)) {
                let used = width_of(&line);
                if used > indent && used + separator.len() + width_of(piece) > terminal {
                    self.line(format_args!("{}", line.trim_end()))?;
                    line = " ".repeat(indent);
                    separator = "";
                }
                line.push_str(separator);
                line.push_str(piece);
                separator = "";
            }
            separator = " ";
        }
        self.line(format_args!("{}", line.trim_end()))
    }

    /// A heading of a section, in its own line.
    pub fn heading(&mut self, text: &str) -> Result {
        let styles = self.styles;
        self.line(format_args!("{}", styles.paint(Tone::Heading, text)))
    }

    /// Lines of `Name:  value`, their values below each other; a name without a value is left out.
    pub fn fields<'f>(&mut self, fields: impl IntoIterator<Item = (&'f str, Option<String>)>) -> Result {
        let fields: Vec<_> = fields.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
        let width = fields.iter().map(|(name, _)| name.len() + 1).max().unwrap_or(0);
        fields.iter().try_for_each(|(name, value)| {
            self.line(format_args!("{:width$} {}", format_args!("{name}:").to_string(), escape(value)))
        })
    }

    /// A table.
    pub fn table(&mut self, table: &Table) -> Result {
        Ok(self.out.write_all(table.layout(self.width, self.styles).as_bytes())?)
    }

    /// Text that is a program of its own, such as a script: not escaped, never with stored text in it.
    pub fn verbatim(&mut self, text: impl Display) -> Result {
        Ok(write!(self.out, "{text}")?)
    }

    /// The stream itself, for text that another writer produces.
    pub fn writer(&mut self) -> &mut dyn Write {
        self.out
    }
}

/// The parts of a word between which a line may end. Text of wide characters may end after each of them, and a word that
/// is wider than a line where the line ends.
fn pieces(word: &str, width: usize) -> Vec<&str> {
    if word.is_ascii() && word.len() <= width {
        return vec![word];
    }
    let (mut pieces, mut start, mut used) = (Vec::new(), 0, 0);
    let mut after_wide = false;
    for (index, cluster) in word.grapheme_indices(true) {
        let wide = width_of(cluster) > 1;
        // Punctuation stays with the character before it.
        let may_end = wide || (after_wide && cluster.contains(char::is_alphanumeric));
        if index > start && (may_end || used + width_of(cluster) > width) {
            pieces.push(&word[start..index]);
            (start, used) = (index, 0);
        }
        used += width_of(cluster);
        after_wide = wide || (after_wide && !cluster.contains(char::is_alphanumeric));
    }
    pieces.push(&word[start..]);
    pieces
}

/// What is left at least of a text in the middle of a line.
const SHORTEST_TEXT: usize = 8;

/// The narrowest column in which text is wrapped.
const NARROWEST_TEXT: usize = 24;

/// How far wrapped text is indented if the terminal is too narrow for its own column.
const FALLBACK_INDENT: usize = 10;

/// The width of a terminal that does not report it.
const USUAL_WIDTH: u16 = 80;

/// The width of a terminal; `None` where nothing has to fit.
#[cfg(unix)]
fn terminal_width(stream: &(impl std::os::fd::AsFd + io::IsTerminal)) -> Option<u16> {
    if !stream.is_terminal() {
        return None;
    }
    let chosen = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    let width = chosen.or_else(|| rustix::termios::tcgetwinsize(stream).ok().map(|size| size.ws_col));
    Some(width.filter(|columns| *columns > 0).unwrap_or(USUAL_WIDTH))
}

/// The width of a terminal; `None` where nothing has to fit.
#[cfg(not(unix))]
fn terminal_width(stream: &impl io::IsTerminal) -> Option<u16> {
    let columns = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    let columns = columns.filter(|columns| *columns > 0).unwrap_or(USUAL_WIDTH);
    stream.is_terminal().then_some(columns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_stand_below_each_other_and_are_escaped() {
        let mut bytes = Vec::new();
        let mut screen = Screen::new(&mut bytes, Styles::new(false), None, Timestamp::EPOCH);
        let fields =
            [("Name", Some("Ivy\nPID: 1".to_owned())), ("Work", None), ("Project", Some("x".to_owned()))];
        screen.fields(fields).unwrap();
        assert_eq!(String::from_utf8(bytes).unwrap(), "Name:    Ivy\\nPID: 1\nProject: x\n");
    }

    fn shown(width: Option<u16>, show: impl Fn(&mut Screen<'_>) -> Result) -> String {
        let mut bytes = Vec::new();
        show(&mut Screen::new(&mut bytes, Styles::new(false), width, Timestamp::EPOCH)).unwrap();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn fitted_line_shortens_its_middle_first() {
        let line = |width| shown(width, |screen| screen.fitted_line("[P1] a -- ", "A long title", " (Ivy)"));
        assert_eq!(line(None), "[P1] a -- A long title (Ivy)\n");
        assert_eq!(line(Some(28)), "[P1] a -- A long title (Ivy)\n");
        assert_eq!(line(Some(27)), "[P1] a -- A long tit… (Ivy)\n");
        assert_eq!(line(Some(20)), "[P1] a -- A long … …\n");
        assert_eq!(line(Some(5)), "[P1] a --…\n");
    }

    #[test]
    fn list_line_never_breaks_an_id() {
        testkit::limit_test();
        let line =
            |width| shown(width, |screen| screen.list_line("  ", "(blocked by: design, review-it, c)"));
        assert_eq!(line(None), "  (blocked by: design, review-it, c)\n");
        assert_eq!(line(Some(36)), "  (blocked by: design, review-it, c)\n");
        assert_eq!(line(Some(35)), "  (blocked by: design, review-it,\n    c)\n");
        assert_eq!(line(Some(1)), "  (blocked by: design,\n    review-it,\n    c)\n");
    }

    #[test]
    fn name_takes_at_most_a_third_of_the_terminal() {
        testkit::limit_test();
        let name = "n".repeat(200);
        let line = |width| {
            shown(width, |screen| {
                let name = screen.name(&name);
                screen.line(format_args!("{name}"))
            })
        };
        assert_eq!(line(None), format!("{name}\n"));
        assert_eq!(line(Some(80)), format!("{}…\n", "n".repeat(25)));
    }

    #[test]
    fn wrapped_line_continues_below_its_text() {
        testkit::limit_test();
        let before = "16:05:00  ";
        let text = "Agent registered on project with a name";
        let line = |width| shown(width, |screen| screen.wrapped_line(before, text));
        assert_eq!(line(None), format!("{before}{text}\n"));
        assert_eq!(line(Some(80)), format!("{before}{text}\n"));
        assert_eq!(line(Some(34)), format!("{before}Agent registered on\n          project with a name\n"));
        let line = |text: &str| shown(Some(34), |screen| screen.wrapped_line(before, text));
        let long_id = "x".repeat(40);
        let broken = format!("{}\n          {}", "x".repeat(24), "x".repeat(16));
        assert_eq!(line(&long_id), format!("{before}{broken}\n"));
        assert_eq!(line(&format!("Agent {long_id}")), format!("{before}Agent\n          {broken}\n"));
        let mixed = format!("Agent \"{}\" registered", "漢".repeat(10));
        let expected = format!("{before}Agent \"{}\n          漢漢\" registered\n", "漢".repeat(8));
        assert_eq!(line(&mixed), expected);
        for width in 1..40 {
            let shown = shown(Some(width), |screen| screen.wrapped_line(before, &long_id));
            let least = usize::from(width).max(before.len() + 1);
            assert!(shown.lines().all(|line| width_of(line) <= least), "{width}: {shown}");
        }
        let cjk = "漢".repeat(13);
        assert_eq!(line(&cjk), format!("{before}{}\n          漢\n", "漢".repeat(12)));
    }
}
