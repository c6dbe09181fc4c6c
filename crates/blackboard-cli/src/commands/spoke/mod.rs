//! `blackboard spoke …`

pub mod init;
pub mod show;
pub mod validate;

use std::path::{Path, PathBuf};

use blackboard::Result;

use crate::context::Context;
use crate::spoke::project::{self, SpokeProject};
use crate::spoke::{Checked, DIRECTORY, Manifest, OperatorFile, StatusFile, manifest, operator, status};
use crate::yaml::YamlError;

/// The files of a spoke, in the order in which they are shown.
const FILES: [&str; 3] = [manifest::FILE, status::FILE, operator::FILE];

/// A file of a spoke, as it was read.
pub enum SpokeFile {
    /// `manifest.yaml`
    Manifest(Checked<Manifest>),
    /// `status.yaml`
    Status(Checked<StatusFile>),
    /// `operator.yaml`
    Operator(Checked<OperatorFile>),
}

impl SpokeFile {
    /// Reads the text of a file with this name. `None` if no file of a spoke has it.
    fn read(name: &str, text: &str) -> Option<SpokeFile> {
        Some(match name {
            manifest::FILE => SpokeFile::Manifest(Manifest::check(text)),
            status::FILE => SpokeFile::Status(StatusFile::check(text)),
            operator::FILE => SpokeFile::Operator(OperatorFile::check(text)),
            _ => return None,
        })
    }

    /// What is wrong with it, and what else there is to know.
    fn problems(&self) -> (&[YamlError], &[YamlError]) {
        match self {
            SpokeFile::Manifest(checked) => (&checked.errors, &checked.notes),
            SpokeFile::Status(checked) => (&checked.errors, &checked.notes),
            SpokeFile::Operator(checked) => (&checked.errors, &checked.notes),
        }
    }
}

/// The spoke that a directory names: it has a `.collab/`, it is one, or it is inside of a project.
fn spoke_at(context: &Context, directory: Option<&Path>) -> SpokeProject {
    let request = context.request();
    let Some(directory) = directory else { return SpokeProject::find(&request) };
    let mut directory: PathBuf = request.current_dir.join(directory);
    if directory.file_name().is_some_and(|name| name == DIRECTORY) {
        directory.pop();
    }
    SpokeProject::in_directory(&directory)
}

/// The files of a spoke that exist, by their names.
fn existing(project: &SpokeProject) -> Result<Vec<(&'static str, PathBuf, SpokeFile)>> {
    let mut files = Vec::new();
    for name in FILES {
        let Some(text) = project.read(name)? else { continue };
        files.extend(SpokeFile::read(name, &text).map(|file| (name, project.file(name), file)));
    }
    Ok(files)
}

/// Reads one file whose name says which file of a spoke it is.
fn file_at(file: &Path) -> Result<Option<SpokeFile>> {
    let Some(name) = file.file_name().and_then(|name| name.to_str()) else { return Ok(None) };
    Ok(project::read(file)?.and_then(|text| SpokeFile::read(name, &text)))
}
