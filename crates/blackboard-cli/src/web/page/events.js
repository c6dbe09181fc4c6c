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
      "work_deleted",
    ],
  },
  { kind: "progress", types: ["heartbeat_received"] },
  { kind: "entries", types: ["entry_written", "entry_deleted", "entry_expired", "entries_cleared"] },
  { kind: "projects", types: ["project_registered", "project_updated", "project_removed"] },
];

const KIND_OF = new Map(KINDS.flatMap(({ kind, types }) => types.map((type) => [type, kind])));

const kindOf = (event) => KIND_OF.get(event.event_type) || "other";

let recentEvents = [];

const recentResource = new Resource({
  path: "/api/events?since=24h&limit=200",
  concerns: () => false,
  show(events) {
    const known = new Set(events.map((event) => event.id));
    const newer = recentEvents.filter((event) => !known.has(event.id));
    recentEvents = [...newer, ...events].sort((a, b) => b.id - a.id).slice(0, RECENT);
    showEventsTable();
  },
});
recentResource.neededBy("overview", "timeline");

// Events as they come, the oldest first. Some may be known already: a connection that is resumed repeats its
// last commit.
function addEvents(events) {
  const newest = recentEvents.length ? recentEvents[0].id : 0;
  const fresh = events.filter((event) => event.id > newest).reverse();
  recentEvents = [...fresh, ...recentEvents].slice(0, RECENT);
  if (currentView() === "overview") showEventsTable();
  timelineArrived(fresh);
}

function forgetEvents() {
  recentEvents = [];
  recentResource.restart();
  timelineReset();
}
