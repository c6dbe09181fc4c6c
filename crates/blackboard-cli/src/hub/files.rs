//! The files of a hub: `REGISTRY.md`, and of each project `PROJECT.yaml` and its copy of `.collab/`.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::cache::Selection;
use super::folder::{COLLAB, COLLAB_FILES, Collab, Content, Folder, LARGEST_FILE, Problem};
use super::git::{EntryKind, Repository, TreeEntry};

/// How many projects of a hub are read.
const MOST_PROJECTS: usize = 2000;

const REGISTRY: &str = "REGISTRY.md";
const PROJECTS: &str = "projects";
const PROJECT: &str = "PROJECT.yaml";

/// What is read from a hub.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HubFiles {
    /// `REGISTRY.md`.
    pub registry: Option<Content>,
    /// The directories in `projects/`, by their names.
    pub projects: BTreeMap<String, ProjectFiles>,
    /// What cannot be read.
    pub problems: Vec<String>,
}

/// What is read from a directory in `projects/`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProjectFiles {
    /// `PROJECT.yaml`.
    pub project: Option<Content>,
    /// Its copy of the files of the spoke, which a private spoke publishes here.
    pub collab: Collab,
}

impl HubFiles {
    /// Whether a directory is a checkout of a hub.
    pub fn is_hub(directory: &Path) -> bool {
        directory.join(PROJECTS).is_dir() || directory.join(REGISTRY).is_file()
    }

    /// Reads a checkout.
    pub fn read(directory: &Path) -> io::Result<HubFiles> {
        let root = Folder::open(directory)?;
        let mut hub = HubFiles { registry: root.text(REGISTRY, LARGEST_FILE), ..HubFiles::default() };
        let projects = match root.folder(PROJECTS) {
            Ok(projects) => projects,
            Err(problem) => {
                hub.problems.push(format!("{PROJECTS} {problem}"));
                None
            }
        };
        let Some(projects) = projects else { return Ok(hub) };
        for name in projects.names()? {
            match projects.folder(&name) {
                Ok(Some(folder)) => {
                    let project = folder.text(PROJECT, LARGEST_FILE);
                    hub.add(name, ProjectFiles { project, collab: Collab::read(&folder) });
                }
                // A plain file, for example a README, is not a project.
                Ok(None) | Err(Problem::NotADirectory) => {}
                Err(problem) => hub.problems.push(format!("{PROJECTS}/{name} {problem}")),
            }
        }
        Ok(hub)
    }

    fn add(&mut self, name: String, project: ProjectFiles) {
        if self.projects.len() < MOST_PROJECTS {
            self.projects.insert(name, project);
        } else if self.projects.len() == MOST_PROJECTS
            && self.problems.last().is_none_or(|last| last != TOO_MANY)
        {
            self.problems.push(TOO_MANY.to_owned());
        }
    }
}

const TOO_MANY: &str = "projects has more than 2000 directories, of which the first are read";

/// A file that is wanted, and where its text belongs.
enum Place {
    Registry,
    Project(String),
    Collab(String, String),
}

impl Selection for HubFiles {
    const KIND: &'static str = "hub";

    fn select(repository: &Repository<'_>) -> Result<HubFiles, String> {
        let (mut hub, mut wanted) = (HubFiles::default(), Vec::new());
        for entry in repository.entries(&[REGISTRY, PROJECTS])? {
            match (entry.path.as_str(), entry.kind) {
                (REGISTRY, EntryKind::File) => wanted.push((Place::Registry, entry.object)),
                (REGISTRY, kind) => hub.registry = Some(Err(refusal(kind).to_owned())),
                (PROJECTS, EntryKind::Directory) => {
                    for entry in repository.directory(&entry.object, true)? {
                        hub.sort(entry, &mut wanted);
                    }
                }
                (path, kind) => hub.problems.push(format!("{path} {}", refusal(kind))),
            }
        }
        let objects: Vec<&str> = wanted.iter().map(|(_, object)| object.as_str()).collect();
        let contents = repository.contents(&objects, LARGEST_FILE)?;
        for ((place, _), content) in wanted.iter().zip(contents) {
            match place {
                Place::Registry => hub.registry = Some(content),
                Place::Project(name) => {
                    if let Some(project) = hub.projects.get_mut(name) {
                        project.project = Some(content);
                    }
                }
                Place::Collab(name, file) => {
                    if let Some(project) = hub.projects.get_mut(name) {
                        project.collab.files.insert(file.clone(), content);
                    }
                }
            }
        }
        Ok(hub)
    }
}

impl HubFiles {
    /// Notes an entry of `projects/`. A directory comes before what is in it.
    fn sort(&mut self, entry: TreeEntry, wanted: &mut Vec<(Place, String)>) {
        let parts: Vec<&str> = entry.path.split('/').collect();
        match (&parts[..], entry.kind) {
            ([name], EntryKind::Directory) => self.add((*name).to_owned(), ProjectFiles::default()),
            ([name], EntryKind::Link | EntryKind::Submodule) => {
                self.problems.push(format!("{PROJECTS}/{name} {}", refusal(entry.kind)));
            }
            ([name, rest @ ..], kind) => {
                let Some(project) = self.projects.get_mut(*name) else { return };
                match (rest, kind) {
                    ([PROJECT], EntryKind::File) => {
                        wanted.push((Place::Project((*name).to_owned()), entry.object));
                    }
                    ([PROJECT], kind) => project.project = Some(Err(refusal(kind).to_owned())),
                    ([COLLAB], EntryKind::Directory) => {}
                    ([COLLAB], kind) => project.collab.problem = Some(format!("{COLLAB} {}", refusal(kind))),
                    ([COLLAB, file], kind) if COLLAB_FILES.contains(file) => {
                        let file = (*file).to_owned();
                        match kind {
                            EntryKind::File => {
                                wanted.push((Place::Collab((*name).to_owned(), file), entry.object));
                            }
                            kind => _ = project.collab.files.insert(file, Err(refusal(kind).to_owned())),
                        }
                    }
                    _ => {}
                }
            }
            ([], _) => {}
        }
    }
}

impl Selection for Collab {
    const KIND: &'static str = "spoke";

    fn select(repository: &Repository<'_>) -> Result<Collab, String> {
        let mut collab = Collab::default();
        let entries = repository.entries(&[COLLAB])?;
        let Some(directory) = entries.iter().find(|entry| entry.path == COLLAB) else { return Ok(collab) };
        if directory.kind != EntryKind::Directory {
            collab.problem = Some(format!("{COLLAB} {}", refusal(directory.kind)));
            return Ok(collab);
        }
        let mut wanted = Vec::new();
        for entry in repository.directory(&directory.object, false)? {
            match entry.kind {
                _ if !COLLAB_FILES.contains(&entry.path.as_str()) => {}
                EntryKind::File => wanted.push(entry),
                kind => _ = collab.files.insert(entry.path, Err(refusal(kind).to_owned())),
            }
        }
        let objects: Vec<&str> = wanted.iter().map(|entry| entry.object.as_str()).collect();
        let contents = repository.contents(&objects, LARGEST_FILE)?;
        collab.files.extend(wanted.into_iter().map(|entry| entry.path).zip(contents));
        Ok(collab)
    }
}

/// Why an entry that should be a file or a directory is not read.
fn refusal(kind: EntryKind) -> &'static str {
    match kind {
        EntryKind::Link => "is a symbolic link",
        EntryKind::Submodule => "is another repository",
        EntryKind::File => "is not a directory",
        EntryKind::Directory => "is not a plain file",
    }
}
