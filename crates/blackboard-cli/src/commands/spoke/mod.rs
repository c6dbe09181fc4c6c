//! `blackboard spoke …`

pub mod init;
pub mod show;
pub mod validate;

use std::path::{Path, PathBuf};

use blackboard::Error;

use crate::context::Context;
use crate::hub::folder::Problem;
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
    /// A file that is not read, and why.
    Unreadable([YamlError; 1]),
}

impl SpokeFile {
    /// Reads the content of a file with this name. `None` if no file of a spoke has it.
    fn read(name: &str, content: &Result<String, Problem>) -> Option<SpokeFile> {
        let text = match content {
            Ok(text) => text,
            Err(problem) => {
                let error = YamlError::new(0, 0, &format!("the file {problem}"));
                return Some(SpokeFile::Unreadable([error]));
            }
        };
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
            SpokeFile::Unreadable(errors) => (errors, &[]),
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
fn existing(project: &SpokeProject) -> Result<Vec<(&'static str, PathBuf, SpokeFile)>, Error> {
    let mut files = Vec::new();
    for name in FILES {
        let Some(content) = project.content(name)? else { continue };
        files.extend(SpokeFile::read(name, &content).map(|file| (name, project.file(name), file)));
    }
    Ok(files)
}

/// Reads one file whose name says which file of a spoke it is.
fn file_at(file: &Path) -> Result<Option<SpokeFile>, Error> {
    let Some(name) = file.file_name().and_then(|name| name.to_str()) else { return Ok(None) };
    if !FILES.contains(&name) {
        return Ok(project::read(file)?.and(None));
    }
    Ok(project::content(file)?.and_then(|content| SpokeFile::read(name, &content)))
}
