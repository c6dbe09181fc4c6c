// What the page shows of the board: each resource is read when a view needs it, and again when an event
// concerns it.
//
// A resource knows the revision it was read at. An event below that changes nothing; one above makes the
// resource outdated, and it is read again soon: at once when it is quiet, seldom when reading takes long or
// much happens.

const SOONEST = 40;
const SHORTEST_PAUSE = 150;
const LONGEST_READ_PAUSE = 2 * SECOND;

const resources = [];

class Resource {
  constructor({ path, concerns, show, read, pause }) {
    this.path = path;
    this.concerns = concerns;
    this.pause = pause ?? SHORTEST_PAUSE;
    this.show = show;
    if (read) this.ask = read;
    this.views = new Set();
    this.ages = false;
    this.readAt = -1;
    this.wanted = 0;
    this.timer = null;
    this.reading = false;
    this.again = false;
    this.lastEnd = 0;
    this.lastTook = 0;
    this.generation = 0;
    this.unreadable = [];
    resources.push(this);
  }

  neededBy(...views) {
    for (const view of views) this.views.add(view);
    return this;
  }

  get needed() {
    return this.views.has(currentView()) && !document.hidden;
  }

  // The question itself changed: what is under way no longer counts.
  restart() {
    this.generation += 1;
    this.readAt = -1;
    this.wanted = 0;
    clearTimeout(this.timer);
    this.timer = null;
    if (this.reading) this.again = true;
    else this.schedule(0);
  }

  outdate(revision) {
    if (revision <= this.readAt) return;
    this.wanted = Math.max(this.wanted, revision);
    this.schedule();
  }

  schedule(delay) {
    if (!this.needed || this.timer !== null) return;
    if (this.reading) {
      this.again = true;
      return;
    }
    const pause = Math.min(Math.max(this.pause, 3 * this.lastTook), LONGEST_READ_PAUSE);
    const wait = delay ?? Math.max(SOONEST, this.lastEnd + pause - performance.now());
    this.timer = setTimeout(() => {
      this.timer = null;
      this.read();
    }, wait);
  }

  ask() {
    return ask(typeof this.path === "function" ? this.path() : this.path);
  }

  async read() {
    const generation = this.generation;
    const start = performance.now();
    this.reading = true;
    this.again = false;
    try {
      const { answer, revision, unreadable = [] } = await this.ask();
      if (generation === this.generation) {
        this.unreadable = unreadable;
        this.readAt = revision;
        noteRevision(revision);
        this.show(answer, revision);
        trouble(this, null);
      }
    } catch (error) {
      if (generation === this.generation) trouble(this, error);
    } finally {
      this.reading = false;
      this.lastEnd = performance.now();
      this.lastTook = this.lastEnd - start;
    }
    if (this.again || generation !== this.generation || this.wanted > this.readAt) {
      // A board that cannot be read is read again when the stream reports it.
      if (!failing.has(this)) this.schedule();
    }
  }
}

// Refusals that a reader should know of. That the server is gone is said by the connection, not here.
const failing = new Map();

function trouble(resource, error) {
  if (error) failing.set(resource, error);
  else failing.delete(resource);
  showTrouble();
}

// Errors of resources that are not shown are not shown either.
function showTrouble() {
  const looked = [...failing].filter(([resource]) => resource.needed).map(([, failure]) => failure);
  const refused = looked.find((failure) => failure instanceof Refused);
  const text = troubleOf(stream.refusal) || troubleOf(refused) || leftOut() || "";
  const element = byId("trouble");
  element.hidden = text === "";
  say(element, text);
}

function troubleOf(refused) {
  if (!refused) return null;
  // The server has a new token since it was started again. The page goes on as soon as one tab has the new cookie.
  if (refused.status === 401)
    return `This page has no access: the dashboard was started again. Print its new address with \`${commandFor("serve --status")}\` and open it.`;
  if (refused.status === 429)
    return `This page is not updated: ${shown(refused.message)}. Close a page or a program that follows the board.`;
  return `Cannot read the board: ${shown(refused.message)}`;
}

// What the lists of this view leave out.
function leftOut() {
  const rows = new Set(resources.filter((resource) => resource.needed).flatMap((resource) => resource.unreadable));
  if (rows.size === 0) return null;
  return `Not shown, because they cannot be read: ${shown([...rows].join(", "))}`;
}

// Reads what the current view shows, unless it is fresh.
function readNeeded() {
  showTrouble();
  for (const resource of resources) {
    if (resource.needed && (resource.readAt < 0 || resource.wanted > resource.readAt)) resource.schedule(0);
  }
}

// After a gap: everything may have changed.
function readEverything() {
  for (const resource of resources) resource.restart();
}

// Signs of life have no events, so what shows them is read now and then; so is what could not be read.
function readAged() {
  for (const resource of resources) {
    if (resource.needed && (resource.ages || failing.has(resource))) resource.schedule();
  }
}

let revisionShown = 0;

function noteRevision(revision) {
  if (revision > revisionShown) showRevision(revision);
}

function showRevision(revision) {
  revisionShown = revision;
  say(byId("revision"), revision);
}
