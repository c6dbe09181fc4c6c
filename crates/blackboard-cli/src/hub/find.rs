//! Finds the hub of a call, and the spokes of a hub.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use blackboard::clock::Timestamp;
use blackboard::project::Project as RegisteredProject;
use blackboard::{Code, Fault, Refusal, Result};
use serde::Serialize;

use super::address::{Address, Paths, USUAL_HOST, without_password};
use super::cache::{Cache, Reading};
use super::files::HubFiles;
use super::folder::{COLLAB, Collab, Folder, LARGEST_FILE};
use super::project::Project;
use super::registry::Registry;
use crate::output::escape;
use crate::yaml;

/// Where a hub is.
#[derive(Clone, Debug, PartialEq)]
pub enum HubLocation {
    /// A checkout on this machine.
    Directory(PathBuf),
    /// A repository.
    Remote(Address),
}

/// A hub that was read.
#[derive(Debug, Default)]
pub struct Hub {
    /// Its location, as messages name it; `None` if there is no hub.
    pub name: Option<String>,
    /// Its files.
    pub files: HubFiles,
    /// When a hub that could not be read now was read.
    pub cached_at: Option<Timestamp>,
    /// Why it could not be read now.
    pub problem: Option<String>,
    host: Option<String>,
}

/// A project, and where its spoke is.
#[derive(Debug)]
pub struct Candidate {
    /// The project.
    pub project: Project,
    /// Where its spoke is.
    pub origin: Origin,
}

/// Where a spoke is.
#[derive(Debug)]
pub enum Origin {
    /// In the path of a registered project.
    Local(Collab),
    /// In the hub.
    Hub(Collab),
    /// In a repository.
    Remote(Address, Option<String>),
    /// In a repository that must not be read, or a path that cannot be read.
    Refused(String),
    /// Nowhere.
    Missing,
}

/// What says where the hub is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NamedBy {
    /// `--hub`.
    Option,
    /// The working directory is one.
    Directory,
    /// `hub.url`.
    Configuration,
    /// The manifest of the working directory.
    Manifest,
}

/// Finds the hub: the given one, this directory, that of the configuration, or that of the manifest in `root`.
pub fn location(
    given: Option<&str>,
    current: &Path,
    configured: Option<&str>,
    root: &Path,
) -> Result<Option<(HubLocation, NamedBy)>> {
    if let Some(given) = given {
        return named(given, current, "--hub").map(|location| Some((location, NamedBy::Option)));
    }
    if HubFiles::is_hub(current) {
        return Ok(Some((HubLocation::Directory(current.to_owned()), NamedBy::Directory)));
    }
    if let Some(configured) = configured {
        let location = named(configured, current, "hub.url")?;
        return Ok(Some((location, NamedBy::Configuration)));
    }
    let Some(hub) = hub_of_manifest(root) else { return Ok(None) };
    // A manifest comes with a clone, so it may name no path.
    let address = Address::parse(&hub, USUAL_HOST, Paths::Inside(&[])).map_err(|problem| {
        let message = format!("the hub of {COLLAB}/manifest.yaml cannot be used: {} {problem}", escape(&hub));
        Refusal::new(Code::InvalidValue, message).hint("name the hub: --hub DIR|URL")
    })?;
    Ok(Some((HubLocation::Remote(address), NamedBy::Manifest)))
}

/// The hub that a user has named: a checkout, a repository on this machine, or a URL.
fn named(text: &str, current: &Path, name: &str) -> Result<HubLocation> {
    let path = current.join(text);
    if !text.is_empty() && path.is_dir() {
        if HubFiles::is_hub(&path) {
            return Ok(HubLocation::Directory(path));
        }
        if !is_bare(&path) {
            return Err(not_a_hub(&format!("{name}: {}", escape(text))));
        }
        let path = std::fs::canonicalize(&path).unwrap_or(path);
        return Address::of_path(&path)
            .map(HubLocation::Remote)
            .map_err(|problem| refusal(name, text, &problem));
    }
    // No URL begins like this.
    if text.starts_with(['/', '.', '~']) {
        return Err(refusal(name, text, "is not a directory"));
    }
    let address = Address::parse(text, USUAL_HOST, Paths::Any);
    address.map(HubLocation::Remote).map_err(|problem| refusal(name, text, &problem))
}

