// The one connection on which the server tells what happens, and how the page gets it back after it was lost.
//
// The stream starts at the revision that the first answer was read at, so nothing falls between, and goes on
// only with the board that this answer was about: revisions of one board mean nothing on another. Events are
// collected and applied together, at most ten times a second. A tab that is hidden for a while closes
// its connection, because browsers allow only a few of them to one server.

const SILENCE = 40 * SECOND;
const LONGEST_PAUSE = 5 * SECOND;
const HIDDEN_FOR = 60 * SECOND;
const BETWEEN_BATCHES = 100;

const stream = {
  after: null,
  board: null,
  attempt: 0,
  abort: null,
  lastSign: 0,
  waiting: null,
  queue: [],
  scheduled: false,
  applied: 0,
  // Why the server does not let this page follow the board.
  refusal: null,
};

async function keepConnected() {
  if (stream.abort) return;
  const abort = new AbortController();
  stream.abort = abort;
  try {
    if (stream.after === null) await begin(abort.signal);
    const response = await fetch(query("/api/events/stream", { after: stream.after, board: stream.board }), {
      signal: abort.signal,
      cache: "no-store",
      headers: { Accept: "text/event-stream" },
    });
    if (!response.ok || !response.body) {
      // The log does not reach back that far, or it is another board by now: start over.
      if (![401, 429, 503].includes(response.status)) stream.after = null;
      throw new Refused(response.status, await response.json().catch(() => ({})));
    }
    if (stream.attempt > 0) readEverything();
    timelineConnected();
    stream.attempt = 0;
    stream.lastSign = Date.now();
    stream.refusal = null;
    showTrouble();
    showConnection("live");
    await follow(response.body.getReader(), abort);
    throw new Error("the server ended the stream");
  } catch (error) {
    if (stream.abort !== abort) return;
    stream.refusal = error instanceof Refused && [401, 429].includes(error.status) ? error : null;
    showTrouble();
    stream.abort = null;
    abort.abort();
    showConnection("reconnecting");
    const pause = Math.min(250 * 2 ** stream.attempt, LONGEST_PAUSE);
    stream.attempt += 1;
    stream.waiting = setTimeout(keepConnected, pause);
  }
}

// Which board it is, and the revision from which on the stream tells everything. Who comes back here could not
// go on: what happened between is not known, or happened on another board.
async function begin(signal) {
  const { revision, board } = await ask("/api/status", { signal });
  const isOther = stream.board !== null && board !== stream.board;
  stream.board = board;
  stream.after = revision;
  if (isOther) {
    readEverything();
    showRevision(revision);
  } else {
    noteRevision(revision);
  }
  if (stream.attempt > 0) {
    stream.queue = [];
    forgetEvents();
  }
}

async function follow(reader, abort) {
  const decoder = new TextDecoder();
  const watch = setInterval(() => {
    if (Date.now() - stream.lastSign > SILENCE) abort.abort();
  }, 5 * SECOND);
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      stream.lastSign = Date.now();
      const messages = (rest + decoder.decode(value, { stream: true })).split("\n\n");
      rest = messages.pop();
      for (const message of messages) receive(message);
    }
  } finally {
    clearInterval(watch);
  }
}

function receive(message) {
  let data = "";
  for (const line of message.split("\n")) {
    if (line.startsWith("data:")) data += line.slice(line[5] === " " ? 6 : 5);
  }
  if (data === "") return;
  const event = JSON.parse(data);
  stream.queue.push(event);
  stream.after = Math.max(stream.after, event.id);
  if (stream.scheduled) return;
  stream.scheduled = true;
  // The first of many is shown at once, the others some at a time.
  const pause = document.hidden
    ? SECOND
    : Math.max(0, stream.applied + BETWEEN_BATCHES - performance.now());
  if (document.hidden || pause > 0) setTimeout(applyEvents, pause);
  else requestAnimationFrame(applyEvents);
}

function applyEvents() {
  stream.scheduled = false;
  stream.applied = performance.now();
  const events = stream.queue;
  stream.queue = [];
  if (!events.length) return;
  const newest = events[events.length - 1].id;
  noteRevision(newest);
  addEvents(events);
  for (const resource of resources) {
    for (let index = events.length - 1; index >= 0; index -= 1) {
      if (resource.concerns(events[index])) {
        resource.outdate(events[index].id);
        break;
      }
    }
  }
}

function pauseStream() {
  const abort = stream.abort;
  clearTimeout(stream.waiting);
  stream.abort = null;
  if (abort) abort.abort();
  showConnection("paused");
}

let hiddenTimer = null;

function pauseWhenHidden() {
  clearTimeout(hiddenTimer);
  if (document.hidden) hiddenTimer = setTimeout(pauseStream, HIDDEN_FOR);
}

// A tab that is opened in the background is hidden from the beginning, and nothing says so.
pauseWhenHidden();

document.addEventListener("visibilitychange", () => {
  pauseWhenHidden();
  if (document.hidden) return;
  clearTimeout(stream.waiting);
  if (!stream.abort) keepConnected();
  readNeeded();
  refreshTimes();
});

addEventListener("online", () => {
  clearTimeout(stream.waiting);
  keepConnected();
});
