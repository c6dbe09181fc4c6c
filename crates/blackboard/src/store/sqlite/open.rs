//! Opening and creating the database file, in distrust of what may be there.
//!
//! Files are private from their first byte, by the mode they are created with. A database that others can read or
//! write, a link, somebody else's file, or another program's database is refused before SQLite touches it.
//! Nothing here opens a database that this process has open already: closing the second descriptor would drop
//! SQLite's locks.

use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use super::queue::{Queue, beside};
use super::{SqliteOptions, faults, schema};
use crate::clock::Timestamp;
use crate::error::{Code, Error, Fault, Refusal, Result};

/// Databases that this process has looked into by itself, and never may again.
static OPENED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// Whether a board exists at `path`. Refuses what is there but is not a private plain file of one's own.
pub(super) fn exists(path: &Path) -> Result<bool> {
    match fs::symlink_metadata(path) {
        Ok(metadata) => check_file(path, &metadata).map(|()| true),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            Ok(false)
        }
        Err(error) => Err(io_fault(path, "looked at", error)),
    }
}

/// Creates the board at `path` if nobody else does so first. Many processes may try at once.
pub(super) fn create(path: &Path, queue: &Queue, now: Timestamp) -> Result<()> {
    if let Some(directory) = path.parent() {
        create_directory(directory).map_err(|error| io_fault(directory, "created", error))?;
    }
    let Some(_head) = queue.enter_alone() else { return Err(faults::busy(path, None)) };
    if exists(path)? {
        return Ok(());
    }
    // The new database appears under its name only when it is complete: a crash leaves nothing half made.
    let unfinished = beside(path, "-new");
    remove_with_companions(&unfinished).map_err(|error| io_fault(&unfinished, "removed", error))?;
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true);
    private(&mut options);
    options.open(&unfinished).map_err(|error| io_fault(path, "created", error))?;
    build(&unfinished, now).map_err(|error| faults::translate(path, error))?;
    set_orphans_aside(path).map_err(|error| io_fault(path, "created", error))?;
    fs::rename(&unfinished, path).map_err(|error| io_fault(path, "created", error))
}

/// Opens the existing board at `path`.
pub(super) fn connect(
    path: &Path,
    queue: &Queue,
    options: &SqliteOptions,
    now: Timestamp,
) -> Result<Connection> {
    if !exists(path)? {
        return Err(Fault::new(Code::Io, format!("{} has disappeared", path.display())).into());
    }
    check_header_once(path)?;
    let fault = |error| faults::translate(path, error);
    let flags =
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    let connection = Connection::open_with_flags(path, flags).map_err(fault)?;
    configure(&connection, options).map_err(fault)?;
    // Before any statement runs on tables that somebody else may have made.
    schema::check(&connection, path)?;
    if let schema::Age::Older = schema::age(&connection, path)? {
        migrate(&connection, path, queue, now)?;
    }
    Ok(connection)
}

fn migrate(connection: &Connection, path: &Path, queue: &Queue, now: Timestamp) -> Result<()> {
    let fault = |error| faults::translate(path, error);
    // Of many that try, the first one migrates; the others find that nothing is missing.
    queue.begin(connection, crate::store::Patience::Wait)?;
    let outcome = schema::migrate(connection, now).and_then(|()| connection.execute_batch("COMMIT"));
    if outcome.is_err() {
        let _ = connection.execute_batch("ROLLBACK");
    }
    outcome.map_err(fault)
}

fn configure(connection: &Connection, options: &SqliteOptions) -> rusqlite::Result<()> {
    // Before anything else, so that nothing that follows fails for want of patience.
    connection.busy_timeout(options.busy_timeout)?;
    for (setting, value) in [
        (DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true),
        (DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, false),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_FKEY, true),
        // Plans do not depend on values here; without this each statement is prepared again once they are bound.
        (DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true),
        // The log is kept and bounded by `settle`; folding it back at every close costs each command an fsync.
        (DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true),
    ] {
        connection.set_db_config(setting, value)?;
    }
    connection.execute_batch(match options.durability {
        super::Durability::Normal => "PRAGMA synchronous = NORMAL",
        super::Durability::Full => "PRAGMA synchronous = FULL",
    })
}

/// Fills an empty file. It ends as a complete board without companions.
fn build(path: &Path, now: Timestamp) -> rusqlite::Result<()> {
    let flags =
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    let connection = Connection::open_with_flags(path, flags)?;
    connection
        .execute_batch(&format!("BEGIN IMMEDIATE; PRAGMA application_id = {}", schema::APPLICATION_ID))?;
    schema::migrate(&connection, now)?;
    connection.execute_batch("COMMIT")?;
    connection.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()))?;
    connection.close().map_err(|(_, error)| error)
}

