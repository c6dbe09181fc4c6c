//! The spokes, projects and operators of a hub, as human and JSON output.

use std::collections::BTreeMap;
use std::io;

use blackboard::clock::Timestamp;
use blackboard::{Code, Error, Refusal};
use serde::Serialize;

use super::{Cell, Column, Result, Screen, Table, escape, time};
use crate::envelope::{Answer, Failure};
use crate::hub::check::Difference;
use crate::hub::pull::{Health, Pulled, Spoke};
use crate::outcome::Render;
use crate::spoke::{Phase, StatusFile};

/// How many problems of one spoke are listed.
const MOST_PROBLEMS: usize = 3;

/// How many characters of a text of another machine are in a table.
const LONGEST: usize = 120;

/// The answer of `pull`.
pub struct PulledSpokes {
    /// What was read.
    pub pulled: Pulled,
    /// Whether only the cache was read.
    pub offline: bool,
}

/// The fields of `pull` in JSON.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Fields<'a> {
    hub: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hub_problem: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hub_cached_at: Option<Timestamp>,
    offline: bool,
    spokes: Vec<&'a Spoke>,
    fetched: usize,
    failed: usize,
    no_repo: usize,
    no_collab: usize,
    without_source: Vec<&'a str>,
    without_collab: Vec<&'a str>,
    problems: &'a [String],
}

/// How many spokes and projects of each kind there are.
struct Counts {
    fetched: usize,
    failed: usize,
    no_collab: usize,
    no_source: usize,
}

impl Counts {
    fn of(spokes: &[Spoke]) -> Counts {
        let count = |kinds: &[Health]| spokes.iter().filter(|spoke| kinds.contains(&spoke.health)).count();
        Counts {
            fetched: count(&[Health::Fresh, Health::Stale, Health::Cached]),
            failed: count(&[Health::Broken, Health::Unreachable]),
            no_collab: count(&[Health::NoCollab]),
            no_source: count(&[Health::NoSource]),
        }
    }

    fn line(&self, offline: bool) -> String {
        let failed = if self.failed > 0 { format!("{} failed, ", self.failed) } else { String::new() };
        format!(
            "{} {}, {failed}{} without .collab/, {} without a source",
            counted(self.fetched, "spoke", "spokes"),
            if offline { "read from the cache" } else { "fetched" },
            counted(self.no_collab, "repository", "repositories"),
            counted(self.no_source, "project", "projects"),
        )
    }
}

fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

impl Render for PulledSpokes {
    fn json(&self, answer: &mut Answer<'_>) -> Result {
        let Pulled { hub, spokes } = &self.pulled;
        let counts = Counts::of(spokes);
        let named = |health: Health| -> Vec<&str> {
            spokes.iter().filter(|spoke| spoke.health == health).map(|spoke| spoke.project.as_str()).collect()
        };
        answer.object(&Fields {
            hub: hub.name.as_deref(),
            hub_problem: hub.problem.as_deref(),
            hub_cached_at: hub.cached_at,
            offline: self.offline,
            spokes: spokes.iter().filter(|spoke| spoke.health.is_spoke()).collect(),
            fetched: counts.fetched,
            failed: counts.failed,
            no_repo: counts.no_source,
            no_collab: counts.no_collab,
            without_source: named(Health::NoSource),
            without_collab: named(Health::NoCollab),
            problems: &hub.files.problems,
        })
    }

    fn human(&self, screen: &mut Screen<'_>) -> Result {
        let Pulled { hub, spokes } = &self.pulled;
        let shown: Vec<&Spoke> = spokes.iter().filter(|spoke| spoke.health.is_spoke()).collect();
        if shown.is_empty() {
            screen.line(format_args!("No spokes."))?;
        } else {
            let mut table = Table::new([
                Column::typed("SPOKE"),
                Column::fixed("PHASE").importance(4),
                Column::fixed("AGENTS").importance(2),
                Column::fixed("LAST ACTIVITY").importance(3),
                Column::text("STATUS").importance(5),
            ]);
            for spoke in &shown {
                table.row(row(spoke, screen.now()));
            }
            screen.table(&table)?;
        }
        problems(&hub.files.problems, spokes, screen)?;
        screen.gap()?;
        if self.offline {
            offline(&self.pulled, screen)?;
        }
        screen.list_line("", &Counts::of(spokes).line(self.offline))
    }

