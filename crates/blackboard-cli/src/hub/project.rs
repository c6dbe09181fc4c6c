//! A project of a hub: what `PROJECT.yaml` or a row of `REGISTRY.md` says about it.

use serde::Serialize;

use super::files::ProjectFiles;
use super::registry::{ProjectRow, handle};
use crate::yaml::{self, Node};

/// The words of a hub for the state of a project.
pub const STATUSES: [&str; 8] =
    ["proposed", "building", "hardening", "contrib-prep", "review", "shipped", "evolving", "archived"];

/// A project.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Project {
    /// Its directory in `projects/`, or its name in a registry without directories.
    pub id: String,
    /// Its name.
    pub name: String,
    /// The handle of its maintainer.
    pub maintainer: Option<String>,
    /// One of [`STATUSES`], or what else was written.
    pub status: Option<String>,
    /// Its license.
    pub license: Option<String>,
    /// Where the spoke is.
    pub source: Option<Source>,
    /// The handles of its contributors.
    pub contributors: Vec<String>,
    /// What is wrong with the file.
    #[serde(skip)]
    pub problems: Vec<String>,
}

/// The repository of a spoke, as a hub names it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Source {
    /// The repository.
    pub repo: String,
    /// The branch.
    pub branch: Option<String>,
}

impl Project {
    /// The project in this directory of a hub. What cannot be read becomes a problem.
    pub fn read(id: &str, files: &ProjectFiles) -> Project {
        let mut project = Project { id: id.to_owned(), name: id.to_owned(), ..Project::default() };
        let root = match &files.project {
            None => return project,
            Some(Err(problem)) => Err(format!("PROJECT.yaml {problem}")),
            Some(Ok(text)) => yaml::tree(text).map_err(|error| format!("PROJECT.yaml: {error}")),
        };
        match root {
            Ok(root) if root.is_map() => project.fill(&root),
            Ok(root) => {
                let error = root.error(&format!("a mapping is expected, not {}", root.kind()));
                project.problems.push(format!("PROJECT.yaml: {error}"));
            }
            Err(problem) => project.problems.push(problem),
        }
        project
    }

    fn fill(&mut self, root: &Node) {
        if let Some(name) = self.text(root, "name") {
            self.name = name;
        }
        self.maintainer = self.text(root, "maintainer").map(|text| handle(&text));
        self.status = self.text(root, "status");
        self.license = self.text(root, "license");
        if let Some(status) = self.status.clone().filter(|status| !STATUSES.contains(&status.as_str())) {
            self.problems.push(format!("PROJECT.yaml: {status} is not a status of a project"));
        }
        let contributors = root.get("contributors").map(Node::entries).unwrap_or_default();
        self.contributors = contributors.iter().map(|(key, _)| handle(&key.text)).collect();
        let Some(source) = root.get("source").filter(|source| !source.is_null()) else { return };
        // The short form: only the repository.
        let repo = source.text().map(str::to_owned).or_else(|| self.text(source, "repo"));
        let branch = self.text(source, "branch");
        self.source = repo.map(|repo| Source { repo, branch });
    }

    /// The text of a key, if it has one. Anything but a scalar is a problem.
    fn text(&mut self, node: &Node, key: &str) -> Option<String> {
        let value = node.get(key)?;
        if let Some(text) = value.text() {
            return Some(text.to_owned());
        }
        if !value.is_null() {
            let error = value.error(&format!("{key} has to be text, and is {}", value.kind()));
            self.problems.push(format!("PROJECT.yaml: {error}"));
        }
        None
    }

    /// The project of a row of `REGISTRY.md`.
    pub fn of_row(row: &ProjectRow) -> Project {
        let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        Project {
            id: row.directory.clone().unwrap_or_else(|| row.name.clone()),
            name: row.name.clone(),
            maintainer: some(&row.maintainer),
            status: some(&row.status),
            license: None,
            source: row.source.clone().map(|repo| Source { repo, branch: None }),
            contributors: row.contributors.clone(),
            problems: Vec::new(),
        }
    }

    /// Whether a row of `REGISTRY.md` is about this project.
    pub fn is_in(&self, row: &ProjectRow) -> bool {
        match &row.directory {
            Some(directory) => *directory == self.id,
            None => row.name.eq_ignore_ascii_case(&self.id) || row.name.eq_ignore_ascii_case(&self.name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Project {
        Project::read(
            "signal",
            &ProjectFiles { project: Some(Ok(text.to_owned())), ..ProjectFiles::default() },
        )
    }

    #[test]
    fn a_project_has_what_its_file_says() {
        let project = read(
            "name: Signal\nmaintainer: '@ivy'\nstatus: building\ncreated: 2026-02-07\nlicense: MIT\n\
             source:\n  repo: ivy/signal\n  branch: develop\ncontributors:\n  ivy: {zone: maintainer}\n  oak:\n",
        );
        let expected = Project {
            id: "signal".to_owned(),
            name: "Signal".to_owned(),
            maintainer: Some("ivy".to_owned()),
            status: Some("building".to_owned()),
            license: Some("MIT".to_owned()),
            source: Some(Source { repo: "ivy/signal".to_owned(), branch: Some("develop".to_owned()) }),
            contributors: vec!["ivy".to_owned(), "oak".to_owned()],
            problems: Vec::new(),
        };
        assert_eq!(project, expected);
        assert_eq!(
            read("source: ivy/signal").source.map(|source| source.repo).as_deref(),
            Some("ivy/signal")
        );
    }

    #[test]
    fn what_is_wrong_is_reported_with_its_line() {
        testkit::limit_test();
        for (text, problem) in [
            ("- a", "PROJECT.yaml: line 1, column 1: a mapping is expected, not a list"),
            ("name: [a]", "PROJECT.yaml: line 1, column 7: name has to be text, and is a list"),
            ("status: done", "PROJECT.yaml: done is not a status of a project"),
            (
                "source: {repo: {a: b}}",
                "PROJECT.yaml: line 1, column 16: repo has to be text, and is a mapping",
            ),
        ] {
            assert_eq!(read(text).problems, [problem], "{text}");
        }
        assert_eq!(read("name: {").problems.len(), 1);
        assert_eq!(read("").problems.len(), 1);
    }
}
