//! What a word means, and the color that a terminal shows it in.

use std::fmt;

use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Style};

/// What a piece of text means; its color follows from that everywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// Nothing in particular.
    Plain,
    /// All is well, or free to take: active, available.
    Good,
    /// Not urgent yet: idle, P2.
    Caution,
    /// Something needs attention: stale, blocked, P1, errors.
    Alarm,
    /// Someone has it: claimed.
    Taken,
    /// Of little interest: completed, P3.
    Faint,
    /// The header of a table or a section.
    Heading,
}

/// Whether tones become colors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Styles {
    colored: bool,
}

/// A text in a tone.
#[derive(Clone, Copy, Debug)]
pub struct Painted<'a> {
    text: &'a str,
    style: Style,
}

impl Tone {
    /// The tone of a status or a priority, by its name.
    pub fn of(word: &str) -> Tone {
        match word {
            "active" | "available" => Tone::Good,
            "idle" | "P2" => Tone::Caution,
            "stale" | "blocked" | "P1" => Tone::Alarm,
            "claimed" => Tone::Taken,
            "completed" | "P3" => Tone::Faint,
            _ => Tone::Plain,
        }
    }

    fn style(self) -> Style {
        match self {
            Tone::Plain => Style::new(),
            Tone::Good => AnsiColor::Green.on_default(),
            Tone::Caution => AnsiColor::Yellow.on_default(),
            Tone::Alarm => AnsiColor::Red.on_default().bold(),
            Tone::Taken => AnsiColor::Blue.on_default(),
            Tone::Faint => Style::new().dimmed(),
            Tone::Heading => Style::new().bold(),
        }
    }
}

impl Styles {
    /// Colors if `stream` is a terminal, unless `NO_COLOR` or `CLICOLOR_FORCE` say otherwise.
    pub fn of(stream: &impl anstream::stream::RawStream) -> Styles {
        Styles::new(AutoStream::choice(stream) != ColorChoice::Never)
    }

    /// Colors or none.
    pub const fn new(colored: bool) -> Styles {
        Styles { colored }
    }

    /// The text in its tone.
    pub fn paint(self, tone: Tone, text: &str) -> Painted<'_> {
        Painted { text, style: if self.colored { tone.style() } else { Style::new() } }
    }
}

impl fmt::Display for Painted<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}{}{:#}", self.style, self.text, self.style)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tone_becomes_a_color_only_where_colors_are_wanted() {
        assert_eq!(Styles::new(false).paint(Tone::Good, "active").to_string(), "active");
        assert_eq!(Styles::new(true).paint(Tone::Good, "active").to_string(), "\u{1b}[32mactive\u{1b}[0m");
        assert_eq!(Styles::new(true).paint(Tone::Plain, "other").to_string(), "other");
    }

    #[test]
    fn every_status_and_priority_has_its_tone() {
        for (words, tone) in [
            (&["active", "available"][..], Tone::Good),
            (&["idle", "P2"], Tone::Caution),
            (&["stale", "blocked", "P1"], Tone::Alarm),
            (&["claimed"], Tone::Taken),
            (&["completed", "P3"], Tone::Faint),
            (&["paused"], Tone::Plain),
        ] {
            assert!(words.iter().all(|word| Tone::of(word) == tone), "{words:?}");
        }
    }
}
