// Who holds which lock, and who has reserved which files.

function createLocks() {
  const holder = (lease) => agentName(lease.agent_name, lease.session_id) || lease.session_id;
  const open = (lease) => openAgent(lease.session_id);
  const locks = tableRows(
    byId("locks-table"),
    [
      codeColumn((lock) => lock.name),
      openColumn(holder, open),
      timeColumn((lock) => lock.since),
      timeColumn((lock) => lock.expires_at),
      numberColumn((lock) => lock.fence),
      textColumn((lock) => lock.note),
    ],
    { key: (lock) => `${lock.name}\n${lock.fence}` },
  );
  const files = tableRows(
    byId("files-table"),
    [
      codeColumn((file) => file.pattern),
      textColumn((file) => file.mode),
      openColumn(holder, open),
      timeColumn((file) => file.since),
      codeColumn((file) => file.repository),
      textColumn((file) => file.note),
    ],
    { key: (file) => `${file.pattern}\n${file.fence}` },
  );
  const resource = new Resource({
    path: "/api/locks",
    concerns: isAbout("entry", "scope", "agent"),
    show(answer) {
      for (const lease of [...answer.locks, ...answer.files]) knowAgent(lease.agent_name, lease.session_id);
      locks.show(answer.locks);
      files.show(answer.files);
      say(byId("locks-count"), answer.locks.length || "");
      say(byId("files-count"), answer.files.length || "");
    },
  });
  resource.ages = true;
  resource.neededBy("locks");
}
