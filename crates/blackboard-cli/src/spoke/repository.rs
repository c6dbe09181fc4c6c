//! What git says about a repository, from git itself: branch, last commit, changes, distance to the remote branch.
//!
//! Every call has a time limit, asks no question, locks nothing, fetches nothing and runs no program that the
//! configuration of the repository names: no hook, no file system monitor, no filter, no pager, no signature check. Without
//! its filter, a file whose metadata differ from those in the index may count as changed.

use std::path::Path;
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use super::status::GitStatus;
use crate::git;
use crate::program::{self, Failure, Finished, Limits};

/// How long git may take. `git status` reads the metadata of every file.
const LIMIT: Duration = Duration::from_secs(20);

/// How much of its output is read: one changed file is enough.
const MOST_BYTES: u64 = 64 * 1024;

/// The options of `git status`.
const STATUS: [&str; 7] = [
    "status",
    "--porcelain=v2",
    "--branch",
    "--untracked-files=all",
    "--ignore-submodules=dirty",
    "--no-renames",
    "-z",
];

/// Why there are no facts about a repository.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unknown {
    /// git cannot be started.
    NotInstalled,
    /// It took too long.
    TooSlow,
    /// It failed, for example because the repository belongs to another user.
    Failed,
}

impl Unknown {
    /// The reason for human output.
    pub const fn reason(self) -> &'static str {
        match self {
            Unknown::NotInstalled => "git cannot be started",
            Unknown::TooSlow => "git did not answer in time",
            Unknown::Failed => "git cannot read the repository",
        }
    }
}

/// Asks git about the worktree with this root. `own` is the file, relative to the root, that is about to be replaced: it
/// does not count as a change.
pub fn status(root: &Path, own: &str) -> Result<GitStatus, Unknown> {
    let filters = filters(root)?;
    let ask = |arguments: &[&str], paths: &[&str]| {
        let arguments = [arguments, &["--"], paths].concat();
        output(&mut call(root, &filters, &arguments))
    };
    let others = format!(":(top,exclude,literal){own}");
    let mut status = if let Some(output) = ask(&STATUS, &[":(top)", &others])? {
        parsed(&output)
    } else {
        // So many files have changed. What is about the branch is also printed for one file.
        let output = ask(&STATUS, &[&format!(":(top,literal){own}")])?.unwrap_or_default();
        GitStatus { dirty: true, uncommitted_changes: true, ..parsed(&output) }
    };
    // A repository without commits has none.
    let log = ["log", "-1", "--no-show-signature", "--no-patch", "--no-ext-diff", "--format=%H %cI"];
    if let Ok(Some(output)) = ask(&log, &[]) {
        let line = String::from_utf8_lossy(&output);
        if let Some((commit, date)) = line.trim().split_once(' ') {
            status.commit = Some(commit.to_owned());
            status.last_commit = Some(date.to_owned());
        }
    }
    Ok(status)
}

/// Reads the output of `git status --porcelain=v2 --branch -z`.
fn parsed(output: &[u8]) -> GitStatus {
    let mut status = GitStatus::default();
    for line in output.split(|byte| *byte == 0).filter(|line| !line.is_empty()) {
        let line = String::from_utf8_lossy(line);
        let Some(header) = line.strip_prefix("# ") else {
            status.dirty = true;
            break;
        };
        match header.split_once(' ') {
            Some(("branch.head", "(detached)")) => "HEAD".clone_into(&mut status.branch),
            Some(("branch.head", branch)) => branch.clone_into(&mut status.branch),
            Some(("branch.ab", counts)) => {
                let mut counts =
                    counts.split(' ').map(|count| count.get(1..).and_then(|count| count.parse().ok()));
                status.ahead_of_remote = counts.next().flatten().unwrap_or_default();
                status.behind_remote = counts.next().flatten().unwrap_or_default();
            }
            _ => {}
        }
    }
    status.uncommitted_changes = status.dirty;
    status
}

/// The names of the filters in the configuration. Git would run them on files whose content it compares.
fn filters(root: &Path) -> Result<Vec<String>, Unknown> {
    let mut command = git::isolated(root);
    command.args(["config", "--null", "--name-only", "--get-regexp", r"^filter\."]);
    let finished = run(&mut command)?.ok_or(Unknown::Failed)?;
    match finished.code {
        Some(0) => filter_names(&finished.stdout).ok_or(Unknown::Failed),
        // It found none.
        Some(1) => Ok(Vec::new()),
        _ => Err(Unknown::Failed),
    }
}

