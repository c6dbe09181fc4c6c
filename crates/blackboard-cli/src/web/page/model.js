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

// Summaries have only the name of an agent. The short id follows it if another session has the same name.
function summaryOf(event) {
  const { name, session_id: session } = event.named_agent || {};
  if (!(sessionsByName.get(name)?.size > 1)) return event.summary;
  // A summary begins with "Agent", or has "agent" in its middle.
  const quoted = `gent "${name}"`;
  const end = event.summary.indexOf(quoted) + quoted.length;
  return `${event.summary.slice(0, end)} (${shortId(session, sessionsByName.get(name))})${event.summary.slice(end)}`;
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

// The items that are shown as completed, or that an event completed since then. Events about other items change nothing
// that is shown. None is removed, because an answer may be older than the last event.
const everCompleted = new Set();

function noteCompleted(events) {
  for (const event of events) if (event.event_type === "work_completed") everCompleted.add(event.target_id);
}

const completedResource = new Resource({
  path: query("/api/work", { status: "completed", order: "completed", limit: COMPLETED_SHOWN }),
  concerns(event) {
    return event.target_type === "work_item" && (this.readAt < 0 || everCompleted.has(event.target_id));
  },
  show(items) {
    model.completed = items;
    for (const item of items) {
      everCompleted.add(item.item_id);
      knowAgent(item.claimed_by_name, item.claimed_by);
    }
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
