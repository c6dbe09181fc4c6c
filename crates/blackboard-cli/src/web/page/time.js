// Times: relative in the text, exact on hover, and kept right while the page is open.

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

function ago(iso) {
  const passed = Date.now() - Date.parse(iso);
  if (Number.isNaN(passed)) return "--";
  return passed < -5 * SECOND ? `in ${span(-passed)}` : `${span(Math.max(passed, 0))} ago`;
}

function span(milliseconds) {
  if (milliseconds < MINUTE) return `${Math.floor(milliseconds / SECOND)}s`;
  if (milliseconds < HOUR) return `${Math.floor(milliseconds / MINUTE)}m`;
  if (milliseconds < 2 * DAY) return `${Math.floor(milliseconds / HOUR)}h`;
  return `${Math.floor(milliseconds / DAY)}d`;
}

const pad = (number, digits = 2) => String(number).padStart(digits, "0");

function clock(date) {
  return `${pad(date.getHours())}:${pad(date.getMinutes())}:${pad(date.getSeconds())}`;
}

function day(date) {
  return `${date.getFullYear()}-${pad(date.getMonth() + 1)}-${pad(date.getDate())}`;
}

// The exact time where the reader is, and the one that the board has stored.
function exact(iso) {
  const date = new Date(iso);
  if (Number.isNaN(date.getTime())) return shown(iso);
  return `${day(date)} ${clock(date)}.${pad(date.getMilliseconds(), 3)} (${iso})`;
}

function timeOf(iso) {
  return setTime(make("time"), iso);
}

function setTime(element, iso) {
  if (!iso) {
    say(element, "--");
    element.removeAttribute("datetime");
    element.removeAttribute("title");
    return element;
  }
  if (element.getAttribute("datetime") !== iso) {
    element.setAttribute("datetime", iso);
    element.setAttribute("title", exact(iso));
  }
  say(element, ago(iso));
  return element;
}

function refreshTimes() {
  for (const element of document.querySelectorAll("time[datetime]"))
    say(element, ago(element.getAttribute("datetime")));
}
