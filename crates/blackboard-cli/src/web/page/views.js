// The views, one at a time. The address remembers which: `#agents`.

const VIEWS = ["overview", "agents", "work", "entries", "locks", "timeline", "lanes", "projects"];
// Only a server with a token quota has a view of it.
if (byId("main").dataset.quota === "on") VIEWS.push("quota");

let shownView = null;

function currentView() {
  return shownView;
}

function viewOfAddress() {
  const name = location.hash.slice(1);
  return VIEWS.includes(name) ? name : "overview";
}

function openView(name) {
  if (viewOfAddress() === name && shownView === name) return;
  history.pushState(null, "", name === "overview" ? location.pathname : `#${name}`);
  showView(name);
}

function showView(name) {
  shownView = name;
  for (const view of VIEWS) {
    const tab = byId(`tab-${view}`);
    const selected = view === name;
    setAttribute(tab, "aria-selected", selected);
    tab.tabIndex = selected ? 0 : -1;
    byId(`view-${view}`).hidden = !selected;
    if (selected) revealTab(tab);
  }
  agentsChanged();
  workChanged();
  if (name === "overview" && recentEvents.length) showEventsTable();
  if (name === "timeline") openTimeline();
  if (name === "quota") showQuota();
  readNeeded();
}

// Not by `scrollIntoView`, which would make the Tab key begin there and not at the top of the page.
function revealTab(tab) {
  const strip = byId("tabs");
  const [room, box] = [strip.getBoundingClientRect(), tab.getBoundingClientRect()];
  if (box.left < room.left) strip.scrollLeft -= room.left - box.left + 16;
  else if (box.right > room.right) strip.scrollLeft += box.right - room.right + 16;
}

function createViews() {
  for (const view of VIEWS) byId(`tab-${view}`).addEventListener("click", () => openView(view));
  byId("tabs").addEventListener("keydown", (event) => {
    const index = VIEWS.indexOf(shownView);
    const to = { ArrowRight: index + 1, ArrowLeft: index - 1, Home: 0, End: VIEWS.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    const view = VIEWS[(to + VIEWS.length) % VIEWS.length];
    openView(view);
    byId(`tab-${view}`).focus();
  });
  // The address is for views; the link past them only moves the focus.
  document.querySelector(".skip").addEventListener("click", (event) => {
    event.preventDefault();
    byId("main").focus();
  });
  addEventListener("popstate", () => showView(viewOfAddress()));
}
