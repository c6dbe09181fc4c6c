//! `blackboard spoke show`

use std::path::PathBuf;

use blackboard::Result;

use super::validate::no_spoke;
use super::{SpokeFile, existing, spoke_at};
use crate::commands::Run;
use crate::context::Context;
use crate::outcome::Outcome;
use crate::output::spoke::ShownSpoke;
use crate::spoke::DIRECTORY;

/// Show what a hub sees of a project
///
/// Shows the manifest, the status and the operator in .collab/ of this project or of DIR. A file with errors is shown as
/// far as it can be read. Commands in a manifest are shown and never run.
///
/// Examples:
///   blackboard spoke show
///   blackboard spoke show . --json
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Show {
    /// Directory of the project [default: this project]
    #[arg(value_name = "DIR")]
    directory: Option<PathBuf>,
}

impl Run for Show {
    fn run(self, context: &Context) -> Result<Outcome> {
        let project = spoke_at(context, self.directory.as_deref());
        let directory = project.root.join(DIRECTORY);
        let files = existing(&project)?;
        if files.is_empty() {
            return Err(no_spoke(&directory));
        }
        let mut shown = ShownSpoke::new(directory.display().to_string());
        for (name, _, file) in files {
            shown.add_errors(name, file.problems().0);
            match file {
                SpokeFile::Manifest(checked) => shown.manifest = checked.value,
                SpokeFile::Status(checked) => shown.status = checked.value,
                SpokeFile::Operator(checked) => shown.operator = checked.value,
                SpokeFile::Unreadable(_) => {}
            }
        }
        Ok(Outcome::new(shown))
    }
}
