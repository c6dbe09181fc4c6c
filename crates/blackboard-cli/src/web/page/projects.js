// Registered projects.

function createProjects() {
  const table = tableRows(
    byId("projects-table"),
    [
      textColumn((project) => project.display_name),
      codeColumn((project) => project.project_id),
      numberColumn((project) =>
        project.gone_agents ? `${project.active_agents}, ${project.gone_agents} gone` : project.active_agents,
      ),
      codeColumn((project) => project.local_path),
      textColumn((project) => project.remote_repo),
      timeColumn((project) => project.registered_at),
    ],
    { key: (project) => project.project_id },
  );
  new Resource({
    path: "/api/projects",
    concerns: isAbout("project", "agent"),
    show(answer) {
      table.show(answer.items);
      say(byId("projects-count"), answer.items.length || "");
    },
  }).neededBy("projects");
}
