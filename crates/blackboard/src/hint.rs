//! The next step after an error, as data.
//!
//! The library names no command and no tool. Each edge turns a [`Hint`] into text of its own: the program into commands, the
//! MCP server into tools.

use std::borrow::Cow;

use crate::revision::Revision;
use crate::store::{Key, Prefetch};

/// One next step after an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hint {
    /// Advice that needs no command of this program.
    Advice(Cow<'static, str>),
    /// A command of the program that embeds the library, in a hint of its own. The library makes none of these.
    Command {
        /// The text before the command.
        before: Cow<'static, str>,
        /// The words of the command, without the name of the program and its global options.
        words: Cow<'static, str>,
        /// The text after it.
        after: Cow<'static, str>,
        /// Whether the command acts for the session of the call.
        acts: bool,
    },
    /// Repeat the call with the idempotency key of this call, or look first whether it was done.
    RepeatWithOperation,
    /// It is not known whether the call was done: look at this, then repeat it.
    CheckWhetherDone(CheckedSubject),
    /// The board at this location is sealed: use the copy, or unseal it if no agent uses the copy.
    UseCopyOf(String),
    /// The board at this location is an interrupted copy, unless a copy runs: replace it.
    ReplaceCopyAt(String),
    /// Pass a name.
    PassName,
    /// Pass a session, or register one.
    PassSession,
    /// Use the name of an agent, or enough characters of an id.
    NameSession,
    /// Send a heartbeat, which makes the session active again.
    Reactivate,
    /// Register a new session.
    RegisterAgain,
    /// List the active agents.
    ListActiveAgents,
    /// Several sessions have the name: use an id.
    UseSessionId,
    /// List the event types.
    ListEventTypes,
    /// Release the holdings of a session whose process is gone.
    EndGoneHolder {
        /// The session.
        session: String,
        /// Its process.
        pid: u32,
    },
    /// Claim another work item.
    ClaimNext,
    /// Claim this work item first.
    ClaimItem(String),
    /// Create the work item without claiming it.
    CreateBlocked {
        /// The work item.
        item: String,
        /// Its blockers.
        blocked_by: Vec<String>,
    },
    /// List open work items.
    ListOpenItems,
    /// List all work items.
    ListAllItems,
    /// Show this work item.
    ShowItem(String),
    /// The claim was lost: check this work item.
    CheckLostItem(String),
    /// Reset this work item, so that it can be done again.
    ResetItem(String),
    /// The work item is on hold: end that, or claim another one.
    EndHold(String),
    /// Complete the blocker first, or remove it.
    CompleteOrUnblock {
        /// The blocked work item.
        item: String,
        /// Its blocker.
        blocker: String,
    },
    /// Remove this blocker first.
    RemoveBlocker {
        /// The blocked work item.
        item: String,
        /// Its blocker.
        blocker: String,
    },
    /// Delete this work item in spite of the refusal.
    DeleteItemAnyway(String),
    /// Reassign this work item from the session that holds it.
    ReassignAnyway(String),
    /// List projects.
    ListProjects,
    /// Register this project.
    RegisterProject(String),
    /// Remove this project in spite of the refusal.
    RemoveProjectAnyway(String),
    /// List protocols.
    ListProtocols,
    /// Show this protocol.
    ShowProtocol(String),
    /// Map this scope into pages.
    MapScope(String),
    /// List the pages of mapped scopes.
    ListPages,
    /// List the keys of a scope.
    ListKeys(String),
    /// List scopes.
    ListScopes,
    /// List the levels of memory.
    ListLevels,
    /// Show this scope.
    ShowScope(String),
    /// Give this scope policies.
    CreateScope(String),
    /// Create a new scope with the name of one that has ended.
    CreateScopeAgain(String),
    /// Delete the entries of this scope.
    DeleteEntriesOf(String),
    /// Change the policies of this scope.
    SetScope(String),
    /// Delete entries of this scope, or give it a larger limit.
    FreeSpaceIn(String),
    /// Let a full scope refuse writes.
    RefuseWhenFull,
    /// Name the members of the scope.
    NameMembers,
    /// Write this key with a count of its uses in the metadata. Later changes keep it.
    CountUses {
        /// Its scope.
        scope: String,
        /// The key.
        key: String,
    },
    /// Read this key.
    ReadKey {
        /// Its scope.
        scope: String,
        /// The key.
        key: String,
    },
    /// Read this key, then retry.
    ReadAndRetry {
        /// Its scope.
        scope: String,
        /// The key.
        key: String,
    },
    /// Read this key, then retry, or pass operations for a failed comparison.
    ReadAndRetryOrElse {
        /// Its scope.
        scope: String,
        /// The key.
        key: String,
    },
    /// Wait longer for the key, or see which agents are active.
    WaitLongerForKey,
    /// Wait for the result of a call, whose request stays.
    WaitForResult {
        /// The scope of the call.
        scope: String,
        /// The key of the result.
        key: String,
        /// The revision of the request. An earlier result belongs to another request of the same id.
        after: Revision,
    },
    /// Wait longer for this work item, or show it.
    WaitLongerForItem(String),
    /// Use the form of a fence token.
    FenceTokenForm,
    /// Wait for the lock, or list locks.
    WaitForLock,
    /// Wait longer for the lock, or ask its holder.
    WaitLongerForLock,
    /// Acquire this lock.
    AcquireLock(String),
    /// Release this lock, if it is no longer in use.
    ReleaseLock(String),
    /// The lock was lost: check before you continue.
    CheckLostLock,
    /// List locks.
    ListLocks,
    /// List file reservations.
    ListReservations,
    /// Use the commands of locks, or another scope.
    UseLocks,
    /// Use the commands of files, or another scope.
    UseFiles,
    /// Work on other files, or list reservations.
    WorkOnOtherFiles,
    /// Reserve the files as shared too, or list reservations.
    ShareFiles,
    /// Start to read the event log again.
    StartOver,
    /// Use a new idempotency key for each call.
    NewIdempotencyKey,
    /// Remove the text, or allow it, if it is not a secret.
    AllowSecret,
    /// Use another board.
    UseAnotherBoard,
    /// Name the file itself instead of a link to it.
    UseRealFile,
    /// Use a board on a local disk, or allow this file system.
    UseLocalDisk,
    /// Open the board once for writing, which upgrades it.
    UpgradeBoard,
    /// Upgrade the board of another program, of which a copy stays.
    UpgradeForeignBoard,
}

