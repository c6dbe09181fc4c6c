// The drawers of an agent, a work item, an entry and an event.

function openAgent(session) {
  openDrawer({
    kind: "Agent",
    title: agentName(model.agentById.get(session)?.agent_name, session) || session,
    concerns: isAbout("agent", "work_item", "entry"),
    read: () => askFor(query("/api/agent", { id: session })),
    build(agent) {
      if (agent.gone) return gone(agent.gone);
      this.title = agentName(agent.agent_name, agent.session_id);
      const status = make("span");
      setStatus(status, agent.status, doubtAbout(agent));
      return [
        facts([
          ["Status", status],
          ["Current work", agent.current_work],
          ["Progress", agent.progress],
          ["Project", agent.project],
          ["Parent", agentLink(agent.parent_id, agent.parent_name)],
          ["Last seen", timeOf(agent.last_seen_at)],
          ["Started", timeOf(agent.started_at)],
          ["Ended", agent.ended_at && timeOf(agent.ended_at)],
          ["Process", agent.pid && `${agent.pid}${agent.process ? `, ${agent.process}` : ""}`],
          ["Session", make("code", {}, shown(agent.session_id))],
        ]),
        part(
          "Claimed work",
          listOf((agent.work_items || []).map((item) => itemLink(item.item_id, item.title))),
        ),
        part(
          "Held locks and files",
          listOf(
            (agent.leases || []).map((lease) =>
              make(
                "span",
                {},
                make("span.quiet", {}, `${shown(lease.scope)} `),
                make("code", {}, shown(lease.pattern || lease.key)),
              ),
            ),
          ),
        ),
        part(
          "Delegates",
          listOf((agent.delegates || []).map((each) => agentLink(each.session_id, each.agent_name))),
        ),
        metadataOf(agent),
      ];
    },
  });
}

function openItem(id) {
  openDrawer({
    kind: "Work item",
    title: titleOf(id),
    concerns: isAbout("work_item", "agent"),
    read: () => askFor(query("/api/item", { id })),
    build(item) {
      if (item.gone) return gone(item.gone);
      this.title = item.title;
      const [status, priority] = [make("span"), make("span")];
      setStatus(status, item.status);
      setPriority(priority, item.priority);
      return [
        facts([
          ["Status", status],
          ["Priority", priority],
          ["Id", make("code", {}, shown(item.item_id))],
          ["Project", item.project_id],
          [
            item.status === "completed" ? "Completed by" : "Claimed by",
            item.claimed_by ? agentLink(item.claimed_by, item.claimed_by_name) : item.claimed_by_name,
          ],
          ["Claimed", item.claimed_at && timeOf(item.claimed_at)],
          ["Fence", item.fence],
          ["Completed", item.completed_at && timeOf(item.completed_at)],
          ["Created", timeOf(item.created_at)],
          ["Source", item.source_ref ? `${item.source}: ${item.source_ref}` : item.source],
        ]),
        item.summary && part("Summary", make("p.prose", {}, shown(item.summary))),
        item.description && part("Description", make("p.prose", {}, shownLines(item.description))),
        part("Blocked by", listOf(blockersOf(item).map((each) => blockerLink(item, each)))),
        part("Blocks", listOf((item.dependents || []).map((each) => itemLink(each)))),
        metadataOf(item),
        part("History", historyOf(item.history.map((event) => ({ ...event, named_agent: item.named_agents[event.id] })))),
      ];
    },
  });
}

// An item that does not exist has nothing to open.
function blockerLink(item, id) {
  if (!isMissing(item, id)) return itemLink(id);
  return make("span", {}, make("code", {}, cut(shown(id), LONGEST_IN_ROW)), make("span.missing", {}, " (not created)"));
}

function openEntry({ scope, key }) {
  openDrawer({
    kind: "Entry",
    title: key,
    concerns: (event) =>
      (event.target_type === "entry" && event.target_id === key) || event.target_type === "scope",
    read: () => askFor(query("/api/entries/history", { scope, key }), true),
    build(answer) {
      if (answer.gone || !answer.items.length) return gone(answer.gone);
      const [newest] = answer.items;
      return [
        facts([
          ["Scope", scope],
          ["Version", newest.version],
          ["Revision", newest.revision],
          [newest.what === "written" ? "Written by" : "Removed by", newest.source_agent],
          [capitalized(newest.what), timeOf(newest.timestamp)],
          ["Expires", newest.expires_at && timeOf(newest.expires_at)],
          ["Tags", newest.tags && newest.tags.length ? newest.tags.join(", ") : null],
        ]),
        newest.what === "written" && part("Value", valueOf(newest.value)),
        metadataOf(newest),
        part(
          "History",
          make("ol.versions", {}, ...answer.items.map(versionOf)),
          answer.compacted && make("p.quiet", {}, "Earlier versions have been pruned."),
        ),
      ];
    },
  });
}

const capitalized = (word) => word.charAt(0).toUpperCase() + word.slice(1);

function versionOf(version, index) {
  const head = make(
    "summary",
    { "data-target": `version ${version.revision}` },
    make("span.version", {}, `v${version.version}`),
    make("span", {}, shown(version.what)),
    make("span.quiet", {}, cut(shown(version.source_agent || "unknown"), 100)),
    timeOf(version.timestamp),
  );
  if (version.what !== "written") return make("li", {}, make("div.version-line", {}, ...head.childNodes));
  const open = drawer.opened.has(version.revision);
  return make(
    "li",
    {},
    make(
      "details",
      {
        open,
        ontoggle: (event) => {
          if (event.target.open) drawer.opened.add(version.revision);
          else drawer.opened.delete(version.revision);
        },
      },
      head,
      valueOf(version.value),
    ),
  );
}

// The stored metadata, if it is not empty.
function metadataOf({ metadata }) {
  return metadata && Object.keys(metadata).length > 0 && part("Metadata", valueOf(metadata));
}

drawer.opened = new Set();

function openEvent(event) {
  openDrawer({
    kind: "Event",
    title: summaryOf(event),
    concerns: () => false,
    read: async () => ({ answer: event, revision: revisionShown }),
    build: () => [
      facts([
        ["Revision", event.id],
        ["Event", make(`span.event-type.kind-${kindOf(event)}`, {}, shown(typeOf(event)))],
        ["When", timeOf(event.timestamp)],
        ["Timestamp", event.timestamp],
        [
          "Actor",
          agentLink(event.actor_id, event.actor_name || model.agentById.get(event.actor_id)?.agent_name),
        ],
        ["Target", targetOf(event)],
      ]),
      metadataOf(event),
    ],
  });
}

function targetOf(event) {
  if (event.target_type === "agent")
    return agentLink(event.target_id, model.agentById.get(event.target_id)?.agent_name);
  if (event.target_type === "work_item") return itemLink(event.target_id);
  const scope = event.metadata && event.metadata.scope;
  if (event.target_type === "entry" && scope && scope !== "locks" && scope !== "files") {
    return linkTo(event.target_id, `entry ${event.target_id}`, () =>
      openEntry({ scope, key: event.target_id }),
    );
  }
  return event.target_id;
}
