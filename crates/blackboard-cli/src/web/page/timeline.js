// The log: filters, and a slider that goes back to any place in it.
//
// The rows are a window onto the log. It grows at both ends as the reader scrolls there, and what is far away
// is dropped, so that a log of any length costs the same. While the window follows, new events come in at its
// top.
//
// Revisions may have gaps, so nothing is counted or found by calculating with them. The server counts: the slider runs
// over the positions of events, of which the oldest one that is kept has the first.

const PAGE = 200;
const WINDOW = 2000;
// How long the count may leave out that old events were pruned.
const COUNT_AGAIN = 60 * SECOND;

const timeline = {
  rows: [],
  table: null,
  kinds: new Set(),
  agent: "",
  following: true,
  older: null,
  loading: false,
  generation: 0,
  log: 0,
  loaded: false,
  sliding: false,
  // How many events the log has, at which revision, and when the server said so; null before it did.
  kept: 0,
  countedAt: null,
  countedWhen: 0,
};

function createTimeline() {
  const scroller = byId("timeline-rows");
  timeline.table = eventRows(byId("timeline-table"), true, scroller);
  for (const { kind } of KINDS) {
    const chip = make(
      `button.chip.kind-${kind}`,
      {
        type: "button",
        "aria-pressed": "false",
        onclick() {
          if (!timeline.kinds.delete(kind)) timeline.kinds.add(kind);
          setAttribute(chip, "aria-pressed", timeline.kinds.has(kind));
          reloadTimeline();
        },
      },
      kind,
    );
    byId("timeline-kinds").append(chip);
  }
  byId("timeline-agent").addEventListener("change", (event) => {
    timeline.agent = event.target.value;
    reloadTimeline();
  });
  byId("timeline-live").addEventListener("click", () => followTimeline());
  let settle = null;
  const slider = byId("timeline-slider");
  slider.addEventListener("input", () => {
    const position = Number(slider.value);
    clearTimeout(settle);
    timeline.sliding = true;
    showPlace(position, null);
    settle = setTimeout(async () => {
      await goTo(position);
      timeline.sliding = false;
      refreshPlace();
    }, 60);
  });
  scroller.addEventListener("scroll", timelineScrolled, { passive: true });
}

const timelineFilter = () => ({
  types: KINDS.filter(({ kind }) => timeline.kinds.has(kind))
    .flatMap(({ types }) => types)
    .join(","),
  agent: timeline.agent,
});

function fitsTimeline(event) {
  if (timeline.kinds.size && !timeline.kinds.has(kindOf(event))) return false;
  return timeline.agent === "" || event.actor_id === timeline.agent || event.target_id === timeline.agent;
}

// Asks for a part of the log; null if another part was asked for meanwhile.
async function readLog(place) {
  const generation = timeline.generation;
  timeline.loading = true;
  try {
    const { answer, revision, next, log } = await ask(
      query("/api/events", { limit: PAGE, ...place, ...timelineFilter() }),
    );
    if (generation !== timeline.generation) return null;
    noteRevision(revision);
    noteCount(revision, log);
    placeEvents(answer, log.positions);
    answer.forEach(knowAgentOf);
    return { events: answer, revision, next };
  } catch {
    return null;
  } finally {
    if (generation === timeline.generation) timeline.loading = false;
  }
}

// The log is another one, or no longer known without a gap.
function timelineReset() {
  timeline.log += 1;
  timeline.generation += 1;
  timeline.loading = false;
  timeline.loaded = false;
  timeline.rows = [];
  timeline.older = null;
  timeline.kept = 0;
  timeline.countedAt = null;
  say(byId("timeline-oldest"), "");
  if (currentView() === "timeline") openTimeline();
}

// What could not be read while the server was away is read now.
function timelineConnected() {
  if (currentView() === "timeline" && !timeline.loaded && !timeline.loading) openTimeline();
}

