// What the page says about its connection: live, reconnecting, or since when what it shows is old.

const STALE_AFTER = 5 * SECOND;

const connection = { state: "connecting", since: Date.now() };

function showConnection(state) {
  if (state !== connection.state) {
    const lost = connection.state === "live" && state !== "live";
    if (lost) connection.since = Date.now();
    connection.state = state;
  }
  refreshConnection();
}

function refreshConnection() {
  const element = byId("connection");
  const lost = Date.now() - connection.since;
  let state = connection.state;
  if (state === "reconnecting" && lost > STALE_AFTER) state = "stale";
  setAttribute(element, "data-state", state);
  const since = new Date(connection.since);
  const words = {
    stale: `stale since ${clock(since)}`,
    reconnecting: "reconnecting…",
    connecting: "connecting…",
  };
  say(element, words[state] || state);
  setAttribute(
    element,
    "title",
    state === "live"
      ? "Live"
      : `Disconnected; showing the state from ${span(lost)} ago`,
  );
  document.body.classList.toggle("is-stale", state === "stale");
}
