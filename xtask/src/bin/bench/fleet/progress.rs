//! What a simulation is doing, for people.

use std::cell::Cell;
use std::io::Write;
use std::time::{Duration, Instant};

/// The shortest time between two messages.
const PAUSE: Duration = Duration::from_secs(1);

/// Messages on stderr, at most one per second.
pub struct Progress {
    is_shown: bool,
    last: Cell<Option<Instant>>,
}

impl Progress {
    pub fn on_stderr() -> Progress {
        Progress { is_shown: true, last: Cell::new(None) }
    }

    #[cfg(test)]
    pub fn silent() -> Progress {
        Progress { is_shown: false, last: Cell::new(None) }
    }

    /// A new step.
    pub fn begin(&self, step: &str) {
        self.last.set(Some(Instant::now()));
        self.print(step);
    }

    /// How far a step is.
    pub fn note(&self, message: impl FnOnce() -> String) {
        if self.is_shown && self.last.get().is_none_or(|last| last.elapsed() >= PAUSE) {
            self.last.set(Some(Instant::now()));
            self.print(&message());
        }
    }

    fn print(&self, message: &str) {
        if self.is_shown {
            // Nothing depends on it.
            let _ = writeln!(std::io::stderr(), "fleet: {message}");
        }
    }
}
