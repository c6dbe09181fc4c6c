//! Checks that the files of a board belong to this user and to this program.
//!
//! A database is checked through its own descriptor before SQLite touches it: it has to be a board, and private to
//! this user. Companion files have to pass the same checks, because SQLite trusts them. Nothing here opens a database
//! that this process has open already: closing the second descriptor would drop SQLite's locks.

use std::collections::BTreeMap;
use std::fs::{self, Metadata, OpenOptions};
use std::io::{self, Read, Seek};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use super::filesystem::{self, Kind};
use super::schema::FileKind;
use super::sidecars::beside;
use super::{SqliteOptions, faults, git, open, reference, schema};
use crate::error::{Code, Error, Fault, Refusal, Result};
use crate::hint::Hint;

/// The files that SQLite and the queue keep beside a database.
const COMPANIONS: [&str; 4] = [WAL, "-shm", "-journal", QUEUE];

/// The ending of the file on which writers queue.
const QUEUE: &str = "-lock";

/// The ending of the WAL.
const WAL: &str = "-wal";

/// Databases that this process has opened by itself, and must not open again; with their application ids.
static LOOKED_INTO: Mutex<BTreeMap<Identity, i32>> = Mutex::new(BTreeMap::new());

/// The identity of a file, whatever its name. The time of its creation distinguishes it from a later file with the
/// same inode number.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Identity {
    file: (u64, u64),
    place: Option<PathBuf>,
    born: Option<SystemTime>,
}

/// The result of [`check`].
pub(super) struct Checked {
    /// The checked file.
    pub(super) file: Identity,
    /// The length of the WAL's file.
    pub(super) wal_bytes: u64,
}

/// The metadata of the file at `path`, if it is a plain file. Refuses everything else without opening it.
pub(super) fn plain_file(path: &Path) -> Result<Option<Metadata>> {
    match fs::symlink_metadata(path) {
        Ok(metadata) => check_kind(path, &metadata).map(|()| Some(metadata)),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            Ok(None)
        }
        Err(error) => Err(open::io_fault(path, "looked at", error)),
    }
}

/// Refuses a directory in which other users could replace the database or its companions. In a sticky directory, for
/// example `/tmp`, only the owner of a file can rename or delete it, and companions of another user are refused
/// separately.
#[cfg(unix)]
pub(super) fn check_directory(path: &Path) -> Result<()> {
    use std::os::unix::fs::MetadataExt;
    const STICKY: u32 = 0o1000;
    let directory = path.parent().filter(|directory| !directory.as_os_str().is_empty());
    let directory = directory.unwrap_or(Path::new("."));
    // A directory that cannot be checked causes an error when the file is opened.
    let Ok(metadata) = fs::metadata(directory) else { return Ok(()) };
    if let Some(owner) = foreign_owner(&metadata) {
        let what = format!("belongs to another user (uid {owner}), who can replace the board in it");
        return Err(not_ours(directory, &what, Hint::UseAnotherBoard));
    }
    match writable_by_others(&metadata) {
        Some(mode) if metadata.mode() & STICKY == 0 => {
            let what = format!("can be written by others (mode {mode:04o}), who can replace the board in it");
            Err(not_ours(directory, &what, format!("chmod go-w {}", shell_word(directory))))
        }
        _ => Ok(()),
    }
}

/// On other systems access lists control who may write to a directory.
#[cfg(not(unix))]
pub(super) fn check_directory(_path: &Path) -> Result<()> {
    Ok(())
}

/// The owner of a file or directory, if that is neither this user nor root.
#[cfg(unix)]
pub fn foreign_owner(metadata: &Metadata) -> Option<u32> {
    let owner = std::os::unix::fs::MetadataExt::uid(metadata);
    (owner != 0 && owner != rustix::process::geteuid().as_raw()).then_some(owner)
}

/// The owner of a file or directory, if that is neither this user nor root.
#[cfg(not(unix))]
pub fn foreign_owner(_metadata: &Metadata) -> Option<u32> {
    None
}

