//! What the agents of a project do: counts, claimed work and recent progress, for a report about it.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::time::Duration;

use super::{Project, Projects};
use crate::agent::{Agent, AgentStatus};
use crate::clock::Timestamp;
use crate::error::Result;
use crate::event::{Event, EventType};
use crate::metadata::Metadata;
use crate::revision::Revision;
use crate::store::{Page, Prefetch, Range, Tx};
use crate::work::{Status, WorkItem};

/// How many claimed items are read.
const CLAIMED: usize = 1000;

/// How many completed items are read.
const COMPLETED: usize = 500;

/// How many events are searched for progress notes.
const EVENTS: u64 = 1000;

/// For how long a completed item counts as recent.
const RECENT: Duration = Duration::from_hours(24);

/// The projects that an [`Activity`] is about.
#[derive(Clone, Debug, PartialEq)]
pub enum ProjectSelection {
    /// Everything on the board.
    All,
    /// One project, which sessions may have named in different ways.
    One(ProjectIdentity),
}

/// What identifies a project. A registered project is the same if it has one of these names, paths or repositories.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProjectIdentity {
    /// The names that sessions give it, for example that of its remote.
    pub names: Vec<String>,
    /// Its directories: those of registered projects contain them, or are in them.
    pub directories: Vec<PathBuf>,
    /// Its repository, for example `owner/repo`.
    pub repository: Option<String>,
    /// Whether sessions and work items without a project belong to it, because the board does.
    pub owns_board: bool,
}

/// What the agents of a project do, at one revision.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Activity {
    /// The registered projects that it is about, by id.
    pub projects: Vec<Project>,
    /// The active and idle agents, the first started first.
    pub live_agents: Vec<Agent>,
    /// How many agents are stale.
    pub stale_agents: u64,
    /// How many work items are available.
    pub available: u64,
    /// How many work items are blocked.
    pub blocked: u64,
    /// The claimed work items, P1 first, then oldest first.
    pub claimed: Vec<WorkItem>,
    /// The work items that were completed in the last 24 hours, the last one first; the last 500 of the board count. Items
    /// that were imported as closed ones are not among them.
    pub completed: Vec<WorkItem>,
    /// The newest progress notes first, among the last 1000 events, and the last note of each agent.
    pub progress: Vec<ProgressNote>,
    /// When an agent or a work item last changed.
    pub last_activity: Option<Timestamp>,
}

/// A progress note.
#[derive(Clone, Debug, PartialEq)]
pub struct ProgressNote {
    /// When it was reported.
    pub at: Timestamp,
    /// The revision of its report, or of its agent if that is no longer in the event log.
    pub revision: Revision,
    /// The text.
    pub text: String,
}

impl ProjectIdentity {
    fn is(&self, project: &Project) -> bool {
        let is_repository = |of: &str| {
            let known = self.repository.as_deref().unwrap_or_default();
            let name = known.rsplit('/').next().unwrap_or_default();
            !of.is_empty() && (of.eq_ignore_ascii_case(known) || of.eq_ignore_ascii_case(name))
        };
        self.names.contains(&project.project_id)
            || project.remote_repo.as_deref().is_some_and(is_repository)
            || project.local_path.as_deref().is_some_and(|path| self.is_above(path))
    }

    /// Whether a path is in one of the directories.
    fn is_above(&self, path: &str) -> bool {
        self.directories.iter().any(|directory| std::path::Path::new(path).starts_with(directory))
    }

    /// The registered projects that are this one: also the nearest whose path contains a directory.
    fn among(&self, projects: Vec<Project>) -> Vec<Project> {
        let contains = |path: &str| self.directories.iter().any(|directory| directory.starts_with(path));
        let around = |project: &&Project| project.local_path.as_deref().is_some_and(contains);
        let nearest =
            projects.iter().filter(around).max_by_key(|project| project.local_path.as_ref().map(String::len));
        let nearest = nearest.map(|project| project.project_id.clone());
        let is_same = |project: &Project| self.is(project) || nearest.as_ref() == Some(&project.project_id);
        projects.into_iter().filter(is_same).collect()
    }
}

