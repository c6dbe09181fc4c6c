//! What a spoke reports: `.collab/status.yaml` and `.collab/manifest.yaml` as others wrote them.
//!
//! Both schemas are accepted: that of the protocol (`phase` at the top) and that of a board (`project.phase`, agent activity).
//! What does not match either is a problem, which makes the spoke broken; the rest of the file is still shown.

use std::time::Duration;

use blackboard::clock::Timestamp;
use serde::Serialize;

use super::folder::Collab;
use crate::yaml::{self, Node};

/// From this age on, a status is stale.
pub const STALE: Duration = Duration::from_hours(24 * 7);

/// How far the clock of another machine may be ahead.
const AHEAD: Duration = Duration::from_hours(24);

/// How many entries of a list are kept, and how many characters of a text.
const MOST: usize = 100;
const LONGEST: usize = 500;

/// The phases of the protocol, and the words of a hub for them.
const PHASES: [(&str, &str); 7] = [
    ("specify", "proposed"),
    ("build", "building"),
    ("harden", "hardening"),
    ("contrib-prep", "contrib-prep"),
    ("review", "review"),
    ("shipped", "shipped"),
    ("evolving", "evolving"),
];

/// What a spoke says about itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// The name of the project in its manifest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub manifest_project: Option<String>,
    /// The handle of the maintainer in its manifest.
    #[serde(skip)]
    pub maintainer: Option<String>,
    /// The license.
    pub license: Option<String>,
    /// The phase, in the words of the protocol.
    pub phase: Option<String>,
    /// The same in the words of a hub.
    pub project_phase: Option<String>,
    /// Its tests.
    pub tests: Option<Tests>,
    /// Its branch.
    pub branch: Option<String>,
    /// Whether there are uncommitted changes.
    pub dirty: bool,
    /// How many commits its branch lacks.
    pub behind_remote: u64,
    /// When the last commit was made, or its id.
    pub last_commit: Option<String>,
    /// The id of the last commit.
    pub commit: Option<String>,
    /// When the status was written.
    pub generated_at: Option<Timestamp>,
    /// By which program.
    pub generated_by: Option<String>,
    /// What its agents do; `None` if the status has no agent data.
    pub agent_activity: Option<Activity>,
    /// What was done recently.
    pub recent_progress: Vec<String>,
    /// Its safeguards.
    pub reflexes: Reflexes,
    /// Its operator, if it has `operator.yaml`.
    pub operator: Option<Operator>,
    /// What is wrong with its files.
    pub problems: Vec<String>,
}

/// Results of tests.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Tests {
    /// How many pass.
    pub passing: u64,
    /// How many fail.
    pub failing: u64,
    /// The coverage, as it is written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub coverage: Option<String>,
}

/// What agents do.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Activity {
    /// How many are active.
    pub active_agents: u64,
    /// When one of them was last active.
    pub last_activity: Option<Timestamp>,
    /// How many work items are claimed.
    pub claimed_items: u64,
    /// What each of them works on.
    pub current_work: Vec<Work>,
}

/// What an agent works on.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Work {
    /// Its name.
    pub agent: Option<String>,
    /// The task.
    pub task: Option<String>,
    /// The project.
    pub project: Option<String>,
}

/// The safeguards of a spoke, as its manifest claims.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::struct_excessive_bools, reason = "the manifest has four booleans")]
pub struct Reflexes {
    signing: bool,
    secret_scanning: bool,
    sandbox_enforcer: bool,
    content_filter: bool,
}

/// The operator of a spoke.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Operator {
    /// The handle.
    pub handle: String,
    /// The name.
    pub name: Option<String>,
    /// open, busy or offline.
    pub availability: Option<String>,
    /// What the operator can do.
    pub skills: Vec<String>,
}

impl Report {
    /// Reads the files of a spoke.
    pub fn read(collab: &Collab, now: Timestamp) -> Report {
        let mut report = Report::default();
        report.problems.extend(collab.problem.clone());
        if let Some(root) = report.root(collab, "manifest.yaml") {
            File { name: "manifest.yaml", report: &mut report }.manifest(&root);
        }
        if let Some(root) = report.root(collab, "operator.yaml") {
            File { name: "operator.yaml", report: &mut report }.operator(&root);
        }
        if let Some(root) = report.root(collab, "status.yaml") {
            File { name: "status.yaml", report: &mut report }.status(&root, now);
        } else if report.problems.is_empty() {
            report.problems.push("it has no status.yaml".to_owned());
        }
        report
    }

