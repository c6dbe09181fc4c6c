//! Reads the spokes of a hub, many at a time.

use std::io::{self, Write};
use std::num::NonZero;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::thread;

use blackboard::clock::Timestamp;
use serde::Serialize;

use super::cache::{Cache, Reading};
use super::find::{Candidate, Hub, Origin};
use super::folder::Collab;
use super::project::Project;
use super::spoke::Report;

/// How many remotes are read at once for each core: most of the time they wait for a server.
const PER_CORE: usize = 4;

/// The most remotes that are read at once: servers refuse more connections of one user.
const MOST_WORKERS: usize = 16;

/// How many bytes all spokes together may report, as JSON: they stay in memory until they are printed.
const MOST_REPORTED: u64 = 64 * 1024 * 1024;

/// A spoke that was read, or a project that has none.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Spoke {
    /// Its name in tables: `owner/repo`, or the name of the project.
    #[serde(rename = "spoke")]
    pub name: String,
    /// The project, by the name of its directory in the hub.
    pub project: String,
    /// The repository, without a password.
    pub repo: Option<String>,
    /// The handle of the maintainer.
    pub maintainer: Option<String>,
    /// The status of the project in the hub.
    pub project_status: Option<String>,
    /// Where it was read.
    pub source: SpokeSource,
    /// Its health.
    pub health: Health,
    /// Whether its status is more than 7 days old.
    pub stale: bool,
    /// When a spoke that could not be read now was read.
    pub cached_at: Option<Timestamp>,
    /// The commit that was read.
    pub read_commit: Option<String>,
    /// What it reports.
    #[serde(flatten)]
    pub report: Report,
}

/// Where a spoke was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SpokeSource {
    /// In the path of a project that is registered on this board.
    Local,
    /// In the hub.
    Hub,
    /// In its repository.
    Remote,
    /// Nowhere.
    None,
}

/// Whether a spoke can be relied on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Health {
    /// It was read, and its status is new.
    Fresh,
    /// Its status is old.
    Stale,
    /// Its repository could not be read now; the cache has an earlier state.
    Cached,
    /// Its files are not valid.
    Broken,
    /// It could not be read, now or before.
    Unreachable,
    /// Its repository has no `.collab/`.
    NoCollab,
    /// The hub does not say where it is.
    NoSource,
}

impl Health {
    /// Its name in human output.
    pub fn word(self) -> &'static str {
        match self {
            Health::Fresh => "fresh",
            Health::Stale => "stale",
            Health::Cached => "cached",
            Health::Broken => "broken",
            Health::Unreachable => "unreachable",
            Health::NoCollab => "no .collab/",
            Health::NoSource => "no source",
        }
    }

    /// Whether its files are valid.
    pub fn is_readable(self) -> bool {
        matches!(self, Health::Fresh | Health::Stale | Health::Cached)
    }

    /// The one that needs more attention.
    pub fn worst(self, other: Health) -> Health {
        let severity = |health| match health {
            Health::Fresh => 0,
            Health::Stale => 1,
            Health::Cached => 2,
            Health::Broken => 3,
            Health::Unreachable => 4,
            Health::NoCollab => 5,
            Health::NoSource => 6,
        };
        if severity(self) < severity(other) { other } else { self }
    }

    /// Whether there is something to show.
    pub fn is_spoke(self) -> bool {
        !matches!(self, Health::NoCollab | Health::NoSource)
    }
}

/// The spokes of a hub.
#[derive(Debug)]
pub struct Pulled {
    /// The hub.
    pub hub: Hub,
    /// All projects, in the order of their names.
    pub spokes: Vec<Spoke>,
}

/// Reads all of them. `progress` gets the number of spokes that were read so far.
pub fn read(
    candidates: &[Candidate],
    cache: &Cache,
    now: Timestamp,
    interrupted: &AtomicBool,
    progress: impl FnMut(usize),
) -> Vec<Spoke> {
    read_within(MOST_REPORTED, candidates, cache, now, interrupted, progress)
}

/// The same, of which at most `budget` bytes are kept.
fn read_within(
    budget: u64,
    candidates: &[Candidate],
    cache: &Cache,
    now: Timestamp,
    interrupted: &AtomicBool,
    mut progress: impl FnMut(usize),
) -> Vec<Spoke> {
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    let remotes =
        candidates.iter().filter(|candidate| matches!(candidate.origin, Origin::Remote(..))).count();
    let workers = (cores * PER_CORE).min(MOST_WORKERS).min(remotes).max(1);
    let next = AtomicUsize::new(0);
    let reported = AtomicU64::new(0);
    let (sender, received) = channel();
    let mut spokes = thread::scope(|scope| {
        for _ in 0..workers {
            let (sender, next, reported) = (sender.clone(), &next, &reported);
            scope.spawn(move || {
                while let Some(candidate) = candidates.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if interrupted.load(Ordering::Relaxed) {
                        break;
                    }
                    let mut spoke = Spoke::read(candidate, cache, now, interrupted);
                    let size = size_of(&spoke.report);
                    if reported.fetch_add(size, Ordering::Relaxed).saturating_add(size) > budget {
                        spoke.drop_report(budget);
                    }
                    // The receiver lives until the end of the scope.
                    let _ = sender.send(spoke);
                }
            });
        }
        drop(sender);
        let mut spokes = Vec::with_capacity(candidates.len());
        for spoke in received {
            spokes.push(spoke);
            progress(spokes.len());
        }
        spokes
    });
    spokes.sort_by(|one, other| (&one.name, &one.project).cmp(&(&other.name, &other.project)));
    spokes
}