    /// A hub is read without a board, too.
    fn needs_board(&self) -> bool {
        false
    }
}

/// How old the cache is.
fn offline(pulled: &Pulled, screen: &mut Screen<'_>) -> Result {
    let moments = pulled.spokes.iter().filter_map(|spoke| spoke.cached_at).chain(pulled.hub.cached_at);
    let ages: Vec<_> = moments.map(|moment| screen.now().since(moment)).collect();
    match (ages.iter().min(), ages.iter().max()) {
        (Some(least), Some(most)) => {
            let (least, most) = (time::age(*least), time::age(*most));
            let range = if least == most { least } else { format!("{least} to {most}") };
            screen.line(format_args!("Offline: the cache is {range} old."))
        }
        _ => screen.line(format_args!("Offline: nothing was read from the cache.")),
    }
}

fn row(spoke: &Spoke, now: Timestamp) -> [Cell; 5] {
    let status_file = spoke.report.status.as_ref();
    let ago = |moment: Timestamp| format!("{} ago", time::age(now.since(moment)));
    // A spoke without agent data has no agents; one that cannot be read has neither.
    let agents = status_file.map(|status| {
        let activity = status.agent_activity.as_ref();
        activity.map_or(0, |activity| activity.active_agents).to_string()
    });
    [
        Cell::new(bounded(&spoke.name)),
        Cell::optional(status_file.and_then(|status| status.phase).map(Phase::hub_word)),
        Cell::optional(agents),
        Cell::optional(spoke.report.last_activity().map(ago)),
        Cell::in_tone_of(if spoke.health == Health::Fresh { "" } else { "stale" }, status(spoke, &ago)),
    ]
}

/// What the agents do, the tests, and what to be careful about. That comes first, because a narrow terminal cuts the end.
fn status(spoke: &Spoke, ago: &impl Fn(Timestamp) -> String) -> String {
    if spoke.health == Health::Unreachable {
        return "unreachable".to_owned();
    }
    let mut parts = Vec::new();
    if spoke.health == Health::Broken {
        parts.push("[BROKEN]".to_owned());
    }
    if let (Health::Cached, Some(moment)) = (spoke.health, spoke.cached_at) {
        parts.push(format!("[cached {}]", ago(moment)));
    }
    let Some(status) = &spoke.report.status else { return parts.join(" ") };
    if spoke.stale {
        parts.push("[STALE]".to_owned());
    }
    let comma = if status.tests.is_some() { "," } else { "" };
    parts.push(format!("{}{comma}", activity(status)));
    if let Some(tests) = &status.tests {
        parts.push(format!("{}P/{}F", tests.passing, tests.failing));
    }
    if let Some(git) = &status.git {
        if git.dirty {
            parts.push("[dirty]".to_owned());
        }
        if git.behind_remote > 0 {
            parts.push(format!("[{} behind]", git.behind_remote));
        }
    }
    parts.join(" ")
}

fn activity(status: &StatusFile) -> String {
    let Some(activity) = &status.agent_activity else { return "no agent data".to_owned() };
    match (activity.claimed_items, activity.current_work.first()) {
        (0, Some(work)) => bounded(&work.task),
        (0, None) => "no current work".to_owned(),
        (1, _) => "1 item claimed".to_owned(),
        (count, _) => format!("{count} items claimed"),
    }
}

fn bounded(text: &str) -> String {
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// What could not be read, and why.
fn problems(of_hub: &[String], spokes: &[Spoke], screen: &mut Screen<'_>) -> Result {
    let concerned: Vec<&Spoke> = spokes.iter().filter(|spoke| !spoke.report.problems.is_empty()).collect();
    if of_hub.is_empty() && concerned.is_empty() {
        return Ok(());
    }
    screen.gap()?;
    screen.heading("Problems:")?;
    for problem in of_hub {
        screen.wrapped_line("  ", &escape(problem))?;
    }
    for spoke in concerned {
        let problems = &spoke.report.problems;
        for problem in problems.iter().take(MOST_PROBLEMS) {
            let line = format!("{}: {}", bounded(&spoke.name), problem);
            screen.wrapped_line("  ", &escape(&line))?;
        }
        if problems.len() > MOST_PROBLEMS {
            let more = problems.len() - MOST_PROBLEMS;
            screen.line(format_args!("  {}: … and {more} more", escape(&bounded(&spoke.name))))?;
        }
    }
    Ok(())
}

/// The answer of `registry`.
pub struct RegistryList {
    pulled: Pulled,
    operators: Vec<Operator>,
    offline: bool,
}

/// A person who maintains projects, contributes to them, or operates agents.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Operator {
    handle: String,
    name: Option<String>,
    availability: Option<String>,
    skills: Vec<String>,
    agents: Vec<String>,
    maintains: Vec<String>,
    contributes_to: Vec<String>,
    health: Option<Health>,
}

