//! Keeps a board out of git: completes its `.gitignore`, and checks whether git tracks its database already.
//!
//! Git's files are read directly; no other program is started. The index is sorted and read up to the name in
//! question. That costs a few kilobytes for a directory that begins with a dot, however large the repository is.
//!
//! Every command has to know whether git tracks its database, and most have no time to read the index. So a command
//! that has read it leaves a stamp. The stamp is the time of the index's last change, stored as the access time of
//! the file on which writers queue. Git replaces the index with each change, the board never reads that file, and
//! opening a board checks it anyway. The check then costs one `stat` of the index, and one more for each directory
//! between the board and the root of the repository.

use std::ffi::OsStr;
use std::fs::{self, File, FileTimes, Metadata, OpenOptions};
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::open::{self, io_fault};
use super::sidecars::{SqliteSidecars, endings};
use super::trust::{not_ours, shell_word};
use crate::entry::Glob;
use crate::error::{Error, Result};
use crate::store::{Sidecar, Sidecars};

const IGNORE_FILE: &str = ".gitignore";

/// The content of a new `.gitignore`.
const EVERYTHING: &str = "\
# Written by blackboard: the board is private. Only this file and config.json belong into git.
*
!.gitignore
!config.json
";

/// The text after lines of a user that would include the database.
const AND_STILL: &str = "\n# Written by blackboard: the lines above would publish the board.\n";

const HOOK_LOG: &str = Sidecar::HookLog.name();

/// The most bytes that are read of a `.gitignore`, of a file that names a git directory, and of an index.
const LARGEST_IGNORE_FILE: u64 = 1024 * 1024;
const LONGEST_LINK: u64 = 8 * 1024;
const LARGEST_INDEX: u64 = 256 * 1024 * 1024;

/// Completes the `.gitignore` beside the database at `path`, so that git ignores everything there except that file
/// and `config.json`. Lines of the user stay, and apply unless they would include the database. A file that ignores
/// the database already is not changed.
pub fn keep_out_of_git(path: &Path) -> Result<()> {
    let (Some(directory), Some(name)) = (path.parent(), path.file_name()) else { return Ok(()) };
    let file = directory.join(IGNORE_FILE);
    let fault = |error| io_fault(&file, "written", error);
    let before = read_ignore_file(&file)?;
    let Some(text) = completed(before.as_deref(), &name.to_string_lossy()) else { return Ok(()) };
    let unfinished = directory.join(format!("{IGNORE_FILE}-new-{}", uuid::Uuid::new_v4().simple()));
    let place = || {
        write_private(&unfinished, &text)?;
        if before.is_some() {
            fs::set_permissions(&unfinished, fs::metadata(&file)?.permissions())?;
            return fs::rename(&unfinished, &file);
        }
        match open::rename_to_nothing(&unfinished, &file, |from, to| fs::rename(from, to)) {
            // Another process has done the same meanwhile, with the same text.
            Err(error) if error.kind() == ErrorKind::AlreadyExists => fs::remove_file(&unfinished),
            placed => placed,
        }
    };
    let written = place();
    if written.is_err() {
        let _ = fs::remove_file(&unfinished);
    }
    written.map_err(fault)
}

/// The command of a shell that makes git ignore the board at `path`.
pub fn command_to_ignore(path: &Path) -> String {
    let name = literal(&path.file_name().unwrap_or_default().to_string_lossy());
    let file = path.with_file_name(IGNORE_FILE);
    format!("printf '%s\\n' '/{name}*' '/{HOOK_LOG}*' >> {}", shell_word(&file))
}

/// Whether the `.gitignore` beside the database is enough.
fn is_ignored_beside(path: &Path) -> bool {
    let Some(name) = path.file_name() else { return false };
    let lines = read_ignore_file(&path.with_file_name(IGNORE_FILE)).ok().flatten();
    lines.is_some_and(|lines| completed(Some(&lines), &name.to_string_lossy()).is_none())
}

/// How old a change of an index has to be before it gets a stamp. Two changes within one tick of the file system's clock have
/// the same time.
const STAMP_DELAY: Duration = Duration::from_secs(1);

