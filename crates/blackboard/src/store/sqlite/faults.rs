//! Translates errors of SQLite. Users should not have to read a raw SQL message.

use std::path::Path;

use rusqlite::{ErrorCode, ffi};

use crate::error::{Code, Error, Fault, Refusal};
use crate::hint::Hint;

/// Translates an error of the database at `path`.
pub(super) fn translate(path: &Path, error: rusqlite::Error) -> Error {
    let shown = path.display();
    let code = error.sqlite_error_code();
    match code {
        // The last code means that other processes were faster repeatedly while the WAL was being opened.
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked | ErrorCode::FileLockingProtocolFailed) => {
            busy(path, None)
        }
        _ if is_out_of_space(&error) => {
            Fault::new(Code::DiskFull, format!("no space left for {shown}; nothing was written"))
                .hint("free some space on this file system, then retry")
                .because(error)
                .into()
        }
        Some(ErrorCode::DatabaseCorrupt) => corrupt(path, error),
        None if is_misread(&error) => corrupt(path, error),
        Some(ErrorCode::NotADatabase) => foreign(path, "it is not a SQLite database"),
        Some(ErrorCode::OutOfMemory) => {
            Fault::new(Code::Io, format!("there was not enough memory to work on {shown}"))
                .hint("nothing was changed; retry when more memory is available")
                .because(error)
                .into()
        }
        Some(ErrorCode::CannotOpen) if is_link(&error) => {
            Refusal::new(Code::UnsafePermissions, format!("{shown} is or became a symbolic link"))
                .hint(Hint::UseAnotherBoard)
                .into()
        }
        Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied)
            if may_be_written(path) =>
        {
            Fault::new(
                Code::Io,
                format!("cannot open {shown} or one of its SQLite files; it may have been moved"),
            )
            .hint("check that it was not moved, and the limit of open files")
            .because(error)
            .into()
        }
        Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => Refusal::new(
            Code::ReadOnly,
            format!("{shown} cannot be written: the file, its directory or the file system is read-only"),
        )
        .hint(Hint::UseAnotherBoard)
        .into(),
        // Locks that always fail, not because another process holds them, are a problem of the file system as well.
        Some(ErrorCode::SystemIoFailure) => {
            Fault::new(Code::Io, format!("the operating system failed to read or write {shown}"))
                .hint("see the cause; a network or overlay file system may not support SQLite's locks")
                .because(error)
                .into()
        }
        _ => {
            Fault::new(Code::Internal, format!("the database at {shown} refused a statement of this program"))
                .hint("this is a bug; the transaction was rolled back and nothing was changed")
                .because(error)
                .into()
        }
    }
}

/// Whether the file system is full. If the index of the WAL cannot grow, SQLite reports an I/O error.
fn is_out_of_space(error: &rusqlite::Error) -> bool {
    let code = error.sqlite_error().map(|error| error.extended_code);
    matches!(code, Some(ffi::SQLITE_FULL | ffi::SQLITE_IOERR_SHMSIZE))
}

/// Whether SQLite found a link instead of a file.
pub(super) fn is_link(error: &rusqlite::Error) -> bool {
    error.sqlite_error().map(|error| error.extended_code) == Some(ffi::SQLITE_CANTOPEN_SYMLINK)
}

/// Whether this user may write the database and its directory, according to the operating system.
#[cfg(unix)]
pub(super) fn may_be_written(path: &Path) -> bool {
    use rustix::fs::{Access, access};
    let directory = path.parent().filter(|directory| !directory.as_os_str().is_empty());
    let directory = directory.unwrap_or(Path::new("."));
    access(directory, Access::WRITE_OK).is_ok()
        && !matches!(access(path, Access::WRITE_OK), Err(error) if error != rustix::io::Errno::NOENT)
}

#[cfg(not(unix))]
pub(super) fn may_be_written(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|metadata| !metadata.permissions().readonly())
}

/// Whether a column has a value that this program never writes there.
fn is_misread(error: &rusqlite::Error) -> bool {
    use rusqlite::Error::{FromSqlConversionFailure, IntegralValueOutOfRange, InvalidColumnType, Utf8Error};
    matches!(
        error,
        FromSqlConversionFailure(..) | IntegralValueOutOfRange(..) | InvalidColumnType(..) | Utf8Error(..)
    )
}

/// The file is damaged.
pub(super) fn corrupt(path: &Path, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Fault::new(Code::Corrupt, format!("the database {} is damaged", path.display()))
        .hint("it was left as it is; move it away to start with an empty board, or restore a copy")
        .because(source)
        .into()
}

/// The file belongs to another program.
pub(super) fn foreign(path: &Path, why: &str) -> Error {
    Fault::new(
        Code::ForeignDatabase,
        format!("{} is not a blackboard database ({why}); the file was not changed", path.display()),
    )
    .hint(Hint::UseAnotherBoard)
    .into()
}

/// Another process held the write lock for too long.
pub(super) fn busy(path: &Path, holder: Option<String>) -> Error {
    let who = holder.unwrap_or_else(|| "another process".to_owned());
    Refusal::new(Code::Busy, format!("{} is locked by {who}; nothing was changed", path.display()))
        .hint("retry, or check what that process is doing")
        .detail("lock_holder", who)
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code_of(code: i32, path: &Path) -> Code {
        translate(path, rusqlite::Error::SqliteFailure(ffi::Error::new(code), None)).code()
    }

    #[test]
    fn sqlite_errors_map_to_board_codes() {
        let directory = testkit::tempdir().unwrap();
        let board = directory.path().join("local.db");
        std::fs::write(&board, "").unwrap();
        for (said, meant) in [
            (ffi::SQLITE_BUSY, Code::Busy),
            (ffi::SQLITE_BUSY_SNAPSHOT, Code::Busy),
            (ffi::SQLITE_PROTOCOL, Code::Busy),
            (ffi::SQLITE_FULL, Code::DiskFull),
            (ffi::SQLITE_CORRUPT, Code::Corrupt),
            (ffi::SQLITE_NOTADB, Code::ForeignDatabase),
            (ffi::SQLITE_NOMEM, Code::Io),
            (ffi::SQLITE_IOERR_READ, Code::Io),
            (ffi::SQLITE_CANTOPEN, Code::Io),
            (ffi::SQLITE_READONLY_DBMOVED, Code::Io),
            (ffi::SQLITE_CANTOPEN_SYMLINK, Code::UnsafePermissions),
            (ffi::SQLITE_ERROR, Code::Internal),
        ] {
            assert_eq!(code_of(said, &board), meant, "{said}");
        }
        // No user may write there, not even root.
        #[cfg(target_os = "linux")]
        for said in [ffi::SQLITE_CANTOPEN, ffi::SQLITE_READONLY, ffi::SQLITE_PERM] {
            assert_eq!(code_of(said, Path::new("/proc/self/no/such.db")), Code::ReadOnly, "{said}");
        }
    }
}
