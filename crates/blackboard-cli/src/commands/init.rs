//! `blackboard init`

use std::io;
use std::path::Path;

use blackboard::store::sqlite::{create_private_directory, keep_out_of_git};
use blackboard::{Code, Error, Fault, Refusal, Result};
use serde::Serialize;

use super::Run;
use crate::context::{Context, warn};
use crate::envelope::Answer;
use crate::location::{self, DATABASE_FILE};
use crate::outcome::{Outcome, Render};
use crate::output::{self, Screen, escape};

/// Create a board for this repository
///
/// Makes .blackboard/ at the root of the repository (or here, outside of one), private to this user and ignored by
/// git. Every command below that directory, in every worktree of the repository, uses it from then on. Without it the
/// board in the home directory serves.
///
/// Examples:
///   blackboard init
///   cd project && blackboard init --json
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Init {}

impl Run for Init {
    fn run(self, context: &Context) -> Result<Outcome> {
        let directory = match &context.globals.db {
            None => Some(location::new_project_directory(&context.request())?),
            Some(_) => None,
        };
        let file = match &directory {
            Some(directory) => directory.join(DATABASE_FILE),
            None => context.place()?.file.clone(),
        };
        if let Some(directory) = &directory {
            // The search passes over what is not to be trusted, so that a board in there would never be found.
            location::is_own_directory(directory).map_err(|reason| not_to_be_trusted(directory, &reason))?;
        }
        let created = !file.exists();
        let opener = match &directory {
            Some(directory) => {
                make_private_directory(directory)?;
                context.opener_in_project(&file)?
            }
            None => context.opener()?.checking_git(),
        };
        opener.open()?;
        if directory.is_some() {
            // A board that an earlier version created may have none.
            keep_out_of_git(&file)?;
        }
        let used = &context.place()?.file;
        if *used != file {
            let (used, file) = (used.display(), file.display());
            warn(&format!("commands use {used} instead of {file}: see BLACKBOARD_DB"));
        }
        Ok(Outcome::new(Initialized { database: file.display().to_string(), created }))
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
        let verb = if self.created { "Created board" } else { "Board exists already" };
        screen.line(format_args!("{verb}: {}", escape(&self.database)))
    }
}

/// Creates the directory for this user alone. The mode of one that exists is none of our business.
fn make_private_directory(directory: &Path) -> Result<()> {
    create_private_directory(directory).map(drop).map_err(|error| cant_create(directory, error))
}

fn not_to_be_trusted(directory: &Path, reason: &str) -> Error {
    Refusal::new(Code::UnsafePermissions, format!("{} can't hold a board: {reason}", directory.display()))
        .hint("move it out of the way, or name another place with --db")
        .into()
}

fn cant_create(path: &Path, error: io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            Refusal::new(Code::ReadOnly, format!("{} can't be created", path.display()))
                .hint("this user may not write there; --db or BLACKBOARD_DB names another place")
                .into()
        }
        _ => Fault::new(Code::Io, format!("{} can't be created", path.display())).because(error).into(),
    }
}
