// Sessions and their delegates as a tree, which the arrow keys walk.

const tree = { rows: null, closed: new Set(), active: null, visible: [] };

function createTree() {
  const element = byId("agents-tree");
  tree.rows = new Rows(element, {
    key: (node) => node.agent.session_id,
    create() {
      const row = make(
        "div.node",
        { role: "treeitem" },
        make(
          "span.node-head",
          {},
          make("span.twist", { "aria-hidden": "true" }),
          make("span.dot", { "aria-hidden": "true" }),
          make("span.node-name"),
        ),
        make("span"),
        make("span.node-work"),
        make("span.node-project"),
        make("span.node-items"),
        make("time"),
      );
      row.addEventListener("click", (event) => {
        activate(row.item.agent.session_id);
        if (event.target.classList.contains("twist") && row.item.children) toggle(row.item);
        else openAgent(row.item.agent.session_id);
      });
      return row;
    },
    update(row, node) {
      const { agent } = node;
      const [head, status, work, project, items, seen] = row.children;
      const [twist, dot, name] = head.children;
      row.id = `agent-${agent.session_id}`;
      setAttribute(row, "aria-level", node.level);
      setAttribute(row, "aria-posinset", node.place);
      setAttribute(row, "aria-setsize", node.places);
      setAttribute(row, "aria-expanded", node.children ? !tree.closed.has(agent.session_id) : null);
      setAttribute(row, "aria-selected", tree.active === agent.session_id);
      setAttribute(row, "data-level", Math.min(node.level, 8));
      say(twist, node.children ? (tree.closed.has(agent.session_id) ? "▸" : "▾") : "");
      setDot(dot, agent);
      const shownName = agentName(agent.agent_name, agent.session_id);
      sayRow(name, shownName, `${shown(agent.agent_name)}\n${agent.session_id}`);
      setStatus(status, agent.status, doubtAbout(agent));
      sayRow(work, agent.current_work);
      sayRow(project, agent.project);
      say(items, agent.claimed_items ? counted(agent.claimed_items, "item", "items") : "");
      setTime(seen, agent.last_seen_at);
    },
  });
  element.addEventListener("keydown", treeKey);
  element.addEventListener(
    "focus",
    () => tree.active === null && tree.visible.length && activate(tree.visible[0].agent.session_id),
  );
  byId("agents-find").addEventListener("input", showTree);
  byId("agents-ended").addEventListener("change", () => agentsResource.restart());
}

// Every session below its parent, the parent's place being its own start. Where the parent is not known, or
// sessions name each other as parents, the session stands at the top.
function nodesOf(agents, closed) {
  const known = new Map(agents.map((agent) => [agent.session_id, agent]));
  const children = new Map();
  const tops = [];
  for (const agent of agents) {
    if (agent.parent_id && known.has(agent.parent_id) && !isOwnAncestor(agent, known)) {
      const siblings = children.get(agent.parent_id);
      if (siblings) siblings.push(agent);
      else children.set(agent.parent_id, [agent]);
    } else tops.push(agent);
  }
  const nodes = [];
  const visit = (siblings, level) =>
    siblings.forEach((agent, index) => {
      const below = children.get(agent.session_id);
      nodes.push({ agent, level, place: index + 1, places: siblings.length, children: below });
      if (below && !closed.has(agent.session_id)) visit(below, level + 1);
    });
  visit(tops, 1);
  return nodes;
}

function isOwnAncestor(agent, known) {
  const seen = new Set([agent.session_id]);
  for (let next = known.get(agent.parent_id); next; next = known.get(next.parent_id)) {
    if (next.session_id === agent.session_id) return true;
    if (seen.has(next.session_id)) return false;
    seen.add(next.session_id);
  }
  return false;
}

function showTree() {
  const words = wordsOf(byId("agents-find"));
  const ended = byId("agents-ended").checked;
  const agents = ended ? model.agents : model.agents.filter((agent) => agent.status !== "completed");
  const fit = new Set();
  for (const agent of agents) {
    if (!fits(words, agent.agent_name, agent.project, agent.current_work, agent.session_id, agent.status))
      continue;
    // A matching agent is shown below its parents.
    for (let next = agent; next && !fit.has(next); next = model.agentById.get(next.parent_id))
      fit.add(next);
  }
  tree.visible = nodesOf(
    agents.filter((agent) => fit.has(agent)),
    tree.closed,
  );
  if (tree.active && !tree.visible.some((node) => node.agent.session_id === tree.active))
    tree.active = null;
  tree.rows.show(tree.visible);
  setAttribute(byId("agents-tree"), "aria-activedescendant", tree.active && `agent-${tree.active}`);
  say(byId("tree-count"), words.length ? `${fit.size} of ${agents.length}` : agents.length || "");
}

function activate(session) {
  tree.active = session;
  setAttribute(byId("agents-tree"), "aria-activedescendant", `agent-${session}`);
  const index = tree.visible.findIndex((node) => node.agent.session_id === session);
  if (index >= 0) tree.rows.reveal(index);
}

function toggle(node) {
  const session = node.agent.session_id;
  if (!tree.closed.delete(session)) tree.closed.add(session);
  showTree();
}

function treeKey(event) {
  const nodes = tree.visible;
  const index = nodes.findIndex((node) => node.agent.session_id === tree.active);
  const node = nodes[index];
  const go = (to) => nodes[to] && activate(nodes[to].agent.session_id);
  const closed = node && tree.closed.has(node.agent.session_id);
  const keys = {
    ArrowDown: () => go(index + 1),
    ArrowUp: () => go(Math.max(index - 1, 0)),
    Home: () => go(0),
    End: () => go(nodes.length - 1),
    PageDown: () => go(Math.min(index + 10, nodes.length - 1)),
    PageUp: () => go(Math.max(index - 10, 0)),
    ArrowRight() {
      if (!node || !node.children) return;
      if (closed) toggle(node);
      else go(index + 1);
    },
    ArrowLeft() {
      if (!node) return;
      if (node.children && !closed) toggle(node);
      else if (node.level > 1) {
        let parent = index;
        while (parent > 0 && nodes[parent].level >= node.level) parent -= 1;
        go(parent);
      }
    },
    Enter: () => node && openAgent(node.agent.session_id),
    " ": () => node && openAgent(node.agent.session_id),
  };
  if (!keys[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  event.stopPropagation();
  keys[event.key]();
}
