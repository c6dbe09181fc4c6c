//! File access: creates private files with the right mode from the start, and replaces files atomically.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, Permissions, TryLockError};
use std::io::{self, BufWriter, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use blackboard::clock::{Clock, SystemClock};

/// The permissions of a replaced file.
#[derive(Clone, Copy, Debug)]
pub enum Access<'a> {
    /// Only this user can read and write it.
    Private,
    /// The default for new files.
    Usual,
    /// The default for new files, and executable.
    Program,
    /// The permissions of the replaced file.
    Like(&'a Permissions),
}

/// Options that create a file with mode 0600.
pub fn private_file() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Opens a regular file of this user to read and write it, and creates it with mode 0600 if `create` is set. It follows no link
/// and waits for no other program.
#[cfg(unix)]
pub fn own_file(path: &Path, create: bool) -> io::Result<File> {
    use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(create).mode(0o600).custom_flags(flags.bits().cast_signed());
    let file = options.open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // What another user wrote is not to be trusted: a server that it names has a token which that user knows.
    if metadata.uid() != rustix::process::geteuid().as_raw() {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "it belongs to another user"));
    }
    if create {
        Access::Private.apply(&file)?;
    }
    Ok(file)
}

/// Creates a file, and waits for its lock at most this long. It is released when the file is closed.
pub fn lock_within(path: &Path, limit: Duration) -> io::Result<File> {
    const POLL: Duration = Duration::from_millis(5);
    let file = own_file(path, true)?;
    let end = Instant::now() + limit;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) if Instant::now() < end => thread::sleep(POLL),
            Err(error) => return Err(error.into()),
        }
    }
}

/// Opens a regular file of this user to read it. It follows no link and waits for no other program.
#[cfg(unix)]
pub fn own_file_to_read(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
    let check = |metadata: &fs::Metadata| {
        if !metadata.is_file() {
            return Err(ErrorKind::InvalidInput.into());
        }
        if metadata.uid() != rustix::process::geteuid().as_raw() {
            return Err(io::Error::new(ErrorKind::PermissionDenied, "it belongs to another user"));
        }
        Ok(())
    };
    // Opening a device may have an effect.
    check(&fs::symlink_metadata(path)?)?;
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let file = OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path)?;
    check(&file.metadata()?)?;
    Ok(file)
}

/// Opens a regular file to read it.
#[cfg(not(unix))]
pub fn own_file_to_read(path: &Path) -> io::Result<File> {
    let metadata = fs::symlink_metadata(path)?;
    if metadata.is_file() { File::open(path) } else { Err(ErrorKind::InvalidInput.into()) }
}

/// Device and number of a file, which no other file has while it exists.
#[cfg(unix)]
pub fn identity(metadata: &fs::Metadata) -> (u64, u64) {
    use std::os::unix::fs::MetadataExt;
    (metadata.dev(), metadata.ino())
}

/// The same where files have no number: the moment of its creation.
#[cfg(not(unix))]
pub fn identity(metadata: &fs::Metadata) -> (u64, u64) {
    let created = metadata.created().ok();
    let since = created.and_then(|created| created.duration_since(std::time::UNIX_EPOCH).ok());
    (0, since.and_then(|since| u64::try_from(since.as_nanos()).ok()).unwrap_or_default())
}

/// Opens a file to read and write it, and creates it if `create` is set. The directory decides who can read it.
#[cfg(not(unix))]
pub fn own_file(path: &Path, create: bool) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create(create).truncate(false).open(path)
}

/// Reads a regular file up to a limit. Anything else is refused, because reading a pipe may never end.
pub fn plain_text(file: &Path, longest: u64) -> Option<String> {
    let metadata = fs::metadata(file).ok()?;
    if !metadata.is_file() || metadata.len() > longest {
        return None;
    }
    let mut text = String::new();
    fs::File::open(file).ok()?.take(longest).read_to_string(&mut text).ok()?;
    Some(text)
}

/// Replaces a file atomically. Never writes through a symbolic link.
pub fn replace<E: From<io::Error>>(
    file: &Path,
    access: Access<'_>,
    write: impl FnOnce(&mut BufWriter<File>) -> Result<(), E>,
) -> Result<(), E> {
    replace_unless(file, access, write, || Ok(()))
}

