//! Where there are no signals: a program is only waited for.

use std::io;
use std::process::{Command, ExitStatus};
use std::time::{Duration, Instant};

/// How often a program is looked at whose end nobody tells.
const PAUSE: Duration = Duration::from_millis(20);

/// Nothing asks this program to end in a way that it could pass on.
pub struct Signals;

impl Signals {
    /// Catches nothing.
    pub fn catch() -> io::Result<Signals> {
        Ok(Signals)
    }

    /// Never.
    pub fn asked_to_end(&self) -> Option<u8> {
        None
    }

    /// Runs a program to its end, and does something now and then meanwhile.
    pub fn run(
        &self,
        command: &mut Command,
        every: Duration,
        mut tick: impl FnMut(),
    ) -> io::Result<ExitStatus> {
        let mut child = command.spawn()?;
        let mut ticked = Instant::now();
        loop {
            if let Some(status) = child.try_wait()? {
                return Ok(status);
            }
            if ticked.elapsed() >= every {
                ticked = Instant::now();
                tick();
            }
            std::thread::sleep(PAUSE);
        }
    }
}