/// The mode of a file or directory, if users other than its owner may write to it. A group with the same number as
/// the owner is the owner's private group: where users have such groups, every new file is writable by them.
#[cfg(unix)]
pub fn writable_by_others(metadata: &Metadata) -> Option<u32> {
    use std::os::unix::fs::MetadataExt;
    let mode = metadata.mode() & 0o7777;
    is_writable_by_others(mode, metadata.uid(), metadata.gid()).then_some(mode)
}

#[cfg(unix)]
fn is_writable_by_others(mode: u32, owner: u32, group: u32) -> bool {
    // The group of root has other members, and so has that of the user to whom unknown owners are mapped.
    const OVERFLOW_USER: u32 = 65_534;
    let is_private_group = owner == group && owner != 0 && owner != OVERFLOW_USER;
    let forbidden = if is_private_group { 0o002 } else { 0o022 };
    mode & forbidden != 0
}

/// The mode of a file or directory, if users other than its owner may write to it.
#[cfg(not(unix))]
pub fn writable_by_others(_metadata: &Metadata) -> Option<u32> {
    None
}

/// Refuses a file that is not a board, that other users can access, or that is on an unsupported file system. Returns
/// the identity of the checked file.
pub(super) fn check(path: &Path, options: &SqliteOptions) -> Result<Checked> {
    check_as(&schema::BOARD, path, options)
}

/// The same for a file of any kind.
pub(super) fn check_as(kind: &FileKind, path: &Path, options: &SqliteOptions) -> Result<Checked> {
    let disappeared = || Fault::new(Code::Io, format!("{} has disappeared", path.display()));
    let found = plain_file(path)?.ok_or_else(disappeared)?;
    let mut looked_into = LOOKED_INTO.lock().unwrap_or_else(PoisonError::into_inner);
    let found_identity = Identity::of(path, &found);
    if let Some(application_id) = looked_into.get(&found_identity) {
        if *application_id != kind.application_id {
            return Err(faults::foreign(path, "it is another file of this program"));
        }
        let wal_bytes = check_private(path, &found)?;
        return Ok(Checked { file: found_identity, wal_bytes });
    }
    let metadata = check_header(kind, path, &found, options)?;
    // Only now, so that no message tells the user to change the mode of a foreign file.
    let wal_bytes = check_private(path, &metadata)?;
    let file = Identity::of(path, &metadata);
    looked_into.insert(file.clone(), kind.application_id);
    Ok(Checked { file, wal_bytes })
}

/// Refuses a database that is not the one that was checked: SQLite opens it by its name once more.
pub(super) fn check_same(path: &Path, looked_at: &Identity) -> Result<()> {
    if plain_file(path)?.is_some_and(|metadata| Identity::of(path, &metadata) == *looked_at) {
        return Ok(());
    }
    Err(Fault::new(Code::Io, format!("{} was replaced while it was being opened", path.display()))
        .hint("retry; if it happens again, find the process that replaces the file")
        .into())
}

/// Refuses to continue with a database that is not at its path any more. A reader would wait for it forever, and no
/// other process would see its writes, because the others use the new one.
pub(super) fn check_still_there(path: &Path, opened: &Identity) -> Result<()> {
    if plain_file(path)?.is_some_and(|metadata| Identity::of(path, &metadata) == *opened) {
        return Ok(());
    }
    Err(replaced(path))
}

/// The database at its path is not the one that was opened.
pub(super) fn replaced(path: &Path) -> Error {
    Fault::new(Code::Io, format!("{} was moved away or replaced while it was open", path.display()))
        .hint("start again, with the board that is there now")
        .into()
}

