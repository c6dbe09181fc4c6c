//! `blackboard guard check`

use std::path::Path;
use std::time::Duration;

use blackboard::file::{Check as Checking, CheckedPath, ReservationHolder};
use blackboard::{Code, Error, Result};

use crate::commands::Run;
use crate::commands::arguments::Session;
use crate::context::{Context, warn};
use crate::git::{self, Staged};
use crate::location::Tree;
use crate::open::Access;
use crate::outcome::Outcome;
use crate::output::guard::{CheckedCommit, NotChecked, RefusedCommit};

/// How long a commit waits for the server of the board.
const PATIENCE: Duration = Duration::from_secs(2);

/// How many files one call of the board checks.
const AT_ONCE: usize = 10_000;

/// Check staged files against reservations
///
/// Exits with 4 if another session has reserved a staged file, and prints the holder. If git or the board cannot be
/// read, prints a warning and exits with 0.
///
/// Examples:
///   blackboard guard check
///   blackboard guard check --warn --json
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Check {
    /// Report reserved files, and exit with 0
    #[arg(long)]
    warn: bool,

    #[command(flatten)]
    session: Session,
}

impl Run for Check {
    fn run(self, context: &Context) -> Result<Outcome> {
        let session = self.session.named();
        match look(context, session) {
            Ok(commit) if commit.free || self.warn => Ok(Outcome::new(commit)),
            Ok(commit) => Ok(Outcome::new(RefusedCommit::new(commit)).that_means(Code::Held)),
            // A session that is named explicitly has to exist.
            Err(error) if session.is_some() && is_about_session(&error) => Err(error),
            Err(error) => Ok(Outcome::new(NotChecked(error))),
        }
    }
}

/// Finds the staged files that other sessions have reserved.
fn look(context: &Context, session: Option<&str>) -> Result<CheckedCommit> {
    let root = git::top_level()?;
    let Staged { names, complete } = git::staged()?;
    let tree = context.tree()?;
    let prefix = prefix(&tree, &root)?;
    let (board, own) = match context.open(Access::read_with(session).within(PATIENCE)) {
        Ok((board, session)) => (board, session.into_iter().collect()),
        // Any of these sessions may be the caller. A file that none of them has reserved belongs to another session.
        Err(error) if session.is_none() && error.code() == Code::NoSession => {
            (context.open(Access::read().within(PATIENCE))?, sessions_of(&error))
        }
        Err(error) => return Err(error),
    };
    let paths: Vec<String> = names.iter().map(|name| literal(&prefix, name)).collect();
    let mut concerned: Vec<CheckedPath> = Vec::new();
    let mut perhaps_own = None;
    for some in paths.chunks(AT_ONCE) {
        let mut checked = board.files().check(&Checking {
            session: own.first().filter(|_| own.len() == 1).cloned(),
            repository: tree.repository.clone(),
            worktree: tree.worktree.clone(),
            paths: some.to_vec(),
        })?;
        for path in &mut checked.paths {
            let is_own = |other: &ReservationHolder| own.contains(&other.reservation.session_id);
            if let Some(other) = path.reserved_by.iter().find(|other| is_own(other)) {
                perhaps_own.get_or_insert_with(|| (path.path.clone(), other.reservation.agent_name.clone()));
            }
            path.reserved_by.retain(|other| !is_own(other));
            path.elsewhere.retain(|other| !is_own(other));
            path.free = path.reserved_by.is_empty();
        }
        let is_concerned = |path: &CheckedPath| !path.free || !path.elsewhere.is_empty();
        concerned.extend(checked.paths.into_iter().filter(is_concerned));
    }
    if let Some((path, name)) = perhaps_own {
        let count = own.len();
        warn(&format!(
            "{path} is reserved by {name}, which may be you: this process has {count} live sessions \
             (name your session: BLACKBOARD_SESSION_ID=ID git commit)"
        ));
    }
    let free = concerned.iter().all(|path| path.free);
    Ok(CheckedCommit { checked: true, free, staged: names.len(), complete, paths: concerned })
}

/// The path of git's worktree relative to the root of the tree. It is empty unless git was told to use another worktree.
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

/// The path of a file as a pattern that matches it. Git follows no links, so the file has no other path.
fn literal(prefix: &str, name: &str) -> String {
    format!("{prefix}{name}").replace('*', "?")
}

/// The sessions that may be the caller.
fn sessions_of(error: &Error) -> Vec<String> {
    let sessions = error.details().and_then(|details| details.get("sessions")?.as_array());
    sessions.into_iter().flatten().filter_map(|session| Some(session.as_str()?.to_owned())).collect()
}

fn is_about_session(error: &Error) -> bool {
    matches!(error.code(), Code::AgentNotFound | Code::AmbiguousSession)
}