/// Refuses a database that git tracks: every commit would publish the board. `stamp` was left by an earlier call.
pub(super) fn check_untracked(path: &Path, stamp: Option<SystemTime>) -> Result<()> {
    let has_stamp = |index: &Index| stamp.is_some() && stamp == index.changed();
    let named = path.parent().filter(|directory| directory.is_absolute());
    let nearest = named.and_then(Index::around);
    if nearest.as_ref().is_some_and(has_stamp) {
        return Ok(());
    }
    // The path may contain symbolic links, so the board may be in another repository than it seems.
    let Some(directory) = physical_directory(path) else { return Ok(()) };
    let index = if named == Some(&directory) { nearest } else { Index::around(&directory) };
    let Some(index) = index.filter(|index| !has_stamp(index)) else { return Ok(()) };
    let changed = index.changed();
    if let Some(tracked) = index.tracked(&directory, path) {
        return Err(tracked.refusal(path));
    }
    if let Some(changed) = changed.filter(|changed| changed.elapsed().is_ok_and(|age| age >= STAMP_DELAY)) {
        // Without a stamp, the next command reads the index again.
        let _ = leave_stamp(path, changed);
    }
    Ok(())
}

fn leave_stamp(path: &Path, changed: SystemTime) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true);
    open::private(&mut options);
    let queue = options.open(SqliteSidecars::new(path).path(Sidecar::WriterQueue))?;
    queue.set_times(FileTimes::new().set_accessed(changed))
}

/// The directory of the board, without symbolic links.
fn physical_directory(path: &Path) -> Option<PathBuf> {
    let directory = path.parent().filter(|directory| !directory.as_os_str().is_empty());
    fs::canonicalize(directory.unwrap_or(Path::new("."))).ok()
}

/// The index of a repository.
struct Index {
    root: PathBuf,
    file: PathBuf,
    metadata: Metadata,
}

impl Index {
    /// The index of the repository around this directory, if it has one: an index that does not exist tracks nothing.
    fn around(directory: &Path) -> Option<Index> {
        directory.ancestors().find_map(|root| {
            let file = root.join(".git/index");
            match fs::metadata(&file) {
                Ok(metadata) => Some(Index { root: root.to_owned(), file, metadata }),
                Err(error) if may_be_in_file(error.kind(), cfg!(windows)) => Index::of_link(root),
                Err(_) => None,
            }
        })
    }

    /// The index in the directory that the file `.git` names, as in a worktree or submodule.
    fn of_link(root: &Path) -> Option<Index> {
        let file = named_by(&root.join(".git"))?.join("index");
        let metadata = fs::metadata(&file).ok()?;
        Some(Index { root: root.to_owned(), file, metadata })
    }

    /// The files of the board at `path`, which is in this directory, that git tracks. `None` if it tracks none, or if
    /// the index cannot be read.
    fn tracked(self, directory: &Path, path: &Path) -> Option<TrackedFiles> {
        if !self.metadata.is_file() {
            return None;
        }
        let database = directory.join(path.file_name()?);
        let wanted = bytes_of(database.strip_prefix(&self.root).ok()?);
        // The hash of an object has 20 or 32 bytes; an index does not contain which.
        let found = [20, 32].iter().find_map(|hash| names_in(&self.file, &wanted, *hash).ok())?;
        let names: Vec<_> = found.iter().filter_map(|name| path_of(name)).collect();
        (!names.is_empty()).then_some(TrackedFiles { root: self.root, names })
    }

    /// The time of its last change. Unlike the modification time, no program can set it.
    #[cfg(unix)]
    fn changed(&self) -> Option<SystemTime> {
        use std::os::unix::fs::MetadataExt;
        let seconds = Duration::from_secs(u64::try_from(self.metadata.ctime()).ok()?);
        let nanoseconds = Duration::from_nanos(u64::try_from(self.metadata.ctime_nsec()).ok()?);
        SystemTime::UNIX_EPOCH.checked_add(seconds)?.checked_add(nanoseconds)
    }

    /// Unknown: the standard library only has a time that any program can set, so the index is always read.
    #[cfg(not(unix))]
    #[expect(clippy::unused_self, reason = "it is known on Unix")]
    fn changed(&self) -> Option<SystemTime> {
        None
    }
}

/// Whether `.git/index` may be missing because `.git` is a file. Windows reports such a path in the same way as one
/// that does not exist.
fn may_be_in_file(error: ErrorKind, on_windows: bool) -> bool {
    error == ErrorKind::NotADirectory || (on_windows && error == ErrorKind::NotFound)
}

