//! The tool `hold`: locks and file reservations.

use blackboard::duration::parse;
use blackboard::file::{Check, Release as ReleaseFiles, Reserve, Selection};
use blackboard::lock::{Acquire, Release};
use blackboard::{Result, Revision};
use rmcp::schemars::JsonSchema;
use serde::Deserialize;

use super::reply::Reply;
use super::tools::{ActionArgument, Arguments, Call, Tool, check_arguments};

/// Acquire the lock `name`, or reserve the `paths` you will edit; `check` shows the holder. Released when your session ends.
#[derive(Clone, Deserialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
#[serde(deny_unknown_fields)]
pub struct Hold {
    action: Action,
    /// lock, unlock
    name: Option<String>,
    /// reserve, release, check: files, directories, patterns like src/**/*.rs
    #[serde(default)]
    paths: Vec<String>,
    /// reserve: other agents may reserve it too
    #[serde(default)]
    shared: bool,
    /// Released after, for example, 90s or 2h
    ttl: Option<String>,
    /// Purpose, shown to other agents
    note: Option<String>,
    /// unlock
    fence: Option<i64>,
}

#[derive(Clone, Copy, PartialEq, Deserialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
#[serde(rename_all = "lowercase")]
enum Action {
    Lock,
    Unlock,
    Reserve,
    Release,
    Check,
}

impl Arguments for Hold {
    const NAME: &'static str = "hold";
    const READS: bool = false;
}

impl Hold {
    fn check(&self) -> Result<()> {
        use Action::{Check, Lock, Release, Reserve, Unlock};
        let argument =
            |name, is_given, used_by, needed_by| ActionArgument { name, is_given, used_by, needed_by };
        check_arguments(
            &self.action,
            &[
                argument("name", self.name.is_some(), &[Lock, Unlock][..], &[Lock, Unlock][..]),
                argument(
                    "paths",
                    !self.paths.is_empty(),
                    &[Reserve, Release, Check],
                    &[Reserve, Release, Check],
                ),
                argument("shared", self.shared, &[Reserve], &[]),
                argument("ttl", self.ttl.is_some(), &[Lock, Reserve], &[]),
                argument("note", self.note.is_some(), &[Lock, Reserve], &[]),
                argument("fence", self.fence.is_some(), &[Unlock], &[]),
            ],
        )
    }
}

impl Tool for Hold {
    fn call(self, call: &Call) -> Result<Reply> {
        self.check()?;
        let ttl = self.ttl.as_deref().map(parse).transpose()?;
        let name = self.name.unwrap_or_default();
        match self.action {
            Action::Lock => {
                let (board, session) = call.acting()?;
                let acquire = Acquire { name, session, ttl, note: self.note, ..Acquire::default() };
                Reply::new(&board.locks().acquire(&acquire)?)
            }
            Action::Unlock => {
                let (board, session) = call.acting()?;
                let fence = self.fence.map(Revision::new);
                Reply::new(&board.locks().release(&Release { name, session, fence })?)
            }
            Action::Reserve => {
                let tree = call.state.tree()?;
                let patterns = self.paths.iter().map(|path| tree.pattern(path)).collect::<Result<_>>()?;
                let (board, session) = call.acting()?;
                Reply::new(&board.files().reserve(&Reserve {
                    session,
                    repository: tree.repository,
                    worktree: tree.worktree,
                    patterns,
                    shared: self.shared,
                    note: self.note,
                    ttl,
                })?)
            }
            Action::Release => {
                let tree = call.state.tree()?;
                let patterns = self.paths.iter().map(|path| tree.pattern(path)).collect::<Result<_>>()?;
                let (board, session) = call.acting()?;
                let which = Selection::Patterns { worktree: tree.worktree, patterns };
                Reply::new(&board.files().release(&ReleaseFiles { session, which })?)
            }
            Action::Check => {
                let tree = call.state.tree()?;
                let paths = self.paths.iter().map(|path| tree.path(path)).collect::<Result<_>>()?;
                let (board, session) = call.reading()?;
                let check = Check { session, repository: tree.repository, worktree: tree.worktree, paths };
                Reply::new(&board.files().check(&check)?)
            }
        }
    }
}
