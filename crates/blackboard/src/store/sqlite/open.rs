//! Opens and creates the database file, and trusts no existing file.
//!
//! Files are private from their first byte, by the mode they are created with. A new board gets its name when it is
//! complete, and never replaces another file. An existing file is checked before SQLite touches it.

use std::fs::{self, OpenOptions};
use std::io;
use std::path::Path;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use super::directory;
use super::queue::Queue;
use super::sidecars::beside;
use super::{Durability, SqliteOptions, faults, filesystem, git, schema, trust};
use crate::clock::Timestamp;
use crate::error::{Code, Error, Fault, Refusal, Result};
use crate::hint::Hint;
use crate::store::create_private_directory;
use crate::store::transfer::Hold;
use crate::text::shell_word;

/// How many prepared statements a connection keeps: more than the calls of one process use. One batch of pruning uses
/// more than the 16 that would be kept otherwise, and would prepare all of them again for the next batch.
const STATEMENTS_KEPT: usize = 64;

/// Creates the board at `path` if no other process does so first. Several processes may try at once; exactly one gets
/// `true`.
pub(super) fn create(
    path: &Path,
    queue: &Queue,
    options: &SqliteOptions,
    now: Timestamp,
    hold: Hold,
) -> Result<bool> {
    create_with(
        path,
        queue,
        options,
        &|connection| {
            schema::migrate(connection, now)?;
            schema::set_hold(connection, hold)
        },
        schema::APPLICATION_ID,
    )
}

/// The same for a file of any kind, whose tables `fill` creates.
pub(super) fn create_with(
    path: &Path,
    queue: &Queue,
    options: &SqliteOptions,
    fill: &dyn Fn(&Connection) -> rusqlite::Result<()>,
    application_id: i32,
) -> Result<bool> {
    let created = match path.parent() {
        Some(directory) => {
            if !options.create_directories && !directory.as_os_str().is_empty() && !directory.exists() {
                return Err(no_directory(path, directory));
            }
            trust::check_filesystem(path, options, || filesystem::of_directory(directory))?;
            create_private_directory(directory).map_err(|error| io_fault(directory, "created", error))?
        }
        None => Vec::new(),
    };
    // Before a file exists that a refusal would leave there.
    git::check_untracked(path, None)?;
    if options.owns_directory {
        git::keep_out_of_git(path)?;
    }
    let head = queue.enter_alone();
    if trust::plain_file(path)?.is_some() {
        return Ok(false);
    }
    let Some(head) = head else { return Err(faults::busy(path, None)) };
    // The new database gets its name only when it is complete: a crash leaves no incomplete board. A process that is
    // alone at the head of the queue removes what a crash has left. Otherwise it uses a unique temporary name.
    let unfinished = if head.is_alone() {
        beside(path, "-new")
    } else {
        beside(path, &format!("-new-{}", uuid::Uuid::new_v4().simple()))
    };
    let placed = build(&unfinished, path, fill, application_id)
        .and_then(|()| place(&unfinished, path, head.is_alone()));
    if placed.is_err() {
        let _ = remove_with_companions(&unfinished);
    }
    if options.durability == Durability::Full {
        placed.and_then(|is_ours| {
            let synced = directory::sync(path, &created);
            synced.map(|()| is_ours).map_err(|error| io_fault(path, "written to the disk", error))
        })
    } else {
        placed
    }
}

fn no_directory(path: &Path, directory: &Path) -> Error {
    let (path, directory) = (path.display().to_string(), directory.display().to_string());
    let message = format!("cannot create a board at {path}: the directory {directory} does not exist");
    let hint = format!("check the path, or create the directory: mkdir -p {}", shell_word(&directory));
    Refusal::new(Code::InvalidValue, message).hint(hint).into()
}

/// A connection to a board.
pub(super) struct Connected {
    pub(super) connection: Connection,
    /// The file that it is connected to.
    pub(super) file: trust::Identity,
    /// The length of the WAL's file just before.
    pub(super) wal_bytes: u64,
}

