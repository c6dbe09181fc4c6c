//! What a command writes on when a person reads it.

use std::fmt::{self, Display};
use std::io::{self, Write};

use blackboard::clock::Timestamp;

use super::{Result, Styles, Table, Tone, escape};

/// A stream with what is known about the person in front of it.
pub struct Screen<'a> {
    out: &'a mut dyn Write,
    styles: Styles,
    width: Option<u16>,
    now: Timestamp,
}

impl<'a> Screen<'a> {
    /// A screen with properties of one's own choice.
    pub fn new(out: &'a mut dyn Write, styles: Styles, width: Option<u16>, now: Timestamp) -> Screen<'a> {
        Screen { out, styles, width, now }
    }

    /// Writes to `out`, which ends in standard output.
    pub fn of_stdout(out: &'a mut dyn Write, now: Timestamp) -> Screen<'a> {
        let stdout = io::stdout();
        Screen::new(out, Styles::of(&stdout), width_of(&stdout), now)
    }

    /// Writes to `out`, which ends in standard error.
    pub fn of_stderr(out: &'a mut dyn Write, now: Timestamp) -> Screen<'a> {
        let stderr = io::stderr();
        Screen::new(out, Styles::of(&stderr), width_of(&stderr), now)
    }

    /// Whether and how tones are shown.
    pub fn styles(&self) -> Styles {
        self.styles
    }

    /// How many columns there are; `None` where nothing has to fit.
    pub fn width(&self) -> Option<u16> {
        self.width
    }

    /// When the answer is given; relative times count from it.
    pub fn now(&self) -> Timestamp {
        self.now
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

/// The width of a terminal; `None` where nothing has to fit.
#[cfg(unix)]
fn width_of(stream: &(impl std::os::fd::AsFd + io::IsTerminal)) -> Option<u16> {
    if !stream.is_terminal() {
        return None;
    }
    let chosen = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    let width = chosen.or_else(|| rustix::termios::tcgetwinsize(stream).ok().map(|size| size.ws_col));
    width.filter(|columns| *columns > 0)
}

/// The width of a terminal; `None` where nothing has to fit.
#[cfg(not(unix))]
fn width_of(stream: &impl io::IsTerminal) -> Option<u16> {
    let columns = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    columns.filter(|columns| stream.is_terminal() && *columns > 0)
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
}