    /// Whether the status is old, or has no age.
    pub fn is_stale(&self, now: Timestamp) -> bool {
        self.generated_at.is_none_or(|moment| now.since(moment) > STALE)
    }

    /// The last sign of life: of an agent, of a commit, or of the status itself.
    pub fn last_activity(&self) -> Option<Timestamp> {
        let agents = self.agent_activity.as_ref().and_then(|activity| activity.last_activity);
        let commit = || self.last_commit.as_deref().and_then(|text| text.parse().ok());
        agents.or_else(commit).or(self.generated_at)
    }

    fn root(&mut self, collab: &Collab, file: &str) -> Option<Node> {
        let root = match collab.files.get(file)? {
            Ok(text) => yaml::tree(text).map_err(|error| format!("{file}: {error}")),
            Err(problem) => Err(format!("{file} {problem}")),
        };
        match root {
            Ok(root) if root.is_map() => return Some(root),
            Ok(root) => {
                let error = root.error(&format!("a mapping is expected, not {}", root.kind()));
                self.problems.push(format!("{file}: {error}"));
            }
            Err(problem) => self.problems.push(problem),
        }
        None
    }
}

/// A file while it is read.
struct File<'a> {
    name: &'static str,
    report: &'a mut Report,
}

impl File<'_> {
    fn problem(&mut self, node: &Node, message: &str) {
        if self.report.problems.len() < MOST {
            self.report.problems.push(format!("{}: {}", self.name, node.error(message)));
        }
    }

    /// The value of a key that is present and not null, as `read` understands it; else it is a problem.
    fn value<T>(
        &mut self,
        node: &Node,
        key: &str,
        expected: &str,
        read: impl FnOnce(&Node) -> Option<T>,
    ) -> Option<T> {
        let value = node.get(key).filter(|value| !value.is_null())?;
        let read = read(value);
        if read.is_none() {
            self.problem(value, &format!("{key} has to be {expected}"));
        }
        read
    }

    fn text(&mut self, node: &Node, key: &str) -> Option<String> {
        self.value(node, key, "text", |value| value.text().map(bounded))
    }

    fn count(&mut self, node: &Node, key: &str) -> Option<u64> {
        self.value(node, key, "a number that is not negative", Node::count)
    }

    fn boolean(&mut self, node: &Node, key: &str) -> Option<bool> {
        self.value(node, key, "true or false", Node::boolean)
    }

    fn time(&mut self, node: &Node, key: &str) -> Option<Timestamp> {
        self.value(node, key, "a time with a zone", |value| value.text()?.parse().ok())
    }

    /// The texts of a list.
    fn texts(&mut self, node: &Node, key: &str) -> Vec<String> {
        let read = |value: &Node| {
            let items = value.items()?.iter().take(MOST);
            items.map(|item| item.text().map(bounded)).collect()
        };
        self.value(node, key, "a list of texts", read).unwrap_or_default()
    }

    /// Refuses a later version, whose fields may mean something else.
    fn version(&mut self, root: &Node) {
        match root.get("schemaVersion").map(|version| (version, version.text())) {
            Some((_, Some(text))) if text == "1" || text.starts_with("1.") => {}
            Some((version, _)) => self.problem(version, "schemaVersion has to be \"1.0\""),
            None => self.problem(root, "schemaVersion is missing"),
        }
    }

    fn manifest(&mut self, root: &Node) {
        self.version(root);
        self.report.manifest_project = self.text(root, "project");
        self.report.maintainer = self.text(root, "maintainer");
        self.report.license = self.text(root, "license");
        if let Some(reflexes) = root.get("security").and_then(|security| security.get("reflexes")) {
            let mut claims = |key| self.boolean(reflexes, key).unwrap_or_default();
            let reflexes = Reflexes {
                signing: claims("signing"),
                secret_scanning: claims("secretScanning"),
                sandbox_enforcer: claims("sandboxEnforcer"),
                content_filter: claims("contentFilter"),
            };
            self.report.reflexes = reflexes;
        }
    }

    fn operator(&mut self, root: &Node) {
        self.version(root);
        let Some(handle) = self.text(root, "handle") else {
            return self.problem(root, "handle is missing");
        };
        let operator = Operator {
            handle: super::registry::handle(&handle),
            name: self.text(root, "name"),
            availability: self.text(root, "availability"),
            skills: self.texts(root, "skills"),
        };
        self.report.operator = Some(operator);
    }

    fn status(&mut self, root: &Node, now: Timestamp) {
        self.version(root);
        self.report.generated_by = self.text(root, "generatedBy");
        self.report.generated_at = self.time(root, "generatedAt");
        match (root.get("generatedAt"), self.report.generated_at) {
            (None, _) => self.problem(root, "generatedAt is missing"),
            // It would never become stale.
            (Some(node), Some(moment)) if moment.since(now) > AHEAD => {
                self.report.generated_at = None;
                self.problem(node, "generatedAt is in the future");
            }
            _ => {}
        }
        self.phase(root);
        if let Some(tests) = root.get("tests").filter(|tests| !tests.is_null()) {
            let passing = self.count(tests, "passing").unwrap_or_default();
            let failing = self.count(tests, "failing").unwrap_or_default();
            let coverage = self.text(tests, "coverage");
            self.report.tests = Some(Tests { passing, failing, coverage });
        }
        if let Some(git) = root.get("git") {
            self.report.branch = self.text(git, "branch");
            self.report.last_commit = self.text(git, "lastCommit");
            self.report.commit = self.text(git, "commit");
            let dirty = self.boolean(git, "dirty");
            let uncommitted = self.boolean(git, "uncommittedChanges");
            self.report.dirty = dirty.or(uncommitted).unwrap_or_default();
            self.report.behind_remote = self.count(git, "behindRemote").unwrap_or_default();
        }
        if let Some(activity) = root.get("agentActivity").filter(|activity| activity.is_map()) {
            let activity = self.activity(activity);
            self.report.agent_activity = Some(activity);
        }
        self.report.recent_progress = self.texts(root, "recentProgress");
    }

    /// Either word becomes both.
    fn phase(&mut self, root: &Node) {
        let own = self.text(root, "phase");
        let of_project = root.get("project").and_then(|project| self.text(project, "phase"));
        if let Some(phase) = &own
            && !PHASES.iter().any(|(word, _)| word == phase)
            && let Some(node) = root.get("phase")
        {
            self.problem(node, "phase is no phase of the protocol");
        }
        if own.is_none() && of_project.is_none() {
            self.problem(root, "phase is missing");
        }
        let of_hub =
            |own: &String| PHASES.iter().find(|(word, _)| word == own).map(|(_, hub)| (*hub).to_owned());
        let of_protocol =
            |hub: &String| PHASES.iter().find(|(_, word)| word == hub).map(|(own, _)| (*own).to_owned());
        self.report.project_phase =
            of_project.clone().or_else(|| own.as_ref().map(|own| of_hub(own).unwrap_or_else(|| own.clone())));
        self.report.phase = own.or_else(|| of_project.as_ref().and_then(of_protocol));
    }

    fn activity(&mut self, node: &Node) -> Activity {
        let claimed = |value: &Node| value.count().or_else(|| Some(value.items()?.len() as u64));
        Activity {
            active_agents: self.count(node, "activeAgents").unwrap_or_default(),
            last_activity: self.time(node, "lastActivity"),
            claimed_items: self
                .value(node, "claimedItems", "a number or a list", claimed)
                .unwrap_or_default(),
            current_work: {
                let items = self.value(node, "currentWork", "a list", |value| {
                    Some(value.items()?.iter().take(MOST).cloned().collect::<Vec<_>>())
                });
                let items = items.unwrap_or_default();
                items.iter().map(|item| self.work(item)).collect()
            },
        }
    }

    fn work(&mut self, node: &Node) -> Work {
        Work {
            agent: self.text(node, "agent"),
            task: self.text(node, "task"),
            project: self.text(node, "project"),
        }
    }
}