/// Looks at the first bytes of the file: is it a database of this program at all? SQLite would create companions
/// beside, or recover, a database that is none of our business.
fn check_header_once(path: &Path) -> Result<()> {
    let mut opened = OPENED.lock().unwrap_or_else(PoisonError::into_inner);
    if opened.contains(path) {
        return Ok(());
    }
    let mut options = OpenOptions::new();
    options.read(true);
    private(&mut options);
    let mut header = [0; 100];
    let mut file = options.open(path).map_err(|error| io_fault(path, "read", error))?;
    file.read_exact(&mut header).map_err(|_| faults::foreign(path, "it is too short for a database"))?;
    if !header.starts_with(b"SQLite format 3\0") {
        return Err(faults::foreign(path, "it is not a SQLite database"));
    }
    if header[68..72] != schema::APPLICATION_ID.to_be_bytes() {
        return Err(faults::foreign(path, "it is a database of another program"));
    }
    // What stands here may be outdated by the write-ahead log, but versions only grow.
    let version = u32::from_be_bytes([header[60], header[61], header[62], header[63]]);
    if version > schema::VERSION {
        return Err(schema::newer(path, version));
    }
    opened.insert(path.to_owned());
    Ok(())
}

#[cfg(unix)]
fn check_file(path: &Path, metadata: &fs::Metadata) -> Result<()> {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    let unsafe_file = |what: &str, hint: String| {
        Err::<(), Error>(
            Refusal::new(Code::UnsafePermissions, format!("{} {what}", path.display())).hint(hint).into(),
        )
    };
    if metadata.is_symlink() {
        return unsafe_file("is a symbolic link", "name the real file with --db".to_owned());
    }
    if !metadata.is_file() {
        return unsafe_file("is not a plain file", "name another file with --db".to_owned());
    }
    if metadata.uid() != rustix::process::geteuid().as_raw() {
        return unsafe_file("belongs to another user", "name a file of your own with --db".to_owned());
    }
    if metadata.nlink() > 1 {
        return unsafe_file("has a second name (a hard link)", "copy it to a file of its own".to_owned());
    }
    let mode = metadata.permissions().mode() & 0o777;
    if mode & 0o077 != 0 {
        return unsafe_file(
            &format!("can be read or written by others (mode {mode:04o})"),
            format!("chmod 600 {}", shell_word(path)),
        );
    }
    Ok(())
}

/// A path as one word of a shell, whatever is in it.
#[cfg(unix)]
fn shell_word(path: &Path) -> String {
    let text = path.display().to_string();
    let is_plain = |character: char| character.is_alphanumeric() || "/._-+@:,".contains(character);
    if text.chars().all(is_plain) { text } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

#[cfg(not(unix))]
fn check_file(path: &Path, metadata: &fs::Metadata) -> Result<()> {
    if metadata.is_symlink() || !metadata.is_file() {
        return Err(Refusal::new(Code::UnsafePermissions, format!("{} is not a plain file", path.display()))
            .hint("name another file with --db")
            .into());
    }
    Ok(())
}

/// Private to this user from the first byte, and never through a link.
#[cfg(unix)]
pub(super) fn private(options: &mut OpenOptions) {
    use std::os::unix::fs::OpenOptionsExt;
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::CLOEXEC | rustix::fs::OFlags::NONBLOCK;
    options.mode(0o600).custom_flags(flags.bits().cast_signed());
}

#[cfg(not(unix))]
pub(super) fn private(_options: &mut OpenOptions) {}

#[cfg(unix)]
fn create_directory(directory: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)
}

#[cfg(not(unix))]
fn create_directory(directory: &Path) -> io::Result<()> {
    fs::create_dir_all(directory)
}

fn remove_with_companions(path: &Path) -> io::Result<()> {
    for ending in ["", "-journal", "-wal", "-shm"] {
        match fs::remove_file(beside(path, ending)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// Takes away what a database that was moved or deleted has left beside its place. SQLite would take it for the log
/// of the new one and mix the two. It is kept under another name, because it may hold the last commits of the old one.
fn set_orphans_aside(path: &Path) -> io::Result<()> {
    for ending in ["-wal", "-journal", "-shm"] {
        match fs::rename(beside(path, ending), beside(path, &format!("{ending}-orphaned"))) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

fn io_fault(path: &Path, what: &str, error: io::Error) -> Error {
    use io::ErrorKind;
    let shown = path.display();
    match error.kind() {
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
            Refusal::new(Code::ReadOnly, format!("{shown} can't be {what}: this user has no permission"))
                .hint("a board needs a directory of one's own; --db or BLACKBOARD_DB names another place")
                .into()
        }
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            Fault::new(Code::DiskFull, format!("there is no room left for {shown}; nothing was written"))
                .hint("free some space on this file system and run the command again")
                .because(error)
                .into()
        }
        _ => Fault::new(Code::Io, format!("{shown} can't be {what}")).because(error).into(),
    }
}
