//! What a spoke reports: the files in `.collab/` as others wrote them.
//!
//! A status that is not valid is not shown at all: a reader could not know which of its fields to believe. A manifest or an
//! operator that is not valid is a problem which is reported.

use std::time::Duration;

use blackboard::clock::Timestamp;
use serde::Serialize;

use super::folder::Collab;
use crate::spoke::manifest::Reflexes;
use crate::spoke::{Checked, Manifest, OperatorFile, Phase, StatusFile, manifest, operator, status};
use crate::yaml::YamlError;

/// From this age on, a status is stale.
const STALE: Duration = Duration::from_hours(24 * 7);

/// How far the clock of another machine may be ahead.
const AHEAD: Duration = Duration::from_hours(24);

/// What a spoke says about itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// Its status, if it is valid.
    pub status: Option<StatusFile>,
    /// Its manifest, if it is valid.
    pub manifest: Option<Manifest>,
    /// Its operator, if the file is valid.
    pub operator: Option<OperatorFile>,
    /// What is wrong with its files.
    pub problems: Vec<String>,
}

impl Report {
    /// Reads the files of a spoke.
    pub fn read(collab: &Collab, now: Timestamp) -> Report {
        let mut report = Report { problems: collab.problem.iter().cloned().collect(), ..Report::default() };
        report.status = report.file(collab, status::FILE, |text| {
            let mut checked = StatusFile::check(text);
            // It would never become stale.
            if checked
                .value
                .as_ref()
                .and_then(|status| status.generated_at)
                .is_some_and(|moment| moment.since(now) > AHEAD)
            {
                checked.errors.push(YamlError::new(0, 0, "generatedAt: is in the future"));
            }
            checked
        });
        report.manifest = report.file(collab, manifest::FILE, Manifest::check);
        report.operator = report.file(collab, operator::FILE, OperatorFile::check);
        if collab.problem.is_none() && !collab.files.contains_key(status::FILE) {
            report.problems.push(format!("it has no {}", status::FILE));
        }
        report
    }

    /// The content of a file that exists and is valid.
    fn file<T>(&mut self, collab: &Collab, name: &str, check: impl FnOnce(&str) -> Checked<T>) -> Option<T> {
        match collab.files.get(name)? {
            Ok(text) => {
                let Checked { value, errors, .. } = check(text);
                let is_valid = errors.is_empty();
                self.problems.extend(errors.into_iter().map(|error| format!("{name}: {error}")));
                value.filter(|_| is_valid)
            }
            Err(problem) => {
                self.problems.push(format!("{name} {problem}"));
                None
            }
        }
    }

    /// Whether the status is old. One that is missing or not valid has no age and is not stale.
    pub fn is_stale(&self, now: Timestamp) -> bool {
        self.status
            .as_ref()
            .and_then(|status| status.generated_at)
            .is_some_and(|moment| now.since(moment) > STALE)
    }

    /// The last sign of life: of an agent, of a commit, or of the status itself.
    pub fn last_activity(&self) -> Option<Timestamp> {
        let status = self.status.as_ref()?;
        let agents = status.agent_activity.as_ref().and_then(|activity| activity.last_activity);
        let commit = || status.git.as_ref()?.last_commit.as_deref()?.parse().ok();
        agents.or_else(commit).or(status.generated_at)
    }
}

/// The fields that the JSON of other hub programs has for a spoke, and the complete files.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Fields<'a> {
    phase: Option<&'a str>,
    project_phase: Option<&'a str>,
    tests: Option<Tests>,
    dirty: bool,
    behind_remote: u64,
    last_commit: Option<&'a str>,
    generated_at: Option<Timestamp>,
    last_activity: Option<Timestamp>,
    license: Option<&'a str>,
    reflexes: Option<Reflexes>,
    status: Option<&'a StatusFile>,
    operator: Option<&'a OperatorFile>,
    problems: &'a [String],
}

#[derive(Serialize)]
struct Tests {
    passing: u64,
    failing: u64,
}

