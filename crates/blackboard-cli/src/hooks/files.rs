//! Which files a tool is about, and who else has them.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use blackboard::file::{Check, Edited, Other};
use blackboard::{Board, Result};

use super::call::Use;
use super::place;
use crate::context::Context;
use crate::location::{self, Tree};

/// How many files of a worktree one call is noted to have edited.
const MOST_NOTED: usize = 100;

/// How many files the board is asked about at once.
const AT_ONCE: usize = 1000;

/// The files of a call by the worktree that they are in, whichever that is.
pub struct Files(BTreeMap<String, InTree>);

/// Files of one worktree.
struct InTree {
    repository: String,
    /// Each from the root of the worktree on.
    paths: Vec<String>,
}

impl Files {
    /// The files that a tool edits. Relative paths start at `base`.
    pub fn of(used: &Use, base: &Path, context: &Context) -> Files {
        let mut files = Files(BTreeMap::new());
        // Files of one directory are in one tree.
        let mut trees: HashMap<PathBuf, Option<(PathBuf, Tree)>> = HashMap::new();
        for path in &used.paths {
            let path = base.join(path);
            let Some(directory) = path.ancestors().skip(1).find(|directory| directory.is_dir()) else {
                continue;
            };
            let known = trees.entry(directory.to_owned()).or_insert_with(|| tree_of(directory, context));
            let Some((real, tree)) = known else { continue };
            let path = path.strip_prefix(directory).map(|inside| real.join(inside)).unwrap_or(path.clone());
            // What is no file, or has characters that no path on the board has, can't be held by anybody.
            let inside = path.to_str().and_then(|path| tree.path(path).ok());
            if let Some(inside) = inside.filter(|inside| inside != "**" && !inside.ends_with('/')) {
                let InTree { paths, .. } = files
                    .0
                    .entry(tree.worktree.clone())
                    .or_insert_with(|| InTree { repository: tree.repository.clone(), paths: Vec::new() });
                paths.push(inside);
            }
        }
        files
    }

    /// Who else has any of them.
    pub fn others(&self, board: &Board, session: &str) -> Result<Vec<Other>> {
        let mut others = Vec::new();
        for (worktree, InTree { repository, paths }) in &self.0 {
            for some in paths.chunks(AT_ONCE) {
                others.extend(board.files().who_else(&Check {
                    session: Some(session.to_owned()),
                    repository: repository.clone(),
                    worktree: worktree.clone(),
                    paths: some.to_vec(),
                })?);
            }
        }
        Ok(others)
    }

    /// Those that are wanted as edited with a tool, by their worktree.
    pub fn edited(&self, tool: Option<&str>, wanted: impl Fn(&str) -> bool) -> Vec<Edited> {
        let edited = self.0.iter().map(|(worktree, tree)| Edited {
            worktree: worktree.clone(),
            paths: tree.paths.iter().filter(|path| wanted(path)).take(MOST_NOTED).cloned().collect(),
            tool: tool.map(str::to_owned),
            denied: false,
        });
        edited.filter(|edited| !edited.paths.is_empty()).collect()
    }
}

/// The tree around a directory, and what the directory is called there: everybody else finds the tree from a working
/// directory, which never goes through a link.
fn tree_of(directory: &Path, context: &Context) -> Option<(PathBuf, Tree)> {
    let real = directory.canonicalize().ok()?;
    let tree = location::tree(&place::request(context, Some(&real))).ok()?;
    Some((real, tree))
}