/// Checks the first bytes of the file: it has to be a database of this program. Otherwise SQLite would create
/// companions beside a foreign database, or recover it. Returns the metadata of the opened file.
fn check_header(kind: &FileKind, path: &Path, found: &Metadata, options: &SqliteOptions) -> Result<Metadata> {
    let mut opening = OpenOptions::new();
    opening.read(true);
    open::private(&mut opening);
    let mut file = match opening.open(path) {
        Ok(file) => file,
        Err(error) => {
            // A wrong owner explains best why it cannot be opened.
            check_private(path, found)?;
            return Err(open::io_fault(path, "read", error));
        }
    };
    let metadata = file.metadata().map_err(|error| open::io_fault(path, "looked at", error))?;
    check_kind(path, &metadata)?;
    let mut header = [0; 100];
    file.read_exact(&mut header).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => faults::foreign(path, "it is too short for a database"),
        _ => open::io_fault(path, "read", error),
    })?;
    if !header.starts_with(b"SQLite format 3\0") {
        return Err(faults::foreign(path, "it is not a SQLite database"));
    }
    if header[68..72] != kind.application_id.to_be_bytes() {
        if kind.application_id != schema::APPLICATION_ID {
            return Err(faults::foreign(path, "it is a database of another program"));
        }
        header = header_of_upgraded(path, &mut file, header, options)?;
    }
    // The WAL may have a newer value, but versions only grow. A hold may be gone there, and is checked later.
    let (version, _) =
        schema::split_version(u32::from_be_bytes([header[60], header[61], header[62], header[63]]));
    if version > kind.version {
        return Err(schema::newer(path, version, kind.version));
    }
    check_filesystem(path, options, || filesystem::of_file(&file))?;
    Ok(metadata)
}

/// The header of a board that was upgraded a moment ago: its new header may still be in the WAL only. Refuses every other
/// database.
fn header_of_upgraded(
    path: &Path,
    file: &mut fs::File,
    header: [u8; 100],
    options: &SqliteOptions,
) -> Result<[u8; 100]> {
    let foreign = || faults::foreign(path, "it is a database of another program");
    // Neither an application id nor a version.
    if header[68..72] != [0; 4] || header[60..64] != [0; 4] {
        return Err(foreign());
    }
    let found = reference::look_at(path);
    // A checkpoint may have moved the new header from the WAL into the file meanwhile.
    let mut again = [0; 100];
    let reread = file.seek(io::SeekFrom::Start(0)).and_then(|_| file.read_exact(&mut again));
    reread.map_err(|error| open::io_fault(path, "read", error))?;
    match found {
        _ if again[68..72] == schema::APPLICATION_ID.to_be_bytes() => Ok(again),
        reference::Found::Upgraded(header) if reference::is_visible(path, options) => Ok(header),
        // Its commit is written, but not finished. An upgrade waits for it.
        reference::Found::Upgraded(_) => Err(reference::upgrade_needed(path, None)),
        reference::Found::Reference(version) => Err(reference::upgrade_needed(path, version)),
        reference::Found::Altered(object) => Err(reference::altered(path, &object)),
        reference::Found::Other => Err(foreign()),
    }
}

/// Refuses a database that is to be upgraded, if other users can access it. Returns the identity of the file.
pub(super) fn check_reference(path: &Path, metadata: &Metadata) -> Result<Identity> {
    check_private(path, metadata)?;
    Ok(Identity::of(path, metadata))
}

/// Refuses a file system on which a board does not work, unless that is allowed.
pub(super) fn check_filesystem(
    path: &Path,
    options: &SqliteOptions,
    kind: impl FnOnce() -> Kind,
) -> Result<()> {
    if options.allow_network_filesystem {
        return Ok(());
    }
    match kind() {
        Kind::Local => Ok(()),
        Kind::Remote(name) => Err(filesystem::refusal(path, name)),
    }
}

fn check_kind(path: &Path, metadata: &Metadata) -> Result<()> {
    wrong_kind(metadata).map_or(Ok(()), |(what, hint)| Err(not_ours(path, what, hint)))
}

/// Refuses a database that other users can access, directly or through its companions, or that git tracks. Returns
/// the length of its WAL's file, which is checked here anyway.
fn check_private(path: &Path, metadata: &Metadata) -> Result<u64> {
    if let Some((what, hint)) = wrong_owner(metadata) {
        return Err(not_ours(path, what, hint));
    }
    let (mut open_to_others, mut wal_bytes, mut git_stamp) = (Vec::new(), 0, None);
    open_to_others.extend(mode_for_others(metadata).map(|mode| (path.to_owned(), mode)));
    for ending in COMPANIONS {
        let companion = beside(path, ending);
        let Ok(metadata) = fs::symlink_metadata(&companion) else { continue };
        if let Some((what, _)) = wrong_kind(&metadata).or_else(|| wrong_owner(&metadata)) {
            return Err(not_ours(&companion, what, "move it away while no process uses the board"));
        }
        if ending == WAL {
            wal_bytes = metadata.len();
        }
        if ending == QUEUE {
            git_stamp = metadata.accessed().ok();
        }
        open_to_others.extend(mode_for_others(&metadata).map(|mode| (companion, mode)));
    }
    // Git gives tracked files a mode for other users. With a private mode they would still be published.
    git::check_untracked(path, git_stamp)?;
    let Some((first, mode)) = open_to_others.first() else { return Ok(wal_bytes) };
    let words: Vec<_> = open_to_others.iter().map(|(path, _)| shell_word(path)).collect();
    let what = format!("can be read or written by others (mode {mode:04o})");
    Err(not_ours(first, &what, format!("chmod 600 {}", words.join(" "))))
}

