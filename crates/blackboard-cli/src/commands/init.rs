//! `blackboard init`

use std::io;
use std::path::Path;

use blackboard::store::create_private_directory;
use blackboard::store::sqlite::keep_out_of_git;
use blackboard::{Code, Error, Fault, Refusal, Result};
use serde::Serialize;

use super::{Run, upgrade};
use crate::context::{Context, warn};
use crate::engine::{Mode, Opening};
use crate::envelope::{Answer, BoardState};
use crate::location::{self, DATABASE_FILE};
use crate::outcome::{Outcome, Render};
use crate::output::{self, Screen, escape};

/// Create a board for this repository
///
/// Creates .blackboard/ at the root of the repository, readable only by you and ignored by git. All commands in the
/// repository and its worktrees then use this board instead of the one in your home directory.
///
/// Git ignores the contents of .blackboard/ except .gitignore and config.json. Outside a repository, it is created in
/// the current directory. With --db or BLACKBOARD_DB, that board is created instead.
///
/// If a server has lost its board, or has another one under the same name, commands report that until init creates the
/// board or accepts the other one.
///
/// If a board of ivy-blackboard is there, asks whether to upgrade it, as `upgrade` does.
///
/// Examples:
///   blackboard init
///   blackboard init --json
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Init {
    /// Upgrade a board of ivy-blackboard without asking
    #[arg(short = 'y', long)]
    yes: bool,
}

impl Run for Init {
    fn run(self, context: &Context) -> Result<Outcome> {
        // As any other command, `init` is about the board that is named, if one is.
        let is_named = context.db().is_some() || context.environment().database.is_some();
        let (board, directory, used_before) = if is_named {
            (context.resolve()?.clone(), None, None)
        } else {
            let request = context.request();
            let used_before = context.resolve_at(&location::find(&request)?, |_| {}).ok();
            let directory = location::new_project_directory(&request)?;
            // The search skips a directory that is not to be trusted: it would never find a board in there.
            location::is_own_directory(&directory)
                .map_err(|reason| not_to_be_trusted(&directory, &reason))?;
            make_private_directory(&directory)?;
            // What is odd about the configuration is printed below, with the board that commands use.
            let board = context.resolve_at(&location::in_project(&request, &directory), |_| {})?;
            (board, Some(directory), used_before)
        };
        let opening = Opening { accepts_any_board: true, ..context.opening(Mode::Create) };
        let opened = match board.open(opening) {
            Err(error)
                if error.code() == Code::UpgradeNeeded && upgrade::wanted(context, &board, self.yes)? =>
            {
                upgrade::run(context, &board)?;
                board.open(opening)?
            }
            opened => opened?,
        };
        let created = opened.state == Some(BoardState::Created);
        if let Some(directory) = directory {
            // A board that an earlier version created may have no `.gitignore`.
            keep_out_of_git(&directory.join(DATABASE_FILE))?;
        }
        let (database, used) = (board.engine.name(), context.resolve()?.engine.name());
        if used != database {
            warn(&format!("commands here use {used} instead of {database}"));
        }
        if let Some(used) = used_before.filter(|used| used.engine.name() != database) {
            upgrade::note_if_needed(context, &used);
        }
        if context.db().is_none() && is_named {
            context.note("BLACKBOARD_DB is set; unset it to create a board for this repository");
        }
        Ok(Outcome::new(Initialized { database, created }))
    }
}

#[derive(Serialize)]
struct Initialized {
    database: String,
    created: bool,
}

impl Render for Initialized {
    fn json(&self, answer: &mut Answer<'_>) -> output::Result {
        answer.object(self)
    }

    fn human(&self, screen: &mut Screen<'_>) -> output::Result {
        let verb = if self.created { "Created board" } else { "Board already exists" };
        screen.line(format_args!("{verb}: {}", escape(&self.database)))
    }
}

/// Creates the directory for this user alone. The mode of one that exists is none of our business.
fn make_private_directory(directory: &Path) -> Result<()> {
    create_private_directory(directory).map(drop).map_err(|error| cant_create(directory, error))
}

fn not_to_be_trusted(directory: &Path, reason: &str) -> Error {
    Refusal::new(Code::UnsafePermissions, format!("{} cannot hold a board: {reason}", directory.display()))
        .hint("move it elsewhere, or pass another location with --db")
        .into()
}

fn cant_create(path: &Path, error: io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            Refusal::new(Code::ReadOnly, format!("{} cannot be created", path.display()))
                .hint("pass another location with --db")
                .into()
        }
        _ => Fault::new(Code::Io, format!("{} cannot be created", path.display())).because(error).into(),
    }
}
