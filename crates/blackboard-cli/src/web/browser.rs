//! Opening the page in the user's browser.
//!
//! Every user of the machine can read the arguments of every process, and the address of the page has the token in
//! it. So the browser gets the name of a private file that leads to the address.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use blackboard::store::{Sidecar, Sidecars};

use super::background::Running;
use crate::context::warn;
use crate::disk;

/// The file that leads a browser to the page. It is removed with this value.
pub struct OpenedPage(Option<PathBuf>);

impl OpenedPage {
    /// Leaves the file where it is.
    pub fn keep(mut self) {
        self.0 = None;
    }
}

impl Drop for OpenedPage {
    fn drop(&mut self) {
        if let Some(file) = self.0.take() {
            let _ = std::fs::remove_file(file);
        }
    }
}

/// Opens the page of a server. If that is not possible, it warns; the page can be opened by hand.
pub fn open(running: &Running, board: &dyn Sidecars) -> OpenedPage {
    let mut command = opener();
    let page = if running.has_token() { page_to(&running.url(), board).map(Some) } else { Ok(None) };
    match &page {
        Ok(Some(file)) => command.arg(file),
        _ => command.arg(running.url()),
    };
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    if page.is_err() || command.spawn().is_err() {
        warn(&format!("no browser could be started; open {} yourself", running.url()));
    }
    OpenedPage(page.ok().flatten())
}

/// Writes the file that leads to an address: with the sidecars of the board, or among temporary files if their directory
/// does not exist. The server removes it when it ends.
fn page_to(url: &str, board: &dyn Sidecars) -> io::Result<PathBuf> {
    // An address of this server has no character that means anything in HTML.
    let text = format!(
        "<!DOCTYPE html><html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"referrer\" content=\"no-referrer\"><meta http-equiv=\"refresh\" content=\"0;url={url}\">\
         <title>Blackboard</title></head><body><p><a href=\"{url}\">Open the dashboard</a></p></body></html>\n"
    );
    let file = board.path(Sidecar::DashboardLink);
    if file.parent().is_some_and(Path::is_dir) {
        disk::replace(&file, disk::Access::Private, |out| out.write_all(text.as_bytes()))?;
        return Ok(file);
    }
    let mut temporary = tempfile::Builder::new().prefix("blackboard-").suffix(".html").tempfile()?;
    temporary.write_all(text.as_bytes())?;
    Ok(temporary.into_temp_path().keep()?)
}

#[cfg(target_os = "macos")]
fn opener() -> Command {
    Command::new("open")
}

#[cfg(windows)]
fn opener() -> Command {
    // `explorer` takes an address or a file as its only argument, and no shell sees it.
    Command::new("explorer")
}

#[cfg(not(any(target_os = "macos", windows)))]
fn opener() -> Command {
    Command::new("xdg-open")
}