impl Projects<'_> {
    /// What the agents of a project do.
    ///
    /// ```
    /// # use blackboard::{Board, agent::Register, project::{ProjectIdentity, ProjectSelection}};
    /// # let board = Board::memory();
    /// board.agents().register(&Register { project: Some("pai".into()), ..Register::named("Ivy") })?;
    /// let pai = ProjectIdentity { names: vec!["pai".into()], ..ProjectIdentity::default() };
    /// let activity = board.projects().activity(&ProjectSelection::One(pai))?;
    /// assert_eq!(activity.live_agents.len(), 1);
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn activity(&self, selection: &ProjectSelection) -> Result<Activity> {
        let claimed = Range::work_queue(Status::Claimed);
        let prefetch = [
            Prefetch::Range(Range::projects()),
            Prefetch::Range(Range::agents()),
            Prefetch::Candidates(claimed.clone(), CLAIMED),
            Prefetch::Candidates(Range::last_completed(), COMPLETED),
            Prefetch::RevisionBack(Revision::MAX, EVENTS),
        ];
        self.board.read_list(&prefetch, |tx| {
            let projects = tx.rows::<Project>(&Range::projects())?;
            let registered: Vec<String> = projects.iter().map(|project| project.project_id.clone()).collect();
            let (projects, scope) = match selection {
                ProjectSelection::All => (projects, None),
                ProjectSelection::One(identity) => {
                    let projects = identity.among(projects);
                    let ids = projects.iter().map(|project| project.project_id.clone());
                    let names: HashSet<String> = ids.chain(identity.names.iter().cloned()).collect();
                    (projects, Some(Scope { names, owns_board: identity.owns_board }))
                }
            };
            let is_about = |project: Option<&str>| scope.as_ref().is_none_or(|scope| scope.has(project));
            let mut agents = tx.rows::<Agent>(&Range::agents())?;
            agents.retain(|agent| is_about(agent.project.as_deref()));
            let sessions: HashSet<&str> = agents.iter().map(|agent| agent.session_id.as_str()).collect();
            let is_theirs = |item: &WorkItem| {
                let holder = item.claimed_by.as_deref().filter(|_| item.project_id.is_none());
                is_about(item.project_id.as_deref()) || holder.is_some_and(|holder| sessions.contains(holder))
            };
            let mut claimed = tx.candidate_rows::<WorkItem>(&claimed, CLAIMED)?;
            claimed.retain(is_theirs);
            let mut completed = tx.candidate_rows::<WorkItem>(&Range::last_completed(), COMPLETED)?;
            let recent = tx.now().minus(RECENT);
            let is_recent = |item: &WorkItem| item.completed_at.is_some_and(|at| at >= recent);
            completed.retain(|item| is_theirs(item) && is_recent(item) && item.is_progress());
            let after = tx.revision_back(Revision::MAX, EVENTS)?;
            let page = Page {
                after,
                until: Revision::MAX,
                types: &[EventType::HeartbeatReceived],
                limit: usize::try_from(EVENTS).unwrap_or(usize::MAX),
            };
            let counted = [Status::Available, Status::Blocked];
            let mut next: Vec<_> = vec![Prefetch::Events(page)];
            for status in counted {
                next.extend(counts_of(scope.as_ref(), status, &registered).map(Prefetch::Count));
            }
            tx.prefetch(&next)?;
            let [available, blocked] = counted.map(|status| count(tx, scope.as_ref(), status, &registered));
            let progress = progress(&tx.events(&page)?, &agents);
            let last_activity = last_activity(&agents, claimed.iter().chain(&completed));
            let stale = agents.iter().filter(|agent| agent.status == AgentStatus::Stale).count();
            agents.retain(|agent| agent.status.is_live());
            agents.sort_by(|a, b| (a.started_at, &a.session_id).cmp(&(b.started_at, &b.session_id)));
            Ok(Activity {
                projects,
                live_agents: agents,
                stale_agents: stale as u64,
                available: available?,
                blocked: blocked?,
                claimed,
                completed,
                progress,
                last_activity,
            })
        })
    }
}