impl RegistryList {
    /// Finds the operators.
    pub fn new(mut pulled: Pulled, offline: bool) -> RegistryList {
        // In the order of the column that is shown.
        pulled.spokes.sort_by(|one, other| (&one.project, &one.name).cmp(&(&other.project, &other.name)));
        let mut operators: BTreeMap<String, Operator> = BTreeMap::new();
        let mut of = |handle: &str, change: &mut dyn FnMut(&mut Operator)| {
            if !handle.is_empty() {
                let operator = operators.entry(handle.to_lowercase()).or_default();
                if operator.handle.is_empty() {
                    handle.clone_into(&mut operator.handle);
                }
                change(operator);
            }
        };
        for spoke in &pulled.spokes {
            of(spoke.maintainer.as_deref().unwrap_or_default(), &mut |operator| {
                operator.maintains.push(spoke.project.clone());
                if spoke.health.is_spoke() {
                    operator.health =
                        Some(operator.health.map_or(spoke.health, |health| health.worst(spoke.health)));
                }
            });
            if let Some(own) = &spoke.report.operator {
                of(&own.handle, &mut |operator| {
                    operator.name.clone_from(&own.name);
                    operator.availability = Some(own.availability.clone());
                    operator.skills.clone_from(&own.skills);
                });
            }
        }
        for project in pulled.hub.projects() {
            for handle in
                project.contributors.iter().filter(|handle| Some(*handle) != project.maintainer.as_ref())
            {
                of(handle, &mut |operator| operator.contributes_to.push(project.id.clone()));
            }
        }
        for row in pulled.hub.registry().map(|registry| registry.agents).unwrap_or_default() {
            of(&row.operator, &mut |operator| {
                operator.agents.push(row.agent.clone());
                // What the operator wrote in the spoke counts more.
                if operator.availability.is_none() && !row.availability.is_empty() {
                    operator.availability = Some(row.availability.clone());
                }
                if operator.skills.is_empty() && !row.skills.is_empty() {
                    operator.skills = row.skills.split(',').map(|skill| skill.trim().to_owned()).collect();
                }
            });
        }
        let operators = operators.into_values().collect();
        RegistryList { pulled, operators, offline }
    }
}

impl Render for RegistryList {
    fn json(&self, answer: &mut Answer<'_>) -> Result {
        #[derive(Serialize)]
        struct Fields<'a> {
            hub: Option<&'a str>,
            offline: bool,
            projects: &'a [Spoke],
            operators: &'a [Operator],
            problems: &'a [String],
        }
        let Pulled { hub, spokes } = &self.pulled;
        answer.object(&Fields {
            hub: hub.name.as_deref(),
            offline: self.offline,
            projects: spokes,
            operators: &self.operators,
            problems: &hub.files.problems,
        })
    }

    fn human(&self, screen: &mut Screen<'_>) -> Result {
        let Pulled { hub, spokes } = &self.pulled;
        if spokes.is_empty() {
            screen.line(format_args!("No projects."))?;
        } else {
            screen.table(&projects(spokes, screen.now()))?;
        }
        if !self.operators.is_empty() {
            screen.gap()?;
            screen.table(&operators(&self.operators))?;
        }
        problems(&hub.files.problems, spokes, screen)?;
        if self.offline {
            screen.gap()?;
            offline(&self.pulled, screen)?;
        }
        Ok(())
    }

    /// A hub is read without a board, too.
    fn needs_board(&self) -> bool {
        false
    }
}

