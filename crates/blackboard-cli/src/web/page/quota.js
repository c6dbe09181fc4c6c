// The token quota, if the server has one: a card in the overview, and a view with windows, usage over time, agents and
// work items. Its ledger has no events, so it is read now and then, like signs of life.

const quota = { answer: null, drawn: "", card: null };

const SEGMENTS = [
  { kind: "used", says: "used" },
  { kind: "reserved", says: "reserved" },
  { kind: "free", says: "free for agents" },
  { kind: "kept", says: "kept for you" },
];

function createQuota() {
  if (!VIEWS.includes("quota")) return;
  byId("tab-quota").hidden = false;
  quota.card = make("span.card-value.tone-plain", {}, "–");
  const button = make(
    "button.card",
    { type: "button", onclick: () => openView("quota") },
    make("span.card-label", {}, "Token quota"),
    quota.card,
  );
  byId("summary-cards").append(make("div", { role: "listitem" }, button));
  const resource = new Resource({
    path: () => query("/api/quota", { hours: byId("quota-hours").value }),
    concerns: () => false,
    show(answer) {
      quota.answer = answer;
      showQuotaCard();
      if (currentView() === "quota") showQuota();
    },
  });
  resource.ages = true;
  resource.neededBy("overview", "quota");
  byId("quota-hours").addEventListener("change", () => resource.restart());
}

// Rounded down: `999`, `1.2k`, `320k`, `2.1M`.
function tokens(count) {
  for (const [unit, name] of [
    [1e9, "G"],
    [1e6, "M"],
    [1e3, "k"],
  ]) {
    if (count < unit) continue;
    const tenths = Math.floor(count / (unit / 10)) / 10;
    return `${tenths < 10 ? tenths : Math.floor(tenths)}${name}`;
  }
  return String(count);
}

const usedPercent = ({ used, budget }) => Math.floor((100 * used) / Math.max(budget, 1));

// How much the state of a window worries: nothing is left for agents, a threshold was passed, or neither.
const worryOf = (window_) => (window_.available === 0 ? "full" : window_.warning !== null ? "warned" : "fine");

const windowsOf = (answer) => (answer.providers || []).flatMap(({ windows }) => windows);

function showQuotaCard() {
  const windows = windowsOf(quota.answer);
  const fullest = windows.reduce((one, other) => (one && usedPercent(one) >= usedPercent(other) ? one : other), null);
  say(quota.card, fullest ? `${usedPercent(fullest)}%` : "–");
  const tones = { full: "blocked", warned: "warned", fine: "plain" };
  quota.card.className = `card-value tone-${fullest ? tones[worryOf(fullest)] : "plain"}`;
  setAttribute(quota.card, "title", fullest ? `${fullest.window} window: ${windowText(fullest, 0)}` : null);
}

function showQuota() {
  if (!quota.answer) return;
  const { providers = [], histories, uncounted = [], problem } = quota.answer;
  const state = JSON.stringify([providers, histories, uncounted, problem]);
  if (state === quota.drawn) return;
  quota.drawn = state;
  const place = byId("quota-providers");
  const focused = place.contains(document.activeElement) && document.activeElement.dataset.opens;
  const panels = providers.map((provider) =>
    providerPanel(provider, histories.find((history) => history.provider === provider.provider)),
  );
  if (uncounted.length) panels.push(uncountedPart(uncounted));
  if (problem) panels.push(make("p.trouble.in-view", {}, `Cannot read the token quota: ${shown(problem)}`));
  place.replaceChildren(...panels);
  if (focused) {
    const again = [...place.querySelectorAll("[data-opens]")].find(({ dataset }) => dataset.opens === focused);
    if (again) again.focus({ preventScroll: true });
  }
}

