//! Runs git against repositories of others.
//!
//! Git does the transport and the authentication, with the configuration of the user. It may use the protocols of the
//! [`Address`] only, asks no question, runs no hook, and has limits for its time, its output and the space it uses. It works in a
//! bare repository of ours, so that no configuration of a repository that others wrote is read.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use super::address::Address;
use super::folder::{Budget, Content, text_of, too_large};
use crate::git;
use crate::program::{self, Failure, Finished, Limits};

/// How many bytes of a repository are fetched. A server that filters sends only commits and directories.
const LARGEST_FETCH: u64 = 64 * 1024 * 1024;

/// How many bytes of names git may print.
const LONGEST_LIST: u64 = 8 * 1024 * 1024;

/// The name of the remote in the repositories of the cache.
const REMOTE: &str = "hub";

/// Where the fetched commit is stored.
const FETCHED: &str = "refs/blackboard/fetched";

/// The configuration of a repository of the cache. Objects that were left out can be fetched later.
const CONFIG: &str = "[core]
\trepositoryformatversion = 1
\tbare = true
[extensions]
\tpartialClone = hub
[remote \"hub\"]
\tpromisor = true
\tpartialclonefilter = blob:none
";

/// Settings that protect from what a repository contains. They override those of the user.
const SETTINGS: &[&str] = &[
    "core.bigFileThreshold=1m",
    "credential.interactive=false",
    "fetch.unpackLimit=1",
    "fetch.recurseSubmodules=false",
    "fetch.writeCommitGraph=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "protocol.allow=never",
];

/// How git is run.
#[derive(Clone, Debug)]
pub struct GitOptions {
    /// How long each call may take.
    pub timeout: Duration,
    /// Whether the user has an ssh command of their own, which is then not replaced.
    pub has_ssh_command: bool,
}

/// A bare repository of the cache, and the remote that it is a part of.
pub struct Repository<'a> {
    /// Where it is.
    pub directory: PathBuf,
    /// Where it comes from.
    pub address: &'a Address,
    /// How git is run.
    pub options: &'a GitOptions,
    /// Set when the user wants to end.
    pub interrupted: &'a AtomicBool,
}

/// The branch of a remote that is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tip {
    /// Its full name; `HEAD` if the remote has no branch `main` and none was asked for.
    pub reference: String,
    /// Its last commit.
    pub commit: String,
}

/// An entry of a directory in git.
#[derive(Debug, PartialEq, Eq)]
pub struct TreeEntry {
    /// What it is.
    pub kind: EntryKind,
    /// Its object.
    pub object: String,
    /// Its path below the listed directory.
    pub path: String,
}

/// What an entry of a directory in git is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// A file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link, which is never followed.
    Link,
    /// Another repository, which is never fetched.
    Submodule,
}

