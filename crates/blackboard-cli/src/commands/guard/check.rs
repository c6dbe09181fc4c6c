//! `blackboard guard check`

use std::path::Path;

use blackboard::file::{Check as Checking, CheckedPath};
use blackboard::{Code, Error, Result};

use crate::commands::Run;
use crate::commands::arguments::Session;
use crate::context::Context;
use crate::git::{self, Staged};
use crate::location::Tree;
use crate::outcome::Outcome;
use crate::output::guard::{CheckedCommit, NotChecked, RefusedCommit};

/// How many files the board is asked about at once.
const AT_ONCE: usize = 10_000;

/// Ask whether somebody else has reserved a file that is about to be committed
///
/// Exit 4 and the names of those who have, whether shared or not; exit 0 if nobody else has. The files are those that
/// git has staged in this worktree. What the session itself has reserved does not count; a delegate that shares the
/// environment of its parent commits with BLACKBOARD_SESSION_ID=ID git commit. If git, the board or the session can't be
/// made out, that is told on stderr, and the exit code is 0: nobody's commit is stopped for that.
///
/// Examples:
///   blackboard guard check
///   blackboard guard check --warn --json
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Check {
    /// Only tell, with exit 0
    #[arg(long)]
    warn: bool,

    #[command(flatten)]
    session: Session,
}

impl Run for Check {
    fn run(self, context: &Context) -> Result<Outcome> {
        let session = self.session.session.as_deref();
        match look(context, session) {
            Ok(commit) if commit.free || self.warn => Ok(Outcome::new(commit)),
            Ok(commit) => Ok(Outcome::new(RefusedCommit::new(commit)).that_means(Code::Held)),
            // Whoever names a session in so many words wants to hear that it is wrong.
            Err(error) if session.is_some() && is_about_session(&error) => Err(error),
            Err(error) => Ok(Outcome::new(NotChecked(error))),
        }
    }
}

/// Finds out what is staged, and who else has reserved it.
fn look(context: &Context, session: Option<&str>) -> Result<CheckedCommit> {
    let root = git::top_level()?;
    let Staged { names, complete } = git::staged()?;
    let tree = context.tree()?;
    let prefix = prefix(&tree, &root)?;
    let (board, session) = match context.reading_as(session) {
        // The session of the environment is one of another board, and has reserved nothing here.
        Err(error) if session.is_none() && error.code() == Code::AgentNotFound => (context.reading()?, None),
        found => found?,
    };
    let paths: Vec<String> = names.iter().map(|name| literal(&prefix, name)).collect();
    let mut concerned: Vec<CheckedPath> = Vec::new();
    for some in paths.chunks(AT_ONCE) {
        let checked = board.files().check(&Checking {
            session: session.clone(),
            repository: tree.repository.clone(),
            worktree: tree.worktree.clone(),
            paths: some.to_vec(),
        })?;
        let is_concerned = |path: &CheckedPath| !path.free || !path.elsewhere.is_empty();
        concerned.extend(checked.paths.into_iter().filter(is_concerned));
    }
    let free = concerned.iter().all(|path| path.free);
    Ok(CheckedCommit { checked: true, free, staged: names.len(), complete, paths: concerned })
}

/// What the worktree is called from the root of the tree on: nothing, unless git was told to use another one.
fn prefix(tree: &Tree, root: &Path) -> Result<String> {
    let root = std::fs::canonicalize(root).unwrap_or_else(|_| root.to_owned());
    let worktree = std::fs::canonicalize(&tree.worktree).unwrap_or_else(|_| tree.worktree.clone().into());
    let inside = root.strip_prefix(&worktree).ok().and_then(Path::to_str);
    match inside {
        Some("") => Ok(String::new()),
        Some(inside) => Ok(format!("{inside}/")),
        None => {
            let message =
                format!("git commits in {}, which is not in {}", root.display(), worktree.display());
            Err(Error::invalid(message))
        }
    }
}

/// The path of a file, whose name is no pattern, whatever it looks like. Git follows no links, so that there is no other
/// name for it.
fn literal(prefix: &str, name: &str) -> String {
    format!("{prefix}{name}").replace('*', "?")
}

fn is_about_session(error: &Error) -> bool {
    matches!(error.code(), Code::AgentNotFound | Code::AmbiguousSession)
}