// What the server says about the log. The stream tells of later events, and this counts them.
function noteCount(revision, { kept, oldest }) {
  if (timeline.countedAt !== null && revision < timeline.countedAt) return;
  const came = timeline.countedAt === null ? recentEvents.filter((event) => event.id > revision) : [];
  timeline.kept = kept;
  timeline.countedAt = revision;
  timeline.countedWhen = Date.now();
  countEvents(came);
  say(byId("timeline-oldest"), oldest === null ? "" : `r${oldest}`);
}

// Counts events that the server has not counted, the newest first.
function countEvents(events) {
  if (timeline.countedAt === null) return;
  const fresh = events.filter((event) => event.id > timeline.countedAt);
  if (!fresh.length) return;
  timeline.kept += fresh.length;
  timeline.countedAt = fresh[0].id;
  placeEvents(fresh, [timeline.kept, timeline.kept - fresh.length + 1]);
}

// Where in the log events are. The server says it for the first and the last of an answer; if a filter leaves events out
// between them, it is about right for the others.
function placeEvents(events, [first, last]) {
  const steps = Math.max(events.length - 1, 1);
  events.forEach((event, index) => {
    event.position = Math.round(first + ((last - first) * index) / steps);
  });
}

// Asks for nothing but the count.
async function countAgain() {
  const { log } = timeline;
  timeline.countedWhen = Date.now();
  try {
    const answer = await ask("/api/events?limit=1&after=0");
    if (log !== timeline.log) return;
    noteCount(answer.revision, answer.log);
    if (timeline.loaded) showTimeline();
  } catch {
    // The slider then spans what was counted last.
  }
}

function openTimeline() {
  if (!timeline.loaded) {
    followTimeline();
    return;
  }
  showTimeline();
  countAgain();
}

function reloadTimeline() {
  if (timeline.following || !timeline.rows.length) followTimeline();
  else {
    const top = timeline.rows[timeline.table.firstVisible()];
    showFrom({ until: top ? top.id : revisionShown });
  }
}

async function followTimeline() {
  timeline.generation += 1;
  timeline.following = true;
  const page = await readLog({ after: 0 });
  if (!page) return;
  timeline.loaded = true;
  timeline.rows = [...cameSince(page.revision), ...page.events];
  timeline.older = page.next;
  byId("timeline-rows").scrollTop = 0;
  showTimeline();
  await readUntilSomething();
}

// What came while an answer was on its way.
function cameSince(revision) {
  return recentEvents.filter((event) => event.id > revision && fitsTimeline(event));
}

// The server looks only so far back for what fits; it may have to be asked again.
async function readUntilSomething() {
  const { generation } = timeline;
  while (generation === timeline.generation && !timeline.rows.length && timeline.older !== null) {
    if (!(await readOlder())) return;
  }
}

async function goTo(position) {
  if (position >= timeline.kept) return followTimeline();
  return showFrom({ position });
}

// Shows the log from some place on back.
async function showFrom(place) {
  timeline.generation += 1;
  timeline.following = false;
  const page = await readLog(place);
  if (!page) return undefined;
  timeline.loaded = true;
  timeline.rows = page.events;
  timeline.older = page.next;
  byId("timeline-rows").scrollTop = 0;
  showTimeline();
  return readUntilSomething();
}

async function readOlder() {
  const from = timeline.older;
  const page = await readLog({ before: from });
  // What came in at the top may have pushed out what this page follows.
  if (!page || timeline.older !== from) return false;
  timeline.older = page.next;
  timeline.rows = timeline.rows.concat(page.events);
  const dropped = Math.max(timeline.rows.length - WINDOW, 0);
  if (dropped) {
    timeline.rows = timeline.rows.slice(dropped);
    timeline.following = false;
    shiftTimeline(-dropped);
  }
  showTimeline();
  return true;
}

