//! Opening the page in the browser of whoever started the server.

use std::process::{Command, Stdio};

use crate::context::warn;

/// Opens the address. If that is not possible, it says so; the page can be opened by hand.
pub fn open(url: &str) {
    let mut command = opener();
    command.arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    if command.spawn().is_err() {
        warn(&format!("no browser could be started; open {url} yourself"));
    }
}

#[cfg(target_os = "macos")]
fn opener() -> Command {
    Command::new("open")
}

#[cfg(windows)]
fn opener() -> Command {
    // `explorer` takes an address as its only argument, and no shell sees it.
    Command::new("explorer")
}

#[cfg(not(any(target_os = "macos", windows)))]
fn opener() -> Command {
    Command::new("xdg-open")
}