/// Files of a board that git tracks.
struct TrackedFiles {
    root: PathBuf,
    /// Relative to the root.
    names: Vec<PathBuf>,
}

impl TrackedFiles {
    fn refusal(&self, path: &Path) -> Error {
        let names: Vec<_> = self.names.iter().map(|name| shell_word(name)).collect();
        let mut cure = format!("git -C {} rm --cached {}", shell_word(&self.root), names.join(" "));
        // Otherwise the next `git add` adds them again.
        if !is_ignored_beside(path) {
            cure = format!("{cure} && {}", command_to_ignore(path));
        }
        let tracked = self.names.first().map_or_else(|| path.to_owned(), |name| self.root.join(name));
        not_ours(&tracked, "is tracked by git, which would publish the board", cure)
    }
}

/// The git directory that a plain file names.
fn named_by(link: &Path) -> Option<PathBuf> {
    if !fs::metadata(link).ok()?.is_file() {
        return None;
    }
    let mut content = Vec::new();
    File::open(link).ok()?.take(LONGEST_LINK).read_to_end(&mut content).ok()?;
    let named = path_of(content.strip_prefix(b"gitdir:")?.trim_ascii())?;
    Some(link.parent()?.join(named))
}

/// The names in an index that are `wanted` or a companion of it.
fn names_in(index: &Path, wanted: &[u8], hash: usize) -> io::Result<Vec<Vec<u8>>> {
    names_read(BufReader::new(File::open(index)?.take(LARGEST_INDEX)), wanted, hash)
}

/// The same from the bytes of an index of version 2, 3 or 4.
fn names_read(mut index: impl BufRead, wanted: &[u8], hash: usize) -> io::Result<Vec<Vec<u8>>> {
    const STAT: usize = 40;
    const EXTENDED: u16 = 0x4000;
    const LENGTH: u16 = 0x0fff;
    let invalid = || io::Error::from(ErrorKind::InvalidData);
    let endings: Vec<String> = endings().collect();

    let mut header = [0; 12];
    index.read_exact(&mut header)?;
    let number = |at: usize| u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
    let (version, count) = (number(4), number(8));
    if !header.starts_with(b"DIRC") || !(2..=4).contains(&version) {
        return Err(invalid());
    }
    let mut found = Vec::new();
    let mut name: Vec<u8> = Vec::new();
    for _ in 0..count {
        let mut fixed = [0; STAT + 32 + 2];
        let fixed = &mut fixed[..STAT + hash + 2];
        index.read_exact(fixed)?;
        let flags = u16::from_be_bytes([fixed[STAT + hash], fixed[STAT + hash + 1]]);
        let mut length = fixed.len();
        if flags & EXTENDED != 0 {
            index.read_exact(&mut [0; 2])?;
            length += 2;
        }
        if version == 4 {
            let dropped = variable_number(&mut index)?;
            name.truncate(name.len().checked_sub(dropped).ok_or_else(invalid)?);
        } else {
            name.clear();
        }
        index.read_until(0, &mut name)?;
        if name.pop() != Some(0) {
            return Err(invalid());
        }
        if flags & LENGTH != LENGTH && usize::from(flags & LENGTH) != name.len() {
            return Err(invalid());
        }
        if version < 4 {
            // One to eight zero bytes, of which one has been read, make the length a multiple of eight.
            length += name.len();
            let mut rest = [0; 8];
            index.read_exact(&mut rest[..7 - length % 8])?;
        }
        match name.strip_prefix(wanted) {
            // A conflict has a name up to three times, one after the other.
            Some(ending)
                if endings.iter().any(|known| known.as_bytes() == ending) && found.last() != Some(&name) =>
            {
                found.push(name.clone());
                if found.len() == endings.len() {
                    break;
                }
            }
            // Names are sorted by their bytes.
            None if name.as_slice() > wanted => break,
            _ => {}
        }
    }
    Ok(found)
}

