//! Compares `REGISTRY.md` with the files `PROJECT.yaml`, which are authoritative.

use std::collections::BTreeSet;

use serde::Serialize;

use super::address::{Address, Paths, USUAL_HOST};
use super::project::Project;
use super::registry::{ProjectRow, Registry};

/// A difference.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Difference {
    /// The project, by its directory or its name in the registry.
    pub project: String,
    /// What differs: `project`, `maintainer`, `status`, `source` or `contributors`.
    pub field: &'static str,
    /// What `REGISTRY.md` has.
    pub registry: Option<String>,
    /// What `PROJECT.yaml` has.
    pub file: Option<String>,
}

/// Every difference, in the order of the projects, then of the rows without one.
pub fn differences(registry: &Registry, projects: &[Project]) -> Vec<Difference> {
    let rows = registry.projects.as_deref().unwrap_or_default();
    let mut differences = Vec::new();
    for project in projects {
        match rows.iter().find(|row| project.is_in(row)) {
            Some(row) => compare(row, project, &mut differences),
            // What is archived is not active.
            None if project.status.as_deref() == Some("archived") => {}
            None => differences.push(Difference {
                project: project.id.clone(),
                field: "project",
                registry: None,
                file: Some(project.id.clone()),
            }),
        }
    }
    for row in rows.iter().filter(|row| !projects.iter().any(|project| project.is_in(row))) {
        differences.push(Difference {
            project: row.name.clone(),
            field: "project",
            registry: Some(row.name.clone()),
            file: None,
        });
    }
    differences
}

fn compare(row: &ProjectRow, project: &Project, differences: &mut Vec<Difference>) {
    let mut add = |field, registry: Option<String>, file: Option<String>| {
        if registry != file {
            differences.push(Difference { project: project.id.clone(), field, registry, file });
        }
    };
    let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    add("maintainer", some(&row.maintainer), project.maintainer.clone());
    add("status", some(&row.status), project.status.clone());
    // A cell that links to PROJECT.yaml names no repository.
    if let Some(source) = &row.source {
        let own = project.source.as_ref().map(|source| source.repo.clone());
        if own.as_deref().map(normalized) != Some(normalized(source)) {
            add("source", Some(source.clone()), own);
        }
    }
    // The maintainer need not be listed as a contributor.
    let without_maintainer = |handles: &[String]| -> BTreeSet<String> {
        let is_other = |handle: &&String| Some(*handle) != project.maintainer.as_ref();
        handles.iter().filter(is_other).cloned().collect()
    };
    let list = |handles: BTreeSet<String>| some(&handles.into_iter().collect::<Vec<_>>().join(", "));
    add(
        "contributors",
        list(without_maintainer(&row.contributors)),
        list(without_maintainer(&project.contributors)),
    );
}

/// The same for all ways to write the address of a repository.
fn normalized(repo: &str) -> String {
    let address = Address::parse(repo, USUAL_HOST, Paths::Any);
    let short = address.ok().and_then(|address| address.repository());
    short.unwrap_or_else(|| repo.to_owned()).to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::super::project::Source;
    use super::*;

    fn project(id: &str) -> Project {
        Project {
            id: id.to_owned(),
            name: id.to_uppercase(),
            maintainer: Some("ivy".to_owned()),
            status: Some("building".to_owned()),
            source: Some(Source { repo: "ivy/a".to_owned(), branch: None }),
            contributors: vec!["ivy".to_owned(), "oak".to_owned()],
            ..Project::default()
        }
    }

    fn found(row: &str, project: &Project) -> Vec<(&'static str, Option<String>, Option<String>)> {
        let table = "| Project | Maintainer | Status | Source | Contributors |\n|-|-|-|-|-|\n";
        let registry = Registry::parse(&format!("## Active Projects\n{table}{row}\n"));
        let found = differences(&registry, std::slice::from_ref(project)).into_iter();
        found.map(|difference| (difference.field, difference.registry, difference.file)).collect()
    }

    #[test]
    fn every_field_is_compared() {
        testkit::limit_test();
        let project = project("a");
        let text = |text: &str| Some(text.to_owned());
        for same in [
            "| a | @ivy | building | [PROJECT.yaml](projects/a/PROJECT.yaml) | @oak (review) |",
            "| A | ivy | Building | https://github.com/ivy/a.git | @ivy, @oak, more wanted |",
        ] {
            assert_eq!(found(same, &project), [], "{same}");
        }
        for (row, expected) in [
            ("| a | @elm | building | ivy/a | @oak |", ("maintainer", text("elm"), text("ivy"))),
            ("| a | @ivy | | ivy/a | @oak |", ("status", None, text("building"))),
            ("| a | @ivy | building | ivy/b | @oak |", ("source", text("ivy/b"), text("ivy/a"))),
            ("| a | @ivy | building | ivy/a | @elm |", ("contributors", text("elm"), text("oak"))),
            ("", ("project", None, text("a"))),
        ] {
            assert_eq!(found(row, &project), [expected], "{row}");
        }
        let other = "| a | @ivy | building | ivy/a | @oak |\n| b | @ivy | building | | |";
        assert_eq!(found(other, &project), [("project", text("b"), None)]);
        let archived = Project { status: text("archived"), ..project };
        assert_eq!(found("", &archived), []);
    }
}
