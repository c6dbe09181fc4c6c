// Events that the page has seen: the newest ones, whatever a view shows of them.

const RECENT = 1000;

// Every kind of event, by what it is about. The names are those of the log.
const KINDS = [
  {
    kind: "agents",
    types: [
      "agent_registered",
      "agent_deregistered",
      "agent_stale",
      "agent_recovered",
      "agent_updated",
      "stale_locks_released",
      "quota_warning",
    ],
  },
  {
    kind: "work",
    types: [
      "work_created",
      "work_claimed",
      "work_released",
      "work_completed",
      "work_blocked",
      "work_unblocked",
      "work_reset",
      "work_updated",
      "work_deleted",
      "metadata_updated",
    ],
  },
  { kind: "progress", types: ["heartbeat_received"] },
  {
    kind: "entries",
    types: [
      "entry_written",
      "entry_deleted",
      "entry_expired",
      "entry_evicted",
      "entry_purged",
      "entries_cleared",
      "scope_created",
      "scope_updated",
      "scope_deleted",
      "scope_mapped",
      "scope_unmapped",
      "page_added",
      "page_replaced",
      "page_invalidated",
      "protocol_defined",
      "protocol_removed",
    ],
  },
  { kind: "projects", types: ["project_registered", "project_updated", "project_removed"] },
];

const KIND_OF = new Map(KINDS.flatMap(({ kind, types }) => types.map((type) => [type, kind])));

// The name of its type on the command line. The events of a work item have only the stored one, which is the same there.
const typeOf = (event) => event.shown_type || event.event_type;

const kindOf = (event) => KIND_OF.get(event.event_type) || "other";

let recentEvents = [];

function knowAgentOf(event) {
  const agent = event.named_agent;
  if (agent) knowAgent(agent.name, agent.session_id);
}

const recentResource = new Resource({
  path: "/api/events?since=24h&limit=200",
  concerns: () => false,
  show(events) {
    keepRecent(events);
    showEventsTable();
  },
});
recentResource.neededBy("overview", "timeline");

// An event comes by the stream and is read as well, and either may be the first.
function keepRecent(events) {
  events.forEach(knowAgentOf);
  const byRevision = new Map([...recentEvents, ...events].map((event) => [event.id, event]));
  recentEvents = [...byRevision.values()].sort((a, b) => b.id - a.id).slice(0, RECENT);
}

// Events as the stream tells them, the oldest first. The timeline knows by itself which of them it has.
function addEvents(events) {
  noteCompleted(events);
  keepRecent(events);
  if (currentView() === "overview") showEventsTable();
  timelineArrived([...events].reverse());
}

function forgetEvents() {
  recentEvents = [];
  recentResource.restart();
  timelineReset();
}
