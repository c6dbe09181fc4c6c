// The numbers of the board at a glance. Each card leads to the view that has more of it.

const CARDS = [
  {
    label: "Active Agents",
    tone: "active",
    view: "agents",
    read: (status) => countOf(status.agents, "active"),
  },
  {
    label: "Stale Agents",
    tone: "stale",
    view: "agents",
    read: (status) => countOf(status.agents, "stale"),
  },
  {
    label: "Claimed Items",
    tone: "claimed",
    view: "work",
    read: (status) => countOf(status.work, "claimed"),
  },
  {
    label: "Available Items",
    tone: "available",
    view: "work",
    read: (status) => countOf(status.work, "available"),
  },
  {
    label: "Blocked Items",
    tone: "blocked",
    view: "work",
    read: (status) => countOf(status.work, "blocked"),
  },
  {
    label: "Completed Items",
    tone: "completed",
    view: "work",
    read: (status) => countOf(status.work, "completed"),
  },
  { label: "Projects", tone: "plain", view: "projects", read: (status) => status.projects.count },
  { label: "Events, 24 h", tone: "plain", view: "timeline", read: (status) => status.events_24h.count },
];

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
