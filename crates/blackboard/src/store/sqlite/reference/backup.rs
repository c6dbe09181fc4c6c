//! The copy of a database before its upgrade: complete with its WAL, private, verified, and on the disk.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, OpenFlags};

use super::super::sidecars::beside;
use super::super::{SqliteOptions, directory, faults, open};
use crate::error::{Code, Error, Fault, Result};

/// How many copies with different content may exist.
const MAX_COPIES: u32 = 100;

/// A verified copy.
pub(super) struct Copy {
    /// Its path.
    pub(super) path: PathBuf,
    /// Reads it, without creating files beside it.
    pub(super) connection: Connection,
    is_new: bool,
}

impl Copy {
    /// Removes the copy of an upgrade that failed before its commit, unless an earlier one had made it.
    pub(super) fn discard(self) {
        if self.is_new {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Copies the database at `path`. The caller holds the writer lock, so that nothing changes meanwhile, and no other
/// process makes a copy.
pub(super) fn make(path: &Path, version: u32) -> Result<Copy> {
    let name = format!(".before-blackboard-{version}");
    // A killed upgrade may have left one.
    let unfinished = beside(path, &format!("{name}-new"));
    let made = copy(path, &unfinished).and_then(|()| place(path, &unfinished, &name));
    if made.is_err() {
        let _ = open::remove_with_companions(&unfinished);
    }
    made
}

fn copy(path: &Path, unfinished: &Path) -> Result<()> {
    let created = |error| open::io_fault(unfinished, "created", error);
    open::remove_with_companions(unfinished).map_err(|error| open::io_fault(unfinished, "removed", error))?;
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true);
    open::private(&mut options);
    let file = options.open(unfinished).map_err(created)?;
    open::keep_for_owner(&file).map_err(created)?;
    back_up(path, unfinished).map_err(|error| faults::translate(unfinished, error))?;
    file.sync_all().map_err(|error| open::io_fault(unfinished, "written to the disk", error))?;
    drop(file);
    let connection = open_copy(unfinished).map_err(|error| faults::translate(unfinished, error))?;
    verify(&connection, unfinished)
}

fn back_up(path: &Path, unfinished: &Path) -> rusqlite::Result<()> {
    let source = open::open_as(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    open::configure(&source, &SqliteOptions::default())?;
    let mut target = open::open_as(unfinished, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    // A copy that is interrupted is made again.
    target.execute_batch("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF")?;
    let backup = Backup::new(&source, &mut target)?;
    match backup.step(-1)? {
        StepResult::Done => Ok(()),
        _ => Err(rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_BUSY), None)),
    }
}

/// Refuses a database that SQLite finds damaged.
pub(super) fn verify(connection: &Connection, path: &Path) -> Result<()> {
    let check = connection.query_row("PRAGMA integrity_check(1)", [], |row| row.get::<_, String>(0));
    let found = check.map_err(|error| faults::translate(path, error))?;
    if found == "ok" { Ok(()) } else { Err(faults::corrupt(path, found)) }
}

/// Gives the copy its name. A copy with the same content is used; one with other content is never replaced.
fn place(path: &Path, unfinished: &Path, name: &str) -> Result<Copy> {
    for number in 1..=MAX_COPIES {
        let ending = if number == 1 { name.to_owned() } else { format!("{name}.{number}") };
        let place = beside(path, &ending);
        let is_new = match open::rename_to_nothing(unfinished, &place, open::rename_by_link) {
            Ok(()) => true,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                if !is_same(unfinished, &place) {
                    continue;
                }
                let _ = fs::remove_file(unfinished);
                false
            }
            Err(error) => return Err(open::io_fault(&place, "created", error)),
        };
        directory::sync(&place, &[]).map_err(|error| open::io_fault(&place, "written to the disk", error))?;
        let connection = open_copy(&place).map_err(|error| faults::translate(&place, error))?;
        return Ok(Copy { path: place, connection, is_new });
    }
    Err(too_many(&beside(path, name)))
}

fn open_copy(path: &Path) -> rusqlite::Result<Connection> {
    let connection = open::open_immutable(path)?;
    open::configure(&connection, &SqliteOptions::default())?;
    Ok(connection)
}

/// Whether two private files have the same content. A link is never followed.
fn is_same(one: &Path, other: &Path) -> bool {
    let open = |path: &Path| {
        let mut options = OpenOptions::new();
        options.read(true);
        open::private(&mut options);
        let file = options.open(path).ok()?;
        file.metadata().ok()?.is_file().then_some(file)
    };
    let (Some(one), Some(other)) = (open(one), open(other)) else { return false };
    same_bytes(one, other).unwrap_or(false)
}

fn same_bytes(mut one: File, mut other: File) -> io::Result<bool> {
    if one.metadata()?.len() != other.metadata()?.len() {
        return Ok(false);
    }
    let (mut left, mut right) = (vec![0; 1 << 16], vec![0; 1 << 16]);
    loop {
        let length = one.read(&mut left)?;
        if length == 0 {
            return Ok(true);
        }
        other.read_exact(&mut right[..length])?;
        if left[..length] != right[..length] {
            return Ok(false);
        }
    }
}

fn too_many(path: &Path) -> Error {
    let what = format!("there are {MAX_COPIES} copies like {} already", path.display());
    Fault::new(Code::Io, what).hint("move them away, then retry; nothing was changed").into()
}
