//! A hub and its spokes: real repositories, which are read through `file` URLs.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use blackboard::clock::{Clock as _, SystemClock, Timestamp};
use serde_json::Value;
use testkit::process::RunToEnd as _;
use testkit::repositories::make_repositories;

use crate::machine::can;
use crate::scratch::{Output, Scratch};

/// The directory of a hub with `projects/`, and next to it the repositories of its spokes.
pub struct TestHub {
    pub scratch: Scratch,
}

/// A file in a commit: its mode, path and content.
pub type Entry<'a> = (&'a str, &'a str, &'a [u8]);

/// The mode of a plain file, a link and another repository.
pub const FILE: &str = "100644";
pub const LINK: &str = "120000";
pub const SUBMODULE: &str = "160000";

/// The time this long ago, as a status has it.
pub fn ago(age: Duration) -> Timestamp {
    SystemClock.now().minus(age)
}

/// A status as a board exports it.
pub fn status_of_a_board(age: Duration, agents: u32, claimed: u32) -> String {
    let moment = ago(age);
    format!(
        "schemaVersion: '1.0'\ngeneratedAt: '{moment}'\ngeneratedBy: 'blackboard 0.1.0'\nphase: 'build'\n\
         project:\n  name: 'spoke'\n  phase: 'building'\n\
         agentActivity:\n  activeAgents: {agents}\n  lastActivity: '{moment}'\n  claimedItems: {claimed}\n\
         tests:\n  passing: 17\n  failing: 0\n\
         git:\n  branch: 'main'\n  lastCommit: '{moment}'\n  dirty: false\n  behindRemote: 0\n"
    )
}

/// A status as the first design has it, with further lines.
pub fn status_of_the_design(age: Duration, rest: &str) -> String {
    let moment = ago(age);
    format!("schemaVersion: '1.0'\ngeneratedAt: {moment}\nproject: {{name: spoke, phase: review}}\n{rest}")
}

impl TestHub {
    /// An empty hub, if git is installed.
    pub fn new(what_for: &str) -> Option<TestHub> {
        can(what_for, "git", &["--version"]).then(|| {
            let hub = TestHub { scratch: Scratch::new() };
            fs::create_dir_all(hub.directory().join("projects")).unwrap();
            fs::create_dir(hub.repositories()).unwrap();
            hub
        })
    }

    pub fn directory(&self) -> PathBuf {
        self.scratch.path().join("hub")
    }

    pub fn repositories(&self) -> PathBuf {
        self.scratch.path().join("repositories")
    }

    /// The URL of a repository, whether or not it exists.
    pub fn url(&self, name: &str) -> String {
        format!("file://{}", self.repositories().join(name).display())
    }

