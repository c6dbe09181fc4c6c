//! Files beside the board, which are as private as the board is.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use blackboard::clock::{Clock, SystemClock};

use crate::output;

/// Opens files for writing that, if they are new, belong to this user alone from their first byte.
pub fn private_file() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Puts a private file in the place of `file`: all of it or nothing, and never through a link to somewhere else.
pub fn replace(file: &Path, write: impl FnOnce(&mut BufWriter<File>) -> output::Result) -> output::Result {
    let temporary = beside(file);
    let mut out = BufWriter::new(private_file().create_new(true).open(&temporary)?);
    let replaced = write(&mut out).and_then(|()| {
        out.flush()?;
        out.get_ref().sync_all()?;
        Ok(fs::rename(&temporary, file)?)
    });
    if replaced.is_err() {
        // What is left over harms nobody, and the reason for it is told.
        let _ = fs::remove_file(&temporary);
    }
    replaced
}

/// A name in the same directory, hidden and not taken.
pub fn beside(file: &Path) -> PathBuf {
    let mut name = OsString::from(".");
    name.push(file.file_name().unwrap_or_default());
    name.push(format!("-{}-{}", std::process::id(), SystemClock.now().millis()));
    file.with_file_name(name)
}
