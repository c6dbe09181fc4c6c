//! Opens the page in the user's browser.
//!
//! Every user of the machine can read the arguments of every process, and the URL of the page contains the token. So
//! the browser gets the path of a private file that redirects to the URL.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use blackboard::store::{Sidecar, Sidecars};

use super::background::Running;
use crate::context::warn;
use crate::disk;

/// The file that redirects a browser to the page. It is deleted when this value is dropped.
pub struct OpenedPage(Option<PathBuf>);

impl OpenedPage {
    /// Keeps the file.
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

/// Opens the page of a server in a browser. If that fails, prints a warning with the URL.
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

/// Writes the file that redirects to a URL: among the sidecars of the board, or in the temporary directory if theirs
/// does not exist. The server deletes it when it stops.
fn page_to(url: &str, board: &dyn Sidecars) -> io::Result<PathBuf> {
    // A URL of this server contains no characters that are special in HTML.
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
    // `explorer` takes a URL or a file as its only argument, and no shell is involved.
    Command::new("explorer")
}

#[cfg(not(any(target_os = "macos", windows)))]
fn opener() -> Command {
    Command::new("xdg-open")
}