/// The same, unless `check` refuses it. That runs last, when only the new name is missing: a disk may take long before.
pub fn replace_unless<E: From<io::Error>>(
    file: &Path,
    access: Access<'_>,
    write: impl FnOnce(&mut BufWriter<File>) -> Result<(), E>,
    check: impl FnOnce() -> Result<(), E>,
) -> Result<(), E> {
    let (temporary, out) = create_beside(file, access)?;
    let mut out = BufWriter::new(out);
    let replaced = write(&mut out).and_then(|()| {
        out.flush()?;
        access.apply(out.get_ref())?;
        out.get_ref().sync_all()?;
        check()?;
        Ok(fs::rename(&temporary, file)?)
    });
    if replaced.is_err() {
        // A temporary file that is left over does no harm (see `remove_leftovers`), and the caller reports the error.
        let _ = fs::remove_file(&temporary);
    }
    replaced
}

/// Renames a file in its directory. If the new name exists, fails with [`ErrorKind::AlreadyExists`]. Where the file system
/// has hard links, the file also keeps its old name.
pub fn set_aside(file: &Path, other: &Path) -> io::Result<()> {
    match fs::hard_link(file, other) {
        Err(error) if can_have_no_second_name(error.kind()) => move_to_free_name(file, other),
        linked => linked,
    }
}

/// Whether the file system has no hard links. File systems report that with different errors.
fn can_have_no_second_name(error: ErrorKind) -> bool {
    use ErrorKind::{CrossesDevices, PermissionDenied, TooManyLinks, Unsupported};
    matches!(error, CrossesDevices | PermissionDenied | TooManyLinks | Unsupported)
}

#[cfg(any(target_os = "linux", target_os = "macos"))]
fn move_to_free_name(file: &Path, other: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    Ok(renameat_with(CWD, file, CWD, other, RenameFlags::NOREPLACE)?)
}

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
fn move_to_free_name(_file: &Path, _other: &Path) -> io::Result<()> {
    Err(ErrorKind::Unsupported.into())
}

/// Creates a hidden file in the same directory, and locks it as long as it is open: one that is not locked was left by a
/// process that was killed. A file system without locks has no such files, as far as [`remove_leftovers`] can know.
fn create_beside(file: &Path, access: Access<'_>) -> io::Result<(PathBuf, File)> {
    loop {
        let mut name = prefix_beside(file);
        name.push(format!("{}-{}", std::process::id(), SystemClock.now().millis()));
        let temporary = file.with_file_name(name);
        let out = access.options().create_new(true).open(&temporary)?;
        let is_locked = out.lock().is_ok();
        // Another process may have removed it just before it was locked.
        if !is_locked || temporary.try_exists()? {
            return Ok((temporary, out));
        }
    }
}

/// How the names of temporary files for this one begin.
fn prefix_beside(file: &Path) -> OsString {
    let mut prefix = OsString::from(".");
    prefix.push(file.file_name().unwrap_or_default());
    prefix.push("-");
    prefix
}

/// Removes the temporary files of processes that were killed while they replaced this file. What cannot be removed stays:
/// it does no harm.
pub fn remove_leftovers(file: &Path) {
    let (prefix, directory) = (prefix_beside(file), file.with_file_name("."));
    let Ok(others) = fs::read_dir(directory) else { return };
    for other in others.flatten() {
        let name = other.file_name();
        let rest = name.as_encoded_bytes().strip_prefix(prefix.as_encoded_bytes());
        if rest.is_some_and(is_process_and_time) {
            remove_unlocked(&other.path());
        }
    }
}

/// Whether this is the end of a name that [`create_beside`] makes.
fn is_process_and_time(name: &[u8]) -> bool {
    let is_number = |part: &[u8]| !part.is_empty() && part.iter().all(u8::is_ascii_digit);
    let mut parts = name.split(|byte| *byte == b'-');
    matches!((parts.next(), parts.next(), parts.next()), (Some(process), Some(time), None)
        if is_number(process) && is_number(time))
}

fn remove_unlocked(file: &Path) {
    let Ok(opened) = own_file(file, false) else { return };
    if opened.try_lock().is_ok() {
        let _ = fs::remove_file(file);
    }
}

