//! Runs git. Only commands that concern commits, hubs and spokes do, and one that creates a board; all others would be
//! slower.
//!
//! [`isolated`] is about the repository of a directory, whatever called this program. The functions for the guard, which a hook of
//! git calls, are about the repository and the index of that caller.

use std::ffi::OsString;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use blackboard::{Code, Error, Fault, Refusal, Result};

use crate::program::{self, Limits};

/// The most bytes of file names to read, far more than any commit needs.
const MOST_NAMES: u64 = 16 * 1024 * 1024;

/// How long git may take to find out whether a file is ignored.
const LIMIT: Duration = Duration::from_secs(20);

/// The variables by which a caller, for example a hook of git, names its own repository and what belongs to it.
const OF_A_CALLER: [&str; 18] = [
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_CONFIG",
    "GIT_DIR",
    "GIT_GRAFT_FILE",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_INTERNAL_SUPER_PREFIX",
    "GIT_NAMESPACE",
    "GIT_NO_REPLACE_OBJECTS",
    "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX",
    "GIT_PROTOCOL_FROM_USER",
    "GIT_QUARANTINE_PATH",
    "GIT_REPLACE_REF_BASE",
    "GIT_SHALLOW_FILE",
    "GIT_TRACE",
    "GIT_WORK_TREE",
];

