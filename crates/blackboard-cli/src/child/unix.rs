//! Signals, and programs that end by them.

use std::cell::Cell;
use std::io;
use std::process::{Child, Command, ExitStatus};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::SignalsInfo;
use signal_hook::iterator::backend::Handle;
use signal_hook::iterator::exfiltrator::WithOrigin;
use signal_hook::iterator::exfiltrator::origin::Origin;

/// What asks a program to end.
const ENDING: [i32; 4] = [SIGTERM, SIGINT, SIGHUP, SIGQUIT];

/// How long a program is waited for before it is checked again, in case no signal reports its end.
const LOOK: Duration = Duration::from_secs(1);

/// The signals that ask this program to end, caught from the moment when this is made.
pub struct Signals {
    caught: Receiver<Origin>,
    asked: Cell<Option<i32>>,
    handle: Handle,
    thread: Option<JoinHandle<()>>,
}

impl Signals {
    /// Catches them. One that this program was started to ignore, as `nohup` does, stays ignored, here and in what it
    /// runs.
    pub fn catch() -> io::Result<Signals> {
        let ignored = ignored();
        let wanted = ENDING.into_iter().filter(|signal| ignored & (1 << (signal - 1)) == 0);
        let mut signals = SignalsInfo::<WithOrigin>::new(wanted.chain([SIGCHLD]))?;
        let handle = signals.handle();
        let (sender, caught) = channel();
        let thread = std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
            for signal in signals.forever() {
                if sender.send(signal).is_err() {
                    break;
                }
            }
        })?;
        Ok(Signals { caught, asked: Cell::new(None), handle, thread: Some(thread) })
    }

    /// The exit code with which to end, if something asked for it before another program runs.
    pub fn asked_to_end(&self) -> Option<u8> {
        while let Ok(origin) = self.caught.try_recv() {
            if origin.signal != SIGCHLD {
                self.asked.set(Some(origin.signal));
            }
        }
        self.asked.get().and_then(|signal| u8::try_from(128 + signal).ok())
    }

    /// Runs a program to its end, and passes on at once what asks this one to end.
    pub fn run(&self, command: &mut Command) -> io::Result<ExitStatus> {
        let mut child = command.spawn()?;
        loop {
            if let Some(status) = child.try_wait()? {
                return Ok(status);
            }
            match self.caught.recv_timeout(LOOK) {
                Ok(origin) => pass_on(&origin, &child),
                Err(RecvTimeoutError::Timeout) => {}
                // Signals are not received any more; the end of the program still is.
                Err(RecvTimeoutError::Disconnected) => std::thread::sleep(LOOK),
            }
        }
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        self.handle.close();
        if let Some(thread) = self.thread.take() {
            // It has nothing to say, also if it failed.
            let _ = thread.join();
        }
    }
}

/// Sends a signal on. The program has not been waited for yet, so that its PID is still its own.
fn pass_on(origin: &Origin, child: &Child) {
    // A key pressed at a terminal reaches every program in its foreground, also the one that runs here.
    let from_terminal = origin.process.is_none() && matches!(origin.signal, SIGINT | SIGQUIT);
    if origin.signal == SIGCHLD || from_terminal {
        return;
    }
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    if let (Some(pid), Some(signal)) = (pid, Signal::from_named_raw(origin.signal)) {
        // It may have ended just now, or have become another user's: then nothing can be passed on.
        let _ = kill_process(pid, signal);
    }
}

/// The signals that are ignored, as bits, where the operating system tells.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    line.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}
