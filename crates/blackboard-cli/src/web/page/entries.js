// Entries by scope: keys, values, versions. What was under a key before is in its drawer.

const ENTRIES_AT_ONCE = 1000;

const FIND_AFTER = 150;

const entries = { all: [], next: null, pages: 1, found: [], scopes: new Map(), table: null };

const isAboutEntries = isAbout("entry", "scope");
const chosenScope = () => byId("entries-scope").value;
const beginningOfKey = () => byId("entries-find").value.trim();

const scopesResource = new Resource({
  path: "/api/scopes",
  concerns: isAboutEntries,
  show({ items }) {
    entries.scopes = new Map(items.map(({ scope, entries: count }) => [scope, count]));
    showEntries();
  },
});

const entriesResource = new Resource({
  concerns: isAboutEntries,
  // As many pages as the reader has asked for. A page that is read later may be newer, never older.
  async read() {
    const all = [];
    let after = null;
    let first = null;
    for (let page = 0; page < entries.pages && (page === 0 || after); page += 1) {
      const path = query("/api/entries", { scope: chosenScope(), limit: ENTRIES_AT_ONCE, after });
      const { answer, revision } = await ask(path, { values: true });
      all.push(...answer.items);
      after = answer.next;
      first = first ?? revision;
    }
    return { answer: { all, next: after ?? null }, revision: first };
  },
  show({ all, next }) {
    entries.all = all;
    entries.next = next;
    showEntries();
    if (foundResource.needed && foundResource.readAt < 0) foundResource.schedule(0);
  },
});

// While not everything was read, the server finds keys that begin with what is looked for.
const foundResource = new Resource({
  concerns: isAboutEntries,
  async read() {
    const wanted = { scope: chosenScope(), prefix: beginningOfKey(), limit: ENTRIES_AT_ONCE };
    try {
      return await ask(query("/api/entries", wanted), { values: true });
    } catch (error) {
      // No key can begin like that.
      if (error instanceof Refused && error.status === 400)
        return { answer: { items: [] }, revision: revisionShown };
      throw error;
    }
  },
  show({ items }) {
    entries.found = items;
    showEntries();
  },
});
Object.defineProperty(foundResource, "needed", {
  get: () => entriesResource.needed && entries.next !== null && beginningOfKey() !== "",
});

// What has a time to live goes without an event.
for (const resource of [scopesResource, entriesResource, foundResource]) resource.ages = true;
scopesResource.neededBy("entries");
entriesResource.neededBy("entries");

function createEntries() {
  entries.table = tableRows(
    byId("entries-table"),
    [
      openColumn(
        (row) => (row.key === undefined ? row.scope : row.key),
        (row) => row.key !== undefined && openEntry(row),
        (cell, row) => {
          cell.parentNode.classList.toggle("group", row.key === undefined);
          setAttribute(cell.firstChild, "tabindex", row.key === undefined ? "-1" : null);
        },
      ),
      {
        create: (cell) => cell.classList.add("code"),
        update: (cell, row) =>
          sayRow(cell, row.key === undefined ? sizeOf(row) : lineOf(row)),
      },
      {
        create: (cell) => cell.classList.add("number"),
        update: (cell, row) => say(cell, row.version === undefined ? "" : `v${row.version}`),
      },
      { update: (cell, row) => (row.key === undefined ? say(cell, "") : sayRow(cell, row.updated_by)) },
      {
        create: (cell) => cell.append(make("time")),
        update: (cell, row) =>
          row.key === undefined ? setTime(cell.firstChild, null) : setTime(cell.firstChild, row.updated_at),
      },
    ],
    {
      key: (row) => (row.key === undefined ? `scope ${row.scope}` : `entry ${row.scope}\n${row.key}`),
      open: (row) => row.key !== undefined && openEntry(row),
    },
  );
  let pause = null;
  byId("entries-find").addEventListener("input", () => {
    showEntries();
    clearTimeout(pause);
    pause = setTimeout(() => foundResource.restart(), FIND_AFTER);
  });
  byId("entries-scope").addEventListener("change", () => {
    entries.pages = 1;
    showEntries();
    entriesResource.restart();
    foundResource.restart();
  });
  byId("entries-more").addEventListener("click", () => {
    entries.pages += 1;
    entriesResource.restart();
  });
}

// Values are stored as text by the page once, not for each row that scrolls by.
const lines = new WeakMap();

function oneLine(value) {
  const isObject = typeof value === "object" && value !== null;
  if (isObject && lines.has(value)) return lines.get(value);
  let line;
  try {
    line = cut(JSON.stringify(value), LONGEST_IN_ROW);
  } catch {
    line = "(nested too deeply to show)";
  }
  if (isObject) lines.set(value, line);
  return line;
}

// A list has only the beginning of a long value, as a text.
const lineOf = (entry) => (entry.truncated ? cut(entry.value, LONGEST_IN_ROW) : oneLine(entry.value));

const sizeOf = ({ count, of }) =>
  count < of ? `${count} of ${counted(of, "entry", "entries")}` : counted(count, "entry", "entries");

const placeOf = (entry) => `${entry.scope}\n${entry.key}`;

// What was read, and what the server found beyond it.
function knownEntries() {
  if (entries.next === null) return entries.all;
  const read = new Set(entries.all.map(placeOf));
  return entries.all.concat(entries.found.filter((entry) => !read.has(placeOf(entry))));
}

function showEntries() {
  fillSelect(byId("entries-scope"), [...entries.scopes.keys()], (scope) => cut(shown(scope), 60));
  const wantedScope = chosenScope();
  const words = wordsOf(byId("entries-find"));
  const groups = new Map();
  let count = 0;
  for (const entry of knownEntries()) {
    if (wantedScope !== "" && entry.scope !== wantedScope) continue;
    if (!fits(words, entry.key, lineOf(entry), (entry.tags || []).join(" "), entry.updated_by)) continue;
    if (!groups.has(entry.scope)) groups.set(entry.scope, []);
    groups.get(entry.scope).push(entry);
    count += 1;
  }
  const rows = [];
  for (const [scope, found] of [...groups].sort(([a], [b]) => (a < b ? -1 : 1))) {
    rows.push({ scope, count: found.length, of: entries.scopes.get(scope) ?? found.length });
    for (const entry of found) rows.push(entry);
  }
  entries.table.show(rows);
  const sizes = wantedScope === "" ? [...entries.scopes.values()] : [entries.scopes.get(wantedScope) ?? 0];
  const size = sizes.reduce((sum, each) => sum + each, 0);
  say(byId("entries-count"), count < size ? `${count} of ${size}` : count || "");
  byId("entries-foot").hidden = entries.next === null;
  say(
    byId("entries-read"),
    `${entries.all.length.toLocaleString("en")} of ${counted(size, "entry", "entries")} read. ` +
      "A search looks through these, and for keys of the others that begin with it.",
  );
}