impl Access<'_> {
    /// The options for the temporary file. Its permissions are never wider than the final ones.
    fn options(self) -> OpenOptions {
        let mut options = private_file();
        #[cfg(unix)]
        match self {
            Access::Private | Access::Like(_) => {}
            Access::Usual => _ = std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o666),
            Access::Program => _ = std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o777),
        }
        options
    }

    /// Gives a new file its final permissions. The owner can always use it: a hook that is not executable would be
    /// skipped, and a registration that cannot be read would be missing, whatever the umask.
    #[cfg(unix)]
    fn apply(self, file: &File) -> io::Result<()> {
        use std::os::unix::fs::PermissionsExt as _;
        let owner = match self {
            Access::Like(permissions) => return file.set_permissions(permissions.clone()),
            Access::Private | Access::Usual => 0o600,
            Access::Program => 0o700,
        };
        let mode = file.metadata()?.permissions().mode();
        if mode & owner == owner {
            Ok(())
        } else {
            file.set_permissions(Permissions::from_mode(mode | owner))
        }
    }

    #[cfg(not(unix))]
    fn apply(self, file: &File) -> io::Result<()> {
        if let Access::Like(permissions) = self {
            file.set_permissions(permissions.clone())?;
        }
        Ok(())
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn mode(file: &Path) -> u32 {
        fs::metadata(file).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn a_file_that_is_changed_while_its_replacement_is_written_stays() {
        let directory = testkit::tempdir().unwrap();
        let file = directory.path().join("file");
        fs::write(&file, "old").unwrap();
        let replaced = replace_unless(
            &file,
            Access::Private,
            |out| out.write_all(b"new"),
            || {
                // The replacement is complete: nothing but its name is missing.
                let others = fs::read_dir(directory.path())?.flatten().filter(|entry| entry.path() != file);
                let others: Vec<_> = others.map(|entry| fs::read(entry.path()).unwrap()).collect();
                assert_eq!(others, [b"new"]);
                fs::write(&file, "by a person")?;
                Err(io::Error::other("changed"))
            },
        );
        assert!(replaced.is_err());
        assert_eq!(fs::read(&file).unwrap(), b"by a person");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1, "nothing else is left");
    }

    #[test]
    fn temporary_files_of_killed_processes_are_removed() {
        let directory = testkit::tempdir().unwrap();
        let file = directory.path().join("a.md");
        let (left, in_use) = (directory.path().join(".a.md-1-2"), directory.path().join(".a.md-3-4"));
        let others = [".a.md-1", ".a.md-1-2-3", ".a.md-x-2", "a.md-1-2", ".b.md-1-2"];
        for other in
            others.iter().map(|name| directory.path().join(name)).chain([left.clone(), in_use.clone()])
        {
            fs::write(other, "x").unwrap();
        }
        let locked = File::open(&in_use).unwrap();
        locked.lock().unwrap();
        remove_leftovers(&file);
        assert!(!left.exists() && in_use.exists());
        replace(&file, Access::Private, |out| {
            out.write_all(b"new")?;
            // That of this process is in use.
            remove_leftovers(&file);
            Ok::<(), io::Error>(())
        })
        .unwrap();
        drop(locked);
        remove_leftovers(&file);
        assert!(!in_use.exists());
        assert_eq!(fs::read(&file).unwrap(), b"new");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), others.len() + 1);
    }

    #[test]
    fn a_file_is_replaced_with_the_access_that_is_asked_for() {
        let directory = testkit::tempdir().unwrap();
        let usual = directory.path().join("usual");
        fs::write(&usual, "").unwrap();
        let odd = Permissions::from_mode(0o640);
        for (access, expected) in [
            (Access::Private, 0o600),
            (Access::Usual, mode(&usual)),
            (Access::Program, mode(&usual) | (mode(&usual) & 0o444) >> 2),
            (Access::Like(&odd), 0o640),
        ] {
            let file = directory.path().join("file");
            replace(&file, access, |out| out.write_all(b"new")).unwrap();
            assert_eq!((fs::read(&file).unwrap(), mode(&file)), (b"new".to_vec(), expected), "{access:?}");
        }
    }

    #[test]
    fn a_file_that_can_not_be_written_stays_and_nothing_lies_beside_it() {
        let directory = testkit::tempdir().unwrap();
        let file = directory.path().join("file");
        fs::write(&file, "old").unwrap();
        let failed = replace(&file, Access::Usual, |out| {
            out.write_all(b"half")?;
            Err(io::Error::other("the disk is full"))
        });
        assert_eq!(failed.unwrap_err().to_string(), "the disk is full");
        assert_eq!(fs::read(&file).unwrap(), b"old");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }

    #[test]
    fn backup_never_replaces_another_file() {
        for set_aside in [set_aside, move_to_free_name] {
            let directory = testkit::tempdir().unwrap();
            let (file, other) = (directory.path().join("file"), directory.path().join("other"));
            fs::write(&file, "1").unwrap();
            set_aside(&file, &other).unwrap();
            assert_eq!(fs::read(&other).unwrap(), b"1");
            fs::write(&file, "2").unwrap();
            fs::remove_file(&other).unwrap();
            fs::write(&other, "1").unwrap();
            assert_eq!(set_aside(&file, &other).unwrap_err().kind(), ErrorKind::AlreadyExists);
            assert_eq!((fs::read(&file).unwrap(), fs::read(&other).unwrap()), (b"2".to_vec(), b"1".to_vec()));
        }
    }
}