/// Opens the existing board at `path`.
pub(super) fn connect(
    path: &Path,
    queue: &Queue,
    options: &SqliteOptions,
    now: Timestamp,
) -> Result<Connected> {
    let trust::Checked { file, wal_bytes } = trust::check(path, options)?;
    let fault = |error| faults::translate(path, error);
    let connection = open_file(path).map_err(fault)?;
    trust::check_same(path, &file)?;
    configure(&connection, options).map_err(fault)?;
    // Before any statement runs on tables that another program may have made.
    let (state, hold) = schema::check(&connection, path)?;
    refuse_loading(hold, path)?;
    if let schema::SchemaState::Older = state {
        migrate(&connection, path, queue, now)?;
    }
    Ok(Connected { connection, file, wal_bytes })
}

/// Opens the board at `path` that is being loaded, or returns `None` if it is not.
pub(super) fn connect_loading(path: &Path, options: &SqliteOptions) -> Result<Option<Connected>> {
    let trust::Checked { file, wal_bytes } = trust::check(path, options)?;
    let fault = |error| faults::translate(path, error);
    let connection = open_file(path).map_err(fault)?;
    trust::check_same(path, &file)?;
    configure(&connection, options).map_err(fault)?;
    // Rows come in any order, so a row may refer to one that follows.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_FKEY, false).map_err(fault)?;
    let (_, hold) = schema::check(&connection, path)?;
    Ok((hold == Hold::Loading).then_some(Connected { connection, file, wal_bytes }))
}

fn refuse_loading(hold: Hold, path: &Path) -> Result<()> {
    if hold == Hold::Loading { Err(schema::being_copied(path)) } else { Ok(()) }
}

/// Opens the existing board at `path` for reading only.
pub(super) fn connect_to_read(path: &Path, options: &SqliteOptions) -> Result<Connected> {
    let trust::Checked { file, wal_bytes } = trust::check(path, options)?;
    let fault = |error| faults::translate(path, error);
    let connection = open_as(path, OpenFlags::SQLITE_OPEN_READ_ONLY).map_err(fault)?;
    trust::check_same(path, &file)?;
    configure(&connection, options).map_err(fault)?;
    refuse_older(&connection, path)?;
    Ok(Connected { connection, file, wal_bytes })
}

/// Refuses a board that would have to be migrated.
fn refuse_older(connection: &Connection, path: &Path) -> Result<()> {
    let (state, hold) = schema::check(connection, path)?;
    refuse_loading(hold, path)?;
    match state {
        schema::SchemaState::Current => Ok(()),
        schema::SchemaState::Older => {
            let what = format!("{} was written by an older version of blackboard", path.display());
            Err(Refusal::new(Code::ReadOnly, what).hint(Hint::UpgradeBoard).into())
        }
    }
}

/// Opens the existing board at `path`, whose files nothing can change: without locks, and without the files that
/// SQLite would create beside it.
pub(super) fn connect_immutable(path: &Path, options: &SqliteOptions) -> Result<Connected> {
    let trust::Checked { file, wal_bytes } = trust::check(path, options)?;
    let fault = |error| faults::translate(path, error);
    let connection = open_immutable(path).map_err(fault)?;
    trust::check_same(path, &file)?;
    configure(&connection, options).map_err(fault)?;
    refuse_older(&connection, path)?;
    Ok(Connected { connection, file, wal_bytes })
}

/// Opens a database for reading without its WAL, without locks, and without creating files beside it.
pub(super) fn open_immutable(path: &Path) -> rusqlite::Result<Connection> {
    // SQLite refuses links anywhere in a path; a directory may be one.
    let directory = path.parent().filter(|directory| !directory.as_os_str().is_empty());
    // SQLite reports a directory that cannot be found.
    let directory = fs::canonicalize(directory.unwrap_or(Path::new("."))).unwrap_or_default();
    let place = directory.join(path.file_name().unwrap_or_default());
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
        | OpenFlags::SQLITE_OPEN_URI
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    Connection::open_with_flags(format!("file:{}?immutable=1", percent_encoded(&place)), flags)
}

