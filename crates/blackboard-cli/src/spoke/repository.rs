//! What git says about a repository, from git itself: branch, last commit, changes, distance to the remote branch.
//!
//! Every call has a time limit, asks no question, locks nothing and runs no program that the configuration of the
//! repository names: no hook, no file system monitor, no pager, no signature check.

use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use super::status::GitStatus;

/// How long git may take. `git status` reads the metadata of every file.
const LIMIT: Duration = Duration::from_secs(20);

/// How much of its output is read: the branch comes first, and one changed file is enough.
const MOST_BYTES: u64 = 64 * 1024;

/// How long to wait for a process that has closed its output, between two checks.
const PAUSE: Duration = Duration::from_millis(2);

/// The variables by which a caller of ours, for example a hook of git, points git at another repository.
const POINTERS: [&str; 7] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_COMMON_DIR",
    "GIT_OBJECT_DIRECTORY",
    "GIT_NAMESPACE",
    "GIT_PREFIX",
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
    /// The reason for people.
    pub const fn reason(self) -> &'static str {
        match self {
            Unknown::NotInstalled => "git cannot be started",
            Unknown::TooSlow => "git did not answer in time",
            Unknown::Failed => "git cannot read the repository",
        }
    }
}

/// Asks git about the worktree with this root. `own` is the file, relative to the root, that is about to be replaced: it
/// is no change.
pub fn status(root: &Path, own: &str) -> Result<GitStatus, Unknown> {
    let own = format!(":(top,exclude,literal){own}");
    let output = git(
        root,
        &[
            "status",
            "--porcelain=v2",
            "--branch",
            "--untracked-files=all",
            "--ignore-submodules=dirty",
            "--no-renames",
            "-z",
            "--",
            ":(top)",
            &own,
        ],
    )?;
    let mut status = parsed(&output);
    // A repository without commits has none.
    if let Ok(output) = git(root, &["log", "-1", "--no-show-signature", "--format=%H %cI"]) {
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

/// Runs git in a directory, and returns its output.
fn git(directory: &Path, arguments: &[&str]) -> Result<Vec<u8>, Unknown> {
    let mut command = Command::new("git");
    command
        .arg("--no-pager")
        .args([
            "-c",
            "core.fsmonitor=false",
            "-c",
            "core.hooksPath=/dev/null",
            "-c",
            "log.showSignature=false",
        ])
        .args(arguments)
        .current_dir(directory)
        .env("GIT_OPTIONAL_LOCKS", "0")
        .env("GIT_TERMINAL_PROMPT", "0")
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    for variable in POINTERS {
        command.env_remove(variable);
    }
    let mut child = command.spawn().map_err(|_| Unknown::NotInstalled)?;
    let output = output_of(&mut child);
    if output.is_err() {
        // It may have ended meanwhile. Either way it is reaped.
        let _ = child.kill();
        let _ = child.wait();
    }
    output
}

fn output_of(child: &mut Child) -> Result<Vec<u8>, Unknown> {
    let until = Instant::now() + LIMIT;
    let (sender, receiver) = mpsc::channel();
    let stdout = child.stdout.take().ok_or(Unknown::Failed)?;
    // The thread ends with the process: its end of the pipe is then closed.
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let read = stdout.take(MOST_BYTES).read_to_end(&mut bytes);
        // The receiver is gone if this took too long.
        let _ = sender.send(read.map(|_| bytes));
    });
    let bytes = match receiver.recv_timeout(LIMIT) {
        Ok(read) => read.map_err(|_| Unknown::Failed)?,
        Err(_) => return Err(Unknown::TooSlow),
    };
    let is_cut = bytes.len() as u64 == MOST_BYTES;
    loop {
        match child.try_wait() {
            // What it has not printed yet is not read: the closed pipe ends it.
            Ok(Some(status)) if status.success() || is_cut => return Ok(bytes),
            Ok(Some(_)) | Err(_) => return Err(Unknown::Failed),
            Ok(None) if Instant::now() >= until => return Err(Unknown::TooSlow),
            Ok(None) => thread::sleep(PAUSE),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
