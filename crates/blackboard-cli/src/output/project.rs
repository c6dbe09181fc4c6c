//! Projects, as human and JSON output.

use blackboard::agent::{ListedAgent, ShortIds};
use blackboard::project::{self, ListedProject, ProjectStatus};
use blackboard::work::{ListedItem, Status, list_blockers};
use serde::Serialize;

use super::entry::in_quotes;
use super::work::{holder_among, holders};
use super::{
    AgentNames, Cell, Column, ListPage, Result, Screen, Table, escape, render_list, render_object, time,
};
use crate::envelope::Answer;
use crate::outcome::Render;

render_object! {
    /// The answer of `project register`.
    RegisteredProject(project::RegisteredProject) = registered;
    /// The answer of `project remove`.
    RemovedProject(project::RemovedProject) = removed;
}

/// The answer of `project status`.
pub struct ProjectDetails(pub ProjectStatus);

/// What JSON output has: the status, and the project and its agents under the names that other programs read.
#[derive(Serialize)]
struct WithProject<'a> {
    #[serde(flatten)]
    status: &'a ProjectStatus,
    project: &'a project::Project,
    agents: &'a [ListedAgent],
}

impl Render for ProjectDetails {
    fn json(&self, answer: &mut Answer<'_>) -> Result {
        let ProjectStatus { project, active_agents, .. } = &self.0;
        answer.object(&WithProject { status: &self.0, project, agents: active_agents })
    }

    fn human(&self, screen: &mut Screen<'_>) -> Result {
        details(&self.0, screen)
    }
}

render_list! {
    /// The answer of `project list`.
    ProjectList(ListedProject) = projects;
}

fn registered(registered: &project::RegisteredProject, screen: &mut Screen<'_>) -> Result {
    let project = &registered.project;
    let verb = match (registered.created, registered.updated) {
        (true, _) => "Registered project",
        (false, true) => "Updated project",
        (false, false) => "Project already registered",
    };
    screen.line(format_args!("{verb}: {}", escape(&project.project_id)))?;
    screen.fields([
        ("Name", Some(project.display_name.clone())),
        ("Path", project.local_path.clone()),
        ("Repo", project.remote_repo.clone()),
    ])
}

fn projects(page: &ListPage<ListedProject>, screen: &mut Screen<'_>) -> Result {
    let projects = &page.rows;
    if projects.is_empty() {
        return screen.line(format_args!("No projects."));
    }
    let mut table = Table::new([
        Column::typed("PROJECT"),
        Column::detail("PATH").importance(2),
        Column::detail("REPO").importance(1),
        Column::fixed("AGENTS").importance(3),
    ]);
    for listed in projects {
        table.row([
            Cell::new(&listed.project.project_id),
            Cell::optional(listed.project.local_path.as_ref()),
            Cell::optional(listed.project.remote_repo.as_ref()),
            Cell::new(match listed.gone_agents {
                0 => format!("{} active", listed.active_agents),
                gone => format!("{} active, {gone} gone", listed.active_agents),
            }),
        ]);
    }
    screen.table(&table)?;
    page.note_more(screen)
}

fn details(details: &ProjectStatus, screen: &mut Screen<'_>) -> Result {
    let ProjectStatus { project, active_agents, work_items } = details;
    screen.fields([
        ("Project", Some(format!("{} ({})", project.project_id, project.display_name))),
        ("Path", project.local_path.clone()),
        ("Repo", project.remote_repo.clone()),
    ])?;
    screen.gap()?;
    screen.heading("Active Agents:")?;
    if active_agents.is_empty() {
        screen.line(format_args!("  none"))?;
    }
    let most = screen.most_rows();
    let ids = ShortIds::of(active_agents.iter().map(|listed| listed.agent.session_id.as_str()));
    for listed in active_agents.iter().take(most) {
        let agent = &listed.agent;
        let label = ids.label(&screen.name(&agent.agent_name), &agent.session_id);
        let before = format!("  {} -- ", escape(&label));
        let gone = if listed.is_gone() { " (process gone)" } else { "" };
        screen.fitted_line(&before, &escape(agent.current_work.as_deref().unwrap_or("--")), gone)?;
    }
    and_more(active_agents.len(), &project.project_id, "agent list", screen)?;
    screen.gap()?;
    screen.heading("Work Items:")?;
    if work_items.is_empty() {
        screen.line(format_args!("  none"))?;
    }
    let active = screen.active_agents();
    let names = holders(work_items, &active);
    work_items.iter().take(most).try_for_each(|item| work_line(item, &names, screen))?;
    and_more(work_items.len(), &project.project_id, "work list", screen)
}

/// How many more rows there are than are shown, and the command that shows them.
fn and_more(total: usize, project: &str, list: &str, screen: &mut Screen<'_>) -> Result {
    match total.checked_sub(screen.most_rows()).filter(|more| *more > 0) {
        Some(more) => {
            let command = screen.command(format_args!("{list} --project {}", in_quotes(project)));
            screen.line(format_args!("  … and {more} more: {}", escape(&command)))
        }
        None => Ok(()),
    }
}

fn work_line(listed: &ListedItem, names: &AgentNames<'_>, screen: &mut Screen<'_>) -> Result {
    let ListedItem { item, open_blockers, missing_blockers } = listed;
    let more = match (item.status, holder_among(item, names), item.claimed_at) {
        (Status::Blocked, _, _) if open_blockers.is_empty() => " (on hold)".to_owned(),
        (Status::Blocked, _, _) => {
            format!(" (blocked by: {})", list_blockers(open_blockers, missing_blockers))
        }
        (_, Some(name), Some(since)) => {
            let name = screen.name(&name);
            format!(" (claimed by {name}, {} ago)", time::age(screen.now().since(since)))
        }
        _ => String::new(),
    };
    let before = format!(
        "  [{}] [{}] {} -- ",
        item.priority,
        item.status.as_str().to_uppercase(),
        escape(&item.item_id)
    );
    let (title, more) = (escape(&item.title), escape(&more));
    // The blockers are ids, so that they are complete: in the same line, or below it.
    if item.status == Status::Blocked && !screen.fits(&before, &more) {
        screen.fitted_line(&before, &title, "")?;
        return screen.list_line("      ", more.trim_start());
    }
    screen.fitted_line(&before, &title, &more)
}

fn removed(removed: &project::RemovedProject, screen: &mut Screen<'_>) -> Result {
    let detached = match removed.detached_items.len() {
        0 => String::new(),
        1 => " (1 work item now has no project)".to_owned(),
        count => format!(" ({count} work items now have no project)"),
    };
    screen.line(format_args!("Removed project: {}{detached}", escape(&removed.project.project_id)))
}