// Usage of models that no provider has. It is missing in every bar.
function uncountedPart(models) {
  const shownModels = models.slice(0, 5).map(({ model, messages }) => {
    const name = model ? cut(shown(model), 80) : "an unknown model";
    return `${counted(messages, "message", "messages")} of ${name}`;
  });
  const others = models.length - shownModels.length;
  if (others) shownModels.push(counted(others, "other model", "other models"));
  return make(
    "p.quiet.in-view.quota-uncounted",
    {},
    `Not counted, because no provider has the model: ${shownModels.join(", ")}`,
  );
}

function providerPanel(provider, history) {
  const id = `quota-provider-${provider.provider}`;
  const { load, windows } = provider;
  const headroom = load.headroom === null ? "" : `, ${tokens(load.headroom)} left`;
  return make(
    "section.panel.quota",
    { "aria-labelledby": id },
    make(
      "header.panel-head",
      {},
      make("h2", { id }, shown(provider.provider)),
      make("span.count", {}, provider.tier ? cut(shown(provider.tier), 80) : ""),
      make(
        "span.count.quota-load",
        {},
        `${counted(load.active_agents, "active agent", "active agents")}, ${tokens(load.tokens_per_minute)} tokens/min${headroom}`,
      ),
    ),
    windows.length
      ? make("ul.quota-windows", {}, ...windows.map((window_) => windowRow(window_, provider.operator)))
      : make("p.empty", {}, "No windows are configured."),
    make("div.quota-legend.legend", { "aria-hidden": "true" }, ...SEGMENTS.map(({ kind, says }) => make(`span.key.key-${kind}`, {}, says))),
    history ? historyPart(history) : null,
    make("div.quota-tables", {}, agentsPart(provider), itemsPart(provider)),
  );
}

// The parts of a budget. Together they are the complete budget, also if more than that was used.
function partsOf({ budget, used, reserved, available }, operator) {
  const parts = { used: Math.min(used, budget) };
  parts.reserved = Math.min(reserved, budget - parts.used);
  parts.kept = Math.min(operator, budget - parts.used - parts.reserved);
  parts.free = available;
  return parts;
}

function windowText(window_, operator) {
  const { kept } = partsOf(window_, operator);
  return [
    `${tokens(window_.used)} of ${tokens(window_.budget)} used (${usedPercent(window_)}%${window_.reported ? ", as the platform reports" : ""})`,
    window_.reserved ? `${tokens(window_.reserved)} reserved` : null,
    `${tokens(window_.available)} free for agents`,
    kept ? `${tokens(kept)} kept for you` : null,
  ]
    .filter(Boolean)
    .join(", ");
}

function windowRow(window_, operator) {
  const parts = partsOf(window_, operator);
  const worry = worryOf(window_);
  let from = 0;
  const segments = SEGMENTS.map(({ kind }) => {
    const width = (100 * parts[kind]) / Math.max(window_.budget, 1);
    const rect = draw(`rect.part-${kind}`, { x: percent(from), width: percent(width), height: "14" });
    from += width;
    return width > 0 ? rect : null;
  });
  const text = windowText(window_, operator);
  const notes = [];
  if (window_.warning !== null)
    notes.push(make("span.quota-warning", {}, `Past ${Math.round(window_.warning * 100)}% of its budget`));
  if (window_.used_up_at) notes.push(forecastNote(window_));
  if (window_.frees_at)
    notes.push(make("span", {}, window_.reported ? "Resets " : "Starts to free up ", timeOf(window_.frees_at)));
  return make(
    "li.quota-window",
    { "data-worry": worry },
    make("span.quota-length", {}, `${shown(window_.window)} window`),
    draw("svg.quota-bar", { height: "14", role: "img", "aria-label": `${shown(window_.window)} window: ${text}` }, ...segments),
    make("span.quota-percent", { "aria-hidden": "true" }, `${usedPercent(window_)}%`),
    make("span.quota-text", { "aria-hidden": "true" }, text),
    notes.length ? make("span.quota-notes", {}, ...notes) : null,
  );
}