/// A number as version 4 of an index writes it.
fn variable_number(index: &mut impl BufRead) -> io::Result<usize> {
    let mut number = 0_usize;
    for position in 0..4 {
        let mut byte = [0];
        index.read_exact(&mut byte)?;
        number = (number + usize::from(position > 0)) << 7 | usize::from(byte[0] & 0x7f);
        if byte[0] & 0x80 == 0 {
            return Ok(number);
        }
    }
    Err(ErrorKind::InvalidData.into())
}

/// The lines of a `.gitignore`; `None` if it does not exist.
fn read_ignore_file(file: &Path) -> Result<Option<Vec<u8>>> {
    let fault = |error| io_fault(file, "read", error);
    match fs::symlink_metadata(file) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(fault(error)),
        // Git does not follow a link here either.
        Ok(metadata) if !metadata.is_file() || metadata.len() > LARGEST_IGNORE_FILE => {
            return Err(not_ours(file, "is not a plain file of less than 1 MB", "move it away"));
        }
        Ok(_) => {}
    }
    fs::read(file).map(Some).map_err(fault)
}

/// The text of a `.gitignore` for a database of this name, or `None` if the present one is enough.
fn completed(before: Option<&[u8]>, name: &str) -> Option<Vec<u8>> {
    let Some(before) = before else { return Some(EVERYTHING.into()) };
    let all_ignored = |text: &[u8]| {
        let mut names = endings().map(|ending| format!("{name}{ending}"));
        names.all(|name| ignores(text, &name)) && ignores(text, HOOK_LOG)
    };
    if all_ignored(before) {
        return None;
    }
    // In front, so that the lines of the user override it.
    let mut text = [EVERYTHING.as_bytes(), before].concat();
    if !all_ignored(&text) {
        if !text.ends_with(b"\n") {
            text.push(b'\n');
        }
        text.extend(format!("{AND_STILL}{}*\n{HOOK_LOG}*\n", literal(name)).bytes());
    }
    Some(text)
}

/// Whether the lines make git ignore a file of this name in their directory. A line that is not understood ignores
/// nothing. An exception (`!`) that is not understood counts as one for this file.
fn ignores(lines: &[u8], name: &str) -> bool {
    let mut ignored = false;
    for line in String::from_utf8_lossy(lines).split('\n') {
        // Git removes one CR and spaces from the end, and no other white space.
        let line = line.strip_suffix('\r').unwrap_or(line).trim_end_matches(' ');
        let (pattern, is_negated) = line.strip_prefix('!').map_or((line, false), |pattern| (pattern, true));
        let pattern = pattern.strip_prefix("**/").or_else(|| pattern.strip_prefix('/')).unwrap_or(pattern);
        if pattern.is_empty() || line.starts_with('#') {
            continue;
        }
        let has_escapes = ["\\", "[^", "[["].iter().any(|escape| pattern.contains(escape));
        if !has_escapes && (pattern.ends_with('/') || (pattern.contains('/') && !pattern.contains("**"))) {
            // The line is about directories, or about files in them.
            continue;
        }
        let is_understood = !has_escapes && !pattern.contains('/');
        if is_negated {
            // Some repositories ignore case.
            let (pattern, name) = (pattern.to_lowercase(), name.to_lowercase());
            ignored = ignored && is_understood && !Glob::new(&pattern).matches(&name);
        } else if is_understood && Glob::new(pattern).matches(name) {
            ignored = true;
        }
    }
    ignored
}

/// The name as a pattern of git.
fn literal(name: &str) -> String {
    name.chars()
        .map(|letter| if letter.is_alphanumeric() || "._-".contains(letter) { letter } else { '?' })
        .collect()
}

fn write_private(file: &Path, text: &[u8]) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    open::private(&mut options);
    let mut file = options.open(file)?;
    // The mode of a new file is reduced by the umask, and git has to read it.
    #[cfg(unix)]
    file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
    file.write_all(text)
}

/// A path as git writes it.
fn bytes_of(path: &Path) -> Vec<u8> {
    let parts: Vec<&[u8]> = path.iter().map(OsStr::as_encoded_bytes).collect();
    parts.join(&b'/')
}

#[cfg(unix)]
fn path_of(bytes: &[u8]) -> Option<PathBuf> {
    let name = <OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(bytes);
    (!bytes.is_empty()).then(|| PathBuf::from(name))
}

