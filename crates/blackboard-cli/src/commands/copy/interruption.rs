//! Ctrl+C and other requests to end during a copy that has sealed its source.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use blackboard::store::{Extent, LoadingBoard, Part, Recipient};
use blackboard::{Code, Fault, Result};

/// Notices signals that ask this process to end. The second one ends it.
#[derive(Clone, Default)]
pub struct Interruption {
    signal: Arc<AtomicUsize>,
}

impl Interruption {
    /// Notices signals from now on.
    #[cfg(unix)]
    pub fn watch() -> Interruption {
        use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
        use signal_hook::flag;
        use std::sync::atomic::AtomicBool;
        let (interruption, is_repeated) = (Interruption::default(), Arc::new(AtomicBool::new(false)));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            // Without them, a signal ends the process as before.
            let _ = flag::register_conditional_default(signal, Arc::clone(&is_repeated));
            let _ = flag::register(signal, Arc::clone(&is_repeated));
            let number = usize::try_from(signal).unwrap_or_default();
            let _ = flag::register_usize(signal, Arc::clone(&interruption.signal), number);
        }
        interruption
    }

    /// Notices nothing.
    #[cfg(not(unix))]
    pub fn watch() -> Interruption {
        Interruption::default()
    }

    /// Whether a signal has arrived.
    pub fn is_requested(&self) -> bool {
        self.signal.load(Ordering::Relaxed) != 0
    }

    /// Ends the process as the signal would have.
    pub fn end_process(&self) {
        #[cfg(unix)]
        if let Ok(signal) = i32::try_from(self.signal.load(Ordering::Relaxed)) {
            let _ = signal_hook::low_level::emulate_default_handler(signal);
        }
    }

    fn check(&self) -> Result<()> {
        if self.is_requested() {
            return Err(Fault::new(Code::Io, "the copy was interrupted").into());
        }
        Ok(())
    }
}

/// A target whose loading ends after a signal.
pub struct Interruptible<'a> {
    pub target: &'a mut dyn LoadingBoard,
    pub interruption: &'a Interruption,
}

impl LoadingBoard for Interruptible<'_> {
    fn begin(&mut self, extent: &Extent) -> Result<()> {
        self.interruption.check()?;
        self.target.begin(extent)
    }

    fn load(&mut self, parts: Vec<Part>) -> Result<()> {
        self.interruption.check()?;
        self.target.load(parts)
    }

    fn dump(&self, to: &mut dyn Recipient) -> Result<()> {
        self.interruption.check()?;
        self.target.dump(&mut InterruptibleRecipient { to, interruption: self.interruption })
    }

    fn open(&mut self) -> Result<()> {
        self.target.open()
    }
}

struct InterruptibleRecipient<'a> {
    to: &'a mut dyn Recipient,
    interruption: &'a Interruption,
}

impl Recipient for InterruptibleRecipient<'_> {
    fn begin(&mut self, extent: &Extent) -> Result<()> {
        self.to.begin(extent)
    }

    fn part(&mut self, part: Part) -> Result<()> {
        self.interruption.check()?;
        self.to.part(part)
    }
}
