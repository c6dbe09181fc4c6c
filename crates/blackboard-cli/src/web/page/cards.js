// The numbers of the board at a glance. Each card leads to the view that has more of it.

const CARDS = [
  counting("Active Agents", "agents", "active"),
  counting("Stale Agents", "agents", "stale"),
  counting("Claimed Items", "work", "claimed"),
  counting("Available Items", "work", "available"),
  counting("Blocked Items", "work", "blocked"),
  counting("Completed Items", "work", "completed"),
  { label: "Projects", tone: "plain", view: "projects", read: (status) => status.projects.count },
  { label: "Events, 24 h", tone: "plain", view: "timeline", read: (status) => status.events_24h.count },
];

// A card with the number of agents or work items of one status, which has the color of that status.
function counting(label, view, status) {
  return { label, tone: status, view, read: (board) => countOf(board[view], status) };
}

function countOf(rows, status) {
  const row = rows.find((each) => each.status === status);
  return row ? row.count : 0;
}

function createCards() {
  const cards = CARDS.map(({ label, tone, view }) => {
    const value = make(`span.card-value.tone-${tone}`, {}, "–");
    const button = make(
      "button.card",
      { type: "button", onclick: () => openView(view) },
      make("span.card-label", {}, label),
      value,
    );
    byId("summary-cards").append(make("div", { role: "listitem" }, button));
    return value;
  });
  const resource = new Resource({
    path: "/api/status",
    concerns: () => true,
    show(status) {
      CARDS.forEach(({ read }, index) => {
        const count = read(status);
        say(cards[index], count.toLocaleString("en"));
        cards[index].classList.toggle("zero", count === 0);
      });
      say(byId("updated-at"), `Updated ${clock(new Date())}`);
    },
  });
  resource.ages = true;
  resource.neededBy("overview");
}
