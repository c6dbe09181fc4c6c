// Everything about one thing, in a drawer beside the board. It is read again when an event concerns it, and
// remembers where the reader came from.

const drawer = { stack: [], answer: null };

const drawerPage = () => drawer.stack[drawer.stack.length - 1];

const drawerResource = new Resource({
  concerns: (event) => Boolean(drawerPage()) && drawerPage().concerns(event),
  async read() {
    const page = drawerPage();
    return page ? page.read() : { answer: null, revision: 0 };
  },
  show(answer) {
    drawer.answer = answer;
    if (answer && drawerPage()) fillDrawer(drawerPage(), drawerPage().build(answer));
  },
});
Object.defineProperty(drawerResource, "needed", { get: () => drawer.stack.length > 0 });

// Builds the open page again from its last answer: its links have titles from the lists, which may be read later. If nothing
// differs the page stays, with what the reader has selected in it.
function rebuildDrawer() {
  if (!drawer.answer || !drawerPage()) return;
  const content = drawerPage().build(drawer.answer).filter(Boolean);
  const present = [...byId("drawer-body").childNodes];
  const isSame = (node, index) => node.isEqualNode(present[index]);
  if (content.length !== present.length || !content.every(isSame)) fillDrawer(drawerPage(), content);
}

function createDrawer() {
  const dialog = byId("drawer");
  byId("drawer-close").addEventListener("click", () => dialog.close());
  byId("drawer-back").addEventListener("click", drawerBack);
  // The event comes later than the end; something else may have been opened in between.
  dialog.addEventListener("close", () => {
    if (!dialog.open) drawer.stack = [];
    showTrouble();
  });
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
}

// A page of the drawer: `kind`, `title`, `read` for what the server says, `build` for what is shown of it.
function openDrawer(page) {
  if (!byId("drawer").open) drawer.stack = [];
  drawer.stack.push(page);
  showDrawer();
}

function drawerBack() {
  if (drawer.stack.length < 2) return;
  drawer.stack.pop();
  showDrawer();
}

function showDrawer() {
  const page = drawerPage();
  drawer.answer = null;
  fillDrawer(page, [make("p.quiet", {}, "Loading…")]);
  byId("drawer-back").hidden = drawer.stack.length < 2;
  byId("drawer-body").scrollTop = 0;
  if (!byId("drawer").open) byId("drawer").showModal();
  drawerResource.restart();
}

function fillDrawer(page, content) {
  say(byId("drawer-kind"), page.kind);
  say(byId("drawer-title"), cut(shown(page.title), 1000));
  const body = byId("drawer-body");
  const focused = body.contains(document.activeElement) && document.activeElement.dataset.target;
  body.replaceChildren(...content.filter(Boolean));
  if (focused)
    [...body.querySelectorAll("[data-target]")].find((each) => each.dataset.target === focused)?.focus();
}

// Reads a thing that may no longer exist, or whose id is not valid because another program wrote it. The drawer then shows
// the reason.
async function askFor(path, values) {
  try {
    return await ask(path, { values });
  } catch (error) {
    if (!(error instanceof Refused) || ![400, 404].includes(error.status)) throw error;
    const why = error.status === 404 ? GONE : error.message;
    return { answer: { gone: why }, revision: revisionShown };
  }
}

const GONE = "No longer on the board.";

const gone = (why = GONE) => [make("p.quiet", {}, cut(shown(why), 1000))];

function facts(pairs) {
  const list = make("dl.facts");
  for (const [name, value] of pairs) {
    if (value === null || value === undefined || value === "") continue;
    const shownValue = value instanceof Node ? value : shown(value);
    list.append(make("dt", {}, name), make("dd", {}, shownValue));
  }
  return list;
}

function part(title, ...content) {
  const there = content.filter(Boolean);
  return there.length ? make("section.part", {}, make("h3", {}, title), ...there) : null;
}

function pretty(value) {
  try {
    return typeof value === "string" ? value : JSON.stringify(value, null, 2);
  } catch {
    return "(nested too deeply to show)";
  }
}

const LONGEST_VALUE = 200_000;

function valueOf(value) {
  return make("pre.value", { tabindex: "0" }, cut(shownLines(pretty(value)), LONGEST_VALUE));
}

function linkTo(label, target, open) {
  return make(
    "button.link",
    { type: "button", "data-target": target, onclick: open },
    cut(shown(label), LONGEST_IN_ROW),
  );
}

const agentLink = (session, name) =>
  session && linkTo(agentLabel(name, session), `agent ${session}`, () => openAgent(session));
const itemLink = (id, title) => id && linkTo(title || titleOf(id), `item ${id}`, () => openItem(id));

function listOf(links) {
  return links.length ? make("ul.links", {}, ...links.map((link) => make("li", {}, link))) : null;
}

function historyOf(events) {
  if (!events || !events.length) return null;
  events.forEach(knowAgentOf);
  const newest = [...events].sort((a, b) => b.id - a.id).slice(0, 200);
  return make(
    "ol.history",
    {},
    ...newest.map((event) =>
      make(
        "li",
        {},
        timeOf(event.timestamp),
        make(`span.event-type.kind-${kindOf(event)}`, {}, shown(typeOf(event))),
        make("span.history-text", {}, shown(summaryOf(event))),
      ),
    ),
  );
}