impl Serialize for Report {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (status, manifest) = (self.status.as_ref(), self.manifest.as_ref());
        let git = status.and_then(|status| status.git.as_ref());
        let tests = status.and_then(|status| status.tests.as_ref());
        let fields = Fields {
            phase: status.and_then(|status| status.phase).map(Phase::word),
            project_phase: status.and_then(|status| status.phase).map(Phase::hub_word),
            tests: tests.map(|tests| Tests { passing: tests.passing, failing: tests.failing }),
            dirty: git.is_some_and(|git| git.dirty),
            behind_remote: git.map_or(0, |git| git.behind_remote),
            last_commit: git.and_then(|git| git.last_commit.as_deref()),
            generated_at: status.and_then(|status| status.generated_at),
            last_activity: self.last_activity(),
            license: manifest.map(|manifest| manifest.license.as_str()),
            reflexes: manifest.and_then(|manifest| manifest.security.as_ref()?.reflexes),
            status,
            operator: self.operator.as_ref(),
            problems: &self.problems,
        };
        fields.serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: &str = "2026-02-03T17:00:00Z";

    /// The sample of the first design.
    const OF_A_BOARD: &str = r#"schemaVersion: "1.0"
generatedAt: "2026-02-03T16:00:00Z"
project: {name: "pai-collab", phase: "building"}
agentActivity:
  activeAgents: 2
  lastActivity: "2026-02-03T15:58:00Z"
  currentWork:
    - {agent: "Ivy", task: "Designing the board", project: "pai-collab"}
git: {branch: "main", lastCommit: "abc1234", uncommittedChanges: true}
tests: {passing: 380, failing: 0, coverage: "87%"}
"#;

    /// What the protocol requires.
    const OF_THE_PROTOCOL: &str = "schemaVersion: '1.0'
generatedAt: 2026-01-20T16:00:00+01:00
generatedBy: hive-spoke 0.1
phase: harden
tests: {passing: 17, failing: 1}
git: {branch: main, lastCommit: 2026-02-03T12:00:00Z, dirty: false, behindRemote: 2}
";

    fn read(name: &str, text: &str) -> Report {
        let files = [(name.to_owned(), Ok(text.to_owned()))].into();
        Report::read(&Collab { problem: None, files }, NOW.parse().unwrap())
    }

    #[test]
    fn both_forms_of_a_status_are_read() {
        let now = NOW.parse().unwrap();
        let board = read("status.yaml", OF_A_BOARD);
        assert_eq!((board.problems.len(), board.is_stale(now)), (0, false));
        assert_eq!(board.last_activity(), "2026-02-03T15:58:00Z".parse().ok());
        let json = serde_json::to_value(&board).unwrap();
        assert_eq!((&json["phase"], &json["projectPhase"]), (&"build".into(), &"building".into()));
        assert_eq!(
            (&json["dirty"], &json["status"]["agentActivity"]["activeAgents"]),
            (&true.into(), &2.into())
        );
        let protocol = read("status.yaml", OF_THE_PROTOCOL);
        assert_eq!((protocol.problems.len(), protocol.is_stale(now)), (0, true));
        assert_eq!(protocol.last_activity(), "2026-02-03T12:00:00Z".parse().ok());
        assert_eq!(serde_json::to_value(&protocol).unwrap()["behindRemote"], 2);
    }

    #[test]
    fn a_status_that_is_not_valid_is_not_shown() {
        testkit::limit_test();
        let future = OF_A_BOARD.replace("2026-02-03T16", "2999-02-03T16");
        let negative = OF_A_BOARD.replace("380", "-1");
        for (text, problem) in [
            (future.as_str(), "status.yaml: generatedAt: is in the future"),
            (negative.as_str(), "status.yaml: line 10, column 18: tests.passing"),
            ("phase: [", "status.yaml: line"),
            ("", "status.yaml: line"),
        ] {
            let report = read("status.yaml", text);
            assert_eq!((&report.status, report.is_stale(NOW.parse().unwrap())), (&None, false), "{text}");
            assert!(report.problems[0].starts_with(problem), "{:?}", report.problems);
        }
        assert_eq!(read("other.yaml", "a").problems, ["it has no status.yaml"]);
    }
}