/// The names in a list of keys. `None` if `-c` cannot disable one of them.
fn filter_names(keys: &[u8]) -> Option<Vec<String>> {
    let mut names = Vec::new();
    for key in keys.split(|byte| *byte == 0) {
        let key = std::str::from_utf8(key).ok()?;
        // A key without a name in the middle configures no filter.
        let Some((name, _)) = key.strip_prefix("filter.").and_then(|key| key.rsplit_once('.')) else {
            continue;
        };
        if name.contains('=') {
            return None;
        }
        if !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
    }
    Some(names)
}

/// A call of git that runs no program of the configuration and uses no network.
fn call(root: &Path, filters: &[String], arguments: &[&str]) -> Command {
    let mut command = git::isolated(root);
    command.args(["-c", "log.showSignature=false"]);
    for filter in filters {
        for setting in ["clean=", "process=", "required=false"] {
            command.args(["-c", &format!("filter.{filter}.{setting}")]);
        }
    }
    // For versions of git that fetch missing objects although they are told not to.
    command.args(arguments).env("GIT_ALLOW_PROTOCOL", "");
    command
}

/// The output of git; `None` if there is too much of it.
fn output(command: &mut Command) -> Result<Option<Vec<u8>>, Unknown> {
    match run(command)? {
        Some(finished) if finished.code == Some(0) => Ok(Some(finished.stdout)),
        Some(_) => Err(Unknown::Failed),
        None => Ok(None),
    }
}

/// Runs git to its end. `None` if it prints too much.
fn run(command: &mut Command) -> Result<Option<Finished>, Unknown> {
    let limits = Limits { time: LIMIT, output: MOST_BYTES, directory: None };
    match program::run(command, Vec::new(), &limits, &AtomicBool::new(false)) {
        Ok(finished) => Ok(Some(finished)),
        Err(Failure::TooMuchOutput(_)) => Ok(None),
        Err(Failure::CannotStart(_)) => Err(Unknown::NotInstalled),
        Err(Failure::TimedOut(_)) => Err(Unknown::TooSlow),
        Err(_) => Err(Unknown::Failed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_are_found_by_their_keys() {
        for (keys, expected) in [
            ("", Some(&[][..])),
            ("filter.lfs.clean\0filter.lfs.process\0filter.a.b.clean\0", Some(&["lfs", "a.b"])),
            ("filter.clean\0", Some(&[])),
            ("filter.a=b.clean\0", None),
        ] {
            let found = filter_names(keys.as_bytes());
            assert_eq!(
                found.as_deref(),
                expected
                    .map(|names| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>())
                    .as_deref(),
                "{keys}"
            );
        }
        assert_eq!(filter_names(b"filter.\xff.clean\0"), None);
    }

    #[test]
    fn the_output_of_git_status_is_parsed() {
        let clean = GitStatus { branch: "main".into(), ..GitStatus::default() };
        let dirty = GitStatus { dirty: true, uncommitted_changes: true, ..clean.clone() };
        for (output, expected) in [
            ("# branch.oid 12\0# branch.head main\0", &clean),
            (
                "# branch.oid 12\0# branch.head main\0# branch.upstream o/main\0# branch.ab +2 -31\0",
                &GitStatus { ahead_of_remote: 2, behind_remote: 31, ..clean.clone() },
            ),
            ("# branch.head (detached)\0", &GitStatus { branch: "HEAD".into(), ..clean.clone() }),
            ("# branch.head main\0? new file\0", &dirty),
            ("# branch.head main\x001 .M N... 100644 100644 100644 1 1 a\0", &dirty),
            ("# branch.oid (initial)\0# branch.head main\0", &clean),
            ("", &GitStatus::default()),
            ("# branch.ab nonsense\0# branch.head main\0", &clean),
            ("# branch.ab é\0# branch.head main\0", &clean),
        ] {
            assert_eq!(parsed(output.as_bytes()), *expected, "{output}");
        }
    }
}
