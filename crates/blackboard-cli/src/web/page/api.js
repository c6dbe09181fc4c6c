// Questions to the server.

// Numbers that JavaScript cannot hold are kept as they were written, where the browser can do that.
function exactNumbers(key, value, context) {
  const changed =
    typeof value === "number" && context && context.source && context.source !== String(value);
  return changed && JSON.rawJSON ? JSON.rawJSON(context.source) : value;
}

class Refused extends Error {
  constructor(status, answer) {
    super(answer.error || `the server answered ${status}`);
    this.status = status;
    this.code = answer.code;
    this.hint = answer.hint;
  }
}

// What the server answers, the revision at which it read that, and the word for the board that it read.
async function ask(path, { signal, values } = {}) {
  const response = await fetch(path, {
    signal,
    cache: "no-store",
    headers: { Accept: "application/json" },
  });
  const text = await response.text();
  if (!response.ok) {
    let answer = {};
    try {
      answer = JSON.parse(text);
    } catch {
      // Not ours; the status says enough.
    }
    throw new Refused(response.status, answer);
  }
  const answer = values ? JSON.parse(text, exactNumbers) : JSON.parse(text);
  const next = response.headers.get("Blackboard-Next");
  const unreadable = response.headers.get("Blackboard-Unreadable");
  return {
    answer,
    revision: Number(response.headers.get("Blackboard-Revision") ?? answer.revision ?? 0),
    board: response.headers.get("Blackboard-Board"),
    // Where a bare list goes on, if there is more of it.
    next: next === null ? null : decodeURIComponent(next),
    // Where in the event log an answer of events is.
    log: {
      kept: Number(response.headers.get("Blackboard-Events") ?? 0),
      oldest: response.headers.get("Blackboard-Oldest"),
      positions: (response.headers.get("Blackboard-Positions") ?? "").split(",").map(Number),
    },
    // The rows that the answer leaves out, because they cannot be read.
    unreadable: unreadable === null ? [] : unreadable.split(",").map(decodeURIComponent),
  };
}

function query(path, parameters) {
  const wanted = Object.entries(parameters).filter(
    ([, value]) => value !== "" && value !== null && value !== undefined,
  );
  return wanted.length ? `${path}?${new URLSearchParams(wanted)}` : path;
}