/// Whether it is a plain file of this user that no other user can access.
#[cfg_attr(
    not(target_os = "linux"),
    expect(dead_code, reason = "only Linux has files that are nothing but a hint")
)]
pub(super) fn is_private(metadata: &Metadata) -> bool {
    wrong_kind(metadata).or_else(|| wrong_owner(metadata)).is_none() && mode_for_others(metadata).is_none()
}

/// The problem of a file that is not plain, and its remedy.
fn wrong_kind(metadata: &Metadata) -> Option<(&'static str, Hint)> {
    if metadata.is_symlink() {
        Some(("is a symbolic link", Hint::UseRealFile))
    } else if !metadata.is_file() {
        Some(("is not a plain file", Hint::UseAnotherBoard))
    } else {
        None
    }
}

pub(super) fn not_ours(path: &Path, what: &str, hint: impl Into<Hint>) -> Error {
    Refusal::new(Code::UnsafePermissions, format!("{} {what}", path.display())).hint(hint).into()
}

/// A path as one word of a shell, whatever characters it has.
pub(super) fn shell_word(path: &Path) -> String {
    crate::text::shell_word(&path.display().to_string()).into_owned()
}

#[cfg(unix)]
impl Identity {
    fn of(_path: &Path, metadata: &Metadata) -> Identity {
        use std::os::unix::fs::MetadataExt;
        Identity { file: (metadata.dev(), metadata.ino()), place: None, born: metadata.created().ok() }
    }
}

/// The problem of a file that other users can access, and its remedy.
#[cfg(unix)]
fn wrong_owner(metadata: &Metadata) -> Option<(&'static str, Hint)> {
    use std::os::unix::fs::MetadataExt;
    if metadata.uid() != rustix::process::geteuid().as_raw() {
        Some(("belongs to another user", Hint::UseAnotherBoard))
    } else if metadata.nlink() > 1 {
        Some(("has a second name (a hard link)", "copy it to a file of its own".into()))
    } else {
        None
    }
}

#[cfg(unix)]
fn mode_for_others(metadata: &Metadata) -> Option<u32> {
    use std::os::unix::fs::PermissionsExt;
    let mode = metadata.permissions().mode() & 0o777;
    (mode & 0o077 != 0).then_some(mode)
}

// On other systems a file has no accessible number, and its directory controls access.

#[cfg(not(unix))]
impl Identity {
    fn of(path: &Path, metadata: &Metadata) -> Identity {
        Identity { file: (0, 0), place: fs::canonicalize(path).ok(), born: metadata.created().ok() }
    }
}

#[cfg(not(unix))]
fn wrong_owner(_metadata: &Metadata) -> Option<(&'static str, Hint)> {
    None
}

#[cfg(not(unix))]
fn mode_for_others(_metadata: &Metadata) -> Option<u32> {
    None
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;

    #[test]
    fn group_write_is_allowed_only_for_the_owners_private_group() {
        for (mode, owner, group, expected) in [
            (0o700, 1000, 100, false),
            (0o755, 1000, 100, false),
            (0o775, 1000, 100, true),
            (0o720, 1000, 100, true),
            (0o775, 1000, 1000, false),
            (0o777, 1000, 1000, true),
            (0o702, 1000, 1000, true),
            // Other users are often in the group of root.
            (0o775, 0, 0, true),
            (0o755, 0, 0, false),
            (0o770, 65_534, 65_534, true),
        ] {
            assert_eq!(is_writable_by_others(mode, owner, group), expected, "{mode:o} {owner} {group}");
        }
    }
}