/// The beginning of a long text.
fn bounded(text: &str) -> String {
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: &str = "2026-02-03T17:00:00Z";

    /// The sample of the specification of boards.
    const OF_A_BOARD: &str = r#"schemaVersion: "1.0"
generatedAt: "2026-02-03T16:00:00Z"
project:
  name: "pai-collab"
  phase: "building"
agentActivity:
  activeAgents: 2
  lastActivity: "2026-02-03T15:58:00Z"
  currentWork:
    - agent: "Ivy"
      task: "Designing local blackboard architecture"
      project: "pai-collab"
recentProgress:
  - "SQL schema designed"
git:
  branch: "main"
  lastCommit: "abc1234"
  uncommittedChanges: true
tests:
  passing: 380
  failing: 0
  coverage: "87%"
"#;

    /// What the protocol requires.
    const OF_THE_PROTOCOL: &str = "schemaVersion: '1.0'
generatedAt: 2026-01-20T16:00:00+01:00
generatedBy: hive-spoke 0.1
phase: harden
tests: {passing: 17, failing: 1}
git: {branch: main, lastCommit: 2026-02-03T12:00:00Z, dirty: false, behindRemote: 2}
";

    fn read(status: &str) -> Report {
        let files = [("status.yaml".to_owned(), Ok(status.to_owned()))].into();
        Report::read(&Collab { problem: None, files }, NOW.parse().unwrap())
    }

    #[test]
    fn both_schemas_are_read() {
        let (board, now) = (read(OF_A_BOARD), NOW.parse().unwrap());
        assert_eq!(board.problems, Vec::<String>::new());
        assert_eq!(
            (board.phase.as_deref(), board.project_phase.as_deref()),
            (Some("build"), Some("building"))
        );
        assert_eq!(board.last_activity(), "2026-02-03T15:58:00Z".parse().ok());
        assert!(board.dirty && !board.is_stale(now));
        let activity = board.agent_activity.unwrap();
        assert_eq!((activity.active_agents, activity.current_work.len()), (2, 1));
        let protocol = read(OF_THE_PROTOCOL);
        assert_eq!(protocol.problems, Vec::<String>::new());
        assert_eq!(protocol.project_phase.as_deref(), Some("hardening"));
        assert_eq!(protocol.last_activity(), "2026-02-03T12:00:00Z".parse().ok());
        assert_eq!((protocol.behind_remote, protocol.dirty), (2, false));
        assert!(protocol.is_stale(now));
    }

    #[test]
    fn every_mistake_is_reported_and_the_rest_is_kept() {
        testkit::limit_test();
        let report =
            read("schemaVersion: 2\ngeneratedAt: yesterday\nphase: done\ntests: {passing: -1, failing: 2}\n");
        assert_eq!(
            report.problems,
            [
                "status.yaml: line 1, column 16: schemaVersion has to be \"1.0\"",
                "status.yaml: line 2, column 14: generatedAt has to be a time with a zone",
                "status.yaml: line 3, column 8: phase is no phase of the protocol",
                "status.yaml: line 4, column 18: passing has to be a number that is not negative",
            ]
        );
        assert_eq!(report.tests.map(|tests| tests.failing), Some(2));
        for (status, problem) in [
            ("", "a mapping is expected"),
            ("[a]", "a mapping is expected"),
            ("phase: [", "line"),
            ("schemaVersion: '1.0'\ngeneratedAt: 2999-01-01T00:00:00Z\nphase: build", "in the future"),
            ("schemaVersion: '1.0'\ngeneratedAt: 2026-02-03T16:00:00Z", "phase is missing"),
            ("schemaVersion: '1.0'\nphase: build", "generatedAt is missing"),
        ] {
            let report = read(status);
            assert!(report.problems.iter().any(|each| each.contains(problem)), "{status}: {report:?}");
        }
    }

    #[test]
    fn long_texts_are_shortened() {
        let long = "x".repeat(10_000);
        let report = read(&format!("schemaVersion: '1.0'\ngeneratedBy: {long}\n"));
        assert_eq!(report.generated_by.map(|text| text.chars().count()), Some(LONGEST + 1));
    }
}
