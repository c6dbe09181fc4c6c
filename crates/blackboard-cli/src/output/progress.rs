//! The progress of a long command, as one line on stderr that is written again and again.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

/// How often the line is written.
const INTERVAL: Duration = Duration::from_millis(100);

/// How many characters the bar has.
const WIDTH: u64 = 30;

/// A line with a bar, removed on drop. It is shown only to a person.
pub struct ProgressBar {
    is_shown: bool,
    written: Option<Instant>,
}

impl ProgressBar {
    /// Shown if stderr is a terminal, and the output is not JSON.
    pub fn on_terminal(json: bool) -> ProgressBar {
        ProgressBar { is_shown: !json && io::stderr().is_terminal(), written: None }
    }

    /// Shows how much is done.
    pub fn show(&mut self, what: &str, done: u64, total: u64) {
        let is_due = self.written.is_none_or(|written| written.elapsed() >= INTERVAL);
        if self.is_shown && is_due {
            self.written = Some(Instant::now());
            // Progress that cannot be written is not worth an error.
            let _ = write!(io::stderr().lock(), "\r\x1b[K{}", line(what, done, total));
        }
    }
}

impl Drop for ProgressBar {
    fn drop(&mut self) {
        if self.written.is_some() {
            let _ = write!(io::stderr().lock(), "\r\x1b[K");
        }
    }
}

fn line(what: &str, done: u64, total: u64) -> String {
    let parts = |of: u64| done.min(total).saturating_mul(of).checked_div(total).unwrap_or(of);
    let filled = "#".repeat(usize::try_from(parts(WIDTH)).unwrap_or(0));
    let width = usize::try_from(WIDTH).unwrap_or(0);
    format!("{what:<9} [{filled:<width$}] {:>3} % ({done} of {total})", parts(100))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_shows_the_part_that_is_done() {
        testkit::limit_test();
        for (done, total, expected) in [
            (0, 4, "Copying   [                              ]   0 % (0 of 4)"),
            (1, 4, "Copying   [#######                       ]  25 % (1 of 4)"),
            (5, 4, "Copying   [##############################] 100 % (5 of 4)"),
            (0, 0, "Copying   [##############################] 100 % (0 of 0)"),
        ] {
            assert_eq!(line("Copying", done, total), expected);
        }
    }
}