/// What shows whether a call was done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CheckedSubject {
    /// The session with this id.
    Session(String),
    /// The list of agents.
    Agents,
    /// The work item with this id.
    Item(String),
    /// The list of work items.
    Items,
    /// The list of projects.
    Projects,
    /// The list of protocols.
    Protocols,
    /// The list of scopes.
    Scopes,
    /// The list of locks.
    Locks,
    /// The list of file reservations.
    Files,
}

impl CheckedSubject {
    /// What shows whether a commit with this name and these reads was done.
    pub(crate) fn of(name: &str, reads: &[Prefetch<'_>]) -> Option<CheckedSubject> {
        let mut keys = reads.iter().filter_map(|read| match read {
            Prefetch::Row(key) => Some(key),
            _ => None,
        });
        match name.split(' ').next()? {
            "agent" => Some(match keys.find(|key| matches!(key, Key::Agent(_))) {
                Some(Key::Agent(session)) => CheckedSubject::Session(session.clone()),
                _ => CheckedSubject::Agents,
            }),
            "work" => Some(match keys.find(|key| matches!(key, Key::WorkItem(_))) {
                Some(Key::WorkItem(item)) => CheckedSubject::Item(item.clone()),
                _ => CheckedSubject::Items,
            }),
            "project" => Some(CheckedSubject::Projects),
            "protocol" => Some(CheckedSubject::Protocols),
            "scope" => Some(CheckedSubject::Scopes),
            "lock" => Some(CheckedSubject::Locks),
            "file" => Some(CheckedSubject::Files),
            _ => None,
        }
    }
}

impl Hint {
    /// The advice, if it is not a step that edges have a command or a tool for.
    pub fn advice(&self) -> Option<&str> {
        match self {
            Hint::Advice(advice) => Some(advice),
            _ => None,
        }
    }
}

impl From<&'static str> for Hint {
    fn from(advice: &'static str) -> Hint {
        Hint::Advice(advice.into())
    }
}

impl From<String> for Hint {
    fn from(advice: String) -> Hint {
        Hint::Advice(advice.into())
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    /// Files with options of other programs, or with the verb of a remembered call.
    const OTHER_OPTIONS: &[&str] = &["process/program.rs", "store/sqlite/git.rs", "work/claim.rs"];

    fn check(directory: &Path, root: &Path) {
        for found in std::fs::read_dir(directory).unwrap() {
            let path = found.unwrap().path();
            let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
            if path.is_dir() && name != "store/conformance" && !path.ends_with("tests") {
                check(&path, root);
            }
            let is_source = path.extension().is_some_and(|extension| extension == "rs");
            if !is_source || path.ends_with("tests.rs") || OTHER_OPTIONS.contains(&&*name) {
                continue;
            }
            let source = std::fs::read_to_string(&path).unwrap();
            let code = source.split("#[cfg(test)]").next().unwrap();
            for line in code.lines().filter(|line| !line.trim_start().starts_with("//")) {
                let mut parts = line.split("--").skip(1);
                let names_option =
                    parts.any(|part| part.starts_with(|first: char| first.is_ascii_lowercase()));
                assert!(!names_option, "{name} names an option of the program: {line}");
            }
        }
    }

    #[test]
    fn texts_of_the_library_name_no_option_of_the_program() {
        testkit::limit_test();
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        check(&root, &root);
    }
}