/// The names of one project on this board.
struct Scope {
    names: HashSet<String>,
    owns_board: bool,
}

impl Scope {
    fn has(&self, project: Option<&str>) -> bool {
        project.map_or(self.owns_board, |project| self.names.contains(project))
    }
}

/// The ranges whose counts [`count`] adds up. Items without a project have no range of their own: they are the rest of
/// all items.
fn counts_of<'a>(
    scope: Option<&'a Scope>,
    status: Status,
    registered: &'a [String],
) -> impl Iterator<Item = Range> + use<'a> {
    let of_rest = scope.is_none_or(|scope| scope.owns_board).then(|| Range::work_queue(status));
    let of_projects = registered
        .iter()
        .filter(move |id| scope.is_some_and(|scope| scope.owns_board != scope.names.contains(*id)));
    of_rest.into_iter().chain(of_projects.map(move |id| Range::project_queue(status, id)))
}

/// How many items of one status there are: all, those of some projects, or all but those of other projects.
fn count(tx: &dyn Tx, scope: Option<&Scope>, status: Status, registered: &[String]) -> Result<u64> {
    let mut counts = Vec::new();
    for range in counts_of(scope, status, registered) {
        counts.push(tx.count(&range)?);
    }
    if scope.is_none_or(|scope| scope.owns_board) {
        let (all, others) = counts.split_first().map_or((0, &[][..]), |(all, others)| (*all, others));
        return Ok(all.saturating_sub(others.iter().sum()));
    }
    Ok(counts.iter().sum())
}

/// The notes of these agents, the newest first. An agent's last note may be older than the events.
fn progress(events: &[Event], agents: &[Agent]) -> Vec<ProgressNote> {
    let sessions: HashMap<&str, &Agent> =
        agents.iter().map(|agent| (agent.session_id.as_str(), agent)).collect();
    let of_event = |event: &Event| {
        sessions.get(event.actor_id.as_deref()?)?;
        let text = event.metadata.as_ref().map(Metadata::to_map)?.remove("progress")?;
        Some(ProgressNote { at: event.timestamp, revision: event.id, text: text.as_str()?.to_owned() })
    };
    let mut notes: Vec<ProgressNote> = events.iter().filter_map(of_event).collect();
    let known: HashSet<String> = notes.iter().map(|note| note.text.clone()).collect();
    notes.extend(agents.iter().filter_map(|agent| {
        let text = agent.progress.clone().filter(|text| !known.contains(text))?;
        Some(ProgressNote { at: agent.last_beat_at, revision: agent.revision, text })
    }));
    notes.sort_by_key(|note| Reverse((note.at, note.revision)));
    notes
}