// The events that follow the first row, the oldest first. The server looks only so far for what fits.
async function readNewer() {
  let after = timeline.rows.length ? timeline.rows[0].id : revisionShown;
  let page = null;
  do {
    page = await readLog({ after, order: "oldest" });
    if (!page) return;
    after = page.next;
  } while (!page.events.length && after !== null);
  let events = page.events.reverse();
  if (page.next === null) {
    timeline.following = true;
    events = cameSince(page.revision).concat(events);
  }
  timeline.rows = events.concat(timeline.rows);
  if (timeline.rows.length > WINDOW) {
    timeline.rows = timeline.rows.slice(0, WINDOW);
    timeline.older = timeline.rows[WINDOW - 1].id;
  }
  showTimeline();
  shiftTimeline(events.length);
}

// Keeps what the reader looks at where it is when rows come or go above it.
function shiftTimeline(rows) {
  const { table } = timeline;
  table.body.style.height = `${timeline.rows.length * table.height}px`;
  table.scroller.scrollTop += rows * table.height;
}

function timelineArrived(events) {
  countEvents(events);
  if (currentView() === "timeline") {
    if (timeline.loaded && Date.now() - timeline.countedWhen > COUNT_AGAIN) countAgain();
    showCount();
    refreshPlace();
  }
  if (!timeline.loaded || !timeline.following) return;
  const newest = timeline.rows.length ? timeline.rows[0].id : 0;
  const fresh = events.filter((event) => event.id > newest && fitsTimeline(event));
  if (!fresh.length) return;
  const scrolled = timeline.table.scroller.scrollTop > timeline.table.height / 2;
  if (scrolled && timeline.rows.length + fresh.length > WINDOW) {
    // What is being read must not be pushed out.
    timeline.following = false;
    refreshPlace();
    return;
  }
  timeline.rows = fresh.concat(timeline.rows);
  if (timeline.rows.length > WINDOW) {
    timeline.rows = timeline.rows.slice(0, WINDOW);
    timeline.older = timeline.rows[WINDOW - 1].id;
  }
  if (currentView() !== "timeline") return;
  showTimeline();
  if (scrolled) shiftTimeline(fresh.length);
}

function timelineScrolled() {
  refreshPlace();
  if (timeline.loading || !timeline.rows.length) return;
  const { scroller, height } = timeline.table;
  const below = scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight;
  if (below < 20 * height && timeline.older !== null) readOlder();
  else if (scroller.scrollTop < 10 * height && !timeline.following) readNewer();
}

function showTimeline() {
  timeline.table.show(timeline.rows);
  showCount();
  refreshPlace();
}

function showCount() {
  byId("timeline-slider").max = Math.max(timeline.kept, 1);
  say(
    byId("timeline-count"),
    timeline.kinds.size || timeline.agent ? "filtered" : `${timeline.kept.toLocaleString("en")} total`,
  );
}

function refreshPlace() {
  const top = timeline.rows[Math.min(timeline.table.firstVisible(), timeline.rows.length - 1)];
  setAttribute(
    byId("timeline-live"),
    "aria-pressed",
    timeline.following && timeline.table.scroller.scrollTop < 4,
  );
  if (timeline.sliding) return;
  const isAtEnd = timeline.following && timeline.table.scroller.scrollTop < 4;
  // Only events that came just now have no position yet.
  const position = isAtEnd ? timeline.kept : (top?.position ?? timeline.kept);
  byId("timeline-slider").value = position;
  showPlace(position, top);
}

function showPlace(position, event) {
  const where = `event ${position} of ${timeline.kept}`;
  if (!event) {
    say(byId("timeline-place"), where);
    setAttribute(byId("timeline-slider"), "aria-valuetext", where);
    return;
  }
  const date = new Date(event.timestamp);
  const time = `${date.toDateString() === new Date().toDateString() ? "" : `${day(date)} `}${clock(date)}`;
  say(byId("timeline-place"), `r${event.id} · ${time}`);
  setAttribute(byId("timeline-slider"), "aria-valuetext", `${where}, revision ${event.id}, ${time}`);
}

function showTimelineAgents() {
  const names = new Map(model.agents.map((agent) => [agent.session_id, agent.agent_name]));
  fillSelect(byId("timeline-agent"), [...names.keys()], (session) =>
    cut(shown(agentName(names.get(session), session) || session), 60),
  );
}
