//! The files that a tool edits, and the other agents that work on them.

use std::collections::{BTreeMap, HashMap};
use std::path::{Component, Path, PathBuf};
use std::rc::Rc;

use blackboard::file::{Check, Edited, FileConflict};
use blackboard::{Board, Result};

use super::request::ToolCall;
use crate::context::Context;
use crate::location::{self, Tree};

/// The maximum number of edited files that one call records per worktree.
const MOST_NOTED: usize = 100;

/// The maximum number of files per check.
const AT_ONCE: usize = 1000;

/// The maximum depth of a path, in names. Deeper paths take too long to resolve.
const DEEPEST: usize = 100;

/// The limit of the work to resolve the files of one call, roughly in system calls.
///
/// One system call takes a few microseconds on a busy machine: all of them fit into a third of a hook's 300 ms.
const MOST_STEPS: usize = 20_000;

/// The files of a call, by worktree.
#[derive(Default)]
pub struct Files {
    trees: BTreeMap<String, InTree>,
    /// Whether files of the call are missing here, because there are too many of them or their paths are too deep.
    pub has_unchecked: bool,
}

/// Files of one worktree.
struct InTree {
    repository: String,
    /// Their paths relative to the root of the worktree.
    paths: Vec<String>,
}

impl Files {
    /// The files that a tool edits. Relative paths start at `base`.
    pub fn of(used: &ToolCall, base: &Path, context: &Context) -> Files {
        let mut files = Files { has_unchecked: used.has_unlisted, ..Files::default() };
        let mut resolver = Resolver { context, directories: HashMap::new(), steps: 0 };
        for path in &used.paths {
            let path = base.join(path);
            if is_too_deep(&path) {
                files.has_unchecked = true;
                continue;
            }
            let plain = location::lexically(&path);
            // Some platforms leave `..` to the system, which follows links first. Others remove it before.
            let is_resolved = resolver.add_to(&mut files, &plain)
                && (!has_parent(&path) || resolver.add_to(&mut files, &path));
            files.has_unchecked |= !is_resolved;
        }
        files
    }

    /// Whether some files of a tool are never checked. Uses neither the file system nor the board.
    pub fn exceed_limits(used: &ToolCall, base: &Path) -> bool {
        used.has_unlisted || used.paths.iter().any(|path| is_too_deep(&base.join(path)))
    }

    /// The other agents that work on any of them.
    pub fn others(&self, board: &Board, session: &str) -> Result<Vec<FileConflict>> {
        let mut others = Vec::new();
        for (worktree, InTree { repository, paths }) in &self.trees {
            for some in paths.chunks(AT_ONCE) {
                others.extend(board.files().conflicts(&Check {
                    session: Some(session.to_owned()),
                    repository: repository.clone(),
                    worktree: worktree.clone(),
                    paths: some.to_vec(),
                })?);
            }
        }
        Ok(others)
    }

    /// The files to record as edited with a tool, by worktree.
    pub fn edited(&self, tool: Option<&str>, wanted: impl Fn(&str) -> bool) -> Vec<Edited> {
        let edited = self.trees.iter().map(|(worktree, tree)| Edited {
            worktree: worktree.clone(),
            paths: tree.paths.iter().filter(|path| wanted(path)).take(MOST_NOTED).cloned().collect(),
            tool: tool.map(str::to_owned),
            denied: false,
        });
        edited.filter(|edited| !edited.paths.is_empty()).collect()
    }
}

/// Stops counting at the limit: a path may have thousands of names.
fn is_too_deep(path: &Path) -> bool {
    path.components().nth(DEEPEST).is_some()
}

fn has_parent(path: &Path) -> bool {
    path.components().any(|component| component == Component::ParentDir)
}

/// An existing directory.
struct ExistingDirectory {
    /// As the path was spelled.
    directory: PathBuf,
    /// Its path without links. Working directories, from which other commands find the tree, never contain links.
    real: PathBuf,
    tree: Tree,
}

/// Finds the worktrees of files.
struct Resolver<'a> {
    context: &'a Context,
    /// The nearest existing directory of each directory seen so far.
    directories: HashMap<PathBuf, Option<Rc<ExistingDirectory>>>,
    steps: usize,
}

impl Resolver<'_> {
    /// Adds a file, if it can be reserved. `false` if finding that out takes too long.
    fn add_to(&mut self, files: &mut Files, path: &Path) -> bool {
        if self.steps > MOST_STEPS {
            return false;
        }
        let depth = path.components().count();
        let Some(existing) = path.parent().and_then(|parent| self.existing(parent)) else { return true };
        let ExistingDirectory { directory, real, tree } = &*existing;
        let Ok(inside) = path.strip_prefix(directory) else { return true };
        // The tree resolves each missing directory again.
        self.steps += (1 + inside.components().count()) * depth;
        // A path that is not a file, or has characters that no path on the board has, cannot be reserved.
        let inside = real.join(inside).to_str().and_then(|path| tree.path(path).ok());
        if let Some(inside) = inside.filter(|inside| inside != "**" && !inside.ends_with('/')) {
            let in_tree = files
                .trees
                .entry(tree.worktree.clone())
                .or_insert_with(|| InTree { repository: tree.repository.clone(), paths: Vec::new() });
            if in_tree.paths.last() != Some(&inside) {
                in_tree.paths.push(inside);
            }
        }
        true
    }

    /// The nearest existing directory: this one or a parent.
    fn existing(&mut self, directory: &Path) -> Option<Rc<ExistingDirectory>> {
        let mut missing = Vec::new();
        let mut found = None;
        for directory in directory.ancestors() {
            if let Some(known) = self.directories.get(directory) {
                found.clone_from(known);
                break;
            }
            self.steps += 1;
            missing.push(directory);
            if directory.is_dir() {
                found = self.look_at(directory).map(Rc::new);
                break;
            }
        }
        for directory in missing {
            self.directories.insert(directory.to_owned(), found.clone());
        }
        found
    }

    fn look_at(&mut self, directory: &Path) -> Option<ExistingDirectory> {
        let real = directory.canonicalize().ok()?;
        self.steps += 2 * real.components().count();
        let tree = location::tree(&self.context.request_in(Some(&real))).ok()?;
        Some(ExistingDirectory { directory: directory.to_owned(), real, tree })
    }
}