fn last_activity<'a>(agents: &[Agent], items: impl Iterator<Item = &'a WorkItem>) -> Option<Timestamp> {
    let of_agents = agents.iter().map(|agent| agent.last_beat_at);
    let of_items = items.filter_map(|item| item.completed_at.or(item.claimed_at));
    of_agents.chain(of_items).max()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Board;
    use crate::agent::{Heartbeat, Register};
    use crate::project::RegisterProject;
    use crate::work::{Claim, Complete, Create};

    fn register(board: &Board, name: &str, project: Option<&str>) -> String {
        let request = Register { project: project.map(str::to_owned), ..Register::named(name) };
        board.agents().register(&request).unwrap().agent.session_id
    }

    fn create(board: &Board, id: &str, project: Option<&str>) {
        let request = Create { project: project.map(str::to_owned), ..Create::new(id, id) };
        board.work().create(&request).unwrap();
    }

    fn one(names: &[&str]) -> ProjectIdentity {
        ProjectIdentity {
            names: names.iter().map(|name| (*name).to_owned()).collect(),
            ..ProjectIdentity::default()
        }
    }

    /// The names in the order of the alphabet: agents may be seen in the same millisecond.
    fn names(activity: &Activity) -> Vec<&str> {
        let mut names: Vec<_> = activity.live_agents.iter().map(|agent| agent.agent_name.as_str()).collect();
        names.sort_unstable();
        names
    }

    #[test]
    fn only_the_agents_and_items_of_the_project_are_in_its_activity() {
        testkit::limit_test();
        let board = Board::memory();
        for project in ["pai", "other"] {
            board.projects().register(&RegisterProject::new(project, project)).unwrap();
        }
        let ivy = register(&board, "Ivy", Some("pai"));
        let oak = register(&board, "Oak", Some("other"));
        let elm = register(&board, "Elm", None);
        for (id, project) in
            [("a", Some("pai")), ("b", Some("other")), ("c", None), ("d", Some("pai")), ("e", None)]
        {
            create(&board, id, project);
        }
        for (item, session) in [("a", &ivy), ("b", &oak), ("c", &ivy)] {
            board.work().claim(&Claim::of(item, session)).unwrap();
        }
        board.work().complete(&Complete::of("a", &ivy)).unwrap();
        for (session, text) in [(&ivy, "first"), (&oak, "secret"), (&ivy, "second"), (&elm, "loose")] {
            let beat = Heartbeat { progress: Some(text.to_owned()), ..Heartbeat::of(session) };
            board.agents().heartbeat(&beat).unwrap();
        }
        let of = |selection: &ProjectSelection| board.projects().activity(selection).unwrap();
        let ids = |items: &[WorkItem]| items.iter().map(|item| item.item_id.clone()).collect::<Vec<_>>();
        let texts = |activity: &Activity| {
            let mut texts: Vec<_> = activity.progress.iter().map(|note| note.text.clone()).collect();
            texts.sort();
            texts
        };

        let pai = of(&ProjectSelection::One(one(&["pai"])));
        assert_eq!(
            (names(&pai), ids(&pai.claimed), ids(&pai.completed)),
            (vec!["Ivy"], vec!["c".into()], vec!["a".into()])
        );
        assert_eq!((pai.available, pai.blocked, pai.stale_agents), (1, 0, 0));
        assert_eq!(texts(&pai), ["first", "second"]);
        assert!(pai.last_activity.is_some());

        let own = of(&ProjectSelection::One(ProjectIdentity { owns_board: true, ..one(&["pai"]) }));
        assert_eq!((names(&own), own.available, own.claimed.len()), (vec!["Elm", "Ivy"], 2, 1));
        let all = of(&ProjectSelection::All);
        assert_eq!(
            (all.live_agents.len(), all.available, all.claimed.len(), all.projects.len()),
            (3, 2, 2, 2)
        );
        let none = of(&ProjectSelection::One(one(&["nothing"])));
        assert_eq!(none, Activity::default());
    }

    #[test]
    fn a_project_is_known_by_its_id_its_repository_and_its_path() {
        testkit::limit_test();
        let board = Board::memory();
        for (id, path, repo) in [
            ("by-path", Some("/srv/pai"), None),
            ("inside", Some("/srv/pai/docs"), None),
            ("around", Some("/srv"), None),
            ("by-repo", None, Some("Owner/PAI")),
            ("by-name", None, Some("pai")),
            ("other", Some("/srv/pai-2"), Some("owner/pai-2")),
        ] {
            let request = RegisterProject {
                path: path.map(str::to_owned),
                repo: repo.map(str::to_owned),
                ..RegisterProject::new(id, id)
            };
            board.projects().register(&request).unwrap();
            register(&board, id, Some(id));
        }
        register(&board, "of-remote", Some("pai"));
        let identity = ProjectIdentity {
            directories: vec!["/srv/pai".into()],
            repository: Some("owner/pai".into()),
            ..one(&["pai"])
        };
        let activity = board.projects().activity(&ProjectSelection::One(identity)).unwrap();
        let mut found = names(&activity);
        found.sort_unstable();
        assert_eq!(found, ["by-name", "by-path", "by-repo", "inside", "of-remote"]);
        let below = ProjectIdentity { directories: vec!["/srv/x".into()], ..ProjectIdentity::default() };
        let activity = board.projects().activity(&ProjectSelection::One(below)).unwrap();
        assert_eq!(names(&activity), ["around"]);
    }
}
