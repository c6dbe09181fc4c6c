// The log: filters, and a slider that goes back to any place in it.
//
// The rows are a window onto the log. It grows at both ends as the reader scrolls there, and what is far away
// is dropped, so that a log of any length costs the same. While the window follows, new events come in at its
// top.

const PAGE = 200;
const WINDOW = 2000;

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
    const revision = Number(slider.value);
    clearTimeout(settle);
    timeline.sliding = true;
    showPlace(revision, null);
    settle = setTimeout(async () => {
      await goTo(revision);
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

// Asks for a part of the log; null when somebody has asked for another one since.
async function readLog(place) {
  const generation = timeline.generation;
  timeline.loading = true;
  try {
    const { answer, revision, next } = await ask(
      query("/api/events", { limit: PAGE, ...place, ...timelineFilter() }),
    );
    if (generation !== timeline.generation) return null;
    noteRevision(revision);
    return { events: answer, revision, next };
  } catch {
    return null;
  } finally {
    if (generation === timeline.generation) timeline.loading = false;
  }
}

// The log is another one, or not known without a gap any more.
function timelineReset() {
  timeline.log += 1;
  timeline.generation += 1;
  timeline.loading = false;
  timeline.loaded = false;
  timeline.rows = [];
  timeline.older = null;
  say(byId("timeline-oldest"), "");
  if (currentView() === "timeline") openTimeline();
}

// What could not be read while the server was away is read now.
function timelineConnected() {
  if (currentView() === "timeline" && !timeline.loaded && !timeline.loading) openTimeline();
}

// The oldest event that is kept, by halving: before it there is nothing.
async function findOldest() {
  const { log } = timeline;
  const isThere = async (revision) =>
    (await ask(`/api/events?limit=1&before=${revision + 1}`)).answer.length > 0;
  try {
    let [nothing, something] = [0, Math.max(revisionShown, 1)];
    if (await isThere(1)) something = 1;
    while (something - nothing > 1) {
      const middle = Math.floor((nothing + something) / 2);
      if (await isThere(middle)) something = middle;
      else nothing = middle;
    }
    if (log !== timeline.log) return;
    byId("timeline-slider").min = something;
    say(byId("timeline-oldest"), `r${something}`);
  } catch {
    // The slider then begins at the beginning of all boards.
  }
}

function openTimeline() {
  if (byId("timeline-oldest").textContent === "") findOldest();
  if (!timeline.loaded) followTimeline();
  else showTimeline();
}

function reloadTimeline() {
  if (timeline.following || !timeline.rows.length) followTimeline();
  else goTo(timeline.rows[timeline.table.firstVisible()]?.id ?? revisionShown);
}

async function followTimeline() {
  timeline.generation += 1;
  timeline.following = true;
  const page = await readLog({ before: MOST });
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

// No board has had as many events.
const MOST = Number.MAX_SAFE_INTEGER;

async function goTo(revision) {
  timeline.generation += 1;
  timeline.following = revision >= revisionShown;
  if (timeline.following) return followTimeline();
  const page = await readLog({ before: revision + 1 });
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

// The server answers with the newest that fit. So that nothing is left out below them, the part of the log
// that is asked for has to be small enough to fit into one answer; where few events fit it may be long.
async function readNewer() {
  let from = timeline.rows.length ? timeline.rows[0].id : revisionShown;
  let length = PAGE;
  let events = [];
  let readAt = revisionShown;
  while (!events.length && from < readAt) {
    const page = await readLog({ after: from, before: from + length + 1 });
    if (!page) return;
    if (page.next !== null && length > 1) {
      length = Math.ceil(length / 4);
      continue;
    }
    events = page.events;
    readAt = page.revision;
    from += length;
    length *= 4;
  }
  if (from >= readAt) {
    timeline.following = true;
    events = cameSince(Math.max(readAt, events.length ? events[0].id : 0)).concat(events);
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
  byId("timeline-slider").max = Math.max(revisionShown, 1);
  if (!timeline.loaded || !timeline.following) {
    if (currentView() === "timeline") refreshPlace();
    return;
  }
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
  byId("timeline-slider").max = Math.max(revisionShown, 1);
  say(
    byId("timeline-count"),
    timeline.kinds.size || timeline.agent ? "filtered" : `${revisionShown.toLocaleString("en")} in all`,
  );
  refreshPlace();
}

function refreshPlace() {
  const top = timeline.rows[Math.min(timeline.table.firstVisible(), timeline.rows.length - 1)];
  setAttribute(
    byId("timeline-live"),
    "aria-pressed",
    timeline.following && timeline.table.scroller.scrollTop < 4,
  );
  if (timeline.sliding) return;
  byId("timeline-slider").value =
    timeline.following && timeline.table.scroller.scrollTop < 4 ? revisionShown : top ? top.id : 1;
  showPlace(top ? top.id : revisionShown, top);
}

function showPlace(revision, event) {
  const date = event && new Date(event.timestamp);
  const place = date
    ? `${date.toDateString() === new Date().toDateString() ? "" : `${day(date)} `}${clock(date)}`
    : "…";
  say(byId("timeline-place"), `r${revision} · ${place}`);
  setAttribute(byId("timeline-slider"), "aria-valuetext", `revision ${revision}, ${place}`);
}

function showTimelineAgents() {
  const names = new Map(model.agents.map((agent) => [agent.session_id, agent.agent_name]));
  fillSelect(byId("timeline-agent"), [...names.keys()], (session) =>
    cut(shown(names.get(session) || session), 60),
  );
}