fn projects(spokes: &[Spoke], now: Timestamp) -> Table {
    let mut table = Table::new([
        Column::typed("PROJECT"),
        Column::name("MAINTAINER").importance(4),
        Column::fixed("STATUS").importance(3),
        Column::fixed("HEALTH").importance(6),
        Column::fixed("LAST ACTIVITY").importance(2),
        Column::detail("SOURCE").importance(1),
    ]);
    for spoke in spokes {
        let phase = spoke.report.status.as_ref().and_then(|status| status.phase).map(Phase::hub_word);
        let status = spoke.project_status.as_deref().or(phase);
        table.row([
            Cell::new(bounded(&spoke.project)),
            Cell::optional(spoke.maintainer.as_deref().map(bounded)),
            Cell::optional(status.map(bounded)),
            health(spoke.health),
            Cell::optional(
                spoke.report.last_activity().map(|moment| format!("{} ago", time::age(now.since(moment)))),
            ),
            Cell::optional(spoke.repo.as_deref()),
        ]);
    }
    table
}

fn operators(operators: &[Operator]) -> Table {
    let mut table = Table::new([
        Column::typed("OPERATOR"),
        Column::fixed("AVAILABILITY").importance(4),
        Column::fixed("HEALTH").importance(5),
        Column::detail("MAINTAINS").importance(3),
        Column::name("AGENTS").importance(2),
        Column::text("SKILLS").importance(1),
    ]);
    for operator in operators {
        table.row([
            Cell::new(bounded(&operator.handle)),
            Cell::optional(operator.availability.as_deref().map(bounded)),
            operator.health.map_or_else(|| Cell::new(""), health),
            Cell::new(bounded(&operator.maintains.join(", "))),
            Cell::new(bounded(&operator.agents.join(", "))),
            Cell::new(bounded(&operator.skills.join(", "))),
        ]);
    }
    table
}

fn health(health: Health) -> Cell {
    let tone = match health {
        Health::Fresh => "active",
        Health::NoCollab | Health::NoSource => "completed",
        _ => "stale",
    };
    Cell::in_tone_of(tone, health.word())
}

/// The answer of `registry --check`.
#[derive(Serialize)]
pub struct CheckedRegistry {
    /// How many projects were compared.
    pub projects: usize,
    /// The differences.
    pub differences: Vec<Difference>,
    /// Files that cannot be read, or have invalid values.
    pub problems: Vec<String>,
}

impl CheckedRegistry {
    /// The answer if there are differences.
    pub fn refusal(&self) -> Option<RefusedRegistry> {
        let count = match self.differences.len() {
            0 => return None,
            1 => "1 difference".to_owned(),
            count => format!("{count} differences"),
        };
        let details = serde_json::to_value(&self.differences).unwrap_or_default();
        let error = Refusal::new(Code::RegistryMismatch, format!("REGISTRY.md has {count} to the projects"))
            .hint("change REGISTRY.md: the files PROJECT.yaml are authoritative")
            .detail("differences", details)
            .detail("problems", self.problems.clone());
        let lines = self.differences.iter().map(describe).chain(self.problems.iter().cloned()).collect();
        Some(RefusedRegistry { error: error.into(), lines })
    }
}

impl Render for CheckedRegistry {
    fn json(&self, answer: &mut Answer<'_>) -> Result {
        answer.object(self)
    }

    fn human(&self, screen: &mut Screen<'_>) -> Result {
        for problem in &self.problems {
            screen.wrapped_line("", &escape(problem))?;
        }
        screen.line(format_args!("REGISTRY.md matches {}.", counted(self.projects, "project", "projects")))
    }
}

/// The answer of `registry --check` if there are differences.
pub struct RefusedRegistry {
    error: Error,
    lines: Vec<String>,
}

impl Render for RefusedRegistry {
    fn json(&self, answer: &mut Answer<'_>) -> Result {
        answer.raw(&Failure::new(&self.error, answer.timestamp()))
    }

    fn human(&self, _screen: &mut Screen<'_>) -> Result {
        crate::exit::complain(&self.error);
        let mut stderr = io::stderr().lock();
        let mut screen = Screen::of_stderr(&mut stderr, Timestamp::EPOCH);
        self.lines.iter().try_for_each(|line| screen.wrapped_line("  ", &escape(line)))
    }
}

fn describe(difference: &Difference) -> String {
    let Difference { project, field, registry, file } = difference;
    let shown = |text: &Option<String>| text.as_deref().map_or("nothing".to_owned(), bounded);
    match (*field, registry, file) {
        ("project", None, _) => format!("{project}: REGISTRY.md has no row for it"),
        ("project", _, None) => format!("{project}: it has no PROJECT.yaml"),
        (field, registry, file) => {
            let (registry, file) = (shown(registry), shown(file));
            format!("{project}: {field} is {registry} in REGISTRY.md, {file} in PROJECT.yaml")
        }
    }
}
