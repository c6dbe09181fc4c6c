// The default view: the cards, and the tables of agents, open work and the last events.

const LAST_EVENTS = 50;

let agentsTable;
let workTable;
let eventsTable;

function createOverview() {
  const openNode = ({ agent }) => openAgent(agent.session_id);
  agentsTable = tableRows(
    byId("agents-table"),
    [
      openColumn(
        ({ agent }) => agentName(agent.agent_name, agent.session_id),
        openNode,
        (cell, { level }) => setAttribute(cell, "data-level", Math.min(level, 4)),
      ),
      textColumn(({ agent }) => agent.project),
      textColumn(({ agent }) => agent.current_work),
      {
        create: (cell) => cell.append(make("span.dot", { "aria-hidden": "true" }), make("span")),
        update(cell, { agent }) {
          setDot(cell.firstChild, agent);
          setStatus(cell.lastChild, agent.status, doubtAbout(agent));
        },
      },
      numberColumn(({ agent }) => agent.claimed_items),
      timeColumn(({ agent }) => agent.last_seen_at),
    ],
    { key: ({ agent }) => agent.session_id, open: openNode },
  );

  workTable = tableRows(
    byId("work-table"),
    [
      {
        create: (cell) => cell.append(make("span")),
        update: (cell, item) => setPriority(cell.firstChild, item.priority),
      },
      openColumn(
        (item) => item.title,
        (item) => openItem(item.item_id),
        (cell, item) => {
          setAttribute(cell.firstChild, "title", cut(`${shown(item.title)}\n${shown(item.item_id)}`, 1000));
        },
      ),
      textColumn((item) => item.project_id),
      {
        create: (cell) => cell.append(make("span")),
        update(cell, item) {
          setStatus(cell.firstChild, item.status);
          const title = blockedByText(item);
          setAttribute(cell, "title", title === "" ? null : cut(title, 4 * LONGEST_IN_ROW));
          cell.classList.toggle("has-missing", blockersOf(item).some((id) => isMissing(item, id)));
        },
      },
      textColumn((item) => agentName(item.claimed_by_name, item.claimed_by)),
      timeColumn(ageSince),
    ],
    { key: (item) => item.item_id, open: (item) => openItem(item.item_id) },
  );

  eventsTable = eventRows(byId("events-table"), false);
}

function eventRows(table, withRevision, scroller) {
  const columns = [
    timeColumn((event) => event.timestamp),
    {
      create: (cell) => cell.append(make("span")),
      update(cell, event) {
        sayRow(cell.firstChild, typeOf(event));
        cell.firstChild.className = `event-type kind-${kindOf(event)}`;
      },
    },
    openColumn(summaryOf, openEvent),
  ];
  if (withRevision) columns.push(numberColumn((event) => event.id));
  return tableRows(table, columns, { key: (event) => event.id, open: openEvent, scroller });
}

function showAgentsTable() {
  // The tree asks for ended sessions too; this table is about who is here.
  const here = model.agents.filter((agent) => agent.status !== "completed");
  // A delegate stands below the one it works for.
  agentsTable.show(nodesOf(here, new Set()));
  const counts = ["gone", "overdue"].map((doubt) => {
    const count = here.filter((agent) => doubtAbout(agent) === doubt).length;
    return count ? `, ${count} ${doubt}` : "";
  });
  say(byId("agents-count"), here.length ? `${here.length}${counts.join("")}` : "");
}

function showWorkTable() {
  workTable.show(model.work);
  say(byId("work-count"), model.work.length || "");
}

function showEventsTable() {
  eventsTable.show(recentEvents.slice(0, LAST_EVENTS));
}

// Alive, idle, silent for too long, or gone.
function setDot(dot, agent) {
  const state = doubtAbout(agent) && agent.status !== "stale" ? "overdue" : agent.status;
  dot.className = `dot dot-${STATUSES.has(state) || state === "overdue" ? state : "other"}`;
}