fn refusal(name: &str, text: &str, problem: &str) -> blackboard::Error {
    let shown = without_password(text);
    let shown: String = shown.chars().take(100).collect();
    Refusal::new(Code::InvalidValue, format!("{name}: {} {problem}", escape(&shown)))
        .hint("name a directory, owner/repo or a URL")
        .into()
}

fn not_a_hub(what: &str) -> blackboard::Error {
    Refusal::new(Code::InvalidValue, format!("{what} is not a hub: it has neither projects/ nor REGISTRY.md"))
        .hint("name the directory or the repository that has them")
        .into()
}

/// A bare repository has no checkout to read.
fn is_bare(path: &Path) -> bool {
    path.join("HEAD").is_file() && path.join("objects").is_dir() && path.join("refs").is_dir()
}

fn hub_of_manifest(root: &Path) -> Option<String> {
    let collab = Folder::open(root).ok()?.folder(COLLAB).ok()??;
    let text = collab.text("manifest.yaml", LARGEST_FILE)?.ok()?;
    yaml::tree(&text).ok()?.get("hub")?.text().map(str::to_owned)
}

impl Hub {
    /// Reads a hub, or what the cache has of it.
    pub fn read(location: &HubLocation, cache: &Cache, interrupted: &AtomicBool) -> Result<Hub> {
        match location {
            HubLocation::Directory(directory) => {
                let name = directory.display().to_string();
                let files = HubFiles::read(directory).map_err(|error| {
                    Fault::new(Code::Io, format!("cannot read the hub {}", escape(&name))).because(error)
                })?;
                Ok(Hub { name: Some(name), files, ..Hub::default() })
            }
            HubLocation::Remote(address) => {
                let Reading { snapshot, problem } = cache.read::<HubFiles>(address, None, interrupted);
                let Some((snapshot, asked_at)) = snapshot else {
                    let problem = problem.unwrap_or_default();
                    let message =
                        format!("cannot read the hub {}: {}", escape(&address.to_string()), escape(&problem));
                    let hint = if cache.offline {
                        "pull it once without --offline"
                    } else {
                        "check --hub, and the network"
                    };
                    return Err(Fault::new(Code::Io, message).hint(hint).into());
                };
                if snapshot.content == HubFiles::default() {
                    return Err(not_a_hub(&escape(&address.to_string())));
                }
                let is_cached = cache.offline || problem.is_some();
                Ok(Hub {
                    name: Some(address.to_string()),
                    files: snapshot.content,
                    cached_at: is_cached.then_some(asked_at),
                    problem,
                    host: address.host().map(str::to_owned),
                })
            }
        }
    }

    /// The tables of `REGISTRY.md`; `None` if there is none that can be read.
    pub fn registry(&self) -> Option<Registry> {
        self.files.registry.as_ref()?.as_ref().ok().map(|text| Registry::parse(text))
    }

    /// The projects that have a directory in the hub.
    pub fn projects(&self) -> Vec<Project> {
        self.files.projects.iter().map(|(id, files)| Project::read(id, files)).collect()
    }

