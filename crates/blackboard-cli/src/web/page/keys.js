// Keys that work anywhere on the page, and the dialog that lists them.

const SHORTCUTS = [
  {
    keys: VIEWS.map((view, index) => String(index + 1)),
    label: `1 – ${VIEWS.length}`,
    says: "Go to a view",
    run: (key) => openView(VIEWS[key - 1]),
  },
  { keys: ["["], label: "[", says: "Previous view", run: () => stepView(-1) },
  { keys: ["]"], label: "]", says: "Next view", run: () => stepView(1) },
  { keys: ["/"], label: "/", says: "Find in this view", run: focusFind },
  { keys: ["l"], label: "l", says: "Live timeline", run: goLive },
  { keys: ["?"], label: "?", says: "This help", run: () => byId("help").showModal() },
];

const KEYS_ELSEWHERE = [
  ["↑ ↓ Home End", "Move in a list, table or tree"],
  ["← →", "Close or open a branch; change the tab"],
  ["Enter", "Open the details of a row"],
  ["Backspace", "Go back in the drawer"],
  ["Esc", "Close the drawer or this help"],
];

function stepView(step) {
  openView(VIEWS[(VIEWS.indexOf(currentView()) + step + VIEWS.length) % VIEWS.length]);
}

function focusFind() {
  const input = byId(`view-${currentView()}`).querySelector("input[type=search]");
  if (input) input.focus();
}

function goLive() {
  openView("timeline");
  followTimeline();
}

const isTyping = (target) =>
  target instanceof Element &&
  target.matches("input:not([type=checkbox]):not([type=range]), select, textarea");

function createKeys() {
  const rows = [...SHORTCUTS.map(({ label, says }) => [label, says]), ...KEYS_ELSEWHERE];
  for (const [keys, says] of rows)
    byId("help-keys").append(make("dt", {}, make("kbd", {}, keys)), make("dd", {}, says));
  byId("help-open").addEventListener("click", () => byId("help").showModal());
  byId("help-close").addEventListener("click", () => byId("help").close());
  byId("help").addEventListener("click", (event) => event.target === byId("help") && byId("help").close());
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    if (byId("drawer").open && event.key === "Backspace") drawerBack();
    if (isTyping(event.target)) {
      if (event.key === "Escape" && event.target.type === "search" && event.target.value === "")
        event.target.blur();
      return;
    }
    if (document.querySelector("dialog[open]")) return;
    const shortcut = SHORTCUTS.find(({ keys }) => keys.includes(event.key));
    if (!shortcut) return;
    event.preventDefault();
    shortcut.run(event.key);
  });
}