impl Repository<'_> {
    /// Creates it unless it exists. `git init` would copy the hooks of a template.
    pub fn create(&self) -> std::io::Result<()> {
        for directory in ["objects/pack", "refs"] {
            std::fs::create_dir_all(self.directory.join(directory))?;
        }
        std::fs::write(self.directory.join("config"), CONFIG)?;
        std::fs::write(self.directory.join("HEAD"), "ref: refs/heads/none\n")
    }

    /// Asks the remote for the last commit of a branch. Without a name, it is `main`, or the default branch.
    pub fn tip(&self, branch: Option<&str>) -> Result<Tip, String> {
        let wanted = format!("refs/heads/{}", branch.unwrap_or("main"));
        if branch.is_some_and(|branch| !is_branch(branch)) {
            return Err("the name of its branch is not valid".to_owned());
        }
        let finished = self.call(&["ls-remote", "--quiet", REMOTE, "HEAD", &wanted], Vec::new(), None)?;
        let said = String::from_utf8_lossy(&finished.stdout);
        let mut tips = said.lines().filter_map(|line| line.split_once('\t'));
        let tip = |(commit, reference): (&str, &str)| {
            is_object(commit).then(|| Tip { reference: reference.to_owned(), commit: commit.to_owned() })
        };
        let (mut head, mut found) = (None, None);
        for each in &mut tips {
            match each.1 {
                "HEAD" => head = tip(each),
                name if name == wanted => found = tip(each),
                _ => {}
            }
        }
        match (found, head, branch) {
            (Some(found), ..) => Ok(found),
            (None, Some(head), None) => Ok(head),
            (None, _, Some(branch)) => Err(format!("it has no branch {branch}")),
            (None, None, None) => Err("it is empty".to_owned()),
        }
    }

    /// Fetches the last commit of a branch without its files.
    pub fn fetch(&self, tip: &Tip) -> Result<(), String> {
        let refspec = format!("+{}:{FETCHED}", tip.reference);
        let mut arguments = FETCH.to_vec();
        arguments.extend(["--depth=1", REMOTE, &refspec]);
        self.call(&arguments, Vec::new(), Some(LARGEST_FETCH)).map(drop)
    }

    /// The commit that was fetched.
    pub fn fetched(&self) -> Result<String, String> {
        let finished = self.call(&["rev-parse", "--verify", "--quiet", FETCHED], Vec::new(), None)?;
        let commit = String::from_utf8_lossy(&finished.stdout).trim().to_owned();
        if is_object(&commit) { Ok(commit) } else { Err("git printed no commit".to_owned()) }
    }

    /// The entries at these paths of the fetched commit.
    pub fn entries(&self, paths: &[&str]) -> Result<Vec<TreeEntry>, String> {
        let mut arguments = vec!["ls-tree", "-z", "--full-tree", FETCHED, "--"];
        arguments.extend(paths);
        self.list(&arguments)
    }

    /// The entries of a directory, and with `recursive` of those below it.
    pub fn directory(&self, object: &str, recursive: bool) -> Result<Vec<TreeEntry>, String> {
        let mut arguments = vec!["ls-tree", "-z", "--full-tree"];
        if recursive {
            arguments.extend(["-r", "-t"]);
        }
        arguments.push(object);
        self.list(&arguments)
    }

    fn list(&self, arguments: &[&str]) -> Result<Vec<TreeEntry>, String> {
        let finished = self.call(arguments, Vec::new(), None)?;
        Ok(parse_tree(&finished.stdout))
    }

    /// The contents of files, in the order of their objects. Files that are not here are fetched, all at once. An object is read
    /// once, and its size counts for each file that has it.
    pub fn contents(&self, objects: &[&str], most: u64, budget: &mut Budget) -> Result<Vec<Content>, String> {
        let distinct: Vec<&str> = objects.iter().copied().collect::<BTreeSet<_>>().into_iter().collect();
        let sizes = self.sizes_after_fetch(&distinct)?;
        let admit = |object: &&str| match sizes.get(object) {
            Some(size) if *size > most => Err(too_large(*size, most)),
            Some(size) => budget.take(*size),
            None => Err("was not sent by the server".to_owned()),
        };
        let admitted: Vec<Result<(), String>> = objects.iter().map(admit).collect();
        let wanted = objects.iter().zip(&admitted).filter(|(_, admitted)| admitted.is_ok());
        let wanted: Vec<&str> =
            wanted.map(|(object, _)| *object).collect::<BTreeSet<_>>().into_iter().collect();
        let space = wanted.iter().filter_map(|object| sizes.get(object)).sum();
        let texts: BTreeMap<&str, Content> =
            wanted.iter().copied().zip(self.texts(&wanted, space)?).collect();
        let content = |(object, admitted): (&&str, Result<(), String>)| {
            let missing = || Err("was not printed by git".to_owned());
            admitted.and_then(|()| texts.get(object).cloned().unwrap_or_else(missing))
        };
        Ok(objects.iter().zip(admitted).map(content).collect())
    }

    /// The sizes of objects. Those that are not here are fetched; one that the server does not send has none.
    fn sizes_after_fetch<'a>(&self, objects: &[&'a str]) -> Result<BTreeMap<&'a str, u64>, String> {
        let mut sizes = self.sizes(objects)?;
        let missing: Vec<&str> =
            objects.iter().copied().filter(|object| !sizes.contains_key(object)).collect();
        if !missing.is_empty() {
            // Without this, git tells the server which commit is here, and the server then leaves out its files.
            let mut arguments = vec!["-c", "fetch.negotiationAlgorithm=noop"];
            arguments.extend(FETCH);
            arguments.extend(["--stdin", REMOTE]);
            self.call(&arguments, lines(&missing), Some(LARGEST_FETCH))?;
            sizes = self.sizes(objects)?;
        }
        Ok(sizes)
    }

    /// The sizes of the objects that are here.
    fn sizes<'a>(&self, objects: &[&'a str]) -> Result<BTreeMap<&'a str, u64>, String> {
        if objects.is_empty() {
            return Ok(BTreeMap::new());
        }
        let finished = self.call(&["cat-file", "--batch-check"], lines(objects), None)?;
        let said = String::from_utf8_lossy(&finished.stdout);
        let size = |line: &str| match line.split(' ').collect::<Vec<_>>()[..] {
            [_, "blob", size] => size.parse().ok(),
            _ => None,
        };
        let sizes: Vec<Option<u64>> = said.lines().map(size).collect();
        if sizes.len() != objects.len() {
            return Err("git printed too few sizes".to_owned());
        }
        Ok(objects.iter().copied().zip(sizes).filter_map(|(object, size)| Some((object, size?))).collect())
    }

    /// The texts of objects that are here and have this many bytes together.
    fn texts(&self, objects: &[&str], size: u64) -> Result<Vec<Content>, String> {
        if objects.is_empty() {
            return Ok(Vec::new());
        }
        // A line before each text.
        let output = size.saturating_add(200 * objects.len() as u64);
        let finished = self.limited(&["cat-file", "--batch"], lines(objects), output, None)?;
        let mut rest = &finished.stdout[..];
        let mut texts = Vec::new();
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let header = String::from_utf8_lossy(&rest[..end]);
            let size = header.rsplit(' ').next().and_then(|size| size.parse::<usize>().ok());
            let size = size.ok_or("git printed no size")?;
            let start = end + 1;
            let bytes = rest.get(start..start.saturating_add(size)).ok_or("git printed too little")?;
            texts.push(text_of(bytes.to_vec()));
            rest = rest.get(start + size + 1..).unwrap_or_default();
        }
        Ok(texts)
    }

    fn call(&self, arguments: &[&str], input: Vec<u8>, space: Option<u64>) -> Result<Finished, String> {
        self.limited(arguments, input, LONGEST_LIST, space)
    }

    fn limited(
        &self,
        arguments: &[&str],
        input: Vec<u8>,
        output: u64,
        space: Option<u64>,
    ) -> Result<Finished, String> {
        let packs = self.directory.join("objects/pack");
        let directory = space.map(|space| (packs.as_path(), space));
        let limits = Limits { time: self.options.timeout, output, directory };
        let finished = program::run(&mut self.command(arguments), input, &limits, self.interrupted);
        let finished = finished.map_err(|failure| describe(&failure))?;
        if finished.code == Some(0) { Ok(finished) } else { Err(self.reason(&finished.stderr)) }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = git::isolated(&self.directory);
        for setting in SETTINGS {
            command.args(["-c", setting]);
        }
        for protocol in self.address.protocols().split(':') {
            command.args(["-c", &format!("protocol.{protocol}.allow=always")]);
        }
        command.args(["-c", &format!("remote.{REMOTE}.url={}", self.address.url)]);
        command
            .args(arguments)
            .env("GIT_DIR", &self.directory)
            .env("GIT_ALLOW_PROTOCOL", self.address.protocols())
            .env("GIT_ASKPASS", "")
            .env("SSH_ASKPASS_REQUIRE", "never");
        if self.address.uses_ssh() && !self.options.has_ssh_command {
            command.env("GIT_SSH_COMMAND", "ssh -o BatchMode=yes");
        }
        command
    }

    /// The line in which git says why, without a password of the URL.
    fn reason(&self, stderr: &str) -> String {
        const LONGEST: usize = 200;
        let line = reason(stderr).replace(&self.address.url, &self.address.to_string());
        line.chars().take(LONGEST).collect()
    }
}