/// Whether the board at `path` is complete in a directory that this user cannot write: nothing of it is in a WAL.
pub(super) fn is_immutable(path: &Path) -> bool {
    let is_empty = |ending| fs::symlink_metadata(beside(path, ending)).map_or(true, |found| found.len() == 0);
    !faults::may_be_written(path) && is_empty("-wal") && is_empty("-journal")
}

/// A path in the form of a URI.
fn percent_encoded(path: &Path) -> String {
    let encoded = path.as_os_str().as_encoded_bytes().iter().map(|&byte| match byte {
        b'/' | b'.' | b'_' | b'-' | b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' => char::from(byte).to_string(),
        byte => format!("%{byte:02X}"),
    });
    encoded.collect()
}

/// The refusal of a write on a board that was opened for reading.
pub(super) fn reads_only(path: &Path) -> Error {
    Refusal::new(Code::ReadOnly, format!("{} is open read-only", path.display())).into()
}

pub(super) fn open_file(path: &Path) -> rusqlite::Result<Connection> {
    open_as(path, OpenFlags::SQLITE_OPEN_READ_WRITE)
}

/// Opens the database unless its name is a link. SQLite refuses links anywhere in a path; a directory may be one.
pub(super) fn open_as(path: &Path, access: OpenFlags) -> rusqlite::Result<Connection> {
    let flags = access | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    match (Connection::open_with_flags(path, flags), path.parent(), path.file_name()) {
        (Err(error), Some(directory), Some(name)) if faults::is_link(&error) => {
            let directory = fs::canonicalize(directory).map_err(|_| error)?;
            Connection::open_with_flags(directory.join(name), flags)
        }
        (opened, ..) => opened,
    }
}

fn migrate(connection: &Connection, path: &Path, queue: &Queue, now: Timestamp) -> Result<()> {
    let fault = |error| faults::translate(path, error);
    // Of several processes, the first one migrates; the others find nothing to do.
    queue.begin(connection, crate::store::OnBusy::Wait)?;
    let outcome = schema::migrate(connection, now).and_then(|()| connection.execute_batch("COMMIT"));
    if outcome.is_err() {
        let _ = connection.execute_batch("ROLLBACK");
    }
    outcome.map_err(fault)
}

pub(super) fn configure(connection: &Connection, options: &SqliteOptions) -> rusqlite::Result<()> {
    // Before anything else, so that no later statement fails at once because the file is busy.
    connection.busy_timeout(options.busy_timeout)?;
    for (setting, value) in [
        (DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true),
        (DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, false),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_FKEY, true),
        // Plans do not depend on values here. Without this each statement is prepared again once they are bound.
        (DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true),
        // The WAL is kept, and `maintain` bounds it; a checkpoint at every close would cost each command an fsync.
        (DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true),
    ] {
        connection.set_db_config(setting, value)?;
    }
    connection.set_prepared_statement_cache_capacity(STATEMENTS_KEPT);
    connection.execute_batch(match options.durability {
        Durability::Normal => "PRAGMA synchronous = NORMAL",
        Durability::Full => "PRAGMA synchronous = FULL",
    })
}

/// Creates a complete board without companions, which will become the one at `path`.
fn build(
    unfinished: &Path,
    path: &Path,
    fill: &dyn Fn(&Connection) -> rusqlite::Result<()>,
    application_id: i32,
) -> Result<()> {
    remove_with_companions(unfinished).map_err(|error| io_fault(unfinished, "removed", error))?;
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true);
    private(&mut options);
    options
        .open(unfinished)
        .and_then(|file| keep_for_owner(&file))
        .map_err(|error| io_fault(path, "created", error))?;
    fill_file(unfinished, fill, application_id).map_err(|error| faults::translate(path, error))
}

/// Renames the new board, unless another process was faster: then it returns `false`.
fn place(unfinished: &Path, path: &Path, is_alone: bool) -> Result<bool> {
    let fault = |error| io_fault(path, "created", error);
    let renamed = if is_alone {
        set_orphans_aside(path).map_err(fault)?;
        rename_to_nothing(unfinished, path, |from, to| fs::rename(from, to))
    } else {
        refuse_orphans(path)?;
        rename_to_nothing(unfinished, path, rename_by_link)
    };
    match renamed {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let removed = remove_with_companions(unfinished);
            removed.map(|()| false).map_err(|error| io_fault(unfinished, "removed", error))
        }
        renamed => renamed.map(|()| true).map_err(fault),
    }
}

