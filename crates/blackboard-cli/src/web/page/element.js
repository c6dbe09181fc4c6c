// Elements. All text of the board goes through `text` or `shown` into text nodes: nothing here reads HTML.

const SVG = "http://www.w3.org/2000/svg";
const LONGEST_IN_ROW = 400;

// A command for the board of this page, which a reader can copy.
const commandFor = (words) => `${byId("main").dataset.program} ${words}`;

const byId = (id) => document.getElementById(id);

// `make("td.name", { title: "…" }, "text", child)`. Attributes that are null or false are left out.
function make(what, attributes, ...children) {
  return furnish(document.createElement(what.split(".")[0]), what, attributes, children);
}

function draw(what, attributes, ...children) {
  return furnish(document.createElementNS(SVG, what.split(".")[0]), what, attributes, children);
}

function furnish(element, what, attributes, children) {
  const classes = what.split(".").slice(1);
  if (classes.length) element.setAttribute("class", classes.join(" "));
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

// Sets text only where it differs, so that a selection or a hover survives an update.
function say(element, text) {
  const wanted = String(text);
  if (element.textContent !== wanted) element.textContent = wanted;
}

function setAttribute(element, name, value) {
  if (value === null || value === undefined) element.removeAttribute(name);
  else if (element.getAttribute(name) !== String(value)) element.setAttribute(name, value);
}

// Characters that reorder, hide or break text are shown as what they are, as the command line does.
// The joiners and variation selectors of ordinary words and emoji stay.
const BELONGS = String.raw`(?<=\p{Extended_Pictographic})[\ufe0e\ufe0f]|(?<=[#*0-9])[\ufe0e\ufe0f](?=\u20e3)|(?<=[\p{Alphabetic}\p{M}])[\u200c\u200d](?=\p{Alphabetic})|(?<=[\p{Extended_Pictographic}\u{1f3fb}-\u{1f3ff}\ufe0e\ufe0f])\u200d(?=\p{Extended_Pictographic})`;
const HIDDEN = String.raw`\u007f-\u009f\u2028\u2029\u2800\ufff9-\ufffb\u{13441}\u{13442}\u{16fe4}\u{1d159}\p{Default_Ignorable_Code_Point}`;
const HARMFUL = new RegExp(String.raw`(?!${BELONGS})[\u0000-\u001f${HIDDEN}]`, "gu");
const HARMFUL_IN_LINES = new RegExp(String.raw`(?!${BELONGS})[\u0000-\u0008\u000b-\u001f${HIDDEN}]`, "gu");
const NAMED = { "\n": "\\n", "\r": "\\r", "\t": "\\t" };
const named = (character) => NAMED[character] || `\\u{${character.codePointAt(0).toString(16)}}`;

function shown(text) {
  return String(text ?? "").replace(HARMFUL, named);
}

function shownLines(text) {
  return String(text ?? "").replace(HARMFUL_IN_LINES, named);
}

function cut(text, length) {
  return text.length > length ? text.slice(0, length) + "…" : text;
}

// What fits into a row: one line of harmless text, and more of it on hover.
function sayRow(element, text, title) {
  const whole = shown(text);
  say(element, whole === "" ? "--" : cut(whole, LONGEST_IN_ROW));
  element.classList.toggle("none", whole === "");
  setAttribute(
    element,
    "title",
    whole === "" ? null : cut(title === undefined ? whole : title, 4 * LONGEST_IN_ROW),
  );
}

const STATUSES = new Set(["active", "idle", "stale", "completed", "available", "claimed", "blocked"]);
const PRIORITIES = new Set(["P1", "P2", "P3"]);

// The doubt is that of `doubtAbout`.
function setStatus(element, status, doubt) {
  say(element, doubt ? `${shown(status)}, ${doubt}` : shown(status));
  element.className = `status status-${STATUSES.has(status) ? status : "other"}${doubt ? " overdue" : ""}`;
}

// Why an agent may not be what its status says: its process has ended, or it has sent no heartbeat for too long.
function doubtAbout(agent) {
  if (agent.process === "dead" && (agent.status === "active" || agent.status === "idle")) return "gone";
  return agent.overdue ? "overdue" : "";
}

function setPriority(element, priority) {
  say(element, priority ? shown(priority) : "--");
  element.className = `priority priority-${PRIORITIES.has(priority) ? priority : "none"}`;
}

const counted = (count, one, many) => `${count.toLocaleString("en")} ${count === 1 ? one : many}`;