/// Why git did not end by itself.
fn describe(failure: &Failure) -> String {
    match failure {
        Failure::CannotStart(error) => format!("git cannot be started: {error}"),
        Failure::CannotWait(error) => format!("git cannot be waited for: {error}"),
        Failure::TimedOut(time) => format!("git did not end within {} s", time.as_secs_f64()),
        Failure::TooMuchOutput(_) => "git printed too much".to_owned(),
        Failure::TooMuchSpace(most) => {
            format!("it is too large: more than {} MB would be fetched", most / (1024 * 1024))
        }
        Failure::Interrupted => "interrupted".to_owned(),
    }
}

/// The first line that says why: one of git, or one of the program that git started, for example ssh.
fn reason(stderr: &str) -> &str {
    let lines = || stderr.lines().map(str::trim).filter(|line| !line.is_empty());
    let marked = |line: &'_ &str| line.starts_with("fatal: ") || line.starts_with("error: ");
    let is_general = |line: &str| line.contains("Could not read from remote repository");
    let line = lines()
        .find(|line| marked(line) && !is_general(line))
        .or_else(|| lines().find(|line| !line.starts_with("warning: ") && !is_general(line)))
        .or_else(|| lines().next())
        .unwrap_or("git failed, and printed no reason");
    line.trim_start_matches("fatal: ").trim_start_matches("error: ")
}

