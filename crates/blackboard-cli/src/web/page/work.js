// Work as a board: a column for each status, a card for each item, with what it waits for and what waits for
// it.

const COLUMNS = [
  { status: "available", title: "Available" },
  { status: "claimed", title: "Claimed" },
  { status: "blocked", title: "Blocked" },
  { status: "completed", title: "Completed" },
];

const workColumns = [];

// Which items wait for an item.
let waitingFor = new Map();

const isMissing = (item, id) => (item.missing_blockers || []).includes(id);

// What an item is blocked by. An item that does not exist comes first: a person has to create it, or correct its id.
function blockersOf(item) {
  if (item.status === "completed") return [];
  const open = item.open_blockers || [];
  return [...open.filter((id) => isMissing(item, id)), ...open.filter((id) => !isMissing(item, id))];
}

const blockerText = (item, id) =>
  isMissing(item, id) ? `${cut(shown(id), 100)} (not created)` : cut(shown(titleOf(id)), 100);

function blockedByText(item) {
  const blockers = blockersOf(item).map((id) => blockerText(item, id));
  return blockers.length ? `blocked by ${blockers.join(", ")}` : "";
}

// From when on the age of an item counts, as on the command line: from its claim if it is claimed, else from its creation.
const ageSince = (item) => (item.status === "claimed" && item.claimed_at) || item.created_at;

function createBoard() {
  for (const { status, title } of COLUMNS) {
    const count = make("span.count");
    const list = make("div.card-list", { role: "list", "aria-label": `${title} work items` });
    const heading = make(
      "h2",
      { id: `column-${status}` },
      make(`span.dot.dot-${status}`, { "aria-hidden": "true" }),
      title,
    );
    const column = make(
      `section.panel.column`,
      { "aria-labelledby": `column-${status}`, "data-status": status },
      make("header.panel-head", {}, heading, count),
      make(
        "div.rows.rows-column",
        { tabindex: "0", role: "region", "aria-labelledby": `column-${status}` },
        list,
      ),
      make("p.empty", { hidden: true }, "No work items."),
    );
    byId("work-board").append(column);
    const rows = new Rows(list, {
      key: (item) => item.item_id,
      create: createItemCard,
      update: updateItemCard,
    });
    workColumns.push({ status, rows, count });
  }
  byId("work-find").addEventListener("input", showBoard);
  byId("work-project").addEventListener("change", showBoard);
}

function createItemCard() {
  const cell = make("div.slot", { role: "listitem" });
  const card = make(
    "button.item",
    { type: "button", onclick: () => openItem(cell.item.item_id) },
    make("span.item-head", {}, make("span"), make("span.item-id"), make("time")),
    make("span.item-title"),
    make("span.item-foot", {}, make("span.item-holder"), make("span.item-waits"), make("span.item-holds")),
  );
  for (const type of ["focus", "pointerenter"]) card.addEventListener(type, () => relate(cell.item));
  for (const type of ["blur", "pointerleave"]) card.addEventListener(type, () => relate(null));
  cell.append(card);
  return cell;
}

function updateItemCard(cell, item) {
  const card = cell.firstChild;
  const [head, title, foot] = card.children;
  const [priority, id, time] = head.children;
  const [holder, waits, holds] = foot.children;
  setPriority(priority, item.priority);
  sayRow(id, item.item_id);
  setTime(time, item.completed_at || ageSince(item));
  say(title, cut(shown(item.title), LONGEST_IN_ROW));
  say(
    holder,
    item.claimed_by_name
      ? cut(shown(agentName(item.claimed_by_name, item.claimed_by)), 100)
      : item.project_id
        ? cut(shown(item.project_id), 100)
        : "",
  );
  const blockedBy = blockedByText(item);
  say(waits, cut(blockedBy, LONGEST_IN_ROW));
  setAttribute(waits, "title", blockedBy === "" ? null : cut(blockedBy, 4 * LONGEST_IN_ROW));
  const waiting = waitingFor.get(item.item_id);
  say(holds, waiting ? `blocks ${waiting.length}` : "");
  card.classList.toggle("related", isRelated(item));
}

const titleOf = (id) => (model.itemById.has(id) ? model.itemById.get(id).title : id);

let relatedTo = null;

function isRelated(item) {
  return (
    relatedTo !== null &&
    (blockersOf(relatedTo).includes(item.item_id) || blockersOf(item).includes(relatedTo.item_id))
  );
}

// Shows which cards on the board wait for this one, and which it waits for.
function relate(item) {
  relatedTo = item;
  for (const { rows } of workColumns) {
    for (const cell of rows.used.values())
      cell.firstChild.classList.toggle("related", isRelated(cell.item));
  }
}

function showBoard() {
  const projects = [
    ...new Set([...model.work, ...model.completed].map((item) => item.project_id).filter(Boolean)),
  ].sort();
  fillSelect(byId("work-project"), projects, (project) => cut(shown(project), 60));
  const project = byId("work-project").value;
  const words = wordsOf(byId("work-find"));
  const wanted = (item) =>
    (project === "" || item.project_id === project) &&
    fits(words, item.title, item.item_id, item.project_id, item.claimed_by_name, item.source_ref);
  waitingFor = new Map();
  for (const item of model.work) {
    for (const blocker of blockersOf(item)) {
      if (waitingFor.has(blocker)) waitingFor.get(blocker).push(item.item_id);
      else waitingFor.set(blocker, [item.item_id]);
    }
  }
  for (const { status, rows, count } of workColumns) {
    const all = status === "completed" ? model.completed : model.work;
    const items = all.filter((item) => item.status === status && wanted(item));
    rows.show(items);
    const more = status === "completed" && model.completed.length >= COMPLETED_SHOWN;
    say(count, more ? `${items.length}+` : items.length);
  }
}
