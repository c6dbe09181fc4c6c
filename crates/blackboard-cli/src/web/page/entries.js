// Entries by scope: keys, values, versions. What was under a key before is in its drawer.

const ENTRIES_AT_ONCE = 1000;

const FIND_AFTER = 150;

// How many answers of a search are read before the reader is asked whether to go on. Each searches up to 20,000 entries.
const SEARCH_STEPS = 5;

const entries = { all: [], next: null, pages: 1, steps: SEARCH_STEPS, search: null, scopes: new Map(), table: null };

const isAboutEntries = isAbout("entry", "scope");
const chosenScope = () => byId("entries-scope").value;
const searchText = () => byId("entries-find").value.trim();

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
  },
});

// The server searches: the page has neither all entries nor all of a long value. What it did not search, it says.
const searchResource = new Resource({
  concerns: isAboutEntries,
  async read() {
    const [scope, text] = [chosenScope(), searchText()];
    const found = [];
    let [after, searched, first] = [null, 0, null];
    for (let step = 0; step < entries.steps && (step === 0 || after); step += 1) {
      const path = query("/api/entries", { scope, search: text, limit: ENTRIES_AT_ONCE, after });
      const { answer, revision } = await ask(path, { values: true });
      found.push(...answer.items);
      searched += answer.searched;
      after = answer.next ?? null;
      first = first ?? revision;
      if (found.length >= ENTRIES_AT_ONCE) break;
    }
    return { answer: { scope, text, found, searched, next: after }, revision: first };
  },
  show(search) {
    entries.search = search;
    showEntries();
  },
});
Object.defineProperty(searchResource, "needed", {
  get: () => entriesResource.needed && searchText() !== "",
});

// What has a time to live goes without an event.
for (const resource of [scopesResource, entriesResource, searchResource]) resource.ages = true;
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
  const searchAgain = (delay) => {
    entries.steps = SEARCH_STEPS;
    showEntries();
    clearTimeout(pause);
    pause = setTimeout(() => searchResource.restart(), delay);
  };
  byId("entries-find").addEventListener("input", () => searchAgain(FIND_AFTER));
  byId("entries-scope").addEventListener("change", () => {
    entries.pages = 1;
    entriesResource.restart();
    searchAgain(0);
  });
  byId("entries-more").addEventListener("click", () => {
    if (searchText() !== "") {
      entries.steps += SEARCH_STEPS;
      searchResource.restart();
    } else {
      entries.pages += 1;
      entriesResource.restart();
    }
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

// The answer of the server to what is looked for now; null while there is none.
function currentSearch() {
  const { search } = entries;
  return search && search.text === searchText() && search.scope === chosenScope() ? search : null;
}

// Until the server has answered, what matches among the entries that were read.
function shownEntries() {
  if (searchText() === "") return entries.all;
  const words = wordsOf(byId("entries-find"));
  const matches = (entry) =>
    fits(words, entry.key, lineOf(entry), (entry.tags || []).join(" "), entry.updated_by);
  return currentSearch()?.found ?? entries.all.filter(matches);
}

// Why no entry is shown.
function showNoEntries(size) {
  const element = byId("entries-empty");
  const search = currentSearch();
  if (searchText() !== "") {
    const failed = failing.has(searchResource) ? "The search failed." : "Searching…";
    const none = search && search.next === null ? "No matching entries." : searchedText(search, size);
    say(element, search ? none : failed);
  } else if (entriesResource.readAt < 0) {
    say(element, "Loading…");
  } else if (!element.querySelector("code")) {
    element.replaceChildren("No entries. Add one with ", make("code", {}, commandFor("write KEY VALUE")), ".");
  }
}

const searchedText = (search, size) =>
  search &&
  `${search.found.length ? "" : "No match so far. "}Searched ${search.searched.toLocaleString("en")} of ${counted(size, "entry", "entries")}.`;

function showEntries() {
  fillSelect(byId("entries-scope"), [...entries.scopes.keys()], (scope) => cut(shown(scope), 60));
  const wantedScope = chosenScope();
  const groups = new Map();
  let count = 0;
  for (const entry of shownEntries()) {
    if (wantedScope !== "" && entry.scope !== wantedScope) continue;
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
  showNoEntries(size);
  const search = currentSearch();
  const isSearch = searchText() !== "";
  byId("entries-foot").hidden = isSearch ? !search || search.next === null : entries.next === null;
  say(byId("entries-more"), isSearch ? "Search more" : "Load more");
  say(
    byId("entries-read"),
    isSearch
      ? searchedText(search, size) || ""
      : `${entries.all.length.toLocaleString("en")} of ${counted(size, "entry", "entries")} loaded.`,
  );
}
