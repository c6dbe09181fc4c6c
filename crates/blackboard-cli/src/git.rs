//! What only git can tell: it is started for commands that are about commits, never on the way of others.

use std::ffi::OsString;
use std::io::{self, Read};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use blackboard::{Code, Error, Fault, Refusal, Result};

/// How many bytes of names are read at most: far more than any commit needs.
const MOST_NAMES: u64 = 16 * 1024 * 1024;

/// Where git looks for the hooks of the repository around the working directory.
pub struct Hooks {
    /// Where it looks.
    pub directory: PathBuf,
    /// Where it looks unless `core.hooksPath` is set.
    pub usual: PathBuf,
}

/// The files of the next commit that differ from the last one.
pub struct Staged {
    /// From the root of the worktree on. Bytes that are no text are replaced.
    pub names: Vec<String>,
    /// Whether these are all of them.
    pub complete: bool,
}

/// Where git looks for hooks.
pub fn hooks() -> Result<Hooks> {
    let said = answer(&["rev-parse", "--path-format=absolute", "--git-path", "hooks", "--git-common-dir"])?;
    let mut lines = said.split(|byte| *byte == b'\n');
    match (lines.next().and_then(path), lines.next().and_then(path), lines.next()) {
        (Some(directory), Some(common), Some([])) => Ok(Hooks { directory, usual: common.join("hooks") }),
        _ => Err(Error::invalid("git names its directories in a way that can't be read")),
    }
}

/// Whether the working directory is in a repository that has no worktree there, so that nothing is committed in it.
pub fn is_bare() -> Result<bool> {
    Ok(answer(&["rev-parse", "--is-bare-repository"])?.starts_with(b"true"))
}

/// The root of the worktree around the working directory.
pub fn top_level() -> Result<PathBuf> {
    let said = answer(&["rev-parse", "--show-toplevel"])?;
    let line = said.strip_suffix(b"\n").unwrap_or(&said);
    path(line).ok_or_else(|| Error::invalid("git names the worktree in a way that can't be read"))
}

/// What is staged. In a hook that is what is about to be committed, also if only some files are.
pub fn staged() -> Result<Staged> {
    // A file that was renamed is one that goes and one that comes: both may be reserved.
    let mut git = git(&["diff", "--cached", "--name-only", "--no-renames", "--no-relative", "-z"]);
    let mut child = git.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().map_err(cant_start)?;
    let mut bytes = Vec::new();
    if let Some(stdout) = child.stdout.take() {
        stdout.take(MOST_NAMES).read_to_end(&mut bytes).map_err(cant_start)?;
    }
    // The pipe is closed by now: git ends, even if it had more to say.
    let status = child.wait().map_err(cant_start)?;
    let complete = (bytes.len() as u64) < MOST_NAMES;
    if complete && !status.success() {
        return Err(Fault::new(Code::Io, format!("git does not tell what is staged ({status})")).into());
    }
    Ok(Staged { names: names(&bytes), complete })
}

/// The names in an answer of `git … -z`. What follows the last end is no whole name.
fn names(bytes: &[u8]) -> Vec<String> {
    let mut names: Vec<_> = bytes.split(|byte| *byte == 0).collect();
    names.pop();
    names.into_iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect()
}

/// What git says to a question about the repository around the working directory.
fn answer(arguments: &[&str]) -> Result<Vec<u8>> {
    let Output { status, stdout, stderr } = git(arguments).output().map_err(cant_start)?;
    if status.success() {
        return Ok(stdout);
    }
    let said = String::from_utf8_lossy(&stderr);
    let reason = said.lines().next().unwrap_or("it does not say why").trim_start_matches("fatal: ");
    Err(Refusal::new(Code::InvalidValue, format!("git finds no worktree here: {reason}"))
        .hint("change into a worktree of a git repository first")
        .into())
}

fn git(arguments: &[&str]) -> Command {
    let mut command = Command::new("git");
    command.args(arguments).stdin(Stdio::null());
    command
}

fn cant_start(error: io::Error) -> Error {
    Fault::new(Code::Io, "git can't be started")
        .hint("install git, or put it on the PATH")
        .because(error)
        .into()
}

#[cfg(unix)]
fn path(bytes: &[u8]) -> Option<PathBuf> {
    let text = <OsString as std::os::unix::ffi::OsStringExt>::from_vec(bytes.to_vec());
    (!text.is_empty()).then(|| PathBuf::from(text))
}

/// Where paths are not bytes, git writes them as UTF-8.
#[cfg(not(unix))]
fn path(bytes: &[u8]) -> Option<PathBuf> {
    let text = OsString::from(std::str::from_utf8(bytes).ok()?.trim_end_matches('\r'));
    (!text.is_empty()).then(|| PathBuf::from(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_end_with_a_zero_byte_and_may_have_any_other() {
        for (bytes, expected) in [
            (&b""[..], &[][..]),
            (b"a\0", &["a"]),
            (b"a b\n\"c\0d/e\0", &["a b\n\"c", "d/e"]),
            (b"a\0half of a na", &["a"]),
            (b"x\xff\0", &["x\u{fffd}"]),
        ] {
            assert_eq!(names(bytes), expected, "{bytes:?}");
        }
    }
}