/// A call of git for the repository of a directory, whatever called this program. It asks no question, takes no lock
/// that it does not need, fetches no object by itself, and runs no hook and no monitor of the file system.
pub fn isolated(directory: &Path) -> Command {
    let mut command = Command::new("git");
    for variable in OF_A_CALLER {
        command.env_remove(variable);
    }
    command
        .args(["--no-pager", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null"])
        .current_dir(directory)
        .env("GIT_NO_LAZY_FETCH", "1")
        .env("GIT_OPTIONAL_LOCKS", "0")
        .env("GIT_TERMINAL_PROMPT", "0")
        .env("LC_ALL", "C");
    command
}

/// The hook directories of the current repository.
pub struct Hooks {
    /// The directory that git uses.
    pub directory: PathBuf,
    /// The directory that git uses unless `core.hooksPath` is set.
    pub usual: PathBuf,
}

/// The staged files.
pub struct Staged {
    /// Relative to the root of the worktree. Bytes that are not UTF-8 are replaced.
    pub names: Vec<String>,
    /// Whether the list is complete.
    pub complete: bool,
}

/// Finds the hook directories.
pub fn hooks() -> Result<Hooks> {
    let said = answer(&["rev-parse", "--path-format=absolute", "--git-path", "hooks", "--git-common-dir"])?;
    let mut lines = said.split(|byte| *byte == b'\n');
    match (lines.next().and_then(path), lines.next().and_then(path), lines.next()) {
        (Some(directory), Some(common), Some([])) => Ok(Hooks { directory, usual: common.join("hooks") }),
        _ => Err(Error::invalid("cannot parse the output of git")),
    }
}

/// Whether the current repository is bare.
pub fn is_bare() -> Result<bool> {
    Ok(answer(&["rev-parse", "--is-bare-repository"])?.starts_with(b"true"))
}

/// Whether `git add` would add this file: it is in a worktree, and not ignored. If git is missing or fails, it adds
/// nothing.
pub fn would_add(file: &Path) -> bool {
    let Some(directory) = file.parent().filter(|directory| directory.is_absolute()) else { return false };
    if !directory.ancestors().any(|ancestor| ancestor.join(".git").exists()) {
        return false;
    }
    let mut git = isolated(directory);
    git.args(["check-ignore", "--quiet", "--"]).arg(file);
    let limits = Limits { time: LIMIT, output: 0, directory: None };
    let ended = program::run(&mut git, Vec::new(), &limits, &AtomicBool::new(false));
    // It exits with 1 if the file is not ignored, and with 128 if there is no worktree.
    ended.is_ok_and(|ended| ended.code == Some(1))
}

/// The root of the current worktree.
pub fn top_level() -> Result<PathBuf> {
    let said = answer(&["rev-parse", "--show-toplevel"])?;
    let line = said.strip_suffix(b"\n").unwrap_or(&said);
    path(line).ok_or_else(|| Error::invalid("cannot parse the output of git"))
}

/// Lists the staged files. In a pre-commit hook, these are the files of the commit, even of a partial one.
pub fn staged() -> Result<Staged> {
    // Lists both names of a renamed file, because either may be reserved.
    let mut git = git(&["diff", "--cached", "--name-only", "--no-renames", "--no-relative", "-z"]);
    let mut child = git.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().map_err(cant_start)?;
    let mut bytes = Vec::new();
    if let Some(stdout) = child.stdout.take() {
        stdout.take(MOST_NAMES).read_to_end(&mut bytes).map_err(cant_start)?;
    }
    // The pipe is closed, so git exits even if it has more to print.
    let status = child.wait().map_err(cant_start)?;
    let complete = (bytes.len() as u64) < MOST_NAMES;
    if complete && !status.success() {
        return Err(Fault::new(Code::Io, format!("cannot list staged files: git failed ({status})")).into());
    }
    Ok(Staged { names: names(&bytes), complete })
}

/// Splits the output of `git … -z`. Bytes after the last NUL are an incomplete name and are dropped.
fn names(bytes: &[u8]) -> Vec<String> {
    let mut names: Vec<_> = bytes.split(|byte| *byte == 0).collect();
    names.pop();
    names.into_iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect()
}

/// Runs git in the current directory, and returns its output. Refuses if it fails, for example outside of a repository.
fn answer(arguments: &[&str]) -> Result<Vec<u8>> {
    let Output { status, stdout, stderr } = git(arguments).output().map_err(cant_start)?;
    if status.success() {
        return Ok(stdout);
    }
    let said = String::from_utf8_lossy(&stderr);
    let reason = said.lines().next().unwrap_or("it printed no reason").trim_start_matches("fatal: ");
    Err(Refusal::new(Code::InvalidValue, format!("no git worktree here: {reason}"))
        .hint("change into a worktree of a git repository first")
        .into())
}

fn git(arguments: &[&str]) -> Command {
    let mut command = Command::new("git");
    command.args(arguments).stdin(Stdio::null());
    command
}

fn cant_start(error: io::Error) -> Error {
    Fault::new(Code::Io, "git cannot be started")
        .hint("install git, or put it on the PATH")
        .because(error)
        .into()
}

#[cfg(unix)]
fn path(bytes: &[u8]) -> Option<PathBuf> {
    let text = <OsString as std::os::unix::ffi::OsStringExt>::from_vec(bytes.to_vec());
    (!text.is_empty()).then(|| PathBuf::from(text))
}

/// On systems where paths are not bytes, git prints UTF-8.
#[cfg(not(unix))]
fn path(bytes: &[u8]) -> Option<PathBuf> {
    let text = OsString::from(std::str::from_utf8(bytes).ok()?.trim_end_matches('\r'));
    (!text.is_empty()).then(|| PathBuf::from(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use testkit::process::RunToEnd as _;

    #[test]
    fn an_isolated_call_gets_no_variable_that_git_has_for_a_repository() {
        testkit::limit_test();
        if !testkit::machine::can("variables of git", "git", &["--version"]) {
            return;
        }
        let output = Command::new("git").args(["rev-parse", "--local-env-vars"]).run_to_end();
        // Settings that the user gave to one call of git.
        let settings = ["GIT_CONFIG_PARAMETERS", "GIT_CONFIG_COUNT"];
        let listed = String::from_utf8(output.stdout).expect("names");
        assert!(listed.contains("GIT_DIR"), "{listed}");
        let command = isolated(Path::new("."));
        for variable in listed.lines().filter(|variable| !settings.contains(variable)) {
            let is_removed = command.get_envs().any(|(name, value)| name == variable && value.is_none());
            assert!(is_removed, "{variable}");
        }
    }

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
