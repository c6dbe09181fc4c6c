// What several views show: agents, open work, finished work. Views ask to be told when it is new.

const model = { agents: [], work: [], completed: [], agentById: new Map(), itemById: new Map() };

const isAbout =
  (...types) =>
  (event) =>
    types.includes(event.target_type);

const agentsResource = new Resource({
  path: () => query("/api/agents", { all: byId("agents-ended").checked ? 1 : "" }),
  // What an agent holds is part of what is shown of it.
  concerns: isAbout("agent", "work_item"),
  show(agents) {
    model.agents = agents;
    model.agentById = new Map(agents.map((agent) => [agent.session_id, agent]));
    agentsChanged();
  },
});
agentsResource.ages = true;
agentsResource.neededBy("overview", "agents", "timeline");

// The order in which `work claim --next` takes items: P1 first, then the oldest.
function inQueueOrder(a, b) {
  for (const name of ["priority", "created_at", "item_id"]) {
    if (a[name] !== b[name]) return a[name] < b[name] ? -1 : 1;
  }
  return 0;
}

const workResource = new Resource({
  path: "/api/work",
  // The sweep tells of the items that it frees in an event about the agent.
  concerns: (event) => event.target_type === "work_item" || event.event_type === "stale_locks_released",
  show(items) {
    model.work = items.sort(inQueueOrder);
    workChanged();
  },
});
workResource.neededBy("overview", "work");

const COMPLETED_SHOWN = 1000;

const completedResource = new Resource({
  path: query("/api/work", { status: "completed", order: "completed", limit: COMPLETED_SHOWN }),
  concerns: (event) => ["work_completed", "work_reset", "work_deleted"].includes(event.event_type),
  show(items) {
    model.completed = items;
    workChanged();
  },
});
completedResource.neededBy("work");

// Only what is looked at is drawn, and only once it was read; a view that is opened draws itself.
function agentsChanged() {
  if (agentsResource.readAt < 0) return;
  if (currentView() === "overview") showAgentsTable();
  if (currentView() === "agents") showTree();
  if (currentView() === "timeline") showTimelineAgents();
}

function workChanged() {
  if (workResource.readAt < 0 && completedResource.readAt < 0) return;
  model.itemById = new Map([...model.completed, ...model.work].map((item) => [item.item_id, item]));
  if (currentView() === "overview") showWorkTable();
  if (currentView() === "work") showBoard();
  rebuildDrawer();
}

const fits = (words, ...texts) => {
  if (!words.length) return true;
  const text = texts.filter(Boolean).join("\n").toLowerCase();
  return words.every((word) => text.includes(word));
};

const wordsOf = (input) => input.value.toLowerCase().split(/\s+/).filter(Boolean);

function fillSelect(select, values, labelOf) {
  const wanted = ["", ...values];
  const present = [...select.options].map((option) => option.value);
  if (wanted.length === present.length && wanted.every((value, index) => value === present[index])) return;
  const chosen = select.value;
  select.replaceChildren(
    ...wanted.map((value) => make("option", { value }, value === "" ? "all" : labelOf(value))),
  );
  // What was chosen stays chosen, also when it is gone from the board.
  if (chosen !== "" && !values.includes(chosen))
    select.append(make("option", { value: chosen }, labelOf(chosen)));
  select.value = chosen;
}
