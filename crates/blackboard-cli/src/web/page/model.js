// What several views show: agents, open work, finished work. Views ask to be told when it is new.

const model = { agents: [], work: [], completed: [], agentById: new Map(), itemById: new Map() };

// The sessions that the page has seen, by the name of their agent.
const sessionsByName = new Map();

function knowAgent(name, session) {
  if (!name || !session) return;
  if (sessionsByName.has(name)) sessionsByName.get(name).add(session);
  else sessionsByName.set(name, new Set([session]));
}

// The short id of a session, as on the command line: 8 characters, or as many as distinguish it from these.
function shortId(session, others = []) {
  let length = 8;
  for (const other of others) {
    while (other !== session && length < session.length && other.startsWith(session.slice(0, length))) length += 1;
  }
  return session.slice(0, length);
}

// An agent in a sentence or a fact.
const agentLabel = (name, session) =>
  name && session ? `${name} (${shortId(session, sessionsByName.get(name))})` : name || session;

// An agent in a row: the short id is shown if another session has the same name.
const agentName = (name, session) => (sessionsByName.get(name)?.size > 1 ? agentLabel(name, session) : name);

// The agent that the summary of an event begins with: summaries have only its name.
function agentOf(event) {
  const session = event.target_type === "agent" ? event.target_id : event.actor_id;
  const [, name] = /^Agent "(.*?)"[ :]/.exec(event.summary) || [];
  // The actor of an assignment is the session that gets the item.
  return name && session && !event.summary.startsWith(`Agent "${name}" assigned `) ? { name, session } : null;
}

function summaryOf(event) {
  const agent = agentOf(event);
  if (!agent || !(sessionsByName.get(agent.name)?.size > 1)) return event.summary;
  const { length } = `Agent "${agent.name}"`;
  const id = shortId(agent.session, sessionsByName.get(agent.name));
  return `${event.summary.slice(0, length)} (${id})${event.summary.slice(length)}`;
}

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
    for (const agent of agents) knowAgent(agent.agent_name, agent.session_id);
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
    for (const item of items) knowAgent(item.claimed_by_name, item.claimed_by);
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
    for (const item of items) knowAgent(item.claimed_by_name, item.claimed_by);
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
