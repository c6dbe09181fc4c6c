// Activity: a lane for each session, drawn as SVG. Positions are shares of the time shown, so that
// nothing has to be measured and the chart fits any width.

const lanes = { rows: null, from: 0, to: 0, hours: 6, all: [] };

const lanesResource = new Resource({
  path: () => query("/api/lanes", { hours: lanes.hours }),
  concerns: isAbout("work_item", "agent"),
  pause: SECOND,
  show(answer) {
    lanes.all = answer.items;
    for (const lane of answer.items) knowAgent(lane.agent_name, lane.session_id);
    showLanes();
  },
});
lanesResource.ages = true;
lanesResource.neededBy("lanes");

function createLanes() {
  lanes.rows = new Rows(byId("lanes"), {
    key: (track) => `${track.lane.session_id} ${track.index}`,
    create() {
      const name = make("button.link", {
        type: "button",
        onclick: () => openAgent(row.item.lane.session_id),
      });
      const row = make(
        "div.lane",
        { role: "listitem" },
        make("span.lane-name", {}, name),
        draw("svg.lane-chart", { role: "group", height: "24" }),
      );
      return row;
    },
    update(row, track) {
      const { lane, index } = track;
      const name = row.querySelector("button");
      // A session that held several items at a time has a row for each, and its name on the first.
      name.hidden = index > 0;
      row.classList.toggle("goes-on", index > 0);
      const shownName = agentName(lane.agent_name, lane.session_id);
      sayRow(name, shownName, `${shown(agentLabel(lane.agent_name, lane.session_id))}\n${shown(lane.project || "no project")}`);
      if (row.track === track && row.shownTo === lanes.to) return;
      row.track = track;
      row.shownTo = lanes.to;
      drawTrack(row.lastChild, track);
    },
  });
  byId("lanes-hours").addEventListener("change", (event) => {
    lanes.hours = Number(event.target.value);
    lanesResource.restart();
  });
}

const share = (time) =>
  (100 * (Math.min(Math.max(time, lanes.from), lanes.to) - lanes.from)) / (lanes.to - lanes.from);
const percent = (number) => `${number.toFixed(3)}%`;

const ENDS = { completed: "completed", released: "released", stale: "agent went stale", blocked: "blocked" };

// Puts what happened at the same time into different tracks, in the order of beginning.
function tracksOf(lane) {
  const tracks = [];
  const spans = [...lane.spans].sort((a, b) => (a.from < b.from ? -1 : 1));
  for (const each of spans) {
    const free = tracks.find((track) => track.until !== null && track.until <= each.from);
    const track =
      free ||
      (tracks.length < MOST_TRACKS ? { lane, index: tracks.length, spans: [] } : tracks[MOST_TRACKS - 1]);
    if (!tracks.includes(track)) tracks.push(track);
    track.spans.push(each);
    track.until = each.to ?? null;
  }
  return tracks.length ? tracks : [{ lane, index: 0, spans: [] }];
}

const MOST_TRACKS = 8;

function drawTrack(chart, { spans }) {
  const marks = ticks().map((tick) => {
    const x = percent(share(tick));
    return draw("line.lane-tick", { x1: x, x2: x, y1: "0", y2: "100%" });
  });
  const bars = spans.map((span_) => {
    const from = Date.parse(span_.from);
    const to = span_.to ? Date.parse(span_.to) : lanes.to;
    const end =
      span_.to === null || span_.to === undefined ? "now" : ENDS[span_.ended] ? span_.ended : "released";
    const title = cut(shown(span_.title || span_.item_id), 200);
    const when = `${clock(new Date(from))}–${span_.to ? clock(new Date(to)) : "now"}, ${span(to - from)}`;
    const width = Math.max(share(to) - share(from), 0.3);
    const x = Math.min(share(from), 100 - width);
    return draw(
      "svg.span",
      {
        x: percent(x),
        y: "2",
        width: percent(width),
        height: "20",
        role: "button",
        tabindex: "0",
        "aria-label": `${title}, ${when}, ${ENDS[end] || "in progress"}`,
        "data-span": `${span_.item_id} ${span_.from}`,
        onclick: () => openItem(span_.item_id),
        onkeydown(event) {
          if (event.key !== "Enter" && event.key !== " ") return;
          event.preventDefault();
          openItem(span_.item_id);
        },
      },
      draw("title", {}, `${title}\n${shown(span_.item_id)}\n${when}\n${ENDS[end] || "in progress"}`),
      draw(`rect.bar.bar-${end}`, { width: "100%", height: "20", rx: "4" }),
      draw("text.bar-label", { x: "6", y: "14" }, title),
    );
  });
  const focused = chart.contains(document.activeElement) && document.activeElement.dataset.span;
  chart.replaceChildren(...marks, ...bars);
  if (focused) bars.find((bar) => bar.dataset.span === focused)?.focus({ preventScroll: true });
  setAttribute(chart, "aria-label", bars.length ? counted(bars.length, "item", "items") : "no work in this period");
}

function ticks() {
  const steps = [MINUTE, 2 * MINUTE, 5 * MINUTE, 10 * MINUTE, 30 * MINUTE, HOUR, 2 * HOUR, 4 * HOUR, 12 * HOUR];
  const most = byId("lanes-axis").clientWidth < 600 ? 4 : 8;
  const step = steps.find((each) => (lanes.to - lanes.from) / each <= most) || DAY;
  const offset = new Date(lanes.from).getTimezoneOffset() * MINUTE;
  const found = [];
  for (let tick = Math.ceil((lanes.from - offset) / step) * step + offset; tick < lanes.to; tick += step)
    found.push(tick);
  return found;
}

// A little before the first thing that was done: a board that is minutes old does not show hours of nothing.
function beginning() {
  const times = lanes.all.flatMap((lane) => lane.spans.map((each) => Date.parse(each.from)));
  const first = times.reduce((one, other) => Math.min(one, other), lanes.to);
  return Math.min(first - 0.05 * (lanes.to - first), lanes.to - MINUTE);
}

function showLanes() {
  lanes.to = Date.now();
  lanes.from = Math.max(lanes.to - lanes.hours * HOUR, beginning());
  const labels = ticks().map((tick) =>
    draw(
      "text.tick-label",
      { x: percent(share(tick)), y: "14" },
      `${pad(new Date(tick).getHours())}:${pad(new Date(tick).getMinutes())}`,
    ),
  );
  byId("lanes-axis").replaceChildren(
    make("span.lane-name"),
    draw("svg.lane-chart", { height: "20" }, ...labels),
  );
  lanes.rows.show(lanes.all.flatMap(tracksOf));
  say(byId("lanes-count"), lanes.all.length ? counted(lanes.all.length, "agent", "agents") : "");
}