function forecastNote({ window, used_up_at: moment }) {
  if (Date.parse(moment) <= Date.now()) return make("span.quota-warning", {}, `The ${shown(window)} window is used up`);
  return make("span.quota-warning", {}, `At this rate the ${shown(window)} window is used up `, timeOf(moment));
}

const STEPS = { five_minutes: "5 minutes", hour: "hour", day: "day" };

// Days are those of UTC.
function pointTime(start, step) {
  if (step === "day") return start.slice(0, 10);
  const date = new Date(start);
  return `${day(date)} ${pad(date.getHours())}:${pad(date.getMinutes())}`;
}

function historyPart({ points, step }) {
  const most = points.reduce((highest, point) => Math.max(highest, point.tokens), 0);
  const total = points.reduce((sum, point) => sum + point.tokens, 0);
  const title = make("h3", {}, `Tokens per ${STEPS[step] || "step"}`);
  if (most === 0) return make("div.quota-part", {}, title, make("p.quiet", {}, "No tokens were recorded in this period."));
  const width = 100 / points.length;
  const bars = points.map((point, index) => {
    const height = Math.max((72 * point.tokens) / most, point.tokens > 0 ? 1 : 0);
    const requests = counted(point.requests, "request", "requests");
    return draw(
      "g",
      {},
      draw("title", {}, `${pointTime(point.start, step)}\n${point.tokens.toLocaleString("en")} tokens, ${requests}`),
      // All of the column has the title.
      draw("rect.chart-column", { x: percent(index * width), y: "0", width: percent(width), height: "80" }),
      draw("rect.chart-bar", {
        x: percent((index + 0.1) * width),
        y: (80 - height).toFixed(1),
        width: percent(0.8 * width),
        height: height.toFixed(1),
      }),
    );
  });
  const highest = points.find((point) => point.tokens === most);
  const [first, last] = [points[0], points[points.length - 1]];
  const label = `${tokens(total)} tokens since ${pointTime(first.start, step)}; most, ${tokens(most)}, at ${pointTime(highest.start, step)}`;
  return make(
    "div.quota-part",
    {},
    title,
    make("p.quiet", {}, label),
    draw("svg.quota-chart", { height: "80", role: "img", "aria-label": label }, ...bars),
    make(
      "div.quota-axis",
      { "aria-hidden": "true" },
      make("span", {}, pointTime(first.start, step)),
      make("span", {}, pointTime(last.start, step)),
    ),
  );
}

function plainTable(title, columns, rows) {
  if (!rows.length) return null;
  const cell = (text, index) =>
    make(index === 0 ? "td" : "td.number", {}, text instanceof Node ? text : String(text));
  return make(
    "div.quota-part",
    {},
    make("h3", {}, title),
    make(
      "table.plain",
      {},
      make("thead", {}, make("tr", {}, ...columns.map((name) => make("th", { scope: "col" }, name)))),
      make("tbody", {}, ...rows.map((row) => make("tr", {}, ...row.map(cell)))),
    ),
  );
}

function opener(text, id, open) {
  const button = make("button.link", { type: "button", "data-opens": id, onclick: open });
  sayRow(button, text);
  return button;
}

function agentsPart({ agents, other_boards: others }) {
  const rows = agents.map(({ session, agent, tokens: used, usage }) => [
    session ? opener(agentLabel(agent, session), session, () => openAgent(session)) : "without a session",
    tokens(used),
    tokens(usage.input + usage.cache_write),
    tokens(usage.cache_read),
    tokens(usage.output + usage.reasoning),
  ]);
  if (others && others.tokens) rows.push(["other boards", tokens(others.tokens), "", "", ""]);
  return plainTable("Agents", ["Agent", "Tokens", "Input", "Cache read", "Output"], rows);
}

function itemsPart({ items, other_boards: others }) {
  const rows = items.map(({ item, tokens: used }) => [opener(item, item, () => openItem(item)), tokens(used)]);
  if (others && others.items) rows.push(["other boards", tokens(others.items)]);
  return plainTable("Work items", ["Work item", "Tokens"], rows);
}