/// Where paths are not bytes, git writes them as UTF-8.
#[cfg(not(unix))]
fn path_of(bytes: &[u8]) -> Option<PathBuf> {
    let name = std::str::from_utf8(bytes).ok()?;
    (!name.is_empty()).then(|| PathBuf::from(name))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use testkit::process::RunToEnd as _;

    use super::super::sidecars::beside;
    use super::*;

    fn git(directory: &Path, arguments: &[&str]) -> bool {
        let identity = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"];
        let mut git = Command::new("git");
        git.arg("-C").arg(directory).args(identity).args(arguments);
        // The tests may run inside a git hook.
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("GIT_")) {
            git.env_remove(name);
        }
        git.env("GIT_CONFIG_GLOBAL", "/dev/null").run_to_end().status.success()
    }

    fn tracked(path: &Path) -> Option<TrackedFiles> {
        let directory = physical_directory(path)?;
        Index::around(&directory)?.tracked(&directory, path)
    }

    #[test]
    fn a_git_file_is_looked_for_where_the_system_may_mean_one() {
        for (error, on_windows, expected) in [
            (ErrorKind::NotADirectory, false, true),
            (ErrorKind::NotADirectory, true, true),
            (ErrorKind::NotFound, false, false),
            (ErrorKind::NotFound, true, true),
            (ErrorKind::PermissionDenied, true, false),
        ] {
            assert_eq!(may_be_in_file(error, on_windows), expected, "{error}, Windows: {on_windows}");
        }
    }

    #[test]
    fn tracked_files_are_found_in_every_kind_of_index() {
        for options in [&["--object-format=sha1"], &["--object-format=sha256"]] {
            for version in ["2", "3", "4"] {
                let scratch = testkit::tempdir().unwrap();
                let root = scratch.path().canonicalize().unwrap();
                let board = root.join("deep/.blackboard/local.db");
                fs::create_dir_all(board.parent().unwrap()).unwrap();
                assert!(tracked(&board).is_none(), "there is no repository");
                assert!(git(&root, &[&["init", "-q"][..], options].concat()));
                assert!(tracked(&board).is_none(), "there is no index");
                let other = ["a", "deep/.blackboard/local.c", "deep/.blackboard/local.db2", "z"];
                let own = ["", "-serve", "-wal"].map(|ending| beside(&board, ending));
                for file in other.map(|name| root.join(name)).iter().chain(&own) {
                    fs::write(file, "x").unwrap();
                }
                assert!(git(&root, &[&["add"], &other[..]].concat()));
                assert!(git(&root, &["update-index", "--index-version", version]));
                assert!(tracked(&board).is_none(), "others are tracked, in version {version}");
                assert!(git(&root, &["add", "-A"]));
                // Makes an entry of version 3.
                assert!(git(&root, &["update-index", "--skip-worktree", "a"]));
                let found = tracked(&board).unwrap();
                let names: Vec<_> = found.names.iter().map(|name| name.to_str().unwrap()).collect();
                let expected =
                    ["", "-serve", "-wal"].map(|ending| format!("deep/.blackboard/local.db{ending}"));
                assert_eq!(names, expected, "version {version}");
                let refusal = found.refusal(&board);
                let cure = refusal.hint().and_then(crate::Hint::advice).unwrap();
                assert!(Command::new("sh").args(["-c", cure]).run_to_end().status.success(), "{cure}");
                assert!(tracked(&board).is_none(), "{cure}");
            }
        }
    }

    #[test]
    #[cfg(unix)]
    fn an_index_is_read_again_only_when_it_has_changed() {
        let scratch = testkit::tempdir().unwrap();
        let root = scratch.path().canonicalize().unwrap();
        let board = root.join(".blackboard/local.db");
        fs::create_dir(board.parent().unwrap()).unwrap();
        fs::write(root.join("a"), "x").unwrap();
        assert!(git(&root, &["init", "-q"]) && git(&root, &["add", "a"]));
        fs::write(&board, "x").unwrap();
        let queue = beside(&board, "-lock");
        fs::write(&queue, "").unwrap();
        let stamp = || fs::metadata(&queue).unwrap().accessed().ok();
        let changed = || Index::around(&root).unwrap().changed();
        let before = stamp();
        check_untracked(&board, before).unwrap();
        if changed().unwrap().elapsed().unwrap() < STAMP_DELAY {
            assert_eq!(stamp(), before, "another change might have the same time");
        }
        let is_old = || changed().unwrap().elapsed().unwrap() >= STAMP_DELAY;
        testkit::wait_until("an older index", || is_old().then_some(()));
        check_untracked(&board, stamp()).unwrap();
        assert_eq!(stamp(), changed(), "the index was read");
        // Through a link, the index of the board's real directory is found.
        let link = root.join("link");
        std::os::unix::fs::symlink(board.parent().unwrap(), &link).unwrap();
        check_untracked(&link.join("local.db"), stamp()).unwrap();
        assert!(git(&root, &["add", "-A"]));
        assert_ne!(stamp(), changed());
        for board in [&board, &link.join("local.db")] {
            assert!(check_untracked(board, stamp()).is_err());
            // A stamp of this very index means that it was read.
            check_untracked(board, changed()).unwrap();
        }
    }

    #[test]
    fn a_damaged_index_is_read_to_its_end_and_tracks_nothing() {
        let scratch = testkit::tempdir().unwrap();
        let root = scratch.path().canonicalize().unwrap();
        fs::write(root.join("local.db"), "x").unwrap();
        assert!(git(&root, &["init", "-q"]) && git(&root, &["add", "-A"]));
        let index = fs::read(root.join(".git/index")).unwrap();
        assert_eq!(names_read(&index[..], b"local.db", 20).unwrap(), [b"local.db"]);
        for length in 0..index.len() {
            let _ = names_read(&index[..length], b"local.db", 20);
        }
        for at in 0..index.len() {
            let mut index = index.clone();
            index[at] ^= 0xff;
            let _ = names_read(&index[..], b"local.db", 20);
        }
    }

    #[test]
    fn a_file_is_ignored_as_git_would_ignore_it() {
        for lines in [
            "",
            "*",
            "*\n!config.json",
            "*\n!*.db\n",
            "local.db*",
            "/local.db",
            "**/local.db*\n",
            "local.db/\n",
            "sub/local.db\n",
            "# local.db",
            "!local.db\nlocal.*",
            "local.?b  \n",
            "[l]ocal.db",
            "*\n!/local.db",
            "*.db\r\n",
            "*\n!local\\.db",
            "*\n!/**/local.db",
            "*\t",
            "*\t\n!config.json",
            "*\n!local.db\t",
            "*\n!sub/\n!*/\n!sub/local.db",
            "*\n!**/config.json",
            "*\n![^x]ocal.db",
            "[^x]ocal.db",
        ] {
            let scratch = testkit::tempdir().unwrap();
            let root = scratch.path();
            assert!(git(root, &["init", "-q"]));
            fs::create_dir(root.join("b")).unwrap();
            fs::write(root.join("b/.gitignore"), lines).unwrap();
            for name in ["local.db", "local.db-wal", "config.json"] {
                let expected = git(root, &["check-ignore", "-q", &format!("b/{name}")]);
                let found = ignores(lines.as_bytes(), name);
                assert!(expected || !found, "{name} by {lines:?}: git would publish it");
                // A line that is not understood may count as an exception, and is then followed by the text once
                // more.
                let is_understood = !lines.contains(['\\', '^']) && !lines.contains("/**/");
                assert!(found == expected || !is_understood, "{name} by {lines:?}");
            }
        }
    }

    #[test]
    fn lines_of_the_user_stay_and_the_board_is_ignored() {
        for (before, expected) in [
            (None, Some(EVERYTHING.to_owned())),
            (Some("*\n"), None),
            (Some(EVERYTHING), None),
            (Some("*.tmp\n"), Some(format!("{EVERYTHING}*.tmp\n"))),
            (Some("!notes.md"), Some(format!("{EVERYTHING}!notes.md"))),
            (Some("!*"), Some(format!("{EVERYTHING}!*\n{AND_STILL}local.db*\nhook.log*\n"))),
        ] {
            let text = completed(before.map(str::as_bytes), "local.db");
            assert_eq!(text.as_deref().map(String::from_utf8_lossy), expected.as_deref().map(Into::into));
            if let Some(text) = text {
                assert_eq!(completed(Some(&text), "local.db"), None, "once is enough");
                assert!(!ignores(&text, "config.json") && !ignores(&text, ".gitignore"));
            }
        }
    }
}
