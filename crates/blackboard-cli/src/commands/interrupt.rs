//! Signals that ask a command to end, for commands that finish something first.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use blackboard::Result;

use crate::outcome::{Nothing, Outcome};

/// The exit code of a command that ended because of Ctrl+C.
pub const INTERRUPTED: u8 = 130;

/// Runs a command whose programs end when the user interrupts it. What it then returns is incomplete, and not shown.
pub fn until_interrupted(run: impl FnOnce(&AtomicBool) -> Result<Outcome>) -> Result<Outcome> {
    let interrupted = watch_signals();
    let outcome = run(&interrupted);
    if interrupted.load(Ordering::Relaxed) {
        return Ok(Outcome::new(Nothing).with_exit_code(INTERRUPTED));
    }
    outcome
}

/// Set by the first signal that asks this process to end. The second one ends it.
#[cfg(unix)]
pub fn watch_signals() -> Arc<AtomicBool> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    use signal_hook::flag;
    let interrupted = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        // Without them, a signal ends the process as before.
        let _ = flag::register_conditional_default(signal, Arc::clone(&interrupted));
        let _ = flag::register(signal, Arc::clone(&interrupted));
    }
    interrupted
}

/// Never set: such a signal ends the process.
#[cfg(not(unix))]
pub fn watch_signals() -> Arc<AtomicBool> {
    Arc::default()
}
