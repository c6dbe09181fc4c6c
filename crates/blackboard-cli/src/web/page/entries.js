// Entries by scope: keys, values, versions. What was under a key before is in its drawer.

const ENTRIES_AT_ONCE = 1000;

const entries = { all: [], next: null, pages: 1, table: null };

const entriesResource = new Resource({
  concerns: (event) => event.target_type === "entry" || event.target_type === "scope",
  // As many pages as the reader has asked for. A page that is read later may be newer, never older.
  async read() {
    const all = [];
    let after = null;
    let first = null;
    for (let page = 0; page < entries.pages && (page === 0 || after); page += 1) {
      const path = query("/api/entries", { limit: ENTRIES_AT_ONCE, after });
      const { answer, revision } = await ask(path, { values: true });
      all.push(...answer.items);
      after = answer.next;
      first = first ?? revision;
    }
    return { answer: { all, next: after }, revision: first };
  },
  show({ all, next }) {
    entries.all = all;
    entries.next = next;
    showEntries();
  },
});
// What has a time to live goes without an event.
entriesResource.ages = true;
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
          sayRow(cell, row.key === undefined ? counted(row.count, "entry", "entries") : oneLine(row.value)),
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
  byId("entries-find").addEventListener("input", showEntries);
  byId("entries-scope").addEventListener("change", showEntries);
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

function showEntries() {
  const scopes = [...new Set(entries.all.map((entry) => entry.scope))].sort();
  fillSelect(byId("entries-scope"), scopes, (scope) => cut(shown(scope), 60));
  const wantedScope = byId("entries-scope").value;
  const words = wordsOf(byId("entries-find"));
  const groups = new Map();
  let count = 0;
  for (const entry of entries.all) {
    if (wantedScope !== "" && entry.scope !== wantedScope) continue;
    if (
      words.length &&
      !fits(words, entry.key, oneLine(entry.value), (entry.tags || []).join(" "), entry.updated_by)
    )
      continue;
    if (!groups.has(entry.scope)) groups.set(entry.scope, []);
    groups.get(entry.scope).push(entry);
    count += 1;
  }
  const rows = [];
  for (const [scope, found] of [...groups].sort(([a], [b]) => (a < b ? -1 : 1))) {
    rows.push({ scope, count: found.length });
    for (const entry of found) rows.push(entry);
  }
  entries.table.show(rows);
  say(
    byId("entries-count"),
    count === entries.all.length ? count || "" : `${count} of ${entries.all.length}`,
  );
  byId("entries-foot").hidden = !entries.next;
}
