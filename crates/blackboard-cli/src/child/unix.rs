//! Forwards signals to a child process.

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

/// The signals that ask a process to end.
const ENDING: [i32; 4] = [SIGTERM, SIGINT, SIGHUP, SIGQUIT];

/// How often the program is checked, in case no signal reports its end.
const LOOK: Duration = Duration::from_secs(1);

/// Catches the signals that ask this process to end, from its creation on.
pub struct Signals {
    caught: Receiver<Origin>,
    asked: Cell<Option<i32>>,
    handle: Handle,
    thread: Option<JoinHandle<()>>,
}

impl Signals {
    /// Catches the signals. A signal that is already ignored, for example by `nohup`, stays ignored, here and in the child.
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

    /// The exit code, if a signal arrived before the child was started.
    pub fn asked_to_end(&self) -> Option<u8> {
        while let Ok(origin) = self.caught.try_recv() {
            if origin.signal != SIGCHLD {
                self.asked.set(Some(origin.signal));
            }
        }
        self.asked.get().and_then(|signal| u8::try_from(128 + signal).ok())
    }

    /// Runs a program to its end, and forwards signals to it.
    pub fn run(&self, command: &mut Command) -> io::Result<ExitStatus> {
        let mut child = command.spawn()?;
        loop {
            if let Some(status) = child.try_wait()? {
                return Ok(status);
            }
            match self.caught.recv_timeout(LOOK) {
                Ok(origin) => pass_on(&origin, &child),
                Err(RecvTimeoutError::Timeout) => {}
                // No more signals arrive, but the end of the program is still noticed.
                Err(RecvTimeoutError::Disconnected) => std::thread::sleep(LOOK),
            }
        }
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        self.handle.close();
        if let Some(thread) = self.thread.take() {
            // Its result does not matter.
            let _ = thread.join();
        }
    }
}

/// Forwards a signal. The child has not been reaped yet, so its PID cannot have been reused.
fn pass_on(origin: &Origin, child: &Child) {
    // The terminal already sends Ctrl-C to the whole foreground process group, including the child.
    let from_terminal = origin.process.is_none() && matches!(origin.signal, SIGINT | SIGQUIT);
    if origin.signal == SIGCHLD || from_terminal {
        return;
    }
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    if let (Some(pid), Some(signal)) = (pid, Signal::from_named_raw(origin.signal)) {
        // Fails if the child has just ended or changed its user; there is nothing else to do.
        let _ = kill_process(pid, signal);
    }
}

/// Whether this process ignores the end of its terminal, for example because `nohup` started it.
pub fn ignores_hangup() -> bool {
    ignored() & (1 << (SIGHUP - 1)) != 0
}

/// The ignored signals as a bit mask, where the system reports them.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    line.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}
