//! The files of a hub: `REGISTRY.md`, and of each project `PROJECT.yaml` and its copy of `.collab/`.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::cache::Selection;
use super::folder::{
    Budget, COLLAB, COLLAB_FILES, Collab, Content, Folder, LARGEST_FILE, LARGEST_HUB, Problem,
};
use super::git::{EntryKind, Repository, TreeEntry};

/// How many projects of a hub are read.
const MOST_PROJECTS: usize = 2000;

/// How many problems of a hub are kept.
const MOST_PROBLEMS: usize = 100;

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
        let mut budget = Budget::new(LARGEST_HUB);
        let registry = root.text_within(REGISTRY, &mut budget);
        let mut hub = HubFiles { registry, ..HubFiles::default() };
        let projects = match root.folder(PROJECTS) {
            Ok(projects) => projects,
            Err(problem) => {
                hub.report(format!("{PROJECTS} {problem}"));
                None
            }
        };
        let Some(projects) = projects else { return Ok(hub) };
        for name in projects.names()? {
            match projects.folder(&name) {
                Ok(Some(folder)) => {
                    let Some(files) = hub.add(name) else { continue };
                    files.project = folder.text_within(PROJECT, &mut budget);
                    files.collab = Collab::read_within(&folder, &mut budget);
                }
                // A plain file, for example a README, is not a project.
                Ok(None) | Err(Problem::NotADirectory) => {}
                Err(problem) => hub.report(format!("{PROJECTS}/{name} {problem}")),
            }
        }
        Ok(hub)
    }

    /// A project for this directory; `None` if the hub has too many.
    fn add(&mut self, name: String) -> Option<&mut ProjectFiles> {
        if self.projects.len() == MOST_PROJECTS {
            let problem =
                format!("{PROJECTS} has more than {MOST_PROJECTS} directories, of which the first are read");
            if self.problems.first() != Some(&problem) {
                self.problems.insert(0, problem);
            }
            return None;
        }
        Some(self.projects.entry(name).or_default())
    }

    fn report(&mut self, problem: String) {
        if self.problems.len() < MOST_PROBLEMS {
            self.problems.push(problem);
        }
    }
}

/// What the text of a file becomes.
enum Target {
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
                (REGISTRY, EntryKind::File) => wanted.push((Target::Registry, entry.object)),
                (REGISTRY, kind) => hub.registry = Some(Err(refusal(kind).to_owned())),
                (PROJECTS, EntryKind::Directory) => {
                    for entry in repository.directory(&entry.object, true)? {
                        hub.sort(entry, &mut wanted);
                    }
                }
                (path, kind) => hub.report(format!("{path} {}", refusal(kind))),
            }
        }
        let objects: Vec<&str> = wanted.iter().map(|(_, object)| object.as_str()).collect();
        let contents = repository.contents(&objects, LARGEST_FILE, &mut Budget::new(LARGEST_HUB))?;
        for ((target, _), content) in wanted.iter().zip(contents) {
            match target {
                Target::Registry => hub.registry = Some(content),
                Target::Project(name) => {
                    if let Some(project) = hub.projects.get_mut(name) {
                        project.project = Some(content);
                    }
                }
                Target::Collab(name, file) => {
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
    fn sort(&mut self, entry: TreeEntry, wanted: &mut Vec<(Target, String)>) {
        let parts: Vec<&str> = entry.path.split('/').collect();
        match (&parts[..], entry.kind) {
            ([name], EntryKind::Directory) => _ = self.add((*name).to_owned()),
            ([name], EntryKind::Link | EntryKind::Submodule) => {
                self.report(format!("{PROJECTS}/{name} {}", refusal(entry.kind)));
            }
            ([name, rest @ ..], kind) => {
                let Some(project) = self.projects.get_mut(*name) else { return };
                match (rest, kind) {
                    ([PROJECT], EntryKind::File) => {
                        wanted.push((Target::Project((*name).to_owned()), entry.object));
                    }
                    ([PROJECT], kind) => project.project = Some(Err(refusal(kind).to_owned())),
                    ([COLLAB], EntryKind::Directory) => {}
                    ([COLLAB], kind) => project.collab.problem = Some(format!("{COLLAB} {}", refusal(kind))),
                    ([COLLAB, file], kind) if COLLAB_FILES.contains(file) => {
                        let file = (*file).to_owned();
                        match kind {
                            EntryKind::File => {
                                wanted.push((Target::Collab((*name).to_owned(), file), entry.object));
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
        let contents = repository.contents(&objects, LARGEST_FILE, &mut Budget::new(LARGEST_HUB))?;
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
