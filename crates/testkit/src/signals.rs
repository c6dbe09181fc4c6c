//! Signals of the test process.

use std::sync::Arc;
use std::sync::Once;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};

/// Makes this process handle the signals that end a program, so that no process it starts ignores them.
///
/// A shell starts a background job with `SIGINT` ignored, and `nohup` ignores `SIGHUP`. A process inherits that through
/// every `exec`, and a shell script cannot even `trap` such a signal. A signal with a handler, however, has its default
/// action again after `exec`. The handler here does what the default action does: it ends the process.
pub(crate) fn stop_ignoring() {
    static HANDLED: Once = Once::new();
    HANDLED.call_once(|| {
        for signal in [SIGHUP, SIGINT, SIGQUIT, SIGTERM] {
            let always = Arc::new(AtomicBool::new(true));
            signal_hook::flag::register_conditional_shutdown(signal, 128 + signal, always)
                .expect("these signals can be handled");
        }
    });
}