/// Fills an empty file.
fn fill_file(
    path: &Path,
    fill: &dyn Fn(&Connection) -> rusqlite::Result<()>,
    application_id: i32,
) -> rusqlite::Result<()> {
    let connection = open_file(path)?;
    connection.execute_batch(&format!("BEGIN IMMEDIATE; PRAGMA application_id = {application_id}"))?;
    fill(&connection)?;
    connection.execute_batch("COMMIT")?;
    connection.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()))?;
    connection.close().map_err(|(_, error)| error)
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

/// Gives the owner of a new file the rights that the umask may have removed.
#[cfg(unix)]
pub(super) fn keep_for_owner(file: &fs::File) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    if file.metadata()?.permissions().mode() & 0o600 == 0o600 {
        return Ok(());
    }
    file.set_permissions(fs::Permissions::from_mode(0o600))
}

#[cfg(not(unix))]
pub(super) fn keep_for_owner(_file: &fs::File) -> io::Result<()> {
    Ok(())
}

pub(super) fn remove_with_companions(path: &Path) -> io::Result<()> {
    for ending in ["", "-journal", "-wal", "-shm"] {
        match fs::remove_file(beside(path, ending)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// Renames the file, unless the new name exists. `otherwise` does so where the file system does not support this.
#[cfg(target_os = "linux")]
pub(super) fn rename_to_nothing(
    from: &Path,
    to: &Path,
    otherwise: fn(&Path, &Path) -> io::Result<()>,
) -> io::Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    use rustix::io::Errno;
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        Err(Errno::INVAL | Errno::NOSYS) => otherwise(from, to),
        renamed => renamed.map_err(io::Error::from),
    }
}

#[cfg(not(target_os = "linux"))]
pub(super) fn rename_to_nothing(
    from: &Path,
    to: &Path,
    otherwise: fn(&Path, &Path) -> io::Result<()>,
) -> io::Result<()> {
    otherwise(from, to)
}

/// A hard link never replaces another file. For a moment the file has both names.
pub(super) fn rename_by_link(from: &Path, to: &Path) -> io::Result<()> {
    fs::hard_link(from, to)?;
    fs::remove_file(from)
}

/// Refuses companions of a deleted database if another process may have just begun to use a new one.
fn refuse_orphans(path: &Path) -> Result<()> {
    let orphan =
        ["-wal", "-journal"].map(|ending| beside(path, ending)).into_iter().find(|file| file.exists());
    match orphan {
        Some(orphan) if !path.exists() => {
            let what = format!("{} belongs to a deleted board", orphan.display());
            Err(Fault::new(Code::Io, what)
                .hint("locks do not work on this file system; move it elsewhere, then retry")
                .into())
        }
        _ => Ok(()),
    }
}

/// Moves companions of a moved or deleted database aside. SQLite would use them as the WAL of the new one and mix the
/// two. They are kept under another name, because they may contain the last commits of the old one.
fn set_orphans_aside(path: &Path) -> io::Result<()> {
    for ending in ["-wal", "-journal", "-shm"] {
        match fs::rename(beside(path, ending), beside(path, &format!("{ending}-orphaned"))) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// Translates an error of the operating system about a file.
pub(super) fn io_fault(path: &Path, what: &str, error: io::Error) -> Error {
    use io::ErrorKind;
    let shown = path.display();
    match error.kind() {
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
            Refusal::new(Code::ReadOnly, format!("{shown} cannot be {what}: this user has no permission"))
                .hint(Hint::UseAnotherBoard)
                .into()
        }
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            Fault::new(Code::DiskFull, format!("no space left for {shown}; nothing was written"))
                .hint("free some space on this file system, then retry")
                .because(error)
                .into()
        }
        _ => Fault::new(Code::Io, format!("{shown} cannot be {what}")).because(error).into(),
    }
}