/// How objects are fetched: as few as possible, and nothing else is written.
const FETCH: [&str; 8] = [
    "fetch",
    "--quiet",
    "--no-tags",
    "--no-write-fetch-head",
    "--no-auto-maintenance",
    "--recurse-submodules=no",
    "--filter=blob:none",
    "--force",
];

/// Whether the user has an ssh command of their own, which may ask no question if the user wrote it so.
pub fn has_ssh_command(directory: &Path, environment_has_one: bool, interrupted: &AtomicBool) -> bool {
    if environment_has_one {
        return true;
    }
    let mut command = git::isolated(directory);
    command.args(["config", "--global", "--get", "core.sshCommand"]);
    let limits = Limits { time: Duration::from_secs(10), output: 10_000, directory: None };
    program::run(&mut command, Vec::new(), &limits, interrupted).is_ok_and(|end| end.code == Some(0))
}

fn lines(objects: &[&str]) -> Vec<u8> {
    objects.iter().flat_map(|object| object.bytes().chain([b'\n'])).collect()
}

/// A SHA-1 or SHA-256.
fn is_object(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Whether git accepts the name of a branch, and takes it for nothing else.
fn is_branch(name: &str) -> bool {
    let refused = |letter: char| letter.is_control() || " ~^:?*[\\".contains(letter);
    !name.is_empty()
        && name.len() <= 200
        && !name.starts_with(['-', '/', '.'])
        && !name.ends_with(['/', '.'])
        && !name.contains("..")
        && !name.contains("//")
        && !name.contains("@{")
        && !name.contains(refused)
}

/// Parses `git ls-tree -z`. What is not UTF-8 has no name that is read.
fn parse_tree(bytes: &[u8]) -> Vec<TreeEntry> {
    let entry = |line: &[u8]| {
        let (facts, path) = std::str::from_utf8(line).ok()?.split_once('\t')?;
        let mut facts = facts.split(' ');
        let kind = match facts.next()? {
            "100644" | "100755" | "100664" => EntryKind::File,
            "040000" => EntryKind::Directory,
            "120000" => EntryKind::Link,
            "160000" => EntryKind::Submodule,
            _ => return None,
        };
        let object = facts.nth(1).filter(|object| is_object(object))?.to_owned();
        Some(TreeEntry { kind, object, path: path.to_owned() })
    };
    bytes.split(|byte| *byte == 0).filter_map(entry).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn branches_cannot_be_options_or_other_references() {
        testkit::limit_test();
        for name in ["main", "feature/spoke", "v1.2", "übung"] {
            assert!(is_branch(name), "{name}");
        }
        let long = "a".repeat(201);
        for name in
            ["", "-b", "a..b", "a b", "a:b", "a*", "^a", "a~1", "@{u}", "/a", "a/", ".a", "a\n", &long]
        {
            assert!(!is_branch(name), "{name}");
        }
    }

    #[test]
    fn reason_is_the_line_that_says_most() {
        testkit::limit_test();
        for (stderr, expected) in [
            ("", "git failed, and printed no reason"),
            (
                "warning: slow\nfatal: '/x' does not appear\nfatal: Could not read from remote repository.\n",
                "'/x' does not appear",
            ),
            (
                "ssh: no such host\r\nfatal: Could not read from remote repository.\n\nPlease",
                "ssh: no such host",
            ),
            ("fatal: Could not read from remote repository.", "Could not read from remote repository."),
        ] {
            assert_eq!(reason(stderr), expected);
        }
    }

    #[test]
    fn entries_have_a_kind_and_a_path() {
        let object = "587be6b4c3f93f93c489c0111bba5596147a26cb";
        let listed = format!(
            "100644 blob {object}\tstatus.yaml\0120000 blob {object}\tlink\0160000 commit {object}\tother\0\
             040000 tree {object}\ta\tb\0999999 blob {object}\tstrange\0100644 blob zz\tbad\0rubbish\0"
        );
        let entries = parse_tree(listed.as_bytes());
        let kinds: Vec<_> = entries.iter().map(|entry| (entry.kind, entry.path.as_str())).collect();
        let expected = [
            (EntryKind::File, "status.yaml"),
            (EntryKind::Link, "link"),
            (EntryKind::Submodule, "other"),
            (EntryKind::Directory, "a\tb"),
        ];
        assert_eq!(kinds, expected);
    }
}