    /// Replaces the branch of a repository by one commit with these files, as a forced push does.
    pub fn commit(&self, name: &str, branch: &str, entries: &[Entry<'_>]) {
        let directory = self.repositories().join(name);
        let mut commit =
            format!("commit refs/heads/{branch}\ncommitter Ivy <ivy@example.org> 1700000000 +0000\ndata 0\n")
                .into_bytes();
        for (mode, path, content) in entries {
            if *mode == SUBMODULE {
                commit.extend(format!("M {mode} {} {path}\n", "1".repeat(40)).bytes());
            } else {
                commit.extend(format!("M {mode} inline {path}\ndata {}\n", content.len()).bytes());
                commit.extend(*content);
                commit.push(b'\n');
            }
        }
        let directory = directory.display();
        let line = format!(
            "git init -q --bare --template= -b main '{directory}' && \
             git -C '{directory}' config uploadpack.allowFilter true && \
             git -C '{directory}' fast-import --quiet --force"
        );
        Output::fed(&mut self.scratch.shell(&line), commit).success();
    }

    /// A spoke with this status in a repository of its own, and its project in the hub.
    pub fn spoke(&self, name: &str, status: &str) {
        self.commit(name, "main", &[(FILE, ".collab/status.yaml", status.as_bytes())]);
        self.project(name, &format!("source:\n  repo: {}\n", self.url(name)));
    }

    /// Repositories `spoke-0`, `spoke-1` … with their projects. The status of each has its number as the number of its agents.
    pub fn spokes(&self, count: u32) {
        let status = |index| status_of_a_board(Duration::from_mins(1), index, 0);
        let spokes: Vec<_> = (0..count).map(|index| (format!("spoke-{index}"), status(index))).collect();
        make_repositories(&self.repositories(), ".collab/status.yaml", &spokes);
        for (name, _) in &spokes {
            self.project(name, &format!("source:\n  repo: {}\n", self.url(name)));
        }
    }

    /// A project in the hub, with further lines of `PROJECT.yaml`.
    pub fn project(&self, name: &str, rest: &str) {
        let text = format!(
            "name: {name}\nmaintainer: ivy\nstatus: building\ncreated: 2026-02-07\nlicense: MIT\n\
             contributors:\n  ivy: {{zone: maintainer, since: 2026-02-07}}\n{rest}"
        );
        self.write(&format!("projects/{name}/PROJECT.yaml"), text.as_bytes());
    }

    /// A file of the hub.
    pub fn write(&self, path: &str, content: &[u8]) {
        let file = self.directory().join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, content).unwrap();
    }

    /// `REGISTRY.md` with these rows of projects.
    pub fn registry(&self, rows: &[&str]) {
        let mut text = String::from(
            "# Registry\n\n## Active Projects\n\n| Project | Maintainer | Status | Source | Contributors |\n\
             |---|---|---|---|---|\n",
        );
        for row in rows {
            writeln!(text, "{row}").unwrap();
        }
        text.push_str(
            "\n## Agent Registry\n\n| Agent | Operator | Platform | Skills | Availability | Current Work |\n\
             |---|---|---|---|---|---|\n| Luna | @oak | CLI | Rust, SQL | open | [signal](projects/signal/) |\n",
        );
        self.write("REGISTRY.md", text.as_bytes());
    }

    /// The arguments of a call that reads the hub.
    pub fn arguments(&self, words: &[&str]) -> Vec<String> {
        let (hub, repositories) = (self.directory(), self.repositories());
        let options = ["--hub", hub.to_str().unwrap(), "--allow-path", repositories.to_str().unwrap()];
        words.iter().chain(&options).map(|word| (*word).to_owned()).collect()
    }

    /// A call that reads the hub.
    #[track_caller]
    pub fn run(&self, words: &[&str]) -> Output {
        Output::of(self.scratch.command(self.arguments(words)).run_to_end())
    }

    /// The JSON of a call that reads the hub and succeeds.
    #[track_caller]
    pub fn json(&self, words: &[&str]) -> Value {
        self.scratch.json(self.arguments(words))
    }
}

/// The health of every project.
pub fn health(answer: &Value) -> BTreeMap<String, String> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let spokes = answer["spokes"].as_array().unwrap().iter();
    let mut health: BTreeMap<_, _> =
        spokes.map(|spoke| (text(&spoke["project"]), text(&spoke["health"]))).collect();
    for (field, word) in [("withoutSource", "no_source"), ("withoutCollab", "no_collab")] {
        for project in answer[field].as_array().unwrap() {
            health.insert(text(project), word.to_owned());
        }
    }
    health
}

/// A spoke by its project.
pub fn spoke<'a>(answer: &'a Value, project: &str) -> &'a Value {
    let spokes = answer["spokes"].as_array().unwrap();
    spokes.iter().find(|spoke| spoke["project"] == project).unwrap_or_else(|| panic!("{project}: {answer}"))
}

/// The problems of a spoke, as one text.
pub fn problems(answer: &Value, project: &str) -> String {
    let problems = spoke(answer, project)["problems"].as_array().unwrap();
    problems.iter().map(|problem| problem.as_str().unwrap()).collect::<Vec<_>>().join("; ")
}