impl Spoke {
    fn read(candidate: &Candidate, cache: &Cache, now: Timestamp, interrupted: &AtomicBool) -> Spoke {
        let project = &candidate.project;
        let mut spoke = Spoke::of(project);
        match &candidate.origin {
            Origin::Local(collab) => spoke.fill(SpokeSource::Local, collab, now),
            Origin::Hub(collab) => spoke.fill(SpokeSource::Hub, collab, now),
            Origin::Missing => spoke.health = Health::NoSource,
            Origin::Refused(problem) => spoke.fail(problem.clone()),
            Origin::Remote(address, branch) => {
                spoke.repo = Some(address.to_string());
                if let Some(short) = address.repository() {
                    spoke.name = short;
                }
                let reading: Reading<Collab> = cache.read(address, branch.as_deref(), interrupted);
                match reading.snapshot {
                    None => spoke.fail(reading.problem.unwrap_or_default()),
                    Some((snapshot, asked_at)) => {
                        spoke.read_commit = Some(snapshot.commit);
                        spoke.fill(SpokeSource::Remote, &snapshot.content, now);
                        let is_cached = cache.offline || reading.problem.is_some();
                        spoke.cached_at = is_cached.then_some(asked_at);
                        if let Some(problem) = reading.problem {
                            spoke.report.problems.insert(0, problem);
                            // A project whose last state had no spoke still has none.
                            if spoke.health.is_readable() {
                                spoke.health = Health::Cached;
                            }
                        }
                    }
                }
            }
        }
        // A mistake in PROJECT.yaml is reported, and does not make the spoke itself broken.
        spoke.report.problems.splice(0..0, project.problems.iter().cloned());
        spoke
    }

    fn of(project: &Project) -> Spoke {
        Spoke {
            name: project.name.clone(),
            project: project.id.clone(),
            repo: None,
            maintainer: project.maintainer.clone(),
            project_status: project.status.clone(),
            source: SpokeSource::None,
            health: Health::NoSource,
            stale: false,
            cached_at: None,
            read_commit: None,
            report: Report::default(),
        }
    }

    /// Keeps nothing of what it reports.
    fn drop_report(&mut self, budget: u64) {
        self.report = Report::default();
        self.stale = false;
        self.fail(format!(
            "it was not read: all spokes together report more than {} MB",
            budget / (1024 * 1024)
        ));
    }

    fn fail(&mut self, problem: String) {
        self.health = Health::Unreachable;
        self.report.problems.push(problem);
    }

    fn fill(&mut self, source: SpokeSource, collab: &Collab, now: Timestamp) {
        self.source = source;
        if collab.is_missing() {
            self.health = Health::NoCollab;
            return;
        }
        self.report = Report::read(collab, now);
        self.stale = self.report.is_stale(now);
        self.health = match (&self.report.status, self.stale) {
            (None, _) => Health::Broken,
            (Some(_), true) => Health::Stale,
            (Some(_), false) => Health::Fresh,
        };
        if let (None, Some(manifest)) = (&self.maintainer, &self.report.manifest) {
            self.maintainer = Some(manifest.maintainer.clone());
        }
    }
}

/// The bytes of a report as JSON, where a text that an alias repeats counts each time.
fn size_of(report: &Report) -> u64 {
    struct Counter(u64);
    impl Write for Counter {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 = self.0.saturating_add(bytes.len() as u64);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut counter = Counter(0);
    // Counting cannot fail, and a report can always be written.
    let _ = serde_json::to_writer(&mut counter, report);
    counter.0
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::git::GitOptions;
    use super::*;

    #[test]
    fn what_all_spokes_report_together_has_a_limit() {
        testkit::limit_test();
        let notes = vec!["*note"; 99].join(", ");
        let status = format!(
            "schemaVersion: '1.0'\ngeneratedAt: '2026-02-03T16:00:00Z'\nproject: {{name: a, phase: building}}\n\
             recentProgress: [&note {}, {notes}]\n",
            "x".repeat(100)
        );
        let candidate = |index: usize| Candidate {
            project: Project { id: format!("p-{index}"), name: format!("p-{index}"), ..Project::default() },
            origin: Origin::Hub(Collab {
                problem: None,
                files: [("status.yaml".to_owned(), Ok(status.clone()))].into(),
            }),
        };
        let candidates: Vec<_> = (0..20).map(candidate).collect();
        let options = GitOptions { timeout: Duration::from_secs(1), has_ssh_command: false };
        let cache = Cache { directory: "/none".into(), offline: true, options };
        let now = "2026-02-03T16:00:00Z".parse().unwrap();
        // The text of each file is small. Its aliases are not.
        let spokes = read_within(55_000, &candidates, &cache, now, &AtomicBool::new(false), |_| {});
        let health: Vec<_> = spokes.iter().map(|spoke| spoke.health).collect();
        assert_eq!(health.iter().filter(|health| **health == Health::Fresh).count(), 5, "{health:?}");
        assert_eq!(health.iter().filter(|health| **health == Health::Unreachable).count(), 15);
        let dropped = spokes.iter().find(|spoke| spoke.health == Health::Unreachable).unwrap();
        assert_eq!(dropped.report.status, None);
        assert!(dropped.report.problems[0].contains("it was not read"), "{:?}", dropped.report.problems);
    }
}
