//! `blackboard spoke validate`

use std::path::PathBuf;

use blackboard::{Code, Error, Refusal, Result};

use super::{FILES, SpokeFile, existing, file_at, spoke_at};
use crate::commands::Run;
use crate::context::Context;
use crate::outcome::Outcome;
use crate::output::spoke::{ValidatedFile, ValidatedSpoke};
use crate::spoke::DIRECTORY;

/// Check the files of a spoke against their schemas
///
/// Checks .collab/manifest.yaml, status.yaml and operator.yaml, or one of them, and prints every error with its line and
/// column. Exits with 4 if a file is invalid or cannot be read. Unknown keys are ignored with a note.
///
/// Examples:
///   blackboard spoke validate
///   blackboard spoke validate .collab/manifest.yaml
///   blackboard spoke validate --json
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Validate {
    /// File, or directory with a .collab directory [default: this project]
    #[arg(value_name = "PATH")]
    path: Option<PathBuf>,
}

impl Run for Validate {
    fn run(self, context: &Context) -> Result<Outcome> {
        let files = match &self.path {
            Some(path) if !path.is_dir() => {
                let Some(file) = file_at(path)? else { return Err(no_such_file(path)) };
                vec![validated(path.display().to_string(), &file)]
            }
            path => {
                let project = spoke_at(context, path.as_deref());
                let files = existing(&project)?;
                if files.is_empty() {
                    return Err(no_spoke(&project.root.join(DIRECTORY)));
                }
                files.iter().map(|(_, path, file)| validated(path.display().to_string(), file)).collect()
            }
        };
        let spoke = ValidatedSpoke::new(files);
        let is_valid = spoke.valid;
        let outcome = Outcome::new(spoke);
        Ok(if is_valid { outcome } else { outcome.that_means(ValidatedSpoke::INVALID) })
    }
}

fn validated(path: String, file: &SpokeFile) -> ValidatedFile {
    let (errors, notes) = file.problems();
    ValidatedFile { file: path, valid: errors.is_empty(), errors: errors.to_vec(), notes: notes.to_vec() }
}

fn no_such_file(path: &std::path::Path) -> Error {
    if path.exists() {
        return Error::invalid(format!("{} is not called {}", path.display(), FILES.join(", ")));
    }
    Error::invalid(format!("{} does not exist", path.display()))
}

/// A refusal that hints at how a spoke begins.
pub(super) fn no_spoke(directory: &std::path::Path) -> Error {
    Refusal::new(Code::EntryNotFound, format!("{} has no files of a spoke", directory.display()))
        .hint("create a manifest: blackboard spoke init, or a status: blackboard status --export")
        .into()
}
