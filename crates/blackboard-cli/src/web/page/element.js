// Elements. All text of the board goes through `text` or `shown` into text nodes: nothing here reads HTML.

const SVG = "http://www.w3.org/2000/svg";
const LONGEST_IN_ROW = 400;

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
const HARMFUL =
  /[\u0000-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e007f}]/gu;
const HARMFUL_IN_LINES =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e007f}]/gu;
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

function setStatus(element, status, overdue) {
  say(element, overdue ? `${shown(status)}, overdue` : shown(status));
  element.className = `status status-${STATUSES.has(status) ? status : "other"}${overdue ? " overdue" : ""}`;
}

function setPriority(element, priority) {
  say(element, priority ? shown(priority) : "--");
  element.className = `priority priority-${PRIORITIES.has(priority) ? priority : "none"}`;
}

const counted = (count, one, many) => `${count.toLocaleString("en")} ${count === 1 ? one : many}`;
