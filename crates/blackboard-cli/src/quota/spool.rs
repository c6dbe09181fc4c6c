//! The spool: what hooks have read, until a fold moves it to the ledger.
//!
//! A hook appends lines with one write, under a shared lock, and only if the path still names the locked file. A fold renames
//! the file and locks it exclusively, so it sees every line and no hook adds one. A killed process leaves half a line, which
//! is ignored and written again, or a renamed file, which the next fold reads: the ledger counts each message once.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::of_file;
use super::reading::{LimitReport, MessageUsage, Reading};
use super::transcript::Origin;
use crate::config::printable;
use crate::disk;

/// The spool, and the one that is being folded, in the home of boards.
const SPOOL: &str = "quota-spool";
const FOLDING: &str = "quota-spool-folding";

/// A longer spool accepts nothing. What is not accepted is read again later.
const LONGEST_SPOOL: u64 = 64 * 1024 * 1024;

/// A longer line is not one of a hook.
const LONGEST_LINE: u64 = 64 * 1024;

/// How many lines are passed on at a time.
const LINES: usize = 1000;

/// How often a hook opens the spool again that a fold has just renamed.
const TRIES: usize = 10;

/// How long a fold waits for hooks that write.
const PATIENCE: Duration = Duration::from_secs(1);

/// How often it looks.
const POLL: Duration = Duration::from_millis(5);

/// A line of the spool.
#[derive(Debug, Serialize, Deserialize)]
pub struct SpoolLine {
    /// Whose usage it is.
    #[serde(flatten)]
    pub origin: Origin,
    /// The usage of a message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<MessageUsage>,
    /// A limit that the platform reports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<LimitReport>,
}

impl SpoolLine {
    /// The lines of what was read.
    pub fn of(origin: &Origin, reading: &Reading) -> Vec<SpoolLine> {
        let line = |message, limit| SpoolLine { origin: origin.clone(), message, limit };
        let messages = reading.messages.iter().map(|message| line(Some(message.clone()), None));
        let limits = reading.limits.iter().map(|limit| line(None, Some(limit.clone())));
        messages.chain(limits).collect()
    }
}

/// Whether there may be something to fold.
pub fn is_used(home: &Path) -> bool {
    [SPOOL, FOLDING].iter().any(|name| fs::symlink_metadata(home.join(name)).is_ok())
}

/// Appends lines.
pub fn append(home: &Path, lines: &[SpoolLine]) -> io::Result<()> {
    // A process that was killed may have left half a line.
    let mut text = vec![b'\n'];
    for line in lines {
        serde_json::to_writer(&mut text, line)?;
        text.push(b'\n');
    }
    if lines.is_empty() {
        return Ok(());
    }
    append_text(&home.join(SPOOL), &text).map_err(|error| of_file(SPOOL, &error))
}

fn append_text(path: &Path, text: &[u8]) -> io::Result<()> {
    for _ in 0..TRIES {
        let mut file = open_to_append(path)?;
        if file.try_lock_shared().is_err() || !is_still_named(&file, path)? {
            continue;
        }
        if file.metadata()?.len() > LONGEST_SPOOL {
            return Err(io::Error::new(ErrorKind::StorageFull, "the spool is too long"));
        }
        return file.write_all(text);
    }
    Err(ErrorKind::WouldBlock.into())
}

/// Passes on all lines, and removes what was passed on. Only one process may call this at a time.
pub fn drain<E: From<io::Error>>(
    home: &Path,
    take: &mut dyn FnMut(Vec<SpoolLine>) -> Result<(), E>,
) -> Result<(), E> {
    let (spool, folding) = (home.join(SPOOL), home.join(FOLDING));
    drain_file(&folding, take)?;
    match fs::rename(&spool, &folding) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        renamed => renamed.map_err(|error| of_file(printable(&spool), &error))?,
    }
    drain_file(&folding, take)
}

fn drain_file<E: From<io::Error>>(
    path: &Path,
    take: &mut dyn FnMut(Vec<SpoolLine>) -> Result<(), E>,
) -> Result<(), E> {
    let in_file = |error: io::Error| of_file(printable(path), &error);
    let file = match disk::own_file(path, false) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        file => file.map_err(in_file)?,
    };
    wait_for_writers(&file).map_err(in_file)?;
    let mut reader = BufReader::new(&file);
    let (mut line, mut lines) = (Vec::new(), Vec::new());
    loop {
        line.clear();
        if reader.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line).map_err(in_file)? == 0 {
            break;
        }
        // The rest of a long line is not a line either.
        if let Ok(parsed) = serde_json::from_slice(&line) {
            lines.push(parsed);
        }
        if lines.len() >= LINES {
            take(std::mem::take(&mut lines))?;
        }
    }
    if !lines.is_empty() {
        take(lines)?;
    }
    Ok(fs::remove_file(path).map_err(in_file)?)
}

/// Locks a renamed spool when no hook writes to it any more. No other hook begins to.
fn wait_for_writers(file: &File) -> io::Result<()> {
    let began = Instant::now();
    while file.try_lock().is_err() {
        if began.elapsed() >= PATIENCE {
            return Err(io::Error::new(ErrorKind::WouldBlock, "another process writes to the spool"));
        }
        thread::sleep(POLL);
    }
    Ok(())
}

fn open_to_append(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.append(true).create(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
        options.mode(0o600).custom_flags(flags.bits().cast_signed());
    }
    let file = options.open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() || crate::location::other_owner(&metadata).is_some() {
        return Err(ErrorKind::PermissionDenied.into());
    }
    Ok(file)
}

fn is_still_named(file: &File, path: &Path) -> io::Result<bool> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        named => Ok(disk::identity(&named?) == disk::identity(&file.metadata()?)),
    }
}