    /// Every project of the hub. With `others`, then the registered ones that it does not have. `allowed` are directories of
    /// this machine that a hub may name.
    pub fn candidates(
        &self,
        registered: &[RegisteredProject],
        others: bool,
        allowed: &[PathBuf],
    ) -> Vec<Candidate> {
        let host = self.host.as_deref().unwrap_or(USUAL_HOST);
        let mut locals: Vec<_> = registered.iter().filter_map(Local::read).collect();
        let has_projects = self.files.projects.values().any(|files| files.project.is_some());
        let rows = self.registry().and_then(|registry| registry.projects).filter(|_| !has_projects);
        let mut projects = self.projects();
        for row in rows.unwrap_or_default() {
            // A directory without PROJECT.yaml may still have a copy of the spoke.
            match projects.iter_mut().find(|project| project.is_in(&row)) {
                Some(project) => *project = Project { id: project.id.clone(), ..Project::of_row(&row) },
                None => projects.push(Project::of_row(&row)),
            }
        }
        let mut candidates = Vec::with_capacity(projects.len());
        for mut project in projects {
            let address = project.source.as_ref().map(|source| {
                let address = Address::parse(&source.repo, host, Paths::Inside(allowed));
                let shown = || without_password(&source.repo);
                address.map_err(|problem| format!("its source {} {problem}", shown()))
            });
            let origin = self.origin(&mut project, address, &mut locals);
            candidates.push(Candidate { project, origin });
        }
        if others {
            candidates.extend(locals.into_iter().map(Local::candidate));
        }
        candidates
    }

    fn origin(
        &self,
        project: &mut Project,
        address: Option<Result<Address, String>>,
        locals: &mut Vec<Local>,
    ) -> Origin {
        let address_of = |address: &Option<Result<Address, String>>| {
            address.as_ref().and_then(|address| address.as_ref().ok()?.repository())
        };
        let repository = address_of(&address);
        if let Some(index) = locals.iter().position(|local| local.is(project, repository.as_deref())) {
            match locals.swap_remove(index).collab {
                Ok(collab) => return Origin::Local(collab),
                Err(problem) => project.problems.push(problem),
            }
        }
        let copy = self.files.projects.get(&project.id).map(|files| &files.collab);
        match (copy.filter(|copy| !copy.is_missing()), address) {
            (Some(copy), _) => Origin::Hub(copy.clone()),
            (None, Some(Ok(address))) => {
                let branch = project.source.as_ref().and_then(|source| source.branch.clone());
                Origin::Remote(address, branch)
            }
            (None, Some(Err(problem))) => Origin::Refused(problem),
            (None, None) => Origin::Missing,
        }
    }
}

/// A registered project whose path has a spoke, or cannot be read.
struct Local {
    id: String,
    name: String,
    repository: Option<String>,
    collab: Result<Collab, String>,
}

impl Local {
    fn read(project: &RegisteredProject) -> Option<Local> {
        let path = Path::new(project.local_path.as_deref()?);
        if !path.is_absolute() {
            return None;
        }
        let collab = match Folder::open(path) {
            Ok(folder) => Ok(Collab::read(&folder)),
            Err(error) => Err(format!("its registered path {} cannot be read: {error}", path.display())),
        };
        let is_missing = collab.as_ref().is_ok_and(Collab::is_missing);
        (!is_missing).then(|| Local {
            id: project.project_id.clone(),
            name: project.display_name.clone(),
            repository: project.remote_repo.clone(),
            collab,
        })
    }

    /// Whether it is the spoke of a project: by its repository, or by its id if it has none.
    fn is(&self, project: &Project, repository: Option<&str>) -> bool {
        let own = self.repository.as_deref().map(|own| {
            let address = Address::parse(own, USUAL_HOST, Paths::Any).ok();
            address.and_then(|address| address.repository()).unwrap_or_else(|| own.to_owned())
        });
        match (own, repository) {
            (Some(own), Some(repository)) => own.eq_ignore_ascii_case(repository),
            _ => self.id == project.id,
        }
    }

    fn candidate(self) -> Candidate {
        let project = Project { id: self.id, name: self.name, ..Project::default() };
        let origin = self.collab.map_or_else(Origin::Refused, Origin::Local);
        Candidate { project, origin }
    }
}
